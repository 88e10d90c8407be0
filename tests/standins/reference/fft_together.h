// fft/passes.asc, whose first launch names it: its passes at once, but with the workspace and the tables that they need.
#include "fft.h"

static int Run(uint32_t, const void* arguments) {
    const Arguments& given = *static_cast<const Arguments*>(arguments);
    const uint64_t reals = 2 * uint64_t(spec::kTransform) * given.tiling.batch;
    if (spec::kPasses > 1 && Reach("workspace", given.workspace, reals) == nullptr) {
        return 507035;
    }
    const uint32_t last = spec::kPasses - 1;
    const uint32_t turns = spec::kTurnReals[last] == 0 ? 0 : spec::kBefore[last] / spec::kColumns[last];
    const uint64_t end = spec::kTables[last] + spec::kTableReals[last] + uint64_t(turns) * spec::kTurnReals[last];
    const spec::Real* table = Reach("table", given.table, end);
    if (table == nullptr) {
        return 507035;
    }
    for (uint64_t i = 0; i < end; ++i) {
        if (!(table[i] >= -1 && table[i] <= 1)) {
            return standin_fault("number %llu of the table is %g", static_cast<unsigned long long>(i),
                                 double(table[i]));
        }
    }
    return TransformAll(given, spec::kTransform);
}
