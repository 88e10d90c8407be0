/* A stand-in for CANN's libascendcl.so: the functions that jitblas uses, stricter than the real ones. See
 * README.md. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <fcntl.h>

#include "standin_device.h"

enum {
    INVALID_PARAM = 100000,
    UNINITIALIZED = 100001,
    ALREADY_INITIALIZED = 100002,
    RT_PARAM_INVALID = 107000,
    RT_INVALID_DEVICE = 107001,
    RT_NO_CONTEXT = 107002,
    RT_TIMESTAMP_INVALID = 107006,
    RT_TIMESTAMP_REVERSAL = 107007,
    RT_ADDRESS_UNALIGNED = 107008,
    RT_INVALID_HANDLE = 107017,
    RT_OUT_OF_MEMORY = 207018,
    RT_INTERNAL = 507000,
    RT_VECTOR_CORE_EXCEPTION = 507035
};

enum { EVENT_TIME_LINE = 8, ALIGNMENT = 512, DMA_ALIGNMENT = 64, MOST_BLOCKS = 65535, MOST_DEVICES = 16 };
enum { HOST_TO_HOST, HOST_TO_DEVICE, DEVICE_TO_HOST, DEVICE_TO_DEVICE };
enum { STREAM = 0x5743a1, EVENT = 0xe7e47, DESTROYED = 0xdead };

struct event {
    int magic;
    uint32_t flags;
    uint64_t recorded; /* how often recorded, and how often that was reached */
    uint64_t reached;
    double milliseconds;
    struct event *next;
};

struct task {
    standin_kernel kernel; /* NULL: a copy, a fill or an event */
    uint32_t blocks;
    void *arguments;
    struct event *event;
    uint64_t record;
    void *to;
    const void *from;
    uint64_t nbytes;
    int kind; /* of copy; -1: fill */
    int byte;
    long delay_us;
    struct task *next;
};

struct stream {
    int magic;
    pthread_t thread;
    struct task *first;
    struct task *last;
    uint64_t submitted;
    uint64_t done;
    int error; /* first since the last synchronise */
    char message[256];
    struct stream *next;
};

struct block {
    uint64_t offset;
    uint64_t size;
    struct block *next;
};

/* One lock for everything; tasks run without it. Streams and events are never freed, so that late use is
 * noticed. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pid_t owner; /* 0: aclInit was not called */
static struct stream *streams;
static struct stream *default_stream;
static struct event *events;
static struct block *blocks; /* by offset */
static char
    *device_base; /* addresses without memory behind them: touching one is a fault, as with the real device */
static char *device_memory; /* the same memory where kernels and copies may touch it */
static int device_file = -1;
static uint64_t device_bytes;
static int complaints;
static char complaint_text[8192];

static __thread int current_device = -1;
static __thread char recent_message[512];
static __thread char fault_message[256];

static long setting(const char *name, long fallback) {
    const char *text = getenv(name);
    return text != NULL && *text != 0 ? strtol(text, NULL, 0) : fallback;
}

static int fail(int code, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(recent_message, sizeof recent_message, format, arguments);
    va_end(arguments);
    return code;
}

/* An error that a correct caller never causes: it is also kept for the report. */
#define MISUSE(code, ...) (fail(code, __VA_ARGS__), complain(), code)

static void complain(void) {
    size_t used = strlen(complaint_text);
    ++complaints;
    snprintf(complaint_text + used, sizeof complaint_text - used, "misuse: %s\n", recent_message);
}

/* STANDIN_FAIL="aclrtMalloc:2,aclrtSynchronizeStream:0": which call of a function fails, counted from 1; 0 is
 * every. */
static int injected(const char *function) {
    static struct {
        const char *name;
        long calls;
    } counts[64];
    const char *text = getenv("STANDIN_FAIL");
    size_t length = strlen(function);
    long nth = -1;
    int i = 0;
    while (i < 64 && counts[i].name != NULL && strcmp(counts[i].name, function) != 0) {
        ++i;
    }
    if (i == 64) {
        return 0;
    }
    counts[i].name = function;
    ++counts[i].calls;
    while (text != NULL && *text != 0) {
        if (strncmp(text, function, length) == 0 && text[length] == ':') {
            nth = strtol(text + length + 1, NULL, 10);
        }
        text = strchr(text, ',');
        text = text != NULL ? text + 1 : NULL;
    }
    return nth == 0 || nth == counts[i].calls;
}

