// The workspace of the large path: three real planes of op(A), stored along rows or columns as A is, then a flag for
// each core that made them and a flag for each row of op(A).
#pragma once

#include "csyrk/problem.h"

constexpr uint32_t kPlanes = 3;
constexpr uint32_t kFlagFloats = 8;  // from a core's flag to the next: cores write 32 bytes that are theirs alone

__aicore__ inline __gm__ float* Plane(GM_ADDR workspace, const Tiling& tiling, uint32_t number) {
    return reinterpret_cast<__gm__ float*>(workspace) +
           number * RoundedUp((spec::kAlongColumns ? tiling.k : tiling.n) * tiling.plane_ld, kFlagFloats);
}

__aicore__ inline __gm__ float* CoreFlags(GM_ADDR workspace, const Tiling& tiling) {
    return Plane(workspace, tiling, kPlanes);
}

__aicore__ inline __gm__ float* RowFlags(GM_ADDR workspace, const Tiling& tiling) {
    return CoreFlags(workspace, tiling) + tiling.split_blocks * kFlagFloats;
}

// Whether A has numbers that sums of real products cannot be made of: not finite, or so large that these overflow where
// complex ones may not.
__aicore__ inline bool AnyFlag(GM_ADDR workspace, const Tiling& tiling) {
    __gm__ float* flags = CoreFlags(workspace, tiling);
    float any = 0.0f;
    for (uint32_t i = 0; i < tiling.split_blocks; ++i) {
        any += flags[i * kFlagFloats];
    }
    return any != 0.0f;
}

// Whether a region of C has a row or a column of such numbers: it is then left to the exact kernel.
__aicore__ inline bool IsExact(const Region& region, __gm__ float* row_flags) {
    float any = 0.0f;
    for (uint32_t i = 0; i < region.rows; ++i) {
        any += row_flags[region.row + i];
    }
    for (uint32_t i = 0; i < region.columns; ++i) {
        any += row_flags[region.column + i];
    }
    return any != 0.0f;
}
