// The cube of the host: loads into L0A and L0B, and the matrix multiply-add, in GNU vector extensions so that g++,
// clang and zig compile them alike.
//
// The multiply-add cuts n into panels of a few vectors and m into rows, evenly, so that a block of the result fits the
// registers. A row of the block takes one element of the left operand, from wherever it is, times a row of vectors of
// the right one. What lies in global memory is used from there where it is small and in order, and is otherwise packed
// by the loads, which is what loads into L0 do on the chip, too.
#include "../detail/cube_abi.h"

#include "../detail/transpose.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

using twin::Floats;
using twin::kWords;

// Registers hold a block of kRows<v> rows of v vectors, one row of the right operand, and one broadcast element.
#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int kMostVectors = 3;
template <int vectors>
constexpr int kRows = vectors == 1   ? 16
                      : vectors == 2 ? 12
                                     : 9;
#elif defined(__AVX2__)
constexpr int kMostVectors = 3;
template <int vectors>
constexpr int kRows = vectors == 1   ? 8
                      : vectors == 2 ? 6
                                     : 4;
#else
constexpr int kMostVectors = 2;
template <int vectors>
constexpr int kRows = vectors == 1 ? 8 : 6;
#endif
constexpr uint64_t kMostRows = 16;
constexpr uint64_t kLongChain = 64;  // products that are added up one after the other; then chains are added up
constexpr uint64_t kShortChain = 32;
constexpr int64_t kRowsAhead = 16;  // between a row of the right operand and the one that is prefetched
constexpr int kLineFloats = twin::kCacheLineBytes / 4;
template <int vectors>
constexpr int kLines = (vectors * kWords + kLineFloats - 1) / kLineFloats;

// Floats; an operand that spans less is used where it is.
constexpr int64_t kSmallLeft = 72 * 1024;  // in as many pages as a core finds without a search
constexpr int64_t kSmallRight = 128 * 128;
constexpr uint64_t kStreams = 1024;         // vectors; a right operand of fewer stays in the first-level cache
constexpr uint64_t kLeastPackedDepth = 64;  // below that, padding between packed rows would outgrow L0A

// The one place where a * b + c is contracted to one rounding, as the cube does it: everything else is compiled with
// -ffp-contract=off. A loop over __builtin_fmaf would not use broadcast operands.
#if defined(__clang__)
#define CONTRACTS __attribute__((min_vector_width(kWords * 32)))
#define CONTRACT _Pragma("clang fp contract(fast)")
#define UNROLL _Pragma("unroll")
#else
#define CONTRACTS __attribute__((optimize("fp-contract=fast")))
#define CONTRACT
#define UNROLL _Pragma("GCC unroll 64")
#endif

struct Block {
    uint64_t k;
    uint64_t chain;  // of k
    const float* left;
    int64_t row_step;
    int64_t column_step;
    const float* right;
    int64_t right_step;
    const float* addend;  // null: none
    uint64_t addend_pitch;
    float* result;
    uint64_t result_pitch;
    uint64_t result_mask;    // a row of the result is prefetched whenever these bits of the step are zero
    const char* ahead_left;  // lines of later operands, prefetched one at a step
    const char* ahead_right;
    uint64_t ahead_left_step;
    uint64_t ahead_right_step;
};

// Hides a pointer's origin: addresses of rows then stay in registers instead of being computed anew in the loop.
template <typename T>
JITBLAS_INLINE void Hide(T& value) {
    __asm__("" : "+r"(value));
}

