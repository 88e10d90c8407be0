"""Matrices amid sentinels, and what a product of them may differ from the float64 one."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

SENTINEL = np.float32(-7.75e8)

SIZES = (1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 63, 65, 127, 129, 255, 300)
"""Around every unit that kernels cut matrices into."""


class Batch:
    """Matrices with `pad` sentinels behind every row (column), `gap` between matrices, and some around them all.

    `view` is (batch, rows, columns); F-ordered matrices if `by_columns`.
    """

    def __init__(
        self, batch: int, rows: int, columns: int, seed: int, *, pad: int = 0, gap: int = 0, by_columns: bool = False,
        positive: bool = False,
    ) -> None:  # fmt: skip
        runs, length = (columns, rows) if by_columns else (rows, columns)
        self.ld = length + pad
        self.stride = runs * self.ld + gap
        self.memory = np.full(batch * self.stride + 32, SENTINEL, np.float32)
        spread = np.lib.stride_tricks.as_strided(
            self.memory[16:], (batch, runs, length), (4 * self.stride, 4 * self.ld, 4)
        )
        self.view = spread.transpose(0, 2, 1) if by_columns else spread
        values = np.random.default_rng(seed).standard_normal((batch, rows, columns)).astype(np.float32)
        self.view[...] = np.abs(values) if positive else values

    def assert_padding_untouched(self) -> None:
        memory = self.memory.copy()
        inside = np.lib.stride_tricks.as_strided(
            memory[16:], self.view.shape, self.view.strides
        )  # fmt: skip
        inside[...] = SENTINEL
        assert (memory == SENTINEL).all()


def product(a: Array, b: Array, c: Array, alpha: float, beta: float) -> tuple[Array, Array]:
    """alpha a b + beta c in float64, and how far from it FP32 may be."""
    wide_a, wide_b, wide_c = (matrix.astype(np.float64) for matrix in (a, b, c))
    depth = a.shape[-1]
    exact = alpha * (wide_a @ wide_b)
    size = abs(alpha) * (np.abs(wide_a) @ np.abs(wide_b))
    if beta != 0:
        exact = exact + beta * wide_c
        size = size + abs(beta) * np.abs(wide_c)
    return exact, (8 + np.sqrt(depth)) * 2.0**-24 * size


def assert_close(got: Array, expected: tuple[Array, Array], note: str = "") -> None:
    exact, bound = expected
    wrong = ~(np.abs(got.astype(np.float64) - exact) <= bound)
    if wrong.any():
        at = tuple(int(index[0]) for index in np.nonzero(wrong))
        raise AssertionError(f"{note}: {int(wrong.sum())} of {got.size} wrong, first {at}: {got[at]} not {exact[at]}")
