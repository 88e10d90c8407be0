// axpy_ex/strided.asc, one block after the other.
#include "axpy_ex.h"

static int Run(uint32_t blocks, const void *arguments) {
    const Arguments &given = *static_cast<const Arguments *>(arguments);
    const Tiling &tiling = given.tiling;
    float alpha = 0;
    if (tiling.threads < 1 || tiling.threads > spec::kMaxThreads) {
        return standin_fault("%u threads, the kernel is bound to %u", unsigned(tiling.threads),
                             unsigned(spec::kMaxThreads));
    }
    if (!ReadAlpha(given, &alpha)) {
        return 507035;
    }
    if (tiling.n == 0) {
        return 0;
    }
    const int64_t last = static_cast<int64_t>(tiling.n) - 1;
    const int64_t incx = tiling.incx;
    const int64_t incy = tiling.incy;
    const Element *x = Reach("x", given.x, uint64_t(last * (incx < 0 ? -incx : incx)) + 1);
    Element *y = Reach("y", given.y, uint64_t(last * (incy < 0 ? -incy : incy)) + 1);
    if (x == nullptr || y == nullptr) {
        return 507035;
    }
    for (uint64_t i = 0; i < tiling.n && i < uint64_t(blocks) * tiling.per_block; ++i) {
        const int64_t step = static_cast<int64_t>(i);
        Element &target = y[(incy < 0 ? step - last : step) * incy];
        target = Updated(alpha, x[(incx < 0 ? step - last : step) * incx], target);
    }
    return 0;
}
