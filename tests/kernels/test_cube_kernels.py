"""The kernels of SgemmStridedBatched with the chip's tiling, and without the twin's shortcuts: the same products."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jitblas
from jitblas.handle import default_handle
from jitblas.hardware import ASCEND950PR, HOST, PROFILES
from jitblas.jit.kernels import load
from jitblas.operators import OPERATORS
from jitblas.problem import Problem
from jitblas.runtime.host import WAIT
from tests.kernels.build import stream
from tests.matrices import Array, Batch, assert_close, product


def run(line: str, profile: str, a: Array, b: Array, c: Array, alpha: float, beta: float) -> str:
    """Launch a problem with a profile's tiling; the name of the variant."""
    problem = Problem.parse(f"sgemm_strided_batched:{line},alpha={alpha},beta={beta}")
    specialization = jitblas.specialize(problem, HOST, profile=profile)
    kernel = load(specialization)
    blocks, values = OPERATORS[problem.op].tiling(problem, PROFILES[profile])
    tiling = kernel.tiling(**values)
    addresses = (array.__array_interface__["data"][0] for array in (a, b, c))
    assert kernel.launch(blocks, stream().address | WAIT, *addresses, None, None, tiling) == 0
    return specialization.variant


SIZES = ((1, 1, 1), (300, 16, 16), (129, 3, 9), (128, 128, 256), (129, 8, 257), (300, 270, 70), (5, 400, 600))
classes = pytest.mark.parametrize("trans", ["NN", "NT", "TN", "TT"])


@classes
@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 0.0), (2.0, 0.0), (-1.0, 0.5)])
def test_the_chip_s_tiling_gives_right_products(trans: str, alpha: float, beta: float) -> None:
    for m, n, k in SIZES:
        a = Batch(2, *((m, k) if trans[0] == "N" else (k, m)), 1).view
        b = Batch(2, *((k, n) if trans[1] == "N" else (n, k)), 2).view
        c = Batch(2, m, n, 3)
        left = a.transpose(0, 2, 1) if trans[0] == "T" else a
        right = b.transpose(0, 2, 1) if trans[1] == "T" else b
        expected = product(left, right, c.view, alpha, beta)
        variant = run(f"{trans},m={m},n={n},k={k},batch=2", ASCEND950PR, a, b, c.view, alpha, beta)
        direct = (alpha, beta) == (1.0, 0.0) and n % 8 == 0
        assert variant == ("narrow" if max(n, k) <= 16 else "direct" if direct else "general")
        assert_close(c.view, expected, f"{trans} {m} x {n} x {k}")
        c.assert_padding_untouched()


@pytest.mark.parametrize("n", range(1, 17))
def test_narrow_products_of_any_number_of_rows_are_whole(n: int) -> None:
    """A thread of the chip holds few rows, and not always a power of two of them."""
    for m in (*range(1, 21), 37):
        a, b, c = Batch(2, m, 5, 1).view, Batch(2, 5, n, 2).view, Batch(2, m, n, 3)
        expected = product(a, b, c.view, 1.0, 0.0)
        assert run(f"NN,m={m},n={n},k=5,batch=2", ASCEND950PR, a, b, c.view, 1.0, 0.0) == "narrow"
        assert_close(c.view, expected, f"{m} x {n}")
        c.assert_padding_untouched()


@pytest.mark.parametrize("n", [17, 20, 27, 32])
def test_strips_that_end_within_a_group_of_rows_are_whole(n: int) -> None:
    """With sizes compiled in, and more rows than one strip has."""
    m, k = PROFILES[HOST].strip_rows + 491, 3
    a, b, c = Batch(1, m, k, 1).view, Batch(1, k, n, 2).view, Batch(1, m, n, 3)
    expected = product(a, b, c.view, 1.0, 0.0)
    line = f"sgemm_strided_batched:m={m},n={n},k={k},lda={a.strides[1] // 4},ldb={b.strides[1] // 4}"
    jitblas.plan(f"{line},ldc={c.view.strides[1] // 4}", exact=True)(a, b, c.view)
    assert_close(c.view, expected, f"{m} x {n}")


