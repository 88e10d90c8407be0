// fft/tiny.asc.
#include "fft.h"

static int Run(uint32_t, const void* arguments) {
    const Arguments& given = *static_cast<const Arguments*>(arguments);
    if (given.tiling.threads == 0 || given.tiling.threads > spec::kMaxThreads) {
        return standin_fault("%u threads in a block", unsigned(given.tiling.threads));
    }
    return TransformAll(given, spec::kScalarCodelets[0]);
}
