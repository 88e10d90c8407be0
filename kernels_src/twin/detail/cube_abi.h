// The agreement between kernels compiled for the host and the library of the cube's micro-kernels.
#pragma once

#include <stdint.h>

#define JITBLAS_OPERAND_BYTES 64

// What begins an operand in L0A or L0B: where it is and how it lies. The loads choose, the multiply-add follows.
struct JitblasOperand {
    const float* data;
    int64_t row_step;  // elements
    int64_t column_step;
    uint32_t packed;  // panels, in the order that the multiply-add reads them
};

// result := left right, plus `addend` (m x n, like the result) if there is one. Whole vectors are written: n is rounded
// up to 16 elements.
struct JitblasProduct {
    const void* left;  // in L0A
    const void* right;
    uint64_t m;
    uint64_t n;
    uint64_t k;
    uint64_t first_row;  // of the left operand
    const float* addend;
    uint64_t addend_pitch;
    float* result;
    uint64_t result_pitch;
    const void* ahead_left;  // what later products will read, prefetched meanwhile
    uint64_t ahead_left_bytes;
    const void* ahead_right;
    uint64_t ahead_right_bytes;
};

struct JitblasCube {
    // Elements (r, c) are at data + r * row_step + c * column_step. `pack` allows panels behind the description;
    // without it data lies there already, row after row.
    void (*load_left)(void* l0a, const float* data, int64_t row_step, int64_t column_step, uint64_t rows,
                      uint64_t depth, uint32_t pack);
    void (*load_right)(void* l0b, const float* data, int64_t row_step, int64_t column_step, uint64_t depth,
                       uint64_t columns, uint32_t pack);
    void (*multiply_add)(const JitblasProduct* product);
};