// One block of the result. `streams`: the right operand is too large for the first-level cache.
template <int rows, int vectors, bool streams>
CONTRACTS __attribute__((noinline)) void Multiply(const Block& block) {
    CONTRACT
    constexpr int groups = (rows + 3) / 4;
    Floats sum[rows][vectors];
    const float* left[groups];  // rows in groups of four: base, base + step, base + 2 steps, base + 3 steps
    const int64_t step = block.row_step;
    int64_t three_steps = 3 * step;
    Hide(three_steps);
    UNROLL for (int g = 0; g < groups; ++g) {
        left[g] = block.left + 4 * g * step;
        Hide(left[g]);
    }
    const float* right = block.right;
    const float* result = block.result;
    const char* ahead_left = block.ahead_left;
    const char* ahead_right = block.ahead_right;
    Floats total[rows][vectors];  // of the chains before
    for (uint64_t p = 0; p < block.k;) {
        const uint64_t first = p;
        const uint64_t end = block.k - p > block.chain ? p + block.chain : block.k;
        UNROLL for (int i = 0; i < rows; ++i) {
            UNROLL for (int j = 0; j < vectors; ++j) {
                sum[i][j] = Floats{};
            }
        }
        for (; p < end; ++p) {
            if ((p & block.result_mask) == 0) {  // all rows of the result at once would crowd out loads
                UNROLL for (int j = 0; j < kLines<vectors>; ++j) {
                    __builtin_prefetch(result + j * kLineFloats, 1);
                }
                result += block.result_pitch;
            }
            if (streams) {
                UNROLL for (int j = 0; j < kLines<vectors>; ++j) {
                    __builtin_prefetch(right + kRowsAhead * block.right_step + j * kLineFloats);
                }
            }
            if (!streams) {
                __builtin_prefetch(ahead_left);
                __builtin_prefetch(ahead_right);
                ahead_left += block.ahead_left_step;
                ahead_right += block.ahead_right_step;
            }
            Floats row[vectors];
            UNROLL for (int j = 0; j < vectors; ++j) {
                row[j] = twin::LoadUnaligned(row[j], right + j * kWords);
            }
            UNROLL for (int i = 0; i < rows; ++i) {
                const float element = i % 4 == 3 ? left[i / 4][three_steps] : left[i / 4][i % 4 * step];
                UNROLL for (int j = 0; j < vectors; ++j) {
                    sum[i][j] += element * row[j];
                }
            }
            UNROLL for (int g = 0; g < groups; ++g) {
                left[g] += block.column_step;
            }
            right += block.right_step;
        }
        if (first != 0) {
            UNROLL for (int i = 0; i < rows; ++i) {
                UNROLL for (int j = 0; j < vectors; ++j) {
                    sum[i][j] += total[i][j];
                }
            }
        }
        if (end != block.k) {
            UNROLL for (int i = 0; i < rows; ++i) {
                UNROLL for (int j = 0; j < vectors; ++j) {
                    total[i][j] = sum[i][j];
                }
            }
        }
    }
    if (block.addend != nullptr) {
        const float* addend = block.addend;
        UNROLL for (int i = 0; i < rows; ++i) {
            UNROLL for (int j = 0; j < vectors; ++j) {
                sum[i][j] += twin::LoadUnaligned(sum[i][j], addend + j * kWords);
            }
            addend += block.addend_pitch;
        }
    }
    float* out = block.result;
    UNROLL for (int i = 0; i < rows; ++i) {
        UNROLL for (int j = 0; j < vectors; ++j) {
            twin::StoreUnaligned(out + j * kWords, sum[i][j]);
        }
        out += block.result_pitch;
    }
}

using Multiplier = void (*)(const Block&);

template <int vectors, bool streams, typename Rows>
struct Multipliers;

template <int vectors, bool streams, int... rows>
struct Multipliers<vectors, streams, twin::Indices<rows...>> {
    static constexpr Multiplier kOf[] = {Multiply<rows + 1, vectors, streams>...};  // of rows + 1
};

template <int vectors, bool streams>
Multiplier MultiplierOf(uint32_t rows) {
    return Multipliers<vectors, streams, twin::MakeIndices<kRows<vectors>>>::kOf[rows - 1];
}

template <bool streams>
Multiplier MultiplierOf(uint32_t vectors, uint32_t rows) {
    switch (vectors) {
        case 1:
            return MultiplierOf<1, false>(rows);
        case 2:
            return MultiplierOf<2, streams>(rows);
        default:
            return MultiplierOf<kMostVectors, streams>(rows);
    }
}

uint32_t RowsOf(uint32_t vectors) {
    return vectors == 1 ? kRows<1> : vectors == 2 ? kRows<2> : kRows<kMostVectors>;
}

uint32_t CeilDiv(uint32_t number, uint32_t unit) {
    return (number + unit - 1) / unit;
}

