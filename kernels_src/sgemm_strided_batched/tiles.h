// What the cube's kernels share: which tile is whose, and the way of a tile through L1 and L0 into L0C.
//
// C (m x n), op(A) (m x k) and op(B) (k x n) are row-major here; a column-major problem comes in as its transpose, with
// A and B exchanged. An operand is read along its rows or, if it is stored transposed, along its columns.
#pragma once

#include "common/matrices.h"

// One tile of one batch, by its first element's place in C and its size.
struct Tile {
    uint64_t batch = 0;
    uint64_t row = 0;
    uint64_t column = 0;
    uint32_t rows = 0;
    uint32_t columns = 0;
};

// The tiles of this block, one after the other: a run of all tiles of all batches. Within a batch they go through C
// like a snake, so that neighbours share rows of A or columns of B.
class Share {
public:
    __aicore__ inline Share(const Tiling& tiling, uint64_t block) : tiling_(tiling) {
        rows_ = (tiling.m + tiling.tile_m - 1) / tiling.tile_m;
        columns_ = (tiling.n + tiling.tile_n - 1) / tiling.tile_n;
        const uint64_t all = rows_ * columns_ * tiling.batch;
        const uint64_t first = Smaller(block * tiling.per_block, all);
        left_ = Smaller(tiling.per_block, all - first);
        batch_ = first / (rows_ * columns_);
        const uint64_t tile = first - batch_ * (rows_ * columns_);
        row_ = tile / columns_;
        column_ = tile - row_ * columns_;
    }

    __aicore__ inline uint64_t Left() const { return left_; }

    // The next tile; there must be one left.
    __aicore__ inline Tile Next() {
        const uint64_t r = row_ * tiling_.tile_m;
        const uint64_t c = (row_ % 2 == 0 ? column_ : columns_ - 1 - column_) * tiling_.tile_n;
        const Tile tile = {batch_, r, c, static_cast<uint32_t>(Smaller(tiling_.tile_m, tiling_.m - r)),
                           static_cast<uint32_t>(Smaller(tiling_.tile_n, tiling_.n - c))};
        --left_;
        if (++column_ == columns_) {
            column_ = 0;
            if (++row_ == rows_) {
                row_ = 0;
                ++batch_;
            }
        }
        return tile;
    }

private:
    const Tiling& tiling_;
    uint64_t rows_;
    uint64_t columns_;
    uint64_t left_;
    uint64_t batch_;
    uint64_t row_;
    uint64_t column_;
};

// Products of a block's tiles, in L0C one after the other. Two buffers everywhere: MTE2 brings the next chunk of k,
// which may be the next tile's first, while this one is worked on; MTE1 loads the next pair of operands into L0 while
// Mmad works on this one; and while the fix-pipe empties one result, Mmad fills the other.
class Products {
public:
    __aicore__ inline Products(GM_ADDR a, GM_ADDR b, const Tiling& tiling, uint64_t block)
        : a_(reinterpret_cast<__gm__ float*>(a)),
          b_(reinterpret_cast<__gm__ float*>(b)),
          tiling_(tiling),
          share_(tiling, block),
          left_(share_.Left()) {
        JITBLAS_STREAMING_CUBE();
        for (uint32_t i = 0; i < kBuffers; ++i) {
            SetFlag<HardEvent::MTE1_MTE2>(i);
            SetFlag<HardEvent::M_MTE1>(i);
            SetFlag<HardEvent::FIX_M>(i);
        }
        if (left_ != 0) {
            next_ = share_.Next();
            Fetch(next_, 0);
        }
    }

    __aicore__ inline uint64_t Left() const { return left_; }

    // The next tile; there must be one left. Then Compute it, let the fix-pipe read the result, and Free that.
    __aicore__ inline Tile Next() {
        tile_ = next_;
        --left_;
        return tile_;
    }

