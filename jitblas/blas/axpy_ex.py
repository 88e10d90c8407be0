"""AxpyEx on arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from jitblas.arrays import DeviceArray, Vector, as_vector
from jitblas.blas.operands import (
    address_of,
    as_scalar,
    chosen_handle,
    copied_span,
    copy,
    scalar_apart,
    vector_elements,
    vector_on_device,
)  # fmt: skip
from jitblas.dispatch import Prepared, keep_until_done, prepare, run
from jitblas.errors import Status, StatusError
from jitblas.handle import Handle
from jitblas.operators.axpy_ex import DTYPES


def axpy_ex(alpha: Any, x: Any, y: Any, *, handle: Handle | None = None) -> Any:
    """y := alpha * x + y, in place.

    Parameters
    ----------
    alpha : a real number, or a DeviceArray of one fp32 element, which is read in stream order
    x, y : 1-D arrays of one length and one dtype (fp32, fp16 or bf16), any stride; x may be y itself
    handle : None: this thread's handle of the default target

    Returns
    -------
    y, updated. With NumPy arrays and CPU tensors the result is there; if x, y or alpha is a DeviceArray the call is
    asynchronous on the handle's stream.

    Raises
    ------
    StatusError
        INVALID_VALUE: lengths differ, y is read-only or has stride 0, an array cannot be viewed without a copy.
        NOT_SUPPORTED: another dtype, or two.
    TypeError
        x or y is no array, alpha no real number.

    Notes
    -----
    Arithmetic is in FP32 with one rounding per multiply-add and one, to nearest even, at the store. Operands that
    overlap in part are copied first. NumPy arrays on ascend950pr are staged through device memory by copies.

    Examples
    --------
    >>> import numpy, jitblas
    >>> jitblas.axpy_ex(2.0, numpy.ones(3, "float32"), numpy.arange(3, dtype="float32"))
    array([2., 3., 4.], dtype=float32)
    """
    handle = chosen_handle(handle, "axpy_ex")
    vx = as_vector(x, "axpy_ex", "x", handle.target)
    vy = as_vector(y, "axpy_ex", "y", handle.target, output=True)
    if vx.n != vy.n:
        raise StatusError(Status.INVALID_VALUE, "axpy_ex", "x", f"x has {vx.n} elements, y has {vy.n}")
    if vx.dtype != vy.dtype or vx.dtype not in DTYPES:
        raise StatusError(
            Status.NOT_SUPPORTED,
            "axpy_ex",
            "x",
            f"x is {vx.dtype}, y is {vy.dtype}; accepted are two arrays of one type: {', '.join(DTYPES)}",
        )
    launch_axpy_ex(handle, alpha, vx, vy)
    return y


def launch_axpy_ex(handle: Handle, alpha: Any, vx: Vector, vy: Vector, prepared: Prepared | None = None) -> None:
    """Launch on two vectors of one length and a supported type; see :func:`axpy_ex` for when the result is there.

    `prepared`: the launch to make where the vectors are used as they are; None: the handle's own for their sizes.
    """
    value, scalar = as_scalar(alpha, "axpy_ex", "alpha", handle)
    if vx.n == 0:
        return
    if not handle.runtime.shares_host_memory and not (vx.device and vy.device):
        _staged_axpy_ex(handle, value, scalar, vx, vy, prepared)
        return
    asynchronous = vx.device or vy.device or scalar is not None
    if prepared is None or scalar is not None:
        prepared = _prepared(handle, vx, vy, scalar)
    (x_first, x_last), (y_first, y_last) = vx.span, vy.span
    same = vx.address == vy.address and vx.inc == vy.inc
    overlap = not same and x_first < y_last and y_first < x_last
    if overlap:
        vx = _copied(handle, vx)
    address, kept = scalar_apart(handle, scalar, *vy.span)
    prepared.tiling.alpha = value
    run(handle, prepared, vx.address, vy.address, address, wait=not asynchronous)
    if asynchronous:
        keep_until_done(handle, (vx.owner, vy.owner), kept)
    elif overlap:
        handle.stream.keep()  # keeps nothing more and lets the copy of x go


def _prepared(handle: Handle, x: Vector, y: Vector, scalar: DeviceArray | None) -> Prepared:
    return prepare(handle, "axpy_ex", x.n, x.dtype, x.inc, y.inc, 1.0, "host" if scalar is None else "device")


def _copied(handle: Handle, vector: Vector) -> Vector:
    """A vector with the same values in memory of its own, copied in stream order."""
    address, memory = copied_span(handle, *vector.span, vector.owner)
    return Vector(address, vector.n, vector.inc, vector.dtype, vector.itemsize, (memory, vector.owner), True)


def _staged_axpy_ex(
    handle: Handle, value: float, scalar: DeviceArray | None, vx: Vector, vy: Vector, prepared: Prepared | None
) -> None:
    """Operands in host memory and a device that cannot see it: contiguous copies there and back.

    Only elements travel, so what lies between the elements of y is never written, and a launch prepared for other
    increments than those of the copies is replaced by the contiguous one.
    """
    stream = handle.stream
    x, y = (vector if vector.device else vector_on_device(handle, vector) for vector in (vx, vy))
    if prepared is None or scalar is not None or (x.inc, y.inc) != (vx.inc, vy.inc):
        prepared = _prepared(handle, x, y, scalar)
    x_host, y_host = (None if vector.device else np.ascontiguousarray(vector_elements(vector)) for vector in (vx, vy))
    try:
        for device, host in ((x, x_host), (y, y_host)):
            if host is not None:
                copy(handle, device.address, address_of(host), host.nbytes, "to_device")
        address, _memory = scalar_apart(handle, scalar, *y.span)
        prepared.tiling.alpha = value
        run(handle, prepared, x.address, y.address, address, wait=False)
        if y_host is not None:
            copy(handle, address_of(y_host), y.address, y_host.nbytes, "to_host")
    except BaseException:
        try:
            stream.synchronize()  # what is queued still uses the copies, which go when this call ends
        except StatusError:
            pass  # the error on its way is the first one
        raise
    stream.synchronize()
    if y_host is not None:
        vector_elements(vy)[...] = y_host
