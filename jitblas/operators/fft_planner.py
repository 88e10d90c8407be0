"""The planner of Fourier transforms: passes through memory, tasks of a pass, stages of a task. Pure functions.

A transform of N = N1 N2 ... points is a pass for each factor (Stockham's self-sorting form): pass r sees its input as
(before, Nr, after), transforms the middle axis and stores (Nr, before, after). A task is `columns` of these transforms
side by side in local memory, so that memory is read and written in runs; all but the last pass find them contiguous,
and the last one, with nothing after it, transposes as many rows. In local memory Nr is a product of radices again, a
stage for each, done by a codelet.
"""

from __future__ import annotations

from typing import NamedTuple

from jitblas.hardware import CACHE_LINE, Profile
from jitblas.operators.base import ceil_div, round_up

WHOLE, COLUMNS, ROWS = range(3)
KINDS = ("whole", "columns", "rows")

BLOCK_BYTES = 32
"""What registers are stored in parts of."""


class Stage(NamedTuple):
    """One factor of a pass.

    Attributes
    ----------
    radix : points of its codelet
    right : product of the factors still to come: as many butterflies have twiddles of their own
    table : reals from the pass's tables to its twiddles
    lanes : butterflies whose twiddles lie side by side, because a register holds as many
    """

    radix: int
    right: int
    table: int
    lanes: int


