"""Csyrk on arrays: numbers against float64 in one triangle, nothing else written, scalars, and what it refuses."""

from __future__ import annotations

import gc
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jitblas
from jitblas import Status
from jitblas.handle import Handle, default_handle
from jitblas.hardware import HOST, PROFILES
from jitblas.operators.csyrk import workspace_bytes
from jitblas.problem import Problem
from tests.kernels.build import Gate
from tests.operands import refused
from tests.triangles import (
    HOLE_BITS,
    SIZES,
    Array,
    Expected,
    Matrix,
    Product,
    assert_bounded,
    assert_close,
    assert_same_bits,
    assert_same_kinds,
    device_scalar,
    formula,
    numbers,
    product,
    square,
    triangle,
    update,
)

ALPHAS = (1, -1, 2.5, 0.75 - 1.25j, -1.5j, 0)
BETAS = (0, 1, -1, 0.5, -0.25 + 1.5j, 2j)
NAN = complex(np.nan, np.nan)
SMALL = (9, 7)
LARGE = (50, 40)
"""n and k of the kernel for small problems, and of the others."""
LARGEST = float(np.finfo(np.float32).max)

algorithms = pytest.mark.parametrize("algorithm", ["4m", "3m"])
sizes = pytest.mark.parametrize(("n", "k"), [SMALL, LARGE], ids=["small", "large"])
triangles = pytest.mark.parametrize("uplo", "LU")


class Case:
    """The operands of one call: a in the memory order and with the padding asked for, c amid NaN."""

    def __init__(
        self, of: Product, *, uplo: str = "L", trans: str = "N", orders: str = "CC", pads: tuple[int, int] = (0, 0),
        c: Array | None = None,
    ) -> None:  # fmt: skip
        self.product, self.uplo, self.trans = of, uplo, trans
        stored = of.a if trans == "N" else of.a.T
        self.a = Matrix(stored, pad=pads[0], by_columns=orders[0] == "F")
        n = len(of.a)
        self.c = Matrix(square(n, uplo) if c is None else c, pad=pads[1], by_columns=orders[1] == "F")
        self.before = self.c.view.copy()
        self.note = f"{uplo}{trans} {n} x {of.a.shape[1]}, orders {orders}, padding {pads}"

    def run(self, alpha: Any = 1, beta: Any = 0, **settings: Any) -> Array:
        """The triangle of beta 0 is filled with NaN, which must not be read."""
        if isinstance(beta, (int, float, complex)) and beta == 0:
            self.c.view[triangle(len(self.before), self.uplo)] = NAN
        got = jitblas.csyrk(
            self.a.view, self.c.view, alpha=alpha, beta=beta, trans=self.trans, uplo=self.uplo, **settings
        )  # fmt: skip
        assert got is self.c.view
        return self.c.view

    def check(self, alpha: complex, beta: complex, note: str = "", *, gate: bool = True, times: float = 1) -> None:
        """`times`: of the bound that may be used."""
        expected = update(self.product, self.before, alpha, beta)
        expected = expected._replace(bound=times * expected.bound)
        note = f"{self.note}, alpha {alpha}, beta {beta} {note}"
        assert_close(self.c.view, expected, self.uplo, note, gate=gate)
        self.assert_nothing_else_written()

    def assert_nothing_else_written(self) -> None:
        self.a.assert_untouched()
        self.c.assert_untouched(but=self.uplo)


def multiply(
    n: int, k: int, alpha: complex = 1, beta: complex = 0, *, positive: bool = False, algorithm: str = "auto",
    gate: bool = True, **layout: Any,
) -> None:  # fmt: skip
    case = Case(numbers(n, k, positive=positive), **layout)
    case.run(alpha, beta, algorithm=algorithm)
    case.check(alpha, beta, algorithm, gate=gate)


# ---- Sizes ----------------------------------------------------------------------------------------------------------


@algorithms
@triangles
@pytest.mark.parametrize("trans", "NTC")
def test_every_two_sizes_in_every_form(uplo: str, trans: str, algorithm: str) -> None:
    """With memory orders, padding and scalars that change from one to the next."""
    varying = itertools.cycle(itertools.product(("CC", "CF", "FC", "FF"), BETAS, ALPHAS, ((0, 0), (1, 3), (8, 0))))
    step = 89 + 2 * ("NTC".index(trans) + 3 * (uplo == "U") + 6 * (algorithm == "3m"))
    for n, k in itertools.product(SIZES, repeat=2):
        if (n + k + "NTC".index(trans)) % 2 == 0:
            continue
        orders, beta, alpha, pads = next(itertools.islice(varying, step, None))
        multiply(
            n, k, alpha, beta, algorithm=algorithm, uplo=uplo, trans=trans, orders=orders, pads=pads
        )  # fmt: skip


