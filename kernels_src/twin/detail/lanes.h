// A few floats side by side, as one thread of a SIMT kernel holds them (common/lanes.h has the chip's): machine
// vectors, or a part of one. What is beyond the last float is neither read nor written.
#pragma once

#include "transpose.h"

namespace twin {

template <int count>
struct VectorOf {
    using Type = FourFloats;
};
#if defined(__AVX512F__)
template <>
struct VectorOf<16> {
    using Type = SixteenFloats;
};
#endif
#if defined(__AVX__)
template <>
struct VectorOf<8> {
    using Type = EightFloats;
};
#endif

constexpr int PowerOfTwo(int number) {
    int power = 4;
    while (power < number) {
        power *= 2;
    }
    return power;
}

// a * b + c with one rounding, where no instruction of the vector's size does it: a call, because kernels unroll.
template <typename V>
__attribute__((noinline)) V FusedByElement(V a, V b, V c) {
    V result;
    for (int i = 0; i < kLanesOf<V>; ++i) {
        result[i] = __builtin_fmaf(a[i], b[i], c[i]);
    }
    return result;
}

template <typename V>
JITBLAS_INLINE V Fused(V a, V b, V c) {
#if defined(__clang__) && JITBLAS_HAS_BUILTIN(__builtin_elementwise_fma)
    return __builtin_elementwise_fma(a, b, c);
#elif defined(__FMA__) && !defined(__clang__)
    if constexpr (kLanesOf<V> == 4) {
        return __builtin_ia32_vfmaddps(a, b, c);
    } else if constexpr (kLanesOf<V> == 8) {
        return __builtin_ia32_vfmaddps256(a, b, c);
    } else {
#if defined(__AVX512F__)
        return __builtin_ia32_vfmaddps512_mask(a, b, c, -1, 4);
#endif
    }
#elif defined(__aarch64__)
    V result;
    for (int i = 0; i < kLanesOf<V>; ++i) {
        result[i] = __builtin_fmaf(a[i], b[i], c[i]);
    }
    return result;
#else
    return FusedByElement(a, b, c);
#endif
}

}  // namespace twin

template <int count>
class Lanes {
public:
    // How many fill half of the machine's vector registers, or two thirds where there are few.
#if defined(__AVX512F__) || defined(__aarch64__)
    static constexpr int kMost = 16 * ::twin::kWords / count;
#else
    static constexpr int kMost = 10 * ::twin::kWords / count;
#endif

    JITBLAS_INLINE void Zero() {
        JITBLAS_UNROLL
        for (int i = 0; i < kChunks; ++i) {
            chunk_[i] = V{};
        }
    }

    JITBLAS_INLINE void Load(const float* from) {
        JITBLAS_UNROLL
        for (int i = 0; i < kChunks; ++i) {
            if ((i + 1) * kLanes <= count) {
                chunk_[i] = ::twin::LoadUnaligned(chunk_[i], from + i * kLanes);
            } else {
                chunk_[i] = V{};
                __builtin_memcpy(&chunk_[i], from + i * kLanes, (count - i * kLanes) * sizeof(float));
            }
        }
    }

    JITBLAS_INLINE void Gather(const float* from, int64_t step) {
        Zero();
        JITBLAS_UNROLL
        for (int i = 0; i < count; ++i) {
            chunk_[i / kLanes][i % kLanes] = from[i * step];
        }
    }

    // Four of them: element j of number i is from[j * step + i].
    JITBLAS_INLINE static void GatherFour(Lanes* four, const float* from, int64_t step) {
        if constexpr (count % kLanes == 0) {
            JITBLAS_UNROLL
            for (int chunk = 0; chunk < kChunks; ++chunk) {
                V columns[4];
                ::twin::LoadFourColumns(from + chunk * kLanes * step, step, columns);
                JITBLAS_UNROLL
                for (int i = 0; i < 4; ++i) {
                    four[i].chunk_[chunk] = columns[i];
                }
            }
        } else {
            JITBLAS_UNROLL
            for (int i = 0; i < 4; ++i) {
                four[i].Gather(from + i, step);
            }
        }
    }

    JITBLAS_INLINE void Store(float* to) const {
        JITBLAS_UNROLL
        for (int i = 0; i < kChunks; ++i) {
            if ((i + 1) * kLanes <= count) {
                ::twin::StoreUnaligned(to + i * kLanes, chunk_[i]);
            } else {
                __builtin_memcpy(to + i * kLanes, &chunk_[i], (count - i * kLanes) * sizeof(float));
            }
        }
    }

    // this := scale * from + this, rounded once.
    JITBLAS_INLINE void Add(float scale, const Lanes& from) {
        JITBLAS_UNROLL
        for (int i = 0; i < kChunks; ++i) {
            chunk_[i] = ::twin::Fused(scale - V{} /* in every element */, from.chunk_[i], chunk_[i]);
        }
    }

    JITBLAS_INLINE void Scale(float scale) {
        JITBLAS_UNROLL
        for (int i = 0; i < kChunks; ++i) {
            chunk_[i] = chunk_[i] * scale;
        }
    }

private:
    using V = typename ::twin::VectorOf<::twin::PowerOfTwo(count) < ::twin::kWords ? ::twin::PowerOfTwo(count)
                                                                                   : ::twin::kWords>::Type;
    static constexpr int kLanes = ::twin::kLanesOf<V>;
    static constexpr int kChunks = (count + kLanes - 1) / kLanes;
    V chunk_[kChunks];
};
