// What surrounds a kernel: qualifiers, the running block, failing, and turning a <<<...>>> launch into a call of the
// host runtime.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "abi.h"

#define __global__
#define __aicore__
#define __gm__
#define __ubuf__
#define GM_ADDR uint8_t*

// What the build says of the cores that its kernels run on; by default vector cores.
#ifndef JITBLAS_UB_BYTES
#define JITBLAS_UB_BYTES 0
#endif
#ifndef JITBLAS_CORES
#define JITBLAS_CORES JITBLAS_VECTOR
#define JITBLAS_L1_BYTES 0
#define JITBLAS_L0A_BYTES 0
#define JITBLAS_L0B_BYTES 0
#define JITBLAS_L0C_BYTES 0
#endif

// Operands in L0A and L0B lie as the CPU wants them: a description, copied elements, panels. That takes more room.
#define JITBLAS_OPERAND_ROOM 3
#define JITBLAS_CUBE_BYTES \
    (JITBLAS_L1_BYTES + JITBLAS_OPERAND_ROOM * (JITBLAS_L0A_BYTES + JITBLAS_L0B_BYTES) + JITBLAS_L0C_BYTES)

#if defined(__has_builtin)
#define JITBLAS_HAS_BUILTIN(name) __has_builtin(name)
#elif defined(__GNUC__)
#define JITBLAS_HAS_BUILTIN(name) 1  // GCC 9 cannot be asked and has those asked for here
#endif

// Vector functions must melt into their caller: registers then stay registers.
#define JITBLAS_INLINE inline __attribute__((always_inline))
#define __simd_vf__ static __attribute__((always_inline))
#define __simd_callee__ __attribute__((always_inline))
#define __simt_vf__ static __attribute__((always_inline))
#define __simt_callee__ __attribute__((always_inline))
#define LAUNCH_BOUND(threads)
#define KERNEL_TASK_TYPE_DEFAULT(type) static_cast<void>(::AscendC::type)

namespace AscendC {

enum KernelMetaType { KERNEL_TYPE_AIV_ONLY, KERNEL_TYPE_AIC_ONLY, KERNEL_TYPE_MIX_AIC_1_2 };

}  // namespace AscendC

namespace twin {

// Set when the library is loaded; a launch cannot happen before.
static const JitblasRuntime* runtime = nullptr;
static thread_local const JitblasBlock* block = nullptr;
static thread_local int launch_status = 0;

// Ends the block by a jump out of the kernel, so kernels and the twin hold no objects whose destructors matter.
[[noreturn]] inline void Fail(const char* message) {
    runtime->fail(message);
}

// Builds a message in place; kernels have no printf on the host, and need none to name a buffer and two numbers.
class Message {
public:
    Message& operator<<(const char* text) {
        while (*text != 0 && size_ + 1 < sizeof(text_)) {
            text_[size_++] = *text++;
        }
        text_[size_] = 0;
        return *this;
    }

    Message& operator<<(uint64_t number) {
        char digits[24];
        int at = sizeof(digits) - 1;
        digits[at] = 0;
        do {
            digits[--at] = static_cast<char>('0' + number % 10);
            number /= 10;
        } while (number != 0);
        return *this << digits + at;
    }

    const char* Text() const { return text_; }

private:
    char text_[480] = {};
    size_t size_ = 0;
};

template <int... I>
struct Indices {};

#if defined(__clang__)
template <typename T, T... I>
struct IndicesOf {
    using Type = Indices<I...>;
};
template <int N>
using MakeIndices = typename __make_integer_seq<IndicesOf, int, N>::Type;
#else
template <int N>
using MakeIndices = Indices<__integer_pack(N)...>;
#endif

template <int I, typename T>
struct Field {
    T value;
};

template <typename Seq, typename... P>
struct PackedArguments;

// A launch's arguments, copied when it is made and unpacked once per block.
template <int... I, typename... P>
struct PackedArguments<Indices<I...>, P...> : Field<I, P>... {
    explicit PackedArguments(P... values) : Field<I, P>{values}... {}

    void Call(void (*kernel)(P...)) const { kernel(static_cast<const Field<I, P>*>(this)->value...); }
};

template <typename... P>
struct Kernel {
    using Packed = PackedArguments<MakeIndices<sizeof...(P)>, P...>;

    struct Bundle {
        void (*kernel)(P...);
        Packed arguments;
    };

