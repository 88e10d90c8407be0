// csyrk/large.asc, whose first kernel splits A into planes: all of its kernels in one launch. The workspace must hold
// three planes, the flags of the cores that make them, and one for each row; it is left full of NaN.
#include <string.h>

#include "csyrk.h"

static int Run(uint32_t, const void *arguments) {
    const Arguments &given = *static_cast<const Arguments *>(arguments);
    const Tiling &t = given.tiling;
    if (t.k != 0) {
        const uint64_t plane = ((spec::kAlongColumns ? t.k : t.n) * t.plane_ld + 7) / 8 * 8;
        const uint64_t bytes = (3 * plane + 8 * t.split_blocks + t.n) * sizeof(float);
        void *memory = Reach("workspace", given.workspace, bytes);
        if (memory == nullptr) {
            return 507035;
        }
        memset(memory, 0xff, bytes);
    }
    return Update(given);
}
