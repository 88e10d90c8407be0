// Stages: a vector function each, a codelet in its loop, and what codelets load from and store to.
#pragma once

#include "fft/shape.h"

// ---- Where codelets load from -------------------------------------------------------------------------------------

// Planes in UB, `step` reals from one input to the next.
template <uint32_t plane, uint32_t step>
struct FromPlanes {
    __ubuf__ Real* from;

    template <uint32_t k>
    __simd_callee__ inline void Load(Register& re, Register& im, AllLanes&) const {
        Reg::LoadAlign(re, from + k * step);
        Reg::LoadAlign(im, from + k * step + plane);
    }
};

// Complex numbers as they were in global memory. `asks`: for the next butterfly's, `ahead` reals on; contiguous ones
// come unasked.
template <bool asks>
struct FromNumbers {
    __ubuf__ Real* from;
    int64_t step;
    int64_t ahead;

    template <uint32_t k>
    __simd_callee__ inline void Load(Register& re, Register& im, AllLanes&) const {
        if constexpr (asks) {
            PrefetchNumbers(from + k * step, ahead);
        }
        LoadNumbers(re, im, from + k * step);
    }
};

// The same, each input times a number of its own.
struct FromTurnedNumbers {
    __ubuf__ Real* from;
    int64_t step;
    int64_t ahead;
    __ubuf__ Real* twiddles;
    uint32_t twiddle_step;

    template <uint32_t k>
    __simd_callee__ inline void Load(Register& re, Register& im, AllLanes& all) const {
        Register cosine;
        Register sine;
        PrefetchNumbers(from + k * step, ahead);
        LoadNumbers(re, im, from + k * step);
        LoadOne(cosine, twiddles + k * twiddle_step);
        LoadOne(sine, twiddles + k * twiddle_step + 1);
        Multiply(re, im, cosine, sine, all);
    }
};

// Rows of complex numbers, each number times two: one for all rows, one for all tasks.
template <uint32_t step, uint32_t points>
struct FromTurnedRows {
    __ubuf__ Real* from;
    __ubuf__ Real* turn;
    __ubuf__ Real* rows;

    template <uint32_t k>
    __simd_callee__ inline void Load(Register& re, Register& im, AllLanes& all) const {
        Register cosine;
        Register sine;
        Register row_cosine;
        Register row_sine;
        LoadNumbers(re, im, from + k * step);
        Reg::LoadAlign(cosine, turn);
        Reg::LoadAlign(sine, turn + points);
        Reg::LoadAlign(row_cosine, rows + k * 2 * points);
        Reg::LoadAlign(row_sine, rows + k * 2 * points + points);
        Multiply(cosine, sine, row_cosine, row_sine, all);
        Multiply(re, im, cosine, sine, all);
    }
};

// ---- Where they store to ------------------------------------------------------------------------------------------

// Planes in UB, outputs `step` reals apart, each but the first times its twiddle.
template <uint32_t plane, uint32_t step>
struct ToPlanes {
    __ubuf__ Real* to;
    __ubuf__ Real* table;

    template <uint32_t k>
    __simd_callee__ inline void Store(Register& re, Register& im, AllLanes& all) const {
        if constexpr (k != 0) {
            Register cosine;
            Register sine;
            LoadOne(cosine, table + 2 * (k - 1));
            LoadOne(sine, table + 2 * (k - 1) + 1);
            Multiply(re, im, cosine, sine, all);
        }
        Reg::StoreAlign(to + k * step, re, all);
        Reg::StoreAlign(to + k * step + plane, im, all);
    }
};

// Planes whose rows are blocks of 32 bytes: a register holds one of each of several butterflies.
template <uint32_t plane, uint32_t factor, uint32_t lanes>
struct ToBlocks {
    __ubuf__ Real* to;
    __ubuf__ Real* table;

