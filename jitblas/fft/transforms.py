"""Transforms along an axis of arrays of any kind."""

from __future__ import annotations

import weakref
from operator import index
from typing import Any

import numpy as np

from jitblas.arrays import DTYPE_WORDS, as_operand, invalid, word_of
from jitblas.blas.operands import chosen_handle
from jitblas.dispatch import remember
from jitblas.errors import Status, StatusError
from jitblas.fft.rows import Transforms, make_transforms, new_result
from jitblas.handle import Handle
from jitblas.operators.fft import ITEM_BYTES, fault, parameters
from jitblas.plans import Plan
from jitblas.plans import plan as plan_problem
from jitblas.problem import Problem

COMPUTED_IN = {
    "c64": "c64", "c128": "c128", "fp16": "c64", "fp32": "c64", "fp64": "c128",
    **dict.fromkeys(("bool", "int8", "int16", "int32", "int64", "u8", "uint16", "uint32", "uint64"), "c128"),
}  # fmt: skip
"""Word of an array's type -> type of its transform, as NumPy has it."""

NORMS = ("backward", "ortho", "forward")

Array = np.ndarray[Any, Any]


def fft(
    x: Any,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    *,
    out: Any = None,
    handle: Handle | None = None,
) -> Any:
    """The discrete Fourier transform along an axis: X_k = sum of x_j exp(-2 pi i j k / n).

    Parameters
    ----------
    x : array of complex, real or whole numbers, or a list of them
    n : points, a power of two up to 2^26: x is cut off or continued with zeros; None: as many as x has
    axis : along which to transform; the others are batches
    norm : None or "backward": not scaled; "ortho": times n^-1/2; "forward": times 1/n
    out : an array of the result's shape to write to, complex64 or complex128, which is then what is computed in; it may
        be x
    handle : None: this thread's handle of the default target

    Returns
    -------
    `out`, or a new array of the kind that x is: complex64 for complex64, float32 and float16, complex128 otherwise. The
    result is there when the call returns, unless it is a DeviceArray: then the call is asynchronous on the handle's
    stream.

    Raises
    ------
    StatusError
        NOT_SUPPORTED: another length (the message names the nearest that work) or type; complex128 on ascend950pr.
        INVALID_VALUE: the shapes of x and out, or axis, do not fit; out is read-only or its elements share memory.
        ALLOC_FAILED: the handle's workspace is too small: transforms that take several passes need as many bytes as
        the result has, many of them less; `jitblas show` says how many.
    TypeError
        x, n, axis or out is of a type that means nothing here.

    Notes
    -----
    The relative L2 error is below eps sqrt(log2 n), eps = 2^-24 (complex64) or 2^-53, and below 3.5 eps for fewer than
    64 points, where single roundings show. The same call gives the same bits every time, whatever the number of
    threads. Numbers that do not lie one after the other along the axis, or are of another type, are copied first;
    DeviceArrays are taken as they are, and must. Results larger than the caches are written fastest to memory that
    begins at a multiple of 64 bytes, as new arrays do. NumPy arrays on ascend950pr are staged through device memory by
    copies.

    Examples
    --------
    >>> import numpy, jitblas
    >>> jitblas.fft.fft([1, 1, 1, 1])
    array([4.+0.j, 0.+0.j, 0.+0.j, 0.+0.j])
    """
    return _transform("fft", "forward", x, n, axis, norm, out, handle)


def ifft(
    x: Any,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    *,
    out: Any = None,
    handle: Handle | None = None,
) -> Any:
    """The inverse of :func:`fft`: x_j = 1/n sum of X_k exp(2 pi i j k / n).

    norm : None or "backward": times 1/n; "ortho": times n^-1/2; "forward": not scaled. Everything else is as there.
    """
    return _transform("ifft", "inverse", x, n, axis, norm, out, handle)


def plan(
    n: int,
    *,
    batch: int = 1,
    dtype: Any = "complex128",
    direction: str = "forward",
    norm: str = "backward",
    handle: Handle | None = None,
) -> Plan:
    """A transform compiled once, for repeated calls.

    Parameters
    ----------
    n : points, a power of two up to 2^26
    batch : how many transforms a call makes
    dtype : complex64 or complex128, or the words c64 and c128 of problem lines
    direction : "forward" or "inverse"
    norm : as :func:`fft` and :func:`ifft` take it
    handle : None: this thread's handle of the default target

    Returns
    -------
    A function `plan(x, out=None)` of arrays of shape (batch, n) or, with one batch, (n,), which returns the result.

    Raises
    ------
    StatusError
        NOT_SUPPORTED: another length (the message names the nearest that work) or type; complex128 on ascend950pr.
        INVALID_VALUE: another direction or norm.

    Examples
    --------
    >>> import numpy, jitblas
    >>> transform = jitblas.fft.plan(4, dtype="complex64")
    >>> transform(numpy.ones(4, "complex64"))
    array([4.+0.j, 0.+0.j, 0.+0.j, 0.+0.j], dtype=complex64)
    """
    handle = chosen_handle(handle, "fft.plan")
    word = _complex_word(dtype)
    if direction not in ("forward", "inverse"):
        raise invalid("fft", "direction", f"it is {direction!r}; 'forward' and 'inverse' are accepted")
    points, count = _whole("fft.plan", "n", n), _whole("fft.plan", "batch", batch)
    line = f"fft:n={points},batch={count},dtype={word},dir={direction},norm={_checked_norm('fft', norm)}"
    return plan_problem(Problem.parse(line), handle=handle)


