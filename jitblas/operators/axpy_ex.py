"""AxpyEx: y := alpha * x + y for FP32, FP16 and BF16, arithmetic in FP32."""

from __future__ import annotations

from typing import Any

from jitblas.hardware import VECTOR_REGISTER_BYTES, Profile
from jitblas.operators.base import Choice, TilingField, Variant, ceil_div, round_up
from jitblas.problem import Parameter, Problem

name = "axpy_ex"
minimum_cann = "9.0.0-beta.2"
limits: tuple[str, ...] = ()

DTYPES = {"fp32": ("float", 4), "fp16": ("half", 2), "bf16": ("bfloat16_t", 2)}
"""Problem word -> (element type of the kernel, bytes)."""

parameters = (
    Parameter("n", "int", minimum=0),
    Parameter("dtype", tuple(DTYPES), "fp32"),
    Parameter("incx", "int", 1),
    Parameter("incy", "int", 1),
    Parameter("alpha", "float", 1.0),
    Parameter("scalar", ("host", "device"), "host"),
)

CONTIGUOUS = Variant(
    name,
    "contiguous",
    "axpy_ex/contiguous.asc",
    (TilingField("n", "uint64_t", size=True), TilingField("per_block", "uint64_t"), TilingField("alpha", "float")),
    pointers=3,
)
STRIDED = Variant(
    name,
    "strided",
    "axpy_ex/strided.asc",
    (
        TilingField("n", "uint64_t", size=True),
        TilingField("incx", "int64_t", size=True),
        TilingField("incy", "int64_t", size=True),
        TilingField("per_block", "uint64_t"),
        TilingField("threads", "uint32_t"),
        TilingField("alpha", "float"),
    ),
    pointers=3,
)

BUFFERS = 4
"""Tiles in UB at a time: two of x, two of y."""

LANES = VECTOR_REGISTER_BYTES // 4


def choose(problem: Problem, profile: Profile) -> Choice:
    element, size = DTYPES[problem.value("dtype")]
    contiguous = oriented(problem.value("incx"), problem.value("incy")) == (1, 1)
    shared: tuple[tuple[str, Any], ...] = (
        ("Element", element),
        ("kAlphaOnDevice", problem.value("scalar") == "device"),
    )
    if contiguous:
        return Choice(
            CONTIGUOUS, (*shared, ("kTileElements", tile_elements(size, profile)), ("kTileUnit", profile.tile_unit))
        )
    return Choice(STRIDED, (*shared, ("kMaxThreads", profile.simt_max_threads)))


def oriented(incx: int, incy: int) -> tuple[int, int]:
    """The same pairs of elements with y walked upwards: the sum of a pair depends on no other, so order is free.

    Stores go upwards through memory, which prefetchers like better, and two vectors that are both reversed are
    contiguous. The lowest addresses of x and y, where BLAS pointers point, stay the same.
    """
    return (-incx, -incy) if incy < 0 else (incx, incy)


def tile_elements(size: int, profile: Profile) -> int:
    """Elements of one buffer: the profile's preferred bytes or all that fits, in whole registers of FP32."""
    fits = profile.ub_bytes // BUFFERS
    wanted = min(profile.tile_bytes or fits, fits)
    return int(wanted // size // (2 * LANES) * (2 * LANES))


def tiling(problem: Problem, profile: Profile) -> tuple[int, dict[str, int | float]]:
    """Blocks own equal runs; all but the last are whole registers (SIMD) or whole warps (SIMT)."""
    n, alpha = problem.value("n"), problem.value("alpha")
    incx, incy = oriented(problem.value("incx"), problem.value("incy"))
    blocks = max(1, min(ceil_div(n, profile.min_elements_per_core), profile.vector_cores))
    if incx == 1 and incy == 1:
        per_block = round_up(max(1, ceil_div(n, blocks)), 2 * LANES)
        return ceil_div(n, per_block), {"n": n, "per_block": per_block, "alpha": alpha}
    per_block = round_up(max(1, ceil_div(n, blocks)), profile.simt_warp)
    threads = min(max(per_block // profile.simt_warp * profile.simt_warp, profile.simt_warp), profile.simt_max_threads)
    return ceil_div(n, per_block), {
        "n": n, "incx": incx, "incy": incy, "per_block": per_block, "threads": threads, "alpha": alpha,
    }  # fmt: skip


def workspace_bytes(problem: Problem, profile: Profile) -> int:
    return 0


def bytes_moved(problem: Problem) -> int:
    """x and y are read, y is written."""
    return int(3 * problem.value("n") * DTYPES[problem.value("dtype")][1])


cost = bytes_moved
