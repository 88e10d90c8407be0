"""Kernels tiled for the chip, run by the twin: its cores, its UB, hundreds of SIMT threads, and right results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitblas
from jitblas.hardware import ASCEND950PR, HOST, PROFILES
from jitblas.jit.kernels import load
from jitblas.operators import OPERATORS
from jitblas.operators.cdotc import tile_elements, workspace_bytes
from jitblas.problem import Problem
from jitblas.runtime.host import WAIT
from tests.dots import HOLE, Spread, assert_close, bits, complex_numbers
from tests.kernels.build import stream
from tests.reference import DTYPES, assert_same_bits, axpy, numbers

Array = np.ndarray[Any, np.dtype[Any]]

SIZES = (1, 31, 33, 1023, 1025, 5000, 57_345, 200_001)
SENTINEL = 0.75


def launch(line: str, *addresses: int | None, exact: bool = False, **scalars: float) -> int:
    """Launch a problem with the chip's tiling; the number of blocks."""
    problem = Problem.parse(line)
    specialization = jitblas.specialize(problem, "host", exact, profile=ASCEND950PR)
    kernel = load(specialization)
    blocks, values = OPERATORS[problem.op].tiling(problem, PROFILES[ASCEND950PR])
    baked = {name for name, _ in specialization.baked}
    numbers_of_launch = kernel.tiling(**{name: value for name, value in values.items() if name not in baked})
    for name, value in scalars.items():
        setattr(numbers_of_launch, name, value)
    assert kernel.launch(blocks, stream().address | WAIT, *addresses, numbers_of_launch) == 0
    return blocks


def run(line: str, x: Array, y: Array, alpha: Any, *, exact: bool = False) -> int:
    """AxpyEx; the number of blocks."""
    if isinstance(alpha, np.ndarray):
        return launch(line, x.ctypes.data, y.ctypes.data, alpha.ctypes.data, exact=exact)
    return launch(line, x.ctypes.data, y.ctypes.data, None, exact=exact, alpha=alpha)


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


ONE_CORE = PROFILES[ASCEND950PR].dot_one_core
TILE = tile_elements(PROFILES[ASCEND950PR])


def dot_of(x: Spread, y: Spread, incx: int, incy: int, *, exact: bool = False) -> tuple[Array, int]:
    """Cdotc, with the workspace it asks for amid NaN, and nothing but NaN in it; (result, blocks)."""
    n = x.view.size
    line = f"cdotc:n={n},incx={incx},incy={incy}"
    size = workspace_bytes(Problem.parse(line), PROFILES[ASCEND950PR]) // 8
    workspace, result = np.full(size + 16, HOLE, "c8"), np.full(3, HOLE, "c8")
    addresses = (memory.ctypes.data for memory in (x.lowest, y.lowest, result[1:], workspace[8:]))
    blocks = launch(line, *addresses, exact=exact)
    assert np.isnan(workspace[:8]).all() and np.isnan(workspace[size + 8 :]).all()
    assert np.isnan(result).tolist() == [True, False, True]
    return result[1], blocks


@pytest.mark.parametrize(
    ("n", "blocks"),
    [
        (1, 1), (63, 1), (65, 1), (TILE - 1, 1), (TILE + 1, 1), (2 * TILE + 77, 1), (ONE_CORE, 1),
        (ONE_CORE + 1, 33), (57_344, 56), (57_345, 53), (200_001, 56), (1_000_003, 56),
    ],
)  # fmt: skip
@pytest.mark.parametrize(("inc", "positive"), [(1, False), (1, True), (-1, False)])
def test_a_dot_product_of_the_chip_s_cores_is_within_the_bound(n: int, blocks: int, inc: int, positive: bool) -> None:
    x, y = (Spread(complex_numbers(n, seed, positive=positive), inc) for seed in (1, 2))
    number, used = dot_of(x, y, inc, inc)
    assert_close(number, x.view, y.view)
    assert used == blocks