@classes
@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 0.0), (-1.0, 0.5)])
@pytest.mark.parametrize("profile", list(PROFILES))
def test_binding_changes_no_bit(trans: str, alpha: float, beta: float, profile: str) -> None:
    """Matrices read where they are and results written where they go, against every copy that the chip makes."""
    runtime: Any = default_handle(HOST).runtime
    for m, n, k in ((33, 48, 20), (300, 100, 270)):
        a = Batch(2, *((m, k) if trans[0] == "N" else (k, m)), 1).view
        b = Batch(2, *((k, n) if trans[1] == "N" else (n, k)), 2).view
        bound, copied = (Batch(2, m, n, 3).view for _ in range(2))
        run(f"{trans},m={m},n={n},k={k},batch=2", profile, a, b, bound, alpha, beta)
        with runtime.binding(False):
            run(f"{trans},m={m},n={n},k={k},batch=2", profile, a, b, copied, alpha, beta)
        assert (bound.view(np.uint32) == copied.view(np.uint32)).all()


@pytest.mark.parametrize("profile", list(PROFILES))
@pytest.mark.parametrize(
    ("m", "n", "k", "batch"), [(1, 1, 1, 1), (4, 4, 4, 10**6), (5000, 7000, 3, 2), (129, 1, 9, 77)]
)
def test_blocks_cover_all_tiles_and_none_is_idle(profile: str, m: int, n: int, k: int, batch: int) -> None:
    numbers = PROFILES[profile]
    problem = Problem.parse(f"sgemm_strided_batched:m={m},n={n},k={k},batch={batch}")
    blocks, tiling = OPERATORS[problem.op].tiling(problem, numbers)
    if "strip" in tiling:
        tiles, cores = -(-m // int(tiling["strip"])) * batch, numbers.vector_cores
    else:
        tiles, cores = -(-m // numbers.tile_m) * -(-n // numbers.tile_n) * batch, numbers.cube_cores
    assert 1 <= blocks <= cores
    assert (blocks - 1) * tiling["per_block"] < tiles <= blocks * tiling["per_block"]


@given(st.integers(1, 3000), st.integers(1, 3000), st.integers(1, 3000), st.integers(1, 5), st.integers(1, 64))
def test_tiles_are_whole_fractals_that_fit_and_cover(m: int, n: int, k: int, batch: int, cores: int) -> None:
    for profile in PROFILES.values():
        numbers = profile._replace(cores_at_once=cores)
        problem = Problem.parse(f"sgemm_strided_batched:m={m},n={n},k={k},batch={batch},alpha=2")
        _, tiling = OPERATORS[problem.op].tiling(problem, numbers)
        if "tile_m" not in tiling:
            continue
        assert tiling["tile_m"] % 16 == 0 and tiling["tile_n"] % 16 == 0
        assert tiling["chunk_k"] % 8 == 0 and tiling["step_k"] % 8 == 0
        assert 0 < tiling["tile_m"] <= numbers.tile_m and 0 < tiling["tile_n"] <= numbers.tile_n
        assert 0 < tiling["step_k"] <= min(tiling["chunk_k"], numbers.step_k)
        assert tiling["chunk_k"] <= numbers.chunk_k


def test_buffers_of_every_profile_hold_what_kernels_put_there() -> None:
    for numbers in PROFILES.values():
        operand = 4 * (numbers.tile_m + numbers.tile_n)
        assert 2 * operand * numbers.chunk_k <= numbers.l1_bytes
        assert 2 * 4 * numbers.tile_m * numbers.step_k <= numbers.l0a_bytes
        assert 2 * 4 * numbers.tile_n * numbers.step_k <= numbers.l0b_bytes
        assert 2 * 4 * numbers.tile_m * numbers.tile_n <= numbers.l0c_bytes
        assert 4 * 4 * numbers.tile_m // 2 * numbers.tile_n <= numbers.ub_bytes
        assert max(numbers.tile_m, numbers.tile_n, numbers.step_k) <= 4095  # what an Mmad takes
