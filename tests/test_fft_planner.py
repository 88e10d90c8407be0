"""The planner of transforms: every length is done by few passes whose tasks fit local memory."""

from __future__ import annotations

import math

import numpy as np
import pytest

from jitblas.codelets.roots import unit_roots
from jitblas.fft.tables import REALS, stage_table, twiddle_table
from jitblas.hardware import ASCEND950PR, HOST, PROFILES
from jitblas.operators.fft import ITEM_BYTES, MOST_POINTS
from jitblas.operators.fft_planner import COLUMNS, ROWS, WHOLE, Geometry, Pass, plan_passes

CASES = [(HOST, "c64"), (HOST, "c128"), (ASCEND950PR, "c64")]
cases = pytest.mark.parametrize(("profile", "dtype"), CASES)

TURN = 2 * np.arctan2(np.longdouble(0), np.longdouble(-1))
"""2 pi, beyond float64."""

LENGTHS = [2**exponent for exponent in range(6, MOST_POINTS.bit_length())]


def planned(points: int, profile: str, dtype: str) -> tuple[tuple[Pass, ...], Geometry]:
    numbers, item = PROFILES[profile], ITEM_BYTES[dtype]
    return plan_passes(points, item, numbers), Geometry(item, numbers)


@cases
@pytest.mark.parametrize("points", LENGTHS)
def test_passes_are_a_factorisation(points: int, profile: str, dtype: str) -> None:
    passes, _ = planned(points, profile, dtype)
    assert math.prod(one.points for one in passes) == points
    before = 1
    for number, one in enumerate(passes):
        assert one.before == before
        assert one.before * one.points * one.after == points
        assert math.prod(stage.radix for stage in one.stages) == one.points
        right = one.points
        for stage in one.stages:
            right //= stage.radix
            assert stage.right == right
            assert stage.radix <= PROFILES[profile].fft_radix
        last = number == len(passes) - 1
        assert one.kind == (WHOLE if len(passes) == 1 else ROWS if last else COLUMNS)
        before *= one.points


@cases
@pytest.mark.parametrize("points", LENGTHS)
def test_tasks_fit_local_memory_and_move_long_runs(points: int, profile: str, dtype: str) -> None:
    passes, geometry = planned(points, profile, dtype)
    for one in passes:
        assert geometry.fits(one)
        if one.kind != WHOLE:
            assert one.columns * geometry.item >= PROFILES[profile].fft_run_bytes >= 128
            assert one.columns % geometry.lanes == 0
        if one.kind == COLUMNS:
            assert one.after % one.columns == 0
        if one.kind == ROWS:
            assert one.before % one.columns == one.points % one.columns == 0


def test_how_far_one_and_two_passes_reach() -> None:
    def count(exponent: int, profile: str, dtype: str) -> int:
        return len(planned(2**exponent, profile, dtype)[0])

    assert [count(exponent, HOST, "c64") for exponent in (15, 16, 24, 25)] == [1, 2, 2, 3]
    assert [count(exponent, HOST, "c128") for exponent in (14, 15, 24, 25)] == [1, 2, 2, 3]
    assert [count(exponent, ASCEND950PR, "c64") for exponent in (12, 13, 14, 15, 21, 26)] == [1, 2, 2, 3, 3, 4]


def test_two_buffers_where_they_fit() -> None:
    def sizes(exponent: int) -> list[tuple[int, int]]:
        return [(one.points, one.buffers) for one in planned(2**exponent, ASCEND950PR, "c64")[0]]

    assert sizes(12) == [(4096, 2)]
    assert sizes(18) == [(64, 2)] * 3
    assert sizes(20) == [(128, 1), (128, 1), (64, 2)]


def test_a_length_that_nothing_fits_is_refused() -> None:
    tight = PROFILES[ASCEND950PR]._replace(ub_bytes=16 * 1024)
    with pytest.raises(ValueError, match="no passes fit"):
        plan_passes(2**20, 8, tight)


@cases
@pytest.mark.parametrize("points", [64, 1024, 2**14, 2**16, 2**18, 2**25])
def test_tables_hold_what_stages_expect(points: int, profile: str, dtype: str) -> None:
    """Each twiddle of each stage, and the two factors of those between passes, by their definition."""
    passes, _ = planned(points, profile, dtype)
    table = twiddle_table(points, passes, REALS[dtype])
    rounding = 2.0**-24 if dtype == "c64" else 2.0**-52
    start = 0

    def root(numerator: int, denominator: int) -> complex:
        angle = TURN * (numerator % denominator) / denominator
        return complex(float(np.cos(angle)), -float(np.sin(angle)))

    def close(re: float, im: float, numerator: int, denominator: int) -> bool:
        return abs(complex(re, im) - root(numerator, denominator)) <= 2 * rounding

    rng = np.random.default_rng(1)
    for one in passes:
        part = table[start : start + one.table_reals]
        for stage in one.stages:
            if stage.right == 1:
                continue
            for _ in range(20):
                p, k = int(rng.integers(stage.right)), int(rng.integers(1, stage.radix))
                at = stage.table + (p // stage.lanes * (stage.radix - 1) + k - 1) * 2 * stage.lanes + p % stage.lanes
                assert close(part[at], part[at + stage.lanes], p * k, stage.radix * stage.right)
        for _ in range(20):
            j, q = int(rng.integers(one.points)), int(rng.integers(one.before))
            if one.kind == ROWS:
                group, row = divmod(q, one.height)
                turn = part[one.table + group * 2 * one.points + j], part[one.table + (group * 2 + 1) * one.points + j]
                at = one.row_table + row * 2 * one.points + j
                both = complex(*turn) * complex(part[at], part[at + one.points])
                assert abs(both - root(q * j, points)) <= 4 * rounding
            elif one.turn:
                at = one.table + (q * one.points + j) * 2
                assert close(part[at], part[at + 1], q * j, one.before * one.points)
        start += one.table_reals
    assert start == table.size


def test_unit_roots_err_by_hardly_more_than_their_rounding() -> None:
    numerators = np.arange(-5, 3 * 2**12)
    cosines, sines = unit_roots(numerators, 2**12)
    angle = TURN / 2**12 * (numerators % 2**12)
    assert np.abs(cosines - np.cos(angle)).max() <= 1.1 * 2.0**-53
    assert np.abs(sines - np.sin(angle)).max() <= 1.1 * 2.0**-53
    assert np.all((cosines[5:] == 0) == (numerators[5:] % 2**11 == 2**10))


def test_the_table_of_a_stage_leaves_out_what_is_one() -> None:
    passes, _ = planned(64, ASCEND950PR, "c64")
    first = passes[0].stages[0]
    assert stage_table(first).size == 2 * (first.radix - 1) * 64  # a register's lanes, though there are 8 butterflies
