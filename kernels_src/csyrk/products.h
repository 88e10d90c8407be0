// The cube's part: real products of planes, tile by tile, through L1 and L0 into L0C and to the vector cores. Two
// buffers everywhere, as in SgemmStridedBatched. L0 holds a tile as blocks, so that each operand is loaded once for all
// blocks and those beyond the triangle are left out.
#pragma once

#include "csyrk/tiles.h"

class Products {
public:
    __aicore__ inline Products(GM_ADDR workspace, const Tiling& tiling, uint64_t block)
        : workspace_(workspace), tiling_(tiling), share_(tiling, block), fetch_share_(tiling, block) {}

    __aicore__ inline void Run() {
        JITBLAS_STREAMING_CUBE();
        for (uint32_t i = 0; i < kBuffers; ++i) {
            SetFlag<HardEvent::MTE1_MTE2>(i);
            SetFlag<HardEvent::M_MTE1>(i);
            SetFlag<HardEvent::M_MTE1>(kBuffers + i);
        }
        for (uint32_t i = 0; i < spec::kResults; ++i) {
            SetFlag<HardEvent::FIX_M>(i);
        }
        if (fetch_share_.Left() != 0) {
            next_.tile = fetch_share_.Next();
            Fetch();
        }
        for (uint64_t tiles = 0; share_.Left() != 0; ++tiles) {
            tile_ = share_.Next();
            waits_for_tile_ = tiles != 0;
            for (segment_ = 0; segment_ < tiling_.k; segment_ += tiling_.segment_k) {
                MultiplySegment();
            }
            if (share_.Left() == 0) {
                CrossCoreWaitFlag<2, PIPE_FIX>(kTileIsFree);  // none may be left set for the next kernel
            }
        }
        for (uint16_t i = 0; i < Smaller(sent_, kTurns); ++i) {
            CrossCoreWaitFlag<2, PIPE_FIX>(kTurnIsFree + i);
        }
        for (uint32_t i = 0; i < kBuffers; ++i) {
            WaitFlag<HardEvent::MTE1_MTE2>(i);
            WaitFlag<HardEvent::M_MTE1>(i);
            WaitFlag<HardEvent::M_MTE1>(kBuffers + i);
        }
        for (uint32_t i = 0; i < spec::kResults; ++i) {
            WaitFlag<HardEvent::FIX_M>(i);
        }
    }

private:
    using Element = Std::Int<kFractalColumns>;

    static constexpr uint32_t kBuffers = 2;
    static constexpr uint32_t kChunkDepth = RoundedUp(spec::kChunkK, kFractalColumns);
    static constexpr uint32_t kStepDepth = RoundedUp(spec::kStepK, kFractalColumns);
    static constexpr uint32_t kChunkBytes = spec::kTile * kChunkDepth * sizeof(float);
    static constexpr uint32_t kBlockABytes = spec::kBlock * kStepDepth * sizeof(float);
    static constexpr uint32_t kBlockBBytes = spec::kBlock * kStepDepth * sizeof(float);
    static constexpr uint32_t kResultBytes = spec::kBlock * spec::kBlock * sizeof(float);
    static_assert(spec::kTile % spec::kBlock == 0 && spec::kBlock % kFractalRows == 0, "whole blocks of fractals");

    // What is fetched next: of which tile, segment and chunk of k, and for which product.
    struct Chunk {
        Region tile;
        uint64_t segment = 0;
        uint64_t k = 0;
        uint32_t pass = 0;
    };

    // A part of a plane that L0 holds.
    struct Held {
        uint64_t number = ~0ull;  // of the step that loaded it
        uint32_t plane = 0;
    };

    __aicore__ inline uint64_t SegmentEnd(uint64_t segment) const {
        return Smaller(segment + tiling_.segment_k, tiling_.k);
    }

