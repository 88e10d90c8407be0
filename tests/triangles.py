"""Complex matrices amid NaN, a symmetric update of one triangle in float64, and how far from it FP32 may be."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from tests.dots import complex_numbers

Array = np.ndarray[Any, np.dtype[Any]]

HOLE_BITS = np.uint64(0x7FC1_2345_7FC5_4321)
"""A complex number of two NaN which no arithmetic makes."""

SIZES = (1, 2, 3, 7, 8, 15, 16, 17, 31, 32, 33, 47, 48, 49, 63, 65, 95, 97, 129, 143, 145, 255, 300)
"""Around every unit that kernels cut matrices into."""


class Matrix:
    """A matrix with `pad` NaN behind every row (column), and more around it.

    `view` is the matrix, F-ordered if `by_columns`; `lowest` its memory from its first element on, and `ld` the
    elements from a row (column) to the next.
    """

    def __init__(self, values: Array, *, pad: int = 0, by_columns: bool = False) -> None:
        runs, length = values.shape[::-1] if by_columns else values.shape
        self.ld = max(length, 1) + pad
        self.memory = np.full(runs * self.ld + 32, HOLE_BITS).view(np.complex64)
        self.lowest = self.memory[16:]
        along = np.lib.stride_tricks.as_strided(self.lowest, (runs, length), (8 * self.ld, 8))
        self.by_columns = by_columns
        self.view = along.T if by_columns else along
        self.view[...] = values
        self._before = self.memory.view(np.uint64).copy()

    def assert_untouched(self, but: str = "") -> None:
        """Everything is as it was, or all `but` the triangle L or U."""
        changed = self.memory.view(np.uint64) != self._before
        if but:
            rows, columns = self.view.shape
            steps = (1, self.ld) if self.by_columns else (self.ld, 1)
            np.lib.stride_tricks.as_strided(changed[16:], (rows, columns), steps)[triangle(rows, but)] = False
        assert not changed.any(), (
            f"{int(changed.sum())} elements were written that must not be, first {changed.argmax()}"
        )


@functools.cache
def triangle(n: int, uplo: str) -> Array:
    """Which elements are of it."""
    whole = np.ones((n, n), bool)
    return np.tril(whole) if uplo == "L" else np.triu(whole)


def square(n: int, uplo: str, seed: int = 3) -> Array:
    """Numbers in one triangle, NaN in the other."""
    values = np.full((n, n), HOLE_BITS).view(np.complex64)
    inside = triangle(n, uplo)
    values[inside] = complex_numbers(n * n, seed).reshape(n, n)[inside]
    return values


class Product(NamedTuple):
    """op(A), op(A) op(A)^T in float64, and the sums of |a||a|."""

    a: Array
    exact: Array
    size: Array

    def rows(self, n: int) -> Product:
        return Product(self.a[:n], self.exact[:n, :n], self.size[:n, :n])


def product(a: Array) -> Product:
    wide = a.astype(np.complex128)
    with np.errstate(all="ignore"):
        return Product(a, wide @ wide.T, np.abs(wide) @ np.abs(wide).T)


@functools.lru_cache(maxsize=64)
def _numbers(rows: int, k: int, positive: bool) -> Product:
    return product(complex_numbers(rows * k, 1, positive=positive).reshape(rows, k))


def numbers(n: int, k: int, *, positive: bool = False) -> Product:
    """Normally distributed numbers, with parts of both signs or positive ones; the first rows of what more have."""
    return _numbers(max(n, SIZES[-1]), k, positive).rows(n)


class Expected(NamedTuple):
    exact: Array
    bound: Array


def update(given: Product, c: Array, alpha: complex, beta: complex) -> Expected:
    """alpha A A^T + beta c in float64, and how far from it each part of an FP32 result may be."""
    n, k = given.a.shape
    exact, size = np.zeros((n, n), complex), np.zeros((n, n))
    if alpha != 0:
        exact, size = alpha * given.exact, abs(alpha) * given.size
    if beta != 0:
        wide = c.astype(np.complex128)
        with np.errstate(invalid="ignore"):
            exact, size = exact + beta * wide, size + abs(beta) * np.abs(wide)
    return Expected(exact, (8 + np.sqrt(k)) * 2.0**-24 * size)


def assert_close(got: Array, expected: Expected, uplo: str, note: str = "", *, gate: bool = True) -> None:
    """Both parts of the triangle's elements within the bound and, with `gate`, within that of mixed precision.

    The gate is the looser one for most numbers; where terms cancel it is the closer one, and leaves out 1 % of them.
    """
    inside = triangle(len(got), uplo)
    found, exact, bound = got[inside].astype(np.complex128), expected.exact[inside], expected.bound[inside]
    beyond = 0
    for part in ("real", "imag"):
        wanted = getattr(exact, part)
        off = np.abs(getattr(found, part) - wanted)
        wrong = ~(off <= bound)
        if wrong.any():
            worst = int(np.argmax(np.where(np.isnan(off), np.inf, off / np.maximum(bound, 1e-300))))
            at = tuple(int(index[worst]) for index in np.nonzero(inside))
            raise AssertionError(
                f"{note}: {int(wrong.sum())} {part} parts of {off.size} wrong, most at {at}: {found[worst]}, not "
                f"{exact[worst]}: off by {off[worst]:.3g}, {bound[worst]:.3g} is allowed"
            )
        if gate:
            ulp = np.spacing(np.abs(wanted).astype(np.float32))
            assert (off <= np.maximum(1e-2, 32 * ulp)).all(), f"{note}: {part} parts off by up to {off.max()}"
            beyond += int((off > 2.0**-16 + 2.0**-10 * np.abs(wanted)).sum())
    assert beyond <= 0.01 * 2 * found.size, f"{note}: {beyond} parts of {2 * found.size} beyond the gate"


def assert_bounded(got: Array, expected: Expected, where: Array, note: str = "") -> None:
    """The same of elements anywhere, and of any size."""
    for part in ("real", "imag"):
        off = np.abs(getattr(got, part)[where].astype(np.float64) - getattr(expected.exact, part)[where])
        assert (off <= expected.bound[where]).all(), f"{note}: {part} parts off by up to {off.max()}"


def formula(a: Array, c: Array, alpha: complex, beta: complex) -> Array:
    """alpha A A^T + beta c in FP32, term by term as complex numbers are multiplied."""
    n = len(a)

    def times(number: complex, re: Array, im: Array) -> tuple[Array, Array]:
        x, y = np.float32(number.real), np.float32(number.imag)
        return re * x - im * y, re * y + im * x

    with np.errstate(all="ignore"):
        re, im = np.zeros((2, n, n), np.float32)
        for x in np.ascontiguousarray(a.T):
            re += np.outer(x.real, x.real) - np.outer(x.imag, x.imag)
            im += np.outer(x.real, x.imag) + np.outer(x.imag, x.real)
        if alpha != 1:
            re, im = times(alpha, re, im)
        if beta == 1:
            re, im = re + c.real, im + c.imag
        elif beta != 0:
            more = times(beta, c.real, c.imag)
            re, im = re + more[0], im + more[1]
    out = np.empty((n, n), np.complex64)
    out.real, out.imag = re, im
    return out


def kinds(parts: Array) -> Array:
    """NaN, an infinity of either sign, or finite: 2, 1, -1, 0."""
    infinite = np.where(np.isinf(parts), np.sign(parts), np.float32(0))
    return np.where(np.isnan(parts), np.float32(2), infinite)


def assert_same_kinds(got: Array, wanted: Array, uplo: str, note: str = "") -> None:
    inside = triangle(len(got), uplo)
    for part in ("real", "imag"):
        found, expected = kinds(getattr(got, part)), kinds(getattr(wanted, part))
        wrong = (found != expected) & inside
        if wrong.any():
            at = tuple(int(index[0]) for index in np.nonzero(wrong))
            raise AssertionError(f"{note}: {int(wrong.sum())} {part} parts, first {at}: {got[at]}, not {wanted[at]}")


def assert_same_bits(got: Array, wanted: Array, note: str = "") -> None:
    different = np.ascontiguousarray(got).view(np.uint64) != np.ascontiguousarray(wanted).view(np.uint64)
    assert not different.any(), f"{note}: {int(different.sum())} of {different.size} differ"


def device_scalar(value: complex) -> Any:
    import jitblas

    return jitblas.array(np.array([value], np.complex64), target="host")
