"""Transforms of rows in memory: the launch, and copies of what does not lie as kernels read and write it."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from jitblas.arrays import ITEM_BYTES as NUMBERS
from jitblas.arrays import (
    AddressHolder,
    DeviceArray,
    Operand,
    aligned_empty,
    as_operand,
    empty,
    invalid,
    numpy_dtype,
    span,
)
from jitblas.blas.matrices import new_array
from jitblas.blas.operands import copied_span, copy
from jitblas.dispatch import Prepared, keep_until_done, prepare, run
from jitblas.fft.tables import table_on
from jitblas.handle import Handle
from jitblas.hardware import HOST
from jitblas.problem import Problem

ALIGNED_BYTES = 32 * 1024
"""New arrays from this size on begin at a cache line; for smaller ones finding it takes longer than it saves."""

Array = np.ndarray[Any, Any]


class Transforms(NamedTuple):
    """Transforms to be made: the problem, and the shape of their result with the axis that they are along."""

    name: str
    problem: Problem
    shape: tuple[int, ...]
    axis: int

    @property
    def dtype(self) -> str:
        return str(self.problem.value("dtype"))

    @property
    def points(self) -> int:
        return int(self.problem.value("n"))

    @property
    def rows(self) -> tuple[int, ...]:
        """The shape with their axis last."""
        return (*self.shape[: self.axis], *self.shape[self.axis + 1 :], self.points)


def new_result(what: Transforms, x: Any, handle: Handle) -> Any:
    """An array for the result, of the kind that x is; a NumPy one lies as kernels write it."""
    if type(x) is np.ndarray or not (isinstance(x, DeviceArray) or type(x).__module__.startswith("torch")):
        made = new_rows(what.rows, numpy_dtype(what.dtype))
        return made if what.axis == len(what.shape) - 1 else np.moveaxis(made, -1, what.axis)
    return new_array(what.shape, what.dtype, (x,), handle, zeroed=False)


def new_rows(shape: tuple[int, ...], kind: np.dtype[Any]) -> Array:
    """A NumPy array that, if it is large, begins at a cache line: it then need not be read before it is written."""
    small = math.prod(shape) * kind.itemsize < ALIGNED_BYTES
    return np.empty(shape, kind) if small else aligned_empty(shape, kind)


def make_transforms(
    handle: Handle, what: Transforms, source: Operand, result: Operand, prepared: Prepared | None = None
) -> None:
    """From memory to memory, by way of copies of what kernels cannot read or write as it is.

    The result is there when the call returns, unless it is in device memory. `prepared`: the launch to make; None: the
    handle's own for the problem.
    """
    if 0 in what.shape:
        return
    if prepared is None:
        prepared = prepare(handle, "fft", *(value for _, value in what.problem.values))
    reachable = handle.runtime.shares_host_memory
    readable, writable = _are_rows(source, what), _are_rows(result, what)
    if not readable and source.device:
        raise invalid(what.name, "x", _unlike_rows(source, what))
    if not writable:
        if result.device:
            raise invalid(what.name, "out", _unlike_rows(result, what))
        if _shares_memory(result):
            raise invalid(
                what.name,
                "out",
                f"its elements share memory (strides of {result.strides} bytes), and would be written; give a copy",
            )
    if not readable or (source.address != result.address and _overlap(_span(source), _span(result))):
        source = _copied_rows(handle, what, source)
    kept: list[Any] = [source.owner, result.owner]
    target: Operand = result
    if not result.device and not (reachable and writable):
        target = _operand(new_rows(what.rows, numpy_dtype(what.dtype)), what)
    source_address, target_address = source.address, target.address
    if not reachable:
        if not source.device:
            source_address = _to_device(handle, what, source, kept)
        if not target.device:
            target_address = _device_memory(handle, what, kept)
    workspace = handle.workspace.reserve(prepared.workspace) if prepared.workspace else None
    table, owner = table_on(handle, what.points, what.dtype)
    kept.append(owner)
    asynchronous = result.device
    try:
        run(handle, prepared, source_address, target_address, workspace, table, wait=reachable and not asynchronous)
        if target_address != target.address:
            copy(handle, target.address, target_address, _span(target)[1] - target.address, "to_host")
    finally:
        if not asynchronous and not reachable:
            handle.stream.synchronize()
    if asynchronous:
        keep_until_done(handle, (source.owner, result.owner), *kept)
    elif target is not result:
        _view(result)[...] = _view(target)


def _are_rows(operand: Operand, what: Transforms) -> bool:
    """Whether it holds the problem's numbers one transform after the other."""
    if operand.dtype != what.dtype or operand.shape != what.shape or operand.address % (operand.itemsize // 2):
        return False
    strides = (*operand.strides[: what.axis], *operand.strides[what.axis + 1 :], operand.strides[what.axis])
    dense = operand.itemsize
    for length, stride in zip(reversed(what.rows), reversed(strides), strict=True):
        if length != 1 and stride != dense:
            return False
        dense *= length
    return True


def _shares_memory(operand: Operand) -> bool:
    """Whether some of its elements may be one place: axes, by their strides, do not step over what lies within."""
    size = operand.itemsize
    for stride, length in sorted(
        (abs(stride), length) for stride, length in zip(operand.strides, operand.shape, strict=True)
    ):
        if length > 1:
            if stride < size:
                return True
            size = (length - 1) * stride + size
    return False


def _unlike_rows(operand: Operand, what: Transforms) -> str:
    return (
        f"it is {operand.dtype} of shape {operand.shape} with strides of {operand.strides} bytes; in device memory "
        f"{what.dtype} of shape {what.shape} is needed, transforms contiguous and one after the other"
    )


def _span(operand: Operand) -> tuple[int, int]:
    return span(operand.address, operand.shape, operand.strides, operand.itemsize)


def _overlap(a: tuple[int, int], b: tuple[int, int]) -> bool:
    return a[0] < b[1] and b[0] < a[1]


def _operand(array: Array, what: Transforms) -> Operand:
    """Rows of ours, seen with the axis where the caller has it."""
    return as_operand(np.moveaxis(array, -1, what.axis), what.name, "x", HOST)


def _view(operand: Operand) -> Array:
    """A NumPy view of an operand in host memory."""
    if hasattr(operand.owner, "__array_interface__"):
        return np.asarray(operand.owner)
    kind = numpy_dtype(operand.dtype) if operand.dtype in NUMBERS else np.dtype(operand.dtype)
    return np.asarray(AddressHolder(operand.address, operand.shape, kind, operand.strides))


def _copied_rows(handle: Handle, what: Transforms, source: Operand) -> Operand:
    """A copy of the numbers as kernels read them: cut off or continued with zeros, of the result's type."""
    if source.device:
        first, last = _span(source)
        address, memory = copied_span(handle, first, last, source.owner)
        return source._replace(address=address, owner=memory)
    given = np.moveaxis(_view(source), what.axis, -1)
    length = min(given.shape[-1], what.points)
    rows = new_rows(what.rows, numpy_dtype(what.dtype))
    rows[..., :length] = given[..., :length]
    rows[..., length:] = 0
    return _operand(rows, what)


def _device_memory(handle: Handle, what: Transforms, kept: list[Any]) -> int:
    memory = empty(what.rows, what.dtype, target=handle.target)
    kept.append(memory)
    return memory.address


def _to_device(handle: Handle, what: Transforms, source: Operand, kept: list[Any]) -> int:
    address = _device_memory(handle, what, kept)
    first, last = _span(source)
    copy(handle, address, first, last - first, "to_device")
    return address
