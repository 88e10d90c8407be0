// TPipe, queues and buffers: who owns which bytes of UB. Blocks run their instructions in program order, so events and
// barriers have nothing to wait for in the fast build; misuse of a queue is still an error, as it would hang the chip.
#pragma once

#include "tensor.h"
#include "vector.h"

namespace twin {

[[noreturn]] __attribute__((noinline, cold)) inline void QueueMisuse(const char* queue, const char* what) {
    Fail((Message() << "queue '" << queue << "': " << what).Text());
}

constexpr uint8_t kMostRaised = 15;  // what a flag's counter holds on the chip

JITBLAS_INLINE void CheckFlag(uint32_t id) {
    if (__builtin_expect(id >= JITBLAS_FLAGS / 2, 0)) {
        Fail((Message() << "flag " << id << ": flags are numbered 0 to " << JITBLAS_FLAGS / 2 - 1).Text());
    }
}

JITBLAS_INLINE void RaiseFlag(JitblasGroup* group, uint32_t core, uint32_t id) {
    uint8_t& flag = group->flags[core][id];
    if (__builtin_expect(flag == kMostRaised, 0)) {
        Fail("CrossCoreSetFlag: a flag was set 15 times and not waited for");
    }
    ++flag;
    ++group->changes;
}

// Lets the other cores of the group run until the flag is set.
JITBLAS_INLINE void AwaitFlag(uint32_t id) {
    const JitblasBlock* mine = block;
    uint8_t* flag = &mine->group->flags[mine->core][id];
    while (__atomic_load_n(flag, __ATOMIC_RELAXED) == 0) {
        runtime->yield();
        block = mine;  // another core of the group ran on this thread meanwhile
    }
    --*flag;
}

}  // namespace twin

namespace AscendC {

enum pipe_t { PIPE_S, PIPE_V, PIPE_M, PIPE_MTE1, PIPE_MTE2, PIPE_MTE3, PIPE_ALL, PIPE_FIX };

enum class HardEvent : uint8_t {
    MTE2_V,
    V_MTE2,
    V_MTE3,
    MTE3_V,
    MTE2_MTE3,
    MTE3_MTE2,
    V_V,
    S_V,
    V_S,
    S_MTE2,
    MTE2_S,
    S_MTE3,
    MTE3_S,
    MTE2_MTE1,
    MTE1_MTE2,
    MTE1_M,
    M_MTE1,
    M_FIX,
    FIX_M
};

using TEventID = int8_t;

template <HardEvent event>
JITBLAS_INLINE void SetFlag(int32_t) {}

template <HardEvent event>
JITBLAS_INLINE void WaitFlag(int32_t) {}

template <pipe_t pipe>
JITBLAS_INLINE void PipeBarrier() {}

// Between the cube core of a mixed group and its two vector cores. Mode 2: the cube's flag is for both of them, and the
// cube waits for both of theirs.
template <uint8_t mode, pipe_t pipe>
JITBLAS_INLINE void CrossCoreSetFlag(uint16_t id) {
    static_assert(mode == 2 && JITBLAS_CORES == JITBLAS_MIXED, "the twin knows mode 2, and flags need a mixed kernel");
    ::twin::CheckFlag(id);
    JitblasGroup* group = ::twin::block->group;
    if (::twin::block->is_cube) {
        ::twin::RaiseFlag(group, 1, id);
        ::twin::RaiseFlag(group, 2, id);
    } else {
        ::twin::RaiseFlag(group, 0, id + (JITBLAS_FLAGS / 2) * (::twin::block->core - 1));
    }
}

template <uint8_t mode, pipe_t pipe>
JITBLAS_INLINE void CrossCoreWaitFlag(uint16_t id) {
    static_assert(mode == 2 && JITBLAS_CORES == JITBLAS_MIXED, "the twin knows mode 2, and flags need a mixed kernel");
    ::twin::CheckFlag(id);
    ::twin::AwaitFlag(id);
    if (::twin::block->is_cube) {
        ::twin::AwaitFlag(id + JITBLAS_FLAGS / 2);
    }
}

class TPipe;

template <TPosition source, TPosition destination, int32_t depth, auto mask = 0>
class TQueBind {
public:
    // The next buffer that is free, in turn.
    template <typename T>
    JITBLAS_INLINE LocalTensor<T> AllocTensor() {
        for (uint32_t tried = 0; tried < buffers_; ++tried) {
            ::twin::Slot* slot = &slots_[next_];
            next_ = next_ + 1 == buffers_ ? 0 : next_ + 1;
            if (!slot->used) {
                slot->used = 1;
                slot->address = slot->home;
                return View<T>(slot);
            }
        }
        ::twin::QueueMisuse(name_, "AllocTensor: all buffers are in use; FreeTensor is missing or comes too late");
    }

