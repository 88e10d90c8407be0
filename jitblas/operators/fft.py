"""FFT: discrete Fourier transforms of 2^n points, for COMPLEX64 and, on the host, COMPLEX128.

What a kernel does is decided by the number of points, so each has kernels of its own: by direction, by whether results
are scaled, and by whether there are so many transforms that a core makes whole ones. How many there are is a number of
the launch.
"""

from __future__ import annotations

import functools

from jitblas.codelets.transform import transform
from jitblas.errors import Status, StatusError
from jitblas.hardware import HOST, Profile
from jitblas.operators.base import FLOPS_PER_BYTE, Choice, Constant, TilingField, Variant, ceil_div
from jitblas.operators.fft_planner import KINDS, ROWS, WHOLE, Geometry, Pass, plan_passes
from jitblas.problem import Parameter, Problem

name = "fft"
minimum_cann = "9.1.0"
limits: tuple[str, ...] = ("fft_tiny", "fft_radix")

ITEM_BYTES = {"c64": 8, "c128": 16}
REALS = {"c64": "float", "c128": "double"}

MOST_POINTS = 2**26

parameters = (
    Parameter("n", "int", minimum=1),
    Parameter("batch", "int", 1, minimum=0),
    Parameter("dtype", tuple(ITEM_BYTES), "c128"),
    Parameter("dir", ("forward", "inverse"), "forward"),
    Parameter("norm", ("backward", "ortho", "forward"), "backward"),
)

_PRINTER = "jitblas.codelets.printer"
_BATCH = TilingField("batch", "uint64_t")
_THREADS = TilingField("threads", "uint32_t")


@functools.cache
def _variants(dtype: str) -> tuple[Variant, Variant]:
    """(tiny, passes); the scale is of the type that the kernel computes in."""
    scale = TilingField("scale", REALS[dtype])
    return (
        Variant(name, "tiny", "fft/tiny.asc", (_BATCH, scale, _THREADS), pointers=4, printer=_PRINTER),
        Variant(
            name, "passes", "fft/passes.asc", (_BATCH, scale), pointers=4, printer=_PRINTER, any_register_width=True
        ),
    )


def fault(problem: Problem) -> str | None:
    """Why there is no such transform, with the nearest that there are; None if there is."""
    n = problem.value("n")
    if n & (n - 1) == 0 and n <= MOST_POINTS:
        return None
    smaller = min(1 << (n.bit_length() - 1), MOST_POINTS)
    nearest = f"the nearest are {smaller} and {2 * smaller}" if smaller < MOST_POINTS else f"the nearest is {smaller}"
    return f"n={n}: powers of two up to {MOST_POINTS} are accepted; {nearest}"


@functools.cache
def passes(n: int, dtype: str, profile: Profile) -> tuple[Pass, ...]:
    """What a transform does; nothing where one codelet does all."""
    return () if n <= profile.fft_tiny else plan_passes(n, ITEM_BYTES[dtype], profile)


def together(problem: Problem, profile: Profile) -> bool:
    """Whether a core makes whole transforms, because there are enough of them and one's workspace fits a cache."""
    n, dtype = problem.value("n"), problem.value("dtype")
    return (
        len(passes(n, dtype, profile)) > 1
        and problem.value("batch") >= TRANSFORMS_PER_CORE * profile.cores_at_once
        and n * ITEM_BYTES[dtype] <= profile.fft_together_bytes
    )


TRANSFORMS_PER_CORE = 8
"""For each core that the profile says runs at the same time; with fewer, cores share the passes of each."""

LEAST_IN_TURN = 4
"""Transforms that a block makes in the same workspace: the first one finds it nowhere near."""


def choose(problem: Problem, profile: Profile) -> Choice:
    n, dtype = problem.value("n"), problem.value("dtype")
    wrong = fault(problem)
    if wrong is not None:
        raise StatusError(Status.NOT_SUPPORTED, name, "n", wrong)
    if dtype == "c128" and profile.name != HOST:
        raise StatusError(
            Status.NOT_SUPPORTED,
            name,
            "dtype",
            f"complex128 (c128) on {profile.name}: its vector units have no FP64; give complex64 (c64), or a handle of "
            f"target {HOST!r}",
        )
    shared: tuple[tuple[str, Constant], ...] = (
        ("Real", REALS[dtype]),
        ("kInverse", problem.value("dir") == "inverse"),
        ("kScaled", scale(problem) != 1),
    )
    planned = passes(n, dtype, profile)
    tiny, in_passes = _variants(dtype)
    if not planned:
        return Choice(tiny, (*shared, ("kScalarCodelets", (n,)), ("kMaxThreads", profile.simt_max_threads)))
    geometry = Geometry(ITEM_BYTES[dtype], profile)
    most = max(len(one.stages) for one in planned)
    whole = planned[0].kind == WHOLE
    plain = {stage.radix for one in planned for stage in (one.stages[1:] if whole else one.stages)}
    reorders: tuple[tuple[str, Constant], ...] = (
        (("kInterleavedCodelets", (planned[0].stages[0].radix,)),) if whole else (("kTransposers", (geometry.height,)),)
    )
    offsets = [sum(one.table_reals for one in planned[:number]) for number in range(len(planned))]

    def of_stages(values: list[list[int]]) -> tuple[int, ...]:
        return tuple(number for row in values for number in (*row, *[0] * (most - len(row))))

    constants: tuple[tuple[str, Constant], ...] = (
        *shared,
        ("kTransform", n),
        ("kPasses", len(planned)),
        ("kTogether", together(problem, profile)),
        ("kKinds", tuple(one.kind for one in planned)),
        ("kPoints", tuple(one.points for one in planned)),
        ("kColumns", tuple(one.columns for one in planned)),
        ("kBefore", tuple(one.before for one in planned)),
        ("kAfter", tuple(one.after for one in planned)),
        ("kStages", tuple(len(one.stages) for one in planned)),
        ("kMostStages", most),
        ("kFactors", of_stages([[stage.radix for stage in one.stages] for one in planned])),
        ("kStageTables", of_stages([[stage.table for stage in one.stages] for one in planned])),
        ("kTables", tuple(offsets)),
        ("kTableReals", tuple(one.table for one in planned)),
        ("kTurnReals", tuple(one.turn for one in planned)),
        ("kHeight", geometry.height),
        ("kRowTable", planned[-1].row_table),
        ("kBuffers", tuple(one.buffers for one in planned)),
        ("kPadding", geometry.padding),
        ("kCodelets", tuple(sorted(plain))),
        *reorders,
    )
    return Choice(in_passes, constants)