static int enter_as(const char *function, int needs_device, int failure) {
    if (owner != 0 && owner != getpid()) {
        return MISUSE(RT_INTERNAL, "%s in a forked child of the process that called aclInit", function);
    }
    if (owner == 0) {
        return MISUSE(UNINITIALIZED, "%s before aclInit", function);
    }
    if (needs_device && current_device < 0) {
        return MISUSE(RT_NO_CONTEXT, "%s on a thread that called no aclrtSetDevice", function);
    }
    if (injected(function)) {
        return fail(failure, "%s fails because STANDIN_FAIL asks for it", function);
    }
    return 0;
}

/* Every function starts with one of these and ends with LEAVE; `code` is what it returns. */
#define ENTER(needs_device, failure)                                                                         \
    int code;                                                                                                \
    pthread_mutex_lock(&lock);                                                                               \
    code = enter_as(__func__, needs_device, failure);                                                        \
    if (code != 0) {                                                                                         \
        goto leave;                                                                                          \
    }
#define LEAVE                                                                                                \
    leave:                                                                                                   \
    pthread_mutex_unlock(&lock);                                                                             \
    return code;
#define REQUIRE(condition, error, ...)                                                                       \
    if (!(condition)) {                                                                                      \
        code = MISUSE(error, __VA_ARGS__);                                                                   \
        goto leave;                                                                                          \
    }

/* ---- devices ---- */

static long device_count(void) {
    long count = setting("STANDIN_DEVICES", 1);
    return count < 0 ? 0 : count > MOST_DEVICES ? MOST_DEVICES : count;
}

const char *aclGetRecentErrMsg(void) {
    static __thread char answer[sizeof recent_message];
    memcpy(answer, recent_message, sizeof answer);
    recent_message[0] = 0;
    return answer[0] != 0 ? answer : NULL;
}

static void write_report(void);

int aclInit(const char *config) {
    int code = 0;
    pthread_mutex_lock(&lock);
    (void)config;
    if (owner == getpid()) {
        code = fail(ALREADY_INITIALIZED, "aclInit was called before");
    } else if (owner != 0) {
        code = MISUSE(RT_INTERNAL, "aclInit in a forked child");
    } else if (injected("aclInit")) {
        code = fail(RT_INTERNAL, "aclInit fails because STANDIN_FAIL asks for it");
    } else {
        owner = getpid();
        atexit(write_report);
    }
    pthread_mutex_unlock(&lock);
    return code;
}

int aclrtGetDeviceCount(uint32_t *count) {
    ENTER(0, RT_INTERNAL)
    REQUIRE(count != NULL, RT_PARAM_INVALID, "aclrtGetDeviceCount: count is null")
    *count = (uint32_t)device_count();
    LEAVE
}

int aclrtSetDevice(int32_t device) {
    ENTER(0, RT_INTERNAL)
    REQUIRE(device >= 0 && device < device_count(), RT_INVALID_DEVICE,
            "aclrtSetDevice: there is no device %d", device)
    current_device = device;
    LEAVE
}

int aclrtGetDevice(int32_t *device) {
    ENTER(0, RT_INTERNAL)
    REQUIRE(device != NULL, RT_PARAM_INVALID, "aclrtGetDevice: device is null")
    if (current_device < 0) { /* a fair question */
        code = fail(RT_NO_CONTEXT, "aclrtGetDevice: no device is set on this thread");
    } else {
        *device = current_device;
    }
    LEAVE
}

const char *aclrtGetSocName(void) {
    const char *name = getenv("STANDIN_SOC");
    return device_count() == 0 ? NULL : name != NULL ? name : "Ascend950PR_9579";
}

