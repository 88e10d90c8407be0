"""Csyrk: C := alpha * op(A) * op(A)^T + beta * C for COMPLEX64 in one triangle of a symmetric C.

Kernels know row-major matrices only. C is symmetric, so a column-major problem is the row-major one of the other
triangle, and its A is stored the other way round.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from jitblas.hardware import Profile
from jitblas.operators.base import (
    DENSE,
    FLOPS_PER_BYTE,
    FRACTAL_COLUMNS,
    Choice,
    TilingField,
    Variant,
    ceil_div,
    even_part,
    round_up,
)
from jitblas.problem import Parameter, Problem

name = "csyrk"
minimum_cann = "9.1.0"
limits: tuple[str, ...] = ("syrk_small",)

ITEM_BYTES = 8

ALGORITHMS = ("auto", "4m", "3m")

parameters = (
    Parameter("form", ("LN", "LT", "UN", "UT"), "LN", bare=True),
    Parameter("n", "int", minimum=0),
    Parameter("k", "int", minimum=0),
    Parameter("order", ("row", "col"), "row"),
    Parameter("lda", "int", DENSE),
    Parameter("ldc", "int", DENSE),
    Parameter("alpha", "complex", 1.0),
    Parameter("beta", "complex", 0.0),
    Parameter("algorithm", ALGORITHMS, "auto"),
    Parameter("scalar", ("host", "device"), "host"),
)

_SIZES = tuple(TilingField(field, "uint64_t", size=True) for field in ("n", "k", "lda", "ldc"))
_SCALARS = tuple(TilingField(field, "float") for field in ("alpha_re", "alpha_im", "beta_re", "beta_im"))
_UPPER = TilingField("upper", "uint32_t")

SMALL = Variant(name, "small", "csyrk/small.asc", (*_SIZES, *_SCALARS, _UPPER), pointers=5)
LARGE = Variant(
    name,
    "large",
    "csyrk/large.asc",
    (
        *_SIZES,
        *_SCALARS,
        _UPPER,
        TilingField("rows_per_block", "uint64_t"),
        TilingField("row_blocks", "uint32_t"),
        TilingField("plane_ld", "uint64_t", size=True),
        TilingField("split_blocks", "uint32_t"),
        TilingField("split_per_block", "uint64_t"),
        TilingField("per_block", "uint64_t"),
        TilingField("tile", "uint32_t"),
        TilingField("segment_k", "uint32_t"),
        TilingField("chunk_k", "uint32_t"),
        TilingField("step_k", "uint32_t"),
        TilingField("limit", "float"),
    ),
    pointers=5,
    kind="mixed",
)

LEAST_K_OF_THREE = 2048
"""With fewer products, equal numbers, whose roundings all err to one side, can take three products over the bound."""

PLANES = 3
"""Real matrices of A's size in the workspace."""

ROWS_AT_LEAST = 64
"""Of op(A), for a block of SIMT threads to be worth its start."""

FLAG_FLOATS = 8
"""Floats from one core's flag to the next."""

LARGEST_FLOAT = (2 - 2.0**-23) * 2.0**127


class RowMajor(NamedTuple):
    """The row-major problem.

    `along_columns`: op(A) is stored transposed, so that its columns are contiguous. `upper`: the triangle of the
    row-major C.
    """

    n: int
    k: int
    lda: int
    ldc: int
    along_columns: bool
    upper: bool


def row_major(problem: Problem) -> RowMajor:
    """The problem that kernels see."""
    value: dict[str, Any] = dict(problem.values)
    n, k, form, by_columns = value["n"], value["k"], value["form"], value["order"] == "col"
    along_columns = (form[1] == "T") != by_columns
    lda, ldc = value["lda"], value["ldc"]
    return RowMajor(
        n,
        k,
        max(1, n if along_columns else k) if lda == DENSE else lda,
        max(1, n) if ldc == DENSE else ldc,
        along_columns,
        (form[0] == "U") != by_columns,
    )


def fault(problem: Problem) -> str | None:
    """Why no matrices can lie as the problem says, or None: runs overlap."""
    seen = row_major(problem)
    for letter, ld, least in (("a", seen.lda, seen.n if seen.along_columns else seen.k), ("c", seen.ldc, seen.n)):
        if ld < max(least, 1):
            return f"ld{letter}={ld}: at least {max(least, 1)} is needed"
    return None


