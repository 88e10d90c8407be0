// Complex sums that lose nothing: a register of partial sums for the real parts and one for the imaginary parts, each
// with a second register of what rounding took from it (TwoSum). What the kernels of this folder share, and the kernel
// that adds up what blocks or threads have left.
#pragma once

#include "kernel_operator.h"

#include "common/kernel_common.h"

using namespace AscendC;

constexpr uint32_t kLanes = VECTOR_REG_WIDTH / sizeof(float);
constexpr uint16_t kHalvings = 6;  // of the lanes, until one is left
static_assert(1u << kHalvings == kLanes, "a register's lanes");
constexpr uint32_t kStep = 2 * kLanes;  // floats of kLanes complex numbers
constexpr uint32_t kBuffers = 2;

using Floats = Reg::RegTensor<float>;

// The four registers in UB, between vector functions.
constexpr uint32_t kReal = 0;
constexpr uint32_t kRealLost = kLanes;
constexpr uint32_t kImaginary = 2 * kLanes;
constexpr uint32_t kImaginaryLost = 3 * kLanes;
constexpr uint32_t kSumFloats = 4 * kLanes;

__simd_callee__ inline void LoadSums(__ubuf__ float* sums, Floats& real, Floats& real_lost, Floats& imaginary,
                                     Floats& imaginary_lost) {
    Reg::LoadAlign(real, sums + kReal);
    Reg::LoadAlign(real_lost, sums + kRealLost);
    Reg::LoadAlign(imaginary, sums + kImaginary);
    Reg::LoadAlign(imaginary_lost, sums + kImaginaryLost);
}

__simd_callee__ inline void StoreSums(__ubuf__ float* sums, Floats& real, Floats& real_lost, Floats& imaginary,
                                      Floats& imaginary_lost, Reg::MaskReg& all) {
    Reg::StoreAlign(sums + kReal, real, all);
    Reg::StoreAlign(sums + kRealLost, real_lost, all);
    Reg::StoreAlign(sums + kImaginary, imaginary, all);
    Reg::StoreAlign(sums + kImaginaryLost, imaginary_lost, all);
}

// sum := a + b, and lost grows by what that rounding took; a may be sum.
__simd_callee__ inline void AddExactly(Floats& sum, Floats& lost, Floats& a, Floats& b, Reg::MaskReg& mask) {
    Floats total;
    Floats added;
    Floats before;
    Reg::Add(total, a, b, mask);
    Reg::Sub(added, total, a, mask);
    Reg::Sub(before, total, added, mask);
    Reg::Sub(before, a, before, mask);
    Reg::Sub(added, b, added, mask);
    Reg::Add(added, added, before, mask);
    Reg::Add(lost, lost, added, mask);
    Reg::Add(sum, a, b, mask);
}

// total := the sum of all lanes, in the first one. Neighbours are added until one is left. Infinities leave a NaN in
// `lost`, which then does not count.
__simd_callee__ inline void AddLanes(Floats& total, Floats& sum, Floats& lost, Reg::MaskReg& all) {
    Reg::MaskReg counts;
    Floats even;
    Floats odd;
    Floats even_lost;
    Floats odd_lost;
    for (uint16_t i = 0; i < kHalvings; ++i) {
        Reg::DeInterleave(even_lost, odd_lost, lost, lost);
        Reg::Add(lost, even_lost, odd_lost, all);
        Reg::DeInterleave(even, odd, sum, sum);
        AddExactly(sum, lost, even, odd, all);
    }
    Reg::Compare<float, CMPMODE::EQ>(counts, lost, lost, all);
    Reg::Add(even, sum, lost, all);
    Reg::Select(total, even, sum, counts);
}

__simd_vf__ inline void ClearSums(__ubuf__ float* sums) {
    Reg::MaskReg all = Reg::CreateMask<float, Reg::MaskPattern::ALL>();
    Floats zero;
    Reg::Duplicate(zero, 0.0f, all);
    Reg::StoreAlign(sums + kReal, zero, all);
    Reg::StoreAlign(sums + kRealLost, zero, all);
    Reg::StoreAlign(sums + kImaginary, zero, all);
    Reg::StoreAlign(sums + kImaginaryLost, zero, all);
}

// The one complex number that the sums are, at the start of a register's worth of memory.
__simd_vf__ inline void FinishSums(__ubuf__ float* out, __ubuf__ float* sums) {
    Reg::MaskReg all = Reg::CreateMask<float, Reg::MaskPattern::ALL>();
    Floats sum;
    Floats lost;
    Floats real;
    Floats imaginary;
    Reg::LoadAlign(sum, sums + kReal);
    Reg::LoadAlign(lost, sums + kRealLost);
    AddLanes(real, sum, lost, all);
    Reg::LoadAlign(sum, sums + kImaginary);
    Reg::LoadAlign(lost, sums + kImaginaryLost);
    AddLanes(imaginary, sum, lost, all);
    Floats low;
    Floats high;
    Reg::Interleave(low, high, real, imaginary);
    Reg::StoreAlign(out, low, all);
}

