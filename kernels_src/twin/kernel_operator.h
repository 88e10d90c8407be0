// The vendor's umbrella header, as the twin provides it.
#pragma once

#if !defined(JITBLAS_TWIN)
#error "the twin's headers are for host builds: compile with -DJITBLAS_TWIN=1 (fast)"
#elif JITBLAS_TWIN != 1
#error "only the twin's fast build exists so far (JITBLAS_TWIN=1)"
#endif

#include "detail/copy.h"
#include "detail/core.h"
#include "detail/half.h"
#include "detail/pipe.h"
#include "detail/reg.h"
#include "detail/reg_lanes.h"
#include "detail/tensor.h"
#include "detail/vec.h"
