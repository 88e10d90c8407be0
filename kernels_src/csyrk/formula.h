// The complex formula, element by element on SIMT threads: what small problems are computed with, and elements of rows
// whose numbers are not finite or huge.
#pragma once

#include "csyrk/problem.h"
#include "simt_api/asc_simt.h"

// Terms that are summed plainly, before their sum is added to the others.
constexpr int64_t kTerms = 64;

// sum x_p y_p for k complex numbers, `step` elements apart. The parts of every term are whole before they are added, so
// that a term which is finite stays so.
__simt_callee__ inline void SumOfProducts(float& re, float& im, const __gm__ float* x, const __gm__ float* y,
                                          int64_t step, int64_t k) {
    re = 0.0f;
    im = 0.0f;
    for (int64_t first = 0; first < k; first += kTerms) {
        const int64_t end = first + kTerms < k ? first + kTerms : k;
        float some_re = 0.0f;
        float some_im = 0.0f;
        for (int64_t p = first; p < end; ++p) {
            const float x_re = x[2 * p * step];
            const float x_im = x[2 * p * step + 1];
            const float y_re = y[2 * p * step];
            const float y_im = y[2 * p * step + 1];
            some_re += fmaf(-x_im, y_im, x_re * y_re);
            some_im += fmaf(x_im, y_re, x_re * y_im);
        }
        re += some_re;
        im += some_im;
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
    uint32_t r = threadIdx.x / columns;
    uint32_t s = threadIdx.x % columns;
    while (r < rows) {
        const int64_t i = row + r;
        const int64_t j = column + s;
        if (upper != 0 ? i <= j : j <= i) {
            float re;
            float im;
            SumOfProducts(re, im, a + 2 * i * from_row_to_row, a + 2 * j * from_row_to_row, step, k);
            Update(c + 2 * (i * ldc + j), re, im, alpha_re, alpha_im, beta_re, beta_im);
        }
        s += threads;
        while (s >= columns) {
            s -= columns;
            ++r;
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
