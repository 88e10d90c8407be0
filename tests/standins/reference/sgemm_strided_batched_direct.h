// sgemm_strided_batched/direct.asc: the fix-pipe wants rows of C that begin at multiples of 32 bytes.
#include "sgemm_strided_batched.h"

static int Run(uint32_t, const void *arguments) {
    const Arguments &given = *static_cast<const Arguments *>(arguments);
    if (given.tiling.ldc % 8 != 0 || (given.tiling.batch > 1 && given.tiling.stride_c % 8 != 0)) {
        return standin_fault("fix-pipe: rows of C are %llu, matrices %llu elements apart",
                             static_cast<unsigned long long>(given.tiling.ldc),
                             static_cast<unsigned long long>(given.tiling.stride_c));
    }
    return Multiply(given, 1.0f, 0.0f);
}
