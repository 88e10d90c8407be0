// A few floats side by side, as one thread of a SIMT kernel holds them (common/lanes.h has the chip's). Vectors of the
// next power of two: what is beyond the last float is neither read nor written.
#pragma once

#include "transpose.h"


namespace twin {

constexpr int PowerOfTwo(int number) {
    int power = 4;
    while (power < number) {
        power *= 2;
    }
    return power;
}

template <int count>
struct VectorOf;
template <>
struct VectorOf<4> {
    using Type = FourFloats;
};
template <>
struct VectorOf<8> {
    using Type = EightFloats;
};
template <>
struct VectorOf<16> {
    using Type = SixteenFloats;
};

// a * b + c with one rounding.
template <typename V>
JITBLAS_INLINE V Fused(V a, V b, V c) {
#if defined(__clang__) && JITBLAS_HAS_BUILTIN(__builtin_elementwise_fma)
    return __builtin_elementwise_fma(a, b, c);
#else
#if defined(__FMA__) && !defined(__clang__)
    if constexpr (sizeof(V) == 16) {
        return __builtin_ia32_vfmaddps(a, b, c);
    } else if constexpr (sizeof(V) == 32) {
        return __builtin_ia32_vfmaddps256(a, b, c);
    }
#if defined(__AVX512F__)
    if constexpr (sizeof(V) == 64) {
        return __builtin_ia32_vfmaddps512_mask(a, b, c, -1, 4);
    }
#endif
#endif
    V result;
    for (unsigned i = 0; i < sizeof(V) / sizeof(float); ++i) {
        result[i] = __builtin_fmaf(a[i], b[i], c[i]);
    }
    return result;
#endif
}

}  // namespace twin

template <int count>
class Lanes {
public:
    JITBLAS_INLINE void Zero() { value_ = V{}; }

    JITBLAS_INLINE void Load(const float* from) {
        if constexpr (count == kWidth) {
            value_ = ::twin::LoadUnaligned(value_, from);
        } else {
            value_ = V{};
            __builtin_memcpy(&value_, from, count * sizeof(float));
        }
    }

    JITBLAS_INLINE void Gather(const float* from, int64_t step) {
        value_ = V{};
        JITBLAS_UNROLL
        for (int i = 0; i < count; ++i) {
            value_[i] = from[i * step];
        }
    }

    // Four of them: element j of number i is from[j * step + i].
    JITBLAS_INLINE static void GatherFour(Lanes* four, const float* from, int64_t step) {
        if constexpr (count == kWidth) {
            V columns[4];
            ::twin::LoadFourColumns(from, step, columns);
            JITBLAS_UNROLL
            for (int i = 0; i < 4; ++i) {
                four[i].value_ = columns[i];
            }
        } else {
            JITBLAS_UNROLL
            for (int i = 0; i < 4; ++i) {
                four[i].Gather(from + i, step);
            }
        }
    }

    JITBLAS_INLINE void Store(float* to) const {
        if constexpr (count == kWidth) {
            ::twin::StoreUnaligned(to, value_);
        } else {
            __builtin_memcpy(to, &value_, count * sizeof(float));
        }
    }

    // this := scale * from + this, rounded once.
    JITBLAS_INLINE void Add(float scale, const Lanes& from) { value_ = ::twin::Fused(scale - V{}, from.value_, value_); }

    JITBLAS_INLINE void Scale(float scale) { value_ = value_ * scale; }

private:
    static constexpr int kWidth = ::twin::PowerOfTwo(count);
    using V = typename ::twin::VectorOf<kWidth>::Type;
    V value_;
};
