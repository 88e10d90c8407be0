// FP16 and BF16: storage types with correctly rounded conversions (round to nearest, ties to even). GCC before 13 has
// no usable __bf16 and not every compiler has _Float16, so both are our own.
#pragma once

#include <stdint.h>

#include "core.h"

// The compiler converts this type by an instruction, not by a library call. GCC before 13 has no _Float16 in C++,
// though it defines its limits; on aarch64 it has __fp16.
#if defined(__aarch64__) && !defined(__clang__) && __GNUC__ < 13
#define JITBLAS_NATIVE_FLOAT16 __fp16
#elif defined(__FLT16_MAX__) && (defined(__F16C__) || defined(__aarch64__))
#define JITBLAS_NATIVE_FLOAT16 _Float16
#endif

namespace twin {

JITBLAS_INLINE uint32_t FloatBits(float value) {
    uint32_t bits;
    __builtin_memcpy(&bits, &value, sizeof(bits));
    return bits;
}

JITBLAS_INLINE float FloatFromBits(uint32_t bits) {
    float value;
    __builtin_memcpy(&value, &bits, sizeof(value));
    return value;
}

JITBLAS_INLINE uint16_t Bf16FromFloat(float value) {
    const uint32_t bits = FloatBits(value);
    const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    const uint32_t quiet = (bits >> 16) | 0x40u;  // adding to a NaN could turn it into infinity
    return static_cast<uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? quiet : rounded);
}

JITBLAS_INLINE float FloatFromBf16(uint16_t bits) {
    return FloatFromBits(static_cast<uint32_t>(bits) << 16);
}

JITBLAS_INLINE uint16_t HalfFromFloat(float value) {
    const uint32_t bits = FloatBits(value);
    const uint32_t sign = (bits >> 16) & 0x8000u;
    const uint32_t magnitude = bits & 0x7fffffffu;
    uint32_t result;
    if (magnitude > 0x7f800000u) {
        result = 0x7e00u | ((magnitude >> 13) & 0x3ffu);
    } else if (magnitude >= 0x477ff000u) {  // 65520 and above round to infinity
        result = 0x7c00u;
    } else if (magnitude < 0x38800000u) {  // subnormal: let the FPU's own rounding place the last bit
        result = FloatBits(FloatFromBits(magnitude) + 0.5f) - 0x3f000000u;
    } else {
        result = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
    }
    return static_cast<uint16_t>(sign | result);
}

JITBLAS_INLINE float FloatFromHalf(uint16_t bits) {
    const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
    const uint32_t magnitude = static_cast<uint32_t>(bits & 0x7fffu) << 13;
    if (magnitude >= 0x0f800000u) {  // infinity, NaN (made quiet)
        const uint32_t quiet = magnitude > 0x0f800000u ? 0x00400000u : 0u;
        return FloatFromBits(sign | 0x70000000u | magnitude | quiet);
    }
    // Scaling by 2^112 moves the exponent, subnormals included, exactly.
    return FloatFromBits(sign | FloatBits(FloatFromBits(magnitude) * 0x1p112f));
}

}  // namespace twin

struct half {
    uint16_t bits;

    half() = default;
    explicit JITBLAS_INLINE half(float value);
    JITBLAS_INLINE operator float() const;
};

#if defined(__F16C__) && JITBLAS_HAS_BUILTIN(__builtin_ia32_vcvtps2ph) && JITBLAS_HAS_BUILTIN(__builtin_ia32_vcvtph2ps)

namespace twin {
typedef float F16cFloats __attribute__((vector_size(16)));
typedef short F16cHalves __attribute__((vector_size(16)));
}  // namespace twin

JITBLAS_INLINE half::half(float value)
    : bits(static_cast<uint16_t>(__builtin_ia32_vcvtps2ph(::twin::F16cFloats{value}, 0)[0])) {}

JITBLAS_INLINE half::operator float() const {
    return __builtin_ia32_vcvtph2ps(::twin::F16cHalves{static_cast<short>(bits)})[0];
}

#elif defined(JITBLAS_NATIVE_FLOAT16)

JITBLAS_INLINE half::half(float value) {
    const JITBLAS_NATIVE_FLOAT16 narrow = static_cast<JITBLAS_NATIVE_FLOAT16>(value);
    __builtin_memcpy(&bits, &narrow, sizeof(bits));
}

JITBLAS_INLINE half::operator float() const {
    JITBLAS_NATIVE_FLOAT16 narrow;
    __builtin_memcpy(&narrow, &bits, sizeof(bits));
    return static_cast<float>(narrow);
}

#else

JITBLAS_INLINE half::half(float value) : bits(::twin::HalfFromFloat(value)) {}

JITBLAS_INLINE half::operator float() const {
    return ::twin::FloatFromHalf(bits);
}

#endif

struct bfloat16_t {
    uint16_t bits;

    bfloat16_t() = default;
    explicit JITBLAS_INLINE bfloat16_t(float value) : bits(::twin::Bf16FromFloat(value)) {}
    JITBLAS_INLINE operator float() const { return ::twin::FloatFromBf16(bits); }
};