@pytest.mark.parametrize(("alpha", "beta"), [(1, 0), (2 - 1j, 1 + 3j)])
@algorithms
def test_small_whole_numbers_are_exact(algorithm: str, alpha: complex, beta: complex) -> None:
    """FP32 holds their sums, so nothing may be off at all: no element left out, counted twice, or conjugated.

    Parts of the diagonal's elements are as ordinary as others.
    """
    integers = np.random.default_rng(5).integers(-3, 4, (4, 300, 65)).astype("f4")
    for index, n in enumerate((*SIZES, 864, 865)):
        for k in (1, 17, 65) if n <= 300 else (17,):
            parts = np.resize(integers, (4, max(n, 300), 65))[:, :n]
            of = product(parts[0, :, :k] + 1j * parts[1, :, :k])
            uplo, trans, orders = "LU"[index % 2], "NTC"[index % 3], ("CC", "FC", "CF", "FF")[index % 4]
            c = np.where(triangle(n, uplo), np.resize(parts[2] + 1j * parts[3], (n, n)), NAN).astype("c8")
            case = Case(of, uplo=uplo, trans=trans, orders=orders, pads=(index % 2, 1), c=c)
            case.run(alpha, beta, algorithm=algorithm)
            exact = update(of, case.before, alpha, beta).exact
            assert_close(case.c.view, Expected(exact, np.zeros((n, n))), uplo, case.note)
            case.assert_nothing_else_written()
            if n > 3 and k > 1:
                assert (np.diagonal(of.exact).imag != 0).any()


@algorithms
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize(
    ("n", "k", "trans", "orders"),
    [(700, 50, "N", "CC"), (50, 1500, "T", "CC"), (900, 20, "C", "CF"), (3, 3001, "N", "FC"), (65, 384, "N", "CC")],
)
def test_larger_sizes_and_long_sums_keep_the_bound(
    n: int, k: int, trans: str, orders: str, positive: bool, algorithm: str
) -> None:
    multiply(n, k, positive=positive, algorithm=algorithm, trans=trans, orders=orders)
    multiply(
        n, k, 0.5 - 2j, 1, positive=positive, algorithm=algorithm, trans=trans, uplo="U", orders=orders, pads=(1, 2)
    )  # fmt: skip


@pytest.mark.parametrize("algorithm", ["auto", "4m", "3m"])
@pytest.mark.parametrize(("n", "k"), [(16, 16), (20, 40), (20, 128), (20, 256), (20, 384), (10, 1500), (4, 4096)])
def test_rounding_errors_of_one_sign_do_not_add_up(n: int, k: int, algorithm: str) -> None:
    """Equal numbers are rounded the same way again and again; with "3m" imaginary parts may be off by three times."""
    for value in (1 + 0.25j, (4 - 1j) / 3, 1.0416787 + 0.9624969j, 0.5760432 + 0.7349563j, 1.1 - 1.1001j, 0.7 - 0.69j):
        case = Case(product(np.full((n, k), value, "c8")))
        case.run(algorithm=algorithm)
        case.check(1, 0, f"{algorithm}, all {value}", times=3 if algorithm == "3m" else 1, gate=value.imag > 0)


@pytest.mark.parametrize("k", [40, 64, 130])
def test_rows_beside_one_that_is_not_finite_are_as_exact_as_ever(k: int) -> None:
    """They share blocks with it, which the complex formula computes."""
    values = np.random.default_rng(k).uniform(0.5, 2, 60) + 1j * np.random.default_rng(k + 1).uniform(-1, 1, 60)
    a = np.repeat(values[:, None], k, 1).astype("c8")
    a[0, 0] = np.nan
    got = jitblas.csyrk(a)[1:, 1:]
    assert_close(got, update(product(a[1:]), np.zeros_like(got), 1, 0), "L", f"k = {k}")


@pytest.mark.parametrize("n", [4, 16, 40])
@pytest.mark.parametrize("alpha", [complex(np.nan, 1), complex(np.inf, 0)])
def test_alpha_meets_no_sum_where_k_is_zero(n: int, alpha: complex) -> None:
    c = square(n, "L")
    before = c.copy()
    jitblas.csyrk(np.zeros((n, 0), "c8"), c, alpha=alpha, beta=2)
    assert (c[triangle(n, "L")] == 2 * before[triangle(n, "L")]).all()


