"""jitblas: BLAS kernels in Ascend C, compiled at the first call, for the Ascend 950 and for this CPU.

Importing costs nothing: every name below is fetched when it is first used.
"""

from __future__ import annotations

TYPE_CHECKING = False  # importing typing takes longer than everything else here
if TYPE_CHECKING:
    from typing import Any

__version__ = "0.1.0"

_WHERE = {
    "axpy_ex": "blas.axpy_ex",
    "cdotc": "blas.cdotc",
    "csyrk": "blas.csyrk",
    "sgemm_strided_batched": "blas.sgemm_strided_batched",
    "Handle": "handle",
    "Stream": "handle",
    "Event": "handle",
    "DeviceArray": "arrays",
    "empty": "arrays",
    "zeros": "arrays",
    "array": "arrays",
    "last_error": "aclblas",
    "Problem": "problem",
    "Specialization": "jit.specialization",
    "specialize": "jit.specialization",
    "Plan": "plans",
    "plan": "plans",
    "prewarm": "prewarming",
    "targets": "jit.kernels",
    "reload": "jit.kernels",
    "show_config": "report",
    "Status": "errors",
    "Error": "errors",
    "StatusError": "errors",
    "ArchMismatch": "errors",
    "CacheError": "errors",
    "CompileError": "errors",
    "CompilerNotFound": "errors",
    "MissingKernelError": "errors",
    "ProblemSyntaxError": "errors",
}

_MODULES = ("aclblas", "fft")

if TYPE_CHECKING:
    from jitblas import aclblas, fft
    from jitblas.aclblas import last_error
    from jitblas.arrays import DeviceArray, array, empty, zeros
    from jitblas.blas.axpy_ex import axpy_ex
    from jitblas.blas.cdotc import cdotc
    from jitblas.blas.csyrk import csyrk
    from jitblas.blas.sgemm_strided_batched import sgemm_strided_batched
    from jitblas.errors import (
        ArchMismatch,
        CacheError,
        CompileError,
        CompilerNotFound,
        Error,
        MissingKernelError,
        ProblemSyntaxError,
        Status,
        StatusError,
    )
    from jitblas.handle import Event, Handle, Stream
    from jitblas.jit.kernels import reload, targets
    from jitblas.jit.specialization import Specialization, specialize
    from jitblas.plans import Plan, plan
    from jitblas.prewarming import prewarm
    from jitblas.problem import Problem
    from jitblas.report import show_config

__all__ = [
    "ArchMismatch",
    "CacheError",
    "CompileError",
    "CompilerNotFound",
    "DeviceArray",
    "Error",
    "Event",
    "Handle",
    "MissingKernelError",
    "Plan",
    "Problem",
    "ProblemSyntaxError",
    "Specialization",
    "Status",
    "StatusError",
    "Stream",
    "aclblas",
    "array",
    "axpy_ex",
    "cdotc",
    "csyrk",
    "empty",
    "fft",
    "last_error",
    "plan",
    "prewarm",
    "reload",
    "sgemm_strided_batched",
    "show_config",
    "specialize",
    "targets",
    "zeros",
]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _MODULES:
        return import_module(f"jitblas.{name}")
    if name not in _WHERE:
        raise AttributeError(f"module 'jitblas' has no attribute {name!r}")
    value = getattr(import_module(f"jitblas.{_WHERE[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
