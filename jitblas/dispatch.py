"""From a checked call to a launch: the part that the array level, the aclblas level and plans share.

A call of known sizes and types is prepared once per handle: kernel, number of blocks and tiling. After that it costs
one dict lookup and one call through ctypes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from jitblas.arrays import DeviceArray
from jitblas.handle import Handle
from jitblas.jit.kernels import load
from jitblas.jit.specialization import specialize
from jitblas.operators import OPERATORS
from jitblas.problem import Problem, Value

MOST_PREPARED = 1024
"""Launches that a handle keeps ready; beyond that it starts over."""

SMALL_BYTES = 96 * 1024
"""A launch that costs less is cheaper to run than to hand to another thread (a few microseconds)."""

QUICK_BYTES = 2 * 1024 * 1024
"""A plan's call that costs less is over (in tens of microseconds) before another Python thread has taken over."""


class Prepared(NamedTuple):
    """A launch but for its addresses and scalars. `tiling` belongs to one handle: it is changed before each launch."""

    launch: Callable[..., int]
    blocks: int
    tiling: Any
    small: bool
    workspace: int
    """Bytes of the handle's workspace that it needs."""


def prepare(handle: Handle, op: str, *values: Value) -> Prepared:
    """The handle's prepared launch of a problem; made, and its kernel compiled, at the first call.

    `values` are those of the operator's parameters, all of them, in order.
    """
    what = (op, *values)
    prepared: Prepared | None = handle.prepared.get(what)
    if prepared is None:
        names = (parameter.name for parameter in OPERATORS[op].parameters)
        problem = Problem(op, tuple(zip(names, values, strict=True)))
        prepared = make_prepared(handle, problem)
        remember(handle, what, prepared)
    return prepared


def remember(handle: Handle, what: tuple[Any, ...], made: Any) -> None:
    """Keep what calls like this one need ready on the handle."""
    if len(handle.prepared) >= MOST_PREPARED:
        handle.prepared.clear()
    handle.prepared[what] = made


def make_prepared(handle: Handle, problem: Problem, exact: bool = False) -> Prepared:
    """A launch of a problem on the handle's target."""
    operator = OPERATORS[problem.op]
    profile = handle.runtime.profile()
    specialization = specialize(problem, handle.target, exact, profile=profile)
    kernel = load(specialization)
    blocks, numbers = operator.tiling(problem, profile)
    baked = {name for name, _ in specialization.baked}
    tiling = kernel.tiling(**{name: number for name, number in numbers.items() if name not in baked})
    small = operator.cost(problem) < SMALL_BYTES
    return Prepared(kernel.launch, blocks, tiling, small, operator.workspace_bytes(problem, profile))


def run(
    handle: Handle, prepared: Prepared, *addresses: int | None, wait: bool, overlapping: bool = False
) -> None:  # fmt: skip
    """Launch on the handle's stream. StatusError if the launch is refused or, with `wait`, failed."""
    stream = handle.stream.address
    argument = handle.runtime.launch_stream(stream, wait=wait, small=prepared.small, overlapping=overlapping)
    status = prepared.launch(prepared.blocks, argument, *addresses, prepared.tiling)
    if status != 0:
        fail(handle, status)


def keep_until_done(handle: Handle, operands: tuple[Any, ...], *others: Any) -> None:
    """Keep an asynchronous call's operands alive until it is done; device arrays are told which stream uses them."""
    handle.stream.keep(*operands, *others)
    for operand in operands:
        if isinstance(operand, DeviceArray):
            operand.used_on(handle.stream)


def fail(handle: Handle, status: int) -> None:
    """Raise what a launch's status means: the runtime's message if it kept one."""
    from jitblas.errors import Status, StatusError

    handle.stream.synchronize()  # raises with the kernel's message if the launch ran and failed
    raise StatusError(Status(status), "launch", None, "the runtime refused the launch")
