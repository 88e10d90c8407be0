// cdotc/strided.asc, one thread of one block after the other.
#include "cdotc.h"

static int Run(uint32_t blocks, const void *arguments) {
    const Arguments &given = *static_cast<const Arguments *>(arguments);
    const Tiling &tiling = given.tiling;
    const uint64_t threads = tiling.threads;
    if (threads < 1 || threads > spec::kMaxThreads) {
        return standin_fault("%u threads, the kernel is bound to %u", unsigned(threads), unsigned(spec::kMaxThreads));
    }
    const int64_t n = static_cast<int64_t>(tiling.n);
    const int64_t incx = tiling.incx;
    const int64_t incy = tiling.incy;
    const Complex *x = n == 0 ? nullptr : Reach("x", given.x, uint64_t((n - 1) * (incx < 0 ? -incx : incx)) + 1);
    const Complex *y = n == 0 ? nullptr : Reach("y", given.y, uint64_t((n - 1) * (incy < 0 ? -incy : incy)) + 1);
    Complex *sums = Reach("workspace", given.sums, blocks * threads);
    if ((n != 0 && (x == nullptr || y == nullptr)) || sums == nullptr) {
        return 507035;
    }
    const int64_t per_block = static_cast<int64_t>(tiling.per_block);
    for (int64_t block = 0; block < int64_t(blocks); ++block) {
        const int64_t end = (block + 1) * per_block < n ? (block + 1) * per_block : n;
        for (uint64_t thread = 0; thread < threads; ++thread) {
            Sum sum;
            for (int64_t i = block * per_block + int64_t(thread); i < end; i += int64_t(threads)) {
                sum.AddProduct(x[(incx < 0 ? i - n + 1 : i) * incx], y[(incy < 0 ? i - n + 1 : i) * incy]);
            }
            sums[uint64_t(block) * threads + thread] = sum.Rounded();
        }
    }
    return 0;
}

extern "C" __attribute__((visibility("default"))) int launch(uint32_t blocks, void *stream, void *x, void *y,
                                                             void *result, void *workspace, Tiling tiling) {
    return Launch(blocks, stream, x, y, result, workspace, tiling, uint64_t(blocks) * tiling.threads);
}
