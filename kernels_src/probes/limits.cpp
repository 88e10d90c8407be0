// Two probes of what a core can do at most: FP32 fused multiply-adds per second, and bytes per second through
// a[i] = b[i] + s * c[i]. Callers time them; here is only the work.
#include <stdint.h>

#define JITBLAS_PROBE extern "C" __attribute__((visibility("default")))

#if defined(__AVX512F__)
constexpr int kBytes = 64;
constexpr int kChains = 24;
#elif defined(__AVX__)
constexpr int kBytes = 32;
constexpr int kChains = 12;
#else
constexpr int kBytes = 16;
constexpr int kChains = 12;
#endif

// Contraction is off for kernels, whose rounding is part of their contract; a probe has none.
#if defined(__clang__)
#define JITBLAS_FUSE
#pragma clang fp contract(fast)
#else
#define JITBLAS_FUSE __attribute__((optimize("fp-contract=fast")))
#endif

typedef float Floats __attribute__((vector_size(kBytes)));

constexpr uint64_t kLanes = kBytes / sizeof(float);
constexpr uint64_t kSteps = 256;

JITBLAS_PROBE const char* jitblas_key() {
    return JITBLAS_KEY;
}

JITBLAS_PROBE uint64_t jitblas_limits_vector_bytes() {
    return kBytes;
}

// Floating-point operations of one round.
JITBLAS_PROBE uint64_t jitblas_limits_fma_flops() {
    return kSteps * kChains * kLanes * 2;
}

// More chains than latency times units, each in a register of its own, so that the units never wait.
JITBLAS_PROBE JITBLAS_FUSE float jitblas_limits_fma(uint64_t rounds) {
    Floats chain[kChains];
    for (int i = 0; i < kChains; ++i) {
        chain[i] = Floats{} + static_cast<float>(i);
    }
    // Numbers near 1, whatever the number of rounds: neither infinities nor denormals.
    Floats factor = Floats{} + 0.5f;
    Floats term = Floats{} + 0.5f;
    __asm__ volatile("" : "+m"(factor), "+m"(term));  // not known when compiling
    for (uint64_t step = 0; step < rounds * kSteps; ++step) {
#pragma GCC unroll 32
        for (int i = 0; i < kChains; ++i) {
            chain[i] = chain[i] * factor + term;
        }
    }
    Floats sum = Floats{};
    for (int i = 0; i < kChains; ++i) {
        sum += chain[i];
    }
    return sum[0];
}

// count: elements of each array, a multiple of 256; the arrays are aligned to 64 bytes.
JITBLAS_PROBE JITBLAS_FUSE void jitblas_limits_triad(float* a, const float* b, const float* c, uint64_t count,
                                                     uint64_t rounds) {
    Floats* to = reinterpret_cast<Floats*>(a);
    const Floats* first = reinterpret_cast<const Floats*>(b);
    const Floats* second = reinterpret_cast<const Floats*>(c);
    Floats factor = Floats{} + 0.5f;
    for (uint64_t round = 0; round < rounds; ++round) {
        for (uint64_t i = 0; i < count / kLanes; i += 4) {
#pragma GCC unroll 4
            for (int j = 0; j < 4; ++j) {
                to[i + j] = first[i + j] + factor * second[i + j];
            }
        }
        __asm__ volatile("" ::: "memory");  // every round is really made
    }
}
