// The tensor API (Te): tensors with layouts in every memory of a cube core and its vector cores, copies between them,
// and the matrix multiply-add. GM, UB and L1 hold what they hold on the chip. L0A and L0B can only be seen by the loads
// and by Mmad, so operands lie there as micro-kernels want them (detail/mmad.h); L0C keeps rows.
#pragma once

#include "../detail/mmad.h"
#include "../detail/pipe.h"

namespace AscendC {
namespace Std {

template <int value>
struct Int {
    static constexpr int kValue = value;
};

}  // namespace Std

namespace Te {

namespace Location {
struct GM {};
struct UB {};
struct L1 {};
struct L0A {};
struct L0B {};
struct L0C {};
}  // namespace Location

struct NDExtLayoutPtn {};
struct DNExtLayoutPtn {};
struct NZLayoutPtn {};
struct ZNLayoutPtn {};

}  // namespace Te
}  // namespace AscendC

namespace twin {

constexpr uint32_t kFractal = 16;

JITBLAS_INLINE constexpr uint64_t RoundUp(uint64_t number, uint64_t unit) {
    return (number + unit - 1) / unit * unit;
}

template <typename Trait>
constexpr int kC0 = 32 / sizeof(Trait);
template <>
constexpr int kC0<void> = 16;  // what a layout has that is not told its element's type
template <int value>
constexpr int kC0<AscendC::Std::Int<value>> = value;

// Where a buffer of this core begins, what it holds, how many bytes here a byte there takes, and its name for messages.
template <typename Location>
struct Buffer;

template <>
struct Buffer<AscendC::Te::Location::UB> {
    static JITBLAS_INLINE uint8_t* Start() { return block->ub; }
    static JITBLAS_INLINE uint64_t Bytes() { return block->ub_bytes; }
    static constexpr uint64_t kScale = 1;
    static constexpr const char* kName = "UB";
};

template <>
struct Buffer<AscendC::Te::Location::L1> {
    static JITBLAS_INLINE uint8_t* Start() { return block->cube; }
    static JITBLAS_INLINE uint64_t Bytes() { return JITBLAS_L1_BYTES; }
    static constexpr uint64_t kScale = 1;
    static constexpr const char* kName = "L1";
};

template <>
struct Buffer<AscendC::Te::Location::L0C> {
    static JITBLAS_INLINE uint8_t* Start() { return block->cube + JITBLAS_L1_BYTES; }
    static JITBLAS_INLINE uint64_t Bytes() { return JITBLAS_L0C_BYTES; }
    static constexpr uint64_t kScale = 1;
    static constexpr const char* kName = "L0C";
};

template <>
struct Buffer<AscendC::Te::Location::L0A> {
    static JITBLAS_INLINE uint8_t* Start() { return block->cube + JITBLAS_L1_BYTES + JITBLAS_L0C_BYTES; }
    static JITBLAS_INLINE uint64_t Bytes() { return JITBLAS_L0A_BYTES; }
    static constexpr uint64_t kScale = JITBLAS_OPERAND_ROOM;
    static constexpr const char* kName = "L0A";
};

template <>
struct Buffer<AscendC::Te::Location::L0B> {
    static JITBLAS_INLINE uint8_t* Start() {
        return block->cube + JITBLAS_L1_BYTES + JITBLAS_L0C_BYTES + JITBLAS_OPERAND_ROOM * JITBLAS_L0A_BYTES;
    }
    static JITBLAS_INLINE uint64_t Bytes() { return JITBLAS_L0B_BYTES; }
    static constexpr uint64_t kScale = JITBLAS_OPERAND_ROOM;
    static constexpr const char* kName = "L0B";
};

[[noreturn]] __attribute__((noinline, cold)) inline void BufferOverflow(const char* buffer, uint64_t offset,
                                                                        uint64_t bytes, uint64_t limit) {
    Fail((Message() << "MakeTensor: " << buffer << " overflow: " << bytes << " bytes at " << offset
                    << " do not fit into " << limit)
             .Text());
}

}  // namespace twin

