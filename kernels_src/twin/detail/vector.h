// One machine vector, written with GNU vector extensions so that g++, clang and zig compile it alike. A 256-byte
// register of the chip is kChunks of these.
#pragma once

#include <stdint.h>

#include "half.h"

namespace twin {

#if defined(__AVX512F__)
constexpr int kChunkBytes = 64;
#elif defined(__AVX__)
constexpr int kChunkBytes = 32;
#else
constexpr int kChunkBytes = 16;
#endif
constexpr int kRegisterBytes = 256;
constexpr int kChunks = kRegisterBytes / kChunkBytes;
constexpr int kWords = kChunkBytes / 4;  // 32-bit elements of a chunk

typedef float Floats __attribute__((vector_size(kChunkBytes)));
typedef int32_t Ints __attribute__((vector_size(kChunkBytes)));
typedef uint32_t Words __attribute__((vector_size(kChunkBytes)));
typedef uint16_t Shorts __attribute__((vector_size(kChunkBytes / 2)));   // as many as there are words
typedef uint16_t FullShorts __attribute__((vector_size(kChunkBytes)));

// Element alignment only: a bound tensor starts where the user's array does.
typedef Words UnalignedWords __attribute__((aligned(1), may_alias));
typedef Shorts UnalignedShorts __attribute__((aligned(1), may_alias));

JITBLAS_INLINE Words LoadWords(const void* address) {
    return *static_cast<const UnalignedWords*>(address);
}

JITBLAS_INLINE void StoreWords(void* address, Words value) {
    *static_cast<UnalignedWords*>(address) = value;
}

JITBLAS_INLINE Shorts LoadShorts(const void* address) {
    return *static_cast<const UnalignedShorts*>(address);
}

JITBLAS_INLINE void StoreShorts(void* address, Shorts value) {
    *static_cast<UnalignedShorts*>(address) = value;
}

JITBLAS_INLINE Floats Broadcast(float value) {
    return value - Floats{};  // x - 0 is x, signed zeros and NaN included
}

JITBLAS_INLINE Words LaneNumbers() {
    Words lanes;
    for (int i = 0; i < kWords; ++i) {
        lanes[i] = static_cast<uint32_t>(i);
    }
    return lanes;
}

JITBLAS_INLINE Words Widen(Shorts value) {
    return __builtin_convertvector(value, Words);
}

JITBLAS_INLINE Shorts Narrow(Words value) {
    return __builtin_convertvector(value, Shorts);
}

#if defined(__has_builtin)
#if __has_builtin(__builtin_elementwise_fma)
#define JITBLAS_ELEMENTWISE_FMA 1
#endif
#endif

// a * b + c with one rounding. The flag -ffp-contract=off stays on for everything else.
JITBLAS_INLINE Floats FusedMultiplyAdd(Floats a, Floats b, Floats c) {
#if defined(JITBLAS_ELEMENTWISE_FMA)
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

JITBLAS_INLINE Floats FloatsFromBf16(Shorts bits) {
    return reinterpret_cast<Floats>(Widen(bits) << 16);
}

JITBLAS_INLINE Shorts Bf16FromFloats(Floats value) {
    const Words bits = reinterpret_cast<Words>(value);
    const Words rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
    const Words quiet = bits | 0x400000u;
    const Words nan = reinterpret_cast<Words>(value != value);
    return Narrow(((nan & quiet) | (~nan & rounded)) >> 16);
}

#if defined(__AVX512F__)
typedef short HalfArgument __attribute__((vector_size(32)));

JITBLAS_INLINE Floats FloatsFromHalf(Shorts bits) {
    return __builtin_ia32_vcvtph2ps512_mask(reinterpret_cast<HalfArgument>(bits), Floats{}, -1, 4);
}

JITBLAS_INLINE Shorts HalfFromFloats(Floats value) {
    return reinterpret_cast<Shorts>(__builtin_ia32_vcvtps2ph512_mask(value, 0, HalfArgument{}, -1));
}
#elif defined(__AVX__) && defined(__F16C__)
typedef short HalfArgument __attribute__((vector_size(16)));

JITBLAS_INLINE Floats FloatsFromHalf(Shorts bits) {
    return __builtin_ia32_vcvtph2ps256(reinterpret_cast<HalfArgument>(bits));
}

JITBLAS_INLINE Shorts HalfFromFloats(Floats value) {
    return reinterpret_cast<Shorts>(__builtin_ia32_vcvtps2ph256(value, 0));
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