    __aicore__ inline auto Compute() {
        const uint32_t result = results_ % kBuffers;
        auto sum = te::MakeTensor(te::MakeMemPtr<te::Location::L0C, float>(result * kResultBytes),
                                  te::MakeFrameLayout<te::NZLayoutPtn>(tile_.rows, tile_.columns));
        WaitFlag<HardEvent::FIX_M>(result);
        for (uint64_t k = 0; k < tiling_.k; k += tiling_.chunk_k) {
            if (k + tiling_.chunk_k < tiling_.k) {
                Fetch(tile_, k + tiling_.chunk_k);
            } else if (left_ != 0) {
                next_ = share_.Next();
                Fetch(next_, 0);
            }
            AddChunk(k, sum);
        }
        SetFlag<HardEvent::M_FIX>(result);
        WaitFlag<HardEvent::M_FIX>(result);
        return sum;
    }

    __aicore__ inline void Free() {
        SetFlag<HardEvent::FIX_M>(results_ % kBuffers);
        ++results_;
    }

    // Every event that was set has to be waited for before the kernel ends.
    __aicore__ inline void Finish() {
        for (uint32_t i = 0; i < kBuffers; ++i) {
            WaitFlag<HardEvent::MTE1_MTE2>(i);
            WaitFlag<HardEvent::M_MTE1>(i);
            WaitFlag<HardEvent::FIX_M>(i);
        }
    }

private:
    using Element = Std::Int<kFractalColumns>;

    static constexpr uint32_t kBuffers = 2;
    static constexpr uint32_t kRowsA = RoundedUp(spec::kTileM, kFractalRows);
    static constexpr uint32_t kColumnsB = RoundedUp(spec::kTileN, kFractalRows);
    static constexpr uint32_t kChunkDepth = RoundedUp(spec::kChunkK, kFractalColumns);
    static constexpr uint32_t kStepDepth = RoundedUp(spec::kStepK, kFractalColumns);
    static constexpr uint32_t kChunkABytes = kRowsA * kChunkDepth * sizeof(float);
    static constexpr uint32_t kChunkBBytes = kColumnsB * kChunkDepth * sizeof(float);
    static constexpr uint32_t kStepABytes = kRowsA * kStepDepth * sizeof(float);
    static constexpr uint32_t kStepBBytes = kColumnsB * kStepDepth * sizeof(float);
    static constexpr uint32_t kResultBytes = kRowsA * kColumnsB * sizeof(float);

    __aicore__ inline uint32_t DepthFrom(uint64_t k) const {
        return static_cast<uint32_t>(Smaller(tiling_.chunk_k, tiling_.k - k));
    }

    __aicore__ static inline auto ChunkA(uint32_t buffer, uint32_t rows, uint32_t depth) {
        return te::MakeTensor(te::MakeMemPtr<te::Location::L1, float>(buffer * (kChunkABytes + kChunkBBytes)),
                              te::MakeFrameLayout<te::NZLayoutPtn, Element>(rows, depth));
    }

    __aicore__ static inline auto ChunkB(uint32_t buffer, uint32_t depth, uint32_t columns) {
        return te::MakeTensor(
            te::MakeMemPtr<te::Location::L1, float>(buffer * (kChunkABytes + kChunkBBytes) + kChunkABytes),
            te::MakeFrameLayout<te::ZNLayoutPtn, Element>(depth, columns));
    }

    // Which part of an operand a buffer in L1 holds: the element of k = 0 that it begins at, k, and its size across k.
    struct Held {
        uint64_t start = ~0ull;
        uint64_t k = 0;
        uint32_t size = 0;

        // Whether it is this part already; it is from now on.
        __aicore__ inline bool Becomes(uint64_t new_start, uint64_t new_k, uint32_t new_size) {
            const bool same = start == new_start && k == new_k && size == new_size;
            start = new_start;
            k = new_k;
            size = new_size;
            return same;
        }
    };

