"""Tables of twiddles: what the kernels of transforms read, from float64 by the nearest octant."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from jitblas.arrays import array
from jitblas.codelets.roots import Reals, unit_roots
from jitblas.handle import Handle
from jitblas.hardware import Profile
from jitblas.operators.fft import passes
from jitblas.operators.fft_planner import COLUMNS, ROWS, Pass, Stage

REALS: dict[str, type[np.floating[Any]]] = {"c64": np.float32, "c128": np.float64}

MOST_TABLES = 64
"""Tables that are kept ready; the least recently used one goes first."""


def table_on(handle: Handle, points: int, dtype: str) -> tuple[int | None, Any]:
    """(address, owner) of a transform's tables in the handle's device memory; None where it needs none."""
    return _table_on(handle.target, handle.runtime.profile(), points, dtype)


@functools.lru_cache(MOST_TABLES)
def _table_on(target: str, profile: Profile, points: int, dtype: str) -> tuple[int | None, Any]:
    planned = passes(points, dtype, profile)
    if not planned:
        return None, None
    table = array(twiddle_table(points, planned, REALS[dtype]), target=target)
    return table.address, table


def twiddle_table(points: int, passes: tuple[Pass, ...], real: type[np.floating[Any]]) -> Reals:
    """All tables of a transform, one pass's after the other, as its kernel expects them."""
    table = np.zeros(sum(one.table_reals for one in passes), real)
    start = 0
    for one in passes:
        _fill(table[start : start + one.table_reals], one, points)
        start += one.table_reals
    return table


def _fill(table: Reals, one: Pass, points: int) -> None:
    for stage in one.stages:
        if stage.right > 1:
            values = stage_table(stage)
            table[stage.table : stage.table + values.size] = values
    turns = table[one.table : one.table + one.turns * one.turn]
    if one.kind == ROWS:
        j = np.arange(one.points)
        rows = unit_roots(-np.arange(one.height)[:, None] * j, points)  # (row, part, j)
        table[one.row_table : one.table] = np.stack(rows, axis=1).ravel()
        starts = np.arange(0, one.before, one.height)
        turns[:] = np.stack(unit_roots(-starts[:, None] * j, points), axis=1).ravel()
    elif one.kind == COLUMNS and one.turn:
        order = np.arange(one.before)[:, None] * np.arange(one.points)
        turns[:] = np.stack(unit_roots(-order, one.before * one.points), axis=-1).ravel()


def stage_table(stage: Stage) -> Reals:
    """Output k of butterfly p times w^(p k), k from 1 on: (p / lanes, k, real or imaginary, p % lanes)."""
    butterflies = -(-stage.right // stage.lanes) * stage.lanes
    p = np.arange(butterflies).reshape(-1, 1, stage.lanes)
    k = np.arange(1, stage.radix).reshape(1, -1, 1)
    return np.stack(unit_roots(-p * k, stage.radix * stage.right), axis=2).ravel()