@pytest.mark.parametrize(("incx", "incy"), [(2, 1), (1, -1), (-3, 2)])
@pytest.mark.parametrize(
    ("n", "used"), [(1, 1), (31, 1), (33, 1), (1000, 1), (57_344, 56), (57_345, 55), (200_001, 56)]
)
def test_hundreds_of_threads_per_core_leave_their_sums_and_all_count(n: int, used: int, incx: int, incy: int) -> None:
    """Up to 56 cores of 512 threads: tens of thousands of partial sums."""
    x, y = Spread(complex_numbers(n, 1), incx), Spread(complex_numbers(n, 2), incy)
    number, blocks = dot_of(x, y, incx, incy)
    assert_close(number, x.view, y.view)
    assert blocks == used


@pytest.mark.parametrize(("n", "inc"), [(ONE_CORE, 1), (10**6, 1), (200_001, 2)], ids=["one core", "many", "strided"])
def test_rounding_errors_of_one_sign_do_not_add_up_on_the_chip_s_cores(n: int, inc: int) -> None:
    x, y = Spread(np.full(n, 1 + 0.25j, "c8"), inc), Spread(np.full(n, (4 - 1j) / 3, "c8"), 1)
    assert_close(dot_of(x, y, inc, 1)[0], x.view, y.view)


@pytest.mark.parametrize(("n", "inc"), [(2 * TILE + 77, 1), (70_007, 1), (70_007, 3)])
def test_sizes_compiled_into_a_dot_product_change_no_bit(n: int, inc: int) -> None:
    x, y = Spread(complex_numbers(n, 1), inc), Spread(complex_numbers(n, 2), 1)
    assert bits(dot_of(x, y, inc, 1, exact=True)[0]) == bits(dot_of(x, y, inc, 1)[0])


@pytest.mark.parametrize(("profile", "sums"), [(ASCEND950PR, 56), (HOST, 64)])
@pytest.mark.parametrize("n", [1, ONE_CORE, PROFILES[HOST].dot_one_core, 10**7, 2**31 - 1])
def test_the_workspace_of_a_dot_product_holds_its_partial_sums(profile: str, sums: int, n: int) -> None:
    numbers_of = PROFILES[profile]
    contiguous, strided = (Problem.parse(f"cdotc:n={n},incx={inc}") for inc in (1, 2))
    blocks, _ = OPERATORS["cdotc"].tiling(contiguous, numbers_of)
    wanted = 0 if n <= numbers_of.dot_one_core else 2 * -(-blocks // 8) * 8 * 4
    assert workspace_bytes(contiguous, numbers_of) == wanted <= 2 * sums * 4
    blocks, tiling = OPERATORS["cdotc"].tiling(strided, numbers_of)
    assert workspace_bytes(strided, numbers_of) == 2 * -(-blocks * tiling["threads"] // 8) * 8 * 4


@pytest.mark.parametrize("n", [1, 1000, 1024, 1025, 10**5, 10**7, 2**31 - 1])
@pytest.mark.parametrize("inc", [1, 2])
@pytest.mark.parametrize("profile", list(PROFILES))
@pytest.mark.parametrize("operator", ["axpy_ex", "cdotc"])
def test_blocks_cover_all_elements_and_none_is_idle(n: int, inc: int, profile: str, operator: str) -> None:
    numbers_of = PROFILES[profile]
    blocks, tiling = OPERATORS[operator].tiling(Problem.parse(f"{operator}:n={n},incx={inc}"), numbers_of)
    assert 1 <= blocks <= numbers_of.vector_cores
    assert (blocks - 1) * tiling["per_block"] < n <= blocks * tiling["per_block"]
    if inc != 1:
        assert 1 <= tiling["threads"] <= numbers_of.simt_max_threads
        assert tiling["threads"] % numbers_of.simt_warp == 0
        assert tiling["threads"] <= tiling["per_block"]