namespace AscendC {
namespace Te {

// ---- Pointers, layouts, tensors -------------------------------------------------------------------------------------

template <typename L, typename T>
class HardwareMemPtr {
public:
    JITBLAS_INLINE explicit HardwareMemPtr(T* address) : address_(address) {}
    JITBLAS_INLINE T* Get() const { return address_; }
    JITBLAS_INLINE HardwareMemPtr operator+(uint64_t elements) const { return HardwareMemPtr(address_ + elements); }

private:
    T* address_;
};

// A place in one of this core's buffers, by bytes from its start.
template <typename L, typename T, typename Offset>
JITBLAS_INLINE HardwareMemPtr<L, T> MakeMemPtr(Offset offset) {
    using Buffer = ::twin::Buffer<L>;
    return HardwareMemPtr<L, T>(reinterpret_cast<T*>(Buffer::Start() + Buffer::kScale * static_cast<uint64_t>(offset)));
}

template <typename L, typename T>
JITBLAS_INLINE HardwareMemPtr<L, T> MakeMemPtr(T* address) {
    return HardwareMemPtr<L, T>(address);
}

struct Pair {
    uint64_t first;
    uint64_t second;
};

JITBLAS_INLINE Pair MakeCoord(uint64_t row, uint64_t column) {
    return {row, column};
}

JITBLAS_INLINE Pair MakeShape(uint64_t rows, uint64_t columns) {
    return {rows, columns};
}

// A layout pattern with the distance between its rows (ND), columns (DN) or columns of fractals (NZ, ZN).
template <typename Pattern, int c0>
struct FrameLayout {
    uint64_t rows;
    uint64_t columns;
    uint64_t pitch;
};

template <typename Pattern, typename Trait = void>
JITBLAS_INLINE FrameLayout<Pattern, ::twin::kC0<Trait>> MakeFrameLayout(uint64_t rows, uint64_t columns) {
    constexpr int c0 = ::twin::kC0<Trait>;
    if constexpr (::twin::kSame<Pattern, NDExtLayoutPtn>) {
        return {rows, columns, columns};
    } else if constexpr (::twin::kSame<Pattern, DNExtLayoutPtn>) {
        return {rows, columns, rows};
    } else if constexpr (::twin::kSame<Pattern, NZLayoutPtn>) {
        return {rows, columns, c0 * ::twin::RoundUp(rows, ::twin::kFractal)};
    } else {
        static_assert(::twin::kSame<Pattern, ZNLayoutPtn>, "the twin knows NDExt, DNExt, NZ and ZN");
        return {rows, columns, c0 * ::twin::RoundUp(columns, ::twin::kFractal)};
    }
}

// A tensor, or a part of one: `start` is the whole one's address, `row` and `column` where the part begins.
template <typename L, typename Pattern, int c0, typename T>
class Tensor {
public:
    static constexpr bool kIsNd = ::twin::kSame<Pattern, NDExtLayoutPtn>;
    static constexpr bool kIsDn = ::twin::kSame<Pattern, DNExtLayoutPtn>;
    static constexpr bool kIsNz = ::twin::kSame<Pattern, NZLayoutPtn>;
    static constexpr bool kIsZn = ::twin::kSame<Pattern, ZNLayoutPtn>;

    JITBLAS_INLINE Tensor(T* whole, uint64_t first_row, uint64_t first_column, const FrameLayout<Pattern, c0>& frame)
        : start(whole), row(first_row), column(first_column), layout(frame) {}

    JITBLAS_INLINE HardwareMemPtr<L, T> Data() const { return HardwareMemPtr<L, T>(At(0, 0)); }

    JITBLAS_INLINE Tensor Slice(Pair coordinates, Pair shape) const {
        const uint64_t r = coordinates.first;
        const uint64_t c = coordinates.second;
        const uint64_t rows = layout.rows - r < shape.first ? layout.rows - r : shape.first;
        const uint64_t columns = layout.columns - c < shape.second ? layout.columns - c : shape.second;
        return Tensor(start, row + r, column + c, {rows, columns, layout.pitch});
    }

