// The host runtime: streams as ordered queues, events, and one pool of threads over which a launch's blocks are spread.
// It is the only place with threads, so kernels compile in a tenth of a second. POSIX threads and C only: no C++
// standard library to compile or to link.
//
// Who runs what. Every stream has a worker thread, started at the first command that has to wait. A command runs on the
// worker, or on the caller's thread when the stream is idle and the launch mode allows it. Whoever runs a launch offers
// its blocks to the pool if they are worth it; helpers that wake in time take some.
#undef _FORTIFY_SOURCE  // its longjmp knows one stack per thread; cores of a group have their own
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "../detail/abi.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

constexpr int kSuccess = 0;
constexpr int kAllocFailed = 2;
constexpr int kInvalidValue = 3;
constexpr int kExecutionFailed = 5;
constexpr uint32_t kMaxBlocks = 65535;
constexpr size_t kRegisterBytes = 256;
constexpr size_t kStackBytes = 256 << 10;
constexpr size_t kMessageBytes = 512;
constexpr int64_t kWorthWaking = 60000;  // nanoseconds of work; a sleeping thread takes about half of that to wake

class Lock {
public:
    explicit Lock(pthread_mutex_t* mutex) : mutex_(mutex) { pthread_mutex_lock(mutex_); }
    ~Lock() { pthread_mutex_unlock(mutex_); }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

private:
    pthread_mutex_t* mutex_;
};

int64_t Nanoseconds() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<int64_t>(now.tv_sec) * 1000000000 + now.tv_nsec;
}

// ---- One launch, while it runs ------------------------------------------------------------------------------------

struct Running {
    const JitblasLaunch* launch;
    bool bind;
    uint32_t next;     // first block nobody has taken (atomic)
    uint32_t helpers;  // pool threads inside (guarded by pool.mutex, like what follows)
    int status;
    Running* following;  // in the pool's list
    char message[kMessageBytes];
};

// A core of a mixed group: its program runs on a stack of its own, so that it can be left and come back to.
struct Fiber {
    jmp_buf context;
    uint8_t* stack;
    bool started;  // `context` is inside FiberMain
    bool working;  // has a block that it has not finished
    JitblasBlock block;
};

// What a thread needs to run blocks: memory of the cores that it plays, and where to jump when a block fails.
struct Core {
    uint8_t* memory;
    size_t bytes;
    jmp_buf failed;
    Running* running;
    jmp_buf scheduler;
    Fiber* current;
    Fiber fibers[JITBLAS_GROUP_CORES];
    JitblasGroup group;
};

thread_local Core core;
pthread_key_t core_key;

struct Pool {
    pthread_mutex_t mutex;
    pthread_cond_t work;
    pthread_cond_t done;
    Running* first;
    uint32_t wanted;   // threads that may run blocks of one launch, the launching one included
    uint32_t started;  // helper threads alive
    bool closing;
};

Pool pool = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER, nullptr, 1, 0, false};
bool binding_allowed = true;

void RecordFailure(Running* running, int status, const char* message) {
    Lock lock(&pool.mutex);
    if (running->status == kSuccess) {
        running->status = status;
        snprintf(running->message, sizeof(running->message), "%s", message);
    }
}

__attribute__((noreturn)) void Fail(const char* message) {
    RecordFailure(core.running, kExecutionFailed, message);
    longjmp(core.failed, 1);
}

// A register's worth beyond the end, because loads are whole registers.
size_t Padded(size_t bytes) {
    return (bytes + 2 * kRegisterBytes - 1) / kRegisterBytes * kRegisterBytes;
}

bool GrowMemory(size_t bytes) {
    if (core.bytes >= bytes) {
        return true;
    }
    free(core.memory);
    core.memory = nullptr;
    core.bytes = 0;
    pthread_setspecific(core_key, &core);  // FreeCore runs when the thread ends, whoever's thread it is
    void* memory = nullptr;
    if (posix_memalign(&memory, 2 * kRegisterBytes, bytes) != 0) {
        return false;
    }
    core.memory = static_cast<uint8_t*>(memory);
    core.bytes = bytes;
    return true;
}

