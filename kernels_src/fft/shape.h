// What the planner decided, by pass and stage. A pass transforms the middle axis of (before, points, after); a task of
// it is `columns` such transforms side by side in UB. They go through stages, a factor of `points` each; the data of
// stage i is (left, factor, right, done): `done` = columns times the factors before, which vary fastest, `right` the
// factors to come. A stage makes of it (right, factor, done), so that results are in order at the end (Stockham).
#pragma once

#include "fft/registers.h"

enum class Kind : uint32_t { kWhole, kColumns, kRows };

template <uint32_t pass>
struct PassShape {
    static constexpr Kind kKind = static_cast<Kind>(spec::kKinds[pass]);
    static constexpr uint32_t kPoints = spec::kPoints[pass];
    static constexpr uint32_t kHeight = spec::kHeight;  // rows that are transposed at a time
    static constexpr uint32_t kColumns = spec::kColumns[pass];
    static constexpr uint32_t kBefore = spec::kBefore[pass];
    static constexpr uint32_t kAfter = spec::kAfter[pass];
    static constexpr uint32_t kStages = spec::kStages[pass];
    static constexpr uint32_t kNumbers = kPoints * kColumns;  // complex, of a task
    // Planes of real and imaginary parts, not a power of two apart.
    static constexpr uint32_t kPlane = kNumbers + spec::kPadding;
    static constexpr uint32_t kTileBytes = 2 * kPlane * sizeof(Real);
    static constexpr bool kScaled = spec::kScaled && pass + 1 == spec::kPasses;
    static constexpr uint32_t kTableReals = spec::kTableReals[pass];
    static constexpr uint32_t kTurnReals = spec::kTurnReals[pass];  // of a task's own twiddles

    static constexpr uint32_t Factor(uint32_t stage) { return spec::kFactors[pass * spec::kMostStages + stage]; }

    static constexpr uint32_t Done(uint32_t stage) {
        return stage == 0 ? kColumns : Done(stage - 1) * Factor(stage - 1);
    }

    static constexpr uint32_t Right(uint32_t stage) { return kNumbers / (Done(stage) * Factor(stage)); }

    // Reals from the pass's table to a stage's twiddles.
    static constexpr uint32_t Table(uint32_t stage) { return spec::kStageTables[pass * spec::kMostStages + stage]; }
};