// `total` cut into parts as evenly as can be: the first `longer` of them have one more than `length`.
struct Cut {
    Cut(uint32_t total, uint32_t count) : parts(count), length(total / count), longer(total - length * count) {}

    uint32_t Length(uint32_t part) const { return length + (part < longer ? 1 : 0); }

    uint32_t parts;
    uint32_t length;
    uint32_t longer;
};

// Columns as vectors, vectors as panels.
Cut Panels(uint64_t columns) {
    const uint32_t vectors = CeilDiv(static_cast<uint32_t>(columns), kWords);
    return Cut(vectors, CeilDiv(vectors, kMostVectors));
}

// At least as many requests as there are rows, spread over the loop.
uint64_t MaskOf(uint64_t k) {
    uint64_t mask = 0;
    while (mask < 15 && (mask + 1) * 2 * kMostRows <= k) {
        mask = 2 * mask + 1;
    }
    return mask;
}

// Evenly cut parts of k that are short enough for its sum to be as exact as a product of matrices promises.
uint64_t ChainOf(uint64_t k) {
    const uint64_t chains = k <= kShortChain ? 1 : k <= 2 * kShortChain ? 2 : (k + kLongChain - 1) / kLongChain;
    return (k + chains - 1) / chains;
}

// Memory that is to be prefetched, a run of lines for every block; a step of 0 when there is none left.
class Ahead {
public:
    Ahead(const void* start, uint64_t bytes) : next_(static_cast<const char*>(start)), left_(bytes) {}

    const char* Take(uint64_t lines, uint64_t* step) {
        const char* run = next_;
        *step = left_ != 0 ? twin::kCacheLineBytes : 0;
        const uint64_t bytes = lines * *step < left_ ? lines * *step : left_;
        next_ += bytes;
        left_ -= bytes;
        return run;
    }

private:
    const char* next_;
    uint64_t left_;
};

float* BehindDescription(void* operand) {
    return reinterpret_cast<float*>(static_cast<uint8_t*>(operand) + JITBLAS_OPERAND_BYTES);
}

// ---- Packing ------------------------------------------------------------------------------------------------------

// One vector's columns of the right operand, `panel` floats from one row to the next. Missing columns are zero.
void PackVector(const float* from, int64_t row_step, int64_t column_step, uint64_t depth, uint64_t columns, float* to,
                uint64_t panel) {
    twin::Words within = twin::LaneNumbers();
    UNROLL for (int i = 0; i < kWords; ++i) {
        within[i] = within[i] < columns ? ~0u : 0u;
    }
    const auto store = [&](uint64_t p, const Floats& row) {
        twin::StoreUnaligned(to + p * panel, reinterpret_cast<twin::Words>(row) & within);
    };
    uint64_t p = 0;
    if (row_step == 1) {
        for (; p + 4 <= depth; p += 4) {
            Floats rows[4];
            twin::LoadFourColumns(from + p, column_step, static_cast<int>(columns), rows);
            UNROLL for (int i = 0; i < 4; ++i) {
                store(p + i, rows[i]);
            }
        }
    } else if (column_step == 1) {
        // Whole vectors, as far as they end within the operand.
        const float* end = from + static_cast<int64_t>(depth - 1) * row_step + columns;
        for (const float* row = from; p < depth && row + kWords <= end; ++p, row += row_step) {
            store(p, twin::LoadUnaligned(Floats{}, row));
        }
    }
    for (; p < depth; ++p) {
        const float* row = from + static_cast<int64_t>(p) * row_step;
        Floats few{};
        for (uint64_t c = 0; c < columns; ++c) {
            few[c] = row[static_cast<int64_t>(c) * column_step];
        }
        store(p, few);
    }
}

// A panel of whole vectors from contiguous rows.
template <int vectors>
void PackPanel(const float* from, int64_t row_step, uint64_t depth, float* to) {
    for (uint64_t p = 0; p < depth; ++p) {
        UNROLL for (int j = 0; j < kLines<vectors>; ++j) {
            __builtin_prefetch(from + kRowsAhead * row_step + j * kLineFloats);
        }
        UNROLL for (int j = 0; j < vectors; ++j) {
            twin::StoreUnaligned(to + j * kWords, twin::LoadUnaligned(Floats{}, from + j * kWords));
        }
        from += row_step;
        to += vectors * kWords;
    }
}

