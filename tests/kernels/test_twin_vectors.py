"""The basic vector instructions of the twin: element by element what NumPy computes, and no element more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.kernels.build import run
from tests.reference import DTYPES, assert_same_bits, fused_multiply_add, numbers

Array = np.ndarray[Any, np.dtype[Any]]

INSTRUCTIONS: dict[str, Callable[[Array, Array, Any], Array]] = {
    "add": lambda a, b, scalar: a + b,
    "sub": lambda a, b, scalar: a - b,
    "mul": lambda a, b, scalar: a * b,
    "div": lambda a, b, scalar: a / b,
    "adds": lambda a, b, scalar: a + scalar,
    "muls": lambda a, b, scalar: a * scalar,
    "duplicate": lambda a, b, scalar: np.full_like(a, scalar),
}
COUNTS = (1, 2, 31, 64, 65, 1000, 4096)


def compute(instruction: str, a: Array, b: Array, scalar: float) -> Array:
    """The instruction's result; one more element than asked for must stay as it was."""
    out = np.full(a.size + 1, 77, a.dtype)
    run("vectors", instruction, a, b, out, float(scalar), a.size)
    assert out[-1] == 77
    return out[:-1]


@pytest.mark.parametrize("word", list(DTYPES))
@pytest.mark.parametrize("instruction", list(INSTRUCTIONS))
def test_an_instruction_is_right_for_every_count_and_special_number(word: str, instruction: str) -> None:
    for n in COUNTS:
        a, b = numbers(word, n, 1, special=True), numbers(word, n, 2, special=True)
        for number in (1.75, -0.0, np.inf):
            with np.errstate(all="ignore"):
                expected = INSTRUCTIONS[instruction](a, b, DTYPES[word].type(number))
            got = compute(f"{instruction}_{word}", a, b, number)
            assert_same_bits(got, expected.astype(a.dtype), f"n={n} scalar={number}")


@pytest.mark.parametrize("word", list(DTYPES))
def test_max_and_min_pick_the_greater_and_the_lesser_number(word: str) -> None:
    a, b = numbers(word, 1000, 3), numbers(word, 1000, 4)
    assert_same_bits(compute(f"max_{word}", a, b, 0.0), np.maximum(a, b))
    assert_same_bits(compute(f"min_{word}", a, b, 0.0), np.minimum(a, b))


def test_axpy_rounds_once() -> None:
    for n in COUNTS:
        a, b = numbers("fp32", n, 5, special=True), numbers("fp32", n, 6, special=True)
        for scalar in (1.1, -3.0, 0.0, np.inf, np.nan):
            assert_same_bits(compute("axpy_fp32", a, b, scalar), fused_multiply_add(scalar, a, b), f"n={n}")
    one = np.full(8, 1 + 2.0**-12, "f4")
    assert (compute("axpy_fp32", one, np.full(8, -(1 + 2.0**-11), "f4"), 1 + 2.0**-12) == 2.0**-24).all()
