"""The aclblas interface: names, argument order, enumerations and status codes of the C API.

Functions return a :class:`Status` and are asynchronous on the handle's stream. They raise only TypeError, for Python
objects that are neither pointers nor numbers; `jitblas.last_error()` has the sentence behind the last status that was
not zero. A pointer is an address, a ctypes pointer or object, a NumPy array, a DeviceArray, a tensor with data_ptr(),
or None for the null pointer.
"""

from __future__ import annotations

from jitblas.aclblas.axpy_ex import aclblasAxpyEx
from jitblas.aclblas.cdotc import aclblasCdotc
from jitblas.aclblas.csyrk import aclblasCsyrk
from jitblas.aclblas.enums import (
    ACL_BF16,
    ACL_COMPLEX64,
    ACL_COMPLEX128,
    ACL_DOUBLE,
    ACL_FLOAT,
    ACL_FLOAT16,
    LOWER,
    OP_C,
    OP_N,
    OP_T,
    UPPER,
    DataType,
    Fill,
    Operation,
)
from jitblas.aclblas.handles import (
    aclblasCreate,
    aclblasDestroy,
    aclblasGetStream,
    aclblasSetStream,
    aclblasSetWorkspace,
)
from jitblas.aclblas.sgemm_strided_batched import aclblasSgemmStridedBatched
from jitblas.aclblas.status import last_error

__all__ = [
    "ACL_BF16",
    "ACL_COMPLEX64",
    "ACL_COMPLEX128",
    "ACL_DOUBLE",
    "ACL_FLOAT",
    "ACL_FLOAT16",
    "LOWER",
    "OP_C",
    "OP_N",
    "OP_T",
    "UPPER",
    "DataType",
    "Fill",
    "Operation",
    "aclblasAxpyEx",
    "aclblasCdotc",
    "aclblasCreate",
    "aclblasCsyrk",
    "aclblasDestroy",
    "aclblasGetStream",
    "aclblasSetStream",
    "aclblasSetWorkspace",
    "aclblasSgemmStridedBatched",
    "last_error",
]