void PackRight(const float* from, int64_t row_step, int64_t column_step, uint64_t depth, uint64_t columns, float* to) {
    const Cut panels = Panels(columns);
    for (uint32_t i = 0; i < panels.parts; ++i) {
        const uint32_t count = panels.Length(i);
        if (column_step == 1 && count * kWords <= columns) {
            (count == 1   ? PackPanel<1>
             : count == 2 ? PackPanel<2>
                          : PackPanel<kMostVectors>)(from, row_step, depth, to);
        } else {
            for (uint32_t j = 0; j < count; ++j) {
                const uint64_t left = columns - j * kWords;
                PackVector(from + static_cast<int64_t>(j * kWords) * column_step, row_step, column_step, depth,
                           left < kWords ? left : kWords, to + j * kWords, count * kWords);
            }
        }
        from += static_cast<int64_t>(count * kWords) * column_step;
        to += count * kWords * depth;
        columns -= columns < count * kWords ? columns : count * kWords;
    }
}

// Rows of the left operand close to each other, their distance no power of two, which would crowd a few sets of the
// cache.
uint64_t PackedPitch(uint64_t depth) {
    return (depth + 15) / 16 * 16 + 16;
}

void PackRows(const float* from, int64_t row_step, uint64_t rows, uint64_t depth, float* to, uint64_t pitch) {
    for (uint64_t r = 0; r < rows; ++r) {
        __builtin_memcpy(to + r * pitch, from + static_cast<int64_t>(r) * row_step, depth * sizeof(float));
    }
}

// Rows of the left operand that is stored by columns, for parts of kRows<kMostVectors> rows cut evenly: one part after
// the other, each its columns side by side.
template <int rows>
void PackColumns(const float* from, int64_t step, uint64_t depth, float* to) {
    for (uint64_t p = 0; p < depth; ++p) {
        __builtin_memcpy(to + p * rows, from + static_cast<int64_t>(p) * step, rows * sizeof(float));
    }
}

template <int rows>
void PackPart(uint32_t length, const float* from, int64_t step, uint64_t depth, float* to) {
    if constexpr (rows > 0) {
        if (length == rows) {
            PackColumns<rows>(from, step, depth, to);
        } else {
            PackPart<rows - 1>(length, from, step, depth, to);
        }
    }
}

constexpr uint64_t kColumnsAtOnce = 16;

// Some columns at a time for all parts, so that whole cache lines are used while they are near.
void PackParts(const float* from, int64_t step, uint64_t rows, uint64_t depth, float* to) {
    const Cut parts(static_cast<uint32_t>(rows), CeilDiv(static_cast<uint32_t>(rows), kRows<kMostVectors>));
    for (uint64_t p = 0; p < depth; p += kColumnsAtOnce) {
        const uint64_t columns = depth - p < kColumnsAtOnce ? depth - p : kColumnsAtOnce;
        if (p + 2 * kColumnsAtOnce <= depth) {
            for (uint64_t q = p + kColumnsAtOnce; q < p + 2 * kColumnsAtOnce; ++q) {
                const float* column = from + static_cast<int64_t>(q) * step;
                for (uint64_t r = 0; r < rows; r += kLineFloats) {
                    __builtin_prefetch(column + r);
                }
            }
        }
        uint64_t row = 0;
        for (uint32_t i = 0; i < parts.parts; ++i) {
            const uint32_t length = parts.Length(i);
            PackPart<kRows<kMostVectors>>(length, from + static_cast<int64_t>(p) * step + row, step, columns,
                                          to + row * depth + p * length);
            row += length;
        }
    }
}

}  // namespace

