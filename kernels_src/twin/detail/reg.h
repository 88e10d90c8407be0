// The Reg API: 256-byte vector registers, predicate masks and the operations of vector functions.
#pragma once

#include "pipe.h"
#include "vector.h"

namespace AscendC {

constexpr uint32_t VECTOR_REG_WIDTH = ::twin::kRegisterBytes;

enum class RoundMode : uint8_t {
    CAST_NONE,
    CAST_RINT,
    CAST_FLOOR,
    CAST_CEIL,
    CAST_ROUND,
    CAST_TRUNC,
    CAST_ODD,
    CAST_HYBRID,
    UNKNOWN = 0xff
};

namespace Reg {

enum class RegLayout { UNKNOWN = -1, ZERO, ONE, TWO, THREE };
enum class SatMode { UNKNOWN = -1, NO_SAT, SAT };
enum class MaskMergeMode { UNKNOWN = -1, MERGING, ZEROING };
enum class MaskPattern { ALL, VL1, VL2, VL3, VL4, VL8, VL16, VL32, VL64, VL128, M3, M4, H, Q, ALLF };
enum class LoadDist {
    DIST_NORM,
    DIST_UNPACK_B16,
    DIST_DINTLV_B32,
    DIST_DINTLV_B64,  // the twin's own, as all of FP64
    DIST_BRC_B32,
    DIST_BRC_B64,  // the twin's own
    DIST_E2B_B32
};
enum class StoreDist {
    DIST_NORM,
    DIST_PACK_B32,
    DIST_INTLV_B32,
    DIST_INTLV_B64  // the twin's own
};
enum class DataCopyMode { NORM, DATA_BLOCK_COPY };

struct CastTrait {
    RegLayout layoutMode = RegLayout::UNKNOWN;
    SatMode satMode = SatMode::UNKNOWN;
    MaskMergeMode mrgMode = MaskMergeMode::UNKNOWN;
    RoundMode roundMode = RoundMode::UNKNOWN;
};

// A predicate, spread over the bytes it selects: all ones or all zeros. `all` repeats what they say because the
// compiler can follow it: behind a mask made by CreateMask<T, ALL> no masking is left in the loop.
struct MaskReg {
    bool all;
    ::twin::Words select[::twin::kChunks];
};

}  // namespace Reg
}  // namespace AscendC

namespace twin {

// What CreateMask<T, ALL> makes. Kept as what it is (`auto`) there is nothing for the compiler to follow, which
// shortens the time that it takes over long straight code.
struct FullMask {
    static constexpr bool all = true;

    JITBLAS_INLINE operator AscendC::Reg::MaskReg() const {
        AscendC::Reg::MaskReg mask;
        mask.all = true;
        JITBLAS_UNROLL
        for (auto& select : mask.select) {
            select = ~Words{};
        }
        return mask;
    }
};

// Writes the words or shorts whose word of `select` is set, and no other byte: behind a bound tensor the neighbours may
// be another block's.
template <typename Element>
__attribute__((noinline, cold)) inline void StoreSelected(Element* to, const Element* from, const Words* select) {
    const uint32_t* selected = reinterpret_cast<const uint32_t*>(select);
    constexpr int words = sizeof(Element) == 8 ? 2 : 1;
    for (int i = 0; i < kRegisterBytes / 4 / words; ++i) {
        if (selected[i * words] != 0) {
            to[i] = from[i];
        }
    }
}

template <typename T, typename U>
constexpr bool kSame = false;
template <typename T>
constexpr bool kSame<T, T> = true;

template <typename R>
constexpr bool kComputes = kSame<R, float> || kSame<R, double>;

// A type that an argument is not asked for: what a register holds says it.
template <typename T>
struct Itself {
    using Type = T;
};

template <typename T>
constexpr bool kIsHalf = kSame<T, half> || kSame<T, bfloat16_t>;

}  // namespace twin