void FreeCore(void* opaque) {
    Core* ended = static_cast<Core*>(opaque);
    free(ended->memory);
    for (Fiber& fiber : ended->fibers) {
        free(fiber.stack);
    }
}

// ---- Groups: a cube core and its vector cores take turns on one thread ----------------------------------------------
// Each runs until it has to wait for a flag, then the next one runs. Switching is a jump between stacks, no system
// call; where nobody waits there is one switch per core and block.

void LeaveFiber() {
    if (_setjmp(core.current->context) == 0) {
        _longjmp(core.scheduler, 1);
    }
}

void FiberMain() {
    for (;;) {
        const JitblasLaunch& launch = *core.running->launch;
        launch.run(launch.arguments, &core.current->block);
        core.current->working = false;
        ++core.group.changes;
        LeaveFiber();
    }
}

void RunFiber(Fiber* fiber) {
    core.current = fiber;
    if (_setjmp(core.scheduler) != 0) {
        return;
    }
    if (fiber->started) {
        _longjmp(fiber->context, 1);
    }
    fiber->started = true;
    ucontext_t context;
    getcontext(&context);
    context.uc_stack.ss_sp = fiber->stack;
    context.uc_stack.ss_size = kStackBytes;
    context.uc_link = nullptr;
    makecontext(&context, FiberMain, 0);
    setcontext(&context);
}

bool PrepareFibers() {
    for (Fiber& fiber : core.fibers) {
        if (fiber.stack == nullptr) {
            fiber.stack = static_cast<uint8_t*>(malloc(kStackBytes));
            if (fiber.stack == nullptr) {
                return false;
            }
        }
        fiber.started = fiber.started && !fiber.working;  // one that failed in the middle of a block starts over
        fiber.working = true;
    }
    return true;
}

void RunGroup(const JitblasBlock& first) {
    memset(&core.group, 0, sizeof(core.group));
    for (uint32_t i = 0; i < JITBLAS_GROUP_CORES; ++i) {
        JitblasBlock& block = core.fibers[i].block;
        block = first;
        block.core = i;
        block.is_cube = i == 0;
        if (i != 0) {
            block.index = first.index * (JITBLAS_GROUP_CORES - 1) + i - 1;
        }
        if (i == 2) {
            block.ub = first.other_ub;
        }
    }
    bool working = true;
    while (working) {
        const uint32_t changes = core.group.changes;
        working = false;
        for (Fiber& fiber : core.fibers) {
            if (fiber.working) {
                RunFiber(&fiber);
                working = working || fiber.working;
            }
        }
        if (working && core.group.changes == changes) {
            Fail("every core of a group waits for a flag that none of them sets");
        }
    }
}

// Runs a block that nobody has taken; false if there is none. A failed block does not stop the others.
bool RunBlock(Running* running) {
    const JitblasLaunch& launch = *running->launch;
    const uint32_t index = __atomic_fetch_add(&running->next, 1, __ATOMIC_RELAXED);
    if (index >= launch.blocks) {
        return false;
    }
    core.running = running;
    const size_t ub = Padded(launch.ub_bytes);
    const size_t bytes = launch.cores == JITBLAS_VECTOR ? ub : 2 * ub + Padded(launch.cube_bytes);
    if (!GrowMemory(bytes) || (launch.cores == JITBLAS_MIXED && !PrepareFibers())) {
        RecordFailure(running, kAllocFailed, "no memory for a core's buffers");
    } else if (_setjmp(core.failed) == 0) {
        JitblasBlock block;
        memset(&block, 0, sizeof(block));
        block.index = index;
        block.count = launch.blocks;
        block.is_cube = launch.cores == JITBLAS_CUBE;
        block.ub = core.memory;
        block.ub_bytes = launch.ub_bytes;
        block.bind = running->bind;
        if (launch.cores != JITBLAS_VECTOR) {
            block.other_ub = core.memory + ub;
            block.cube = core.memory + 2 * ub;
        }
        block.group = &core.group;
        if (launch.cores == JITBLAS_MIXED) {
            RunGroup(block);
        } else {
            launch.run(launch.arguments, &block);
        }
    }
    return true;
}