def _complex_word(dtype: Any) -> str:
    try:
        word = dtype if isinstance(dtype, str) and dtype in ITEM_BYTES else word_of(np.dtype(dtype))
    except (TypeError, ValueError):
        word = ""
    if word not in ITEM_BYTES:
        raise StatusError(
            Status.NOT_SUPPORTED, "fft", "dtype", f"dtype={dtype!r}: complex64 and complex128 are accepted"
        )
    return str(word)


def _checked_norm(name: str, norm: str | None) -> str:
    if norm is not None and not (isinstance(norm, str) and norm in NORMS):
        raise invalid(name, "norm", f"it is {norm!r}; None, 'backward', 'ortho' and 'forward' are accepted")
    return norm or "backward"


def _transform(
    name: str, direction: str, x: Any, n: int | None, axis: int, norm: str | None, out: Any, handle: Handle | None
) -> Any:
    handle = chosen_handle(handle, name)
    norm = _checked_norm(name, norm)
    if type(x) is np.ndarray and n is None and axis == -1:
        shortly = _planned(handle, direction, x, norm, out)
        if shortly is not None:
            return shortly(x, out)
    if isinstance(x, (list, tuple, int, float, complex, np.generic)):
        x = _from_list(name, x)
    source = as_operand(x, name, "x", handle.target)
    dtype = COMPUTED_IN.get(_native(source.dtype))
    if dtype is None:
        raise StatusError(
            Status.NOT_SUPPORTED,
            name,
            "x",
            f"x is {source.dtype}; complex64, complex128, and real and whole numbers of up to 64 bits are accepted",
        )
    axis = _checked_axis(name, axis, source.shape)
    points = source.shape[axis] if n is None else _whole(name, "n", n)
    if points < 1:
        raise invalid(name, "x" if n is None else "n", f"{points} points; at least 1 is needed")
    shape = (*source.shape[:axis], points, *source.shape[axis + 1 :])
    if out is not None:
        result = as_operand(out, name, "out", handle.target, output=True)
        if result.shape != shape:
            raise invalid(name, "out", f"it has shape {result.shape}, the result has {shape}")
        if result.dtype not in ITEM_BYTES:
            raise StatusError(
                Status.NOT_SUPPORTED, name, "out", f"out is {result.dtype}; complex64 and complex128 are accepted"
            )
        dtype = result.dtype
    batch = 1
    for length in (*shape[:axis], *shape[axis + 1 :]):
        batch *= length
    values = (points, batch, dtype, direction, norm)
    problem = Problem("fft", tuple(zip((item.name for item in parameters), values, strict=True)))
    wrong = fault(problem)
    if wrong is not None:
        raise StatusError(Status.NOT_SUPPORTED, name, "n", wrong)
    what = Transforms(name, problem, shape, axis)
    if out is None:
        out = new_result(what, x, handle)
    make_transforms(handle, what, source, as_operand(out, name, "out", handle.target, output=True))
    return out


def _planned(handle: Handle, direction: str, x: Array, norm: str, out: Any) -> Any:
    """The handle's plan for arrays that are what plans take, made at the first such call; None for any others."""
    shape, dtype = x.shape, x.dtype
    if out is not None and (type(out) is not np.ndarray or out.shape != shape or out.dtype is not dtype):
        return None
    what = ("fft plan", direction, dtype, shape, norm)
    known: Any = handle.prepared.get(what)
    if known is None and (len(shape) == 1 or (len(shape) == 2 and shape[0] > 1)) and shape[-1] > 0:
        word = word_of(dtype)
        if word in ITEM_BYTES and shape[-1] & (shape[-1] - 1) == 0:
            batch = shape[0] if len(shape) == 2 else 1
            # The handle keeps the plan, so the plan must not keep the handle.
            kept_by: Any = weakref.proxy(handle)
            known = plan(shape[-1], batch=batch, dtype=word, direction=direction, norm=norm, handle=kept_by)
            known.name = "fft" if direction == "forward" else "ifft"
            remember(handle, what, known)
    return known


def _native(word: str) -> str:
    """The word of a type in native byte order."""
    name = word.removeprefix("byte-swapped ")
    return DTYPE_WORDS.get(name, name)


def _from_list(name: str, values: Any) -> Array:
    try:
        return np.asarray(values)
    except ValueError as error:
        raise TypeError(f"{name}: x is no array of numbers: {error}") from None


def _whole(name: str, argument: str, value: Any) -> int:
    try:
        return index(value)
    except TypeError:
        raise TypeError(f"{name}: {argument} is a {type(value).__name__}; a whole number is accepted") from None


def _checked_axis(name: str, axis: int, shape: tuple[int, ...]) -> int:
    place = _whole(name, "axis", axis)
    if not -len(shape) <= place < len(shape):
        raise invalid(name, "axis" if shape else "x", f"there is no axis {place} in shape {shape}")
    return place % len(shape)
