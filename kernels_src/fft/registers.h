// Registers of real numbers of either precision. FP64 is the twin's: the chip's vector units have none.
#pragma once

#include "kernel_operator.h"

#include "common/kernel_common.h"

using namespace AscendC;

using Real = spec::Real;
using Register = Reg::RegTensor<Real>;

constexpr bool kDouble = sizeof(Real) == 8;
#ifndef JITBLAS_TWIN
static_assert(!kDouble, "complex128 is for the host: vector units of the chip have no FP64");
#endif

constexpr uint32_t kLanes = VECTOR_REG_WIDTH / sizeof(Real);
constexpr uint32_t kDataBlock = 32 / sizeof(Real);  // what a register is stored in parts of

// Generated, for the sizes that a kernel needs.
template <uint32_t points>
struct Codelet;
template <uint32_t points>
struct InterleavedCodelet;
template <uint32_t rows>
struct Transposer;

// How two registers are loaded from, and stored to, complex numbers, and one from a single real number.
#ifdef JITBLAS_TWIN
constexpr Reg::LoadDist kLoadPairs = kDouble ? Reg::LoadDist::DIST_DINTLV_B64 : Reg::LoadDist::DIST_DINTLV_B32;
constexpr Reg::StoreDist kStorePairs = kDouble ? Reg::StoreDist::DIST_INTLV_B64 : Reg::StoreDist::DIST_INTLV_B32;
constexpr Reg::LoadDist kLoadOne = kDouble ? Reg::LoadDist::DIST_BRC_B64 : Reg::LoadDist::DIST_BRC_B32;
#else
constexpr Reg::LoadDist kLoadPairs = Reg::LoadDist::DIST_DINTLV_B32;
constexpr Reg::StoreDist kStorePairs = Reg::StoreDist::DIST_INTLV_B32;
constexpr Reg::LoadDist kLoadOne = Reg::LoadDist::DIST_BRC_B32;
#endif

using AllLanes = decltype(Reg::CreateMask<Real, Reg::MaskPattern::ALL>());

// Real and imaginary parts of the complex numbers at an address. Those of an inverse transform change places, here and
// where results are stored: swap(fft(swap(x))) is the inverse of x.
__simd_callee__ inline void LoadNumbers(Register& re, Register& im, __ubuf__ Real* from) {
    Reg::LoadAlign<Real, kLoadPairs>(spec::kInverse ? im : re, spec::kInverse ? re : im, from);
}

// Asks for as many numbers, `ahead` reals from an address.
__simd_callee__ inline void PrefetchNumbers(__ubuf__ Real* from, int64_t ahead) {
    static_cast<void>(from), static_cast<void>(ahead);
    JITBLAS_PREFETCH(from, ahead);
    JITBLAS_PREFETCH(from, ahead + static_cast<int64_t>(kLanes));
}

// The same for a later stage.
__simd_callee__ inline void PrefetchFar(__ubuf__ Real* from, int64_t ahead) {
    static_cast<void>(from), static_cast<void>(ahead);
    JITBLAS_PREFETCH_FAR(from, ahead);
    JITBLAS_PREFETCH_FAR(from, ahead + static_cast<int64_t>(kLanes));
}

// The first `count` of a register's complex numbers, at most kLanes. `past`: where all of them are whole cache lines,
// and nobody reads them soon, they go past caches, which only the twin has.
template <uint32_t count>
__simd_callee__ inline void StoreNumbers(__ubuf__ Real* to, Register& re, Register& im, bool past, AllLanes& all) {
    static_cast<void>(past);
    Register& first = spec::kInverse ? im : re;
    Register& second = spec::kInverse ? re : im;
    if constexpr (count < kLanes) {
        uint32_t reals = 2 * count;
        Register low;
        Register high;
        Reg::Interleave(low, high, first, second);
        Reg::MaskReg mask = Reg::UpdateMask<Real>(reals);
        Reg::StoreAlign(to, low, mask);
        if constexpr (2 * count > kLanes) {
            mask = Reg::UpdateMask<Real>(reals);
            Reg::StoreAlign(to + kLanes, high, mask);
        }
    } else {
#ifdef JITBLAS_TWIN
        if (past) {
            ::twin::StorePastCaches(to, first, second);
            return;
        }
#endif
        Reg::StoreAlign<Real, kStorePairs>(to, first, second, all);
    }
}

// One real number to all lanes.
__simd_callee__ inline void LoadOne(Register& to, __ubuf__ Real* from) {
    Reg::LoadAlign<Real, kLoadOne>(to, from);
}

// The first `count` lanes of a register.
template <uint32_t count>
__simd_callee__ inline void StoreLanes(__ubuf__ Real* to, Register& from, AllLanes& all) {
    if constexpr (count < kLanes) {
        uint32_t left = count;
        Reg::MaskReg mask = Reg::UpdateMask<Real>(left);
        Reg::StoreAlign(to, from, mask);
    } else {
        Reg::StoreAlign(to, from, all);
    }
}

// (re, im) := (re, im) * (cosine, sine), in place.
__simd_callee__ inline void Multiply(Register& re, Register& im, Register& cosine, Register& sine, AllLanes& all) {
    Register crossed;
    Reg::Mul(crossed, im, sine, all);
    Reg::Neg(crossed, crossed, all);
    Reg::Mul(im, im, cosine, all);
    Reg::MulAddDst(im, re, sine, all);
    Reg::MulDstAdd(re, cosine, crossed, all);
}
