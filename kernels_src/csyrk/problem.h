// What all kernels of Csyrk share: scalars, and regions of C.
//
// C is row-major here and symmetric, so a column-major one is the same with the triangles exchanged.
#pragma once

#include "common/matrices.h"

struct Scalars {
    float alpha_re;
    float alpha_im;
    float beta_re;
    float beta_im;

    __aicore__ inline bool AlphaIsOne() const { return alpha_re == 1.0f && alpha_im == 0.0f; }
    __aicore__ inline bool BetaIsOne() const { return beta_re == 1.0f && beta_im == 0.0f; }
    __aicore__ inline bool ReadsC() const { return beta_re != 0.0f || beta_im != 0.0f; }
};

// Scalars in device memory are known to the kernels only, and all cores of all launches decide alike.
__aicore__ inline Scalars ReadScalars(GM_ADDR alpha, GM_ADDR beta, const Tiling& tiling) {
    Scalars scalars{tiling.alpha_re, tiling.alpha_im, tiling.beta_re, tiling.beta_im};
    if constexpr (spec::kScalarsOnDevice) {
        if (alpha != nullptr) {
            scalars.alpha_re = reinterpret_cast<__gm__ float*>(alpha)[0];
            scalars.alpha_im = reinterpret_cast<__gm__ float*>(alpha)[1];
        }
        if (beta != nullptr) {
            scalars.beta_re = reinterpret_cast<__gm__ float*>(beta)[0];
            scalars.beta_im = reinterpret_cast<__gm__ float*>(beta)[1];
        }
    }
    return scalars;
}

// Whether op(A) counts; where it does not, it is not read.
__aicore__ inline bool Multiplies(const Scalars& scalars, const Tiling& tiling) {
    return tiling.k != 0 && (scalars.alpha_re != 0.0f || scalars.alpha_im != 0.0f);
}

// Rows and columns of C.
struct Region {
    uint64_t row = 0;
    uint64_t column = 0;
    uint32_t rows = 0;
    uint32_t columns = 0;
};

// Whether a region has elements of the triangle, and whether it lies in it entirely.
__aicore__ inline bool Meets(const Region& region, bool upper) {
    return upper ? region.row < region.column + region.columns : region.column < region.row + region.rows;
}

__aicore__ inline bool IsWhole(const Region& region, bool upper) {
    return upper ? region.row + region.rows <= region.column + 1 : region.column + region.columns <= region.row + 1;
}
