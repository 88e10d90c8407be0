// What scalar codelets are made of.
#pragma once

#include "kernel_operator.h"
#include "simt_api/asc_simt.h"

#include "common/kernel_common.h"

using namespace AscendC;

using Real = spec::Real;

// Generated, for the size that a kernel is for.
template <uint32_t points>
struct ScalarCodelet;

// a * b + c, rounded once.
__simt_callee__ inline float FusedMultiplyAdd(float a, float b, float c) {
    return fmaf(a, b, c);
}

#ifdef JITBLAS_TWIN
__simt_callee__ inline double FusedMultiplyAdd(double a, double b, double c) {
    return __builtin_fma(a, b, c);
}
#else
static_assert(sizeof(Real) == 4, "complex128 is for the host: SIMT threads of the chip have no FP64");
#endif
