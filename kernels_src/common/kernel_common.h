// What every kernel of this project includes after the vendor's headers: the few declarations that the twin needs and
// the chip does not. On the chip each of them is empty.
#pragma once

#ifndef JITBLAS_TWIN

// Declares that what a queue's tensors receive from global memory is only read (STREAMING_INPUT), or is changed in
// place and copied back to the very range it came from (IN_PLACE). The twin then lets the tensor point at global memory
// instead of copying it; docs/twin.md has the rules, a check build is to enforce them.
#define JITBLAS_STREAMING_INPUT(queue) static_cast<void>(queue)
#define JITBLAS_IN_PLACE(queue) static_cast<void>(queue)

// Declares, once per block, that matrices in L1 are only copied there from global memory, which does not change
// meanwhile, and loaded from there into L0A and L0B, and that every row of a result leaves L0C once. The twin then
// loads from global memory, and multiplies to where the fix-pipe copies.
#define JITBLAS_STREAMING_CUBE()

// Whether a vector function may read and write global memory as if it were UB. Only the twin's may.
#define JITBLAS_DIRECT() false

// Whether what a block writes to an address, of so many bytes in all, had better go past caches; and the end of that.
#define JITBLAS_PAST_CACHES(address, bytes) false
#define JITBLAS_PAST_CACHES_END()

// Before a loop of a few steps whose number is known: no loop, so that what it indexes stays in registers.
#define JITBLAS_UNROLL _Pragma("unroll")

// Asks for data that will be read soon, `offset` elements from an address; beyond the array's end it asks for nothing.
// The chip's threads hide each other's latency; a CPU thread has only itself.
#define JITBLAS_PREFETCH(address, offset)

// The same for data that is read later: it is not to displace what the first-level cache holds.
#define JITBLAS_PREFETCH_FAR(address, offset)

// What a launch function returns: zero, or the twin's status of the launch just made. On the chip launch errors surface
// at the stream's next synchronisation.
#define JITBLAS_LAUNCH_STATUS() 0

#endif

// Functions that the launcher finds by name.
#define JITBLAS_EXPORT extern "C" __attribute__((visibility("default")))

// The key of the artifact this file becomes. The launcher compares it with the key it asked for, the last of its checks
// that a file holds what its path says.
JITBLAS_EXPORT const char* jitblas_key() {
    return JITBLAS_KEY;
}