    // Whether there is one after `next_`, which it then is.
    __aicore__ inline bool Advance() {
        if (++next_.pass < kPasses) {
            return true;
        }
        next_.pass = 0;
        next_.k += tiling_.chunk_k;
        if (next_.k < SegmentEnd(next_.segment)) {
            return true;
        }
        next_.segment += tiling_.segment_k;
        next_.k = next_.segment;
        if (next_.segment < tiling_.k) {
            return true;
        }
        next_.segment = next_.k = 0;
        if (fetch_share_.Left() == 0) {
            return false;
        }
        next_.tile = fetch_share_.Next();
        return true;
    }

    __aicore__ static inline auto ChunkA(uint32_t buffer, uint32_t rows, uint32_t depth) {
        return te::MakeTensor(te::MakeMemPtr<te::Location::L1, float>(buffer * 2 * kChunkBytes),
                              te::MakeFrameLayout<te::NZLayoutPtn, Element>(rows, depth));
    }

    __aicore__ static inline auto ChunkB(uint32_t buffer, uint32_t depth, uint32_t columns) {
        return te::MakeTensor(te::MakeMemPtr<te::Location::L1, float>((buffer * 2 + 1) * kChunkBytes),
                              te::MakeFrameLayout<te::ZNLayoutPtn, Element>(depth, columns));
    }

    __aicore__ static inline auto BlockA(uint32_t half, uint32_t down, uint32_t rows, uint32_t depth) {
        return te::MakeTensor(te::MakeMemPtr<te::Location::L0A, float>((half * kBlocksDown + down) * kBlockABytes),
                              te::MakeFrameLayout<te::NZLayoutPtn, Element>(rows, depth));
    }

    __aicore__ static inline auto BlockB(uint32_t half, uint32_t across, uint32_t depth, uint32_t columns) {
        return te::MakeTensor(te::MakeMemPtr<te::Location::L0B, float>((half * kBlocksAcross + across) * kBlockBBytes),
                              te::MakeFrameLayout<te::ZNLayoutPtn, Element>(depth, columns));
    }

    // Which of the results in L0C a sum of this segment is.
    __aicore__ inline uint32_t NumberOf(uint32_t sum) const { return (results_ + sum) % spec::kResults; }

    __aicore__ inline auto Result(uint32_t sum, uint32_t down, uint32_t across, const Region& block) const {
        const uint32_t number = (NumberOf(sum) * kBlocksDown + down) * kBlocksAcross + across;
        return te::MakeTensor(te::MakeMemPtr<te::Location::L0C, float>(number * kResultBytes),
                              te::MakeFrameLayout<te::NZLayoutPtn>(block.rows, block.columns));
    }

    // The operands of `next_`, into L1.
    __aicore__ inline void Fetch() {
        const uint32_t buffer = fetched_++ % kBuffers;
        const Region& tile = next_.tile;
        const uint64_t depth = Smaller(tiling_.chunk_k, SegmentEnd(next_.segment) - next_.k);
        __gm__ float* left = Plane(workspace_, tiling_, LeftPlane(next_.pass));
        __gm__ float* right = Plane(workspace_, tiling_, RightPlane(next_.pass));
        WaitFlag<HardEvent::MTE1_MTE2>(buffer);
        te::Copy(te::MakeCopy(te::CopyGM2L1{}), ChunkA(buffer, tile.rows, static_cast<uint32_t>(depth)),
                 Part<spec::kAlongColumns>(left, tiling_.plane_ld, tile.row, next_.k, tile.rows, depth));
        te::Copy(te::MakeCopy(te::CopyGM2L1{}), ChunkB(buffer, static_cast<uint32_t>(depth), tile.columns),
                 Part<!spec::kAlongColumns>(right, tiling_.plane_ld, next_.k, tile.column, depth, tile.columns));
        SetFlag<HardEvent::MTE2_MTE1>(buffer);
    }

