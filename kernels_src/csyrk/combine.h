// The vector cores' part: products become sums of segments, sums become complex numbers, these times alpha are added to
// beta times C, and exactly the elements of the triangle are written. Each of a group's two vector cores has its rows
// of every block.
#pragma once

#include "csyrk/tiles.h"

// sum := sum + product
__simd_vf__ inline void AddToSum(__ubuf__ float* sum, __ubuf__ float* product, uint16_t registers) {
    Reg::MaskReg all = Reg::CreateMask<float, Reg::MaskPattern::ALL>();
    Reg::RegTensor<float> value;
    Reg::RegTensor<float> term;
    for (uint16_t i = 0; i < registers; ++i) {
        Reg::LoadAlign(value, sum + i * kLanes);
        Reg::LoadAlign(term, product + i * kLanes);
        Reg::Add(value, value, term, all);
        Reg::StoreAlign(sum + i * kLanes, value, all);
    }
}

__simd_vf__ inline void ClearSums(__ubuf__ float* sums, uint16_t registers) {
    Reg::MaskReg all = Reg::CreateMask<float, Reg::MaskPattern::ALL>();
    Reg::RegTensor<float> zero;
    Reg::Duplicate(zero, 0.0f, all);
    for (uint16_t i = 0; i < registers; ++i) {
        Reg::StoreAlign(sums + i * kLanes, zero, all);
    }
}

enum class Factor { kZero, kOne, kOther };

// Rows of c := alpha * sums + beta * c, `registers` to a row. Rows of sums begin anywhere, those of c are aligned.
template <Factor alpha, Factor beta>
__simd_vf__ inline void WriteRows(__ubuf__ float* c, __ubuf__ float* sums, float alpha_re, float alpha_im,
                                  float beta_re, float beta_im, uint16_t rows, uint16_t registers, uint32_t c_pitch,
                                  uint32_t pitch) {
    Reg::MaskReg all = Reg::CreateMask<float, Reg::MaskPattern::ALL>();
    Reg::UnalignRegForLoad aligned;
    Reg::RegTensor<float> re;
    Reg::RegTensor<float> im;
    Reg::RegTensor<float> other;
    Reg::RegTensor<float> c_re;
    Reg::RegTensor<float> c_im;
    for (uint16_t r = 0; r < rows; ++r) {
        for (uint16_t i = 0; i < registers; ++i) {
            __ubuf__ float* from = sums + r * pitch + i * kLanes;
            __ubuf__ float* to = c + r * c_pitch + 2 * i * kLanes;
            Reg::LoadUnAlignPre(aligned, from);
            Reg::LoadUnAlign(re, aligned, from);
            Reg::LoadUnAlignPre(aligned, from + (kSums - 1) * kHalfFloats);
            Reg::LoadUnAlign(im, aligned, from + (kSums - 1) * kHalfFloats);
            if constexpr (spec::kThreeProducts) {
                Reg::LoadUnAlignPre(aligned, from + kHalfFloats);
                Reg::LoadUnAlign(other, aligned, from + kHalfFloats);
                Reg::Add(c_im, re, other, all);
                Reg::Sub(im, c_im, im, all);
                Reg::Sub(re, re, other, all);
            }
            if constexpr (alpha == Factor::kOther) {
                Reg::Muls(c_re, re, alpha_re, all);
                Reg::Axpy(c_re, im, -alpha_im, all);
                Reg::Muls(c_im, im, alpha_re, all);
                Reg::Axpy(c_im, re, alpha_im, all);
                Reg::Adds(re, c_re, 0.0f, all);
                Reg::Adds(im, c_im, 0.0f, all);
            }
            if constexpr (beta != Factor::kZero) {
                Reg::LoadAlign<float, Reg::LoadDist::DIST_DINTLV_B32>(c_re, c_im, to);
            }
            if constexpr (beta == Factor::kOne) {
                Reg::Add(re, re, c_re, all);
                Reg::Add(im, im, c_im, all);
            } else if constexpr (beta == Factor::kOther) {
                Reg::Axpy(re, c_re, beta_re, all);
                Reg::Axpy(re, c_im, -beta_im, all);
                Reg::Axpy(im, c_im, beta_re, all);
                Reg::Axpy(im, c_re, beta_im, all);
            }
            Reg::Interleave(c_re, c_im, re, im);
            Reg::StoreAlign(to, c_re, all);
            Reg::StoreAlign(to + kLanes, c_im, all);
        }
    }
}

class Combiner {
public:
    __aicore__ inline Combiner(GM_ADDR c, GM_ADDR workspace, const Scalars& scalars, const Tiling& tiling,
                               uint64_t block)
        : c_(reinterpret_cast<__gm__ float*>(c)),
          row_flags_(RowFlags(workspace, tiling)),
          scalars_(scalars),
          tiling_(tiling),
          share_(tiling, block),
          multiplies_(Multiplies(scalars, tiling)),
          lower_core_(GetSubBlockIdx() != 0),
          upper_(tiling.upper != 0) {
        flagged_ = multiplies_ && AnyFlag(workspace, tiling);
    }

