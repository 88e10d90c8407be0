// A few floats side by side, as one thread of a SIMT kernel holds them: registers on the chip, a vector on the twin.
#pragma once

#include "common/kernel_common.h"

#ifdef JITBLAS_TWIN

#include "../twin/detail/lanes.h"

#else

template <int count>
class Lanes {
public:
    // How many a thread's registers hold: as the profile says.
    static constexpr int kMost = spec::kThreadFloats / count;
    static constexpr bool kGathersFour = false;  // which takes four times the registers

    __simt_callee__ inline void Zero() {
        JITBLAS_UNROLL
        for (int i = 0; i < count; ++i) {
            value_[i] = 0.0f;
        }
    }

    __simt_callee__ inline void Load(const __gm__ float* from) { Gather(from, 1); }

    __simt_callee__ inline void Gather(const __gm__ float* from, int64_t step) {
        JITBLAS_UNROLL
        for (int i = 0; i < count; ++i) {
            value_[i] = from[i * step];
        }
    }

    __simt_callee__ inline void Store(__gm__ float* to) const {
        JITBLAS_UNROLL
        for (int i = 0; i < count; ++i) {
            to[i] = value_[i];
        }
    }

    // this := scale * from + this, rounded once.
    __simt_callee__ inline void Add(float scale, const Lanes& from) {
        JITBLAS_UNROLL
        for (int i = 0; i < count; ++i) {
            value_[i] = fmaf(scale, from.value_[i], value_[i]);
        }
    }

    __simt_callee__ inline void Scale(float scale) {
        JITBLAS_UNROLL
        for (int i = 0; i < count; ++i) {
            value_[i] *= scale;
        }
    }

private:
    float value_[count];
};

#endif
