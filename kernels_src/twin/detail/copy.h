// DataCopy and DataCopyPad: global memory <-> UB. A copy into a bindable slot points the slot at its source instead
// where that cannot be told apart: one run, a whole number of pairs of registers (no load reaches past the end), start
// of slot.
#pragma once

#include "pipe.h"
#include "vector.h"

namespace AscendC {

struct DataCopyParams {
    uint16_t blockCount = 1;
    uint16_t blockLen = 0;  // units of 32 bytes
    uint16_t srcStride = 0;
    uint16_t dstStride = 0;

    DataCopyParams() = default;
    DataCopyParams(uint16_t count, uint16_t length, uint16_t source, uint16_t destination)
        : blockCount(count), blockLen(length), srcStride(source), dstStride(destination) {}
};

struct DataCopyExtParams {
    uint16_t blockCount = 1;
    uint32_t blockLen = 0;  // bytes
    int64_t srcStride = 0;  // gap between blocks: bytes in global memory, 32-byte units in UB
    int64_t dstStride = 0;
    uint32_t rsv = 0;

    DataCopyExtParams() = default;
    DataCopyExtParams(uint16_t count, uint32_t length, int64_t source, int64_t destination, uint32_t reserved)
        : blockCount(count), blockLen(length), srcStride(source), dstStride(destination), rsv(reserved) {}
};

template <typename T>
struct DataCopyPadExtParams {
    bool isPad = false;
    uint8_t leftPadding = 0;  // elements
    uint8_t rightPadding = 0;
    T paddingValue{};

    DataCopyPadExtParams() = default;
    template <typename U>
    DataCopyPadExtParams(bool pad, uint8_t left, uint8_t right, U value)
        : isPad(pad), leftPadding(left), rightPadding(right), paddingValue(static_cast<T>(value)) {}
};

}  // namespace AscendC

namespace twin {

JITBLAS_INLINE uint32_t RoundUp32(uint64_t bytes) {
    return static_cast<uint32_t>((bytes + 31) / 32 * 32);
}

// Blocks of 32-byte units with gaps between them on both sides.
JITBLAS_INLINE void CopyUnits(void* destination, const void* source, const AscendC::DataCopyParams& run) {
    uint8_t* to = static_cast<uint8_t*>(destination);
    const uint8_t* from = static_cast<const uint8_t*>(source);
    for (uint32_t i = 0; i < run.blockCount; ++i) {
        __builtin_memcpy(to, from, run.blockLen * 32u);
        from += (run.blockLen + run.srcStride) * 32u;
        to += (run.blockLen + run.dstStride) * 32u;
    }
}

JITBLAS_INLINE bool TryBind(Slot* slot, bool whole, const void* source, uint64_t bytes) {
    if (!slot->bindable || !whole || !block->bind || bytes % (2 * kRegisterBytes) != 0) {
        return false;
    }
    slot->address = static_cast<uint8_t*>(const_cast<void*>(source));
    return true;
}

}  // namespace twin

namespace AscendC {

template <typename T>
JITBLAS_INLINE void DataCopyPad(const LocalTensor<T>& destination, const GlobalTensor<T>& source,
                                const DataCopyExtParams& run, const DataCopyPadExtParams<T>& pad) {
    if (run.blockCount == 1 && (!pad.isPad || (pad.leftPadding == 0 && pad.rightPadding == 0)) &&
        ::twin::TryBind(destination.SlotOf(), destination.IsWholeSlot(), source.GetPhyAddr(), run.blockLen)) {
        return;
    }
    const uint8_t* from = reinterpret_cast<const uint8_t*>(source.GetPhyAddr());
    uint8_t* to = reinterpret_cast<uint8_t*>(destination.GetPhyAddr());
    const uint32_t left = pad.isPad ? pad.leftPadding : 0;
    const uint32_t right = pad.isPad ? pad.rightPadding : 0;
    for (uint32_t i = 0; i < run.blockCount; ++i) {
        T* row = reinterpret_cast<T*>(to);
        // Elements up to the next 32 bytes: the padding value, or the block's first element when none is asked for.
        const uint32_t body = static_cast<uint32_t>(run.blockLen / sizeof(T));
        const uint32_t end = static_cast<uint32_t>(::twin::RoundUp32((left + body + right) * sizeof(T)) / sizeof(T));
        __builtin_memcpy(row + left, from, run.blockLen);
        const T fill = pad.isPad ? pad.paddingValue : (body != 0 ? row[left] : T{});
        for (uint32_t j = 0; j < left; ++j) {
            row[j] = fill;
        }
        for (uint32_t j = left + body; j < end; ++j) {
            row[j] = fill;
        }
        from += run.blockLen + run.srcStride;
        to += end * sizeof(T) + run.dstStride * 32;
    }
}

template <typename T>
JITBLAS_INLINE void DataCopyPad(const GlobalTensor<T>& destination, const LocalTensor<T>& source,
                                const DataCopyExtParams& run) {
    uint8_t* to = reinterpret_cast<uint8_t*>(destination.GetPhyAddr());
    const uint8_t* from = reinterpret_cast<const uint8_t*>(source.GetPhyAddr());
    if (to == from) {
        return;  // bound in place: the data is where it belongs
    }
    for (uint32_t i = 0; i < run.blockCount; ++i) {
        __builtin_memcpy(to, from, run.blockLen);
        from += ::twin::RoundUp32(run.blockLen) + run.srcStride * 32;
        to += run.blockLen + run.dstStride;
    }
}

// The count form moves whole 32-byte units: what is left over is silently not copied, as on the chip.
template <typename T>
JITBLAS_INLINE void DataCopy(const LocalTensor<T>& destination, const GlobalTensor<T>& source, uint32_t count) {
    const uint64_t bytes = static_cast<uint64_t>(count) * sizeof(T) / 32 * 32;
    if (::twin::TryBind(destination.SlotOf(), destination.IsWholeSlot(), source.GetPhyAddr(), bytes)) {
        return;
    }
    __builtin_memcpy(destination.GetPhyAddr(), source.GetPhyAddr(), bytes);
}

template <typename T>
JITBLAS_INLINE void DataCopy(const GlobalTensor<T>& destination, const LocalTensor<T>& source, uint32_t count) {
    const void* from = source.GetPhyAddr();
    void* to = destination.GetPhyAddr();
    if (to != from) {
        __builtin_memcpy(to, from, static_cast<uint64_t>(count) * sizeof(T) / 32 * 32);
    }
}

template <typename T>
JITBLAS_INLINE void DataCopy(const LocalTensor<T>& destination, const LocalTensor<T>& source, uint32_t count) {
    __builtin_memmove(destination.GetPhyAddr(), source.GetPhyAddr(),
                      static_cast<uint64_t>(count) * sizeof(T) / 32 * 32);
}

template <typename T>
JITBLAS_INLINE void DataCopy(const LocalTensor<T>& destination, const GlobalTensor<T>& source,
                             const DataCopyParams& run) {
    ::twin::CopyUnits(destination.GetPhyAddr(), source.GetPhyAddr(), run);
}

template <typename T>
JITBLAS_INLINE void DataCopy(const GlobalTensor<T>& destination, const LocalTensor<T>& source,
                             const DataCopyParams& run) {
    ::twin::CopyUnits(destination.GetPhyAddr(), source.GetPhyAddr(), run);
}

}  // namespace AscendC