    __aicore__ inline void Run() {
        for (uint32_t i = 0; i < kTurns; ++i) {
            SetFlag<HardEvent::MTE3_MTE2>(i);
            SetFlag<HardEvent::MTE3_V>(i);
        }
        while (share_.Left() != 0) {
            const Region tile = share_.Next();
            if (!multiplies_) {
                Finish(tile);
                continue;
            }
            for (uint32_t sum = 0; sum < kSums; ++sum) {
                CrossCoreWaitFlag<2, PIPE_V>(kReady);
            }
            for (uint64_t segment = tiling_.segment_k; segment < tiling_.k; segment += tiling_.segment_k) {
                for (uint32_t pass = 0; pass < kPasses; ++pass) {
                    if (IsLastOfSum(pass)) {
                        Receive(tile, SumOf(pass));
                    }
                }
            }
            Finish(tile);
            CrossCoreSetFlag<2, PIPE_V>(kTileIsFree);
        }
        for (uint32_t i = 0; i < kTurns; ++i) {
            WaitFlag<HardEvent::MTE3_MTE2>(i);
            WaitFlag<HardEvent::MTE3_V>(i);
        }
    }

private:
    static constexpr uint32_t kRowsAtOnce = 16;  // of C in UB
    static constexpr uint32_t kRowFloats = 2 * RoundedUp(spec::kBlock, kLanes);
    static constexpr uint32_t kRowsBytes = kRowsAtOnce * kRowFloats * sizeof(float);

    // This core's rows of a block.
    __aicore__ inline Region Mine(const Region& block) const {
        const uint32_t rows = UpperRows(block.rows);
        return {block.row + (lower_core_ ? rows : 0), block.column, lower_core_ ? block.rows - rows : rows,
                block.columns};
    }

    __aicore__ static inline __ubuf__ float* At(uint32_t offset) {
        return (__ubuf__ float*)te::MakeMemPtr<te::Location::UB, float>(offset).Get();
    }

    __aicore__ static inline uint16_t RegistersOf(const Region& part) {
        return static_cast<uint16_t>((part.rows * ProductPitch(part.columns) + kLanes - 1) / kLanes);
    }

    // A later segment's part of one sum, which comes block by block.
    __aicore__ inline void Receive(const Region& tile, uint32_t sum) {
        for (uint32_t i = 0; i < BlocksDown(tile); ++i) {
            for (uint32_t j = 0; j < BlocksAcross(tile); ++j) {
                const Region block = BlockOf(tile, i, j);
                if (!Meets(block, upper_)) {
                    continue;
                }
                const uint16_t turn = static_cast<uint16_t>(received_ % kTurns);
                __ubuf__ float* product = At(kTurnsOffset + turn * kHalfBytes);
                CrossCoreWaitFlag<2, PIPE_V>(kReady);
                asc_vf_call<AddToSum>(At(SumOffset(sum, i, j)), product, RegistersOf(Mine(block)));
                CrossCoreSetFlag<2, PIPE_V>(kTurnIsFree + turn);
                ++received_;
            }
        }
    }

    // The blocks of a tile, their sums complete, to C.
    __aicore__ inline void Finish(const Region& tile) {
        for (uint32_t i = 0; i < BlocksDown(tile); ++i) {
            for (uint32_t j = 0; j < BlocksAcross(tile); ++j) {
                const Region block = BlockOf(tile, i, j);
                const Region mine = Mine(block);
                if (Meets(block, upper_) && mine.rows != 0) {
                    FinishBlock(block, mine, At(SumOffset(0, i, j)));
                }
            }
        }
    }

