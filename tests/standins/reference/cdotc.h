// What both kernels of dot products share: products in float64, partial sums in the workspace, and the second launch,
// which adds up as many as the first one left.
#pragma once

struct Complex {
    float re;
    float im;
};

struct Arguments {
    uint8_t *x;
    uint8_t *y;
    uint8_t *sums;
    Tiling tiling;
};

struct Addends {
    uint8_t *numbers;
    uint8_t *result;
    uint64_t count;
};

static inline Complex *Reach(const char *name, uint8_t *address, uint64_t elements) {
    void *memory = standin_memory(address, elements * sizeof(Complex));
    if (memory == nullptr) {
        standin_fault("vector core exception: %s, %p and %llu complex numbers, is not device memory", name,
                      static_cast<void *>(address), static_cast<unsigned long long>(elements));
    }
    return static_cast<Complex *>(memory);
}

struct Sum {
    double re = 0.0;
    double im = 0.0;

    void AddProduct(Complex x, Complex y) {
        re += double(x.re) * double(y.re) + double(x.im) * double(y.im);
        im += double(x.re) * double(y.im) - double(x.im) * double(y.re);
    }
    Complex Rounded() const { return {float(re), float(im)}; }
};

static int AddUp(uint32_t, const void *arguments) {
    const Addends &given = *static_cast<const Addends *>(arguments);
    const Complex *numbers = Reach("workspace", given.numbers, given.count);
    Complex *result = Reach("result", given.result, 1);
    if (numbers == nullptr || result == nullptr) {
        return 507035;
    }
    Sum sum;
    for (uint64_t i = 0; i < given.count; ++i) {
        sum.re += double(numbers[i].re);
        sum.im += double(numbers[i].im);
    }
    *result = sum.Rounded();
    return 0;
}

static int Run(uint32_t blocks, const void *arguments);

// `partial_sums`: how many the blocks leave in the workspace; 0: one block writes the result itself.
static int Launch(uint32_t blocks, void *stream, void *x, void *y, void *result, void *workspace, Tiling tiling,
                  uint64_t partial_sums) {
    void *sums = partial_sums == 0 ? result : workspace;
    const Arguments arguments = {static_cast<uint8_t *>(x), static_cast<uint8_t *>(y), static_cast<uint8_t *>(sums),
                                 tiling};
    standin_launch(stream, blocks, Run, &arguments, sizeof arguments);
    if (partial_sums != 0) {
        const Addends addends = {static_cast<uint8_t *>(workspace), static_cast<uint8_t *>(result), partial_sums};
        standin_launch(stream, 1, AddUp, &addends, sizeof addends);
    }
    return 0;
}
