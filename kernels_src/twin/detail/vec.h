// The basic vector instructions on UB tensors, count form. Each is one pass over UB; arithmetic kernels are written as
// vector functions (reg.h), which need one pass in all.
#pragma once

#include "reg.h"

namespace AscendC {

template <typename T>
JITBLAS_INLINE void Duplicate(const LocalTensor<T>& destination, T value, int32_t count) {
    T* to = destination.GetPhyAddr();
    for (int32_t i = 0; i < count; ++i) {
        to[i] = value;
    }
}

#define JITBLAS_BINARY(Name, expression)                                                     \
    template <typename T>                                                                    \
    JITBLAS_INLINE void Name(const LocalTensor<T>& destination, const LocalTensor<T>& first, \
                             const LocalTensor<T>& second, int32_t count) {                  \
        T* to = destination.GetPhyAddr();                                                    \
        const T* x = first.GetPhyAddr();                                                     \
        const T* y = second.GetPhyAddr();                                                    \
        for (int32_t i = 0; i < count; ++i) {                                                \
            const T a = x[i];                                                                \
            const T b = y[i];                                                                \
            to[i] = static_cast<T>(expression);                                              \
        }                                                                                    \
    }

JITBLAS_BINARY(Add, a + b)
JITBLAS_BINARY(Sub, a - b)
JITBLAS_BINARY(Mul, a* b)
JITBLAS_BINARY(Div, a / b)
JITBLAS_BINARY(Max, a > b ? a : b)
JITBLAS_BINARY(Min, a < b ? a : b)
#undef JITBLAS_BINARY

#define JITBLAS_SCALAR(Name, expression)                                                                \
    template <typename T>                                                                               \
    JITBLAS_INLINE void Name(const LocalTensor<T>& destination, const LocalTensor<T>& source, T scalar, \
                             int32_t count) {                                                           \
        T* to = destination.GetPhyAddr();                                                               \
        const T* from = source.GetPhyAddr();                                                            \
        for (int32_t i = 0; i < count; ++i) {                                                           \
            const T a = from[i];                                                                        \
            to[i] = static_cast<T>(expression);                                                         \
        }                                                                                               \
    }

JITBLAS_SCALAR(Adds, a + scalar)
JITBLAS_SCALAR(Muls, a* scalar)
#undef JITBLAS_SCALAR

// destination := scalar * source + destination, rounded once.
JITBLAS_INLINE void Axpy(const LocalTensor<float>& destination, const LocalTensor<float>& source, float scalar,
                         int32_t count) {
    float* to = destination.GetPhyAddr();
    const float* from = source.GetPhyAddr();
    for (int32_t i = 0; i < count; ++i) {
        to[i] = __builtin_fmaf(from[i], scalar, to[i]);
    }
}

// half and bfloat16_t to float (exact, CAST_NONE) and back (CAST_RINT; CAST_NONE means the same there).
template <typename T, typename U>
JITBLAS_INLINE void Cast(const LocalTensor<T>& destination, const LocalTensor<U>& source, RoundMode mode,
                         uint32_t count) {
    if (mode != RoundMode::CAST_NONE && mode != RoundMode::CAST_RINT) {
        ::twin::Fail("Cast: the twin rounds with CAST_NONE and CAST_RINT only");
    }
    T* to = destination.GetPhyAddr();
    const U* from = source.GetPhyAddr();
    for (uint32_t i = 0; i < count; ++i) {
        to[i] = static_cast<T>(static_cast<float>(from[i]));
    }
}

}  // namespace AscendC
