"""aclblasSgemmStridedBatched."""

from __future__ import annotations

from typing import Any

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
from jitblas.dispatch import keep_until_done, prepare, run
from jitblas.errors import Status
from jitblas.handle import Handle
from jitblas.operators.sgemm_strided_batched import LARGEST_STRIDE, matrices_overlap

OPERATOR = "sgemm_strided_batched"
ITEM = 4
"""Bytes of an element."""


def aclblasSgemmStridedBatched(
    handle: Handle | None,
    transA: int,
    transB: int,
    m: int,
    n: int,
    k: int,
    alpha: Any,
    A: Any,
    lda: int,
    strideA: int,
    B: Any,
    ldb: int,
    strideB: int,
    beta: Any,
    C: Any,
    ldc: int,
    strideC: int,
    batchCount: int,
) -> Status:
    """C_i := alpha * op(A_i) * op(B_i) + beta * C_i for i below `batchCount`, FP32, column-major.

    X_i is at `X + i * strideX` elements; a stride of 0 shares one matrix between all i (A and B only). op(A_i) is
    m x k, op(B_i) is k x n, C_i is m x n. OP_C is OP_T. Host scalars are read before the call returns, those in device
    memory in stream order.

    Returns
    -------
    Status, checked in this order: HANDLE_IS_NULLPTR; INVALID_VALUE (transA or transB; m, n, k or batchCount < 0; a
    leading dimension too small, a stride < 0, C_i that overlap; alpha or beta null); SUCCESS (m, n or batchCount is 0;
    with host scalars: k or alpha is 0 and beta is 1); INVALID_VALUE (A, B or C null where it is needed, an array too
    short).
    """
    function = "aclblasSgemmStridedBatched"
    refused = check_handle(function, handle)
    if refused is not None:
        return refused
    assert handle is not None
    try:
        letters = trans_letter("transA", transA) + trans_letter("transB", transB)
        m, n, k, batch = (
            integer(name, value, 0, MAX_SIZE)
            for name, value in (("m", m), ("n", n), ("k", k), ("batchCount", batchCount))
        )
        a_rows, a_columns = (m, k) if letters[0] == "N" else (k, m)
        b_rows, b_columns = (k, n) if letters[1] == "N" else (n, k)
        lda = leading_dimension("lda", lda, a_rows)
        ldb = leading_dimension("ldb", ldb, b_rows)
        ldc = leading_dimension("ldc", ldc, m)
        stride_a, stride_b, stride_c = (
            integer(name, value, 0, LARGEST_STRIDE)
            for name, value in (("strideA", strideA), ("strideB", strideB), ("strideC", strideC))
        )
        if batch > 1 and m and n and matrices_overlap(n, m, ldc, stride_c, batch):
            raise Refused(
                Status.INVALID_VALUE,
                f"strideC is {stride_c}, so that matrices of C overlap; {(n - 1) * ldc + m} or more keeps them apart",
            )
        (alpha_address, _), (beta_address, _) = locate(alpha, "alpha"), locate(beta, "beta")
        for name, address in (("alpha", alpha_address), ("beta", beta_address)):
            if address == 0:
                raise Refused(Status.INVALID_VALUE, f"{name} is null")
        if m == 0 or n == 0 or batch == 0:
            return Status.SUCCESS
        alpha_value, device_alpha = read_scalar("alpha", alpha, alpha_address, handle)
        beta_value, device_beta = read_scalar("beta", beta, beta_address, handle)
        on_device = device_alpha or device_beta
        if not on_device and (k == 0 or alpha_value == 0):
            if beta_value == 1:
                return Status.SUCCESS
            k = 0
        addresses = {}
        operands = [("C", C, n, m, ldc, stride_c)]
        if k or on_device:
            operands += [
                ("A", A, a_columns, a_rows, lda, stride_a),
                ("B", B, b_columns, b_rows, ldb, stride_b),
            ]
        for name, pointer, runs, length, ld, stride in operands:
            address, end = locate(pointer, name)
            if address == 0:
                raise Refused(Status.INVALID_VALUE, f"{name} is null")
            needed = ((batch - 1) * stride + (runs - 1) * ld + length) * ITEM
            why = f"{runs} columns of {length} elements, {ld} apart, {batch} times {stride} apart,"
            check_operand(
                name, pointer, address, end, "fp32", handle, needed, why, operator=OPERATOR, output=name == "C"
            )
            addresses[name] = address
        prepared = prepare(
            handle, OPERATOR, letters, m, n, k, batch, "col", lda, ldb, ldc, stride_a, stride_b,
            stride_c, 1.0 if alpha_value == 1 else 2.0, 0.0 if beta_value == 0 else 1.0,
            "device" if on_device else "host",
        )  # fmt: skip
        prepared.tiling.alpha, prepared.tiling.beta = alpha_value, beta_value
        run(
            handle, prepared, addresses.get("B"), addresses.get("A"), addresses["C"],
            alpha_address if device_alpha else None, beta_address if device_beta else None, wait=False,
        )  # fmt: skip
        if on_device or not (type(A) is int and type(B) is int and type(C) is int):
            keep_until_done(handle, (A, B, C), alpha if device_alpha else None, beta if device_beta else None)
    except TypeError:
        raise
    except Exception as error:
        return guarded(function, error)
    return Status.SUCCESS