    // The twin's own. Address of an element, by its place in this part.
    JITBLAS_INLINE T* At(uint64_t r, uint64_t c) const {
        r += row;
        c += column;
        if constexpr (kIsNd) {
            return start + r * layout.pitch + c;
        } else if constexpr (kIsDn) {
            return start + c * layout.pitch + r;
        } else if constexpr (kIsNz) {
            return start + c / c0 * layout.pitch + r * c0 + c % c0;
        } else {
            return start + r / c0 * layout.pitch + c * c0 + r % c0;
        }
    }

    T* start;
    uint64_t row;
    uint64_t column;
    FrameLayout<Pattern, c0> layout;
};

template <typename L, typename T, typename Pattern, int c0>
JITBLAS_INLINE Tensor<L, Pattern, c0, T> MakeTensor(HardwareMemPtr<L, T> pointer,
                                                    const FrameLayout<Pattern, c0>& layout) {
    if constexpr (!::twin::kSame<L, Location::GM>) {
        using Buffer = ::twin::Buffer<L>;
        const uint64_t offset =
            static_cast<uint64_t>(reinterpret_cast<uint8_t*>(pointer.Get()) - Buffer::Start()) / Buffer::kScale;
        uint64_t elements = layout.pitch;
        if constexpr (::twin::kSame<Pattern, NDExtLayoutPtn>) {
            elements *= layout.rows;
        } else if constexpr (::twin::kSame<Pattern, DNExtLayoutPtn>) {
            elements *= layout.columns;
        } else {
            elements *= ((::twin::kSame<Pattern, NZLayoutPtn> ? layout.columns : layout.rows) + c0 - 1) / c0;
        }
        const uint64_t bytes = elements * sizeof(T);
        if (__builtin_expect(offset + bytes > Buffer::Bytes(), 0)) {
            ::twin::BufferOverflow(Buffer::kName, offset, bytes, Buffer::Bytes());
        }
    }
    return {pointer.Get(), 0, 0, layout};
}

// ---- Copies ---------------------------------------------------------------------------------------------------------

struct CopyGM2L1 {};
struct CopyL12L0A {};
struct CopyL12L0B {};
struct CopyL0C2GM {};
struct CopyL0C2UB {};
struct CopyGM2UB {};
struct CopyUB2GM {};

struct FixpipeParams {
    uint8_t unitFlag;
    bool subBlockId;

    JITBLAS_INLINE explicit FixpipeParams(uint8_t unit_flag = 0, bool sub_block = false)
        : unitFlag(unit_flag), subBlockId(sub_block) {}
};

template <typename Operation>
struct CopyAtom {
    FixpipeParams params;

    JITBLAS_INLINE CopyAtom with(const FixpipeParams& given) const { return {given}; }
};

template <typename Operation>
JITBLAS_INLINE CopyAtom<Operation> MakeCopy(Operation) {
    return {FixpipeParams()};
}

}  // namespace Te
}  // namespace AscendC

namespace twin {

// Where a matrix in L1 is: in L1 itself, or still in global memory because L1 only mirrors it (JITBLAS_STREAMING_CUBE).
// Element (r, c) is at data + r * row_step + c * column_step.
struct Mirrored {
    const float* data;
    int64_t row_step;
    int64_t column_step;
};

JITBLAS_INLINE uint64_t Least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

// A copy into L1 is for having the data near when it is used. Where L1 mirrors, it is prefetched: while the product
// before is computed if it is in one piece and small enough, and otherwise by the packing.
constexpr uint64_t kMostPrefetched = 128 * 128;  // floats

JITBLAS_INLINE void PrefetchLater(Range* range, const float* data, uint64_t pitch, uint64_t runs, uint64_t length) {
    if (runs * length <= kMostPrefetched && pitch == length) {
        *range = {data, runs * length * sizeof(float)};
    }
}

template <typename Source>
JITBLAS_INLINE Mirrored MirrorOf(const Source& source) {
    const int64_t pitch = static_cast<int64_t>(source.layout.pitch);
    return {source.At(0, 0), Source::kIsNd ? pitch : 1, Source::kIsNd ? 1 : pitch};
}

// The matrix behind a part of a tensor in L1 that mirrors global memory.
template <typename Source>
JITBLAS_INLINE Mirrored BehindL1(const Source& source) {
    Mirrored whole = *reinterpret_cast<const Mirrored*>(source.start);
    whole.data +=
        static_cast<int64_t>(source.row) * whole.row_step + static_cast<int64_t>(source.column) * whole.column_step;
    return whole;
}

}  // namespace twin

