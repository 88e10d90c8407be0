"""Cdotc on arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from jitblas.arrays import Operand, Vector, as_operand, as_vector, check_alignment, empty, invalid
from jitblas.blas.operands import address_of, chosen_handle, copy, vector_elements, vector_on_device
from jitblas.dispatch import Prepared, keep_until_done, prepare, run
from jitblas.errors import Status, StatusError
from jitblas.handle import Handle
from jitblas.operators.cdotc import ITEM_BYTES


def cdotc(x: Any, y: Any, *, handle: Handle | None = None, out: Any = None) -> Any:
    """The sum of conj(x_i) * y_i.

    Parameters
    ----------
    x, y : 1-D arrays of complex64 of one length, any stride
    handle : None: this thread's handle of the default target
    out : an array of one complex64 element for the result; None: the result is returned as a number

    Returns
    -------
    numpy.complex64, or `out`. The result is there when the call returns, unless `out` is a DeviceArray: then the call
    is asynchronous on the handle's stream.

    Raises
    ------
    StatusError
        INVALID_VALUE: lengths differ, `out` is read-only or has not one element, an array cannot be viewed without a
        copy. NOT_SUPPORTED: another dtype. ALLOC_FAILED: the handle's workspace is too small.
    TypeError
        x, y or out is no array.

    Notes
    -----
    Each component is within 8 * 2^-24 * sum(|x_i| |y_i|) of the exact one, and the same call gives the same bits every
    time, whatever the number of threads. NumPy arrays on ascend950pr are staged through device memory by copies.

    Examples
    --------
    >>> import numpy, jitblas
    >>> x = numpy.array([1 + 2j, 3 - 1j], "complex64")
    >>> jitblas.cdotc(x, x)
    np.complex64(15+0j)
    """
    handle = chosen_handle(handle, "cdotc")
    vx = as_vector(x, "cdotc", "x", handle.target)
    vy = as_vector(y, "cdotc", "y", handle.target)
    if vx.n != vy.n:
        raise StatusError(Status.INVALID_VALUE, "cdotc", "x", f"x has {vx.n} elements, y has {vy.n}; give as many")
    if vx.dtype != "c64" or vy.dtype != "c64":
        raise StatusError(
            Status.NOT_SUPPORTED, "cdotc", "x", f"x is {vx.dtype}, y is {vy.dtype}; c64 (complex64) is accepted"
        )
    if out is None:
        number = np.empty(1, np.complex64)
        launch_cdotc(handle, vx, vy, as_result(number, handle))
        return number[0]
    launch_cdotc(handle, vx, vy, as_result(out, handle))
    return out


def as_result(out: Any, handle: Handle) -> Operand:
    """Where a result goes: an array of one element."""
    result = as_operand(out, "cdotc", "out", handle.target, output=True)
    if result.dtype != "c64":
        raise StatusError(
            Status.NOT_SUPPORTED, "cdotc", "out", f"out is an array of {result.dtype}; c64 (complex64) is accepted"
        )
    if any(length != 1 for length in result.shape):
        raise invalid("cdotc", "out", f"one element is needed, this array has shape {result.shape}")
    check_alignment(result.address, result.dtype, result.itemsize, "cdotc", "out")
    return result


def launch_cdotc(handle: Handle, x: Vector, y: Vector, out: Operand, prepared: Prepared | None = None) -> None:
    """Launch on two vectors of one length; see :func:`cdotc` for when the result is there.

    `prepared`: the launch to make where the vectors are used as they are; None: the handle's own for their sizes.
    """
    given = x, y
    reachable = handle.runtime.shares_host_memory
    if not reachable:
        x, y = (_staged(handle, vector) for vector in given)
    if prepared is None or any((now.inc != before.inc) for now, before in zip((x, y), given, strict=True)):
        prepared = prepare(handle, "cdotc", x.n, x.inc, y.inc)
    result: Any = out if reachable or out.device else empty(1, "c64", target=handle.target)
    workspace = handle.workspace.reserve(prepared.workspace) if prepared.workspace else None
    asynchronous = out.device
    try:
        wait = reachable and not asynchronous
        run(handle, prepared, x.address, y.address, result.address, workspace, wait=wait)
        if result is not out:
            copy(handle, out.address, result.address, ITEM_BYTES, "to_host")
    finally:
        if not asynchronous and not reachable:
            handle.stream.synchronize()
    if asynchronous:
        keep_until_done(handle, (x.owner, y.owner, out.owner))


def _staged(handle: Handle, vector: Vector) -> Vector:
    """The vector in device memory: itself, or a contiguous copy of its elements, made in stream order."""
    if vector.device or vector.n == 0:
        return vector
    elements = np.ascontiguousarray(vector_elements(vector))
    staged = vector_on_device(handle, vector)
    copy(handle, staged.address, address_of(elements), elements.nbytes, "to_device")
    handle.stream.keep(elements, staged.owner)
    return staged