void RunBlocks(Running* running) {
    while (RunBlock(running)) {
    }
}

bool HasBlocksLeft(const Running* running) {
    return __atomic_load_n(&running->next, __ATOMIC_RELAXED) < running->launch->blocks;
}

void* HelperMain(void*) {
    pthread_mutex_lock(&pool.mutex);
    while (!pool.closing && pool.started < pool.wanted) {
        Running* running = pool.first;
        while (running != nullptr && !HasBlocksLeft(running)) {
            running = running->following;
        }
        if (running == nullptr) {
            pthread_cond_wait(&pool.work, &pool.mutex);
            continue;
        }
        ++running->helpers;
        pthread_mutex_unlock(&pool.mutex);
        RunBlocks(running);
        pthread_mutex_lock(&pool.mutex);
        --running->helpers;
        pthread_cond_broadcast(&pool.done);
    }
    --pool.started;
    pthread_cond_broadcast(&pool.done);
    pthread_mutex_unlock(&pool.mutex);
    return nullptr;
}

bool StartThread(void* (*main)(void*), void* argument) {
    pthread_t thread;
    if (pthread_create(&thread, nullptr, main, argument) != 0) {
        return false;
    }
    pthread_detach(thread);
    return true;
}

// Runs one launch to its end. Helpers join when what is left after the first block outlasts the waking of them.
void Execute(Running* running) {
    const uint32_t others = running->launch->blocks - 1;
    if (others == 0 || __atomic_load_n(&pool.wanted, __ATOMIC_RELAXED) == 1) {
        RunBlocks(running);
        return;
    }
    const int64_t start = Nanoseconds();
    RunBlock(running);
    if ((Nanoseconds() - start) * others < kWorthWaking) {
        RunBlocks(running);
        return;
    }
    pthread_mutex_lock(&pool.mutex);
    while (!pool.closing && pool.started < others && pool.started + 1 < pool.wanted &&
           StartThread(HelperMain, nullptr)) {
        ++pool.started;
    }
    running->following = pool.first;
    pool.first = running;
    for (uint32_t i = 0; i < others && i < pool.started; ++i) {
        pthread_cond_signal(&pool.work);
    }
    pthread_mutex_unlock(&pool.mutex);

    RunBlocks(running);

    pthread_mutex_lock(&pool.mutex);
    Running** link = &pool.first;
    while (*link != running) {
        link = &(*link)->following;
    }
    *link = running->following;
    while (running->helpers != 0) {
        pthread_cond_wait(&pool.done, &pool.mutex);
    }
    pthread_mutex_unlock(&pool.mutex);
}

// ---- Streams and events -------------------------------------------------------------------------------------------

struct Event {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int64_t time;      // when the last recording was reached
    uint64_t asked;    // recordings made
    uint64_t reached;  // recordings reached
    uint32_t owners;   // the user, and every recording still in a queue
};

enum class Action { kLaunch, kRecord, kCopy, kSet };

struct Command {
    Command* following;
    Action action;
    uint32_t mode;
    JitblasLaunch launch;
    Event* event;
    uint64_t recording;
    void* destination;
    const void* source;
    size_t bytes;
    int byte;
    alignas(16) uint8_t arguments[JITBLAS_MAX_ARGUMENT_BYTES];
};

struct alignas(64) Stream {
    pthread_mutex_t mutex;
    pthread_cond_t changed;  // for those who wait until something is done
    pthread_cond_t work;     // for the worker, which a command that somebody else runs must not wake
    Command* head;
    Command* tail;
    Command* current;  // the queued command that the worker runs
    uint64_t submitted;
    uint64_t completed;
    bool busy;  // somebody runs a command
    bool worker_started;
    bool closing;
    int status;  // first failure since the last synchronisation
    char message[kMessageBytes];
    Stream* previous;
    Stream* following;
};

pthread_mutex_t streams_mutex = PTHREAD_MUTEX_INITIALIZER;
Stream* streams = nullptr;
bool shut_down = false;