    // A tile's operands from column and row `k` on, into L1, unless the buffer still holds them: a matrix that all
    // batches share, or rows of A that the tile two before had, too.
    __aicore__ inline void Fetch(const Tile& tile, uint64_t k) {
        const uint32_t buffer = fetched_++ % kBuffers;
        const uint32_t depth = DepthFrom(k);
        const uint64_t batch_a = tile.batch * tiling_.stride_a;
        const uint64_t batch_b = tile.batch * tiling_.stride_b;
        WaitFlag<HardEvent::MTE1_MTE2>(buffer);
        if (!held_a_[buffer].Becomes(batch_a + tile.row * (spec::kAlongColumnsA ? 1 : tiling_.lda), k, tile.rows)) {
            te::Copy(te::MakeCopy(te::CopyGM2L1{}), ChunkA(buffer, tile.rows, depth),
                     Part<spec::kAlongColumnsA>(a_ + batch_a, tiling_.lda, tile.row, k, tile.rows, depth));
        }
        if (!held_b_[buffer].Becomes(batch_b + tile.column * (spec::kAlongColumnsB ? tiling_.ldb : 1), k,
                                     tile.columns)) {
            te::Copy(te::MakeCopy(te::CopyGM2L1{}), ChunkB(buffer, depth, tile.columns),
                     Part<spec::kAlongColumnsB>(b_ + batch_b, tiling_.ldb, k, tile.column, depth, tile.columns));
        }
        SetFlag<HardEvent::MTE2_MTE1>(buffer);
    }

    // The chunk from `first` on, which is the one fetched first of those in L1.
    template <typename Sum>
    __aicore__ inline void AddChunk(uint64_t first, const Sum& sum) {
        const uint32_t buffer = used_++ % kBuffers;
        const uint32_t depth = DepthFrom(first);
        auto chunk_a = ChunkA(buffer, tile_.rows, depth);
        auto chunk_b = ChunkB(buffer, depth, tile_.columns);
        WaitFlag<HardEvent::MTE2_MTE1>(buffer);
        for (uint32_t k = 0; k < depth; k += tiling_.step_k) {
            const uint32_t step = static_cast<uint32_t>(Smaller(tiling_.step_k, depth - k));
            const uint32_t half = steps_++ % kBuffers;
            auto step_a = te::MakeTensor(te::MakeMemPtr<te::Location::L0A, float>(half * kStepABytes),
                                         te::MakeFrameLayout<te::NZLayoutPtn, Element>(tile_.rows, step));
            auto step_b = te::MakeTensor(te::MakeMemPtr<te::Location::L0B, float>(half * kStepBBytes),
                                         te::MakeFrameLayout<te::ZNLayoutPtn, Element>(step, tile_.columns));
            WaitFlag<HardEvent::M_MTE1>(half);
            te::Copy(te::MakeCopy(te::CopyL12L0A{}), step_a,
                     chunk_a.Slice(te::MakeCoord(0, k), te::MakeShape(tile_.rows, step)));
            te::Copy(te::MakeCopy(te::CopyL12L0B{}), step_b,
                     chunk_b.Slice(te::MakeCoord(k, 0), te::MakeShape(step, tile_.columns)));
            SetFlag<HardEvent::MTE1_M>(half);
            WaitFlag<HardEvent::MTE1_M>(half);
            const te::MmadParams sizes(static_cast<uint16_t>(tile_.rows), static_cast<uint16_t>(tile_.columns),
                                       static_cast<uint16_t>(step), 0, first + k == 0);
            te::Mmad(te::MakeMmad(te::MmadOperation{}).with(sizes), sum, step_a, step_b);
            if (tile_.rows / kFractalRows * (tile_.columns / kFractalRows) < kUnhiddenFractals) {
                PipeBarrier<PIPE_M>();
            }
            SetFlag<HardEvent::M_MTE1>(half);
        }
        SetFlag<HardEvent::MTE1_MTE2>(buffer);
    }

    __gm__ float* a_;
    __gm__ float* b_;
    const Tiling& tiling_;
    Share share_;
    uint64_t left_;
    Tile tile_;
    Tile next_;
    Held held_a_[kBuffers];
    Held held_b_[kBuffers];
    uint32_t fetched_ = 0;
    uint32_t used_ = 0;
    uint32_t steps_ = 0;
    uint32_t results_ = 0;
};
