"""Csyrk with the chip's tiling in the twin, how work is spread over cores, what buffers and workspace must hold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jitblas
from jitblas.handle import default_handle
from jitblas.hardware import ASCEND950PR, HOST, PROFILES, Profile
from jitblas.jit.kernels import load
from jitblas.operators.csyrk import block_size, choose, tiling, workspace_bytes
from jitblas.problem import Problem
from jitblas.runtime.host import WAIT
from tests.kernels.build import stream
from tests.triangles import (
    Array,
    Matrix,
    Product,
    assert_close,
    assert_same_bits,
    assert_same_kinds,
    formula,
    numbers,
    product,
    square,
    triangle,
    update,
)

CHIP = PROFILES[ASCEND950PR]
algorithms = pytest.mark.parametrize("algorithm", ["4m", "3m"])
profiles = pytest.mark.parametrize("profile", list(PROFILES))


def run(
    of: Product, form: str, alpha: complex, beta: complex, *, algorithm: str = "auto", profile: str = ASCEND950PR,
    pads: tuple[int, int] = (0, 0), on_device: bool = False,
) -> tuple[Array, str]:  # fmt: skip
    """Launch with a profile's tiling, the workspace it asks for amid NaN and full of it; (c, name of the variant)."""
    n, k = of.a.shape
    a = Matrix(of.a if form[1] == "N" else of.a.T, pad=pads[0])
    c = Matrix(square(n, form[0]), pad=pads[1])
    if beta == 0:
        c.view[triangle(n, form[0])] = np.nan
    scalar = "device" if on_device else "host"
    line = f"csyrk:{form},n={n},k={k},lda={a.ld},ldc={c.ld},algorithm={algorithm},scalar={scalar}"
    problem = Problem.parse(line)
    specialization = jitblas.specialize(problem, HOST, profile=profile)
    kernel = load(specialization)
    blocks, values = tiling(problem, PROFILES[profile])
    of_launch = kernel.tiling(**values)
    scalars = np.array([alpha, beta], "c8")
    if not on_device:
        of_launch.alpha_re, of_launch.alpha_im = complex(alpha).real, complex(alpha).imag
        of_launch.beta_re, of_launch.beta_im = complex(beta).real, complex(beta).imag
    size = workspace_bytes(problem, PROFILES[profile])
    workspace = np.full(size + 128, 0xFF, np.uint8)
    addresses = [
        a.lowest.ctypes.data, c.lowest.ctypes.data, *((scalars.ctypes.data, scalars.ctypes.data + 8) if on_device
        else (None, None)), workspace.ctypes.data + 64,
    ]  # fmt: skip
    assert kernel.launch(blocks, stream().address | WAIT, *addresses, of_launch) == 0
    stream().synchronize()
    assert (workspace[:64] == 0xFF).all() and (workspace[64 + size :] == 0xFF).all()
    a.assert_untouched()
    c.assert_untouched(but=form[0])
    return c.view, specialization.variant


@algorithms
@pytest.mark.parametrize("form", ["LN", "UT"])
@pytest.mark.parametrize(
    ("n", "k"),
    [(1, 1), (32, 32), (33, 5), (5, 33), (127, 40), (128, 129), (300, 64), (897, 20), (20, 1500), (150, 520)],
)
def test_the_chip_s_tiling_gives_right_updates(form: str, n: int, k: int, algorithm: str) -> None:
    """With several tiles for a core, and more of k than the cube adds up: the vector cores add the segments' sums."""
    for alpha, beta, pads in ((1, 0, (0, 0)), (-1.5j, 1, (1, 3)), (2 - 1j, 0.5, (0, 1))):
        of = numbers(n, k)
        got, variant = run(of, form, alpha, beta, algorithm=algorithm, pads=pads)
        assert variant == ("small" if max(n, k) <= 32 else "large")
        expected = update(of, square(n, form[0]), alpha, beta)
        assert_close(got, expected, form[0], f"{form} {n} x {k} {algorithm} {alpha} {beta}")


def test_the_sizes_above_have_segments_and_several_tiles_for_a_core() -> None:
    _, values = tiling(Problem.parse("csyrk:n=897,k=20"), CHIP)
    assert values["per_block"] > 1
    _, values = tiling(Problem.parse("csyrk:n=150,k=520"), CHIP)
    assert values["segment_k"] < 520 and values["chunk_k"] > values["step_k"]
    _, values = tiling(Problem.parse("csyrk:n=20,k=1500"), CHIP)
    assert 2 * values["segment_k"] < 1500


