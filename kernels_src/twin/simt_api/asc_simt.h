// SIMT: a thread is an iteration of a loop around the inlined function, so its index stays in a register.
#pragma once

#include "../detail/core.h"

struct dim3 {
    uint32_t x = 1;
    uint32_t y = 1;
    uint32_t z = 1;
};

namespace twin {
static thread_local dim3 thread_index;
static thread_local dim3 thread_count;
static thread_local dim3 block_index;
static thread_local dim3 block_count;
}  // namespace twin

#define threadIdx (::twin::thread_index)
#define blockDim (::twin::thread_count)
#define blockIdx (::twin::block_index)
#define gridDim (::twin::block_count)

JITBLAS_INLINE float fmaf(float a, float b, float c) {
    return __builtin_fmaf(a, b, c);
}

template <auto function, typename... Arguments>
JITBLAS_INLINE void asc_vf_call(dim3 threads, Arguments... arguments) {
    ::twin::block_index = dim3{::twin::block->index, 1, 1};
    ::twin::block_count = dim3{::twin::block->count, 1, 1};
    ::twin::thread_count = threads;
    for (uint32_t z = 0; z < threads.z; ++z) {
        for (uint32_t y = 0; y < threads.y; ++y) {
            for (uint32_t x = 0; x < threads.x; ++x) {
                ::twin::thread_index = dim3{x, y, z};
                function(arguments...);
            }
        }
    }
}
