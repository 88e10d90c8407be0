// axpy_ex/contiguous.asc, one block after the other.
#include "axpy_ex.h"

static int Run(uint32_t blocks, const void *arguments) {
    const Arguments &given = *static_cast<const Arguments *>(arguments);
    const Tiling &tiling = given.tiling;
    float alpha = 0;
    if (4ull * spec::kTileElements * sizeof(Element) > 248 * 1024) {
        return standin_fault("four tiles of %u elements do not fit the unified buffer",
                             unsigned(spec::kTileElements));
    }
    if (!ReadAlpha(given, &alpha)) {
        return 507035;
    }
    for (uint64_t block = 0; block < blocks; ++block) {
        const uint64_t begin = block * tiling.per_block;
        const uint64_t left = begin < tiling.n ? tiling.n - begin : 0;
        const uint64_t count = left < tiling.per_block ? left : tiling.per_block;
        if (count == 0) {
            continue;
        }
        const Element *x = Reach("x", given.x + begin * sizeof(Element), count);
        Element *y = Reach("y", given.y + begin * sizeof(Element), count);
        if (x == nullptr || y == nullptr) {
            return 507035;
        }
        for (uint64_t i = 0; i < count; ++i) {
            y[i] = Updated(alpha, x[i], y[i]);
        }
    }
    return 0;
}
