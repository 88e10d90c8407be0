"""SgemmStridedBatched: C_i := alpha * op(A_i) * op(B_i) + beta * C_i, FP32.

Kernels know row-major matrices only. A column-major problem is the row-major one of its transpose,
C^T = op(B)^T op(A)^T: A and B change places, and so do m and n.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from jitblas.hardware import Profile
from jitblas.operators.base import (
    DENSE,
    FLOPS_PER_BYTE,
    FRACTAL_COLUMNS,
    FRACTAL_ROWS,
    Choice,
    TilingField,
    Variant,
    ceil_div,
    even_part,
)
from jitblas.problem import Parameter, Problem

name = "sgemm_strided_batched"
minimum_cann = "9.1.0"
limits: tuple[str, ...] = ("narrow_columns", "narrow_gathered_columns", "narrow_depth", "fix_pipe_unit")

LARGEST_STRIDE = 2**60
"""Elements: with the largest batch, offsets in bytes fit 64 bits as far as they are ever used."""

parameters = (
    Parameter("trans", ("NN", "NT", "TN", "TT"), "NN", bare=True),
    Parameter("m", "int", minimum=0),
    Parameter("n", "int", minimum=0),
    Parameter("k", "int", minimum=0),
    Parameter("batch", "int", 1, minimum=0),
    Parameter("order", ("row", "col"), "row"),
    Parameter("lda", "int", DENSE),
    Parameter("ldb", "int", DENSE),
    Parameter("ldc", "int", DENSE),
    Parameter("stridea", "int", DENSE, maximum=LARGEST_STRIDE),
    Parameter("strideb", "int", DENSE, maximum=LARGEST_STRIDE),
    Parameter("stridec", "int", DENSE, maximum=LARGEST_STRIDE),
    Parameter("alpha", "float", 1.0),
    Parameter("beta", "float", 0.0),
    Parameter("scalar", ("host", "device"), "host"),
)

_SIZES = tuple(
    TilingField(field, "uint64_t", size=True)
    for field in ("m", "n", "k", "batch", "lda", "ldb", "ldc", "stride_a", "stride_b", "stride_c")
)
_SHARE = TilingField("per_block", "uint64_t")
_SCALARS = (TilingField("alpha", "float"), TilingField("beta", "float"))
_TILES = tuple(TilingField(field, "uint32_t") for field in ("tile_m", "tile_n", "chunk_k", "step_k"))
_FIELDS = (*_SIZES, _SHARE, *_SCALARS, *_TILES)

DIRECT = Variant(name, "direct", f"{name}/direct.asc", _FIELDS, pointers=5, kind="cube")
NARROW = Variant(
    name,
    "narrow",
    f"{name}/narrow.asc",
    (*_SIZES, TilingField("strip", "uint64_t", size=True), _SHARE, *_SCALARS),
    pointers=5,
)
GENERAL = Variant(name, "general", f"{name}/general.asc", _FIELDS, pointers=5, kind="mixed")


class Operand(NamedTuple):
    """A matrix of the row-major problem as it is stored: `rows` runs of `columns` elements, `ld` apart.

    `along_columns`: it is stored transposed, so that the kernel reads it along its columns.
    """

    rows: int
    columns: int
    ld: int
    stride: int
    along_columns: bool


class RowMajor(NamedTuple):
    """The row-major problem: C (m x n) from op(A) (m x k) and op(B) (k x n).

    `swapped`: its A is the problem's B.
    """

    m: int
    n: int
    k: int
    batch: int
    a: Operand
    b: Operand
    c: Operand
    swapped: bool


def row_major(problem: Problem) -> RowMajor:
    """The problem that kernels see."""
    value: dict[str, Any] = dict(problem.values)
    m, n, k, batch = (value[size] for size in ("m", "n", "k", "batch"))
    trans = value["trans"]
    swapped = value["order"] == "col"

    def operand(letter: str, rows: int, columns: int, transposed: bool) -> Operand:
        """Of a matrix that is rows x columns when read along its rows."""
        if transposed:
            rows, columns = columns, rows
        ld, stride = value[f"ld{letter}"], value[f"stride{letter}"]
        ld = max(columns, 1) if ld == DENSE else ld
        return Operand(rows, columns, ld, rows * ld if stride == DENSE else stride, transposed)

    if swapped:
        a = operand("b", n, k, trans[1] == "T")
        b = operand("a", k, m, trans[0] == "T")
        return RowMajor(n, m, k, batch, a, b, operand("c", n, m, False), True)
    a = operand("a", m, k, trans[0] == "T")
    b = operand("b", k, n, trans[1] == "T")
    return RowMajor(m, n, k, batch, a, b, operand("c", m, n, False), False)


def choose(problem: Problem, profile: Profile) -> Choice:
    seen = row_major(problem)
    alpha, beta = problem.value("alpha"), problem.value("beta")
    on_device = problem.value("scalar") == "device"
    beta_is_zero = not on_device and beta == 0.0
    plain = not on_device and alpha == 1.0 and beta_is_zero and seen.k > 0
    columns = profile.narrow_gathered_columns if seen.b.along_columns else profile.narrow_columns
    if seen.n <= columns and seen.k <= profile.narrow_depth:
        return Choice(
            NARROW,
            (
                ("kAlongColumnsA", seen.a.along_columns),
                ("kAlongColumnsB", seen.b.along_columns),
                ("kColumns", max(seen.n, 1)),
                ("kDepth", narrow_depth_class(seen.k, profile)),
                ("kThreadFloats", profile.thread_floats),
                ("kMaxThreads", profile.simt_max_threads),
                ("kPlain", plain),
                ("kScalarsOnDevice", on_device),
                ("kBetaIsZero", beta_is_zero),
            ),
        )
    constants = (
        ("kAlongColumnsA", seen.a.along_columns),
        ("kAlongColumnsB", seen.b.along_columns),
        ("kTileM", profile.tile_m),
        ("kTileN", profile.tile_n),
        ("kChunkK", profile.chunk_k),
        ("kStepK", profile.step_k),
    )
    if plain and all(distance % profile.fix_pipe_unit == 0 for distance in row_distances(seen)):
        return Choice(DIRECT, constants)
    return Choice(GENERAL, (*constants, ("kScalarsOnDevice", on_device), ("kBetaIsZero", beta_is_zero)))


def narrow_depth_class(k: int, profile: Profile) -> int:
    """The most k of a class of narrow products: those that are one chain of additions, or any."""
    return min(NARROW_CHAIN if k <= NARROW_CHAIN else profile.narrow_depth, profile.narrow_depth)


NARROW_CHAIN = 32


def fault(problem: Problem) -> str | None:
    """Why no matrices can lie as the problem says, or None: runs overlap, or matrices of C do."""
    seen = row_major(problem)
    names = ("b", "a", "c") if seen.swapped else ("a", "b", "c")
    for letter, one in zip(names, (seen.a, seen.b, seen.c), strict=True):
        if one.ld < max(one.columns, 1):
            return f"ld{letter}={one.ld}: at least {max(one.columns, 1)} is needed"
        if one.stride < 0:
            return f"stride{letter}={one.stride}: 0 or more is needed"
    if seen.batch > 1 and matrices_overlap(seen.c.rows, seen.c.columns, seen.c.ld, seen.c.stride, seen.batch):
        return f"stridec={seen.c.stride}: matrices of C overlap"
    return None


def matrices_overlap(runs: int, length: int, ld: int, stride: int, batch: int) -> bool:
    """Whether matrices of `runs` runs of `length` elements, `ld` apart, have memory in common.

    They may follow each other, or lie side by side in one matrix's rows.
    """
    if runs == 0 or length == 0:
        return False
    return not (stride >= (runs - 1) * ld + length or (stride >= length and (batch - 1) * stride + length <= ld))


def row_distances(seen: RowMajor) -> tuple[int, ...]:
    """From a row of C to the next, and from a batch's to the next batch's."""
    return (seen.c.ld,) if seen.batch <= 1 else (seen.c.ld, seen.c.stride)


def tiling(problem: Problem, profile: Profile) -> tuple[int, dict[str, int | float]]:
    """Blocks own equal runs of the tiles of all batches; of narrow matrices, of their strips."""
    seen = row_major(problem)
    numbers: dict[str, int | float] = {
        "m": seen.m, "n": seen.n, "k": seen.k, "batch": seen.batch, "lda": seen.a.ld, "ldb": seen.b.ld,
        "ldc": seen.c.ld, "stride_a": seen.a.stride, "stride_b": seen.b.stride, "stride_c": seen.c.stride,
        "alpha": problem.value("alpha"), "beta": problem.value("beta"),
    }  # fmt: skip
    if choose(problem, profile).variant is NARROW:
        strip = strip_rows(seen, profile)
        numbers |= {"strip": strip}
        items, cores = ceil_div(seen.m, strip) * seen.batch, profile.vector_cores
    else:
        tile_m, tile_n = tile(seen, profile)
        chunk_k = even_part(seen.k, profile.chunk_k, FRACTAL_COLUMNS)
        step_k = even_part(chunk_k, profile.step_k, FRACTAL_COLUMNS)
        numbers |= {"tile_m": tile_m, "tile_n": tile_n, "chunk_k": chunk_k, "step_k": step_k}
        items, cores = ceil_div(seen.m, tile_m) * ceil_div(seen.n, tile_n) * seen.batch, profile.cube_cores
    numbers["per_block"] = max(1, ceil_div(items, cores))
    return ceil_div(items, int(numbers["per_block"])), numbers


def tile(seen: RowMajor, profile: Profile) -> tuple[int, int]:
    """Rows and columns of a tile: as large as buffers allow, but cut evenly, and smaller where cores would be idle.

    How C is cut changes no result.
    """
    tile_m = even_part(seen.m, profile.tile_m, FRACTAL_ROWS)
    tile_n = even_part(seen.n, profile.tile_n, FRACTAL_ROWS)
    while ceil_div(seen.m, tile_m) * ceil_div(seen.n, tile_n) * seen.batch < profile.cores_at_once:
        if max(tile_m, tile_n) <= profile.least_tile:
            break
        if tile_m >= tile_n:
            tile_m = even_part(seen.m, tile_m // 2, FRACTAL_ROWS)
        else:
            tile_n = even_part(seen.n, tile_n // 2, FRACTAL_ROWS)
    return tile_m, tile_n


def strip_rows(seen: RowMajor, profile: Profile) -> int:
    """Rows of C that one thread computes: all of a small matrix, fewer of others where cores would be idle."""
    strip = max(1, min(seen.m, profile.strip_rows))
    while ceil_div(seen.m, strip) * seen.batch < profile.cores_at_once and strip > profile.least_strip:
        strip = max(profile.least_strip, ceil_div(strip, 2))
    return strip


def workspace_bytes(problem: Problem, profile: Profile) -> int:
    return 0


def bytes_moved(problem: Problem) -> int:
    """A and B are read once (a matrix that all batches share, once in all), C is written, and read unless beta is 0."""
    seen = row_major(problem)
    reads_c = problem.value("scalar") == "device" or problem.value("beta") != 0.0
    elements = seen.m * seen.n * seen.batch * (2 if reads_c else 1)
    for operand in (seen.a, seen.b):
        elements += operand.rows * operand.columns * (1 if operand.stride == 0 else seen.batch)
    return 4 * elements


def flops(problem: Problem) -> int:
    """Floating-point operations: 2 m n k per batch."""
    return int(2 * problem.value("m") * problem.value("n") * problem.value("k") * problem.value("batch"))


def cost(problem: Problem) -> int:
    return max(bytes_moved(problem), flops(problem) // FLOPS_PER_BYTE)