class Pass(NamedTuple):
    """One launch.

    Attributes
    ----------
    kind : WHOLE, COLUMNS or ROWS
    height : ROWS: rows that are transposed at a time
    points, columns : of a task: transforms of so many points, that many of them
    before, after : the other axes
    stages : in order
    buffers : of what comes and goes; with two, the next task is fetched while this one is computed
    row_table : ROWS: reals from the pass's tables to those of the rows of a task
    table : reals of the tables that every task needs
    turn : reals of a table that one task of ROWS, or all tasks of one place in `before`, need; these follow `table`
    """

    kind: int
    height: int
    points: int
    columns: int
    before: int
    after: int
    stages: tuple[Stage, ...]
    buffers: int
    row_table: int
    table: int
    turn: int

    @property
    def turns(self) -> int:
        """How many tables of `turn` reals there are."""
        if not self.turn:
            return 0
        return self.before // self.columns if self.kind == ROWS else self.before

    @property
    def table_reals(self) -> int:
        """Of all its tables, in units of 32 bytes so that the next pass's begin aligned."""
        return round_up(self.table + self.turn * self.turns, BLOCK_BYTES // 4)


class Geometry(NamedTuple):
    """What passes are planned for: bytes of a complex number, and the profile's numbers."""

    item: int
    profile: Profile

    @property
    def real(self) -> int:
        return self.item // 2

    @property
    def lanes(self) -> int:
        """Reals of a register."""
        return self.profile.register_bytes // self.real

    @property
    def columns(self) -> int:
        """Of a task, for runs that are long enough and registers that are full."""
        return max(self.lanes, self.profile.fft_run_bytes // self.item)

    @property
    def height(self) -> int:
        """Rows that are transposed at a time: as many as a register has lanes or, of many, as it is stored in parts."""
        return self.lanes if self.lanes <= self.profile.fft_radix else BLOCK_BYTES // self.real

    @property
    def padding(self) -> int:
        """Reals between the planes of a task: a cache line, so that they do not lie a power of two apart."""
        return CACHE_LINE // self.real

    def fits(self, made: Pass) -> bool:
        """Whether a pass's tasks fill registers, and find room in local memory with their tables."""
        numbers = made.points * made.columns
        if made.kind == COLUMNS and made.after < made.columns:
            return False
        if made.kind == ROWS and min(made.before, made.points) < made.columns:
            return False
        slack = 2 * self.profile.register_bytes + BLOCK_BYTES
        tile = numbers * self.item + slack
        planes = 2 * (numbers + self.padding) * self.real
        tables = made.table * self.real + made.buffers * made.turn * self.real + 3 * slack
        return made.buffers * (tile + planes) + planes + tables <= self.profile.ub_bytes


def plan_passes(points: int, item: int, profile: Profile) -> tuple[Pass, ...]:
    """The passes of a transform, as few as local memory allows.

    Parameters
    ----------
    points : a power of two above `profile.fft_tiny`
    item : bytes of a complex number, 8 or 16
    """
    geometry = Geometry(item, profile)
    if not profile.fft_whole_bytes or points * item <= profile.fft_whole_bytes:
        whole = _fitting(geometry, WHOLE, points, 1, 1)
        if whole is not None:
            return (whole,)
    exponent = points.bit_length() - 1
    least = geometry.columns.bit_length() - 1
    for count in range(2, exponent):
        last = max(exponent // count, least)
        passes = _passes(geometry, [1 << one for one in (*_evenly(exponent - last, count - 1), last)])
        if passes is not None:
            return passes
    raise ValueError(f"{points} points of {item} bytes: no passes fit {profile.name}")


def _evenly(total: int, parts: int) -> list[int]:
    """Parts that differ by one at most, larger ones first."""
    return [total // parts + (1 if part < total % parts else 0) for part in range(parts)]


def _passes(geometry: Geometry, sizes: list[int]) -> tuple[Pass, ...] | None:
    made = []
    before, points = 1, 1
    for size in sizes:
        points *= size
    after = points
    for number, size in enumerate(sizes):
        after //= size
        tile = geometry.profile.fft_tile_bytes
        if tile and size * geometry.columns * geometry.item > tile:
            return None
        one = _fitting(geometry, ROWS if number == len(sizes) - 1 else COLUMNS, size, before, after)
        if one is None:
            return None
        made.append(one)
        before *= size
    return tuple(made)


def _fitting(geometry: Geometry, kind: int, points: int, before: int, after: int) -> Pass | None:
    """A pass with two buffers where they fit, else with one; None where that does not fit either."""
    for buffers in (2, 1):
        made = _pass(geometry, kind, points, before, after, buffers)
        if geometry.fits(made):
            return made
    return None


def _pass(geometry: Geometry, kind: int, points: int, before: int, after: int, buffers: int) -> Pass:
    columns = 1 if kind == WHOLE else geometry.columns
    stages, table = [], 0
    right, done = points, columns
    for number, radix in enumerate(radices(points, kind, geometry)):
        right //= radix
        if kind == WHOLE and number == 0:
            lanes = geometry.lanes
        else:
            lanes = geometry.lanes * geometry.real // BLOCK_BYTES if right > 1 and done < geometry.lanes else 1
        stages.append(Stage(radix, right, table, lanes))
        if right > 1:
            table += 2 * (radix - 1) * round_up(right, lanes)
        done *= radix
    table = round_up(table, BLOCK_BYTES // geometry.real)
    row_table = table
    if kind == ROWS:
        table += 2 * points * geometry.height
    turn = 2 * points * (columns // geometry.height if kind == ROWS else 1) if before > 1 else 0
    return Pass(kind, geometry.height, points, columns, before, after, tuple(stages), buffers, row_table, table, turn)


def radices(points: int, kind: int, geometry: Geometry) -> list[int]:
    """Factors of a pass, the number of points of a codelet each: as few as there can be.

    A contiguous transform begins with as many butterflies side by side as a register has lanes. Its first radix is at
    least that number or, where it is larger than codelets are, the number that a register is stored in parts of; the
    second one then makes up for it. Columns have two stages at least: the first one reads what came, the last one
    writes what goes.
    """
    exponent = points.bit_length() - 1
    most = geometry.profile.fft_radix.bit_length() - 1

    def others(left: int, stages: int = 1) -> list[int]:
        return [1 << one for one in _evenly(left, max(stages, ceil_div(left, most)))]

    if kind != WHOLE:
        return others(exponent, 2 if kind == COLUMNS else 1)
    least = geometry.height.bit_length() - 1
    if geometry.height == geometry.lanes:
        return min(([1 << first, *others(exponent - first)] for first in range(least, most + 1)), key=len)
    second = geometry.lanes // geometry.height
    left = exponent - least
    if left <= most:
        return [1 << least, *others(left)]
    return [1 << least, second, *others(left - (second.bit_length() - 1))]