void ReleaseEvent(Event* event) {
    pthread_mutex_lock(&event->mutex);
    const bool last = --event->owners == 0;
    pthread_mutex_unlock(&event->mutex);
    if (last) {
        free(event);
    }
}

void ReachRecording(Event* event, uint64_t recording) {
    Lock lock(&event->mutex);
    if (recording <= event->reached) {
        return;  // a later recording, on another stream, was reached before this one
    }
    event->time = Nanoseconds();
    event->reached = recording;
    pthread_cond_broadcast(&event->changed);
}

// Runs a command; a launch's failure goes into `status` and `message`.
void Perform(Command* command, int* status, char* message) {
    *status = kSuccess;
    switch (command->action) {
        case Action::kLaunch: {
            Running running;
            memset(static_cast<void*>(&running), 0, offsetof(Running, message));
            running.launch = &command->launch;
            running.bind =
                __atomic_load_n(&binding_allowed, __ATOMIC_RELAXED) && (command->mode & JITBLAS_LAUNCH_UNBOUND) == 0;
            Execute(&running);
            *status = running.status;
            if (running.status != kSuccess) {
                snprintf(message, kMessageBytes, "kernel %.80s: %.420s", command->launch.kernel, running.message);
            }
            break;
        }
        case Action::kRecord:
            ReachRecording(command->event, command->recording);
            break;
        case Action::kCopy:
            memmove(command->destination, command->source, command->bytes);
            break;
        case Action::kSet:
            memset(command->destination, command->byte, command->bytes);
            break;
    }
}

void Complete(Stream* stream, const Command* command, int status, const char* message) {
    if (command->action == Action::kRecord) {
        ReleaseEvent(command->event);
    }
    stream->busy = false;
    __atomic_store_n(&stream->completed, stream->completed + 1, __ATOMIC_RELAXED);  // read by jitblas_stream_idle
    if (status != kSuccess && stream->status == kSuccess) {
        stream->status = status;
        snprintf(stream->message, sizeof(stream->message), "%s", message);
    }
    pthread_cond_broadcast(&stream->changed);
    if (stream->head != nullptr) {
        pthread_cond_signal(&stream->work);
    }
}

void* WorkerMain(void* argument) {
    Stream* stream = static_cast<Stream*>(argument);
    char message[kMessageBytes];
    pthread_mutex_lock(&stream->mutex);
    for (;;) {
        while ((stream->head == nullptr || stream->busy) && !(stream->closing && stream->head == nullptr)) {
            pthread_cond_wait(&stream->work, &stream->mutex);
        }
        if (stream->head == nullptr) {
            break;
        }
        Command* command = stream->head;
        stream->head = command->following;
        if (stream->head == nullptr) {
            stream->tail = nullptr;
        }
        stream->busy = true;
        stream->current = command;
        pthread_mutex_unlock(&stream->mutex);
        int status;
        Perform(command, &status, message);
        pthread_mutex_lock(&stream->mutex);
        stream->current = nullptr;
        Complete(stream, command, status, message);
        free(command);
    }
    stream->worker_started = false;
    pthread_cond_broadcast(&stream->changed);
    pthread_mutex_unlock(&stream->mutex);
    return nullptr;
}

void AwaitIdle(Stream* stream) {
    while (stream->completed != stream->submitted) {
        pthread_cond_wait(&stream->changed, &stream->mutex);
    }
}

// Runs the command on this thread. The stream is idle and its mutex held; it is held again on return.
int RunHere(Stream* stream, Command* command, bool report) {
    stream->busy = true;
    __atomic_store_n(&stream->submitted, stream->submitted + 1, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&stream->mutex);
    int status;
    char message[kMessageBytes];
    Perform(command, &status, message);
    pthread_mutex_lock(&stream->mutex);
    Complete(stream, command, status, message);
    return report ? status : kSuccess;
}

// Everything before the arguments: a command that is not queued never copies them.
constexpr size_t kCommandHead = offsetof(Command, arguments);

// A command with nothing but its action set. Its arguments stay unset.
void Prepare(Command* command, Action action) {
    memset(static_cast<void*>(command), 0, kCommandHead);
    command->action = action;
}