@algorithms
@pytest.mark.parametrize(("n", "k"), [(150, 520), (897, 20)])
def test_rows_of_special_numbers_are_added_by_the_formula(n: int, k: int, algorithm: str) -> None:
    a = numbers(n, k).a.copy()
    a[n // 3, 5], a[n - 1, 0], a[n - 2, 1] = complex(np.inf, 1), complex(1, np.nan), 1e19 * (1 + 1j)
    of = product(a)
    for beta in (0, 1):
        got, _ = run(of, "LN", 2, beta, algorithm=algorithm)
        wanted = formula(a, square(n, "L"), 2, beta)
        assert_same_kinds(got, wanted, "L")
        ordinary = np.abs(np.nan_to_num(a, nan=np.inf)).max(axis=1) < 1e3
        kept = ordinary[:, None] & ordinary
        clean = np.where(kept, got, 0)
        exact = update(of._replace(exact=np.where(kept, of.exact, 0)), np.where(kept, square(n, "L"), 0), 2, beta)
        assert_close(clean, exact._replace(bound=np.where(kept, exact.bound, 0)), "L")


@algorithms
@profiles
@pytest.mark.parametrize(("n", "k"), [(50, 40), (300, 530)])
def test_binding_changes_no_bit(n: int, k: int, profile: str, algorithm: str) -> None:
    """Planes read where they are and results written where they go, against every copy that the chip makes."""
    runtime: Any = default_handle(HOST).runtime
    for form, alpha, beta in (("LN", 1, 0), ("UT", 2j, 1)):
        bound, _ = run(numbers(n, k), form, alpha, beta, algorithm=algorithm, profile=profile, pads=(1, 2))
        with runtime.binding(False):
            copied, _ = run(numbers(n, k), form, alpha, beta, algorithm=algorithm, profile=profile, pads=(1, 2))
        inside = triangle(n, form[0])
        assert_same_bits(bound[inside], copied[inside])


@pytest.mark.parametrize(("n", "k"), [(9, 7), (150, 520)])
def test_scalars_in_device_memory_give_the_same_bits(n: int, k: int) -> None:
    for alpha, beta in ((1, 0), (2 - 1j, 0.5), (0, 2), (0, 1), (0, 0), (-1j, 1)):
        of = numbers(n, k)
        if alpha == 0:
            of = of._replace(a=np.full_like(of.a, np.nan))
        results = [run(of, "LN", alpha, beta, on_device=on_device)[0] for on_device in (False, True)]
        assert_same_bits(results[0][triangle(n, "L")], results[1][triangle(n, "L")], f"{alpha} {beta}")


# ---- Tilings --------------------------------------------------------------------------------------------------------


def work(n: int, profile: Profile) -> list[int]:
    """Elements that each block's cube core computes: whole blocks of C, but for those beyond the triangle."""
    blocks, values = tiling(Problem.parse(f"csyrk:n={n},k=4096"), profile)
    size, per_block, side = int(values["tile"]), int(values["per_block"]), block_size(n, profile)

    def pieces(begin: int, step: int, end: int) -> Iterator[tuple[int, int]]:
        for first in range(begin, end, step):
            yield first, min(first + step, end)

    tiles = [
        sum(
            (r_end - r) * (s_end - s)
            for r, r_end in pieces(row, side, row_end)
            for s, s_end in pieces(column, side, column_end)
            if s < r_end
        )
        for row, row_end in pieces(0, size, n)
        for column, column_end in pieces(0, size, row_end)
    ]
    return [sum(tiles[block * per_block : (block + 1) * per_block]) for block in range(blocks)]


@pytest.mark.parametrize("n", [3465, 1692, 56 * 64 - 64, 1000, 1024, 1370, 1407, 1444, 2048, 2049, 3001, 4096])
def test_the_core_with_most_work_has_little_more_than_the_mean(n: int) -> None:
    """Of all cores, those without work among them. The first two sizes are where work piled up on one core."""
    loads = work(n, CHIP)
    assert sum(loads) >= n * (n + 1) // 2
    assert max(loads) <= 1.35 * sum(loads) / CHIP.cube_cores


@given(st.integers(17, 5000), st.integers(1, 5000), st.integers(1, 64))
def test_tiles_are_whole_units_that_fit_and_cover_and_no_block_is_idle(n: int, k: int, cores: int) -> None:
    for profile in (*PROFILES.values(), *(each._replace(cores_at_once=cores) for each in PROFILES.values())):
        problem = Problem.parse(f"csyrk:n={n},k={k}")
        choice = choose(problem, profile)
        blocks, values = tiling(problem, profile)
        if choice.variant.name == "small":
            assert max(n, k) <= profile.syrk_small and blocks == 1
            continue
        rows = int(values["rows_per_block"])
        tile, per_block = int(values["tile"]), int(values["per_block"])
        assert tile % profile.syrk_unit == 0 and 0 < tile <= profile.syrk_tile
        lines = -(-n // tile)
        tiles = lines * (lines + 1) // 2
        assert (blocks - 1) * per_block < tiles <= blocks * per_block and 1 <= blocks <= profile.cube_cores
        row_blocks, split_blocks = int(values["row_blocks"]), int(values["split_blocks"])
        assert (row_blocks - 1) * rows < n <= row_blocks * rows and row_blocks <= profile.vector_cores
        assert 1 <= split_blocks <= profile.vector_cores
        assert split_blocks * values["split_per_block"] >= n * k and values["split_per_block"] % 8 == 0
        assert values["segment_k"] % 8 == values["chunk_k"] % 8 == values["step_k"] % 8 == 0
        assert 0 < values["step_k"] <= min(values["chunk_k"], profile.step_k)
        assert values["chunk_k"] <= min(values["segment_k"], profile.chunk_k)
        assert values["segment_k"] <= profile.segment_k
        assert values["plane_ld"] >= k
        assert 0.999 < values["limit"] ** 2 * 8 * k / np.finfo("f4").max < 1.001
        assert dict(choice.constants)["kBlock"] == block_size(n, profile)
        assert profile.syrk_tile % block_size(n, profile) == 0 and block_size(n, profile) % 16 == 0


@profiles
@algorithms
@pytest.mark.parametrize("n", [33, 700])
def test_buffers_of_every_profile_hold_what_kernels_put_there(profile: str, algorithm: str, n: int) -> None:
    numbers_of = PROFILES[profile]
    constants = dict(choose(Problem.parse(f"csyrk:n={n},k=100,algorithm={algorithm}"), numbers_of).constants)
    tile, block = int(constants["kTile"]), int(constants["kBlock"])
    sums, blocks = (3 if algorithm == "3m" else 2), (tile // block) ** 2
    assert constants["kThreeProducts"] == (algorithm == "3m")
    assert 2 * 2 * 4 * tile * numbers_of.chunk_k <= numbers_of.l1_bytes  # two chunks of two operands
    assert 2 * 4 * tile * numbers_of.step_k <= min(numbers_of.l0a_bytes, numbers_of.l0b_bytes)  # two steps
    results = int(constants["kResults"])
    assert sums <= results and 4 * results * tile**2 <= numbers_of.l0c_bytes
    half = -(-(block + 1) // 2 // 16) * 16 * block * 4  # of a vector core: its rows of a block
    rows = 16 * 2 * (-(-block // 64) * 64) * 4
    assert half * (sums * blocks + 2) + 2 * rows <= numbers_of.ub_bytes  # sums, two turns, rows of C
    assert max(block, numbers_of.step_k) <= 4095  # what an Mmad takes


@profiles
@pytest.mark.parametrize("form", ["LN", "LT"])
@pytest.mark.parametrize(("n", "k"), [(33, 1), (50, 40), (255, 300), (256, 255), (700, 1024), (4096, 4096)])
def test_the_workspace_is_three_planes_and_flags(profile: str, form: str, n: int, k: int) -> None:
    """Runs of a plane from 96 elements on lie an odd number of 64-byte lines apart."""
    problem = Problem.parse(f"csyrk:{form},n={n},k={k}")
    runs, length = (n, k) if form[1] == "N" else (k, n)
    apart = length if length < 96 else (-(-length // 16) | 1) * 16
    assert apart >= length and (length < 96 or apart // 16 % 2 == 1)
    split = int(tiling(problem, PROFILES[profile])[1]["split_blocks"])
    needed = workspace_bytes(problem, PROFILES[profile])
    assert needed == 4 * (3 * (-(-runs * apart // 8) * 8) + 8 * split + n)
    assert needed == workspace_bytes(Problem.parse(f"{problem},algorithm=4m,beta=2j,scalar=device"), PROFILES[profile])


@profiles
def test_the_workspace_is_about_half_of_what_six_planes_need(profile: str) -> None:
    n = 4096
    usual = 6 * n * n * 4
    for form in ("LN", "LT", "UN", "UT"):
        for order in ("row", "col"):
            needed = workspace_bytes(Problem.parse(f"csyrk:{form},n={n},k={n},order={order}"), PROFILES[profile])
            assert 0.5 * usual <= needed <= 0.505 * usual


@profiles
def test_small_problems_and_empty_sums_need_no_workspace(profile: str) -> None:
    small = PROFILES[profile].syrk_small
    for n, k, needs in ((small, small, False), (small + 1, small, True), (small, small + 1, True), (4096, 0, False)):
        problem = Problem.parse(f"csyrk:n={n},k={k}")
        assert (workspace_bytes(problem, PROFILES[profile]) > 0) == needs
        assert (choose(problem, PROFILES[profile]).variant.name == "small") == (max(n, k) <= small)
