// Phase 0: A becomes real planes, A_re, A_im and what the products need besides: -A_im or A_re - A_im. Vector cores own
// equal runs of A's elements. Each leaves a flag that says whether it saw a number which only the exact kernel can
// multiply.
#pragma once

#include "csyrk/workspace.h"

constexpr uint32_t kSplitElements = 2048;  // of a tile in UB
constexpr uint32_t kBuffers = 2;

// One register of elements to the planes. `good` keeps the lanes that met no number beyond the limits.
__simd_callee__ inline void SplitRegister(__ubuf__ float* planes, Reg::RegTensor<float>& re, Reg::RegTensor<float>& im,
                                          Reg::RegTensor<float>& limits, Reg::MaskReg& good, Reg::MaskReg& all) {
    Reg::RegTensor<float> third;
    Reg::MaskReg still;
    if constexpr (spec::kThreeProducts) {
        Reg::Sub(third, re, im, all);
    } else {
        Reg::Neg(third, im, all);
    }
    Reg::StoreAlign(planes, re, all);
    Reg::StoreAlign(planes + kSplitElements, im, all);
    Reg::StoreAlign(planes + 2 * kSplitElements, third, all);
    Reg::Abs(re, re, all);
    Reg::Abs(im, im, all);
    Reg::Compare<float, CMPMODE::LE>(still, re, limits, good);
    Reg::Compare<float, CMPMODE::LE>(good, im, limits, still);
}

// One pass over a tile: `full` whole registers and then `rest` elements in `partial` (0 or 1) more. `flags` become 1 in
// lanes that met a number beyond `limit`.
__simd_vf__ inline void SplitTile(__ubuf__ float* planes, __ubuf__ float* a, __ubuf__ float* flags, float limit,
                                  uint16_t full, uint16_t partial, uint32_t rest) {
    Reg::MaskReg all = Reg::CreateMask<float, Reg::MaskPattern::ALL>();
    Reg::MaskReg some = Reg::UpdateMask<float>(rest);
    Reg::RegTensor<float> limits;
    Reg::RegTensor<float> zero;
    Reg::RegTensor<float> one;
    Reg::RegTensor<float> flag;
    Reg::RegTensor<float> re;
    Reg::RegTensor<float> im;
    Reg::MaskReg good;
    Reg::Duplicate(limits, limit, all);
    Reg::Duplicate(zero, 0.0f, all);
    Reg::Duplicate(one, 1.0f, all);
    Reg::LoadAlign(flag, flags);
    Reg::Compare<float, CMPMODE::EQ>(good, flag, zero, all);
    for (uint16_t i = 0; i < full; ++i) {
        Reg::LoadAlign<float, Reg::LoadDist::DIST_DINTLV_B32>(re, im, a + 2 * i * kLanes);
        SplitRegister(planes + i * kLanes, re, im, limits, good, all);
    }
    for (uint16_t i = 0; i < partial; ++i) {
        Reg::LoadAlign<float, Reg::LoadDist::DIST_DINTLV_B32>(re, im, a + 2 * full * kLanes);
        Reg::Adds(re, re, 0.0f, some);  // zero where no element is
        Reg::Adds(im, im, 0.0f, some);
        SplitRegister(planes + full * kLanes, re, im, limits, good, all);
    }
    Reg::Select(flag, zero, one, good);
    Reg::StoreAlign(flags, flag, all);
}

__simd_vf__ inline void ClearFlags(__ubuf__ float* flags) {
    Reg::MaskReg all = Reg::CreateMask<float, Reg::MaskPattern::ALL>();
    Reg::RegTensor<float> zero;
    Reg::Duplicate(zero, 0.0f, all);
    Reg::StoreAlign(flags, zero, all);
}

__simd_vf__ inline void JoinFlags(__ubuf__ float* joined, __ubuf__ float* flags) {
    Reg::MaskReg all = Reg::CreateMask<float, Reg::MaskPattern::ALL>();
    Reg::RegTensor<float> flag;
    Reg::RegTensor<float> any;
    Reg::LoadAlign(flag, flags);
    Reg::Reduce<ReduceType::MAX>(any, flag, all);
    Reg::StoreAlign(joined, any, all);
}