namespace AscendC {
namespace Te {

// Into NZ or ZN: fractals of C0 elements, what is missing to C0 filled with zeros.
template <typename S, int s0, typename D, int d0>
JITBLAS_INLINE void Copy(CopyAtom<CopyGM2L1>, const Tensor<Location::L1, D, d0, float>& destination,
                         const Tensor<Location::GM, S, s0, float>& source) {
    using Source = Tensor<Location::GM, S, s0, float>;
    using Destination = Tensor<Location::L1, D, d0, float>;
    const uint64_t rows = source.layout.rows;
    const uint64_t columns = source.layout.columns;
    static_assert(Destination::kIsNz || Destination::kIsZn, "matrices in L1 are NZ or ZN");
    if (::twin::cube_streams) {
        *reinterpret_cast<::twin::Mirrored*>(destination.start) = ::twin::MirrorOf(source);
        ::twin::PrefetchLater(Destination::kIsNz ? &::twin::ahead_left : &::twin::ahead_right, source.At(0, 0),
                              source.layout.pitch, Source::kIsNd ? rows : columns, Source::kIsNd ? columns : rows);
        return;
    }
    const uint64_t all_rows = Destination::kIsZn ? ::twin::RoundUp(rows, d0) : rows;
    const uint64_t all_columns = Destination::kIsNz ? ::twin::RoundUp(columns, d0) : columns;
    for (uint64_t c = 0; c < all_columns; ++c) {
        for (uint64_t r = 0; r < all_rows; ++r) {
            *destination.At(r, c) = r < rows && c < columns ? *source.At(r, c) : 0.0f;
        }
    }
}

template <typename D, int d0, int s0>
JITBLAS_INLINE void Copy(CopyAtom<CopyL12L0A>, const Tensor<Location::L0A, D, d0, float>& destination,
                         const Tensor<Location::L1, NZLayoutPtn, s0, float>& source) {
    static_assert(::twin::kSame<D, NZLayoutPtn>, "L0A is NZ");
    ::twin::Release(destination.start);
    const uint64_t rows = destination.layout.rows;
    const uint64_t columns = destination.layout.columns;
    if (::twin::cube_streams) {
        const ::twin::Mirrored from = ::twin::BehindL1(source);
        ::twin::LoadLeft(destination.start, from.data, from.row_step, from.column_step, rows, columns);
    } else {
        ::twin::PackLeft(destination.start, rows, columns,
                         [&](uint64_t r, uint64_t c) __attribute__((always_inline)) { return *source.At(r, c); });
    }
}

template <typename D, int d0, int s0>
JITBLAS_INLINE void Copy(CopyAtom<CopyL12L0B>, const Tensor<Location::L0B, D, d0, float>& destination,
                         const Tensor<Location::L1, ZNLayoutPtn, s0, float>& source) {
    static_assert(::twin::kSame<D, ZNLayoutPtn>, "L0B is ZN");
    ::twin::Release(destination.start);
    const uint64_t rows = destination.layout.rows;
    const uint64_t columns = destination.layout.columns;
    if (::twin::cube_streams) {
        const ::twin::Mirrored from = ::twin::BehindL1(source);
        ::twin::LoadRight(destination.start, from.data, from.row_step, from.column_step, rows, columns);
    } else {
        ::twin::PackRight(destination.start, rows, columns,
                          [&](uint64_t r, uint64_t c) __attribute__((always_inline)) { return *source.At(r, c); });
    }
}

// Out of L0C: the destination's shape says how much.
template <typename S, int s0>
JITBLAS_INLINE void Copy(CopyAtom<CopyL0C2GM>, const Tensor<Location::GM, NDExtLayoutPtn, 16, float>& destination,
                         const Tensor<Location::L0C, S, s0, float>& source) {
    const uint64_t rows = ::twin::Least(source.layout.rows, destination.layout.rows);
    const uint64_t columns = ::twin::Least(source.layout.columns, destination.layout.columns);
    ::twin::CopyResult(source.start, ::twin::ResultPitch(source.layout.columns), source.row, rows, columns,
                       destination.At(0, 0), destination.layout.pitch);
}

template <typename S, int s0>
JITBLAS_INLINE void Copy(const CopyAtom<CopyL0C2UB>& atom,
                         const Tensor<Location::UB, NDExtLayoutPtn, 16, float>& destination,
                         const Tensor<Location::L0C, S, s0, float>& source) {
    const uint64_t rows = ::twin::Least(source.layout.rows, destination.layout.rows);
    const uint64_t columns = ::twin::Least(source.layout.columns, destination.layout.columns);
    float* to = destination.At(0, 0);
    if (atom.params.subBlockId) {
        to = reinterpret_cast<float*>(reinterpret_cast<uint8_t*>(to) - ::twin::block->ub + ::twin::block->other_ub);
    }
    ::twin::CopyResult(source.start, ::twin::ResultPitch(source.layout.columns), source.row, rows, columns, to,
                       destination.layout.pitch);
}

JITBLAS_INLINE void Copy(CopyAtom<CopyGM2UB>, const Tensor<Location::UB, NDExtLayoutPtn, 16, float>& destination,
                         const Tensor<Location::GM, NDExtLayoutPtn, 16, float>& source) {
    ::twin::CopyRows(destination.At(0, 0), destination.layout.pitch, source.At(0, 0), source.layout.pitch,
                     source.layout.rows, source.layout.columns);
}

JITBLAS_INLINE void Copy(CopyAtom<CopyUB2GM>, const Tensor<Location::GM, NDExtLayoutPtn, 16, float>& destination,
                         const Tensor<Location::UB, NDExtLayoutPtn, 16, float>& source) {
    ::twin::CopyRows(destination.At(0, 0), destination.layout.pitch, source.At(0, 0), source.layout.pitch,
                     source.layout.rows, ::twin::Least(source.layout.columns, destination.layout.columns));
}

// ---- The multiply-add -----------------------------------------------------------------------------------------------

struct MmadParams {
    uint16_t m;
    uint16_t n;
    uint16_t k;
    uint8_t unitFlag;
    bool cmatrixInitVal;  // the result starts from zero