    template <uint32_t k>
    __simd_callee__ inline void Store(Register& re, Register& im, AllLanes& all) const {
        if constexpr (k != 0) {
            constexpr uint32_t butterflies = kLanes / kDataBlock;
            Register cosine;
            Register sine;
            Reg::LoadAlign<Real, Reg::LoadDist::DIST_E2B_B32>(cosine, table + 2 * (k - 1) * butterflies);
            Reg::LoadAlign<Real, Reg::LoadDist::DIST_E2B_B32>(sine, table + (2 * (k - 1) + 1) * butterflies);
            Multiply(re, im, cosine, sine, all);
        }
        uint32_t left = lanes;
        Reg::MaskReg mask = Reg::UpdateMask<Real>(left);
        Reg::StoreAlign<Real, Reg::DataCopyMode::DATA_BLOCK_COPY>(to + k * kDataBlock, re, factor, mask);
        Reg::StoreAlign<Real, Reg::DataCopyMode::DATA_BLOCK_COPY>(to + k * kDataBlock + plane, im, factor, mask);
    }
};

// Planes to which interleaved parts go, each as `Order` has them.
template <uint32_t plane, typename Order>
struct ToBothPlanes {
    __ubuf__ Real* to;

    template <uint32_t i>
    __simd_callee__ inline void StoreReal(Register& part, AllLanes& all) const {
        Order::template Store<i>(to, part, all);
    }

    template <uint32_t i>
    __simd_callee__ inline void StoreImaginary(Register& part, AllLanes& all) const {
        Order::template Store<i>(to + plane, part, all);
    }
};

// One after the other, `reals` of them.
template <uint32_t reals>
struct Consecutive {
    template <uint32_t i>
    __simd_callee__ static inline void Store(__ubuf__ Real* at, Register& part, AllLanes& all) {
        if constexpr (i * kLanes < reals) {
            StoreLanes<(reals - i * kLanes < kLanes ? reals - i * kLanes : kLanes)>(at + i * kLanes, part, all);
        }
    }
};

// Outputs in turn, to planes; of `lanes` elements of each.
template <uint32_t plane, uint32_t factor, uint32_t lanes>
struct InTurn : ToBothPlanes<plane, Consecutive<factor * lanes>> {
    __ubuf__ Real* table;

    template <uint32_t k>
    __simd_callee__ inline void Turn(Register& re, Register& im, AllLanes& all) const {
        if constexpr (k != 0) {
            Register cosine;
            Register sine;
            Reg::LoadAlign(cosine, table + 2 * (k - 1) * kLanes);
            Reg::LoadAlign(sine, table + (2 * (k - 1) + 1) * kLanes);
            Multiply(re, im, cosine, sine, all);
        }
    }
};

// Transposed rows: some of the `columns` reals of each row of a plane.
template <uint32_t rows, uint32_t columns>
struct Transposed {
    template <uint32_t i>
    __simd_callee__ static inline void Store(__ubuf__ Real* at, Register& part, AllLanes& all) {
        static_assert(rows == kLanes || rows == kDataBlock, "a register holds one row, or a block of each of several");
        if constexpr (rows == kLanes) {
            Reg::StoreAlign(at + i * columns, part, all);
        } else {
            constexpr uint32_t held = kLanes / rows;
            Reg::StoreAlign<Real, Reg::DataCopyMode::DATA_BLOCK_COPY>(at + i * held * columns, part,
                                                                      columns / kDataBlock, all);
        }
    }
};

// Complex numbers as they go to global memory. Meanwhile those of the next task are asked for, as many for each output.
template <uint32_t lanes, bool scaled, bool asks>
struct ToNumbers {
    __ubuf__ Real* to;
    int64_t step;
    Real scale;
    bool past;
    __ubuf__ Real* next;
    int64_t next_step;

    template <uint32_t k>
    __simd_callee__ inline void Store(Register& re, Register& im, AllLanes& all) const {
        if constexpr (scaled) {
            Reg::Muls(re, re, scale, all);
            Reg::Muls(im, im, scale, all);
        }
        if constexpr (asks) {
            PrefetchFar(next, k * next_step);
        }
        StoreNumbers<lanes>(to + k * step, re, im, past, all);
    }
};

