// sgemm_strided_batched/narrow.asc.
#include "sgemm_strided_batched.h"

static int Run(uint32_t, const void *arguments) {
    const Arguments &given = *static_cast<const Arguments *>(arguments);
    float alpha = given.tiling.alpha;
    float beta = given.tiling.beta;
    if (spec::kScalarsOnDevice &&
        (!ReadScalar("alpha", given.alpha, &alpha) || !ReadScalar("beta", given.beta, &beta))) {
        return 507035;
    }
    return Multiply(given, alpha, beta);
}