    // All sums of a tile over a segment of k, to the vector cores.
    __aicore__ inline void MultiplySegment() {
        const uint64_t end = SegmentEnd(segment_);
        for (uint64_t k = segment_; k < end; k += tiling_.chunk_k) {
            const uint32_t depth = static_cast<uint32_t>(Smaller(tiling_.chunk_k, end - k));
            for (uint32_t pass = 0; pass < kPasses; ++pass) {
                if (Advance()) {
                    Fetch();
                }
                MultiplyChunk(pass, depth, k == segment_, k + depth == end);
            }
            steps_ += (depth + tiling_.step_k - 1) / tiling_.step_k;
        }
        results_ += kSums;
    }

    // One product of the chunk that was fetched first of those in L1.
    __aicore__ inline void MultiplyChunk(uint32_t pass, uint32_t depth, bool first, bool last) {
        const uint32_t buffer = used_++ % kBuffers;
        const uint32_t sum = SumOf(pass);
        const bool initial = first && IsFirstOfSum(pass);
        const bool complete = last && IsLastOfSum(pass);
        auto chunk_a = ChunkA(buffer, tile_.rows, depth);
        auto chunk_b = ChunkB(buffer, depth, tile_.columns);
        if (initial) {
            WaitFlag<HardEvent::FIX_M>(NumberOf(sum));
        }
        if (complete && segment_ == 0 && waits_for_tile_) {
            CrossCoreWaitFlag<2, PIPE_FIX>(kTileIsFree);
            waits_for_tile_ = false;
        }
        WaitFlag<HardEvent::MTE2_MTE1>(buffer);
        uint64_t number = steps_;
        for (uint32_t k = 0; k < depth; k += tiling_.step_k) {
            const uint32_t step = static_cast<uint32_t>(Smaller(tiling_.step_k, depth - k));
            const uint32_t half_a = LoadLeft(chunk_a, pass, number, k, step);
            const uint32_t half_b = LoadRight(chunk_b, pass, number, k, step);
            ++number;
            SetFlag<HardEvent::MTE1_M>(half_b);
            WaitFlag<HardEvent::MTE1_M>(half_b);
            for (uint32_t i = 0; i < BlocksDown(tile_); ++i) {
                for (uint32_t j = 0; j < BlocksAcross(tile_); ++j) {
                    const Region block = BlockOf(tile_, i, j);
                    if (!Meets(block, tiling_.upper != 0)) {
                        continue;
                    }
                    const te::MmadParams sizes(static_cast<uint16_t>(block.rows), static_cast<uint16_t>(block.columns),
                                               static_cast<uint16_t>(step), 0, initial && k == 0);
                    te::Mmad(te::MakeMmad(te::MmadOperation{}).with(sizes), Result(sum, i, j, block),
                             BlockA(half_a, i, block.rows, step), BlockB(half_b, j, step, block.columns));
                    if (block.rows / kFractalRows * (block.columns / kFractalRows) < kUnhiddenFractals) {
                        PipeBarrier<PIPE_M>();
                    }
                    if (complete && k + step == depth) {
                        Send(sum, i, j, block);
                    }
                }
            }
            SetFlag<HardEvent::M_MTE1>(half_a);
            SetFlag<HardEvent::M_MTE1>(kBuffers + half_b);
        }
        SetFlag<HardEvent::MTE1_MTE2>(buffer);
        if (complete) {
            if (segment_ == 0) {
                CrossCoreSetFlag<2, PIPE_FIX>(kReady);
            }
            SetFlag<HardEvent::FIX_M>(NumberOf(sum));
        }
    }

    // Whether a half of L0A or L0B has what is wanted, from an earlier product; `half` is that one, or the one to load
    // it into. Mmad is waited for in both cases, by the half's event: it is on its way with what it was given last.
    __aicore__ inline bool Holds(Held* halves, uint32_t& loaded, uint32_t first_event, const Held& wanted,
                                 uint32_t& half) {
        bool holds = false;
        for (uint32_t i = 0; i < kBuffers; ++i) {
            if (halves[i].number == wanted.number && halves[i].plane == wanted.plane) {
                holds = true;
                half = i;
            }
        }
        if (!holds) {
            half = loaded++ % kBuffers;
            halves[half] = wanted;
        }
        WaitFlag<HardEvent::M_MTE1>(first_event + half);
        return holds;
    }

