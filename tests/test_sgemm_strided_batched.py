"""SgemmStridedBatched on arrays: numbers against float64, memory orders, scalars, and what it refuses."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jitblas
from jitblas import Status
from jitblas.handle import default_handle
from tests.matrices import SIZES, Array, Batch, assert_close, product
from tests.operands import read_only, refused

classes = pytest.mark.parametrize("trans", ["NN", "NT", "TN", "TT"])


def multiply(
    trans: str, m: int, n: int, k: int, *, batch: int = 2, alpha: float = 1.0, beta: float = 0.0, pad: int = 0,
    gap: int = 0, orders: str = "CCC", positive: bool = False,
) -> None:  # fmt: skip
    """One call, checked against float64, its surroundings against sentinels."""

    def matrices(rows: int, columns: int, seed: int, order: str, transposed: bool = False) -> Batch:
        rows, columns = (columns, rows) if transposed else (rows, columns)
        return Batch(
            batch, rows, columns, seed, pad=pad, gap=gap, by_columns=order == "F", positive=positive
        )  # fmt: skip

    a = matrices(m, k, 1, orders[0], trans[0] == "T")
    b = matrices(k, n, 2, orders[1], trans[1] == "T")
    c = matrices(m, n, 3, orders[2])
    if beta == 0:
        c.view[...] = np.nan  # must not be read
    left = a.view.transpose(0, 2, 1) if trans[0] == "T" else a.view
    right = b.view.transpose(0, 2, 1) if trans[1] == "T" else b.view
    expected = product(left, right, c.view, alpha, beta)
    got = jitblas.sgemm_strided_batched(
        a.view, b.view, c.view, alpha=alpha, beta=beta, transa=trans[0], transb=trans[1]
    )  # fmt: skip
    assert got is c.view
    assert_close(c.view, expected, f"{trans} {m} x {n} x {k}, batch {batch}, {alpha}, {beta}, {orders}, pad {pad}")
    for operand in (a, b, c):
        operand.assert_padding_untouched()


# ---- Sizes ----------------------------------------------------------------------------------------------------------


def pairwise() -> list[tuple[int, int, int]]:
    """Every two sizes meet in every two dimensions, in far fewer triples than there are."""
    count = len(SIZES)
    return [(SIZES[i], SIZES[j], SIZES[(i + 3 * j) % count]) for i in range(count) for j in range(count)]


@classes
@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 0.0), (-1.5, 0.75)])
def test_odd_sizes(trans: str, alpha: float, beta: float) -> None:
    for m, n, k in pairwise():
        multiply(trans, m, n, k, alpha=alpha, beta=beta, batch=1 if m * n * k > 200_000 else 2)


@classes
@pytest.mark.parametrize(("m", "n", "k"), [(1, 1, 1), (5, 3, 2), (17, 33, 9), (130, 70, 140)])
@pytest.mark.parametrize("batch", [1, 2, 7])
def test_padding_between_rows_and_matrices_is_never_touched(trans: str, m: int, n: int, k: int, batch: int) -> None:
    for pad, gap in ((1, 0), (3, 5), (8, 1)):
        multiply(trans, m, n, k, batch=batch, pad=pad, gap=gap)
        multiply(trans, m, n, k, batch=batch, pad=pad, gap=gap, alpha=0.5, beta=2.0)


@classes
def test_large_batches_of_small_matrices(trans: str) -> None:
    multiply(trans, 3, 4, 5, batch=1000)
    multiply(trans, 16, 16, 16, batch=1000, alpha=2.0)
    multiply(trans, 4, 4, 4, batch=1000, beta=-1.0)


@classes
@pytest.mark.parametrize("positive", [False, True])
def test_long_sums_keep_the_bound(trans: str, positive: bool) -> None:
    multiply(trans, 5, 37, 5000, batch=1, positive=positive)
    multiply(trans, 33, 17, 1025, batch=2, positive=positive, alpha=-0.5, beta=1.0)


@classes
def test_matrices_larger_than_a_tile(trans: str) -> None:
    multiply(trans, 530, 600, 270, batch=1)
    multiply(trans, 270, 1030, 33, batch=1, alpha=3.0, beta=0.5, pad=1)


@given(
    trans=st.sampled_from(["NN", "NT", "TN", "TT"]),
    sizes=st.tuples(*[st.integers(1, 70)] * 3),
    batch=st.integers(1, 4),
    alpha=st.sampled_from([1.0, -1.0, 0.5]),
    beta=st.sampled_from([0.0, 1.0, -0.25]),
    pad=st.integers(0, 5),
    gap=st.integers(0, 9),
    orders=st.text("CF", min_size=3, max_size=3),
)
@settings(max_examples=150, deadline=None)
def test_any_product(
    trans: str, sizes: tuple[int, int, int], batch: int, alpha: float, beta: float, pad: int, gap: int, orders: str
) -> None:
    multiply(trans, *sizes, batch=batch, alpha=alpha, beta=beta, pad=pad, gap=gap, orders=orders)


# ---- Memory orders --------------------------------------------------------------------------------------------------


@classes
@pytest.mark.parametrize("orders", ["".join(letters) for letters in itertools.product("CF", repeat=3)])
def test_every_memory_order_means_the_same(trans: str, orders: str) -> None:
    multiply(trans, 19, 35, 11, orders=orders)
    multiply(trans, 19, 35, 11, orders=orders, alpha=2.0, beta=-0.25, pad=2, gap=3)


@classes
@pytest.mark.parametrize(("m", "n", "k"), [(1, 5, 3), (5, 1, 3), (5, 3, 1), (1, 1, 9), (1, 9, 1), (9, 1, 1)])
@pytest.mark.parametrize("orders", ["CCC", "FFF", "CFC"])
def test_rows_and_columns_alone(trans: str, m: int, n: int, k: int, orders: str) -> None:
    multiply(trans, m, n, k, orders=orders)
    multiply(trans, m, n, k, orders=orders, pad=3, alpha=2.0)


def test_single_matrices_are_shared_by_the_batch() -> None:
    a, b = Batch(3, 20, 9, 1).view, Batch(3, 9, 12, 2).view
    out = np.empty((3, 20, 12), "f4")
    for left, right in ((a[0], b), (a, b[1])):
        jitblas.sgemm_strided_batched(left, right, out)
        assert_close(out, product(np.broadcast_to(left, (3, 20, 9)), np.broadcast_to(right, (3, 9, 12)), out, 1.0, 0.0))
    spread = np.broadcast_to(a[0], (3, 20, 9))  # stride 0
    assert_close(jitblas.sgemm_strided_batched(spread, b), product(spread, b, out, 1.0, 0.0))
    one = jitblas.sgemm_strided_batched(a[0], b[0])
    assert one.shape == (20, 12)
    assert_close(one, product(a[0], b[0], one, 1.0, 0.0))


def test_matrices_side_by_side_in_one_matrix_s_rows() -> None:
    wide = np.zeros((20, 3, 12), "f4")
    c = wide.transpose(1, 0, 2)  # matrix i is columns 12 i to 12 i + 12
    a, b = Batch(3, 20, 9, 1).view, Batch(3, 9, 12, 2).view
    jitblas.sgemm_strided_batched(a, b, c)
    assert_close(c, product(a, b, c, 1.0, 0.0))


def test_slices_are_used_where_they_are() -> None:
    big = Batch(3, 40, 50, 1).view
    a, b = big[:, 3:20, 5:33], big[:, 2:30, 10:21]
    assert_close(jitblas.sgemm_strided_batched(a, b), product(a, b, np.zeros(1, "f4"), 1.0, 0.0))


def test_operands_that_overlap_the_result_are_copied_first() -> None:
    for ranges in ((0, 8, 16), (8, 0, 4), (3, 3, 3)):
        memory = Batch(1, 60, 60, 1).view[0]
        a, b, c = (memory[start : start + 30, start : start + 30] for start in ranges)
        expected = product(a.copy(), b.copy(), c.copy(), 1.5, 0.5)
        jitblas.sgemm_strided_batched(a, b, c, alpha=1.5, beta=0.5)
        assert_close(c, expected)


# ---- Scalars --------------------------------------------------------------------------------------------------------


def test_alpha_zero_reads_neither_a_nor_b() -> None:
    a, b = np.full((2, 5, 6), np.nan, "f4"), np.full((2, 6, 7), np.inf, "f4")
    c = Batch(2, 5, 7, 3).view
    before = c.copy()
    jitblas.sgemm_strided_batched(a, b, c, alpha=0, beta=1)
    assert (c == before).all()
    jitblas.sgemm_strided_batched(a, b, c, alpha=0.0, beta=-2.0)
    assert (c == -2 * before).all()
    c[...] = np.nan
    jitblas.sgemm_strided_batched(a, b, c, alpha=0, beta=0)
    assert (c == 0).all()


def test_an_empty_sum_scales_c() -> None:
    a, b = np.empty((2, 5, 0), "f4"), np.empty((2, 0, 7), "f4")
    c = Batch(2, 5, 7, 3).view
    before = c.copy()
    jitblas.sgemm_strided_batched(a, b, c, alpha=3.0, beta=0.5)
    assert (c == 0.5 * before).all()
    assert (jitblas.sgemm_strided_batched(a, b) == 0).all()


def test_nothing_to_write_is_no_error() -> None:
    for m, n, batch in ((0, 3, 2), (3, 0, 2), (3, 4, 0)):
        a, b = np.ones((batch, m, 5), "f4"), np.ones((batch, 5, n), "f4")
        assert jitblas.sgemm_strided_batched(a, b).shape == (batch, m, n)


@pytest.mark.parametrize(("alpha", "beta"), [(np.nan, 0.0), (np.inf, 0.0), (1.0, np.nan), (2.0, np.inf)])
def test_scalars_that_are_not_finite_spread(alpha: float, beta: float) -> None:
    a, b, c = (Batch(1, size, size, seed).view for size, seed in ((4, 1), (4, 2), (4, 3)))
    before = c.copy()
    jitblas.sgemm_strided_batched(a, b, c, alpha=alpha, beta=beta)
    with np.errstate(all="ignore"):
        expected = np.float32(alpha) * (a @ b) + (np.float32(beta) * before if beta != 0 else 0)
    assert (np.isnan(c) == np.isnan(expected)).all() and (np.isinf(c) == np.isinf(expected)).all()


@pytest.mark.parametrize("alpha", [0.0, 1.0, -2.5])
@pytest.mark.parametrize("beta", [0.0, 1.0, 0.75])
def test_scalars_in_device_memory_are_read_in_stream_order(alpha: float, beta: float) -> None:
    a, b, c = Batch(3, 40, 21, 1).view, Batch(3, 21, 30, 2).view, Batch(3, 40, 30, 3).view
    if beta == 0:
        c[...] = np.nan
    if alpha == 0:
        a[...] = np.nan
    scalars = [jitblas.array(np.array([value], "f4"), target="host") for value in (alpha, beta)]
    before = c.copy()
    exact = np.zeros_like(before) if beta == 0 else beta * before
    if alpha != 0:
        expected = product(a, b, before, alpha, beta)
    else:
        expected = (exact, np.abs(exact) * 2.0**-24)
    for on_device in ((0, 1), (0,), (1,)):
        c[...] = before
        alpha_given = scalars[0] if 0 in on_device else alpha
        beta_given = scalars[1] if 1 in on_device else beta
        jitblas.sgemm_strided_batched(a, b, c, alpha=alpha_given, beta=beta_given)
        default_handle().synchronize()
        assert_close(c, expected, f"on device: {on_device}")


# ---- Other arrays, and order ----------------------------------------------------------------------------------------


def test_device_arrays_are_asynchronous_and_give_device_arrays() -> None:
    host_a, host_b = Batch(2, 33, 20, 1).view, Batch(2, 20, 17, 2).view
    a, b = (jitblas.array(np.ascontiguousarray(operand), target="host") for operand in (host_a, host_b))
    c = jitblas.sgemm_strided_batched(a, b)
    again = jitblas.sgemm_strided_batched(c, b, transb="T")
    assert isinstance(c, jitblas.DeviceArray) and c.shape == (2, 33, 17)
    first = c.numpy()
    assert_close(first, product(host_a, host_b, first, 1.0, 0.0))
    second = again.numpy()
    assert_close(second, product(first, host_b.transpose(0, 2, 1), second, 1.0, 0.0))


def test_the_same_bits_every_time_and_for_any_number_of_threads() -> None:
    a, b = Batch(5, 300, 290, 1).view, Batch(5, 290, 310, 2).view
    results = []
    runtime: Any = default_handle("host").runtime
    try:
        for threads in (1, 2, 3, 1):
            runtime.set_threads(threads)
            results.append(jitblas.sgemm_strided_batched(a, b, alpha=1.25))
    finally:
        runtime.set_threads(jitblas.config.threads())
    assert all((result == results[0]).all() for result in results[1:])


# ---- What is refused ------------------------------------------------------------------------------------------------


class Pretender:
    __array_interface__ = {"shape": (2, 4, -5), "typestr": "<f4", "version": 3}


def test_bad_operands_are_refused_and_nothing_is_written() -> None:
    a, b, c = np.ones((2, 4, 5), "f4"), np.ones((2, 5, 6), "f4"), np.full((2, 4, 6), 9, "f4")
    call = jitblas.sgemm_strided_batched
    overlapping = np.lib.stride_tricks.as_strided(np.zeros(60, "f4"), (2, 4, 6), (80, 24, 4))
    frozen = np.broadcast_to(read_only()[:6], (2, 4, 6))
    bad: list[tuple[Status, Any]] = [
        (Status.INVALID_VALUE, lambda: call(a, b[:, :4], c)),
        (Status.INVALID_VALUE, lambda: call(a, np.ones((3, 5, 6), "f4"), c)),
        (Status.INVALID_VALUE, lambda: call(a, b, c[:, :, :5])),
        (Status.INVALID_VALUE, lambda: call(a, b, c[0])),
        (Status.INVALID_VALUE, lambda: call(a, b, beta=1)),
        (Status.INVALID_VALUE, lambda: call(a, b, frozen)),
        (Status.INVALID_VALUE, lambda: call(a, b, overlapping)),
        (Status.INVALID_VALUE, lambda: call(a[:, :, ::-1], b, c)),
        (Status.INVALID_VALUE, lambda: call(np.ones((2, 4, 10), "f4")[:, :, ::2], b, c)),
        (Status.INVALID_VALUE, lambda: call(a[::-1], b, c)),
        (Status.INVALID_VALUE, lambda: call(a, b, c, transa="X")),
        (Status.INVALID_VALUE, lambda: call(a, b, c, transa=np.array(["N", "T"]))),
        (Status.INVALID_VALUE, lambda: call(Pretender(), b, c)),
        (Status.INVALID_VALUE, lambda: call(np.ones(4, "f4"), b, c)),
        (Status.NOT_SUPPORTED, lambda: call(a.astype("f8"), b, c)),
        (Status.NOT_SUPPORTED, lambda: call(a, b, c.astype("f8"))),
    ]
    for status, attempt in bad:
        refused(status, attempt)
    for wrong in ({"alpha": "1"}, {"alpha": 1j}, {"beta": None}):
        with pytest.raises(TypeError):
            call(a, b, c, **wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        call([[1.0]], b, c)
    assert (c == 9).all()


@classes
@pytest.mark.parametrize("order", ["row", "col"])
@pytest.mark.parametrize(
    ("m", "n", "k", "batch", "alpha", "beta"),
    [
        (20, 30, 40, 3, 1.0, 0.0),
        (7, 9, 5, 2, 2.0, 0.5),
        (1, 6, 4, 1, 1.0, 0.0),
        (6, 1, 40, 2, 0.0, 0.5),
        (5, 6, 1, 1, -1.0, 1.0),
    ],
)
def test_plans_give_the_bits_of_the_function(
    trans: str, order: str, m: int, n: int, k: int, batch: int, alpha: float, beta: float
) -> None:
    turned = order == "col"

    def matrices(rows: int, columns: int, seed: int, letter: str = "N") -> Array:
        shape = (columns, rows) if letter == "T" else (rows, columns)
        return Batch(batch, *shape, seed, by_columns=turned).view

    a, b, start = matrices(m, k, 1, trans[0]), matrices(k, n, 2, trans[1]), matrices(m, n, 3)
    expected = jitblas.sgemm_strided_batched(
        a, b, start.copy("K"), alpha=alpha, beta=beta, transa=trans[0], transb=trans[1]
    )  # fmt: skip
    line = f"{trans},m={m},n={n},k={k},batch={batch},order={order},alpha={alpha},beta={beta}"
    for exact in (False, True):
        out = matrices(m, n, 3)
        planned = jitblas.plan(f"sgemm_strided_batched:{line}", exact=exact)
        assert planned(a, b, out) is out
        assert (out == expected).all()
        if batch == 1:  # and single matrices, the longer way
            out = matrices(m, n, 3)[0]
            planned(a[0], b[0], out)
            assert (out == expected[0]).all()


def test_a_plan_shares_a_matrix_of_stride_0() -> None:
    a, b = Batch(1, 20, 9, 1).view[0], Batch(3, 9, 12, 2).view
    out = np.empty((3, 20, 12), "f4")
    jitblas.plan("sgemm_strided_batched:m=20,n=12,k=9,batch=3,stridea=0")(a, b, out)
    assert_close(out, product(np.broadcast_to(a, (3, 20, 9)), b, out, 1.0, 0.0))


def test_a_plan_refuses_what_lies_elsewhere() -> None:
    planned = jitblas.plan("sgemm_strided_batched:m=1,n=3,k=4")
    b, out = np.ones((1, 4, 3), "f4"), np.full((1, 1, 3), 9, "f4")
    wide = np.ones((1, 1, 20), "f4")
    bad = (wide[:, :, ::5], np.ones((0, 1, 4), "f4"), np.ones((2, 1, 4), "f4"), np.ones((1, 4, 1), "f4"))
    for a in bad:
        refused(Status.INVALID_VALUE, lambda a=a: planned(a, b, out))  # type: ignore[misc]
    column = jitblas.plan("sgemm_strided_batched:m=4,n=1,k=3")
    refused(Status.INVALID_VALUE, lambda: column(np.ones((1, 4, 6), "f4")[:, :, ::2], np.ones((1, 3, 1), "f4"), out))
    refused(Status.INVALID_VALUE, lambda: column(np.ones((1, 4, 3), "f4"), np.ones((1, 3, 2), "f4")[:, :, :1], out))
    assert (out == 9).all()
    with pytest.raises(TypeError):
        planned(wide, b)
    for line in (
        "m=4,n=4,k=4,batch=3,stridec=0",
        "m=40,n=40,k=40,ldc=5",
        "m=4,n=4,k=40,lda=5",
        "m=1,n=1,k=1,strideb=-2",
    ):
        with pytest.raises(jitblas.ProblemSyntaxError):
            jitblas.plan(f"sgemm_strided_batched:{line}")
    nothing = np.ones((0, 2, 3), "f4")
    assert (
        jitblas.plan("sgemm_strided_batched:m=2,n=3,k=3,batch=0")(nothing, np.ones((0, 3, 3), "f4"), nothing) is nothing
    )


def test_scalars_that_are_part_of_the_result_are_read_before_it_is_written() -> None:
    for size in (4, 100):
        a = np.ones((8, size, size), "f4")
        for place in (0, 7):
            for _ in range(5):
                c = jitblas.array(np.full((8, size, size), 2, "f4"), target="host")
                scalar = c[place, 0, 0:1]
                jitblas.sgemm_strided_batched(a, a, c, alpha=scalar, beta=scalar)
                assert (c.numpy() == 2 * size + 4).all()


@pytest.mark.parametrize(("m", "n"), [(4, 8), (5, 30), (50, 70)])
def test_equal_numbers_whose_roundings_all_err_to_one_side(m: int, n: int) -> None:
    """A sum of k equal numbers added one after the other is off by a quarter of k roundings."""
    for k in (32, 33, 64, 65, 128, 384, 1000):
        for left, right in ((0.1, 0.7), (0.1, 0.3), (1.0337521, 0.87744415), (0.61679745, 0.92696196)):
            a, b = np.full((m, k), left, np.float32), np.full((k, n), right, np.float32)
            expected = product(a, b, np.zeros((m, n), np.float32), 1.0, 0.0)
            assert_close(jitblas.sgemm_strided_batched(a, b), expected, f"k = {k}: {left} * {right}")