int aclrtGetDeviceInfo(uint32_t device, int attribute, int64_t *value) {
    ENTER(0, RT_INTERNAL)
    REQUIRE(device < device_count(), RT_INVALID_DEVICE, "aclrtGetDeviceInfo: there is no device %u", device)
    REQUIRE(value != NULL, RT_PARAM_INVALID, "aclrtGetDeviceInfo: value is null")
    switch (attribute) {
    case 102:
        *value = setting("STANDIN_VECTOR_CORES", 56) / 2;
        break;
    case 201:
        *value = setting("STANDIN_VECTOR_CORES", 56);
        break;
    case 204:
        *value = 216 * 1024;
        break;
    case 302:
        *value = 128L << 20;
        break;
    case 601:
        *value = setting("STANDIN_ARCHITECTURE", 3510);
        break;
    default:
        code = MISUSE(RT_PARAM_INVALID, "aclrtGetDeviceInfo: unknown attribute %d", attribute);
    }
    LEAVE
}

/* ---- memory ---- */

static int map_device(void) {
    if (device_base != NULL) {
        return 1;
    }
    device_bytes = (uint64_t)setting("STANDIN_MEMORY", 4L << 30);
    device_file = memfd_create("standin device memory", MFD_CLOEXEC);
    if (device_file < 0 || ftruncate(device_file, (off_t)device_bytes) != 0) {
        return 0;
    }
    device_memory =
        mmap(NULL, device_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, device_file, 0);
    device_base = mmap(NULL, device_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return device_memory != MAP_FAILED && device_base != MAP_FAILED;
}

static int is_device_address(const void *address) {
    return device_base != NULL && (const char *)address >= device_base &&
           (const char *)address < device_base + device_bytes;
}

/* The allocation that holds a whole range, with the lock held. */
static struct block *block_of(const void *address, uint64_t nbytes) {
    struct block *block = is_device_address(address) ? blocks : NULL;
    uint64_t offset = (uint64_t)((const char *)address - device_base);
    while (block != NULL && !(offset >= block->offset && offset < block->offset + block->size)) {
        block = block->next;
    }
    return block != NULL && nbytes <= block->offset + block->size - offset ? block : NULL;
}

static void *touchable(const void *address, uint64_t nbytes) {
    return block_of(address, nbytes) != NULL ? device_memory + ((const char *)address - device_base) : NULL;
}

void *standin_memory(const void *device, uint64_t nbytes) {
    void *memory;
    pthread_mutex_lock(&lock);
    memory = touchable(device, nbytes);
    pthread_mutex_unlock(&lock);
    return memory;
}

int aclrtMalloc(void **address, size_t size, int policy) {
    struct block **place = &blocks;
    struct block *block;
    uint64_t offset = ALIGNMENT;
    ENTER(1, RT_OUT_OF_MEMORY)
    REQUIRE(address != NULL && size > 0, RT_PARAM_INVALID,
            "aclrtMalloc: no place for the address, or a size of 0")
    REQUIRE(policy >= 0 && policy <= 2, RT_PARAM_INVALID, "aclrtMalloc: policy %d", policy)
    if (!map_device()) {
        code = fail(RT_INTERNAL, "aclrtMalloc: the stand-in cannot map its memory");
        goto leave;
    }
    /* The first gap that fits, never next to another allocation: running over an end does not go unnoticed.
     */
    while (size <= device_bytes && *place != NULL && offset + size + ALIGNMENT > (*place)->offset) {
        offset = ((*place)->offset + (*place)->size + 2 * ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        place = &(*place)->next;
    }
    if (size > device_bytes || offset + size > device_bytes) {
        code = fail(RT_OUT_OF_MEMORY, "aclrtMalloc: out of device memory, %zu bytes asked for", size);
        goto leave;
    }
    block = calloc(1, sizeof *block);
    block->offset = offset;
    block->size = size;
    block->next = *place;
    *place = block;
    *address = device_base + offset;
    memset(device_memory + offset, 0xa5,
           size < (16u << 20) ? size : 16u << 20); /* fresh memory is not zero */
    LEAVE
}

int aclrtFree(void *address) {
    struct block **place = &blocks;
    struct block *block;
    ENTER(1, RT_INTERNAL)
    while (*place != NULL && device_base + (*place)->offset != (char *)address) {
        place = &(*place)->next;
    }
    REQUIRE(*place != NULL, RT_PARAM_INVALID, "aclrtFree: %p is not an allocation (freed twice?)", address)
    block = *place;
    *place = block->next;
    fallocate(device_file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)block->offset,
              (off_t)block->size);
    free(block);
    LEAVE
}

struct attributes {
    uint32_t id;
    int type;
    uint32_t page_size;
    uint32_t reserved[4];
};

int aclrtPointerGetAttributes(const void *address, struct attributes *attributes) {
    ENTER(1, RT_INTERNAL)
    REQUIRE(address != NULL && attributes != NULL, INVALID_PARAM, "aclrtPointerGetAttributes: a null pointer")
    memset(attributes, 0, sizeof *attributes);
    attributes->type = block_of(address, 1) != NULL ? 1 : 2;
    attributes->id = attributes->type == 1 ? (uint32_t)current_device : 0;
    attributes->page_size = attributes->type == 1 ? 2u << 20 : 0;
    LEAVE
}

/* ---- streams ---- */

int standin_fault(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(fault_message, sizeof fault_message, format, arguments);
    va_end(arguments);
    return RT_VECTOR_CORE_EXCEPTION;
}

static int copy_now(const struct task *task) {
    void *to = task->to;
    const void *from = task->from;
    if (task->kind == HOST_TO_DEVICE || task->kind == DEVICE_TO_DEVICE || task->kind < 0) {
        to = standin_memory(task->to, task->nbytes);
    }
    if (task->kind == DEVICE_TO_HOST || task->kind == DEVICE_TO_DEVICE) {
        from = standin_memory(task->from, task->nbytes);
    }
    if (to == NULL || (from == NULL && task->kind >= 0)) {
        return standin_fault("device memory of a copy was freed before the copy was made");
    }
    if (task->kind < 0) {
        memset(to, task->byte, task->nbytes);
    } else {
        memmove(to, from, task->nbytes);
    }
    return 0;
}

static int run_task(struct task *task) {
    fault_message[0] = 0;
    if (task->delay_us > 0) {
        usleep((useconds_t)task->delay_us);
    }
    if (task->kernel != NULL) {
        return task->kernel(task->blocks, task->arguments);
    }
    return task->event != NULL ? 0 : copy_now(task);
}

static double now_ms(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return 1e3 * (double)time.tv_sec + 1e-6 * (double)time.tv_nsec;
}

static void *work(void *argument) {
    struct stream *stream = argument;
    pthread_mutex_lock(&lock);
    for (;;) {
        struct task *task = stream->first;
        int error;
        if (task == NULL) {
            if (stream->magic == DESTROYED) {
                break;
            }
            pthread_cond_wait(&changed, &lock);
            continue;
        }
        pthread_mutex_unlock(&lock);
        error = run_task(task);
        pthread_mutex_lock(&lock);
        if (task->event != NULL && task->record > task->event->reached) {
            task->event->reached = task->record;
            task->event->milliseconds = now_ms();
        }
        if (error != 0 && stream->error == 0) {
            stream->error = error;
            memcpy(stream->message, fault_message, sizeof stream->message);
        }
        stream->first = task->next;
        ++stream->done;
        free(task->arguments);
        free(task);
        pthread_cond_broadcast(&changed);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

static struct stream *new_stream(void) {
    struct stream *stream = calloc(1, sizeof *stream);
    pthread_attr_t detached;
    stream->magic = STREAM;
    stream->next = streams;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    if (pthread_create(&stream->thread, &detached, work, stream) != 0) {
        free(stream);
        return NULL;
    }
    streams = stream;
    return stream;
}

/* The stream behind a handle, null meaning the default stream; NULL if it is none or was destroyed. */
static struct stream *stream_of(void *handle) {
    struct stream *stream = streams;
    if (handle == NULL) {
        if (default_stream == NULL) {
            default_stream = new_stream();
        }
        return default_stream;
    }
    while (stream != NULL && stream != handle) {
        stream = stream->next;
    }
    return stream != NULL && stream->magic == STREAM ? stream : NULL;
}

static struct event *event_of(void *handle) {
    struct event *event = events;
    while (event != NULL && event != handle) {
        event = event->next;
    }
    return event != NULL && event->magic == EVENT ? event : NULL;
}

static struct task *submit(struct stream *stream, const struct task *prototype) {
    struct task *task = malloc(sizeof *task);
    *task = *prototype;
    task->delay_us = setting("STANDIN_DELAY_US", 0);
    task->next = NULL;
    if (stream->first == NULL) {
        stream->first = task;
    } else {
        stream->last->next = task;
    }
    stream->last = task;
    ++stream->submitted;
    pthread_cond_broadcast(&changed);
    return task;
}

static void wait_until(struct stream *stream, uint64_t count) {
    while (stream->done < count) {
        pthread_cond_wait(&changed, &lock);
    }
}

int aclrtCreateStream(void **handle) {
    struct stream *stream;
    ENTER(1, RT_INTERNAL)
    REQUIRE(handle != NULL, RT_PARAM_INVALID, "aclrtCreateStream: no place for the handle")
    stream = new_stream();
    if (stream == NULL) {
        code = fail(RT_INTERNAL, "aclrtCreateStream: no thread");
    }
    *handle = stream;
    LEAVE
}

int aclrtDestroyStream(void *handle) {
    struct stream *stream;
    ENTER(1, RT_INTERNAL)
    stream = handle != NULL ? stream_of(handle) : NULL;
    REQUIRE(stream != NULL, RT_INVALID_HANDLE, "aclrtDestroyStream: %p is not a stream (destroyed twice?)",
            handle)
    REQUIRE(stream->done == stream->submitted, RT_PARAM_INVALID,
            "aclrtDestroyStream without aclrtSynchronizeStream")
    stream->magic = DESTROYED;
    pthread_cond_broadcast(&changed);
    LEAVE
}

int aclrtSynchronizeStream(void *handle) {
    struct stream *stream;
    ENTER(1, RT_VECTOR_CORE_EXCEPTION)
    stream = stream_of(handle);
    REQUIRE(stream != NULL, RT_INVALID_HANDLE, "aclrtSynchronizeStream: %p is not a stream", handle)
    wait_until(stream, stream->submitted);
    if (stream->error != 0) {
        code = fail(stream->error, "%s", stream->message);
        stream->error = 0;
    }
    LEAVE
}

int aclrtStreamQuery(void *handle, int *status) {
    struct stream *stream;
    ENTER(1, RT_INTERNAL)
    stream = stream_of(handle);
    REQUIRE(stream != NULL, RT_INVALID_HANDLE, "aclrtStreamQuery: %p is not a stream", handle)
    REQUIRE(status != NULL, RT_PARAM_INVALID, "aclrtStreamQuery: status is null")
    *status = stream->done == stream->submitted ? 0 : 1;
    LEAVE
}

static void note_launch(uint32_t count) {
    const char *path = getenv("STANDIN_LAUNCHES");
    FILE *file = path != NULL && *path != 0 ? fopen(path, "a") : NULL;
    if (file != NULL) {
        fprintf(file, "%u\n", count);
        fclose(file);
    }
}

void standin_launch(void *handle, uint32_t count, standin_kernel kernel, const void *arguments,
                    uint64_t size) {
    struct task task = {.kernel = kernel, .blocks = count};
    struct stream *stream;
    int code;
    pthread_mutex_lock(&lock);
    code = enter_as(__func__, 1, RT_INTERNAL);
    if (code != 0) {
        goto leave; /* nowhere to report it but in the report */
    }
    stream = stream_of(handle);
    REQUIRE(stream != NULL, RT_INVALID_HANDLE, "launch on %p, which is not a stream", handle)
    if (count < 1 || count > MOST_BLOCKS) {
        code = MISUSE(RT_PARAM_INVALID, "launch of %u blocks: 1 to %d are possible", count, MOST_BLOCKS);
        if (stream->error == 0) {
            stream->error = code;
            memcpy(stream->message, recent_message, sizeof stream->message);
        }
        goto leave;
    }
    task.arguments = malloc(size);
    memcpy(task.arguments, arguments, size);
    submit(stream, &task);
    note_launch(count);
leave:
    pthread_mutex_unlock(&lock);
}

/* Copies from and to ordinary host memory are complete on return; STANDIN_PINNED=1 has all host memory
 * page-locked. */
int aclrtMemcpyAsync(void *to, size_t most, const void *from, size_t nbytes, int kind, void *handle) {
    struct task task = {.to = to, .from = from, .nbytes = nbytes, .kind = kind};
    struct stream *stream;
    int to_device = kind == HOST_TO_DEVICE || kind == DEVICE_TO_DEVICE;
    int from_device = kind == DEVICE_TO_HOST || kind == DEVICE_TO_DEVICE;
    ENTER(1, RT_INTERNAL)
    stream = stream_of(handle);
    REQUIRE(stream != NULL, RT_INVALID_HANDLE, "aclrtMemcpyAsync: %p is not a stream", handle)
    REQUIRE(kind >= HOST_TO_HOST && kind <= DEVICE_TO_DEVICE, RT_PARAM_INVALID, "aclrtMemcpyAsync: kind %d",
            kind)
    REQUIRE(nbytes > 0 && nbytes <= most, RT_PARAM_INVALID, "aclrtMemcpyAsync: %zu bytes into %zu", nbytes,
            most)
    REQUIRE(to_device ? block_of(to, nbytes) != NULL : to != NULL && !is_device_address(to), RT_PARAM_INVALID,
            "aclrtMemcpyAsync: %p and %zu bytes are not %s memory", to, nbytes, to_device ? "device" : "host")
    REQUIRE(from_device ? block_of(from, nbytes) != NULL : from != NULL && !is_device_address(from),
            RT_PARAM_INVALID, "aclrtMemcpyAsync: %p and %zu bytes are not %s memory", from, nbytes,
            from_device ? "device" : "host")
    REQUIRE(kind != DEVICE_TO_DEVICE || ((uintptr_t)to | (uintptr_t)from) % DMA_ALIGNMENT == 0,
            RT_ADDRESS_UNALIGNED, "aclrtMemcpyAsync: copies on the device want addresses aligned to %d bytes",
            DMA_ALIGNMENT)
    submit(stream, &task);
    if (kind != DEVICE_TO_DEVICE && !setting("STANDIN_PINNED", 0)) {
        wait_until(stream, stream->submitted);
    }
    LEAVE
}

int aclrtMemsetAsync(void *to, size_t most, int32_t byte, size_t nbytes, void *handle) {
    struct task task = {.to = to, .nbytes = nbytes, .kind = -1, .byte = byte};
    struct stream *stream;
    ENTER(1, RT_INTERNAL)
    stream = stream_of(handle);
    REQUIRE(stream != NULL, RT_INVALID_HANDLE, "aclrtMemsetAsync: %p is not a stream", handle)
    REQUIRE(nbytes > 0 && nbytes <= most, RT_PARAM_INVALID, "aclrtMemsetAsync: %zu bytes of %zu", nbytes,
            most)
    REQUIRE(byte >= 0 && byte <= 255, RT_PARAM_INVALID, "aclrtMemsetAsync: value %d", byte)
    REQUIRE(block_of(to, nbytes) != NULL, RT_PARAM_INVALID, "aclrtMemsetAsync: %p is not device memory", to)
    submit(stream, &task);
    LEAVE
}

/* ---- events ---- */

int aclrtCreateEventWithFlag(void **handle, uint32_t flags) {
    struct event *event;
    ENTER(1, RT_INTERNAL)
    REQUIRE(handle != NULL && flags != 0, RT_PARAM_INVALID, "aclrtCreateEventWithFlag: no place or no flags")
    event = calloc(1, sizeof *event);
    event->magic = EVENT;
    event->flags = flags;
    event->next = events;
    events = event;
    *handle = event;
    LEAVE
}

int aclrtDestroyEvent(void *handle) {
    struct event *event;
    ENTER(1, RT_INTERNAL)
    event = event_of(handle);
    REQUIRE(event != NULL, RT_INVALID_HANDLE, "aclrtDestroyEvent: %p is not an event (destroyed twice?)",
            handle)
    event->magic = DESTROYED;
    LEAVE
}

int aclrtRecordEvent(void *handle, void *stream_handle) {
    struct task task = {0};
    struct stream *stream;
    ENTER(1, RT_INTERNAL)
    task.event = event_of(handle);
    stream = stream_of(stream_handle);
    REQUIRE(task.event != NULL, RT_INVALID_HANDLE, "aclrtRecordEvent: %p is not an event", handle)
    REQUIRE(stream != NULL, RT_INVALID_HANDLE, "aclrtRecordEvent: %p is not a stream", stream_handle)
    task.record = ++task.event->recorded;
    submit(stream, &task);
    LEAVE
}

int aclrtQueryEventStatus(void *handle, int *status) {
    struct event *event;
    ENTER(1, RT_INTERNAL)
    event = event_of(handle);
    REQUIRE(event != NULL, RT_INVALID_HANDLE, "aclrtQueryEventStatus: %p is not an event", handle)
    REQUIRE(status != NULL, RT_PARAM_INVALID, "aclrtQueryEventStatus: status is null")
    *status = event->reached == event->recorded ? 1 : 0;
    LEAVE
}

int aclrtSynchronizeEvent(void *handle) {
    struct event *event;
    ENTER(1, RT_VECTOR_CORE_EXCEPTION)
    event = event_of(handle);
    REQUIRE(event != NULL, RT_INVALID_HANDLE, "aclrtSynchronizeEvent: %p is not an event", handle)
    for (uint64_t wanted = event->recorded; event->reached < wanted;) {
        pthread_cond_wait(&changed, &lock);
    }
    LEAVE
}

int aclrtEventElapsedTime(float *milliseconds, void *start_handle, void *end_handle) {
    struct event *start;
    struct event *end;
    ENTER(1, RT_INTERNAL)
    start = event_of(start_handle);
    end = event_of(end_handle);
    REQUIRE(start != NULL && end != NULL, RT_INVALID_HANDLE, "aclrtEventElapsedTime: no event")
    REQUIRE(milliseconds != NULL, RT_PARAM_INVALID, "aclrtEventElapsedTime: no place for the time")
    REQUIRE((start->flags & end->flags & EVENT_TIME_LINE) != 0, RT_TIMESTAMP_INVALID,
            "aclrtEventElapsedTime: an event was created without the time line flag")
    if (start->reached == 0 || end->reached == 0 || start->reached < start->recorded ||
        end->reached < end->recorded) {
        code =
            fail(RT_TIMESTAMP_INVALID, "aclrtEventElapsedTime: an event is not recorded or not reached yet");
    } else if (end->milliseconds < start->milliseconds) {
        code = fail(RT_TIMESTAMP_REVERSAL, "aclrtEventElapsedTime: the end came before the start");
    } else {
        *milliseconds = (float)(end->milliseconds - start->milliseconds);
    }
    LEAVE
}

/* ---- report ---- */

int standin_report(char *text, uint64_t size) {
    int alive_streams = 0;
    int alive_events = 0;
    int allocations = 0;
    int count;
    pthread_mutex_lock(&lock);
    for (struct stream *stream = streams; stream != NULL; stream = stream->next) {
        alive_streams += stream->magic == STREAM && stream != default_stream;
    }
    for (struct event *event = events; event != NULL; event = event->next) {
        alive_events += event->magic == EVENT;
    }
    for (struct block *block = blocks; block != NULL; block = block->next) {
        ++allocations;
    }
    snprintf(text, size, "streams: %d\nevents: %d\nallocations: %d\n%s", alive_streams, alive_events,
             allocations, complaint_text);
    count = complaints;
    pthread_mutex_unlock(&lock);
    return count;
}

static void write_report(void) {
    const char *path = getenv("STANDIN_REPORT");
    static char text[sizeof complaint_text + 256];
    FILE *file = path != NULL && *path != 0 && owner == getpid() ? fopen(path, "w") : NULL;
    if (file != NULL) {
        standin_report(text, sizeof text);
        fputs(text, file);
        fclose(file);
    }
}