// Sums of one core: cleared, added to by the kernel's own vector functions, and written as one complex number.
class Sums {
public:
    __aicore__ inline explicit Sums(TPipe& pipe) {
        pipe.InitBuffer(sums_, kSumFloats * sizeof(float));
        pipe.InitBuffer(out_, 1, VECTOR_REG_WIDTH);
        asc_vf_call<ClearSums>(Address());
    }

    __aicore__ inline __ubuf__ float* Address() { return (__ubuf__ float*)sums_.Get<float>().GetPhyAddr(); }

    __aicore__ inline void Write(GlobalTensor<float> result) {
        LocalTensor<float> out = out_.AllocTensor<float>();
        asc_vf_call<FinishSums>((__ubuf__ float*)out.GetPhyAddr(), Address());
        out_.EnQue(out);
        out = out_.DeQue<float>();
        DataCopyPad(result, out, DataCopyExtParams{1, 2 * sizeof(float), 0, 0, 0});
        out_.FreeTensor(out);
    }

private:
    TBuf<TPosition::VECCALC> sums_;
    TQue<TPosition::VECOUT, 1> out_;
};

// One pass over complex numbers: `full` whole registers, then `rest` numbers in `partial` (0 or 1) masked register.
__simd_vf__ inline void AddNumbers(__ubuf__ float* sums, __ubuf__ float* numbers, uint16_t full, uint16_t partial,
                                   uint32_t rest) {
    Reg::MaskReg all = Reg::CreateMask<float, Reg::MaskPattern::ALL>();
    Floats real;
    Floats real_lost;
    Floats imaginary;
    Floats imaginary_lost;
    Floats re;
    Floats im;
    LoadSums(sums, real, real_lost, imaginary, imaginary_lost);
    for (uint16_t i = 0; i < full; ++i) {
        Reg::LoadAlign<float, Reg::LoadDist::DIST_DINTLV_B32>(re, im, numbers + i * kStep);
        AddExactly(real, real_lost, real, re, all);
        AddExactly(imaginary, imaginary_lost, imaginary, im, all);
    }
    Reg::MaskReg some = Reg::UpdateMask<float>(rest);
    for (uint16_t i = 0; i < partial; ++i) {
        Reg::LoadAlign<float, Reg::LoadDist::DIST_DINTLV_B32>(re, im, numbers + full * kStep);
        Reg::Adds(re, re, 0.0f, some);  // zero where no number is
        Reg::Adds(im, im, 0.0f, some);
        AddExactly(real, real_lost, real, re, all);
        AddExactly(imaginary, imaginary_lost, imaginary, im, all);
    }
    StoreSums(sums, real, real_lost, imaginary, imaginary_lost, all);
}

constexpr uint32_t kNumbersAtOnce = 1024;

// The second launch: exactly the numbers that the first one wrote become the result.
extern "C" __global__ __aicore__ void cdotc_sum(GM_ADDR numbers, GM_ADDR result, uint32_t count) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    TPipe pipe;
    TQue<TPosition::VECIN, 1> queue;
    GlobalTensor<float> in;
    GlobalTensor<float> out;
    in.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(numbers), 2 * static_cast<uint64_t>(count));
    out.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(result), 2);
    pipe.InitBuffer(queue, kBuffers, 2 * kNumbersAtOnce * sizeof(float));
    Sums sums(pipe);
    for (uint32_t done = 0; done < count; done += kNumbersAtOnce) {
        const uint32_t size = count - done < kNumbersAtOnce ? count - done : kNumbersAtOnce;
        const uint32_t bytes = 2 * size * static_cast<uint32_t>(sizeof(float));
        LocalTensor<float> tile = queue.AllocTensor<float>();
        DataCopyPad(tile, in[2 * done], DataCopyExtParams{1, bytes, 0, 0, 0},
                    DataCopyPadExtParams<float>{false, 0, 0, 0});
        queue.EnQue(tile);
        tile = queue.DeQue<float>();
        const uint32_t rest = size % kLanes;
        asc_vf_call<AddNumbers>(sums.Address(), (__ubuf__ float*)tile.GetPhyAddr(),
                                static_cast<uint16_t>(size / kLanes), static_cast<uint16_t>(rest != 0), rest);
        queue.FreeTensor(tile);
    }
    sums.Write(out);
}