static void LoadLeft(void* l0a, const float* data, int64_t row_step, int64_t column_step, uint64_t rows, uint64_t depth,
                     uint32_t pack) {
    JitblasOperand* operand = static_cast<JitblasOperand*>(l0a);
    *operand = {data, row_step, column_step, 0};
    const int64_t span =
        column_step == 1 ? static_cast<int64_t>(rows) * row_step : static_cast<int64_t>(depth) * column_step;
    if (pack == 0 || span <= kSmallLeft || depth < kLeastPackedDepth) {
        return;
    }
    float* packed = BehindDescription(l0a);
    if (column_step == 1) {
        const uint64_t pitch = PackedPitch(depth);
        PackRows(data, row_step, rows, depth, packed, pitch);
        *operand = {packed, static_cast<int64_t>(pitch), 1, 0};
    } else {
        PackParts(data, column_step, rows, depth, packed);
        *operand = {packed, 1, 0, 1};
    }
}

static void LoadRight(void* l0b, const float* data, int64_t row_step, int64_t column_step, uint64_t depth,
                      uint64_t columns, uint32_t pack) {
    JitblasOperand* operand = static_cast<JitblasOperand*>(l0b);
    // Rows an odd number of cache lines apart spread over the sets of a cache, and may lie where they are.
    const bool spread = row_step % kLineFloats == 0 && row_step / kLineFloats % 2 == 1;
    const bool small = static_cast<int64_t>(depth) * row_step <= (spread ? kSmallLeft : kSmallRight);
    if (columns % kWords == 0 && column_step == 1 && (small || pack == 0)) {
        *operand = {data, row_step, 1, 0};
        return;
    }
    // What came element by element lies where panels go: they go behind it.
    float* packed = BehindDescription(l0b) + (pack == 0 ? depth * columns : 0);
    PackRight(data, row_step, column_step, depth, columns, packed);
    *operand = {packed, 0, 1, 1};
}

static void MultiplyAdd(const JitblasProduct* product) {
    const JitblasOperand& left = *static_cast<const JitblasOperand*>(product->left);
    const JitblasOperand& right = *static_cast<const JitblasOperand*>(product->right);
    const uint64_t k = product->k;
    const Cut panels = Panels(product->n);
    const uint32_t most = left.packed != 0 ? kRows<kMostVectors> : RowsOf(panels.Length(0));
    const uint32_t m = static_cast<uint32_t>(product->m);
    const Cut parts(m, CeilDiv(m, most));
    const bool streams = panels.length * panels.parts * k >= kStreams;
    Ahead ahead_left(product->ahead_left, product->ahead_left_bytes);
    Ahead ahead_right(product->ahead_right, product->ahead_right_bytes);
    Block block;
    block.k = k;
    block.chain = ChainOf(k);
    block.left = left.data + static_cast<int64_t>(product->first_row) * left.row_step;
    block.row_step = left.row_step;
    block.column_step = left.column_step;
    block.addend_pitch = product->addend_pitch;
    block.result_pitch = product->result_pitch;
    block.result_mask = MaskOf(k);
    uint64_t row = 0;
    // Rows outside: their part of the left operand stays in the first-level cache, while panels stream from the second.
    for (uint32_t part = 0; part < parts.parts; ++part) {
        const uint32_t rows = parts.Length(part);
        if (left.packed != 0) {
            block.column_step = rows;
        }
        block.right = right.data;
        block.addend = product->addend != nullptr ? product->addend + row * product->addend_pitch : nullptr;
        block.result = product->result + row * product->result_pitch;
        for (uint32_t i = 0; i < panels.parts; ++i) {
            const uint32_t count = panels.Length(i);
            const uint32_t width = count * kWords;
            block.right_step = right.packed != 0 ? static_cast<int64_t>(width) : right.row_step;
            block.ahead_left = ahead_left.Take(k, &block.ahead_left_step);
            block.ahead_right = ahead_right.Take(k, &block.ahead_right_step);
            (streams ? MultiplierOf<true>(count, rows) : MultiplierOf<false>(count, rows))(block);
            block.right += right.packed != 0 ? width * k : width;
            block.result += width;
            block.addend += block.addend != nullptr ? width : 0;
        }
        block.left += left.packed != 0 ? rows * k : static_cast<uint64_t>(rows) * left.row_step;
        row += rows;
    }
}

static const JitblasCube table = {LoadLeft, LoadRight, MultiplyAdd};

EXPORT const char* jitblas_key() {
    return JITBLAS_KEY;
}

EXPORT const JitblasCube* jitblas_cube_table() {
    return &table;
}