// Appends a copy of the command, or runs it here: with WAIT in its turn, with SMALL if the stream is idle, and whenever
// there is no thread to hand it to (after shutdown).
int Submit(Stream* stream, Command* command) {
    const bool wait = (command->mode & JITBLAS_LAUNCH_WAIT) != 0;
    pthread_mutex_lock(&stream->mutex);
    if (wait) {
        AwaitIdle(stream);
    }
    const bool idle = stream->completed == stream->submitted;
    if (idle && (wait || (command->mode & JITBLAS_LAUNCH_SMALL) != 0)) {
        const int status = RunHere(stream, command, wait);
        pthread_mutex_unlock(&stream->mutex);
        return status;
    }
    if (!stream->worker_started && !__atomic_load_n(&shut_down, __ATOMIC_RELAXED) && StartThread(WorkerMain, stream)) {
        stream->worker_started = true;
    }
    if (!stream->worker_started) {
        AwaitIdle(stream);
        const int status = RunHere(stream, command, false);
        pthread_mutex_unlock(&stream->mutex);
        return status;
    }
    Command* queued = static_cast<Command*>(malloc(sizeof(Command)));
    if (queued == nullptr) {
        pthread_mutex_unlock(&stream->mutex);
        return kAllocFailed;
    }
    memcpy(static_cast<void*>(queued), command, kCommandHead);
    if (queued->action == Action::kLaunch) {
        memcpy(queued->arguments, command->launch.arguments, command->launch.argument_bytes);
        queued->launch.arguments = queued->arguments;
    }
    queued->following = nullptr;
    (stream->tail == nullptr ? stream->head : stream->tail->following) = queued;
    stream->tail = queued;
    __atomic_store_n(&stream->submitted, stream->submitted + 1, __ATOMIC_RELAXED);
    pthread_cond_signal(&stream->work);
    pthread_mutex_unlock(&stream->mutex);
    return kSuccess;
}

int Launch(uintptr_t stream_and_mode, const JitblasLaunch* launch) {
    Stream* stream = reinterpret_cast<Stream*>(stream_and_mode & ~static_cast<uintptr_t>(JITBLAS_LAUNCH_MODE_MASK));
    if (stream == nullptr || launch->blocks == 0 || launch->blocks > kMaxBlocks ||
        launch->argument_bytes > JITBLAS_MAX_ARGUMENT_BYTES) {
        return kInvalidValue;
    }
    Command command;
    Prepare(&command, Action::kLaunch);
    command.mode = static_cast<uint32_t>(stream_and_mode & JITBLAS_LAUNCH_MODE_MASK);
    command.launch = *launch;
    return Submit(stream, &command);
}

const JitblasRuntime runtime_table = {JITBLAS_ABI_VERSION, Launch, Fail, LeaveFiber};

// ---- Fork ---------------------------------------------------------------------------------------------------------
// A child has one thread. Its streams are idle and empty: what the parent had queued stays the parent's.

void BeforeFork() {
    pthread_mutex_lock(&streams_mutex);
}

void AfterForkInParent() {
    pthread_mutex_unlock(&streams_mutex);
}

// Nobody will reach a recording that was on its way, so it counts as reached: waiting for it must not hang the child.
void AbandonRecording(Command* command) {
    if (command != nullptr && command->action == Action::kRecord) {
        command->event->mutex = PTHREAD_MUTEX_INITIALIZER;
        command->event->changed = PTHREAD_COND_INITIALIZER;
        command->event->reached = command->event->asked;
    }
}

void AfterForkInChild() {
    streams_mutex = PTHREAD_MUTEX_INITIALIZER;
    const uint32_t wanted = pool.wanted;
    pool = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER, nullptr, wanted, 0, false};
    for (Stream* stream = streams; stream != nullptr; stream = stream->following) {
        stream->mutex = PTHREAD_MUTEX_INITIALIZER;
        stream->changed = stream->work = PTHREAD_COND_INITIALIZER;
        AbandonRecording(stream->current);
        for (Command* command = stream->head; command != nullptr; command = command->following) {
            AbandonRecording(command);
        }
        stream->head = stream->tail = stream->current = nullptr;
        stream->completed = stream->submitted;
        stream->busy = stream->worker_started = stream->closing = false;
        stream->status = kSuccess;
    }
}

