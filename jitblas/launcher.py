"""The compiled way into a plan (kernels_src/launcher); where it cannot be built, plans call through ctypes instead."""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable, Sequence
from ctypes import c_int32, c_int64, c_uint8, c_uint32, c_uint64, c_void_p
from typing import Any, NamedTuple

import numpy as np

from jitblas import config
from jitblas.errors import Error
from jitblas.jit import libraries
from jitblas.jit.kernels import load_named

MAX_ARRAYS, MAX_FIXED, MAX_DIMENSIONS, MAX_TILING_BYTES = 4, 2, 3, 256

_PYTHON_FUNCTIONS = (
    "PyObject_Type", "Py_IncRef", "Py_DecRef", "PyFloat_AsDouble", "PyTuple_New", "PyTuple_SetItem", "PyObject_Call",
    "PyCFunction_NewEx", "PyCapsule_New", "PyCapsule_GetPointer", "PyEval_SaveThread", "PyEval_RestoreThread",
    "PyLong_FromLong",
)  # fmt: skip
"""Functions of Python's stable ABI, in the order of launcher.cpp's PythonFunctions."""


class _Array(ctypes.Structure):
    _fields_ = [
        ("dtype", c_void_p), ("dimensions", c_int32), ("written", c_int32), ("operand", c_int64),
        ("shape", c_int64 * MAX_DIMENSIONS), ("strides", c_int64 * MAX_DIMENSIONS), ("low", c_int64), ("high", c_int64),
    ]  # fmt: skip


class _Plan(ctypes.Structure):
    _fields_ = [
        ("python", c_void_p), ("launch", c_void_p), ("stream_idle", c_void_p), ("array_type", c_void_p),
        ("float_type", c_void_p), ("fallback", c_void_p), ("stream", c_void_p), ("fixed", c_void_p * MAX_FIXED),
        ("head_bytes", c_uint64), ("blocks", c_uint32), ("scalars", c_uint32), ("scalar_offset", c_uint32),
        ("arrays", c_uint32), ("result", c_uint32), ("fixed_count", c_uint32),
        ("fixed_operand", c_uint32 * MAX_FIXED), ("quick", c_uint32),
        ("array", _Array * MAX_ARRAYS), ("tiling", c_uint8 * MAX_TILING_BYTES),
    ]  # fmt: skip


class ArraySpec(NamedTuple):
    """What an argument must be to take the compiled way: layout in bytes, and whether it is written."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    operand: int
    """Its place among the operands of the kernel."""
    written: bool


def make(
    launch_packed: int,
    blocks: int,
    stream: int,
    stream_idle: int,
    tiling: ctypes.Structure,
    scalar: str | None,
    arrays: Sequence[ArraySpec],
    result: int,
    quick: bool,
    fallback: Callable[..., Any],
    fixed: Sequence[tuple[int, int]] = (),
) -> Callable[..., Any] | None:
    """A function `call(scalar, *arrays)` that launches without Python code, or None where none can be built.

    `scalar` is the tiling field that the first argument sets; None: the arguments are arrays only.

    `fixed`: (address, place among the operands of the kernel) of what is the same for every call, such as a workspace.

    `launch_packed` and `stream_idle` are addresses of C functions. `fallback` is called instead when an argument is not
    what `arrays` says, and with the bare status of a launch that failed.
    """
    library = _library()
    if library is None or len(arrays) > MAX_ARRAYS or ctypes.sizeof(tiling) > MAX_TILING_BYTES:
        return None
    plan = _Plan(
        python=ctypes.addressof(_python_functions()),
        launch=launch_packed,
        stream_idle=stream_idle,
        array_type=id(np.ndarray),
        float_type=id(float),
        fallback=id(fallback),
        stream=stream,
        head_bytes=object.__basicsize__,
        blocks=blocks,
        scalars=0 if scalar is None else 1,
        scalar_offset=0 if scalar is None else getattr(type(tiling), scalar).offset,
        arrays=len(arrays),
        result=result,
        quick=quick,
        fixed_count=len(fixed),
    )
    for number, (address, operand) in enumerate(fixed):
        plan.fixed[number], plan.fixed_operand[number] = address, operand
    for place, spec in zip(plan.array, arrays, strict=False):
        place.dtype, place.dimensions, place.written = id(spec.dtype), len(spec.shape), spec.written
        place.operand = spec.operand
        place.shape[: len(spec.shape)] = spec.shape
        place.strides[: len(spec.strides)] = spec.strides
        reach = [(length - 1) * stride for length, stride in zip(spec.shape, spec.strides, strict=True)]
        place.low = sum(min(step, 0) for step in reach)
        place.high = sum(max(step, 0) for step in reach) + spec.dtype.itemsize
    ctypes.memmove(ctypes.addressof(plan) + _Plan.tiling.offset, ctypes.addressof(tiling), ctypes.sizeof(tiling))
    made: Callable[..., Any] = library.jitblas_launcher_make(ctypes.addressof(plan))
    return made


@functools.cache
def _python_functions() -> ctypes.Array[c_void_p]:
    addresses = [ctypes.cast(getattr(ctypes.pythonapi, name), c_void_p).value for name in _PYTHON_FUNCTIONS]
    return (c_void_p * len(addresses))(*addresses)


@functools.cache
def _library() -> Any:
    """The loaded launcher, None where it cannot be had (JITBLAS_VERBOSE=1 says why)."""
    try:
        library: Any = load_named(libraries.LAUNCHER, ctypes.PyDLL)
    except Error as error:
        if config.verbose():
            print(f"jitblas: plans call through ctypes: {error}", file=sys.stderr)
        return None
    library.jitblas_launcher_plan_bytes.restype = c_uint64
    assert library.jitblas_launcher_plan_bytes() == ctypes.sizeof(_Plan), "launcher.py and launcher.cpp differ"
    library.jitblas_launcher_make.argtypes = [c_void_p]
    library.jitblas_launcher_make.restype = ctypes.py_object
    return library
