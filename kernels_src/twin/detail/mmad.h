// The cube's way from L1 into L0A and L0B and its multiply-add. The micro-kernels are a library of their own (cube/),
// an artifact like the runtime: one for all kernels, which need not compile them.
#pragma once

#include "cube_abi.h"
#include "reg.h"

namespace twin {

static const JitblasCube* cube = nullptr;

// What JITBLAS_STREAMING_CUBE declares, where the launch allows it: L1 mirrors global memory, and results leave L0C
// once.
static thread_local bool cube_streams = false;

// The last multiply-add of a kernel that streams, still to be done: the fix-pipe, when it comes next, gets the result
// where it wants it, and L0C is neither written nor read. Whatever else could tell the difference has it done first.
static thread_local JitblasProduct pending;
static thread_local uint64_t pending_rows;  // that have not left yet

// What the last copies into L1 mirrored: the next multiply-add prefetches it, for the one after.
struct Range {
    const void* start;
    uint64_t bytes;
};
static thread_local Range ahead_left;
static thread_local Range ahead_right;

JITBLAS_INLINE void StreamCube() {
    ahead_left = ahead_right = {nullptr, 0};
    cube_streams = block->bind != 0;
    pending.result = nullptr;
}

JITBLAS_INLINE void FinishPending() {
    if (pending.result != nullptr) {
        cube->multiply_add(&pending);
        pending.result = nullptr;
    }
}

// Before an operand is replaced.
JITBLAS_INLINE void Release(const float* l0) {
    if (pending.left == l0 || pending.right == l0) {
        FinishPending();
    }
}

// Distance between rows of L0C: whole fractals.
JITBLAS_INLINE uint64_t ResultPitch(uint64_t columns) {
    return (columns + 15) / 16 * 16;
}

// An operand that is copied as it is, element by element: what L1 holds when it does not mirror global memory.
template <typename At>
JITBLAS_INLINE float* CopyOperand(float* l0, uint64_t rows, uint64_t columns, At at) {
    float* data = l0 + JITBLAS_OPERAND_BYTES / sizeof(float);
    for (uint64_t r = 0; r < rows; ++r) {
        for (uint64_t c = 0; c < columns; ++c) {
            data[r * columns + c] = at(r, c);
        }
    }
    return data;
}

template <typename At>
JITBLAS_INLINE void PackLeft(float* l0a, uint64_t rows, uint64_t depth, At at) {
    const float* data = CopyOperand(l0a, rows, depth, at);
    cube->load_left(l0a, data, static_cast<int64_t>(depth), 1, rows, depth, 0);
}

template <typename At>
JITBLAS_INLINE void PackRight(float* l0b, uint64_t depth, uint64_t columns, At at) {
    const float* data = CopyOperand(l0b, depth, columns, at);
    cube->load_right(l0b, data, static_cast<int64_t>(columns), 1, depth, columns, 0);
}

JITBLAS_INLINE void LoadLeft(float* l0a, const float* data, int64_t row_step, int64_t column_step, uint64_t rows,
                             uint64_t depth) {
    cube->load_left(l0a, data, row_step, column_step, rows, depth, 1);
}

JITBLAS_INLINE void LoadRight(float* l0b, const float* data, int64_t row_step, int64_t column_step, uint64_t depth,
                              uint64_t columns) {
    cube->load_right(l0b, data, row_step, column_step, depth, columns, 1);
}

JITBLAS_INLINE void MultiplyAdd(float* result, uint64_t pitch, const float* l0a, const float* l0b, uint64_t m,
                                uint64_t n, uint64_t k, bool initial) {
    FinishPending();
    pending = {l0a,
               l0b,
               m,
               n,
               k,
               0,
               initial ? nullptr : result,
               pitch,
               result,
               pitch,
               ahead_left.start,
               ahead_left.bytes,
               ahead_right.start,
               ahead_right.bytes};
    ahead_left.bytes = ahead_right.bytes = 0;
    pending_rows = m;
    if (!cube_streams) {
        FinishPending();
    }
}

// Rows of floats from one place to another.
JITBLAS_INLINE void CopyRows(float* to, uint64_t to_pitch, const float* from, uint64_t from_pitch, uint64_t rows,
                             uint64_t columns) {
    for (uint64_t r = 0; r < rows; ++r) {
        float* row = to + r * to_pitch;
        const float* source = from + r * from_pitch;
        uint64_t c = 0;
        for (; c + kWords <= columns; c += kWords) {
            StoreUnaligned(row + c, LoadUnaligned(Floats{}, source + c));
        }
        for (; c < columns; ++c) {
            row[c] = source[c];
        }
    }
}

// Rows `first` to `first + rows` of a result in L0C to where the fix-pipe puts them.
JITBLAS_INLINE void CopyResult(const float* result, uint64_t pitch, uint64_t first, uint64_t rows, uint64_t columns,
                               float* to, uint64_t to_pitch) {
    const bool whole = first == 0 && rows == pending.m;
    if (pending.result == result && columns % 16 == 0 && columns == pending.n && first + rows <= pending.m &&
        (whole || static_cast<const JitblasOperand*>(pending.left)->packed == 0)) {
        JitblasProduct part = pending;
        part.m = rows;
        part.first_row = first;
        part.addend = pending.addend != nullptr ? pending.addend + first * pitch : nullptr;
        part.result = to;
        part.result_pitch = to_pitch;
        cube->multiply_add(&part);
        pending_rows -= rows;
        if (pending_rows == 0) {
            pending.result = nullptr;
        }
        return;
    }
    FinishPending();
    CopyRows(to, to_pitch, result + first * pitch, pitch, rows, columns);
}

}  // namespace twin

extern "C" __attribute__((visibility("default"))) inline __attribute__((used)) void jitblas_bind_cube(
    const JitblasCube* cube) {
    ::twin::cube = cube;
}