__attribute__((constructor)) void Initialise() {
    pthread_key_create(&core_key, FreeCore);
    pthread_atfork(BeforeFork, AfterForkInParent, AfterForkInChild);
}

}  // namespace

// ---- What Python calls --------------------------------------------------------------------------------------------

// The key of the artifact this file becomes, compared with the one asked for.
EXPORT const char* jitblas_key() {
    return JITBLAS_KEY;
}

EXPORT const JitblasRuntime* jitblas_runtime_table() {
    return &runtime_table;
}

// Threads that share a launch's blocks, the launching one included.
EXPORT void jitblas_set_threads(uint32_t threads) {
    Lock lock(&pool.mutex);
    __atomic_store_n(&pool.wanted, threads == 0 ? 1 : threads, __ATOMIC_RELAXED);
    pthread_cond_broadcast(&pool.work);
}

// Whether tensors may point at global memory; returns what held before.
EXPORT int jitblas_set_binding(int allowed) {
    return __atomic_exchange_n(&binding_allowed, allowed != 0, __ATOMIC_RELAXED);
}

EXPORT void* jitblas_stream_create() {
    void* memory = nullptr;
    if (posix_memalign(&memory, alignof(Stream), sizeof(Stream)) != 0) {
        return nullptr;
    }
    Stream* stream = static_cast<Stream*>(memory);
    memset(memory, 0, sizeof(Stream));
    pthread_mutex_init(&stream->mutex, nullptr);
    pthread_cond_init(&stream->changed, nullptr);
    pthread_cond_init(&stream->work, nullptr);
    Lock lock(&streams_mutex);
    stream->following = streams;
    if (streams != nullptr) {
        streams->previous = stream;
    }
    streams = stream;
    return stream;
}

// Waits for what is queued, then frees the stream.
EXPORT void jitblas_stream_destroy(void* opaque) {
    Stream* stream = static_cast<Stream*>(opaque);
    pthread_mutex_lock(&streams_mutex);
    (stream->previous == nullptr ? streams : stream->previous->following) = stream->following;
    if (stream->following != nullptr) {
        stream->following->previous = stream->previous;
    }
    pthread_mutex_unlock(&streams_mutex);
    pthread_mutex_lock(&stream->mutex);
    AwaitIdle(stream);
    stream->closing = true;
    pthread_cond_signal(&stream->work);
    while (stream->worker_started) {
        pthread_cond_wait(&stream->changed, &stream->mutex);
    }
    pthread_mutex_unlock(&stream->mutex);
    pthread_mutex_destroy(&stream->mutex);
    pthread_cond_destroy(&stream->changed);
    pthread_cond_destroy(&stream->work);
    free(stream);
}

// Waits for everything submitted so far. Returns the first failure since the last call and its message, then forgets
// both.
EXPORT int jitblas_stream_synchronize(void* opaque, char* message, size_t bytes) {
    Stream* stream = static_cast<Stream*>(opaque);
    Lock lock(&stream->mutex);
    const uint64_t last = stream->submitted;
    while (stream->completed < last) {
        pthread_cond_wait(&stream->changed, &stream->mutex);
    }
    const int status = stream->status;
    if (status != kSuccess) {
        snprintf(message, bytes, "%s", stream->message);
        stream->status = kSuccess;
    }
    return status;
}

// Commands submitted and commands completed so far.
EXPORT void jitblas_stream_position(void* opaque, uint64_t* position) {
    Stream* stream = static_cast<Stream*>(opaque);
    Lock lock(&stream->mutex);
    position[0] = stream->submitted;
    position[1] = stream->completed;
}

