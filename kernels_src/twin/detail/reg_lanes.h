// The Reg API's operations that move lanes or choose between them: interleaved loads and stores, comparisons, selects.
#pragma once

#include "reg.h"

namespace twin {

template <typename Vector, int... I>
JITBLAS_INLINE Vector EvenLanes(const Vector& a, const Vector& b, Indices<I...>) {
    return JITBLAS_SHUFFLE(a, b, (2 * I)...);
}

template <typename Vector, int... I>
JITBLAS_INLINE Vector OddLanes(const Vector& a, const Vector& b, Indices<I...>) {
    return JITBLAS_SHUFFLE(a, b, (2 * I + 1)...);
}

// Lanes of a and b in turn, from lane `first` on.
template <int first, typename Vector, int... I>
JITBLAS_INLINE Vector InTurn(const Vector& a, const Vector& b, Indices<I...>) {
    return JITBLAS_SHUFFLE(a, b, (first + I / 2 + (I % 2 != 0 ? static_cast<int>(sizeof...(I)) : 0))...);
}

template <typename R>
constexpr int kChunkLanes = kChunkBytes / static_cast<int>(sizeof(R));

// Two registers' chunks one after the other.
template <typename R>
JITBLAS_INLINE auto& ChunkOf(R& low, R& high, int i) {
    return i < kChunks ? low.chunk[i] : high.chunk[i - kChunks];
}

// Elements of the two registers in turn, past caches; the address is a cache line's.
template <typename R>
JITBLAS_INLINE void StorePastCaches(R* address, AscendC::Reg::RegTensor<R>& a, AscendC::Reg::RegTensor<R>& b) {
    constexpr int lanes = kChunkLanes<R>;
    JITBLAS_UNROLL
    for (int i = 0; i < kChunks; ++i) {
        R* to = address + 2 * i * lanes;
        StorePast(to, InTurn<0>(a.chunk[i], b.chunk[i], MakeIndices<lanes>()));
        StorePast(to + lanes, InTurn<lanes / 2>(a.chunk[i], b.chunk[i], MakeIndices<lanes>()));
    }
}

}  // namespace twin

