// What the kernels of FFT share: operands must be device memory, transforms are computed in float64.
#pragma once

#include <math.h>
#include <stdlib.h>

struct Arguments {
    uint8_t* x;
    uint8_t* out;
    uint8_t* workspace;
    uint8_t* table;
    Tiling tiling;
};

struct Complex {
    double re;
    double im;
};

static inline spec::Real* Reach(const char* name, uint8_t* address, uint64_t reals) {
    void* memory = standin_memory(address, reals * sizeof(spec::Real));
    if (memory == nullptr) {
        standin_fault("vector core exception: %s, %p and %llu reals, is not device memory", name,
                      static_cast<void*>(address), static_cast<unsigned long long>(reals));
    }
    return static_cast<spec::Real*>(memory);
}

// Of `points` numbers, `step` apart, to `to`; forward.
static void Transform(const Complex* from, uint64_t step, Complex* to, uint64_t points) {
    if (points == 1) {
        *to = *from;
        return;
    }
    const uint64_t half = points / 2;
    Transform(from, 2 * step, to, half);
    Transform(from + step, 2 * step, to + half, half);
    for (uint64_t k = 0; k < half; ++k) {
        const double angle = -6.283185307179586 * double(k) / double(points);
        const double cosine = cos(angle);
        const double sine = sin(angle);
        const Complex even = to[k];
        const Complex odd = {to[k + half].re * cosine - to[k + half].im * sine,
                             to[k + half].re * sine + to[k + half].im * cosine};
        to[k] = {even.re + odd.re, even.im + odd.im};
        to[k + half] = {even.re - odd.re, even.im - odd.im};
    }
}

static int TransformAll(const Arguments& given, uint64_t points) {
    const uint64_t reals = 2 * points * given.tiling.batch;
    const spec::Real* x = Reach("x", given.x, reals);
    spec::Real* out = Reach("out", given.out, reals);
    if (x == nullptr || out == nullptr) {
        return 507035;
    }
    Complex* from = static_cast<Complex*>(malloc(2 * points * sizeof(Complex)));
    Complex* to = from + points;
    constexpr int real = spec::kInverse ? 1 : 0;
    for (uint64_t i = 0; i < reals; i += 2 * points) {
        for (uint64_t j = 0; j < points; ++j) {
            from[j] = {double(x[i + 2 * j + real]), double(x[i + 2 * j + 1 - real])};
        }
        Transform(from, 1, to, points);
        for (uint64_t k = 0; k < points; ++k) {
            out[i + 2 * k + real] = spec::Real(to[k].re * given.tiling.scale);
            out[i + 2 * k + 1 - real] = spec::Real(to[k].im * given.tiling.scale);
        }
    }
    free(from);
    return 0;
}

static int Run(uint32_t blocks, const void* arguments);

extern "C" __attribute__((visibility("default"))) int launch(uint32_t blocks, void* stream, void* x, void* out,
                                                             void* workspace, void* table, Tiling tiling) {
    const Arguments arguments = {static_cast<uint8_t*>(x), static_cast<uint8_t*>(out), static_cast<uint8_t*>(workspace),
                                 static_cast<uint8_t*>(table), tiling};
    standin_launch(stream, blocks, Run, &arguments, sizeof arguments);
    return 0;
}