@pytest.mark.parametrize(
    ("uplo", "trans", "n", "k"),
    [
        ("U", "N", 1024, 4096), ("L", "T", 4096, 256), ("U", "C", 1049, 1049), ("L", "N", 1652, 1652),
        ("L", "T", 3465, 3465), ("L", "C", 3672, 2244), ("U", "N", 202, 2657), ("U", "T", 1804, 155),
        ("L", "C", 2033, 90), ("U", "C", 368, 2094), ("L", "N", 888, 3600), ("L", "T", 1692, 1692),
    ],
)  # fmt: skip
def test_shapes_of_a_public_performance_list_at_an_eighth_of_their_sizes(uplo: str, trans: str, n: int, k: int) -> None:
    multiply(n // 8, k // 8, uplo=uplo, trans=trans, orders="FF")  # column-major, as it has them


@given(
    uplo=st.sampled_from("LU"),
    trans=st.sampled_from("NTC"),
    n=st.integers(1, 70) | st.integers(1, 300),
    k=st.integers(0, 70) | st.integers(0, 400),
    scalars=st.tuples(st.sampled_from(ALPHAS), st.sampled_from(BETAS)),
    orders=st.text("CF", min_size=2, max_size=2),
    pads=st.tuples(st.integers(0, 9), st.integers(0, 9)),
    algorithm=st.sampled_from(["auto", "4m", "3m"]),
)
@settings(max_examples=150, deadline=None)
def test_any_update(
    uplo: str, trans: str, n: int, k: int, scalars: tuple[complex, complex], orders: str, pads: tuple[int, int],
    algorithm: str,
) -> None:  # fmt: skip
    multiply(n, k, *scalars, uplo=uplo, trans=trans, orders=orders, pads=pads, algorithm=algorithm, gate=False)


# ---- Scalars and memory orders --------------------------------------------------------------------------------------


@triangles
@pytest.mark.parametrize("orders", ["CC", "CF", "FC", "FF"])
@pytest.mark.parametrize("n", [7, 40])
def test_every_two_scalars_in_every_memory_order(uplo: str, orders: str, n: int) -> None:
    for index, (alpha, beta) in enumerate(itertools.product(ALPHAS, BETAS)):
        algorithm, trans, pads = ("4m", "3m")[index % 2], "NTC"[index % 3], (0, 2, 5)[index // 6 % 3]
        multiply(n, 9, alpha, beta, uplo=uplo, trans=trans, orders=orders, pads=(pads, pads), algorithm=algorithm)


def test_an_update_without_c_makes_an_array_whose_other_triangle_is_zero() -> None:
    for n, k in (SMALL, LARGE):
        of = numbers(n, k)
        for uplo in "LU":
            made = jitblas.csyrk(of.a, alpha=-2, uplo=uplo)
            assert made.dtype == np.complex64
            assert_close(made, update(of, made, -2, 0), uplo)
            assert (made[~triangle(n, uplo)] == 0).all()
    assert jitblas.csyrk(numbers(3, 2).a).shape == (3, 3)
    assert jitblas.csyrk(numbers(3, 2).a.T, trans="C").shape == (3, 3)


@pytest.mark.parametrize(("n", "k"), [(1, 1), (1, 40), (40, 1), (2, 40)])
@pytest.mark.parametrize("trans", "NT")
def test_rows_and_columns_alone(n: int, k: int, trans: str) -> None:
    for orders, pad in itertools.product(("CC", "FC"), (0, 3)):
        multiply(n, k, 2, 1, trans=trans, orders=orders, pads=(pad, pad))


def test_slices_are_used_where_they_are() -> None:
    big = numbers(80, 90).a
    for trans in "NT":
        of = product(big[3:53, 5:38] if trans == "N" else big[3:53, 5:38].T)
        c = Matrix(square(80, "U"))
        part = c.view[20 : 20 + len(of.a), 20 : 20 + len(of.a)]
        before = part.copy()
        jitblas.csyrk(big[3:53, 5:38], part, alpha=2, beta=1, trans=trans, uplo="U")
        assert_close(part, update(of, before, 2, 1), "U")
        part[...] = before
        c.assert_untouched()


@sizes
@triangles
@pytest.mark.parametrize("beta", BETAS)
def test_alpha_zero_or_an_empty_sum_reads_no_a_and_leaves_beta_c(n: int, k: int, uplo: str, beta: complex) -> None:
    """Exactly that, and with beta 1 no bit changes."""
    nothing = Product(np.full((n, k), NAN, "c8"), np.zeros((n, n), "c16"), np.zeros((n, n)))
    empty = nothing._replace(a=np.empty((n, 0), "c8"))
    for of, alpha, trans in ((nothing, 0, "N"), (nothing, 0j, "T"), (empty, 1 - 1j, "N"), (empty, 3, "T")):
        for orders in ("CC", "FF"):
            case = Case(of, uplo=uplo, trans=trans, orders=orders, pads=(0, 1))
            case.run(alpha, beta)
            case.check(alpha if of is nothing else 0, beta)
            if beta == 1:
                case.c.assert_untouched()
            elif beta in (0, -1):
                inside = triangle(n, uplo)
                assert (case.c.view[inside] == (beta * case.before[inside] if beta else 0)).all()


def test_an_empty_triangle_is_no_error() -> None:
    for a in (np.ones((0, 5), "c8"), np.ones((0, 0), "c8")):
        assert jitblas.csyrk(a, alpha=2).shape == (0, 0)
    c = np.ones((0, 0), "c8")
    assert jitblas.csyrk(np.ones((5, 0), "c8"), c, beta=1, trans="T") is c


@sizes
@algorithms
def test_scalars_in_device_memory_give_the_bits_of_those_in_host_memory(n: int, k: int, algorithm: str) -> None:
    """Both or one of the two, over NaN where beta is 0 and from an a of NaN where alpha is."""
    for index, (alpha, beta) in enumerate(itertools.product(ALPHAS, BETAS)):
        of = numbers(n, k)
        layout: dict[str, Any] = {"uplo": "LU"[index % 2], "orders": ("CC", "CF")[index // 2 % 2], "pads": (1, 1)}
        wanted = Case(of, **layout)
        wanted.run(alpha, beta, algorithm=algorithm)
        shown = of._replace(a=np.full((n, k), NAN, "c8")) if alpha == 0 else of
        for on_device in ("ab", "a", "b"):
            case = Case(shown, **layout)
            if beta == 0:
                case.c.view[triangle(n, case.uplo)] = NAN
            first, second = (
                device_scalar(value) if name in on_device else value for name, value in (("a", alpha), ("b", beta))
            )
            case.run(first, second, algorithm=algorithm)
            default_handle().synchronize()
            assert_same_bits(case.c.view, wanted.c.view, f"{case.note} {alpha} {beta} on device: {on_device}")
            case.check(alpha, beta, f"on device: {on_device}")
            if alpha == 0 and beta == 1:
                case.c.assert_untouched()


@pytest.mark.parametrize("beta", [0, 1, 0.5j])
def test_device_scalars_and_an_empty_sum(beta: complex) -> None:
    for n in (9, 50):
        case = Case(Product(np.empty((n, 0), "c8"), np.zeros((n, n), "c16"), np.zeros((n, n))))
        if beta == 0:
            case.c.view[triangle(n, "L")] = NAN
        case.run(device_scalar(2), device_scalar(beta))
        default_handle().synchronize()
        case.check(0, beta)


def test_scalars_that_are_part_of_the_result_are_read_before_it_is_written() -> None:
    for n in (4, 100):
        a = np.ones((n, n), "c8")
        for place in ((0, 0), (n - 1, n - 1), (0, n - 1)):
            c = jitblas.array(np.full((n, n), 2j, "c8"), target=HOST)
            scalar = c[place[0], place[1] : place[1] + 1]
            jitblas.csyrk(a, c, alpha=scalar, beta=scalar)
            got = c.numpy()
            inside = triangle(n, "L")
            assert (got[inside] == 2j * n - 4).all() and (got[~inside] == 2j).all()


# ---- Numbers that are not finite, and huge ones ---------------------------------------------------------------------

SPECIAL: dict[str, list[tuple[float, float, complex]]] = {
    "infinity": [(0.0, 0.0, complex(np.inf, 1))],
    "infinity in the imaginary part of the last element": [(1.0, 1.0, complex(2, -np.inf))],
    "both parts infinite": [(0.4, 0.5, complex(np.inf, -np.inf))],
    "infinities of one column": [(0.2, 0.3, complex(np.inf, 1)), (0.9, 0.3, complex(-np.inf, 0.5))],
    "infinity times zero": [(0.5, 0.0, complex(np.inf, 0)), (0.7, 0.0, 0)],
    "NaN": [(0.3, 0.9, complex(np.nan, 1))],
    "NaN and infinity": [(0.0, 1.0, complex(1, np.nan)), (1.0, 0.0, complex(np.inf, 1))],
    "numbers whose products overflow": [(0.5, 0.5, complex(1e30, 1))],
    "numbers whose products just do not": [(0.1, 0.2, complex(9e18, 8e18)), (0.8, 0.2, complex(-9e18, 9e18))],
    "one huge number": [(0.6, 0.0, complex(0, 3e38))],
    "many": [(row / 6, row / 7, complex(np.inf if row % 2 else 1e25, row)) for row in range(7)],
}


def special(of: Product, changes: list[tuple[float, float, complex]]) -> Product:
    a = of.a.copy()
    for row, column, value in changes:
        a[round(row * (len(a) - 1)), round(column * (a.shape[1] - 1))] = value
    return product(a)


def assert_formula(case: Case, alpha: complex, beta: complex, note: str = "") -> None:
    """Kinds of numbers as the formula has them everywhere, and right ones wherever it has finite ones."""
    wanted = formula(case.product.a, case.before, alpha, beta)
    note = f"{case.note} {alpha} {beta} {note}"
    assert_same_kinds(case.c.view, wanted, case.uplo, note)
    expected = update(case.product, case.before, alpha, beta)
    assert_bounded(case.c.view, expected, np.isfinite(wanted) & triangle(len(wanted), case.uplo), note)
    case.assert_nothing_else_written()


@sizes
@algorithms
@pytest.mark.parametrize("name", list(SPECIAL))
def test_numbers_that_are_not_finite_or_huge_end_where_the_formula_has_them(
    name: str, n: int, k: int, algorithm: str
) -> None:
    of = special(numbers(n, k), SPECIAL[name])
    for index, beta in enumerate((0, 1, -0.5, 0.25 - 1j)):
        for alpha in (1, -2 + 1j):
            case = Case(of, uplo="LU"[index % 2], trans="NT"[index // 2], orders=("CC", "FC")[alpha == 1])
            case.run(alpha, beta, algorithm=algorithm)
            assert_formula(case, alpha, beta, algorithm)


@algorithms
def test_rows_of_special_numbers_in_several_tiles(algorithm: str) -> None:
    """And all rows without them as they would be: in the same tiles bit by bit where no block has such a row."""
    n, k = 900, 20
    ordinary = Case(numbers(n, k))
    ordinary.run(2, 1, algorithm=algorithm)
    for rows in ((0,), (880,), (1, 450, 899)):
        of = special(numbers(n, k), [(row / (n - 1), 0.5, complex(np.nan, 1)) for row in rows])
        case = Case(of)
        case.run(2, 1, algorithm=algorithm)
        assert_formula(case, 2, 1)
        touched = np.zeros(n, bool)
        touched[list(rows)] = True
        inside = triangle(n, "L") & ~touched[:, None] & ~touched
        same = case.c.view[inside].view("u8") == ordinary.c.view[inside].view("u8")
        assert same.mean() > 0.2, "elements far from such rows are computed as ever"
    assert np.isfinite(ordinary.c.view[triangle(n, "L")]).all()


@sizes
@algorithms
def test_numbers_just_below_and_just_above_the_limit_of_real_products_are_right(n: int, k: int, algorithm: str) -> None:
    """Where sums of real products would begin to overflow: nothing does, whichever way is taken."""
    limit = np.float32((LARGEST / (8 * k)) ** 0.5)
    for value in (
        np.nextafter(limit, np.float32(0)),
        limit,
        np.nextafter(limit, np.float32(np.inf)),
        1.4 * limit,
        1.9 * limit,
    ):
        signs = np.where(numbers(n, k).a.real > 0, 1, -1).astype("f4")
        for parts in ((value, value), (value, -value), (value * signs, value * signs), (value, np.float32(1))):
            of = product(np.broadcast_to(parts[0] + 1j * parts[1], (n, k)).astype("c8"))
            got = jitblas.csyrk(of.a, algorithm=algorithm)
            assert_bounded(got, update(of, got, 1, 0), triangle(n, "L"), f"{value} {parts}")


@sizes
def test_special_numbers_in_c_stay_in_their_elements(n: int, k: int) -> None:
    of = numbers(n, k)
    for uplo, beta in itertools.product("LU", (0, 1, 2, 0.5 - 1j)):
        c = square(n, uplo)
        for place, value in enumerate((complex(np.inf, 1), complex(1, -np.inf), NAN, complex(3e38, 0))):
            c[(2 * place, place) if uplo == "L" else (place, 2 * place)] = value
        case = Case(of, uplo=uplo, c=c)
        case.run(1, beta)
        wanted = formula(of.a, case.before, 1, beta)
        assert_same_kinds(case.c.view, wanted, uplo, f"{uplo} {beta}")
        finite = np.isfinite(wanted) & (np.abs(c) < 1e30) & triangle(n, uplo)
        assert_bounded(case.c.view, update(of, case.before, 1, beta), finite, f"{uplo} {beta}")
        case.assert_nothing_else_written()


@sizes
@algorithms
@pytest.mark.parametrize("flagged", [False, True], ids=["ordinary numbers", "and a huge one"])
@pytest.mark.parametrize(
    ("alpha", "beta"),
    [(complex(np.inf, 0), 0), (complex(0, np.nan), 0), (1, complex(np.nan, 0)), (2, complex(0, np.inf)), (np.inf, 1)],
)
def test_scalars_that_are_not_finite_spread(
    alpha: complex, beta: complex, flagged: bool, n: int, k: int, algorithm: str
) -> None:
    of = special(numbers(n, k), [(0.5, 0.5, complex(2e19, 1))]) if flagged else numbers(n, k)
    case = Case(of)
    case.run(alpha, beta, algorithm=algorithm)
    assert_same_kinds(case.c.view, formula(of.a, case.before, complex(alpha), beta), "L")
    case.assert_nothing_else_written()


# ---- Other arrays, order, and overlap -------------------------------------------------------------------------------


def test_device_arrays_are_asynchronous_and_give_device_arrays() -> None:
    of = numbers(*LARGE)
    a = jitblas.array(of.a, target=HOST)
    with Handle(HOST) as handle:
        jitblas.csyrk(a, handle=handle)  # compiled and prepared
        c = jitblas.array(square(50, "U"), target=HOST)
        with Gate(handle.stream):
            fresh = jitblas.csyrk(a, handle=handle)
            assert jitblas.csyrk(a, c, alpha=2, beta=1, uplo="U", handle=handle) is c
            submitted, completed = handle.runtime.stream_position(handle.stream.address)
            assert submitted > completed
            del a
            gc.collect()
        got, given = c.numpy(), square(50, "U")
        assert_close(got, update(of, given, 2, 1), "U")
        assert_same_bits(got[~triangle(50, "U")], given[~triangle(50, "U")])
        assert isinstance(fresh, jitblas.DeviceArray) and fresh.shape == (50, 50) and fresh.dtype == "c64"
        assert_close(fresh.numpy(), update(of, got, 1, 0), "L")
        assert (fresh.numpy()[~triangle(50, "L")] == 0).all()


def test_device_arrays_of_every_order_and_beside_numpy_arrays() -> None:
    of = numbers(*LARGE)
    for trans, uplo in itertools.product("NT", "LU"):
        stored = of.a if trans == "N" else np.ascontiguousarray(of.a.T)
        c = jitblas.array(square(50, uplo), target=HOST)
        jitblas.csyrk(jitblas.array(stored, target=HOST), c, beta=1, trans=trans, uplo=uplo)
        assert_close(c.numpy(), update(of, square(50, uplo), 1, 1), uplo)
        case = Case(of, uplo=uplo, trans=trans)
        jitblas.csyrk(jitblas.array(stored, target=HOST), case.c.view, beta=1, trans=trans, uplo=uplo)
        default_handle().synchronize()
        case.check(1, 1)


DIGEST = """
import hashlib, itertools, jitblas
import numpy as np
from tests.triangles import numbers, square
state = hashlib.sha256()
for n, k in ((9, 7), (50, 1500), (301, 290), (700, 100)):
    for trans, algorithm in (("N", "4m"), ("T", "3m")):
        a, c = numbers(n, k).a.copy(), square(n, "L")
        if k == 290:
            a[200, 30] = np.inf
        jitblas.csyrk(a if trans == "N" else a.T.copy(), c, alpha=1.25 - 1j, beta=0.5, trans=trans, algorithm=algorithm)
        parts = c.view("f4")
        parts[np.isnan(parts)] = np.nan
        state.update(c.tobytes())
print(state.hexdigest())
"""


def test_the_number_of_threads_does_not_change_a_bit(python: Any) -> None:
    assert len({python(DIGEST, JITBLAS_THREADS=threads).stdout for threads in ("1", "2", "5")}) == 1


@sizes
@algorithms
@pytest.mark.parametrize("orders", ["CC", "CF"])
def test_repetition_padding_and_alignment_do_not_change_a_bit(n: int, k: int, orders: str, algorithm: str) -> None:
    of = numbers(n, k)
    wanted = Case(of, orders=orders)
    wanted.run(1.5, 1, algorithm=algorithm)
    for pads in ((0, 0), (0, 0), (1, 3), (5, 0)):
        case = Case(of, orders=orders, pads=pads)
        case.run(1.5, 1, algorithm=algorithm)
        inside = triangle(n, "L")
        assert_same_bits(case.c.view[inside], wanted.c.view[inside], f"{orders} {pads}")


@pytest.mark.parametrize("n", [30, 50, 300])
@algorithms
@pytest.mark.parametrize("trans", "NT")
def test_nothing_that_lay_in_the_workspace_reaches_the_result(n: int, trans: str, algorithm: str) -> None:
    """And nothing beyond what the operator asks for is used."""
    k = 40
    needed = workspace_bytes(Problem.parse(f"csyrk:L{trans},n={n},k={k},algorithm={algorithm}"), PROFILES[HOST])
    memory = np.full(needed + 4096, 0xFF, np.uint8)
    of = numbers(n, k)
    with Handle(HOST, workspace=(memory.ctypes.data, memory.size)) as handle:
        results = []
        for of_this in (of, special(of, SPECIAL["many"]), of):
            case = Case(of_this, trans=trans)
            case.run(2, 1, algorithm=algorithm, handle=handle)
            if of_this is of:
                case.check(2, 1)
                results.append(case.c.view.copy())
            else:
                assert_formula(case, 2, 1)
            assert (memory[needed:] == 0xFF).all() and (memory[:needed] != 0xFF).any()
            memory[:needed] = 0xFF
        assert_same_bits(*results)


def test_small_problems_need_no_workspace() -> None:
    with Handle(HOST) as handle:
        jitblas.csyrk(numbers(16, 16).a, handle=handle)
        assert handle.workspace.size == 0
        jitblas.csyrk(numbers(17, 16).a, handle=handle)
        assert handle.workspace.size == 32 << 20


@algorithms
def test_a_workspace_that_is_too_small_is_an_error_with_the_bytes_needed(algorithm: str) -> None:
    n, k = LARGE
    needed = workspace_bytes(Problem.parse(f"csyrk:LN,n={n},k={k},algorithm={algorithm}"), PROFILES[HOST])
    memory = np.zeros(needed, np.uint8)
    case = Case(numbers(n, k))
    with Handle(HOST, workspace=(memory.ctypes.data, needed - 1)) as handle:
        message = refused(Status.ALLOC_FAILED, lambda: case.run(1, 1, algorithm=algorithm, handle=handle))
        assert f"{needed} bytes of workspace are needed" in message and f"has {needed - 1}" in message
        assert handle.runtime.stream_position(handle.stream.address) == (0, 0)
        case.c.assert_untouched()
        assert not memory.any()
        handle.set_workspace((memory.ctypes.data, needed))
        case.run(1, 1, algorithm=algorithm, handle=handle)
        case.check(1, 1)


@pytest.mark.parametrize("size", [8, 30])
def test_an_a_that_overlaps_c_is_copied_first(size: int) -> None:
    for start, uplo, trans in itertools.product((0, 3, 2 * size), "LU", "NT"):
        memory = numbers(4 * size, 4 * size).a.copy()
        a, c = memory[start : start + size, start : start + size], memory[:size, :size]
        of = product(a.copy() if trans == "N" else a.T.copy())
        wanted = memory.copy()
        before = c.copy()
        jitblas.csyrk(a, c, alpha=1.5, beta=0.5j, trans=trans, uplo=uplo)
        assert_close(c, update(of, before, 1.5, 0.5j), uplo)
        wanted[:size, :size][triangle(size, uplo)] = c[triangle(size, uplo)]
        assert_same_bits(memory, wanted)


def test_an_overlapping_a_is_not_read_where_alpha_is_zero() -> None:
    memory = numbers(40, 40).a.copy()
    before = memory.copy()
    jitblas.csyrk(memory, memory, alpha=0, beta=-1, uplo="U")
    assert (memory == np.where(triangle(40, "U"), -before, before)).all()


# ---- What is refused ------------------------------------------------------------------------------------------------

A = np.ones((4, 3), "c8")
FROZEN = np.full((4, 4), 9, "c8")
FROZEN.flags.writeable = False
REAL_SCALAR = jitblas.array(np.ones(1, "f4"), target=HOST)

REFUSED: dict[str, tuple[dict[str, Any], Status, list[str]]] = {
    "trans": ({"trans": "X"}, Status.INVALID_VALUE, ["trans: ", "'X'", "'N', 'T' and 'C'"]),
    "lower-case trans": ({"trans": "t"}, Status.INVALID_VALUE, ["trans: ", "'t'"]),
    "trans as an array": ({"trans": np.array(["N"])}, Status.INVALID_VALUE, ["trans: "]),
    "uplo": ({"uplo": "X"}, Status.INVALID_VALUE, ["uplo: ", "'X'", "'L' and 'U'"]),
    "uplo as a number": ({"uplo": 121}, Status.INVALID_VALUE, ["uplo: ", "121"]),
    "algorithm": ({"algorithm": "5m"}, Status.INVALID_VALUE, ["algorithm: ", "'5m'", "'auto', '4m' and '3m'"]),
    "no c": ({"c": None, "beta": 1}, Status.INVALID_VALUE, ["c: ", "beta is not 0", "give the array"]),
    "no c and a device beta": ({"c": None, "beta": device_scalar(0)}, Status.INVALID_VALUE, ["c: ", "missing"]),
    "shape of c": ({"c": np.full((4, 5), 9, "c8")}, Status.INVALID_VALUE, ["c: ", "(4, 5)", "(4, 4)"]),
    "shape of c with T": ({"trans": "T"}, Status.INVALID_VALUE, ["c: ", "(4, 4)", "(3, 3)"]),
    "read-only c": ({"c": FROZEN}, Status.INVALID_VALUE, ["c: ", "read-only"]),
    "overlapping c": (
        {"c": np.lib.stride_tricks.as_strided(np.zeros(16, "c8"), (4, 4), (8, 8))}, Status.INVALID_VALUE,
        ["c: ", "ascontiguousarray(c)"],
    ),
    "1-D a": ({"a": np.ones(4, "c8")}, Status.INVALID_VALUE, ["a: ", "(4,)", "a matrix is needed"]),
    "3-D a": ({"a": np.ones((1, 4, 3), "c8")}, Status.INVALID_VALUE, ["a: ", "(1, 4, 3)"]),
    "backward a": ({"a": A[:, ::-1]}, Status.INVALID_VALUE, ["a: ", "strides", "ascontiguousarray(a)"]),
    "strided a": ({"a": np.ones((4, 6), "c8")[::2, ::2]}, Status.INVALID_VALUE, ["a: ", "ascontiguousarray(a)"]),
    "complex128 a": ({"a": A.astype("c16")}, Status.NOT_SUPPORTED, ["a is c128", "complex64 is accepted"]),
    "real a": ({"a": A.real.copy()}, Status.NOT_SUPPORTED, ["a is fp32", "complex64 is accepted"]),
    "complex128 c": ({"c": np.full((4, 4), 9, "c16")}, Status.NOT_SUPPORTED, ["c is c128", "complex64 is accepted"]),
    "a real scalar on the device": ({"alpha": REAL_SCALAR}, Status.INVALID_VALUE, ["alpha: ", "one c64 element"]),
    "two scalars on the device": (
        {"beta": jitblas.array(np.ones(2, "c8"), target=HOST)}, Status.INVALID_VALUE, ["beta: ", "one c64 element"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", list(REFUSED))
def test_what_is_refused_is_named_with_what_is_accepted_and_nothing_is_written(case: str) -> None:
    changes, status, said = REFUSED[case]
    arguments: dict[str, Any] = {"a": A, "c": np.full((4, 4), 9, "c8")} | changes
    c = arguments.pop("c")
    with Handle(HOST) as handle:
        message = refused(status, lambda: jitblas.csyrk(arguments.pop("a"), c, handle=handle, **arguments))
        assert handle.runtime.stream_position(handle.stream.address) == (0, 0)
    assert message.startswith(f"csyrk: {status.name}: ")
    assert [words for words in said if words not in message] == []
    assert c is None or case == "overlapping c" or (c == 9).all()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"alpha": "1"}, "alpha is a str"), ({"beta": None}, "beta is a NoneType"), ({"beta": [1]}, "beta is a list"),
        ({"alpha": np.ones(2)}, "alpha is a ndarray"), ({"alpha": 10**400}, "no floating-point number can hold"),
        ({"a": [[1j]]}, "a is a list"), ({"c": 3}, "c is a int"), ({"handle": 3}, "handle is a int"),
    ],
    ids=str,
)  # fmt: skip
def test_what_is_no_array_number_or_handle_is_a_type_error(changes: dict[str, Any], said: str) -> None:
    c = np.full((4, 4), 9, "c8")
    with pytest.raises(TypeError, match=said):
        jitblas.csyrk(**{"a": A, "c": c} | changes)
    assert (c == 9).all()


NUMBERS: list[Callable[[complex], Any]] = [complex, np.complex64, np.complex128, lambda v: np.array([v], "c8")]


@pytest.mark.parametrize("kind", NUMBERS, ids=["complex", "complex64", "complex128", "array"])
def test_a_scalar_may_be_any_number(kind: Callable[[complex], Any]) -> None:
    case = Case(numbers(*SMALL))
    case.run(kind(2 - 1j), kind(0.5j))
    case.check(2 - 1j, 0.5j)
    case = Case(numbers(*SMALL))
    case.run(np.float32(2), True)
    case.check(2, 1)


def test_holes_are_what_no_arithmetic_makes() -> None:
    """The bits that stray writes are found by."""
    hole = np.array([HOLE_BITS]).view("c8")
    with np.errstate(invalid="ignore"):
        assert ((hole * np.complex64(1 + 1j)).view("u8") != HOLE_BITS).all()
        assert np.isnan(hole).all()
