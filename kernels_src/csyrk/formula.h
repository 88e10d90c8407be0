// The complex formula, element by element on SIMT threads: what small problems are computed with, and elements of rows
// whose numbers are not finite or huge.
#pragma once

#include "csyrk/problem.h"
#include "simt_api/asc_simt.h"

// Terms that are summed plainly, before their sum is added to the others.
constexpr int64_t kTerms = 32;
// Elements of a row that a thread computes together: they share what is read of op(A)'s row.
constexpr uint32_t kTogether = 4;

// sum x_p y_p for k complex numbers, `step` elements apart, of one x and several y, `apart` elements from each other;
// beyond number `last` they are the same. The parts of every term are whole before they are added, so that a term which
// is finite stays so.
__simt_callee__ inline void SumsOfProducts(float* re, float* im, const __gm__ float* x, const __gm__ float* y,
                                           int64_t step, int64_t apart, uint32_t last, int64_t k) {
    JITBLAS_UNROLL
    for (uint32_t q = 0; q < kTogether; ++q) {
        re[q] = 0.0f;
        im[q] = 0.0f;
    }
    for (int64_t first = 0; first < k; first += kTerms) {
        const int64_t end = first + kTerms < k ? first + kTerms : k;
        float some_re[kTogether] = {};
        float some_im[kTogether] = {};
        for (int64_t p = first; p < end; ++p) {
            const float x_re = x[2 * p * step];
            const float x_im = x[2 * p * step + 1];
            JITBLAS_UNROLL
            for (uint32_t q = 0; q < kTogether; ++q) {
                const int64_t at = 2 * (p * step + (q < last ? q : last) * apart);
                some_re[q] += fmaf(-x_im, y[at + 1], x_re * y[at]);
                some_im[q] += fmaf(x_im, y[at], x_re * y[at + 1]);
            }
        }
        JITBLAS_UNROLL
        for (uint32_t q = 0; q < kTogether; ++q) {
            re[q] += some_re[q];
            im[q] += some_im[q];
        }
    }
}

// c := alpha * (re, im) + beta * c; alpha of one multiplies nothing, beta of zero reads nothing.
__simt_callee__ inline void Update(__gm__ float* c, float re, float im, float alpha_re, float alpha_im, float beta_re,
                                   float beta_im) {
    if (alpha_re != 1.0f || alpha_im != 0.0f) {
        const float product = fmaf(-im, alpha_im, re * alpha_re);
        im = fmaf(re, alpha_im, im * alpha_re);
        re = product;
    }
    if (beta_re == 1.0f && beta_im == 0.0f) {
        re += c[0];
        im += c[1];
    } else if (beta_re != 0.0f || beta_im != 0.0f) {
        const float c_re = c[0];
        const float c_im = c[1];
        re = fmaf(-c_im, beta_im, fmaf(c_re, beta_re, re));
        im = fmaf(c_re, beta_im, fmaf(c_im, beta_re, im));
    }
    c[0] = re;
    c[1] = im;
}

// The triangle's elements in rows and columns of C from (row, column) on.
__simt_vf__ __aicore__ LAUNCH_BOUND(spec::kMaxThreads) inline void UpdateRegion(
    __gm__ float* a, __gm__ float* c, int64_t row, int64_t column, uint32_t rows, uint32_t columns, uint32_t upper,
    int64_t k, int64_t lda, int64_t ldc, float alpha_re, float alpha_im, float beta_re, float beta_im) {
    const int64_t step = spec::kAlongColumns ? lda : 1;
    const int64_t from_row_to_row = spec::kAlongColumns ? 1 : lda;
    const uint32_t threads = spec::kMaxThreads == 1 ? 1 : blockDim.x;
    const uint32_t groups = (columns + kTogether - 1) / kTogether;
    for (uint32_t item = threadIdx.x; item < rows * groups; item += threads) {
        const int64_t i = row + item / groups;
        const uint32_t s = item % groups * kTogether;
        const int64_t j = column + s;
        const uint32_t last = columns - 1 - s;
        if (upper != 0 ? i > j + last : j > i) {
            continue;
        }
        float re[kTogether];
        float im[kTogether];
        SumsOfProducts(re, im, a + 2 * i * from_row_to_row, a + 2 * j * from_row_to_row, step, from_row_to_row, last,
                       k);
        JITBLAS_UNROLL
        for (uint32_t q = 0; q < kTogether; ++q) {
            if (q <= last && (upper != 0 ? i <= j + q : j + q <= i)) {
                Update(c + 2 * (i * ldc + j + q), re[q], im[q], alpha_re, alpha_im, beta_re, beta_im);
            }
        }
    }
}

__aicore__ inline void UpdateExactly(GM_ADDR a, GM_ADDR c, const Region& region, const Scalars& scalars, uint64_t k,
                                     const Tiling& tiling) {
    asc_vf_call<UpdateRegion>(
        dim3{spec::kMaxThreads, 1, 1}, reinterpret_cast<__gm__ float*>(a), reinterpret_cast<__gm__ float*>(c),
        static_cast<int64_t>(region.row), static_cast<int64_t>(region.column), region.rows, region.columns,
        tiling.upper, static_cast<int64_t>(k), static_cast<int64_t>(tiling.lda), static_cast<int64_t>(tiling.ldc),
        scalars.alpha_re, scalars.alpha_im, scalars.beta_re, scalars.beta_im);
}
