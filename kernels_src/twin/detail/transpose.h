// Transposing by shuffles: squares of four elements inside every 128 bits of vectors that were loaded four elements at
// a time, which no compiler does by itself.
#pragma once

#include "vector.h"

namespace twin {

typedef float FourFloats __attribute__((vector_size(16)));
typedef float EightFloats __attribute__((vector_size(32)));
typedef float SixteenFloats __attribute__((vector_size(64)));

template <typename V>
constexpr int kLanesOf = sizeof(V) / sizeof(float);

// Four elements of every fourth row from `first` on, side by side. Rows lie `step` apart; in place of what is beyond
// the last of `rows` stands that last one.
template <typename V>
JITBLAS_INLINE V LoadQuads(const float* from, int64_t step, int first, int rows) {
    const auto quad = [=](int row) __attribute__((always_inline)) {
        return LoadUnaligned(FourFloats{}, from + (row < rows ? row : rows - 1) * step);
    };
    const FourFloats a = quad(first);
    if constexpr (kLanesOf<V> == 4) {
        return a;
    } else {
#if defined(__clang__) || __GNUC__ >= 12
        const FourFloats b = quad(first + 4);
        const EightFloats ab = __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7);
        if constexpr (kLanesOf<V> == 8) {
            return ab;
        } else {
            const FourFloats c = quad(first + 8);
            const FourFloats d = quad(first + 12);
            const EightFloats cd = __builtin_shufflevector(c, d, 0, 1, 2, 3, 4, 5, 6, 7);
            return __builtin_shufflevector(ab, cd, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        }
#else
        V loaded;
        for (int i = 0; i < kLanesOf<V>; i += 4) {
            const FourFloats next = i == 0 ? a : quad(first + i);
            __builtin_memcpy(reinterpret_cast<float*>(&loaded) + i, &next, sizeof(next));
        }
        return loaded;
#endif
    }
}

template <typename V, int... I>
JITBLAS_INLINE V LowPairs(V a, V b, Indices<I...>) {
    return JITBLAS_SHUFFLE(a, b, (I / 4 * 4 + I % 4 / 2 + (I % 2 != 0 ? kLanesOf<V> : 0))...);
}

template <typename V, int... I>
JITBLAS_INLINE V HighPairs(V a, V b, Indices<I...>) {
    return JITBLAS_SHUFFLE(a, b, (I / 4 * 4 + 2 + I % 4 / 2 + (I % 2 != 0 ? kLanesOf<V> : 0))...);
}

template <typename V, int... I>
JITBLAS_INLINE V LowHalves(V a, V b, Indices<I...>) {
    return JITBLAS_SHUFFLE(a, b, (I / 4 * 4 + I % 2 + (I % 4 >= 2 ? kLanesOf<V> : 0))...);
}

template <typename V, int... I>
JITBLAS_INLINE V HighHalves(V a, V b, Indices<I...>) {
    return JITBLAS_SHUFFLE(a, b, (I / 4 * 4 + 2 + I % 2 + (I % 4 >= 2 ? kLanesOf<V> : 0))...);
}

// Four columns, rows `step` apart: columns[c][r] is from[r * step + c], r below `rows`. Elements of V beyond that
// repeat the last row's.
template <typename V>
JITBLAS_INLINE void LoadFourColumns(const float* from, int64_t step, int rows, V* columns) {
    constexpr auto lanes = MakeIndices<kLanesOf<V>>();
    const V a = LoadQuads<V>(from, step, 0, rows);
    const V b = LoadQuads<V>(from, step, 1, rows);
    const V c = LoadQuads<V>(from, step, 2, rows);
    const V d = LoadQuads<V>(from, step, 3, rows);
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