__aicore__ inline void Split(GM_ADDR a, GM_ADDR workspace, const Tiling& tiling) {
    TPipe pipe;
    TQue<TPosition::VECIN, 1> inputs;
    TQue<TPosition::VECOUT, 1> outputs;
    TQue<TPosition::VECOUT, 1> joined;
    TBuf<TPosition::VECCALC> flags;
    pipe.InitBuffer(inputs, kBuffers, 2 * kSplitElements * sizeof(float));
    pipe.InitBuffer(outputs, kBuffers, kPlanes * kSplitElements * sizeof(float));
    pipe.InitBuffer(joined, 1, VECTOR_REG_WIDTH);
    pipe.InitBuffer(flags, VECTOR_REG_WIDTH);
    JITBLAS_STREAMING_INPUT(inputs);
    GlobalTensor<float> in;
    GlobalTensor<float> out[kPlanes];
    GlobalTensor<float> core_flag;
    const uint64_t elements = tiling.n * tiling.k;
    const uint64_t core = static_cast<uint64_t>(GetBlockIdx());
    const uint64_t begin = Smaller(core * tiling.split_per_block, elements);
    const uint64_t end = Smaller(begin + tiling.split_per_block, elements);
    // Elements that follow each other in memory: a row of A, or a column. Tiles are whole runs if these are short, and
    // lie in UB without gaps.
    const uint64_t run = spec::kAlongColumns ? tiling.n : tiling.k;
    const uint32_t runs = run % kFlagFloats == 0 ? static_cast<uint32_t>(kSplitElements / run) : 0;
    const bool dense = run == tiling.lda;
    in.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(a));
    for (uint32_t i = 0; i < kPlanes; ++i) {
        out[i].SetGlobalBuffer(Plane(workspace, tiling, i));
    }
    core_flag.SetGlobalBuffer(CoreFlags(workspace, tiling) + core * kFlagFloats, 1);
    __ubuf__ float* flag = (__ubuf__ float*)flags.Get<float>().GetPhyAddr();
    asc_vf_call<ClearFlags>(flag);
    uint64_t number = begin / run;
    uint64_t within = begin - number * run;
    for (uint64_t done = begin; done < end;) {
        uint16_t count = 1;
        uint32_t length = static_cast<uint32_t>(Smaller(Smaller(run - within, end - done), kSplitElements));
        if (runs > 1 && within == 0 && end - done >= run) {
            count = static_cast<uint16_t>(Smaller(runs, (end - done) / run));
            length = static_cast<uint32_t>(run);
        }
        const uint32_t size = count * length;
        LocalTensor<float> tile = inputs.AllocTensor<float>();
        const uint32_t bytes = 2 * length * static_cast<uint32_t>(sizeof(float));
        const int64_t gap = 2 * static_cast<int64_t>((tiling.lda - run) * sizeof(float));
        DataCopyPad(tile, in[2 * (number * tiling.lda + within)],
                    dense ? DataCopyExtParams{1, count * bytes, 0, 0, 0} : DataCopyExtParams{count, bytes, gap, 0, 0},
                    DataCopyPadExtParams<float>{false, 0, 0, 0});
        inputs.EnQue(tile);
        tile = inputs.DeQue<float>();
        LocalTensor<float> planes = outputs.AllocTensor<float>();
        const uint32_t rest = size % kLanes;
        asc_vf_call<SplitTile>((__ubuf__ float*)planes.GetPhyAddr(), (__ubuf__ float*)tile.GetPhyAddr(), flag,
                               tiling.limit, static_cast<uint16_t>(size / kLanes), static_cast<uint16_t>(rest != 0),
                               rest);
        inputs.FreeTensor(tile);
        outputs.EnQue(planes);
        planes = outputs.DeQue<float>();
        const DataCopyExtParams rows{count, bytes / 2, 0, static_cast<int64_t>((tiling.plane_ld - run) * sizeof(float)),
                                     0};
        for (uint32_t i = 0; i < kPlanes; ++i) {
            DataCopyPad(out[i][number * tiling.plane_ld + within], planes[i * kSplitElements], rows);
        }
        outputs.FreeTensor(planes);
        done += size;
        within += length;
        if (within == run) {
            within = 0;
            number += count;
        }
    }
    LocalTensor<float> last = joined.AllocTensor<float>();
    asc_vf_call<JoinFlags>((__ubuf__ float*)last.GetPhyAddr(), flag);
    joined.EnQue(last);
    last = joined.DeQue<float>();
    DataCopyPad(core_flag, last, DataCopyExtParams{1, sizeof(float), 0, 0, 0});
    joined.FreeTensor(last);
}
