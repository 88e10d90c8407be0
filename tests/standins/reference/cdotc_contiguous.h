// cdotc/contiguous.asc, one block after the other.
#include "cdotc.h"

static int Run(uint32_t blocks, const void *arguments) {
    const Arguments &given = *static_cast<const Arguments *>(arguments);
    const Tiling &tiling = given.tiling;
    if (4ull * spec::kTileElements * sizeof(Complex) > 248 * 1024 - 5 * 256) {
        return standin_fault("four tiles of %u elements and the sums do not fit the unified buffer",
                             unsigned(spec::kTileElements));
    }
    if (spec::kOneCore && blocks != 1) {
        return standin_fault("%u blocks write one result", unsigned(blocks));
    }
    Complex *sums = Reach(spec::kOneCore ? "result" : "workspace", given.sums, blocks);
    if (sums == nullptr) {
        return 507035;
    }
    for (uint64_t block = 0; block < blocks; ++block) {
        const uint64_t begin = block * tiling.per_block;
        const uint64_t left = begin < tiling.n ? tiling.n - begin : 0;
        const uint64_t count = left < tiling.per_block ? left : tiling.per_block;
        const Complex *x = count != 0 ? Reach("x", given.x + begin * sizeof(Complex), count) : nullptr;
        const Complex *y = count != 0 ? Reach("y", given.y + begin * sizeof(Complex), count) : nullptr;
        if (count != 0 && (x == nullptr || y == nullptr)) {
            return 507035;
        }
        Sum sum;
        for (uint64_t i = 0; i < count; ++i) {
            sum.AddProduct(x[i], y[i]);
        }
        sums[block] = sum.Rounded();
    }
    return 0;
}

extern "C" __attribute__((visibility("default"))) int launch(uint32_t blocks, void *stream, void *x, void *y,
                                                             void *result, void *workspace, Tiling tiling) {
    return Launch(blocks, stream, x, y, result, workspace, tiling, spec::kOneCore ? 0 : blocks);
}
