// A few floats side by side, as one thread of a SIMT kernel holds them (common/lanes.h has the chip's): machine
// vectors, or a part of one. What is beyond the last float is neither read nor written.
#pragma once

#include "transpose.h"

namespace twin {

template <int count>
struct VectorOf {
    using Type = FourFloats;
};
template <>
struct VectorOf<2> {
    typedef float Type __attribute__((vector_size(8)));
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

#if defined(__clang__) || __GNUC__ >= 12
template <typename V, int... I>
JITBLAS_INLINE auto Half(const V& vector, Indices<I...>) {
    return __builtin_shufflevector(vector, vector, I...);
}

template <typename V, int... I>
JITBLAS_INLINE auto Twice(const V& vector, Indices<I...>) {
    return __builtin_shufflevector(vector, vector, I..., I...);
}

// A few elements, more than half of what V has: two halves that overlap. Small copies by way of memory would wait for
// their own stores.
template <int count, typename V>
struct Most {
    static constexpr int kPart = kLanesOf<V> / 2;
    using Part = typename VectorOf<kPart>::Type;

    // What is beyond them repeats the first one.
    template <int... I>
    JITBLAS_INLINE static V Load(const float* from, Indices<I...>) {
        const Part low = LoadUnaligned(Part{}, from);
        const Part high = LoadUnaligned(Part{}, from + count - kPart);
        return __builtin_shufflevector(low, high, (I < kPart ? I : I < count ? I - count + 2 * kPart : 0)...);
    }

    template <int... I>
    JITBLAS_INLINE static void Store(float* to, const V& few, Indices<I...>) {
        StoreUnaligned(to, __builtin_shufflevector(few, few, I...));
        StoreUnaligned(to + count - kPart, __builtin_shufflevector(few, few, (I + count - kPart)...));
    }
};
#endif

// The first `count` elements of V; what is beyond them repeats some of them.
template <int count, typename V>
JITBLAS_INLINE V LoadFew(const float* from) {
    constexpr int kLanes = kLanesOf<V>;
    if constexpr (count == 1) {
        return from[0] - V{};
    } else if constexpr (count == kLanes) {
        return LoadUnaligned(V{}, from);
    } else {
#if defined(__clang__) || __GNUC__ >= 12
        if constexpr (2 * count <= kLanes) {
            return Twice(LoadFew<count, typename VectorOf<kLanes / 2>::Type>(from), MakeIndices<kLanes / 2>());
        } else {
            return Most<count, V>::Load(from, MakeIndices<kLanes>());
        }
#else
        V few = V{};
        __builtin_memcpy(&few, from, count * sizeof(float));
        return few;
#endif
    }
}

template <int count, typename V>
JITBLAS_INLINE void StoreFew(float* to, const V& few) {
    constexpr int kLanes = kLanesOf<V>;
    if constexpr (count == 1) {
        to[0] = few[0];
    } else if constexpr (count == kLanes) {
        StoreUnaligned(to, few);
    } else {
#if defined(__clang__) || __GNUC__ >= 12
        if constexpr (2 * count <= kLanes) {
            StoreFew<count>(to, Half(few, MakeIndices<kLanes / 2>()));
        } else {
            Most<count, V>::Store(to, few, MakeIndices<kLanes / 2>());
        }
#else
        __builtin_memcpy(to, &few, count * sizeof(float));
#endif
    }
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
    // How many a thread holds: as the profile says or, if it leaves it to the machine, what fills half of its vector
    // registers, or two thirds where there are few.
#if defined(__AVX512F__) || defined(__aarch64__)
    static constexpr int kMachineFloats = 16 * ::twin::kWords;
#else
    static constexpr int kMachineFloats = 10 * ::twin::kWords;
#endif
    static constexpr int kMost = (spec::kThreadFloats != 0 ? spec::kThreadFloats : kMachineFloats) / count;
    static constexpr bool kGathersFour = true;

    JITBLAS_INLINE void Zero() {
        JITBLAS_UNROLL
        for (int i = 0; i < kChunks; ++i) {
            chunk_[i] = V{};
        }
    }

    JITBLAS_INLINE void Load(const float* from) {
        JITBLAS_UNROLL
        for (int i = 0; i < kChunks; ++i) {
            chunk_[i] = i < kWhole ? ::twin::LoadFew<kLanes, V>(from + i * kLanes)
                                   : ::twin::LoadFew<kRest, V>(from + i * kLanes);
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
        JITBLAS_UNROLL
        for (int chunk = 0; chunk < kChunks; ++chunk) {
            V columns[4];
            ::twin::LoadFourColumns(from + chunk * kLanes * step, step, chunk < kWhole ? kLanes : kRest, columns);
            JITBLAS_UNROLL
            for (int i = 0; i < 4; ++i) {
                four[i].chunk_[chunk] = columns[i];
            }
        }
    }

    JITBLAS_INLINE void Store(float* to) const {
        JITBLAS_UNROLL
        for (int i = 0; i < kChunks; ++i) {
            if (i < kWhole) {
                ::twin::StoreFew<kLanes>(to + i * kLanes, chunk_[i]);
            } else {
                ::twin::StoreFew<kRest>(to + i * kLanes, chunk_[i]);
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
    static constexpr int kWhole = count / kLanes;
    static constexpr int kRest = count % kLanes != 0 ? count % kLanes : kLanes;  // of a chunk that is not whole
    static constexpr int kChunks = (count + kLanes - 1) / kLanes;
    V chunk_[kChunks];
};
