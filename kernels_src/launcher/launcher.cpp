// The steady-state call in compiled code: check that the arguments are exactly what a plan was made for, take their
// addresses, launch. Whatever is not exactly so goes to the plan's Python code, which checks everything and has the
// same results. It is compiled like a kernel, at the first plan, and nothing depends on it.
//
// No Python headers: a machine with a compiler need not have them. The few functions of Python's stable ABI come as
// addresses, and the layout of a NumPy array after the object head is NumPy's own ABI, unchanged since 1.7.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

struct Object;  // PyObject

// ctypes fills this in (jitblas/launcher.py has the same fields in the same order).
struct PythonFunctions {
    Object* (*type)(Object*);
    void (*incref)(Object*);
    void (*decref)(Object*);
    double (*as_double)(Object*);
    Object* (*new_tuple)(ptrdiff_t);
    int (*set_item)(Object*, ptrdiff_t, Object*);
    Object* (*call)(Object*, Object*, Object*);
    Object* (*new_function)(void* definition, Object* self, Object* module);
    Object* (*new_capsule)(void* pointer, const char* name, void (*destructor)(Object*));
    void* (*capsule_pointer)(Object*, const char*);
    void* (*release_gil)();
    void (*take_gil)(void*);
    Object* (*from_int)(long);
};

constexpr int kMaxArrays = 4;
constexpr int kMaxFixed = 2;
constexpr int kMaxDimensions = 3;
constexpr int kMaxTilingBytes = 256;
constexpr int kAligned = 0x100;    // NPY_ARRAY_ALIGNED
constexpr int kWriteable = 0x400;  // NPY_ARRAY_WRITEABLE
constexpr const char* kName = "jitblas.launcher";

// What follows the object head in a NumPy array.
struct ArrayFields {
    char* data;
    int dimensions;
    ptrdiff_t* shape;
    ptrdiff_t* strides;
    Object* base;
    Object* dtype;
    int flags;
};

struct ExpectedArray {
    Object* dtype;
    int32_t dimensions;
    int32_t written;
    int64_t operand;  // its place among the kernel's
    int64_t shape[kMaxDimensions];
    int64_t strides[kMaxDimensions];
    int64_t low;   // bytes from element 0 to the lowest element (zero or less) ...
    int64_t high;  // ... and to one past the highest
};

// One plan's call: (float, array, array, ...) or (array, array, ...).
struct Plan {
    const PythonFunctions* python;
    int (*launch)(uint32_t blocks, void* stream, void* const* operands, const void* tiling);
    int (*stream_idle)(void* stream);
    Object* array_type;
    Object* float_type;
    Object* fallback;  // called with the arguments when they are not as expected, or with the status of a failed launch
    void* stream;
    void* fixed[kMaxFixed];  // operands that are the same for every call: a workspace, a table
    uint64_t head_bytes;     // of a Python object
    uint32_t blocks;
    uint32_t scalars;        // how many floats come first: 0 or 1
    uint32_t scalar_offset;  // of the float in the tiling
    uint32_t arrays;
    uint32_t result;  // which array is returned
    uint32_t fixed_count;
    uint32_t fixed_operand[kMaxFixed];  // their places among the kernel's
    uint32_t quick;  // not worth letting other Python threads run, unless the stream is busy with earlier work
    ExpectedArray array[kMaxArrays];
    uint8_t tiling[kMaxTilingBytes];
};

struct MethodDefinition {
    const char* name;
    void* function;
    int flags;
    const char* documentation;
};

const ArrayFields* AsExpected(const Plan* plan, Object* object, const ExpectedArray& expected) {
    Object* type = plan->python->type(object);
    const bool is_array = type == plan->array_type;
    plan->python->decref(type);
    if (!is_array) {
        return nullptr;
    }
    const ArrayFields* array =
        reinterpret_cast<const ArrayFields*>(reinterpret_cast<const char*>(object) + plan->head_bytes);
    if (array->dtype != expected.dtype || array->dimensions != expected.dimensions || (array->flags & kAligned) == 0 ||
        (expected.written && (array->flags & kWriteable) == 0)) {
        return nullptr;
    }
    for (int i = 0; i < expected.dimensions; ++i) {
        if (array->shape[i] != expected.shape[i] || array->strides[i] != expected.strides[i]) {
            return nullptr;
        }
    }
    return array;
}

// Whether what is written shares no byte with another operand.
bool Apart(const Plan* plan, char* const* data) {
    for (uint32_t i = 0; i < plan->arrays; ++i) {
        for (uint32_t j = 0; j < plan->arrays; ++j) {
            if (i != j && plan->array[i].written && data[i] + plan->array[i].low < data[j] + plan->array[j].high &&
                data[j] + plan->array[j].low < data[i] + plan->array[i].high) {
                return false;
            }
        }
    }
    return true;
}

