"""aclblasAxpyEx."""

from __future__ import annotations

import operator
from typing import Any

from jitblas.aclblas.enums import ACL_BF16, ACL_FLOAT, ACL_FLOAT16
from jitblas.aclblas.pointers import check_operand, integer, locate, read_scalar
from jitblas.aclblas.status import Refused, check_handle, guarded
from jitblas.arrays import ITEM_BYTES, MAX_SIZE
from jitblas.dispatch import keep_until_done, prepare, run
from jitblas.errors import Status
from jitblas.handle import Handle

_AXPY_TYPES = {int(ACL_FLOAT): "fp32", int(ACL_FLOAT16): "fp16", int(ACL_BF16): "bf16"}


def aclblasAxpyEx(
    handle: Handle | None,
    n: int,
    alpha: Any,
    alphaType: int,
    x: Any,
    xType: int,
    incx: int,
    y: Any,
    yType: int,
    incy: int,
    executionType: int,
) -> Status:
    """y := alpha * x + y for `n` elements, arithmetic in FP32.

    Element i of x is at `(incx >= 0 ? 0 : (1 - n) * incx) + i * incx` elements from `x`, likewise y. A host alpha is
    read before the call returns, one in device memory in stream order.

    Returns
    -------
    Status, checked in this order: HANDLE_IS_NULLPTR; INVALID_VALUE (n < 0); SUCCESS (n == 0, nothing is looked at);
    NOT_SUPPORTED (alphaType or executionType other than ACL_FLOAT, xType or yType other than ACL_FLOAT, ACL_FLOAT16 and
    ACL_BF16, or xType != yType); INVALID_VALUE (alpha, x or y null; an increment of 0; an array too short).
    """
    function = "aclblasAxpyEx"
    refused = check_handle(function, handle)
    if refused is not None:
        return refused
    assert handle is not None
    try:
        n = integer("n", n, 0, MAX_SIZE)
        if n == 0:
            return Status.SUCCESS
        word = _axpy_types(alphaType, xType, yType, executionType)
        (scalar, _), (x_address, x_end), (y_address, y_end) = locate(alpha, "alpha"), locate(x, "x"), locate(y, "y")
        if scalar == 0 or x_address == 0 or y_address == 0:
            null = [name for name, address in (("alpha", scalar), ("x", x_address), ("y", y_address)) if address == 0]
            raise Refused(Status.INVALID_VALUE, f"{' and '.join(null)} null")
        incx = integer("incx", incx, -MAX_SIZE, MAX_SIZE)
        incy = integer("incy", incy, -MAX_SIZE, MAX_SIZE)
        if incx == 0 or incy == 0:
            raise Refused(Status.INVALID_VALUE, f"incx is {incx}, incy is {incy}; an increment must not be 0")
        item = ITEM_BYTES[word]
        x_bytes, y_bytes = (((n - 1) * abs(inc) + 1) * item for inc in (incx, incy))
        why = f"n = {n} and an increment of"
        check_operand("x", x, x_address, x_end, word, handle, x_bytes, f"{why} {incx}", operator="axpy_ex")
        check_operand("y", y, y_address, y_end, word, handle, y_bytes, f"{why} {incy}", operator="axpy_ex", output=True)
        value, device_alpha = read_scalar("alpha", alpha, scalar, handle)
        prepared = prepare(handle, "axpy_ex", n, word, incx, incy, 1.0, "device" if device_alpha else "host")
        same = (x_address, incx) == (y_address, incy)
        overlapping = not same and x_address < y_address + y_bytes and y_address < x_address + x_bytes
        prepared.tiling.alpha = value
        address = scalar if device_alpha else None
        run(handle, prepared, x_address, y_address, address, wait=False, overlapping=overlapping)
        if device_alpha or not (type(x) is int and type(y) is int):
            keep_until_done(handle, (x, y), alpha if device_alpha else None)
    except TypeError:
        raise
    except Exception as error:
        return guarded(function, error)
    return Status.SUCCESS


def _axpy_types(alpha_type: int, x_type: int, y_type: int, execution_type: int) -> str:
    """The problem word of a supported combination of types."""
    types = [
        (name, operator.index(value))
        for name, value in (
            ("alphaType", alpha_type), ("executionType", execution_type), ("xType", x_type), ("yType", y_type),
        )
    ]  # fmt: skip
    for name, value in types[:2]:
        if value != ACL_FLOAT:
            raise Refused(Status.NOT_SUPPORTED, f"{name} is {value}; ACL_FLOAT (0) is accepted")
    for name, value in types[2:]:
        if value not in _AXPY_TYPES:
            accepted = "ACL_FLOAT (0), ACL_FLOAT16 (1) and ACL_BF16 (27)"
            raise Refused(Status.NOT_SUPPORTED, f"{name} is {value}; accepted are {accepted}")
    if types[2][1] != types[3][1]:
        raise Refused(Status.NOT_SUPPORTED, f"xType is {types[2][1]} and yType is {types[3][1]}; they must be equal")
    return _AXPY_TYPES[types[2][1]]