    // The operands of a product's step, in L0; which half they are in.
    template <typename Operand>
    __aicore__ inline uint32_t LoadLeft(const Operand& chunk, uint32_t pass, uint64_t number, uint32_t k,
                                        uint32_t step) {
        uint32_t half;
        if (!Holds(held_a_, loaded_a_, 0, {number, LeftPlane(pass)}, half)) {
            for (uint32_t i = 0; i < BlocksDown(tile_); ++i) {
                const Region block = BlockOf(tile_, i, 0);
                te::Copy(te::MakeCopy(te::CopyL12L0A{}), BlockA(half, i, block.rows, step),
                         chunk.Slice(te::MakeCoord(i * spec::kBlock, k), te::MakeShape(block.rows, step)));
            }
        }
        return half;
    }

    template <typename Operand>
    __aicore__ inline uint32_t LoadRight(const Operand& chunk, uint32_t pass, uint64_t number, uint32_t k,
                                         uint32_t step) {
        uint32_t half;
        if (!Holds(held_b_, loaded_b_, kBuffers, {number, RightPlane(pass)}, half)) {
            for (uint32_t j = 0; j < BlocksAcross(tile_); ++j) {
                const Region block = BlockOf(tile_, 0, j);
                te::Copy(te::MakeCopy(te::CopyL12L0B{}), BlockB(half, j, step, block.columns),
                         chunk.Slice(te::MakeCoord(k, j * spec::kBlock), te::MakeShape(step, block.columns)));
            }
        }
        return half;
    }

    // A block of a sum, from L0C to the vector cores.
    __aicore__ inline void Send(uint32_t sum, uint32_t down, uint32_t across, const Region& block) {
        uint32_t offset = SumOffset(sum, down, across);
        if (segment_ != 0) {
            const uint16_t turn = static_cast<uint16_t>(sent_ % kTurns);
            if (sent_ >= kTurns) {
                CrossCoreWaitFlag<2, PIPE_FIX>(kTurnIsFree + turn);
            }
            offset = kTurnsOffset + turn * kHalfBytes;
        }
        SetFlag<HardEvent::M_FIX>(NumberOf(sum));
        WaitFlag<HardEvent::M_FIX>(NumberOf(sum));
        const uint32_t rows = UpperRows(block.rows);
        const uint32_t pitch = ProductPitch(block.columns);
        auto result = Result(sum, down, across, block);
        te::Copy(te::MakeCopy(te::CopyL0C2UB{}).with(te::FixpipeParams(0, false)),
                 InUnifiedBuffer(offset, rows, block.columns, pitch), result);
        if (rows < block.rows) {
            te::Copy(te::MakeCopy(te::CopyL0C2UB{}).with(te::FixpipeParams(0, true)),
                     InUnifiedBuffer(offset, block.rows - rows, block.columns, pitch),
                     result.Slice(te::MakeCoord(rows, 0), te::MakeShape(block.rows - rows, block.columns)));
        }
        if (segment_ != 0) {
            CrossCoreSetFlag<2, PIPE_FIX>(kReady);
            ++sent_;
        }
    }

    GM_ADDR workspace_;
    const Tiling& tiling_;
    Share share_;
    Share fetch_share_;
    Region tile_;
    uint64_t segment_ = 0;
    bool waits_for_tile_ = false;
    Chunk next_;
    Held held_a_[kBuffers];
    Held held_b_[kBuffers];
    uint64_t steps_ = 0;
    uint64_t sent_ = 0;
    uint32_t fetched_ = 0;
    uint32_t used_ = 0;
    uint32_t loaded_a_ = 0;
    uint32_t loaded_b_ = 0;
    uint32_t results_ = 0;
};
