// Element types as the rendered sources name them, each convertible to and from float, rounding to nearest
// even.
#pragma once

#include <stdint.h>
#include <string.h>

#include "../standin_device.h"

using GM_ADDR = uint8_t *;

static inline uint32_t BitsOf(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float FloatOf(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

// The upper `32 - dropped` bits of a magnitude, rounded to nearest even.
static inline uint32_t RoundOff(uint32_t magnitude, uint32_t dropped) {
    return (magnitude + ((1u << (dropped - 1)) - 1) + ((magnitude >> dropped) & 1)) >> dropped;
}

struct bfloat16_t {
    uint16_t bits;

    bfloat16_t() = default;
    explicit bfloat16_t(float value) {
        const uint32_t wide = BitsOf(value);
        const bool nan = (wide & 0x7fffffff) > 0x7f800000;
        bits = nan ? uint16_t(wide >> 16 | 0x40)
                   : uint16_t(RoundOff(wide & 0x7fffffff, 16) | (wide >> 16 & 0x8000));
    }
    explicit operator float() const { return FloatOf(uint32_t(bits) << 16); }
};

struct half {
    uint16_t bits;

    half() = default;
    explicit half(float value) {
        const uint32_t sign = BitsOf(value) >> 16 & 0x8000;
        const uint32_t magnitude = BitsOf(value) & 0x7fffffff;
        uint32_t narrow;
        if (magnitude > 0x7f800000) {
            narrow = 0x7e00;
        } else if (magnitude >= 0x477ff000) { // 65520 rounds to infinity
            narrow = 0x7c00;
        } else if (magnitude >= 0x38800000) { // normal: the exponent's bias shrinks by 112
            narrow = RoundOff(magnitude - (112u << 23), 13);
        } else { // subnormal: adding 0.5 leaves units of 2^-24 in the lowest bits, rounded by the addition
                 // itself
            narrow = BitsOf(FloatOf(magnitude) + 0.5f) - BitsOf(0.5f);
        }
        bits = uint16_t(sign | narrow);
    }
    explicit operator float() const {
        const uint32_t sign = uint32_t(bits & 0x8000) << 16;
        const uint32_t magnitude = bits & 0x7fff;
        if (magnitude >= 0x7c00) {
            return FloatOf(sign | 0x7f800000 | (magnitude & 0x3ff) << 13);
        }
        if (magnitude >= 0x0400) {
            return FloatOf(sign | ((magnitude << 13) + (112u << 23)));
        }
        const float small = float(magnitude) * FloatOf(0x33800000); // times 2^-24
        return FloatOf(sign | BitsOf(small));
    }
};