// ---- Stages -------------------------------------------------------------------------------------------------------

__aicore__ inline constexpr uint32_t Lesser(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

// The first stage of a contiguous transform: butterflies side by side in a register, their outputs in turn.
template <uint32_t pass>
__simd_vf__ inline void FirstStage(__ubuf__ Real* to, __ubuf__ Real* from, __ubuf__ Real* table) {
    using Pass = PassShape<pass>;
    constexpr uint32_t factor = Pass::Factor(0);
    constexpr uint32_t right = Pass::Right(0);
    auto all = Reg::CreateMask<Real, Reg::MaskPattern::ALL>();
    for (uint16_t p = 0; p < (right + kLanes - 1) / kLanes; ++p) {
        const FromNumbers<false> source{from + p * 2 * kLanes, 2 * right, 0};
        const InTurn<Pass::kPlane, factor, Lesser(right, kLanes)> sink{{to + p * factor * kLanes},
                                                                       table + p * 2 * (factor - 1) * kLanes};
        InterleavedCodelet<factor>::Run(source, sink, all);
    }
}

// A stage with less done than a register has lanes: it holds several butterflies, a block of 32 bytes each.
template <uint32_t pass, uint32_t stage>
__simd_vf__ inline void BlockStage(__ubuf__ Real* to, __ubuf__ Real* from, __ubuf__ Real* table) {
    using Pass = PassShape<pass>;
    constexpr uint32_t factor = Pass::Factor(stage);
    constexpr uint32_t reals = Pass::Right(stage) * Pass::Done(stage);
    static_assert(Pass::Done(stage) == kDataBlock, "blocks of 32 bytes");
    auto all = Reg::CreateMask<Real, Reg::MaskPattern::ALL>();
    for (uint16_t r = 0; r < (reals + kLanes - 1) / kLanes; ++r) {
        const FromPlanes<Pass::kPlane, reals> source{from + r * kLanes};
        const ToBlocks<Pass::kPlane, factor, Lesser(reals, kLanes)> sink{
            to + r * kLanes * factor, table + r * 2 * (factor - 1) * (kLanes / kDataBlock)};
        Codelet<factor>::Run(source, sink, all);
    }
}

// A stage from planes to planes.
template <uint32_t pass, uint32_t stage>
__simd_vf__ inline void MiddleStage(__ubuf__ Real* to, __ubuf__ Real* from, __ubuf__ Real* table) {
    using Pass = PassShape<pass>;
    constexpr uint32_t factor = Pass::Factor(stage);
    constexpr uint32_t done = Pass::Done(stage);
    constexpr uint32_t right = Pass::Right(stage);
    auto all = Reg::CreateMask<Real, Reg::MaskPattern::ALL>();
    for (uint16_t p = 0; p < right; ++p) {
        for (uint16_t q = 0; q < done / kLanes; ++q) {
            const FromPlanes<Pass::kPlane, right * done> source{from + p * done + q * kLanes};
            const ToPlanes<Pass::kPlane, done> sink{to + p * done * factor + q * kLanes, table + p * 2 * (factor - 1)};
            Codelet<factor>::Run(source, sink, all);
        }
    }
}

// The first stage of columns, `pitch` reals from row to row; `turn`: rows are multiplied by numbers of their own first.
template <uint32_t pass, bool turn>
__simd_vf__ inline void ColumnsFirstStage(__ubuf__ Real* to, __ubuf__ Real* from, int64_t pitch, __ubuf__ Real* table,
                                          __ubuf__ Real* twiddles) {
    using Pass = PassShape<pass>;
    constexpr uint32_t factor = Pass::Factor(0);
    constexpr uint32_t done = Pass::Done(0);
    constexpr uint32_t right = Pass::Right(0);
    auto all = Reg::CreateMask<Real, Reg::MaskPattern::ALL>();
    for (uint16_t p = 0; p < right; ++p) {
        for (uint16_t q = 0; q < done / kLanes; ++q) {
            const ToPlanes<Pass::kPlane, done> sink{to + p * done * factor + q * kLanes, table + p * 2 * (factor - 1)};
            if constexpr (turn) {
                const FromTurnedNumbers source{from + p * pitch + q * 2 * kLanes, right * pitch, pitch,
                                               twiddles + 2 * p, 2 * right};
                Codelet<factor>::Run(source, sink, all);
            } else {
                const FromNumbers<true> source{from + p * pitch + q * 2 * kLanes, right * pitch, pitch};
                Codelet<factor>::Run(source, sink, all);
            }
        }
    }
}

constexpr uint32_t kMostAhead = 272 * 1024;  // bytes of a task that a second-level cache holds beside this one's

// The last stage: outputs are `pitch` reals apart for each of the `columns` of a task. `past`: they go past caches. The
// next task's numbers are at `next`, runs of `next_run` times `columns` numbers, `next_pitch` reals from one to the
// next.
template <uint32_t pass, uint32_t stage, uint32_t next_run>
__simd_vf__ inline void LastStage(__ubuf__ Real* to, int64_t pitch, __ubuf__ Real* from, Real scale, bool past,
                                  __ubuf__ Real* next, int64_t next_pitch) {
    using Pass = PassShape<pass>;
    constexpr uint32_t factor = Pass::Factor(stage);
    constexpr uint32_t done = Pass::Done(stage);
    constexpr uint32_t columns = Pass::kColumns == 1 ? done : Pass::kColumns;
    constexpr uint32_t lanes = Lesser(columns, kLanes);
    constexpr uint32_t rows = done / columns;
    // Contiguous memory comes unasked, and what is asked for must still be there when it is wanted.
    constexpr bool asks = Pass::kColumns != 1 && rows % next_run == 0 && Pass::kTileBytes <= kMostAhead;
    auto all = Reg::CreateMask<Real, Reg::MaskPattern::ALL>();
    for (uint16_t row = 0; row < rows; ++row) {
        for (uint16_t q = 0; q < columns / lanes; ++q) {
            const FromPlanes<Pass::kPlane, done> source{from + row * columns + q * kLanes};
            const ToNumbers<lanes, Pass::kScaled, asks> sink{
                to + row * pitch + q * 2 * kLanes,
                Pass::kColumns == 1 ? 2 * done : rows * pitch,
                scale,
                past,
                next + row / next_run * next_pitch + row % next_run * 2 * columns + q * 2 * kLanes,
                rows / next_run * next_pitch};
            Codelet<factor>::Run(source, sink, all);
        }
    }
}

// Rows to columns in planes. The rows lie in parts of kColumns numbers, those of one part under each other, and
// `part_pitch` reals from part to part. Number j of row v of group g is multiplied by `turn` (g, j) times `rows` (v,
// j).
template <uint32_t pass>
__simd_vf__ inline void TransposeStage(__ubuf__ Real* to, __ubuf__ Real* from, int64_t part_pitch, __ubuf__ Real* turn,
                                       __ubuf__ Real* rows) {
    using Pass = PassShape<pass>;
    constexpr uint32_t points = Pass::kPoints;
    constexpr uint32_t columns = Pass::kColumns;
    constexpr uint32_t height = Pass::kHeight;
    auto all = Reg::CreateMask<Real, Reg::MaskPattern::ALL>();
    for (uint16_t part = 0; part < points / columns; ++part) {
        for (uint16_t j = 0; j < columns / kLanes; ++j) {
            for (uint16_t group = 0; group < columns / height; ++group) {
                const uint32_t column = part * columns + j * kLanes;
                const FromTurnedRows<2 * columns, points> source{
                    from + part * part_pitch + group * height * 2 * columns + j * 2 * kLanes,
                    turn + group * 2 * points + column, rows + column};
                const ToBothPlanes<Pass::kPlane, Transposed<height, columns>> sink{to + column * columns +
                                                                                   group * height};
                Transposer<height>::Run(source, sink, all);
            }
        }
    }
}
