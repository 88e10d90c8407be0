// Parts of row-major matrices as the cube and the vector cores see them: in global memory, and in UB.
#pragma once

#include "kernel_operator.h"
#include "tensor_api/tensor.h"

#include "common/kernel_common.h"

using namespace AscendC;
namespace te = AscendC::Te;

constexpr uint32_t kLanes = VECTOR_REG_WIDTH / sizeof(float);
constexpr uint32_t kFractalRows = 16;
constexpr uint32_t kFractalColumns = 8;  // 32 bytes of FP32
// A product of fewer whole fractals than this is done before the next one adds to it only if it is waited for.
constexpr uint32_t kUnhiddenFractals = 10;
constexpr uint32_t kVectorCores = 2;  // of a group, with its cube core

__aicore__ inline constexpr uint64_t RoundedUp(uint64_t number, uint64_t unit) {
    return (number + unit - 1) / unit * unit;
}

__aicore__ inline uint64_t Smaller(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

// Part of an operand in global memory: `rows` x `columns` from element (row, column) on. Coordinates of tensors are as
// wide as their arguments, so what may pass 2^31 goes into the pointer.
template <bool along_columns>
__aicore__ inline auto Part(__gm__ float* matrix, uint64_t ld, uint64_t row, uint64_t column, uint64_t rows,
                            uint64_t columns) {
    if constexpr (along_columns) {
        auto pointer = te::MakeMemPtr<te::Location::GM>(matrix + (column * ld + row));
        return te::MakeTensor(pointer, te::MakeFrameLayout<te::DNExtLayoutPtn>(ld, columns))
            .Slice(te::MakeCoord(0, 0), te::MakeShape(rows, columns));
    } else {
        auto pointer = te::MakeMemPtr<te::Location::GM>(matrix + (row * ld + column));
        return te::MakeTensor(pointer, te::MakeFrameLayout<te::NDExtLayoutPtn>(rows, ld))
            .Slice(te::MakeCoord(0, 0), te::MakeShape(rows, columns));
    }
}

// Rows of a product that the first vector core of a group has; the fix-pipe divides between fractals.
__aicore__ inline uint32_t UpperRows(uint32_t rows) {
    return static_cast<uint32_t>(Smaller(rows, RoundedUp((rows + 1) / 2, kFractalRows)));
}

// `rows` x `columns` floats in UB, `pitch` from a row to the next.
__aicore__ inline auto InUnifiedBuffer(uint32_t offset, uint32_t rows, uint32_t columns, uint32_t pitch) {
    return te::MakeTensor(te::MakeMemPtr<te::Location::UB, float>(offset),
                          te::MakeFrameLayout<te::NDExtLayoutPtn>(rows, pitch))
        .Slice(te::MakeCoord(0, 0), te::MakeShape(rows, columns));
}

// Rows that the fix-pipe writes into UB are 32-byte aligned.
__aicore__ inline uint32_t ProductPitch(uint32_t columns) {
    return static_cast<uint32_t>(RoundedUp(columns, kFractalColumns));
}