namespace AscendC {
namespace Reg {

struct DefaultType {};

// A register of floats, 64 on the chip. Arithmetic here is on FP32; 16-bit types are cast first.
template <typename T>
struct RegTensor;

template <>
struct RegTensor<float> {
    ::twin::Floats chunk[::twin::kChunks];
};

// A register of doubles: an extension of the twin, which the chip's vector units have nothing like.
template <>
struct RegTensor<double> {
    ::twin::Doubles chunk[::twin::kChunks];
};

// A register of 16-bit elements, always in the spread form of DIST_UNPACK_B16 and RegLayout::ZERO: element i in the low
// half of word i, high halves zero. Only the low halves are kept, side by side, so neither unpacking nor packing costs
// anything.
template <>
struct RegTensor<half> {
    ::twin::Shorts chunk[::twin::kChunks];
};

template <>
struct RegTensor<bfloat16_t> {
    ::twin::FullShorts chunk[(::twin::kChunks + 1) / 2];
};

}  // namespace Reg
}  // namespace AscendC

namespace twin {

template <typename Vector>
JITBLAS_INLINE Vector Selected(Vector value, Words select) {
    return reinterpret_cast<Vector>(reinterpret_cast<Words>(value) & select);
}

// What every operation ends with, and where it is refused for registers that are not computed with.
template <typename R>
JITBLAS_INLINE void ZeroUnselected(AscendC::Reg::RegTensor<R>& value, const AscendC::Reg::MaskReg& mask) {
    static_assert(kComputes<R>, "arithmetic is on float and, in the twin alone, on double; cast others first");
    if (!mask.all) {
        JITBLAS_UNROLL
        for (int i = 0; i < kChunks; ++i) {
            value.chunk[i] = Selected(value.chunk[i], mask.select[i]);
        }
    }
}

template <typename R>
JITBLAS_INLINE void ZeroUnselected(AscendC::Reg::RegTensor<R>&, const FullMask&) {
    static_assert(kComputes<R>, "arithmetic is on float and, in the twin alone, on double; cast others first");
}

// Chunks i and i + 1 of floats from a register of 16-bit elements, and into one.
JITBLAS_INLINE void Widen(const AscendC::Reg::RegTensor<half>& from, int i, Floats* low, Floats* high) {
    *low = FloatsFromHalf(from.chunk[i]);
    *high = FloatsFromHalf(from.chunk[i + 1]);
}

JITBLAS_INLINE void Widen(const AscendC::Reg::RegTensor<bfloat16_t>& from, int i, Floats* low, Floats* high) {
    FloatsFromBf16(from.chunk[i / 2], low, high, MakeIndices<2 * kWords>());
}

JITBLAS_INLINE void Narrow(AscendC::Reg::RegTensor<half>& to, int i, Floats low, Floats high) {
    to.chunk[i] = HalfFromFloats(low);
    to.chunk[i + 1] = HalfFromFloats(high);
}

JITBLAS_INLINE void Narrow(AscendC::Reg::RegTensor<bfloat16_t>& to, int i, Floats low, Floats high) {
    to.chunk[i / 2] = Bf16FromFloats(low, high);
}

}  // namespace twin

