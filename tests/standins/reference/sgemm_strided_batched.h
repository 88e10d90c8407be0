// What the three kernels of products share: every operand must be device memory, sums are taken in float64.
#pragma once

struct Arguments {
    uint8_t *a;
    uint8_t *b;
    uint8_t *c;
    uint8_t *alpha;
    uint8_t *beta;
    Tiling tiling;
};

static inline float *Reach(const char *name, uint8_t *address, uint64_t elements) {
    void *memory = standin_memory(address, elements * sizeof(float));
    if (memory == nullptr) {
        standin_fault("core exception: %s, %p and %llu floats, is not device memory", name,
                      static_cast<void *>(address), static_cast<unsigned long long>(elements));
    }
    return static_cast<float *>(memory);
}

static inline bool ReadScalar(const char *name, uint8_t *address, float *value) {
    const float *memory = address != nullptr ? Reach(name, address, 1) : value;
    if (memory != nullptr) {
        *value = *memory;
    }
    return memory != nullptr;
}

static int Multiply(const Arguments &given, float alpha, float beta) {
    const Tiling &t = given.tiling;
    const bool reads = t.k != 0 && alpha != 0.0f;
    for (uint64_t batch = 0; batch < t.batch; ++batch) {
        for (uint64_t i = 0; i < t.m; ++i) {
            for (uint64_t j = 0; j < t.n; ++j) {
                double sum = 0.0;
                for (uint64_t p = 0; reads && p < t.k; ++p) {
                    const uint64_t left = spec::kAlongColumnsA ? p * t.lda + i : i * t.lda + p;
                    const uint64_t right = spec::kAlongColumnsB ? j * t.ldb + p : p * t.ldb + j;
                    const float *a = Reach("a", given.a + 4 * (batch * t.stride_a + left), 1);
                    const float *b = Reach("b", given.b + 4 * (batch * t.stride_b + right), 1);
                    if (a == nullptr || b == nullptr) {
                        return 507035;
                    }
                    sum += double(*a) * double(*b);
                }
                float *c = Reach("c", given.c + 4 * (batch * t.stride_c + i * t.ldc + j), 1);
                if (c == nullptr) {
                    return 507035;
                }
                *c = float((reads ? alpha * sum : 0.0) + (beta != 0.0f ? double(beta) * double(*c) : 0.0));
            }
        }
    }
    return 0;
}

static int Run(uint32_t blocks, const void *arguments);

extern "C" __attribute__((visibility("default"))) int launch(uint32_t blocks, void *stream, void *a, void *b, void *c,
                                                             void *alpha, void *beta, Tiling tiling) {
    const Arguments arguments = {static_cast<uint8_t *>(a),     static_cast<uint8_t *>(b),
                                 static_cast<uint8_t *>(c),     static_cast<uint8_t *>(alpha),
                                 static_cast<uint8_t *>(beta), tiling};
    standin_launch(stream, blocks, Run, &arguments, sizeof arguments);
    return 0;
}
