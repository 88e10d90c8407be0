// csyrk/small.asc.
#include "csyrk.h"

static int Run(uint32_t, const void *arguments) {
    return Update(*static_cast<const Arguments *>(arguments));
}