def choose(problem: Problem, profile: Profile) -> Choice:
    seen = row_major(problem)
    shared = (
        ("kAlongColumns", seen.along_columns),
        ("kScalarsOnDevice", problem.value("scalar") == "device"),
        ("kMaxThreads", profile.simt_max_threads),
    )
    if max(seen.n, seen.k) <= profile.syrk_small:
        return Choice(SMALL, shared)
    algorithm = problem.value("algorithm")
    three_products = algorithm == "3m" or (algorithm == "auto" and seen.k >= LEAST_K_OF_THREE)
    return Choice(
        LARGE,
        (
            *shared,
            ("kThreeProducts", three_products),
            ("kTile", profile.syrk_tile),
            ("kBlock", block_size(seen.n, profile)),
            ("kChunkK", profile.chunk_k),
            ("kStepK", profile.step_k),
            ("kResults", min(4, profile.l0c_bytes // (4 * profile.syrk_tile**2))),
        ),
    )


def tiling(problem: Problem, profile: Profile) -> tuple[int, dict[str, int | float]]:
    """Blocks own equal runs: of A's elements, of rows, of the triangle's tiles."""
    seen = row_major(problem)
    n, k = seen.n, seen.k
    alpha, beta = complex(problem.value("alpha")), complex(problem.value("beta"))
    numbers: dict[str, int | float] = {
        "n": n, "k": k, "lda": seen.lda, "ldc": seen.ldc, "alpha_re": alpha.real, "alpha_im": alpha.imag,
        "beta_re": beta.real, "beta_im": beta.imag, "upper": int(seen.upper),
    }  # fmt: skip
    if choose(problem, profile).variant is SMALL:
        return min(n, 1), numbers
    rows_per_block = max(ROWS_AT_LEAST, ceil_div(n, profile.vector_cores))
    run, plane_ld = plane_run(seen)
    split_blocks = max(1, min(ceil_div(n * k, profile.min_elements_per_core), profile.vector_cores))
    tile = tile_size(n, profile)
    lines = ceil_div(n, tile)
    tiles = lines * (lines + 1) // 2
    segment_k = even_part(k, profile.segment_k, FRACTAL_COLUMNS)
    chunk_k = even_part(segment_k, profile.chunk_k, FRACTAL_COLUMNS)
    numbers |= {
        "rows_per_block": rows_per_block,
        "row_blocks": ceil_div(n, rows_per_block),
        "plane_ld": plane_ld,
        "split_blocks": split_blocks,
        "split_per_block": split_share(n * k, run, split_blocks),
        "per_block": max(1, ceil_div(tiles, profile.cube_cores)),
        "tile": tile,
        "segment_k": segment_k,
        "chunk_k": chunk_k,
        "step_k": even_part(chunk_k, profile.step_k, FRACTAL_COLUMNS),
        "limit": (LARGEST_FLOAT / (8 * max(k, 1))) ** 0.5,
    }
    return ceil_div(tiles, int(numbers["per_block"])), numbers


def plane_run(seen: RowMajor) -> tuple[int, int]:
    """(contiguous elements, elements from run to run) of a plane: long runs lie an odd number of cache lines apart.

    Runs at a distance of a power of two would crowd a few sets of a CPU's caches.
    """
    length = seen.n if seen.along_columns else seen.k
    return length, length if length < LONG_RUN else (ceil_div(length, LINE_FLOATS) | 1) * LINE_FLOATS


LINE_FLOATS = 16
LONG_RUN = 96


def split_share(elements: int, run: int, blocks: int) -> int:
    """A block's elements of A: whole runs where tiles may be, and else whole units of 32 bytes of a plane."""
    share = max(1, ceil_div(elements, blocks))
    return round_up(share, run if share >= run > 0 and run % FLAG_FLOATS == 0 else FLAG_FLOATS)


def block_size(n: int, profile: Profile) -> int:
    """Rows and columns of a block."""
    return next(block for least, block in profile.syrk_blocks if n >= least)


def tile_size(n: int, profile: Profile) -> int:
    """Rows and columns of a tile, such that the core with most work has least: C is cut evenly, and so is the triangle.

    How C is cut changes no result.
    """
    best, best_work = 0, 0.0
    for most in range(profile.syrk_tile, min(profile.least_tile, profile.syrk_tile) - 1, -profile.syrk_unit):
        tile = even_part(n, most, profile.syrk_unit)
        lines = ceil_div(n, tile)
        tiles = lines * (lines + 1) // 2
        blocks = ceil_div(tile, block_size(n, profile))
        beyond = lines * (blocks - 1) / (2 * blocks)  # tiles' worth of blocks that the diagonal leaves out
        work = ceil_div(tiles, profile.cores_at_once) * (1 - beyond / tiles) * tile * (tile + TILE_OVERHEAD)
        if best == 0 or work < best_work:
            best, best_work = tile, work
    return best


TILE_OVERHEAD = 64
"""Loading a tile's operands takes as long as computing this many of its columns."""


def workspace_bytes(problem: Problem, profile: Profile) -> int:
    """Of the large path: three planes of A's size, a flag for each core that makes them, one for each row."""
    if choose(problem, profile).variant is SMALL or problem.value("k") == 0:
        return 0
    _, numbers = tiling(problem, profile)
    seen = row_major(problem)
    runs = seen.k if seen.along_columns else seen.n
    planes = PLANES * round_up(runs * plane_run(seen)[1], FLAG_FLOATS)
    return 4 * (planes + int(numbers["split_blocks"]) * FLAG_FLOATS + int(problem.value("n")))


def bytes_moved(problem: Problem) -> int:
    """A is read, the triangle of C is written, and read unless beta is 0."""
    n = problem.value("n")
    triangle = n * (n + 1) // 2
    reads_c = problem.value("scalar") == "device" or problem.value("beta") != 0
    return int(ITEM_BYTES * (n * problem.value("k") + triangle * (2 if reads_c else 1)))


def flops(problem: Problem) -> int:
    """Floating-point operations of the complex formula: 4 n (n + 1) k."""
    n = problem.value("n")
    return int(4 * n * (n + 1) * problem.value("k"))


def cost(problem: Problem) -> int:
    return max(bytes_moved(problem), flops(problem) // FLOPS_PER_BYTE)