Object* Slow(const Plan* plan, Object* const* arguments, ptrdiff_t count) {
    Object* tuple = plan->python->new_tuple(count);
    if (tuple == nullptr) {
        return nullptr;
    }
    for (ptrdiff_t i = 0; i < count; ++i) {
        plan->python->incref(arguments[i]);
        plan->python->set_item(tuple, i, arguments[i]);
    }
    Object* result = plan->python->call(plan->fallback, tuple, nullptr);
    plan->python->decref(tuple);
    return result;
}

const PythonFunctions* python_functions = nullptr;

// METH_FASTCALL.
Object* Call(Object* self, Object* const* arguments, ptrdiff_t count) {
    const Plan* plan = static_cast<const Plan*>(python_functions->capsule_pointer(self, kName));
    if (count != static_cast<ptrdiff_t>(plan->arrays + plan->scalars)) {
        return Slow(plan, arguments, count);
    }
    if (plan->scalars != 0) {
        Object* type = plan->python->type(arguments[0]);
        plan->python->decref(type);
        if (type != plan->float_type) {
            return Slow(plan, arguments, count);
        }
    }
    Object* const* arrays = arguments + plan->scalars;
    char* data[kMaxArrays];
    void* operands[2 * kMaxArrays] = {};
    for (uint32_t i = 0; i < plan->arrays; ++i) {
        const ArrayFields* array = AsExpected(plan, arrays[i], plan->array[i]);
        if (array == nullptr) {
            return Slow(plan, arguments, count);
        }
        data[i] = array->data;
        operands[plan->array[i].operand] = array->data + plan->array[i].low;
    }
    for (uint32_t i = 0; i < plan->fixed_count; ++i) {
        operands[plan->fixed_operand[i]] = plan->fixed[i];
    }
    if (!Apart(plan, data)) {
        return Slow(plan, arguments, count);
    }
    alignas(16) uint8_t tiling[kMaxTilingBytes];
    memcpy(tiling, plan->tiling, sizeof(tiling));
    if (plan->scalars != 0) {
        const float scalar = static_cast<float>(plan->python->as_double(arguments[0]));
        memcpy(tiling + plan->scalar_offset, &scalar, sizeof(scalar));
    }
    const bool release = !plan->quick || !plan->stream_idle(plan->stream);
    void* thread = release ? plan->python->release_gil() : nullptr;
    const int status = plan->launch(plan->blocks, plan->stream, operands, tiling);
    if (release) {
        plan->python->take_gil(thread);
    }
    if (status != 0) {
        Object* number = plan->python->from_int(status);
        Object* result = number == nullptr ? nullptr : Slow(plan, &number, 1);
        plan->python->decref(number);
        return result;
    }
    Object* result = arrays[plan->result];
    plan->python->incref(result);
    return result;
}

void Release(Object* capsule) {
    Plan* plan = static_cast<Plan*>(python_functions->capsule_pointer(capsule, kName));
    Object* const owned[] = {plan->array_type, plan->float_type, plan->fallback};
    for (Object* object : owned) {
        python_functions->decref(object);
    }
    for (uint32_t i = 0; i < plan->arrays; ++i) {
        python_functions->decref(plan->array[i].dtype);
    }
    free(plan);
}

constexpr int kMethodFastCall = 0x0080;

MethodDefinition definition = {"launch", reinterpret_cast<void*>(Call), kMethodFastCall,
                               "launch([scalar,] *arrays): what a plan's call becomes"};

}  // namespace

EXPORT const char* jitblas_key() {
    return JITBLAS_KEY;
}

EXPORT uint64_t jitblas_launcher_plan_bytes() {
    return sizeof(Plan);
}

// A Python function that makes the plan's call. Called with the GIL held; takes its own references.
EXPORT Object* jitblas_launcher_make(const Plan* given) {
    python_functions = given->python;
    Plan* plan = static_cast<Plan*>(malloc(sizeof(Plan)));
    if (plan == nullptr) {
        return nullptr;
    }
    *plan = *given;
    Object* capsule = python_functions->new_capsule(plan, kName, Release);
    if (capsule == nullptr) {
        free(plan);
        return nullptr;
    }
    Object* const owned[] = {plan->array_type, plan->float_type, plan->fallback};
    for (Object* object : owned) {
        python_functions->incref(object);
    }
    for (uint32_t i = 0; i < plan->arrays; ++i) {
        python_functions->incref(plan->array[i].dtype);
    }
    Object* function = python_functions->new_function(&definition, capsule, nullptr);
    python_functions->decref(capsule);
    return function;
}
