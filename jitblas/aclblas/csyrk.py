"""aclblasCsyrk."""

from __future__ import annotations

from operator import index
from typing import Any

from jitblas.aclblas.enums import LOWER, UPPER
from jitblas.aclblas.pointers import (
    check_operand,
    integer,
    leading_dimension,
    locate,
    read_scalar,
    trans_letter,
)
from jitblas.aclblas.status import Refused, check_handle, guarded
from jitblas.arrays import MAX_SIZE
from jitblas.blas.csyrk import set_scalars
from jitblas.dispatch import keep_until_done, prepare, run
from jitblas.errors import Status
from jitblas.handle import Handle
from jitblas.operators.csyrk import ITEM_BYTES

OPERATOR = "csyrk"


def aclblasCsyrk(
    handle: Handle | None,
    uplo: int,
    trans: int,
    n: int,
    k: int,
    alpha: Any,
    A: Any,
    lda: int,
    beta: Any,
    C: Any,
    ldc: int,
) -> Status:
    """C := alpha * op(A) * op(A)^T + beta * C in the triangle `uplo` of a symmetric C, COMPLEX64, column-major.

    op(A) is n x k: A is n x k with OP_N, k x n with OP_T and OP_C, which does not conjugate. Host scalars are read
    before the call returns, those in device memory in stream order. The algorithm is the handle's `csyrk_algorithm`.

    Returns
    -------
    Status, checked in this order: HANDLE_IS_NULLPTR; INVALID_VALUE (uplo or trans; n or k < 0; a leading dimension too
    small; alpha or beta null); SUCCESS (n is 0; with host scalars: k or alpha is 0 and beta is 1); INVALID_VALUE (A or
    C null where it is needed, an array too short); ALLOC_FAILED (the workspace is too small).
    """
    function = "aclblasCsyrk"
    refused = check_handle(function, handle)
    if refused is not None:
        return refused
    assert handle is not None
    try:
        triangle = index(uplo)
        if triangle not in (LOWER, UPPER):
            raise Refused(Status.INVALID_VALUE, f"uplo is {triangle}; accepted are UPPER (121) and LOWER (122)")
        form = ("L" if triangle == LOWER else "U") + trans_letter("trans", trans)
        n, k = integer("n", n, 0, MAX_SIZE), integer("k", k, 0, MAX_SIZE)
        rows, columns = (n, k) if form[1] == "N" else (k, n)
        lda, ldc = leading_dimension("lda", lda, rows), leading_dimension("ldc", ldc, n)
        (alpha_address, _), (beta_address, _) = locate(alpha, "alpha"), locate(beta, "beta")
        for name, address in (("alpha", alpha_address), ("beta", beta_address)):
            if address == 0:
                raise Refused(Status.INVALID_VALUE, f"{name} is null")
        if n == 0:
            return Status.SUCCESS
        alpha_value, device_alpha = read_scalar("alpha", alpha, alpha_address, handle, "c64")
        beta_value, device_beta = read_scalar("beta", beta, beta_address, handle, "c64")
        on_device = device_alpha or device_beta
        if not on_device and (k == 0 or alpha_value == 0):
            if beta_value == 1:
                return Status.SUCCESS
            k = 0
        addresses = {}
        for name, pointer, runs, length, ld in (("C", C, n, n, ldc), ("A", A, columns, rows, lda)):
            if name == "A" and k == 0 and not on_device:
                continue
            address, end = locate(pointer, name)
            if address == 0:
                raise Refused(Status.INVALID_VALUE, f"{name} is null")
            needed = ((runs - 1) * ld + length) * ITEM_BYTES
            why = f"{runs} columns of {length} elements, {ld} apart,"
            check_operand(
                name, pointer, address, end, "c64", handle, needed, why, operator=OPERATOR, output=name == "C"
            )
            addresses[name] = address
        prepared = prepare(
            handle, OPERATOR, form, n, k, "col", lda, ldc, 1.0, 1.0, handle.csyrk_algorithm,
            "device" if on_device else "host",
        )  # fmt: skip
        set_scalars(prepared, complex(alpha_value), complex(beta_value))
        workspace = handle.workspace.reserve(prepared.workspace) if prepared.workspace else None
        run(
            handle, prepared, addresses.get("A"), addresses["C"], alpha_address if device_alpha else None,
            beta_address if device_beta else None, workspace, wait=False,
        )  # fmt: skip
        if on_device or not (type(A) is int and type(C) is int):
            keep_until_done(handle, (A, C), alpha if device_alpha else None, beta if device_beta else None)
    except TypeError:
        raise
    except Exception as error:
        return guarded(function, error)
    return Status.SUCCESS