    template <typename T>
    JITBLAS_INLINE void FreeTensor(LocalTensor<T>& tensor) {
        if (!tensor.SlotOf()->used) {
            ::twin::QueueMisuse(name_, "FreeTensor: the tensor's buffer is not in use; it was freed before");
        }
        tensor.SlotOf()->used = 0;
    }

    template <typename T>
    JITBLAS_INLINE bool EnQue(const LocalTensor<T>& tensor) {
        static_assert(depth > 0, "a queue of depth 0 holds no tensors");
        if (queued_ == depth) {
            ::twin::QueueMisuse(name_, "EnQue: the queue is full; its depth is the second template argument");
        }
        fifo_[(head_ + queued_++) % kDepth] = tensor.SlotOf();
        return true;
    }

    template <TPosition from, TPosition to, typename T>
    JITBLAS_INLINE bool EnQue(const LocalTensor<T>& tensor) {
        return EnQue(tensor);
    }

    template <typename T>
    JITBLAS_INLINE LocalTensor<T> DeQue() {
        if (queued_ == 0) {
            ::twin::QueueMisuse(name_, "DeQue: the queue is empty; EnQue comes first");
        }
        ::twin::Slot* slot = fifo_[head_];
        head_ = (head_ + 1) % kDepth;
        --queued_;
        return View<T>(slot);
    }

    template <TPosition from, TPosition to, typename T>
    JITBLAS_INLINE LocalTensor<T> DeQue() {
        return DeQue<T>();
    }

    JITBLAS_INLINE bool VacantInQue() const { return queued_ < depth; }
    JITBLAS_INLINE bool HasTensorInQue() const { return queued_ != 0; }
    JITBLAS_INLINE int32_t GetTensorCountInQue() const { return queued_; }

    JITBLAS_INLINE bool HasIdleBuffer() const {
        for (uint32_t i = 0; i < buffers_; ++i) {
            if (!slots_[i].used) {
                return true;
            }
        }
        return false;
    }

    // The twin's own: behind JITBLAS_STREAMING_INPUT and JITBLAS_IN_PLACE.
    JITBLAS_INLINE void AllowBinding() {
        for (uint32_t i = 0; i < buffers_; ++i) {
            slots_[i].bindable = 1;
        }
    }

private:
    friend class TPipe;

    static constexpr int kDepth = depth > 0 ? depth : 1;
    static constexpr uint32_t kMaxBuffers = 16;

    template <typename T>
    JITBLAS_INLINE static LocalTensor<T> View(::twin::Slot* slot) {
        return LocalTensor<T>(slot, 0, static_cast<uint32_t>(slot->bytes / sizeof(T)));
    }

    ::twin::Slot slots_[kMaxBuffers];
    ::twin::Slot* fifo_[kDepth];
    const char* name_ = "(not initialised)";
    uint32_t buffers_ = 0;
    uint32_t next_ = 0;
    int32_t head_ = 0;
    int32_t queued_ = 0;
};

template <TPosition position, int32_t depth, auto mask = 0>
class TQue : public TQueBind<position == TPosition::VECIN ? TPosition::GM : position,
                             position == TPosition::VECIN ? position : TPosition::GM, depth, mask> {};

template <TPosition position = TPosition::LCM>
class TBuf {
public:
    template <typename T>
    JITBLAS_INLINE LocalTensor<T> Get() {
        return Get<T>(static_cast<uint32_t>(slot_.bytes / sizeof(T)));
    }

