// Which tiles of the triangle are whose, how a tile is cut into blocks, and the order in which products of a tile are
// made: for each segment of k, for each chunk of it, for each pair of planes, for each block.
#pragma once

#include "csyrk/workspace.h"

constexpr uint32_t kSums = spec::kThreeProducts ? 3 : 2;
constexpr uint32_t kPasses = spec::kThreeProducts ? 3 : 4;

// The products of a tile and a piece of k, in the order that they are made: two planes, and the sum they are added to.
// Three are A_re A_re^T, A_im A_im^T and (A_re - A_im)(A_re - A_im)^T, each a sum of its own. Four are A_re A_re^T for
// the real part, A_re A_im^T and A_im A_re^T for the imaginary one, and (-A_im) A_im^T for the real part again.
__aicore__ inline constexpr uint32_t LeftPlane(uint32_t pass) {
    return spec::kThreeProducts ? pass : pass / 2 + pass / 3;
}

__aicore__ inline constexpr uint32_t RightPlane(uint32_t pass) {
    return spec::kThreeProducts ? pass : pass % 2;
}

__aicore__ inline constexpr uint32_t SumOf(uint32_t pass) {
    return spec::kThreeProducts ? pass : pass == 1 || pass == 2 ? 1 : 0;
}

__aicore__ inline constexpr bool IsFirstOfSum(uint32_t pass) {
    return spec::kThreeProducts || pass < 2;
}

__aicore__ inline constexpr bool IsLastOfSum(uint32_t pass) {
    return spec::kThreeProducts || pass >= 2;
}

// Blocks of a tile, along its rows and along its columns.
constexpr uint32_t kBlocksDown = spec::kTile / spec::kBlock;
constexpr uint32_t kBlocksAcross = spec::kTile / spec::kBlock;

__aicore__ inline uint32_t BlocksDown(const Region& tile) {
    return (tile.rows + spec::kBlock - 1) / spec::kBlock;
}

__aicore__ inline uint32_t BlocksAcross(const Region& tile) {
    return (tile.columns + spec::kBlock - 1) / spec::kBlock;
}

__aicore__ inline Region BlockOf(const Region& tile, uint32_t down, uint32_t across) {
    const uint32_t row = down * spec::kBlock;
    const uint32_t column = across * spec::kBlock;
    return {tile.row + row, tile.column + column, static_cast<uint32_t>(Smaller(spec::kBlock, tile.rows - row)),
            static_cast<uint32_t>(Smaller(spec::kBlock, tile.columns - column))};
}

// The tiles of one share: a run of the triangle's tiles, row by row.
class Share {
public:
    __aicore__ inline Share(const Tiling& tiling, uint64_t block) : tiling_(tiling) {
        const uint64_t lines = (tiling.n + tiling.tile - 1) / tiling.tile;
        const uint64_t all = lines * (lines + 1) / 2;
        const uint64_t first = Smaller(block * tiling.per_block, all);
        left_ = Smaller(tiling.per_block, all - first);
        while ((line_ + 1) * (line_ + 2) / 2 <= first) {
            ++line_;
        }
        place_ = first - line_ * (line_ + 1) / 2;
    }

    __aicore__ inline uint64_t Left() const { return left_; }

    // The next tile; there must be one left.
    __aicore__ inline Region Next() {
        const uint64_t far = line_ * tiling_.tile;
        const uint64_t near = place_ * tiling_.tile;
        const uint64_t row = tiling_.upper != 0 ? near : far;
        const uint64_t column = tiling_.upper != 0 ? far : near;
        --left_;
        if (++place_ > line_) {
            place_ = 0;
            ++line_;
        }
        return {row, column, static_cast<uint32_t>(Smaller(tiling_.tile, tiling_.n - row)),
                static_cast<uint32_t>(Smaller(tiling_.tile, tiling_.n - column))};
    }

private:
    const Tiling& tiling_;
    uint64_t left_;
    uint64_t line_ = 0;
    uint64_t place_;
};

// UB, as the cube and the vector cores see it: the upper rows of a block for the first vector core, the others for the
// second. Sums of a tile's first segment lie where they stay; later ones come by way of `kTurns` buffers and are added.
constexpr uint32_t kTurns = 2;
constexpr uint32_t kHalfRows = RoundedUp((spec::kBlock + 1) / 2, kFractalRows);
constexpr uint32_t kHalfFloats = RoundedUp(kHalfRows * RoundedUp(spec::kBlock, kFractalColumns), kLanes);
constexpr uint32_t kHalfBytes = kHalfFloats * sizeof(float);
constexpr uint32_t kTurnsOffset = kSums * kBlocksDown * kBlocksAcross * kHalfBytes;
constexpr uint32_t kRowsOffset = kTurnsOffset + kTurns * kHalfBytes;

__aicore__ inline constexpr uint32_t SumOffset(uint32_t sum, uint32_t down, uint32_t across) {
    return ((down * kBlocksAcross + across) * kSums + sum) * kHalfBytes;
}

// Flags between them. A sum of the first segment is ready as a whole, those of others block by block.
constexpr uint16_t kReady = 0;
constexpr uint16_t kTurnIsFree = 1;  // and the next, one for each turn
constexpr uint16_t kTileIsFree = kTurnIsFree + kTurns;