def scale(problem: Problem) -> float:
    """What results are multiplied by: NumPy's norms."""
    n, norm = problem.value("n"), problem.value("norm")
    if norm == "ortho":
        return float(n**-0.5)
    return 1 / n if (norm == "forward") == (problem.value("dir") == "forward") else 1.0


def describe(problem: Problem, profile: Profile) -> list[str]:
    """The plan as a tree: passes with their tasks and stages, what they move, and what codelets do of the work."""
    n, batch, dtype = problem.value("n"), problem.value("batch"), problem.value("dtype")
    planned = passes(n, dtype, profile)
    if not planned:
        return [f"{batch} transforms of {n} points, each one codelet of a SIMT thread"]
    lines = []
    codelet_flops = twiddle_flops = 0
    for number, one in enumerate(planned):
        tasks = batch * n // (one.points * one.columns)
        radices = " x ".join(str(stage.radix) for stage in one.stages)
        seen = f"({one.before}, {one.points}, {one.after})"
        lines.append(f"pass {number}: {KINDS[one.kind]} of {seen}, {one.points} = {radices}")
        lines.append(
            f"  {tasks} tasks of {one.columns} x {one.points} points, {one.buffers} buffers, "
            f"{2 * n * batch * ITEM_BYTES[dtype]} bytes moved, {one.table_reals * ITEM_BYTES[dtype] // 2} of tables"
        )
        for stage in one.stages:
            codelet_flops += sum(transform(stage.radix).operations()) * (n // stage.radix)
            twiddle_flops += FLOPS_PER_TWIDDLE * (stage.radix - 1) * (n // stage.radix) * (stage.right > 1)
        twiddle_flops += FLOPS_PER_TWIDDLE * (2 if one.kind == ROWS else 1) * n * (one.turn > 0)
    share = codelet_flops / (codelet_flops + twiddle_flops)
    made = (codelet_flops + twiddle_flops) * batch
    return [
        *lines,
        f"moved      {2 * n * batch * ITEM_BYTES[dtype] * len(planned)} bytes in {len(planned)} pass(es)",
        f"flops      {flops(problem)} counted as 5 n log2 n; {made} made, {share:.0%} in codelets, others by twiddles",
    ]


FLOPS_PER_TWIDDLE = 6
"""Of a complex product."""


def tiling(problem: Problem, profile: Profile) -> tuple[int, dict[str, int | float]]:
    """Blocks own equal runs of tasks, and no transform depends on which."""
    n, batch = problem.value("n"), problem.value("batch")
    planned = passes(n, problem.value("dtype"), profile)
    numbers: dict[str, int | float] = {"batch": batch, "scale": scale(problem)}
    if together(problem, profile):
        return min(batch // LEAST_IN_TURN, profile.vector_cores), numbers
    blocks = min(ceil_div(n * batch, profile.min_elements_per_core), profile.vector_cores)
    if not planned:
        blocks = min(blocks, batch)
        numbers["threads"] = max(1, min(ceil_div(batch, max(blocks, 1)), profile.simt_max_threads))
    else:
        blocks = min(blocks, max(batch * n // (one.points * one.columns) for one in planned))
    return max(blocks, 1), numbers


def workspace_bytes(problem: Problem, profile: Profile) -> int:
    """As much as the output, or one transform for each block; nothing where one pass does all."""
    n, dtype = problem.value("n"), problem.value("dtype")
    if len(passes(n, dtype, profile)) <= 1:
        return 0
    transforms = tiling(problem, profile)[0] if together(problem, profile) else problem.value("batch")
    return int(n * transforms * ITEM_BYTES[dtype])


def bytes_moved(problem: Problem) -> int:
    """The input is read and the output written."""
    return int(2 * problem.value("n") * problem.value("batch") * ITEM_BYTES[problem.value("dtype")])


def flops(problem: Problem) -> int:
    """As the field counts them: 5 N log2 N."""
    n = problem.value("n")
    return int(5 * n * (n.bit_length() - 1) * problem.value("batch"))


def cost(problem: Problem) -> int:
    return max(bytes_moved(problem), flops(problem) // FLOPS_PER_BYTE)
