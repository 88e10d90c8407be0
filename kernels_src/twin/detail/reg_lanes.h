// The Reg API's operations that move lanes or choose between them: interleaved loads and stores, comparisons, selects.
#pragma once

#include "reg.h"

namespace twin {

template <int... I>
JITBLAS_INLINE Floats EvenLanes(const Floats& a, const Floats& b, Indices<I...>) {
    return JITBLAS_SHUFFLE(a, b, (2 * I)...);
}

template <int... I>
JITBLAS_INLINE Floats OddLanes(const Floats& a, const Floats& b, Indices<I...>) {
    return JITBLAS_SHUFFLE(a, b, (2 * I + 1)...);
}

// Lanes of a and b in turn, from lane `first` on.
template <int first, int... I>
JITBLAS_INLINE Floats InTurn(const Floats& a, const Floats& b, Indices<I...>) {
    return JITBLAS_SHUFFLE(a, b, (first + I / 2 + (I % 2 != 0 ? kWords : 0))...);
}

}  // namespace twin

namespace AscendC {

enum class CMPMODE : uint8_t { LT = 0, GT, EQ, LE, GE, NE };
enum class ReduceType { SUM, MAX, MIN };

namespace Reg {

// Even elements of what follows `address` to one register, odd ones to the other.
template <typename T, LoadDist dist>
JITBLAS_INLINE void LoadAlign(RegTensor<float>& even, RegTensor<float>& odd, float* address) {
    static_assert(dist == LoadDist::DIST_DINTLV_B32, "the twin loads two registers with DIST_DINTLV_B32");
    constexpr auto lanes = ::twin::MakeIndices<::twin::kWords>();
    JITBLAS_UNROLL
    for (int i = 0; i < ::twin::kChunks; ++i) {
        const float* from = address + 2 * i * ::twin::kWords;
        for (int line = 0; line < 2 * ::twin::kChunkBytes; line += ::twin::kCacheLineBytes) {
            if ((2 * i * ::twin::kChunkBytes + line) % ::twin::kCacheLineBytes == 0) {
                __builtin_prefetch(reinterpret_cast<const uint8_t*>(from) + line + ::twin::kPrefetchBytes);
            }
        }
        const ::twin::Floats a = ::twin::LoadUnaligned(::twin::Floats{}, from);
        const ::twin::Floats b = ::twin::LoadUnaligned(::twin::Floats{}, from + ::twin::kWords);
        even.chunk[i] = ::twin::EvenLanes(a, b, lanes);
        odd.chunk[i] = ::twin::OddLanes(a, b, lanes);
    }
}

// The two registers' elements one after the other, as one sequence: even ones to `even`, odd ones to `odd`.
template <typename T = DefaultType>
JITBLAS_INLINE void DeInterleave(RegTensor<float>& even, RegTensor<float>& odd, RegTensor<float>& a,
                                 RegTensor<float>& b) {
    constexpr auto lanes = ::twin::MakeIndices<::twin::kWords>();
    constexpr int half = ::twin::kChunks / 2;
    const RegTensor<float> first = a;
    const RegTensor<float> second = b;
    JITBLAS_UNROLL
    for (int i = 0; i < ::twin::kChunks; ++i) {
        const ::twin::Floats* from = i < half ? first.chunk + 2 * i : second.chunk + 2 * (i - half);
        even.chunk[i] = ::twin::EvenLanes(from[0], from[1], lanes);
        odd.chunk[i] = ::twin::OddLanes(from[0], from[1], lanes);
    }
}

// Elements of a and b in turn: the first half of that sequence to `low`, the second to `high`.
template <typename T = DefaultType>
JITBLAS_INLINE void Interleave(RegTensor<float>& low, RegTensor<float>& high, RegTensor<float>& a,
                               RegTensor<float>& b) {
    constexpr auto lanes = ::twin::MakeIndices<::twin::kWords>();
    constexpr int half = ::twin::kChunks / 2;
    const RegTensor<float> first = a;
    const RegTensor<float> second = b;
    JITBLAS_UNROLL
    for (int i = 0; i < ::twin::kChunks; ++i) {
        ::twin::Floats* to = i < half ? low.chunk + 2 * i : high.chunk + 2 * (i - half);
        to[0] = ::twin::InTurn<0>(first.chunk[i], second.chunk[i], lanes);
        to[1] = ::twin::InTurn<::twin::kWords / 2>(first.chunk[i], second.chunk[i], lanes);
    }
}

template <typename T = DefaultType, CMPMODE mode = CMPMODE::EQ>
JITBLAS_INLINE void Compare(MaskReg& result, RegTensor<float>& a, RegTensor<float>& b, MaskReg& mask) {
    static_assert(mode == CMPMODE::EQ || mode == CMPMODE::LE, "the twin compares with EQ and LE");
    result.all = false;
    JITBLAS_UNROLL
    for (int i = 0; i < ::twin::kChunks; ++i) {
        const auto holds = mode == CMPMODE::EQ ? a.chunk[i] == b.chunk[i] : a.chunk[i] <= b.chunk[i];
        result.select[i] = reinterpret_cast<::twin::Words>(holds) & mask.select[i];
    }
}

// Elements of a where the mask selects, of b elsewhere.
template <typename T = DefaultType>
JITBLAS_INLINE void Select(RegTensor<float>& destination, RegTensor<float>& a, RegTensor<float>& b, MaskReg& mask) {
    JITBLAS_UNROLL
    for (int i = 0; i < ::twin::kChunks; ++i) {
        destination.chunk[i] =
            reinterpret_cast<::twin::Floats>((reinterpret_cast<::twin::Words>(a.chunk[i]) & mask.select[i]) |
                                             (reinterpret_cast<::twin::Words>(b.chunk[i]) & ~mask.select[i]));
    }
}

template <typename T = DefaultType>
JITBLAS_INLINE void Neg(RegTensor<float>& destination, RegTensor<float>& source, MaskReg& mask) {
    ::twin::EachChunk(destination, mask, [&](int i) __attribute__((always_inline)) { return -source.chunk[i]; });
}

template <typename T = DefaultType>
JITBLAS_INLINE void Abs(RegTensor<float>& destination, RegTensor<float>& source, MaskReg& mask) {
    ::twin::EachChunk(destination, mask, [&](int i) __attribute__((always_inline)) {
        return reinterpret_cast<::twin::Floats>(reinterpret_cast<::twin::Words>(source.chunk[i]) & 0x7fffffffu);
    });
}

// The largest element of those selected, as the first element; the others become zero.
template <ReduceType type, typename T = DefaultType>
JITBLAS_INLINE void Reduce(RegTensor<float>& destination, RegTensor<float> source, MaskReg mask) {
    static_assert(type == ReduceType::MAX, "the twin reduces with MAX");
    const float* value = reinterpret_cast<const float*>(source.chunk);
    const uint32_t* selected = reinterpret_cast<const uint32_t*>(mask.select);
    float largest = -__builtin_inff();
    for (int i = 0; i < ::twin::kChunks * ::twin::kWords; ++i) {
        largest = selected[i] != 0 && value[i] > largest ? value[i] : largest;
    }
    for (auto& chunk : destination.chunk) {
        chunk = ::twin::Floats{};
    }
    destination.chunk[0][0] = largest;
}

// Loads from any address come in two steps on the chip; the first has nothing to do here.
struct UnalignRegForLoad {};

template <typename T>
JITBLAS_INLINE void LoadUnAlignPre(UnalignRegForLoad&, T*) {}

template <typename T = DefaultType>
JITBLAS_INLINE void LoadUnAlign(RegTensor<float>& destination, UnalignRegForLoad&, float* address) {
    JITBLAS_UNROLL
    for (int i = 0; i < ::twin::kChunks; ++i) {
        destination.chunk[i] = ::twin::LoadUnaligned(::twin::Floats{}, address + i * ::twin::kWords);
    }
}

}  // namespace Reg
}  // namespace AscendC
