// The agreement between kernels compiled for the host and the host runtime library: plain C structures, because the two
// are compiled apart and meet in one process.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define JITBLAS_ABI_VERSION 1

// A stream argument is the runtime's stream pointer with these bits added (streams are aligned to 64 bytes).
enum JitblasLaunchMode : uintptr_t {
    JITBLAS_LAUNCH_QUEUED = 0,   // append to the stream, return at once
    JITBLAS_LAUNCH_WAIT = 1,     // run in stream order and return when done, on the calling thread if it can
    JITBLAS_LAUNCH_SMALL = 2,    // queued, but run at once on the calling thread when the stream is idle
    JITBLAS_LAUNCH_UNBOUND = 4,  // tensors of this launch never point at global memory (operands overlap)
    JITBLAS_LAUNCH_MODE_MASK = 7,
};

// One block of a running launch: what the chip keeps in special registers.
struct JitblasBlock {
    uint32_t index;
    uint32_t count;
    uint8_t* ub;        // this core's unified buffer, aligned to 256 bytes
    uint32_t ub_bytes;  // what the launch asked for
    uint32_t bind;      // tensors may point at global memory
};

typedef void (*JitblasThunk)(const void* arguments, const JitblasBlock* block);

struct JitblasLaunch {
    JitblasThunk run;
    const void* arguments;  // copied before the call returns
    uint32_t argument_bytes;
    uint32_t blocks;
    uint32_t ub_bytes;
    const char* kernel;  // name for messages, lives as long as the kernel's library
};

struct JitblasRuntime {
    uint32_t abi_version;
    // Zero, or the status of a launch that was refused or (mode WAIT) failed.
    int (*launch)(uintptr_t stream_and_mode, const JitblasLaunch* launch);
    // Ends the calling block with a message; the launch fails, the process goes on.
    void (*fail)(const char* message) __attribute__((noreturn));
};

#define JITBLAS_MAX_ARGUMENT_BYTES 512
