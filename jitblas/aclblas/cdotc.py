"""aclblasCdotc."""

from __future__ import annotations

from typing import Any

from jitblas.aclblas.pointers import check_operand, integer, locate
from jitblas.aclblas.status import Refused, check_handle, guarded
from jitblas.arrays import MAX_SIZE
from jitblas.dispatch import keep_until_done, prepare, run
from jitblas.errors import Status
from jitblas.handle import Handle
from jitblas.operators.cdotc import ITEM_BYTES


def aclblasCdotc(handle: Handle | None, n: int, x: Any, incx: int, y: Any, incy: int, result: Any) -> Status:
    """result := the sum of conj(x_i) * y_i for `n` elements, COMPLEX64.

    Element i of x is at `(incx >= 0 ? 0 : (1 - n) * incx) + i * incx` elements from `x`, likewise y. `result` is one
    element in device or host memory, written in stream order; read it after a synchronisation of the stream.

    Returns
    -------
    Status, checked in this order: HANDLE_IS_NULLPTR; INVALID_VALUE (n < 0; result null); SUCCESS (n == 0: the result
    becomes 0, x, y and increments are not looked at); INVALID_VALUE (x or y null; an increment of 0; an array too
    short); ALLOC_FAILED (the workspace is too small).
    """
    function = "aclblasCdotc"
    refused = check_handle(function, handle)
    if refused is not None:
        return refused
    assert handle is not None
    try:
        n = integer("n", n, 0, MAX_SIZE)
        result_address, result_end = locate(result, "result")
        if result_address == 0:
            raise Refused(Status.INVALID_VALUE, "result is null")
        check_operand(
            "result", result, result_address, result_end, "c64", handle, ITEM_BYTES, "complex64 results",
            operator="cdotc", output=True, copied=True,
        )  # fmt: skip
        x_address = y_address = 0
        if n == 0:
            incx = incy = 1
        else:
            (x_address, x_end), (y_address, y_end) = locate(x, "x"), locate(y, "y")
            null = [name for name, address in (("x", x_address), ("y", y_address)) if address == 0]
            if null:
                raise Refused(Status.INVALID_VALUE, f"{' and '.join(null)} null")
            incx = integer("incx", incx, -MAX_SIZE, MAX_SIZE)
            incy = integer("incy", incy, -MAX_SIZE, MAX_SIZE)
            if incx == 0 or incy == 0:
                raise Refused(Status.INVALID_VALUE, f"incx is {incx}, incy is {incy}; an increment must not be 0")
            for name, vector, address, end, inc in (
                ("x", x, x_address, x_end, incx), ("y", y, y_address, y_end, incy),
            ):  # fmt: skip
                needed = ((n - 1) * abs(inc) + 1) * ITEM_BYTES
                why = f"n = {n} and an increment of {inc}"
                check_operand(name, vector, address, end, "c64", handle, needed, why, operator="cdotc")
        _launch(handle, n, x_address, incx, y_address, incy, result_address)
        if not (type(x) is int and type(y) is int and type(result) is int):
            keep_until_done(handle, (x, y, result))
    except TypeError:
        raise
    except Exception as error:
        return guarded(function, error)
    return Status.SUCCESS


def _launch(handle: Handle, n: int, x: int, incx: int, y: int, incy: int, result: int) -> None:
    """Launch; a result that kernels cannot reach comes by way of the workspace, whose sums are read by then."""
    prepared = prepare(handle, "cdotc", n, incx, incy)
    reachable = handle.runtime.shares_host_memory or handle.runtime.is_device_pointer(result)
    needed = max(prepared.workspace, 0 if reachable else ITEM_BYTES)
    workspace = handle.workspace.reserve(needed) if needed else None
    target = result if reachable else workspace
    run(handle, prepared, x or None, y or None, target, workspace, wait=False)
    if not reachable:
        assert workspace is not None
        handle.runtime.copy_async(result, workspace, ITEM_BYTES, "to_host", handle.stream.address)
