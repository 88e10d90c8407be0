"""Complex vectors amid NaN, what their dot product is in float64, and how far from it FP32 may be."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

HOLE = complex(np.nan, np.nan)


@functools.cache
def _pool(seed: int) -> Array:
    parts = np.random.default_rng(seed).standard_normal((2**20 + 3, 2))
    return parts.astype(np.float32).view(np.complex64).reshape(-1)


def complex_numbers(n: int, seed: int, *, positive: bool = False) -> Array:
    """The first n of a seed's numbers; `positive`: with both parts positive."""
    values = _pool(seed)[:n].copy()
    if positive:
        parts = values.view(np.float32)
        np.abs(parts, out=parts)
    return values


class Spread:
    """A vector amid NaN, between its elements too: one that is read in their place makes a sum NaN."""

    def __init__(self, values: Array, inc: int, offset: int = 3) -> None:
        n, apart = values.size, abs(inc)
        self.memory = np.full(max(n - 1, 0) * apart + 1 + 2 * offset, HOLE, np.complex64)
        view = self.memory[offset : offset + (n - 1) * apart + 1 : apart] if n else self.memory[offset:offset]
        self.lowest = self.memory[offset:]
        self.view = view[::-1] if inc < 0 else view
        self.view[:] = values
        self._before = self.memory.tobytes()

    def assert_untouched(self) -> None:
        assert self.memory.tobytes() == self._before


def dot(x: Array, y: Array) -> tuple[complex, float]:
    """sum conj(x_i) y_i in float64, and how far from it each part of an FP32 result may be."""
    wide_x, wide_y = x.astype(np.complex128), y.astype(np.complex128)
    exact = complex((wide_x.conj() * wide_y).sum())
    return exact, float(8 * 2.0**-24 * (np.abs(wide_x) * np.abs(wide_y)).sum())


def assert_close(got: Any, x: Array, y: Array, note: str = "") -> None:
    exact, bound = dot(x, y)
    number = complex(got)
    off = max(abs(number.real - exact.real), abs(number.imag - exact.imag))
    assert off <= bound, f"{note}: {number}, not {exact}: off by {off}, {bound} is allowed"


def bits(number: Any) -> bytes:
    """Of one complex64, to compare to the last one."""
    return np.asarray(number, np.complex64).tobytes()
