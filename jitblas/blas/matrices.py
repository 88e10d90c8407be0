"""What operators on matrices share: arrays as matrices, copies of them, and arrays for results."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from jitblas.arrays import (
    MAX_SIZE,
    DeviceArray,
    as_operand,
    check_alignment,
    elements_apart,
    empty,
    invalid,
    numpy_dtype,
)
from jitblas.blas.operands import address_of, copied_span, copy, elements
from jitblas.errors import Status, StatusError
from jitblas.handle import Handle
from jitblas.operators.sgemm_strided_batched import matrices_overlap

TYPE_NAMES = {"fp32": "float32", "c64": "complex64", "c128": "complex128"}
"""Word of problem lines -> NumPy's and torch's name."""


class Matrices(NamedTuple):
    """A matrix, or a batch of them, as memory.

    Attributes
    ----------
    batch : None: one matrix, for every batch
    ld, stride : elements from a row (column) to the next, and from a matrix to the next
    by_columns : columns are contiguous, not rows
    dtype, item : word of problem lines, and bytes of an element
    """

    address: int
    batch: int | None
    rows: int
    columns: int
    ld: int
    stride: int
    by_columns: bool
    dtype: str
    item: int
    owner: Any
    device: bool

    @property
    def shape(self) -> tuple[int, ...]:
        one = (self.rows, self.columns)
        return one if self.batch is None else (self.batch, *one)

    @property
    def strides(self) -> tuple[int, ...]:
        """In bytes, as NumPy has them."""
        one = (1, self.ld) if self.by_columns else (self.ld, 1)
        steps = one if self.batch is None else (self.stride, *one)
        return tuple(step * self.item for step in steps)

    @property
    def runs(self) -> tuple[int, int]:
        """(contiguous runs, elements of one)."""
        return (self.columns, self.rows) if self.by_columns else (self.rows, self.columns)

    @property
    def span(self) -> tuple[int, int]:
        """First byte and one past the last."""
        runs, length = self.runs
        if self.batch == 0 or runs == 0 or length == 0:
            return self.address, self.address
        last = ((self.batch or 1) - 1) * self.stride + (runs - 1) * self.ld + length
        return self.address, self.address + last * self.item

    def transposed(self) -> Matrices:
        return self._replace(rows=self.columns, columns=self.rows, by_columns=not self.by_columns)


def as_matrices(
    array: Any, operator: str, name: str, target: str, *, dtype: str, batches: bool, output: bool = False
) -> Matrices:
    """A 2-D array, or with `batches` a 3-D one, seen as matrices of type `dtype`, without copying."""
    operand = as_operand(array, operator, name, target, output=output)
    shape = operand.shape
    if len(shape) != 2 and not (batches and len(shape) == 3):
        needed = "a matrix or a batch of matrices" if batches else "a matrix"
        raise invalid(operator, name, f"it has shape {shape}; {needed} is needed")
    if operand.dtype != dtype:
        raise StatusError(
            Status.NOT_SUPPORTED, operator, name, f"{name} is {operand.dtype}; {TYPE_NAMES[dtype]} is accepted"
        )
    if max(shape) > MAX_SIZE:
        raise invalid(operator, name, f"it has shape {shape}; at most {MAX_SIZE} per dimension are accepted")
    batch = shape[0] if len(shape) == 3 else None
    rows, columns = shape[-2:]
    item, rest = operand.itemsize, (operand.owner, operand.device)
    if 0 in shape:
        return Matrices(operand.address, batch, rows, columns, max(columns, 1), 0, False, dtype, item, *rest)
    check_alignment(operand.address, dtype, item, operator, name)
    steps = [elements_apart(stride, item, operator, name) for stride in operand.strides]
    row_step, column_step = steps[-2:]
    by_columns = False
    if (column_step == 1 or columns == 1) and (rows == 1 or row_step >= columns):
        ld = row_step if rows > 1 else columns
    elif (row_step == 1 or rows == 1) and column_step >= rows:
        by_columns, ld = True, column_step
    else:
        raise invalid(
            operator,
            name,
            f"it has strides of {operand.strides} bytes; rows or columns must be contiguous and apart from each "
            f"other: give numpy.ascontiguousarray({name})",
        )
    stride = steps[0] if batch is not None and batch > 1 else 0
    if stride < 0:
        raise invalid(operator, name, "it has a negative stride from matrix to matrix; give a copy")
    if max(ld, rows, columns) > MAX_SIZE:
        raise invalid(operator, name, f"it has {ld} elements from one row to the next; at most {MAX_SIZE} are accepted")
    made = Matrices(operand.address, batch, rows, columns, ld, stride, by_columns, dtype, item, *rest)
    if output and batch is not None and batch > 1 and matrices_overlap(*made.runs, ld, stride, batch):
        raise invalid(operator, name, f"its matrices overlap: they are {stride} elements apart, and would be written")
    return made


def apart(handle: Handle, operand: Matrices, first: int, last: int, kept: list[Any]) -> Matrices:
    """The operand, or a copy of it if it has memory in common with what will be written."""
    start, end = operand.span
    if end <= first or last <= start:
        return operand
    address, memory = copied_span(handle, start, end, operand.owner)
    kept.append(memory)
    return operand._replace(address=address)


def _on_device(handle: Handle, operator: str, name: str, matrices: Matrices, sources: list[Any]) -> Matrices:
    """Device memory for matrices, one after the other, with what they hold."""
    if matrices.device:
        return matrices
    source = np.ascontiguousarray(_stored(matrices))
    sources.append(source)
    memory = empty(source.shape, matrices.dtype, target=handle.target)
    copy(handle, memory.address, address_of(source), source.nbytes, "to_device")
    made = as_matrices(memory, operator, name, handle.target, dtype=matrices.dtype, batches=True)
    return made.transposed() if matrices.by_columns else made


def _stored(matrices: Matrices) -> np.ndarray[Any, Any]:
    """A NumPy view of matrices in host memory whose last axis is the contiguous one."""
    along_rows = matrices.transposed() if matrices.by_columns else matrices
    return elements(along_rows.address, along_rows.shape, along_rows.strides, matrices.item)


def staged(
    handle: Handle, operator: str, call: Any, names: tuple[str, ...], launch: Callable[[Handle, Any], None]
) -> None:
    """Launch where operands are in host memory that the device cannot see: copies there, and of `c` back.

    `call` is a named tuple whose fields `names` are matrices, "c" among them.
    """
    c: Matrices = call.c
    host = None if c.device else np.ascontiguousarray(_stored(c))
    sources: list[Any] = []  # stay until the copies are made
    try:
        copies = {name: _on_device(handle, operator, name, getattr(call, name), sources) for name in names}
        launch(handle, call._replace(**copies))
        if host is not None:
            copy(handle, address_of(host), copies["c"].address, host.nbytes, "to_host")
    except BaseException:
        try:
            handle.stream.synchronize()  # what is queued still uses the copies, which go when this call ends
        except StatusError:
            pass  # the error on its way is the first one
        raise
    handle.stream.synchronize()
    if host is not None:
        _stored(c)[...] = host


def new_array(shape: tuple[int, ...], dtype: str, operands: tuple[Any, ...], handle: Handle, *, zeroed: bool) -> Any:
    """An array for a result, of the kind that the operands are; zeros come in the order of the handle's stream."""
    torch = sys.modules.get("torch")
    for operand in operands:
        if isinstance(operand, DeviceArray):
            made = empty(shape, dtype, target=handle.target)
            address, nbytes = made.address, made.nbytes
        elif torch is not None and isinstance(operand, torch.Tensor):
            made = torch.empty(shape, dtype=getattr(torch, TYPE_NAMES[dtype]), device=operand.device)
            address, nbytes = made.data_ptr(), made.numel() * made.element_size()
        else:
            continue
        if zeroed and nbytes:
            handle.runtime.set_async(address, 0, nbytes, handle.stream.address)
        return made
    return (np.zeros if zeroed else np.empty)(shape, numpy_dtype(dtype))


def is_transposed(word: str, operator: str, name: str) -> bool:
    if not isinstance(word, str) or word not in ("N", "T", "C"):
        raise invalid(operator, name, f"it is {word!r}; accepted are 'N', 'T' and 'C'")
    return word != "N"
