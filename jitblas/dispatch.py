"""From a checked call to a launch: the part that the array level, the aclblas level and plans share.

A call of known sizes and types is prepared once per handle: kernel, number of blocks and tiling. After that it costs
one dict lookup and one call through ctypes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from jitblas.handle import Handle
from jitblas.jit.kernels import load
from jitblas.jit.specialization import specialize
from jitblas.operators import axpy_ex
from jitblas.problem import Problem

MOST_PREPARED = 1024
"""Launches that a handle keeps ready; beyond that it starts over."""

SMALL_BYTES = 96 * 1024
"""A launch that moves less is cheaper to run than to hand to another thread (a few microseconds)."""


QUICK_BYTES = 2 * 1024 * 1024
"""A plan's call that moves less is over (in tens of microseconds) before another Python thread has taken over."""


class Prepared(NamedTuple):
    """A launch but for its addresses and scalars. `tiling` belongs to one handle: it is changed before each launch."""

    launch: Callable[..., int]
    blocks: int
    tiling: Any
    small: bool


def prepare_axpy_ex(handle: Handle, n: int, dtype: str, incx: int, incy: int, device_alpha: bool) -> Prepared:
    """The handle's prepared launch for these sizes; made, and its kernel compiled, at the first call."""
    what = ("axpy_ex", n, dtype, incx, incy, device_alpha)
    prepared: Prepared | None = handle.prepared.get(what)
    if prepared is None:
        problem = Problem.make(
            "axpy_ex",
            {"n": n, "dtype": dtype, "incx": incx, "incy": incy, "scalar": "device" if device_alpha else "host"},
        )
        profile = handle.runtime.profile()
        kernel = load(specialize(problem, handle.target, profile=profile))
        blocks, values = axpy_ex.tiling(problem, profile)
        small = axpy_ex.bytes_moved(problem) < SMALL_BYTES
        prepared = Prepared(kernel.launch, blocks, kernel.tiling(**values), small)
        if len(handle.prepared) >= MOST_PREPARED:
            handle.prepared.clear()
        handle.prepared[what] = prepared
    return prepared


def run_axpy_ex(
    handle: Handle, prepared: Prepared, alpha: float, alpha_address: int | None, x: int, y: int, *, wait: bool,
    overlapping: bool = False,
) -> None:  # fmt: skip
    """Launch on the handle's stream. StatusError if the launch is refused or, with `wait`, failed."""
    runtime = handle.runtime
    stream = handle.stream
    prepared.tiling.alpha = alpha
    argument = runtime.launch_stream(stream.address, wait=wait, small=prepared.small, overlapping=overlapping)
    status = prepared.launch(prepared.blocks, argument, x, y, alpha_address, prepared.tiling)
    if status != 0:
        fail(handle, status)


def fail(handle: Handle, status: int) -> None:
    """Raise what a launch's status means: the runtime's message if it kept one."""
    from jitblas.errors import Status, StatusError

    handle.stream.synchronize()  # raises with the kernel's message if the launch ran and failed
    raise StatusError(Status(status), "launch", None, "the runtime refused the launch")
