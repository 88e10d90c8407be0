"""Cdotc: sum of conj(x_i) * y_i for COMPLEX64."""

from __future__ import annotations

from jitblas.hardware import VECTOR_REGISTER_BYTES, Profile
from jitblas.operators.base import Choice, TilingField, Variant, ceil_div, round_up
from jitblas.problem import Parameter, Problem

name = "cdotc"
minimum_cann = "9.1.0"
limits: tuple[str, ...] = ("dot_one_core",)

ITEM_BYTES = 8

parameters = (
    Parameter("n", "int", minimum=0),
    Parameter("incx", "int", 1),
    Parameter("incy", "int", 1),
)

_N = TilingField("n", "uint64_t", size=True)
_SHARE = TilingField("per_block", "uint64_t")

FAST = Variant(name, "fast", "cdotc/contiguous.asc", (_N, _SHARE), pointers=4)
COMPAT = Variant(name, "compat", "cdotc/contiguous.asc", (_N, _SHARE), pointers=4)
STRIDED = Variant(
    name,
    "strided",
    "cdotc/strided.asc",
    (
        _N,
        TilingField("incx", "int64_t", size=True),
        TilingField("incy", "int64_t", size=True),
        _SHARE,
        TilingField("threads", "uint32_t"),
    ),
    pointers=4,
)

BUFFERS = 4
"""Tiles in UB at a time: two of x, two of y."""

LANES = VECTOR_REGISTER_BYTES // 4

SUM_BYTES = 5 * VECTOR_REGISTER_BYTES
"""UB beside the tiles: four registers of sums and one for what is written."""


def choose(problem: Problem, profile: Profile) -> Choice:
    """One core where starting more, and adding up what they leave, would take longer."""
    if oriented(problem.value("incx"), problem.value("incy")) != (1, 1):
        return Choice(STRIDED, (("kMaxThreads", profile.simt_max_threads),))
    one_core = problem.value("n") <= profile.dot_one_core
    constants = (
        ("kOneCore", one_core),
        ("kTileElements", tile_elements(profile)),
        ("kTileUnit", profile.tile_unit),
    )
    return Choice(COMPAT if one_core else FAST, constants)


def oriented(incx: int, incy: int) -> tuple[int, int]:
    """Increments of the walk that kernels make: two vectors that are both reversed are contiguous.

    The lowest addresses of x and y, where BLAS pointers point, stay the same.
    """
    return (1, 1) if (incx, incy) == (-1, -1) else (incx, incy)


def tile_elements(profile: Profile) -> int:
    """Elements of one buffer: the profile's preferred bytes or all that fits, in whole registers."""
    fits = (profile.ub_bytes - SUM_BYTES) // BUFFERS
    wanted = min(profile.tile_bytes or fits, fits)
    return wanted // ITEM_BYTES // LANES * LANES


def tiling(problem: Problem, profile: Profile) -> tuple[int, dict[str, int | float]]:
    """Blocks own equal runs, so that what is added to what depends on n and the profile alone."""
    n = problem.value("n")
    incx, incy = oriented(problem.value("incx"), problem.value("incy"))
    blocks = max(1, min(ceil_div(n, profile.min_elements_per_core), profile.vector_cores))
    if (incx, incy) == (1, 1):
        if n <= profile.dot_one_core:
            return 1, {"n": n, "per_block": max(n, 1)}
        per_block = round_up(ceil_div(n, blocks), LANES)
        return ceil_div(n, per_block), {"n": n, "per_block": per_block}
    per_block = round_up(max(1, ceil_div(n, blocks)), profile.simt_warp)
    threads = min(per_block, profile.simt_max_threads)
    return max(1, ceil_div(n, per_block)), {
        "n": n, "incx": incx, "incy": incy, "per_block": per_block, "threads": threads,
    }  # fmt: skip


def workspace_bytes(problem: Problem, profile: Profile) -> int:
    """A complex number per partial sum, in whole units of 32 bytes: none where one core writes the result itself."""
    if choose(problem, profile).variant is COMPAT:
        return 0
    blocks, numbers = tiling(problem, profile)
    partial_sums = blocks * int(numbers.get("threads", 1))
    return 2 * round_up(partial_sums, 8) * 4


def bytes_moved(problem: Problem) -> int:
    """x and y are read."""
    return int(2 * problem.value("n") * ITEM_BYTES)


cost = bytes_moved