    template <typename T>
    JITBLAS_INLINE LocalTensor<T> Get(uint32_t size) {
        return LocalTensor<T>(&slot_, 0, size);
    }

    template <typename T>
    JITBLAS_INLINE LocalTensor<T> GetWithOffset(uint32_t size, uint32_t offset_bytes) {
        return LocalTensor<T>(&slot_, static_cast<uint32_t>(offset_bytes / sizeof(T)), size);
    }

private:
    friend class TPipe;
    ::twin::Slot slot_ = {};
};

class TPipe {
public:
    // Reached through the macro InitBuffer below, which adds the buffer's name and its place in the source.
    template <TPosition source, TPosition destination, int32_t depth, auto mask>
    JITBLAS_INLINE bool InitNamedBuffer(const char* name, const char* file, uint32_t line,
                                        TQueBind<source, destination, depth, mask>& queue, uint8_t count,
                                        uint32_t bytes) {
        queue.name_ = name;
        if (count > queue.kMaxBuffers) {
            ::twin::QueueMisuse(name, "InitBuffer: a queue has at most 16 buffers");
        }
        queue.buffers_ = count;
        for (uint32_t i = 0; i < count; ++i) {
            queue.slots_[i] = Take(name, file, line, count, bytes);
        }
        return true;
    }

    template <TPosition position>
    JITBLAS_INLINE bool InitNamedBuffer(const char* name, const char* file, uint32_t line, TBuf<position>& buffer,
                                        uint32_t bytes) {
        buffer.slot_ = Take(name, file, line, 1, bytes);
        return true;
    }

    template <HardEvent event>
    JITBLAS_INLINE TEventID AllocEventID() {
        return 0;
    }

    template <HardEvent event>
    JITBLAS_INLINE void ReleaseEventID(TEventID) {}

    JITBLAS_INLINE TEventID FetchEventID(HardEvent) { return 0; }

    template <HardEvent event>
    JITBLAS_INLINE TEventID FetchEventID() {
        return 0;
    }

    JITBLAS_INLINE void Reset() { used_ = 0; }
    JITBLAS_INLINE void Destroy() {}

private:
    JITBLAS_INLINE ::twin::Slot Take(const char* name, const char* file, uint32_t line, uint32_t count,
                                     uint32_t bytes) {
        const uint64_t end = static_cast<uint64_t>(used_) + (static_cast<uint64_t>(bytes) + 31) / 32 * 32;
        if (__builtin_expect(end > ::twin::block->ub_bytes, 0)) {
            Overflow(name, file, line, count, bytes);
        }
        uint8_t* home = ::twin::block->ub + used_;
        used_ = static_cast<uint32_t>(end);
        return {home, home, bytes, 0, 0};
    }

    [[noreturn]] __attribute__((noinline, cold)) void Overflow(const char* name, const char* file, uint32_t line,
                                                               uint32_t count, uint32_t bytes) const {
        ::twin::Fail((::twin::Message() << file << ":" << line << ": InitBuffer(" << name << "): UB overflow: " << count
                                        << " x " << bytes << " bytes do not fit, " << used_ << " of "
                                        << ::twin::block->ub_bytes << " bytes are taken")
                         .Text());
    }

    uint32_t used_ = 0;
};

}  // namespace AscendC

#define InitBuffer(buffer, ...) InitNamedBuffer(#buffer, __FILE__, __LINE__, buffer, __VA_ARGS__)

#define JITBLAS_STREAMING_INPUT(queue) (queue).AllowBinding()
#define JITBLAS_IN_PLACE(queue) (queue).AllowBinding()
#define JITBLAS_DIRECT() (::twin::block->bind != 0)
#define JITBLAS_PAST_CACHES(address, bytes) ::twin::GoesPastCaches(address, bytes)
#define JITBLAS_PAST_CACHES_END() ::twin::PastCachesEnd()