namespace AscendC {
namespace Reg {

template <typename T, MaskPattern pattern = MaskPattern::ALL>
JITBLAS_INLINE ::twin::FullMask CreateMask() {
    static_assert(pattern == MaskPattern::ALL, "the twin knows MaskPattern::ALL; use UpdateMask for a count");
    return {};
}

// Selects the first `count` elements of type T and takes a register's worth off `count`.
template <typename T>
JITBLAS_INLINE MaskReg UpdateMask(uint32_t& count) {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "the twin masks elements of 32 bits, and doubles");
    constexpr uint32_t lanes = VECTOR_REG_WIDTH / sizeof(T);
    const uint32_t words = count * static_cast<uint32_t>(sizeof(T) / 4);
    MaskReg mask;
    mask.all = count >= lanes;
    JITBLAS_UNROLL
    for (int i = 0; i < ::twin::kChunks; ++i) {
        mask.select[i] = reinterpret_cast<::twin::Words>(::twin::LaneNumbers() + i * ::twin::kWords < words);
    }
    count -= mask.all ? lanes : count;
    return mask;
}

template <typename T = DefaultType, LoadDist dist = LoadDist::DIST_NORM, typename R, typename A>
JITBLAS_INLINE void LoadAlign(RegTensor<R>& destination, A* address) {
    static_assert(::twin::kSame<A, R>, "a register is loaded from what it holds");
    if constexpr (dist == (sizeof(R) == 8 ? LoadDist::DIST_BRC_B64 : LoadDist::DIST_BRC_B32)) {
        JITBLAS_UNROLL
        for (auto& chunk : destination.chunk) {
            chunk = ::twin::Broadcast(*address);
        }
    } else if constexpr (dist == LoadDist::DIST_E2B_B32) {  // one element to each block of 32 bytes
        static_assert(sizeof(R) == 4, "DIST_E2B_B32 is for elements of 32 bits");
        for (int i = 0; i < ::twin::kRegisterBytes / 4; ++i) {
            destination.chunk[i / ::twin::kWords][i % ::twin::kWords] = address[i / 8];
        }
    } else {
        static_assert(dist == (sizeof(A) == 2 ? LoadDist::DIST_UNPACK_B16 : LoadDist::DIST_NORM),
                      "the twin loads 16-bit elements with DIST_UNPACK_B16, others with DIST_NORM, DIST_BRC_B32 (of "
                      "doubles DIST_BRC_B64) or DIST_E2B_B32");
        const uint8_t* from = reinterpret_cast<const uint8_t*>(address);
        constexpr int bytes = sizeof(destination.chunk[0]);
        JITBLAS_UNROLL
        for (int i = 0; i < static_cast<int>(sizeof(destination.chunk) / bytes); ++i) {
            if (::twin::kPrefetches && i * bytes % ::twin::kCacheLineBytes == 0) {
                __builtin_prefetch(from + i * bytes + ::twin::kPrefetchBytes);
            }
            destination.chunk[i] = ::twin::LoadUnaligned(destination.chunk[i], from + i * bytes);
        }
    }
}

template <typename T = DefaultType, StoreDist dist = StoreDist::DIST_NORM, typename R, typename A, typename M>
JITBLAS_INLINE void StoreAlign(A* address, RegTensor<R>& source, M& mask) {
    static_assert(::twin::kSame<A, R> && dist == (sizeof(A) == 2 ? StoreDist::DIST_PACK_B32 : StoreDist::DIST_NORM),
                  "the twin stores 16-bit elements with DIST_PACK_B32 and floats with DIST_NORM");
    if (mask.all) {
        uint8_t* to = reinterpret_cast<uint8_t*>(address);
        JITBLAS_UNROLL
        for (auto& chunk : source.chunk) {
            ::twin::StoreUnaligned(to, chunk);
            to += sizeof(chunk);
        }
    } else {
        // Copies, because a register whose address is taken would live in memory everywhere.
        const RegTensor<R> from = source;
        const MaskReg selected = mask;
        ::twin::StoreSelected(address, reinterpret_cast<const A*>(&from), selected.select);
    }
}

template <typename T, typename U, const CastTrait& trait, typename S, typename V, typename M>
JITBLAS_INLINE void Cast(S& destination, V& source, M& mask) {
    static_assert(trait.layoutMode == RegLayout::ZERO && trait.mrgMode == MaskMergeMode::ZEROING,
                  "the twin casts with RegLayout::ZERO and MaskMergeMode::ZEROING");
    constexpr bool widens = ::twin::kSame<T, float>;
    static_assert(widens ? ::twin::kIsHalf<U>
                         : ::twin::kIsHalf<T> && ::twin::kSame<U, float> && trait.roundMode == RoundMode::CAST_RINT &&
                               trait.satMode == SatMode::NO_SAT,
                  "the twin casts half and bfloat16_t to float, and back with CAST_RINT and NO_SAT");
    if constexpr (widens) {
        JITBLAS_UNROLL
        for (int i = 0; i < ::twin::kChunks; i += 2) {
            ::twin::Widen(source, i, &destination.chunk[i], &destination.chunk[i + 1]);
        }
        ::twin::ZeroUnselected(destination, mask);
    } else {
        RegTensor<float> selected = source;
        ::twin::ZeroUnselected(selected, mask);  // zero casts to zero
        JITBLAS_UNROLL
        for (int i = 0; i < ::twin::kChunks; i += 2) {
            ::twin::Narrow(destination, i, selected.chunk[i], selected.chunk[i + 1]);
        }
    }
}

template <typename T = DefaultType, typename R, typename M>
JITBLAS_INLINE void Duplicate(RegTensor<R>& destination, typename ::twin::Itself<R>::Type value, M& mask) {
    JITBLAS_UNROLL
    for (int i = 0; i < ::twin::kChunks; ++i) {
        destination.chunk[i] = ::twin::Broadcast(value);
    }
    ::twin::ZeroUnselected(destination, mask);
}

template <typename T = DefaultType, typename R, typename M>
JITBLAS_INLINE void Add(RegTensor<R>& destination, RegTensor<R>& a, RegTensor<R>& b, M& mask) {
    JITBLAS_UNROLL
    for (int i = 0; i < ::twin::kChunks; ++i) {
        destination.chunk[i] = a.chunk[i] + b.chunk[i];
    }
    ::twin::ZeroUnselected(destination, mask);
}

template <typename T = DefaultType, typename R, typename M>
JITBLAS_INLINE void Sub(RegTensor<R>& destination, RegTensor<R>& a, RegTensor<R>& b, M& mask) {
    JITBLAS_UNROLL
    for (int i = 0; i < ::twin::kChunks; ++i) {
        destination.chunk[i] = a.chunk[i] - b.chunk[i];
    }
    ::twin::ZeroUnselected(destination, mask);
}

template <typename T = DefaultType, typename R, typename M>
JITBLAS_INLINE void Mul(RegTensor<R>& destination, RegTensor<R>& a, RegTensor<R>& b, M& mask) {
    JITBLAS_UNROLL
    for (int i = 0; i < ::twin::kChunks; ++i) {
        destination.chunk[i] = a.chunk[i] * b.chunk[i];
    }
    ::twin::ZeroUnselected(destination, mask);
}

template <typename T = DefaultType, typename R, typename M>
JITBLAS_INLINE void Muls(RegTensor<R>& destination, RegTensor<R>& a, typename ::twin::Itself<R>::Type scalar, M& mask) {
    JITBLAS_UNROLL
    for (int i = 0; i < ::twin::kChunks; ++i) {
        destination.chunk[i] = a.chunk[i] * ::twin::Broadcast(scalar);
    }
    ::twin::ZeroUnselected(destination, mask);
}

template <typename T = DefaultType, typename R, typename M>
JITBLAS_INLINE void Adds(RegTensor<R>& destination, RegTensor<R>& a, typename ::twin::Itself<R>::Type scalar, M& mask) {
    JITBLAS_UNROLL
    for (int i = 0; i < ::twin::kChunks; ++i) {
        destination.chunk[i] = a.chunk[i] + ::twin::Broadcast(scalar);
    }
    ::twin::ZeroUnselected(destination, mask);
}

// destination := scalar * source + destination, rounded once.
template <typename T = DefaultType, typename R, typename M>
JITBLAS_INLINE void Axpy(RegTensor<R>& destination, RegTensor<R>& source, typename ::twin::Itself<R>::Type scalar,
                         M& mask) {
    JITBLAS_UNROLL
    for (int i = 0; i < ::twin::kChunks; ++i) {
        destination.chunk[i] =
            ::twin::FusedMultiplyAdd(source.chunk[i], ::twin::Broadcast(scalar), destination.chunk[i]);
    }
    ::twin::ZeroUnselected(destination, mask);
}

// destination := a * b + destination, rounded once.
template <typename T = DefaultType, typename R, typename M>
JITBLAS_INLINE void MulAddDst(RegTensor<R>& destination, RegTensor<R>& a, RegTensor<R>& b, M& mask) {
    JITBLAS_UNROLL
    for (int i = 0; i < ::twin::kChunks; ++i) {
        destination.chunk[i] = ::twin::FusedMultiplyAdd(a.chunk[i], b.chunk[i], destination.chunk[i]);
    }
    ::twin::ZeroUnselected(destination, mask);
}

// destination := destination * a + b, rounded once.
template <typename T = DefaultType, typename R, typename M>
JITBLAS_INLINE void MulDstAdd(RegTensor<R>& destination, RegTensor<R>& a, RegTensor<R>& b, M& mask) {
    JITBLAS_UNROLL
    for (int i = 0; i < ::twin::kChunks; ++i) {
        destination.chunk[i] = ::twin::FusedMultiplyAdd(destination.chunk[i], a.chunk[i], b.chunk[i]);
    }
    ::twin::ZeroUnselected(destination, mask);
}

}  // namespace Reg
}  // namespace AscendC

template <auto function, typename... Arguments>
JITBLAS_INLINE void asc_vf_call(Arguments... arguments) {
    function(arguments...);
}
