// One machine vector, written with GNU vector extensions so that g++, clang and zig compile it alike. A 256-byte
// register of the chip is kChunks of these. Kernels whose results do not depend on a register's width may be built with
// narrower ones (JITBLAS_REGISTER_BYTES), of which more fit a CPU's.
#pragma once

#include <stdint.h>

#include "core.h"
#include "half.h"

#define JITBLAS_UNROLL _Pragma("GCC unroll 16")

namespace twin {

#if defined(__AVX512F__)
constexpr int kChunkBytes = 64;
#elif defined(__AVX__)
constexpr int kChunkBytes = 32;
#else
constexpr int kChunkBytes = 16;
#endif
#ifdef JITBLAS_REGISTER_BYTES
constexpr int kRegisterBytes = JITBLAS_REGISTER_BYTES;
#else
constexpr int kRegisterBytes = 256;
#endif
static_assert(kRegisterBytes % kChunkBytes == 0, "a register is whole machine vectors");
constexpr int kChunks = kRegisterBytes / kChunkBytes;
constexpr int kCacheLineBytes = 64;
// How far ahead a vector function's loads ask for data. A bound tensor streams from memory, and hardware prefetchers
// stop at the page's end; 2 to 8 KiB gain 1 to 4 percent there and cost nothing measurable elsewhere.
constexpr int kPrefetchBytes = 2048;
constexpr bool kPrefetches = kRegisterBytes == 256;     // kernels with narrower registers do so by themselves
constexpr uint64_t kPastCachesBytes = 4 * 1024 * 1024;  // a run that large displaces what a core's caches hold
constexpr int kWords = kChunkBytes / 4;                 // 32-bit elements of a chunk

typedef float Floats __attribute__((vector_size(kChunkBytes)));
typedef double Doubles __attribute__((vector_size(kChunkBytes)));
typedef int32_t Ints __attribute__((vector_size(kChunkBytes)));
typedef uint32_t Words __attribute__((vector_size(kChunkBytes)));
typedef uint16_t Shorts __attribute__((vector_size(kChunkBytes / 2)));  // as many as there are words
typedef uint16_t FullShorts __attribute__((vector_size(kChunkBytes)));

// Element alignment only: a bound tensor starts where the user's array does. The first argument is there for its type.
template <typename V>
JITBLAS_INLINE V LoadUnaligned(const V&, const void* address) {
    typedef V Unaligned __attribute__((aligned(1), may_alias));
    return *static_cast<const Unaligned*>(address);
}

template <typename V>
JITBLAS_INLINE void StoreUnaligned(void* address, const V& value) {
    typedef V Unaligned __attribute__((aligned(1), may_alias));
    *static_cast<Unaligned*>(address) = value;
}

// The same past caches, to a multiple of the vector's size. What follows on another thread needs PastCachesEnd first.
template <typename V>
JITBLAS_INLINE void StorePast(void* address, const V& value) {
#if defined(__clang__)
    __builtin_nontemporal_store(value, static_cast<V*>(address));
#elif defined(__AVX512F__)
    typedef float Vector __attribute__((vector_size(64)));
    __builtin_ia32_movntps512(static_cast<float*>(address), reinterpret_cast<Vector>(value));
#elif defined(__AVX__)
    typedef float Vector __attribute__((vector_size(32)));
    __builtin_ia32_movntps256(static_cast<float*>(address), reinterpret_cast<Vector>(value));
#else
    StoreUnaligned(address, value);
#endif
}

JITBLAS_INLINE void PastCachesEnd() {
#if defined(__x86_64__)
    __builtin_ia32_sfence();
#else
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

// Whether that can be done and pays: what is written is then read from memory, or not at all.
JITBLAS_INLINE bool GoesPastCaches(const void* address, uint64_t bytes) {
    return bytes >= kPastCachesBytes && reinterpret_cast<uintptr_t>(address) % kCacheLineBytes == 0;
}

JITBLAS_INLINE Floats Broadcast(float value) {
    return value - Floats{};  // x - 0 is x, signed zeros and NaN included
}

JITBLAS_INLINE Doubles Broadcast(double value) {
    return value - Doubles{};
}

JITBLAS_INLINE Words LaneNumbers() {
    Words lanes;
    for (int i = 0; i < kWords; ++i) {
        lanes[i] = static_cast<uint32_t>(i);
    }
    return lanes;
}

// A shuffle of two vectors by constant indices; GCC before 12 has it only under an older name.
#if defined(__clang__) || __GNUC__ >= 12
#define JITBLAS_SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define JITBLAS_SHUFFLE(a, b, ...) __builtin_shuffle(a, b, decltype((a) < (b)){__VA_ARGS__})
#endif

// a * b + c with one rounding. The flag -ffp-contract=off stays on for everything else.
JITBLAS_INLINE Floats FusedMultiplyAdd(Floats a, Floats b, Floats c) {
#if defined(__clang__) && JITBLAS_HAS_BUILTIN(__builtin_elementwise_fma)
    return __builtin_elementwise_fma(a, b, c);
#elif defined(__AVX512F__) && !defined(__clang__)
    return __builtin_ia32_vfmaddps512_mask(a, b, c, -1, 4);
#elif defined(__AVX__) && defined(__FMA__) && !defined(__clang__)
    return __builtin_ia32_vfmaddps256(a, b, c);
#else
    Floats result;
    for (int i = 0; i < kWords; ++i) {
        result[i] = __builtin_fmaf(a[i], b[i], c[i]);
    }
    return result;
#endif
}

JITBLAS_INLINE Doubles FusedMultiplyAdd(Doubles a, Doubles b, Doubles c) {
#if defined(__clang__) && JITBLAS_HAS_BUILTIN(__builtin_elementwise_fma)
    return __builtin_elementwise_fma(a, b, c);
#elif defined(__AVX512F__) && !defined(__clang__)
    return __builtin_ia32_vfmaddpd512_mask(a, b, c, -1, 4);
#elif defined(__AVX__) && defined(__FMA__) && !defined(__clang__)
    return __builtin_ia32_vfmaddpd256(a, b, c);
#else
    Doubles result;
    for (int i = 0; i < kWords / 2; ++i) {
        result[i] = __builtin_fma(a[i], b[i], c[i]);
    }
    return result;
#endif
}

// Whether an element of either is NaN; where no instruction answers that at once, yes, which is always safe.
JITBLAS_INLINE bool MayHoldNan(Floats a, Floats b) {
#if defined(__AVX512F__) && JITBLAS_HAS_BUILTIN(__builtin_ia32_cmpps512_mask)
    return __builtin_ia32_cmpps512_mask(a, b, 3, -1, 4) != 0;
#elif defined(__AVX__) && !defined(__AVX512F__) && JITBLAS_HAS_BUILTIN(__builtin_ia32_cmpps256)
    return __builtin_ia32_movmskps256(__builtin_ia32_cmpps256(a, b, 3)) != 0;
#else
    static_cast<void>(a), static_cast<void>(b);
    return true;
#endif
}

// BF16 is the high half of an FP32 word, so a chunk of 16-bit elements becomes two of words, and back, by one shuffle
// each: the low half of `bits`, then the high half.
template <int... I>
JITBLAS_INLINE void FloatsFromBf16(FullShorts bits, Floats* low, Floats* high, Indices<I...>) {
    const FullShorts zero = {};
    constexpr int kShorts = 2 * kWords;
    *low = reinterpret_cast<Floats>(JITBLAS_SHUFFLE(zero, bits, (I % 2 == 0 ? 0 : kShorts + I / 2)...));
    *high = reinterpret_cast<Floats>(JITBLAS_SHUFFLE(zero, bits, (I % 2 == 0 ? 0 : kShorts + kWords + I / 2)...));
}

template <int... I>
JITBLAS_INLINE FullShorts HighHalves(Words low, Words high, Indices<I...>) {
    return JITBLAS_SHUFFLE(reinterpret_cast<FullShorts>(low), reinterpret_cast<FullShorts>(high), (2 * I + 1)...);
}

JITBLAS_INLINE Words RoundToHighHalf(Words bits) {
    return bits + 0x7fffu + ((bits >> 16) & 1u);
}

JITBLAS_INLINE Words KeepNan(Floats value, Words rounded) {
    const Words nan = reinterpret_cast<Words>(value != value);
    return (nan & (reinterpret_cast<Words>(value) | 0x400000u)) | (~nan & rounded);
}

JITBLAS_INLINE FullShorts Bf16FromFloats(Floats low, Floats high) {
    Words rounded_low = RoundToHighHalf(reinterpret_cast<Words>(low));
    Words rounded_high = RoundToHighHalf(reinterpret_cast<Words>(high));
    if (__builtin_expect(MayHoldNan(low, high), 0)) {
        rounded_low = KeepNan(low, rounded_low);
        rounded_high = KeepNan(high, rounded_high);
    }
    return HighHalves(rounded_low, rounded_high, MakeIndices<2 * kWords>());
}

#if defined(__AVX512F__) && JITBLAS_HAS_BUILTIN(__builtin_ia32_vcvtph2ps512_mask)
typedef short HalfArgument __attribute__((vector_size(32)));

JITBLAS_INLINE Floats FloatsFromHalf(Shorts bits) {
    return __builtin_ia32_vcvtph2ps512_mask(reinterpret_cast<HalfArgument>(bits), Floats{}, -1, 4);
}

JITBLAS_INLINE Shorts HalfFromFloats(Floats value) {
    return reinterpret_cast<Shorts>(__builtin_ia32_vcvtps2ph512_mask(value, 0, HalfArgument{}, -1));
}
#elif defined(__F16C__) && !defined(__AVX512F__) && JITBLAS_HAS_BUILTIN(__builtin_ia32_vcvtph2ps256)
typedef short HalfArgument __attribute__((vector_size(16)));

JITBLAS_INLINE Floats FloatsFromHalf(Shorts bits) {
    return __builtin_ia32_vcvtph2ps256(reinterpret_cast<HalfArgument>(bits));
}

JITBLAS_INLINE Shorts HalfFromFloats(Floats value) {
    return reinterpret_cast<Shorts>(__builtin_ia32_vcvtps2ph256(value, 0));
}
#elif defined(JITBLAS_NATIVE_FLOAT16)
typedef JITBLAS_NATIVE_FLOAT16 Halves __attribute__((vector_size(kChunkBytes / 2)));

JITBLAS_INLINE Floats FloatsFromHalf(Shorts bits) {
    return __builtin_convertvector(reinterpret_cast<Halves>(bits), Floats);
}

JITBLAS_INLINE Shorts HalfFromFloats(Floats value) {
    return reinterpret_cast<Shorts>(__builtin_convertvector(value, Halves));
}
#else
JITBLAS_INLINE Floats FloatsFromHalf(Shorts bits) {
    Floats result;
    for (int i = 0; i < kWords; ++i) {
        result[i] = FloatFromHalf(bits[i]);
    }
    return result;
}

JITBLAS_INLINE Shorts HalfFromFloats(Floats value) {
    Shorts result;
    for (int i = 0; i < kWords; ++i) {
        result[i] = HalfFromFloat(value[i]);
    }
    return result;
}
#endif

}  // namespace twin
