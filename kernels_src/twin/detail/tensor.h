// Tensors in global and local memory.
#pragma once

#include "core.h"
#include "half.h"

namespace twin {

// A piece of UB that TPipe gave out. `address` is where its data is now: the piece itself or, for a bound buffer, the
// place in global memory that it mirrors.
struct Slot {
    uint8_t* home;
    uint8_t* address;
    uint32_t bytes;
    uint8_t bindable;
    uint8_t used;  // given out by AllocTensor and not freed yet
};

}  // namespace twin

namespace AscendC {

enum class TPosition : uint8_t { GM, A1, A2, B1, B2, C1, C2, CO1, CO2, VECIN, VECOUT, VECCALC, LCM, SPM, TSCM, MAX };

template <typename T>
class GlobalTensor {
public:
    using PrimType = T;

    JITBLAS_INLINE void SetGlobalBuffer(T* address, uint64_t size = 0) {
        address_ = address;
        size_ = size;
    }

    JITBLAS_INLINE T* GetPhyAddr() const { return address_; }
    JITBLAS_INLINE T* GetPhyAddr(uint64_t offset) const { return address_ + offset; }
    JITBLAS_INLINE uint64_t GetSize() const { return size_; }
    JITBLAS_INLINE T GetValue(uint64_t offset) const { return address_[offset]; }
    JITBLAS_INLINE void SetValue(uint64_t offset, T value) { address_[offset] = value; }

    JITBLAS_INLINE GlobalTensor operator[](uint64_t offset) const {
        GlobalTensor tensor;
        tensor.SetGlobalBuffer(address_ + offset, size_ > offset ? size_ - offset : 0);
        return tensor;
    }

private:
    T* address_ = nullptr;
    uint64_t size_ = 0;
};

// A view of a slot. The address is looked up when it is asked for, because a copy into the tensor may bind the slot.
template <typename T>
class LocalTensor {
public:
    using PrimType = T;

    LocalTensor() = default;
    JITBLAS_INLINE explicit LocalTensor(::twin::Slot* slot, uint32_t offset, uint32_t size)
        : slot_(slot), offset_(offset), size_(size) {}

    JITBLAS_INLINE T* GetPhyAddr() const { return reinterpret_cast<T*>(slot_->address) + offset_; }
    JITBLAS_INLINE T* GetPhyAddr(uint32_t offset) const { return GetPhyAddr() + offset; }
    JITBLAS_INLINE uint32_t GetSize() const { return size_; }
    JITBLAS_INLINE T GetValue(uint32_t offset) const { return GetPhyAddr()[offset]; }
    JITBLAS_INLINE void SetValue(uint32_t offset, T value) const { GetPhyAddr()[offset] = value; }

    JITBLAS_INLINE LocalTensor operator[](uint32_t offset) const {
        return LocalTensor(slot_, offset_ + offset, size_ > offset ? size_ - offset : 0);
    }

    template <typename U>
    JITBLAS_INLINE LocalTensor<U> ReinterpretCast() const {
        return LocalTensor<U>(slot_, static_cast<uint32_t>(offset_ * sizeof(T) / sizeof(U)),
                              static_cast<uint32_t>(size_ * sizeof(T) / sizeof(U)));
    }

    // The twin's own: the slot behind the tensor, and whether the tensor is all of it.
    JITBLAS_INLINE ::twin::Slot* SlotOf() const { return slot_; }
    JITBLAS_INLINE bool IsWholeSlot() const { return offset_ == 0; }

private:
    ::twin::Slot* slot_ = nullptr;
    uint32_t offset_ = 0;
    uint32_t size_ = 0;
};

}  // namespace AscendC
