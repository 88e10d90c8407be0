// The agreement between kernels compiled for the host and the host runtime library: plain C structures, because the two
// are compiled apart and meet in one process.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define JITBLAS_ABI_VERSION 2

// A stream argument is the runtime's stream pointer with these bits added (streams are aligned to 64 bytes).
enum JitblasLaunchMode : uintptr_t {
    JITBLAS_LAUNCH_QUEUED = 0,   // append to the stream, return at once
    JITBLAS_LAUNCH_WAIT = 1,     // run in stream order and return when done, on the calling thread if it can
    JITBLAS_LAUNCH_SMALL = 2,    // queued, but run at once on the calling thread when the stream is idle
    JITBLAS_LAUNCH_UNBOUND = 4,  // tensors of this launch never point at global memory (operands overlap)
    JITBLAS_LAUNCH_MODE_MASK = 7,
};

// Which cores run a launch: vector cores, cube cores, or groups of one cube core and its two vector cores. A block is
// one core's share, of a mixed launch one group's.
enum JitblasCores : uint32_t { JITBLAS_VECTOR, JITBLAS_CUBE, JITBLAS_MIXED };

#define JITBLAS_GROUP_CORES 3  // core 0 of a group is its cube core
#define JITBLAS_FLAGS 32

// Flags between the cores of one group: how often each was set and not yet waited for, by the core that waits.
struct JitblasGroup {
    uint8_t flags[JITBLAS_GROUP_CORES][JITBLAS_FLAGS];
    uint32_t changes;  // counts everything that may end a wait
};

// One core's share of a running launch: what the chip keeps in special registers.
struct JitblasBlock {
    uint32_t index;
    uint32_t count;
    uint32_t core;      // of the group; 0 in launches that are not mixed
    uint32_t is_cube;   // runs the cube's program
    uint8_t* ub;        // this core's unified buffer, aligned to 256 bytes; of a cube core's group: the first one's
    uint32_t ub_bytes;  // what the launch asked for
    uint32_t bind;      // tensors may point at global memory
    uint8_t* cube;      // L1, L0A, L0B and L0C, one after the other
    uint8_t* other_ub;  // of a cube core's group: the second vector core's
    JitblasGroup* group;
};

typedef void (*JitblasThunk)(const void* arguments, const JitblasBlock* block);

struct JitblasLaunch {
    JitblasThunk run;
    const void* arguments;  // copied before the call returns
    uint32_t argument_bytes;
    uint32_t blocks;
    uint32_t ub_bytes;
    uint32_t cube_bytes;  // L1 and the L0 buffers together; 0 for vector cores
    JitblasCores cores;
    const char* kernel;  // name for messages, lives as long as the kernel's library
};

struct JitblasRuntime {
    uint32_t abi_version;
    // Zero, or the status of a launch that was refused or (mode WAIT) failed.
    int (*launch)(uintptr_t stream_and_mode, const JitblasLaunch* launch);
    // Ends the calling block with a message; the launch fails, the process goes on.
    void (*fail)(const char* message) __attribute__((noreturn));
    // Lets the other cores of the calling core's group run; fails the launch if none of them can go on either.
    void (*yield)();
};

#define JITBLAS_MAX_ARGUMENT_BYTES 512
