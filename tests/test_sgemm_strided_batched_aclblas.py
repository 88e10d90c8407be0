"""aclblasSgemmStridedBatched: column-major meaning, the order of checks, and index arithmetic beyond 2^31."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

import jitblas
from jitblas import Status, aclblas
from jitblas.aclblas import OP_C, OP_N, OP_T
from jitblas.handle import Handle
from tests.matrices import Batch, assert_close, product

one, zero = ctypes.c_float(1.0), ctypes.c_float(0.0)


@pytest.fixture(scope="module")
def handle() -> Handle:
    return Handle("host")


def call(handle: Handle | None, **changed: Any) -> Status:
    """A call that is right but for what is changed."""
    arguments: dict[str, Any] = {
        "transA": OP_N, "transB": OP_N, "m": 3, "n": 4, "k": 5, "alpha": one, "A": np.ones(30, "f4"), "lda": 3,
        "strideA": 15, "B": np.ones(40, "f4"), "ldb": 5, "strideB": 20, "beta": zero, "C": np.full(24, 9, "f4"),
        "ldc": 3, "strideC": 12, "batchCount": 2,
    } | changed  # fmt: skip
    return aclblas.aclblasSgemmStridedBatched(handle, **arguments)


@pytest.mark.parametrize("trans_a", [OP_N, OP_T, OP_C])
@pytest.mark.parametrize("trans_b", [OP_N, OP_T, OP_C])
@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 0.0), (-2.0, 0.5)])
@pytest.mark.parametrize("pad", [0, 3])
def test_column_major_products(handle: Handle, trans_a: int, trans_b: int, alpha: float, beta: float, pad: int) -> None:
    for m, n, k, batch in ((1, 1, 1, 1), (6, 5, 9, 2), (33, 17, 65, 3), (300, 70, 20, 1)):
        a = Batch(batch, *((m, k) if trans_a == OP_N else (k, m)), 1, pad=pad, gap=pad, by_columns=True)
        b = Batch(batch, *((k, n) if trans_b == OP_N else (n, k)), 2, pad=pad, gap=pad, by_columns=True)
        c = Batch(batch, m, n, 3, pad=pad, gap=pad, by_columns=True)
        left = a.view if trans_a == OP_N else a.view.transpose(0, 2, 1)
        right = b.view if trans_b == OP_N else b.view.transpose(0, 2, 1)
        expected = product(left, right, c.view, alpha, beta)
        status = call(
            handle, transA=trans_a, transB=trans_b, m=m, n=n, k=k, alpha=ctypes.c_float(alpha), A=a.memory[16:],
            lda=a.ld, strideA=a.stride, B=b.memory[16:], ldb=b.ld, strideB=b.stride, beta=ctypes.c_float(beta),
            C=c.memory[16:], ldc=c.ld, strideC=c.stride, batchCount=batch,
        )  # fmt: skip
        assert status == Status.SUCCESS, aclblas.last_error()
        handle.synchronize()
        assert_close(c.view, expected)
        for operand in (a, b, c):
            operand.assert_padding_untouched()


def test_a_stride_of_zero_shares_a_matrix(handle: Handle) -> None:
    a, b, c = Batch(1, 8, 9, 1, by_columns=True), Batch(4, 9, 7, 2, by_columns=True), np.zeros((4, 7, 8), "f4")
    status = call(
        handle, m=8, n=7, k=9, A=a.memory[16:], lda=a.ld, strideA=0, B=b.memory[16:], ldb=b.ld, strideB=b.stride, C=c,
        ldc=8, strideC=56, batchCount=4,
    )  # fmt: skip
    assert status == Status.SUCCESS, aclblas.last_error()
    handle.synchronize()
    got = c.transpose(0, 2, 1)
    assert_close(got, product(np.broadcast_to(a.view, (4, 8, 9)), b.view, got, 1.0, 0.0))


def test_strides_beyond_two_to_the_31(handle: Handle) -> None:
    """Small matrices, far apart: untouched pages of a mapping cost nothing."""
    stride = 2**31 + 24
    needed = (stride + 64) * 4
    try:
        import mmap

        memory = mmap.mmap(-1, needed, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)
    except (OSError, ValueError) as error:
        pytest.skip(f"{needed} bytes of address space cannot be had: {error}")
    far = np.frombuffer(memory, "f4")
    near = Batch(2, 4, 4, 2, by_columns=True)
    first, second = Batch(2, 4, 4, 1).view
    far[:16], far[stride : stride + 16] = first.T.reshape(-1), second.T.reshape(-1)
    out = np.zeros((2, 4, 4), "f4")
    sizes: dict[str, Any] = {"m": 4, "n": 4, "k": 4, "lda": 4, "ldb": 4, "ldc": 4}
    status = call(
        handle, A=far, strideA=stride, B=near.memory[16:], strideB=near.stride, C=out, strideC=16, **sizes
    )  # fmt: skip
    assert status == Status.SUCCESS, aclblas.last_error()
    handle.synchronize()
    got = out.transpose(0, 2, 1)
    assert_close(got, product(np.stack([first, second]), near.view, got, 1.0, 0.0))
    status = call(
        handle, A=near.memory[16:], strideA=near.stride, B=near.memory[16:], strideB=near.stride, C=far,
        strideC=stride, **sizes,
    )  # fmt: skip
    assert status == Status.SUCCESS, aclblas.last_error()
    handle.synchronize()
    got = np.stack([far[:16].reshape(4, 4).T, far[stride : stride + 16].reshape(4, 4).T])
    assert_close(got, product(near.view, near.view, got, 1.0, 0.0))


def test_checks_come_in_the_order_that_is_documented(handle: Handle) -> None:
    assert call(None, transA=5) == Status.HANDLE_IS_NULLPTR
    order: list[dict[str, Any]] = [
        {"transA": 5}, {"m": -1}, {"lda": 2}, {"strideA": -1}, {"strideC": 11}, {"alpha": None}, {"A": None},
    ]  # fmt: skip
    texts = ["transA", "m is -1", "lda", "strideA", "overlap", "alpha is null", "A is null"]
    for index, text in enumerate(texts):
        wrong = {name: value for one_wrong in order[index:] for name, value in one_wrong.items()}
        assert call(handle, **wrong) == Status.INVALID_VALUE
        assert text in jitblas.last_error(), (text, jitblas.last_error())


@pytest.mark.parametrize(
    "wrong",
    [
        {"transB": 0}, {"n": -1}, {"k": -2}, {"batchCount": -1}, {"ldb": 4}, {"ldc": 0}, {"strideB": -4},
        {"beta": None}, {"B": None}, {"C": None}, {"A": np.ones(29, "f4")}, {"B": np.ones(39, "f4")},
        {"C": np.ones(23, "f4")}, {"A": np.ones(30, "f8")}, {"strideC": 0}, {"lda": 0, "k": 0},
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused_and_nothing_is_written(handle: Handle, wrong: dict[str, Any]) -> None:
    c = np.full(24, 9, "f4")
    assert call(handle, **({"C": c} | wrong)) == Status.INVALID_VALUE
    handle.synchronize()
    assert (c == 9).all()


def test_quick_returns_look_at_nothing(handle: Handle) -> None:
    nothing = {"A": None, "B": None, "C": None}
    assert call(handle, m=0, lda=1, ldc=1, **nothing) == Status.SUCCESS
    assert call(handle, n=0, **nothing) == Status.SUCCESS
    assert call(handle, batchCount=0, **nothing) == Status.SUCCESS
    assert call(handle, k=0, beta=one, **nothing) == Status.SUCCESS
    assert call(handle, alpha=zero, beta=one, **nothing) == Status.SUCCESS
    c = np.full(24, 8, "f4")
    assert call(handle, alpha=zero, beta=ctypes.c_float(0.5), A=None, B=None, C=c) == Status.SUCCESS
    handle.synchronize()
    assert (c == 4).all()


def test_raw_addresses_and_device_scalars(handle: Handle) -> None:
    a, b, c = np.ones(30, "f4"), np.ones(40, "f4"), np.full(24, 2, "f4")
    alpha = jitblas.array(np.array([3.0], "f4"), target="host")
    addresses = {name: array.ctypes.data for name, array in (("A", a), ("B", b), ("C", c))}
    assert call(handle, alpha=alpha.address, beta=ctypes.c_float(0.5), **addresses) == Status.SUCCESS
    handle.synchronize()
    assert (c == 16).all()


def test_what_is_no_number_or_pointer_is_a_type_error(handle: Handle) -> None:
    for wrong in ({"m": 1.5}, {"A": "x"}, {"transA": None}, {"strideC": "12"}):
        with pytest.raises(TypeError):
            call(handle, **wrong)