// Whether a WAIT launch would run at once. An answer that is out of date costs time, nothing else.
EXPORT int jitblas_stream_idle(void* stream_and_mode) {
    const uintptr_t address = reinterpret_cast<uintptr_t>(stream_and_mode) & ~uintptr_t{JITBLAS_LAUNCH_MODE_MASK};
    const Stream* stream = reinterpret_cast<const Stream*>(address);
    return __atomic_load_n(&stream->completed, __ATOMIC_RELAXED) ==
           __atomic_load_n(&stream->submitted, __ATOMIC_RELAXED);
}

EXPORT int jitblas_copy_async(void* stream, void* destination, const void* source, size_t bytes) {
    Command command;
    Prepare(&command, Action::kCopy);
    command.destination = destination;
    command.source = source;
    command.bytes = bytes;
    return Submit(static_cast<Stream*>(stream), &command);
}

EXPORT int jitblas_set_async(void* stream, void* destination, int byte, size_t bytes) {
    Command command;
    Prepare(&command, Action::kSet);
    command.destination = destination;
    command.byte = byte;
    command.bytes = bytes;
    return Submit(static_cast<Stream*>(stream), &command);
}

EXPORT void* jitblas_event_create() {
    Event* event = static_cast<Event*>(calloc(1, sizeof(Event)));
    if (event != nullptr) {
        pthread_mutex_init(&event->mutex, nullptr);
        pthread_cond_init(&event->changed, nullptr);
        event->owners = 1;
    }
    return event;
}

EXPORT void jitblas_event_destroy(void* event) {
    ReleaseEvent(static_cast<Event*>(event));
}

EXPORT int jitblas_event_record(void* opaque, void* stream) {
    Event* event = static_cast<Event*>(opaque);
    Command command;
    Prepare(&command, Action::kRecord);
    command.mode = JITBLAS_LAUNCH_SMALL;
    command.event = event;
    pthread_mutex_lock(&event->mutex);
    ++event->owners;
    command.recording = ++event->asked;
    pthread_mutex_unlock(&event->mutex);
    const int status = Submit(static_cast<Stream*>(stream), &command);
    if (status != kSuccess) {  // nobody will reach it
        ReachRecording(event, command.recording);
        ReleaseEvent(event);
    }
    return status;
}

// 1 once the last recording is reached (or none was ever made).
EXPORT int jitblas_event_query(void* opaque) {
    Event* event = static_cast<Event*>(opaque);
    Lock lock(&event->mutex);
    return event->reached == event->asked;
}

EXPORT void jitblas_event_synchronize(void* opaque) {
    Event* event = static_cast<Event*>(opaque);
    Lock lock(&event->mutex);
    while (event->reached != event->asked) {
        pthread_cond_wait(&event->changed, &event->mutex);
    }
}

// Nanoseconds on the monotonic clock at which the last recording was reached, -1 before.
EXPORT int64_t jitblas_event_time(void* opaque) {
    Event* event = static_cast<Event*>(opaque);
    Lock lock(&event->mutex);
    return event->reached == 0 || event->reached != event->asked ? -1 : event->time;
}

EXPORT void* jitblas_allocate(size_t bytes) {
    void* memory = nullptr;
    const size_t rounded = (bytes + 511) / 512 * 512;
    return posix_memalign(&memory, 512, rounded == 0 ? 512 : rounded) == 0 ? memory : nullptr;
}

EXPORT void jitblas_release(void* memory) {
    free(memory);
}

// Before the process exits: waits for every stream and ends all threads. Launches made later run on their caller.
EXPORT void jitblas_shutdown() {
    pthread_mutex_lock(&streams_mutex);
    __atomic_store_n(&shut_down, true, __ATOMIC_RELAXED);
    for (Stream* stream = streams; stream != nullptr; stream = stream->following) {
        Lock lock(&stream->mutex);
        AwaitIdle(stream);
        stream->closing = true;
        pthread_cond_signal(&stream->work);
        while (stream->worker_started) {
            pthread_cond_wait(&stream->changed, &stream->mutex);
        }
    }
    pthread_mutex_unlock(&streams_mutex);
    Lock lock(&pool.mutex);
    pool.closing = true;
    pool.wanted = 1;
    pthread_cond_broadcast(&pool.work);
    while (pool.started != 0) {
        pthread_cond_wait(&pool.done, &pool.mutex);
    }
}
