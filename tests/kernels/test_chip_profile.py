"""Kernels tiled for the chip, run by the twin: its cores, its UB, hundreds of SIMT threads, and the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitblas
from jitblas.hardware import ASCEND950PR, PROFILES
from jitblas.jit.kernels import load
from jitblas.operators import OPERATORS
from jitblas.problem import Problem
from jitblas.runtime.host import WAIT
from tests.kernels.build import stream
from tests.reference import DTYPES, assert_same_bits, axpy, numbers

Array = np.ndarray[Any, np.dtype[Any]]

SIZES = (1, 31, 33, 1023, 1025, 5000, 57_345, 200_001)
SENTINEL = 0.75


def run(line: str, x: Array, y: Array, alpha: Any, *, exact: bool = False) -> int:
    """Launch a problem with the chip's tiling; the number of blocks."""
    problem = Problem.parse(line)
    specialization = jitblas.specialize(problem, "host", exact, profile=ASCEND950PR)
    kernel = load(specialization)
    blocks, values = OPERATORS[problem.op].tiling(problem, PROFILES[ASCEND950PR])
    baked = {name for name, _ in specialization.baked}
    numbers_of_launch = kernel.tiling(**{name: value for name, value in values.items() if name not in baked})
    device = isinstance(alpha, np.ndarray)
    if not device:
        numbers_of_launch.alpha = alpha
    address = alpha.ctypes.data if device else None
    status = kernel.launch(blocks, stream().address | WAIT, x.ctypes.data, y.ctypes.data, address, numbers_of_launch)
    assert status == 0
    return blocks


@pytest.mark.parametrize("word", list(DTYPES))
@pytest.mark.parametrize(("incx", "incy"), [(1, 1), (2, 1), (-1, 3), (-2, -2)])
@pytest.mark.parametrize("scalar", ["host", "device"])
def test_the_chip_s_tiling_gives_the_same_bits(word: str, incx: int, incy: int, scalar: str) -> None:
    for n in SIZES:
        x, y = numbers(word, n * abs(incx), 1, special=True), numbers(word, n * abs(incy), 2, special=True)
        spread_x, spread_y = x[:: abs(incx)], y[:: abs(incy)]
        expected = y.copy()
        wanted_x, wanted_y = spread_x[:: np.sign(incx)], spread_y[:: np.sign(incy)]
        expected[:: abs(incy)][:: np.sign(incy)] = axpy(-2.5, wanted_x, wanted_y)
        alpha = np.array([-2.5], "f4") if scalar == "device" else -2.5
        blocks = run(f"axpy_ex:n={n},dtype={word},incx={incx},incy={incy},scalar={scalar}", x, y, alpha)
        assert blocks <= 56
        assert_same_bits(y, expected, f"n={n}")


@pytest.mark.parametrize(("incx", "incy"), [(1, 1), (3, -2)])
def test_sizes_compiled_into_the_kernel_give_the_same_bits(incx: int, incy: int) -> None:
    n = 70_007
    x, y = numbers("bf16", n * abs(incx), 3), numbers("bf16", n * abs(incy), 4)
    expected = y.copy()
    expected[:: abs(incy)][:: np.sign(incy)] = axpy(0.3, x[::incx], y[:: abs(incy)][:: np.sign(incy)])
    run(f"axpy_ex:n={n},dtype=bf16,incx={incx},incy={incy}", x, y, 0.3, exact=True)
    assert_same_bits(y, expected)


@pytest.mark.parametrize("n", [1, 1000, 1024, 1025, 10**5, 10**7, 2**31 - 1])
@pytest.mark.parametrize("inc", [1, 2])
@pytest.mark.parametrize("profile", list(PROFILES))
def test_blocks_cover_all_elements_and_none_is_idle(n: int, inc: int, profile: str) -> None:
    numbers_of = PROFILES[profile]
    blocks, tiling = OPERATORS["axpy_ex"].tiling(Problem.parse(f"axpy_ex:n={n},incx={inc}"), numbers_of)
    assert 1 <= blocks <= numbers_of.vector_cores
    assert (blocks - 1) * tiling["per_block"] < n <= blocks * tiling["per_block"]
    if inc != 1:
        assert 1 <= tiling["threads"] <= numbers_of.simt_max_threads
        assert tiling["threads"] % numbers_of.simt_warp == 0
        assert tiling["threads"] <= tiling["per_block"]
