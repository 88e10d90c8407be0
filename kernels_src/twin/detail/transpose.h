// Transposing by shuffles: squares of four elements inside every 128 bits of vectors that were loaded four elements at
// a time, which no compiler does by itself.
#pragma once

#include "vector.h"

#if defined(__clang__) || __GNUC__ >= 12
#define JITBLAS_SHUFFLE_FLOATS(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define JITBLAS_SHUFFLE_FLOATS(a, b, ...) __builtin_shuffle(a, b, decltype((a) < (b)){__VA_ARGS__})
#endif

namespace twin {

typedef float FourFloats __attribute__((vector_size(16)));
typedef float EightFloats __attribute__((vector_size(32)));
typedef float SixteenFloats __attribute__((vector_size(64)));

template <typename V>
constexpr int kLanesOf = sizeof(V) / sizeof(float);

// Four elements of every fourth row, `step` apart, side by side.
template <typename V>
JITBLAS_INLINE V LoadQuads(const float* from, int64_t step) {
    const FourFloats a = LoadUnaligned(FourFloats{}, from);
    if constexpr (kLanesOf<V> == 4) {
        return a;
    } else {
#if defined(__clang__) || __GNUC__ >= 12
        const FourFloats b = LoadUnaligned(FourFloats{}, from + 4 * step);
        const EightFloats ab = __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7);
        if constexpr (kLanesOf<V> == 8) {
            return ab;
        } else {
            const FourFloats c = LoadUnaligned(FourFloats{}, from + 8 * step);
            const FourFloats d = LoadUnaligned(FourFloats{}, from + 12 * step);
            const EightFloats cd = __builtin_shufflevector(c, d, 0, 1, 2, 3, 4, 5, 6, 7);
            return __builtin_shufflevector(ab, cd, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        }
#else
        V loaded;
        for (int i = 0; i < kLanesOf<V>; i += 4) {
            const FourFloats quad = LoadUnaligned(FourFloats{}, from + i * step);
            __builtin_memcpy(reinterpret_cast<float*>(&loaded) + i, &quad, sizeof(quad));
        }
        return loaded;
#endif
    }
}

template <typename V, int... I>
JITBLAS_INLINE V LowPairs(V a, V b, Indices<I...>) {
    return JITBLAS_SHUFFLE_FLOATS(a, b, (I / 4 * 4 + I % 4 / 2 + (I % 2 != 0 ? kLanesOf<V> : 0))...);
}

template <typename V, int... I>
JITBLAS_INLINE V HighPairs(V a, V b, Indices<I...>) {
    return JITBLAS_SHUFFLE_FLOATS(a, b, (I / 4 * 4 + 2 + I % 4 / 2 + (I % 2 != 0 ? kLanesOf<V> : 0))...);
}

template <typename V, int... I>
JITBLAS_INLINE V LowHalves(V a, V b, Indices<I...>) {
    return JITBLAS_SHUFFLE_FLOATS(a, b, (I / 4 * 4 + I % 2 + (I % 4 >= 2 ? kLanesOf<V> : 0))...);
}

template <typename V, int... I>
JITBLAS_INLINE V HighHalves(V a, V b, Indices<I...>) {
    return JITBLAS_SHUFFLE_FLOATS(a, b, (I / 4 * 4 + 2 + I % 2 + (I % 4 >= 2 ? kLanesOf<V> : 0))...);
}

// Four columns of as many rows as V has elements, rows `step` apart: columns[c][r] is from[r * step + c].
template <typename V>
JITBLAS_INLINE void LoadFourColumns(const float* from, int64_t step, V* columns) {
    constexpr auto lanes = MakeIndices<kLanesOf<V>>();
    const V a = LoadQuads<V>(from, step);
    const V b = LoadQuads<V>(from + step, step);
    const V c = LoadQuads<V>(from + 2 * step, step);
    const V d = LoadQuads<V>(from + 3 * step, step);
    const V ab_low = LowPairs(a, b, lanes);
    const V ab_high = HighPairs(a, b, lanes);
    const V cd_low = LowPairs(c, d, lanes);
    const V cd_high = HighPairs(c, d, lanes);
    columns[0] = LowHalves(ab_low, cd_low, lanes);
    columns[1] = HighHalves(ab_low, cd_low, lanes);
    columns[2] = LowHalves(ab_high, cd_high, lanes);
    columns[3] = HighHalves(ab_high, cd_high, lanes);
}

}  // namespace twin