    __aicore__ inline void FinishBlock(const Region& block, const Region& mine, __ubuf__ float* sums) {
        const bool cleared = !multiplies_ || (flagged_ && IsExact(block, row_flags_));
        if (cleared) {
            asc_vf_call<ClearSums>(sums, static_cast<uint16_t>(kSums * kHalfFloats / kLanes));
        }
        const bool scales = !cleared && !scalars_.AlphaIsOne();
        const uint32_t pitch = ProductPitch(mine.columns);
        const bool whole = IsWhole(mine, upper_);
        for (uint32_t r = 0; r < mine.rows; r += kRowsAtOnce) {
            const uint32_t rows = static_cast<uint32_t>(Smaller(kRowsAtOnce, mine.rows - r));
            const uint32_t turn = written_++ % kTurns;
            const uint32_t offset = kRowsOffset + turn * kRowsBytes;
            WaitFlag<HardEvent::MTE3_MTE2>(turn);
            if (scalars_.ReadsC()) {
                CopyRows<true>(mine, r, rows, offset, whole);
            }
            SetFlag<HardEvent::MTE2_V>(turn);
            WaitFlag<HardEvent::MTE2_V>(turn);
            WaitFlag<HardEvent::MTE3_V>(turn);
            // At the diagonal of an upper triangle a row begins one element later than the one before.
            const bool shifted = !whole && upper_;
            const uint32_t skipped = shifted ? static_cast<uint32_t>(mine.row - mine.column) : 0;
            Write(At(offset), sums + r * (pitch + shifted) + skipped, rows, mine.columns, pitch + shifted, scales);
            SetFlag<HardEvent::V_MTE3>(turn);
            WaitFlag<HardEvent::V_MTE3>(turn);
            CopyRows<false>(mine, r, rows, offset, whole);
            SetFlag<HardEvent::MTE3_MTE2>(turn);
            SetFlag<HardEvent::MTE3_V>(turn);
        }
    }

    // The elements of row `r` of a region that are of the triangle; perhaps none.
    __aicore__ inline Region RowOf(const Region& region, uint32_t r) const {
        const uint64_t row = region.row + r;
        const uint64_t end = region.column + region.columns;
        if (upper_) {
            const uint64_t begin = Smaller(row > region.column ? row : region.column, end);
            return {row, begin, 1, static_cast<uint32_t>(end - begin)};
        }
        const uint64_t past = Smaller(row + 1, end);
        return {row, region.column, 1, static_cast<uint32_t>(past > region.column ? past - region.column : 0)};
    }

    // Rows of C to UB or back, each from where the triangle begins.
    template <bool reads>
    __aicore__ inline void CopyRows(const Region& mine, uint32_t first, uint32_t rows, uint32_t offset, bool whole) {
        if (whole) {
            CopyRegion<reads>({mine.row + first, mine.column, rows, mine.columns}, offset);
            return;
        }
        for (uint32_t i = 0; i < rows; ++i) {
            const Region row = RowOf(mine, first + i);
            if (row.columns != 0) {
                CopyRegion<reads>(row, offset + i * kRowFloats * static_cast<uint32_t>(sizeof(float)));
            }
        }
    }

    template <bool reads>
    __aicore__ inline void CopyRegion(const Region& region, uint32_t offset) {
        auto global = Part<false>(c_, 2 * tiling_.ldc, region.row, 2 * region.column, region.rows, 2 * region.columns);
        auto local = InUnifiedBuffer(offset, region.rows, 2 * region.columns, kRowFloats);
        if constexpr (reads) {
            te::Copy(te::MakeCopy(te::CopyGM2UB{}), local, global);
        } else {
            te::Copy(te::MakeCopy(te::CopyUB2GM{}), global, local);
        }
    }

    __aicore__ inline void Write(__ubuf__ float* c, __ubuf__ float* sums, uint32_t rows, uint32_t columns,
                                 uint32_t pitch, bool scales) {
        if (scales) {
            WriteTimes<Factor::kOther>(c, sums, rows, columns, pitch);
        } else {
            WriteTimes<Factor::kOne>(c, sums, rows, columns, pitch);
        }
    }

    template <Factor alpha>
    __aicore__ inline void WriteTimes(__ubuf__ float* c, __ubuf__ float* sums, uint32_t rows, uint32_t columns,
                                      uint32_t pitch) {
        if (!scalars_.ReadsC()) {
            WritePlus<alpha, Factor::kZero>(c, sums, rows, columns, pitch);
        } else if (scalars_.BetaIsOne()) {
            WritePlus<alpha, Factor::kOne>(c, sums, rows, columns, pitch);
        } else {
            WritePlus<alpha, Factor::kOther>(c, sums, rows, columns, pitch);
        }
    }

    template <Factor alpha, Factor beta>
    __aicore__ inline void WritePlus(__ubuf__ float* c, __ubuf__ float* sums, uint32_t rows, uint32_t columns,
                                     uint32_t pitch) {
        asc_vf_call<WriteRows<alpha, beta>>(c, sums, scalars_.alpha_re, scalars_.alpha_im, scalars_.beta_re,
                                            scalars_.beta_im, static_cast<uint16_t>(rows),
                                            static_cast<uint16_t>((columns + kLanes - 1) / kLanes),
                                            static_cast<uint32_t>(kRowFloats), pitch);
    }

    __gm__ float* c_;
    __gm__ float* row_flags_;
    const Scalars& scalars_;
    const Tiling& tiling_;
    Share share_;
    bool multiplies_;
    bool lower_core_;
    bool upper_;
    bool flagged_;
    uint64_t received_ = 0;
    uint32_t written_ = 0;
};
