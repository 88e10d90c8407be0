// What the kernels of Csyrk share: operands must be device memory, sums are taken in float64.
#pragma once

struct Complex {
    float re;
    float im;
};

struct Arguments {
    uint8_t *a;
    uint8_t *c;
    uint8_t *alpha;
    uint8_t *beta;
    uint8_t *workspace;
    Tiling tiling;
};

static inline void *Reach(const char *name, uint8_t *address, uint64_t bytes) {
    void *memory = standin_memory(address, bytes);
    if (memory == nullptr) {
        standin_fault("core exception: %s, %p and %llu bytes, is not device memory", name,
                      static_cast<void *>(address), static_cast<unsigned long long>(bytes));
    }
    return memory;
}

static inline bool ReadScalar(const char *name, uint8_t *address, Complex *value) {
    if (!spec::kScalarsOnDevice || address == nullptr) {
        return true;
    }
    const void *memory = Reach(name, address, sizeof *value);
    if (memory != nullptr) {
        *value = *static_cast<const Complex *>(memory);
    }
    return memory != nullptr;
}

static int Update(const Arguments &given) {
    const Tiling &t = given.tiling;
    Complex alpha = {t.alpha_re, t.alpha_im};
    Complex beta = {t.beta_re, t.beta_im};
    if (!ReadScalar("alpha", given.alpha, &alpha) || !ReadScalar("beta", given.beta, &beta)) {
        return 507035;
    }
    const bool reads_a = t.k != 0 && (alpha.re != 0.0f || alpha.im != 0.0f);
    const bool reads_c = beta.re != 0.0f || beta.im != 0.0f;
    for (uint64_t i = 0; i < t.n; ++i) {
        for (uint64_t j = t.upper ? i : 0; j < (t.upper ? t.n : i + 1); ++j) {
            double re = 0.0;
            double im = 0.0;
            for (uint64_t p = 0; reads_a && p < t.k; ++p) {
                const uint64_t left = spec::kAlongColumns ? p * t.lda + i : i * t.lda + p;
                const uint64_t right = spec::kAlongColumns ? p * t.lda + j : j * t.lda + p;
                const void *x = Reach("a", given.a + sizeof(Complex) * left, sizeof(Complex));
                const void *y = Reach("a", given.a + sizeof(Complex) * right, sizeof(Complex));
                if (x == nullptr || y == nullptr) {
                    return 507035;
                }
                const Complex u = *static_cast<const Complex *>(x);
                const Complex v = *static_cast<const Complex *>(y);
                re += double(u.re) * v.re - double(u.im) * v.im;
                im += double(u.re) * v.im + double(u.im) * v.re;
            }
            void *place = Reach("c", given.c + sizeof(Complex) * (i * t.ldc + j), sizeof(Complex));
            if (place == nullptr) {
                return 507035;
            }
            Complex *c = static_cast<Complex *>(place);
            const double c_re = reads_c ? c->re : 0.0;
            const double c_im = reads_c ? c->im : 0.0;
            const double product_re = reads_a ? alpha.re * re - alpha.im * im : 0.0;
            const double product_im = reads_a ? alpha.re * im + alpha.im * re : 0.0;
            c->re = float(product_re + (reads_c ? beta.re * c_re - beta.im * c_im : 0.0));
            c->im = float(product_im + (reads_c ? beta.re * c_im + beta.im * c_re : 0.0));
        }
    }
    return 0;
}

static int Run(uint32_t blocks, const void *arguments);

extern "C" __attribute__((visibility("default"))) int launch(uint32_t blocks, void *stream, void *a, void *c,
                                                             void *alpha, void *beta, void *workspace, Tiling tiling) {
    const Arguments arguments = {static_cast<uint8_t *>(a),    static_cast<uint8_t *>(c),
                                 static_cast<uint8_t *>(alpha), static_cast<uint8_t *>(beta),
                                 static_cast<uint8_t *>(workspace), tiling};
    standin_launch(stream, blocks, Run, &arguments, sizeof arguments);
    return 0;
}
