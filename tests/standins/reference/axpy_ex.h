// What both AXPY kernels share: the arguments of a launch and the scalar.
#pragma once

struct Arguments {
    uint8_t *x;
    uint8_t *y;
    uint8_t *alpha;
    Tiling tiling;
};

using Element = spec::Element;

// Null, with the launch's fault noted, unless the range is device memory.
static inline Element *Reach(const char *name, uint8_t *address, uint64_t elements) {
    void *memory = standin_memory(address, elements * sizeof(Element));
    if (memory == nullptr) {
        standin_fault("vector core exception: %s, %p and %llu elements of %zu bytes, is not device memory",
                      name, static_cast<void *>(address), static_cast<unsigned long long>(elements),
                      sizeof(Element));
    }
    return static_cast<Element *>(memory);
}

static inline bool ReadAlpha(const Arguments &given, float *alpha) {
    if (!spec::kAlphaOnDevice) {
        *alpha = given.tiling.alpha;
        return true;
    }
    const void *memory = standin_memory(given.alpha, sizeof(float));
    if (memory == nullptr) {
        standin_fault("vector core exception: alpha, %p, is not device memory",
                      static_cast<void *>(given.alpha));
        return false;
    }
    memcpy(alpha, memory, sizeof(float));
    return true;
}

static inline Element Updated(float alpha, Element x, Element y) {
    return static_cast<Element>(__builtin_fmaf(alpha, static_cast<float>(x), static_cast<float>(y)));
}

static int Run(uint32_t blocks, const void *arguments);

extern "C" __attribute__((visibility("default"))) int launch(uint32_t blocks, void *stream, void *x, void *y,
                                                             void *alpha, Tiling tiling) {
    const Arguments arguments = {static_cast<uint8_t *>(x), static_cast<uint8_t *>(y),
                                 static_cast<uint8_t *>(alpha), tiling};
    standin_launch(stream, blocks, Run, &arguments, sizeof arguments);
    return 0;
}