    static void Run(const void* bundle, const JitblasBlock* current) {
        block = current;
        const Bundle* b = static_cast<const Bundle*>(bundle);
        b->arguments.Call(b->kernel);
    }
};

// What kernels are whose source says nothing of it, and the cores of each type.
constexpr AscendC::KernelMetaType kTaskType = JITBLAS_CORES == JITBLAS_MIXED  ? AscendC::KERNEL_TYPE_MIX_AIC_1_2
                                              : JITBLAS_CORES == JITBLAS_CUBE ? AscendC::KERNEL_TYPE_AIC_ONLY
                                                                              : AscendC::KERNEL_TYPE_AIV_ONLY;
constexpr JitblasCores kCoresOf[] = {JITBLAS_VECTOR, JITBLAS_CUBE, JITBLAS_MIXED};

// What `kernel<<<blocks, dynamic, stream>>>(arguments)` is rewritten to: Launch<type>(kernel, "kernel", blocks,
// dynamic, stream)(arguments). A kernel of vector cores may stand beside a mixed one.
template <AscendC::KernelMetaType type, typename... P>
class Launcher {
public:
    Launcher(void (*kernel)(P...), const char* name, uint32_t blocks, void* stream)
        : kernel_(kernel), name_(name), blocks_(blocks), stream_(stream) {}

    void operator()(P... arguments) const {
        using Bundle = typename Kernel<P...>::Bundle;
        static_assert(sizeof(Bundle) <= JITBLAS_MAX_ARGUMENT_BYTES, "the kernel's arguments exceed 512 bytes");
        const Bundle bundle{kernel_, typename Kernel<P...>::Packed(arguments...)};
        constexpr JitblasCores cores = kCoresOf[type];
        const JitblasLaunch launch{Kernel<P...>::Run,
                                   &bundle,
                                   sizeof(Bundle),
                                   blocks_,
                                   JITBLAS_UB_BYTES,
                                   cores == JITBLAS_VECTOR ? 0 : JITBLAS_CUBE_BYTES,
                                   cores,
                                   name_};
        launch_status = runtime->launch(reinterpret_cast<uintptr_t>(stream_), &launch);
    }

private:
    void (*kernel_)(P...);
    const char* name_;
    uint32_t blocks_;
    void* stream_;
};

template <AscendC::KernelMetaType type = kTaskType, typename Dynamic, typename... P>
inline Launcher<type, P...> Launch(void (*kernel)(P...), const char* name, uint32_t blocks, Dynamic, void* stream) {
    static_assert(type == kTaskType || type == AscendC::KERNEL_TYPE_AIV_ONLY, "the build is for other cores");
    return Launcher<type, P...>(kernel, name, blocks, stream);
}

}  // namespace twin

// By number, because forming a pointer beyond an array is undefined where prefetching one is not.
#define JITBLAS_PREFETCH_TO(address, offset, level)                                                        \
    __builtin_prefetch(reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(address) +                \
                                                     static_cast<uintptr_t>(offset) * sizeof(*(address))), \
                       0, level)
#define JITBLAS_PREFETCH(address, offset) JITBLAS_PREFETCH_TO(address, offset, 3)
#define JITBLAS_PREFETCH_FAR(address, offset) JITBLAS_PREFETCH_TO(address, offset, 2)

#define JITBLAS_LAUNCH_STATUS() (::twin::launch_status)

extern "C" __attribute__((visibility("default"))) inline
    __attribute__((used)) uint32_t jitblas_bind(const JitblasRuntime* runtime) {
    ::twin::runtime = runtime;
    return JITBLAS_ABI_VERSION;
}

// In a kernel of one kind of core the answer is a constant, and the other part of its program is not compiled.
#define ASCEND_IS_AIC (JITBLAS_CORES == JITBLAS_CUBE || (JITBLAS_CORES == JITBLAS_MIXED && ::twin::block->is_cube))
#define ASCEND_IS_AIV (!ASCEND_IS_AIC)

namespace AscendC {

JITBLAS_INLINE int64_t GetBlockIdx() {
    return ::twin::block->index;
}

// Which of a mixed group's vector cores this is.
JITBLAS_INLINE int64_t GetSubBlockIdx() {
    return ::twin::block->core == 0 ? 0 : ::twin::block->core - 1;
}

JITBLAS_INLINE void InitSocState() {}

// Bits of the control register. Bit 60 at zero makes casts follow their own saturation mode, as they always do here.
template <int8_t first, int8_t last>
JITBLAS_INLINE void SetCtrlSpr(int64_t) {
    static_assert(first == 60 && last == 60, "the twin knows bit 60 of the control register only");
}

JITBLAS_INLINE int64_t GetBlockNum() {
    return ::twin::block->count;
}

}  // namespace AscendC