namespace AscendC {

enum class CMPMODE : uint8_t { LT = 0, GT, EQ, LE, GE, NE };
enum class ReduceType { SUM, MAX, MIN };

namespace Reg {

// Even elements of what follows `address` to one register, odd ones to the other.
template <typename T, LoadDist dist, typename R>
JITBLAS_INLINE void LoadAlign(RegTensor<R>& even, RegTensor<R>& odd, R* address) {
    static_assert(dist == (sizeof(R) == 8 ? LoadDist::DIST_DINTLV_B64 : LoadDist::DIST_DINTLV_B32),
                  "the twin loads two registers with DIST_DINTLV_B32 or, of doubles, DIST_DINTLV_B64");
    constexpr int lanes = ::twin::kChunkLanes<R>;
    JITBLAS_UNROLL
    for (int i = 0; i < ::twin::kChunks; ++i) {
        const R* from = address + 2 * i * lanes;
        for (int line = 0; line < 2 * ::twin::kChunkBytes; line += ::twin::kCacheLineBytes) {
            if (::twin::kPrefetches && (2 * i * ::twin::kChunkBytes + line) % ::twin::kCacheLineBytes == 0) {
                __builtin_prefetch(reinterpret_cast<const uint8_t*>(from) + line + ::twin::kPrefetchBytes);
            }
        }
        const auto a = ::twin::LoadUnaligned(even.chunk[i], from);
        const auto b = ::twin::LoadUnaligned(even.chunk[i], from + lanes);
        even.chunk[i] = ::twin::EvenLanes(a, b, ::twin::MakeIndices<lanes>());
        odd.chunk[i] = ::twin::OddLanes(a, b, ::twin::MakeIndices<lanes>());
    }
}

// Elements of the two registers in turn. The mask does not count.
template <typename T, StoreDist dist, typename R, typename M>
JITBLAS_INLINE void StoreAlign(R* address, RegTensor<R>& a, RegTensor<R>& b, M&) {
    static_assert(dist == (sizeof(R) == 8 ? StoreDist::DIST_INTLV_B64 : StoreDist::DIST_INTLV_B32),
                  "the twin stores two registers with DIST_INTLV_B32 or, of doubles, DIST_INTLV_B64");
    constexpr int lanes = ::twin::kChunkLanes<R>;
    JITBLAS_UNROLL
    for (int i = 0; i < ::twin::kChunks; ++i) {
        R* to = address + 2 * i * lanes;
        ::twin::StoreUnaligned(to, ::twin::InTurn<0>(a.chunk[i], b.chunk[i], ::twin::MakeIndices<lanes>()));
        ::twin::StoreUnaligned(to + lanes,
                               ::twin::InTurn<lanes / 2>(a.chunk[i], b.chunk[i], ::twin::MakeIndices<lanes>()));
    }
}

// Blocks of 32 bytes, `stride` blocks from one to the next in memory.
template <typename T, DataCopyMode mode, typename R, typename M>
JITBLAS_INLINE void StoreAlign(R* address, RegTensor<R>& source, uint32_t stride, M& mask) {
    static_assert(mode == DataCopyMode::DATA_BLOCK_COPY, "with a stride the twin stores blocks");
    constexpr int block = 32 / static_cast<int>(sizeof(R));
    const RegTensor<R> from = source;
    const MaskReg selected = mask;
    const R* value = reinterpret_cast<const R*>(from.chunk);
    const uint32_t* select = reinterpret_cast<const uint32_t*>(selected.select);
    for (int i = 0; i < ::twin::kRegisterBytes / 32; ++i) {
        for (int j = 0; j < block; ++j) {
            if (select[(i * block + j) * static_cast<int>(sizeof(R) / 4)] != 0) {
                address[i * block * static_cast<int64_t>(stride) + j] = value[i * block + j];
            }
        }
    }
}

// The two registers' elements one after the other, as one sequence: even ones to `even`, odd ones to `odd`.
template <typename T = DefaultType, typename R>
JITBLAS_INLINE void DeInterleave(RegTensor<R>& even, RegTensor<R>& odd, RegTensor<R>& a, RegTensor<R>& b) {
    constexpr auto lanes = ::twin::MakeIndices<::twin::kChunkLanes<R>>();
    RegTensor<R> first = a;
    RegTensor<R> second = b;
    JITBLAS_UNROLL
    for (int i = 0; i < ::twin::kChunks; ++i) {
        const auto from = ::twin::ChunkOf(first, second, 2 * i);
        const auto next = ::twin::ChunkOf(first, second, 2 * i + 1);
        even.chunk[i] = ::twin::EvenLanes(from, next, lanes);
        odd.chunk[i] = ::twin::OddLanes(from, next, lanes);
    }
}

// Elements of a and b in turn: the first half of that sequence to `low`, the second to `high`.
template <typename T = DefaultType, typename R>
JITBLAS_INLINE void Interleave(RegTensor<R>& low, RegTensor<R>& high, RegTensor<R>& a, RegTensor<R>& b) {
    constexpr int lanes = ::twin::kChunkLanes<R>;
    const RegTensor<R> first = a;
    const RegTensor<R> second = b;
    JITBLAS_UNROLL
    for (int i = 0; i < ::twin::kChunks; ++i) {
        constexpr auto indices = ::twin::MakeIndices<lanes>();
        ::twin::ChunkOf(low, high, 2 * i) = ::twin::InTurn<0>(first.chunk[i], second.chunk[i], indices);
        ::twin::ChunkOf(low, high, 2 * i + 1) = ::twin::InTurn<lanes / 2>(first.chunk[i], second.chunk[i], indices);
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

template <typename T = DefaultType, typename R, typename M>
JITBLAS_INLINE void Neg(RegTensor<R>& destination, RegTensor<R>& source, M& mask) {
    JITBLAS_UNROLL
    for (int i = 0; i < ::twin::kChunks; ++i) {
        destination.chunk[i] = -source.chunk[i];
    }
    ::twin::ZeroUnselected(destination, mask);
}

template <typename T = DefaultType, typename M>
JITBLAS_INLINE void Abs(RegTensor<float>& destination, RegTensor<float>& source, M& mask) {
    JITBLAS_UNROLL
    for (int i = 0; i < ::twin::kChunks; ++i) {
        destination.chunk[i] =
            reinterpret_cast<::twin::Floats>(reinterpret_cast<::twin::Words>(source.chunk[i]) & 0x7fffffffu);
    }
    ::twin::ZeroUnselected(destination, mask);
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