    JITBLAS_INLINE MmadParams(uint16_t rows, uint16_t columns, uint16_t depth, uint8_t unit_flag, bool initial)
        : m(rows), n(columns), k(depth), unitFlag(unit_flag), cmatrixInitVal(initial) {}
};

struct MmadOperation {};

struct MmadAtom {
    MmadParams params;

    JITBLAS_INLINE MmadAtom with(const MmadParams& given) const { return {given}; }
};

JITBLAS_INLINE MmadAtom MakeMmad(MmadOperation) {
    return {MmadParams(0, 0, 0, 0, false)};
}

template <int c0, int a0, int b0>
JITBLAS_INLINE void Mmad(const MmadAtom& atom, const Tensor<Location::L0C, NZLayoutPtn, c0, float>& result,
                         const Tensor<Location::L0A, NZLayoutPtn, a0, float>& left,
                         const Tensor<Location::L0B, ZNLayoutPtn, b0, float>& right) {
    const MmadParams& p = atom.params;
    ::twin::MultiplyAdd(result.start, ::twin::ResultPitch(p.n), left.start, right.start, p.m, p.n, p.k,
                        p.cmatrixInitVal);
}

}  // namespace Te
}  // namespace AscendC

// See kernels_src/common/kernel_common.h; said once per block, before the first copy into L1.
#define JITBLAS_STREAMING_CUBE() ::twin::StreamCube()
