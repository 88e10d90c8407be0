"""SgemmStridedBatched on arrays."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np

from jitblas.arrays import MAX_SIZE, DeviceArray, as_operand, elements_apart, empty, invalid
from jitblas.blas.operands import address_of, as_scalar, chosen_handle, copied_span, copy, elements, scalar_apart
from jitblas.dispatch import Prepared, prepare, run
from jitblas.errors import Status, StatusError
from jitblas.handle import Handle
from jitblas.operators.sgemm_strided_batched import matrices_overlap

OPERATOR = "sgemm_strided_batched"
ITEM = 4
"""Bytes of an element."""


def sgemm_strided_batched(
    a: Any, b: Any, c: Any = None, *, alpha: Any = 1, beta: Any = 0, transa: str = "N", transb: str = "N",
    handle: Handle | None = None,
) -> Any:  # fmt: skip
    """c := alpha * op(a) @ op(b) + beta * c for a batch of FP32 matrices, in place.

    Parameters
    ----------
    a : (batch, m, k) or, for one matrix that all batches share, (m, k); with transa "T": (batch, k, m) or (k, m)
    b : (batch, k, n) or (k, n); with transb "T": (batch, n, k) or (n, k)
    c : (batch, m, n), or (m, n) where a and b are 2-D; None: a new array, for beta 0
    alpha, beta : real numbers, or DeviceArrays of one fp32 element, which are read in stream order
    transa, transb : "N", "T", or "C", which is "T" for real numbers
    handle : None: this thread's handle of the default target

    Returns
    -------
    c, updated. With NumPy arrays and CPU tensors the result is there; if any operand is a DeviceArray the call is
    asynchronous on the handle's stream.

    Raises
    ------
    StatusError
        INVALID_VALUE: shapes do not fit; matrices have neither contiguous rows nor contiguous columns; c is read-only,
        its matrices overlap, or it is missing where beta is not 0. NOT_SUPPORTED: another type than fp32.
    TypeError
        a, b or c is no array, alpha or beta no real number.

    Notes
    -----
    Memory order is free: C- and F-ordered matrices, and slices of either, are used where they are. With beta 0 c is not
    read, with alpha 0 a and b are not. An operand that overlaps c is copied first. NumPy arrays on ascend950pr are
    staged through device memory by copies.

    Examples
    --------
    >>> import numpy, jitblas
    >>> a = numpy.arange(6, dtype="float32").reshape(1, 2, 3)
    >>> jitblas.sgemm_strided_batched(a, a, transb="T")
    array([[[ 5., 14.],
            [14., 50.]]], dtype=float32)
    """
    handle = chosen_handle(handle, OPERATOR)
    turned_a, turned_b = _is_transposed(transa, "transa"), _is_transposed(transb, "transb")
    left, right = as_matrices(a, "a", handle.target), as_matrices(b, "b", handle.target)
    if turned_a:
        left = left.transposed()
    if turned_b:
        right = right.transposed()
    if left.columns != right.rows:
        raise _refused("a", f"op(a) is {left.rows} x {left.columns}, op(b) is {right.rows} x {right.columns}")
    batches = {matrices.batch for matrices in (left, right) if matrices.batch is not None}
    if len(batches) > 1:
        raise _refused("a", f"a is a batch of {left.batch}, b of {right.batch}; one of them may be a single matrix")
    batch = next(iter(batches), None)
    shape = (left.rows, right.columns) if batch is None else (batch, left.rows, right.columns)
    value_a, device_a = as_scalar(alpha, OPERATOR, "alpha", handle)
    value_b, device_b = as_scalar(beta, OPERATOR, "beta", handle)
    if c is None:
        if device_b is not None or value_b != 0:
            raise _refused("c", "c is missing, and beta is not 0: give the array that beta * c means")
        c = _new(shape, a, b, handle)
    out = as_matrices(c, "c", handle.target, output=True)
    if out.shape != shape:
        raise _refused("c", f"c has shape {out.shape}, the product has {shape}")
    product = Product(left, right, out, (value_a, device_a), (value_b, device_b))
    launch(handle, product)
    return c


class Matrices(NamedTuple):
    """A matrix, or a batch of them, as memory.

    Attributes
    ----------
    batch : None: one matrix, for every batch
    ld, stride : elements from a row (column) to the next, and from a matrix to the next
    by_columns : columns are contiguous, not rows
    """

    address: int
    batch: int | None
    rows: int
    columns: int
    ld: int
    stride: int
    by_columns: bool
    owner: Any
    device: bool

    @property
    def shape(self) -> tuple[int, ...]:
        one = (self.rows, self.columns)
        return one if self.batch is None else (self.batch, *one)

    @property
    def strides(self) -> tuple[int, ...]:
        """In bytes, as NumPy has them."""
        one = (ITEM, self.ld * ITEM) if self.by_columns else (self.ld * ITEM, ITEM)
        return one if self.batch is None else (self.stride * ITEM, *one)

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
        return self.address, self.address + last * ITEM

    def transposed(self) -> Matrices:
        return self._replace(rows=self.columns, columns=self.rows, by_columns=not self.by_columns)


class Product(NamedTuple):
    """One checked call; a scalar is its value, or where it is in device memory."""

    a: Matrices
    b: Matrices
    c: Matrices
    alpha: tuple[float, DeviceArray | None]
    beta: tuple[float, DeviceArray | None]


def as_matrices(array: Any, name: str, target: str, *, output: bool = False) -> Matrices:
    """A 2-D or 3-D array seen as matrices, without copying."""
    operand = as_operand(array, OPERATOR, name, target, output=output)
    shape = operand.shape
    if len(shape) not in (2, 3):
        raise _refused(name, f"{name} has shape {shape}; a matrix or a batch of matrices is needed")
    if operand.dtype != "fp32":
        raise StatusError(Status.NOT_SUPPORTED, OPERATOR, name, f"{name} is {operand.dtype}; fp32 is accepted")
    if max(shape) > MAX_SIZE:
        raise _refused(name, f"{name} has shape {shape}; at most {MAX_SIZE} per dimension are accepted")
    batch = shape[0] if len(shape) == 3 else None
    rows, columns = shape[-2:]
    if 0 in shape:
        return Matrices(operand.address, batch, rows, columns, max(columns, 1), 0, False, operand.owner, operand.device)
    if operand.address % ITEM:
        raise invalid(OPERATOR, name, f"its address is no multiple of its item size, {ITEM}; give a copy")
    steps = [elements_apart(stride, ITEM, OPERATOR, name) for stride in operand.strides]
    row_step, column_step = steps[-2:]
    by_columns = False
    if (column_step == 1 or columns == 1) and (rows == 1 or row_step >= columns):
        ld = row_step if rows > 1 else columns
    elif (row_step == 1 or rows == 1) and column_step >= rows:
        by_columns, ld = True, column_step
    else:
        raise _refused(
            name,
            f"{name} has strides of {operand.strides} bytes; rows or columns must be contiguous and apart from each "
            f"other: give numpy.ascontiguousarray({name})",
        )
    stride = steps[0] if batch is not None and batch > 1 else 0
    if stride < 0:
        raise _refused(name, f"{name} has a negative stride from matrix to matrix; give a copy")
    if max(ld, rows, columns) > MAX_SIZE:
        raise _refused(name, f"{name} has {ld} elements from one row to the next; at most {MAX_SIZE} are accepted")
    made = Matrices(operand.address, batch, rows, columns, ld, stride, by_columns, operand.owner, operand.device)
    if output and batch is not None and batch > 1 and matrices_overlap(*made.runs, ld, stride, batch):
        raise _refused(name, f"the matrices of {name} overlap: they are {stride} elements apart, and would be written")
    return made


def launch(handle: Handle, product: Product, prepared: Prepared | None = None) -> None:
    """Launch a checked product; see :func:`sgemm_strided_batched` for when the result is there.

    `prepared`: the launch to make where the matrices are used as they are; None: the handle's own for their sizes.
    """
    a, b, c, (alpha, alpha_array), (beta, beta_array) = product
    if 0 in c.shape:
        return
    on_device = alpha_array is not None or beta_array is not None
    empty_product = a.columns == 0 or (not on_device and alpha == 0)
    if empty_product and not on_device and beta == 1:
        return
    if not handle.runtime.shares_host_memory and not (a.device and b.device and c.device):
        _staged(handle, product)
        return
    asynchronous = a.device or b.device or c.device or on_device
    first, last = c.span
    kept: list[Any] = []
    if not empty_product:
        a, b = (_apart(handle, operand, first, last, kept) for operand in (a, b))
    if prepared is None:
        prepared = _prepared(handle, a, b, c, 0 if empty_product else a.columns, alpha, beta, on_device)
    prepared.tiling.alpha, prepared.tiling.beta = alpha, beta
    left, right = (b, a) if c.by_columns else (a, b)
    (alpha_address, alpha_kept), (beta_address, beta_kept) = (
        scalar_apart(handle, scalar, first, last) for scalar in (alpha_array, beta_array)
    )
    run(
        handle, prepared, left.address, right.address, c.address, alpha_address, beta_address, wait=not asynchronous,
    )  # fmt: skip
    if asynchronous:
        handle.stream.keep(a.owner, b.owner, c.owner, alpha_kept, beta_kept, *kept)
        for used in (a.owner, b.owner, c.owner):
            if isinstance(used, DeviceArray):
                used.used_on(handle.stream)
    elif kept:
        handle.stream.keep()  # keeps nothing more and lets the copies go


def _prepared(
    handle: Handle, a: Matrices, b: Matrices, c: Matrices, k: int, alpha: float, beta: float, on_device: bool
) -> Prepared:
    """The handle's launch for these sizes, whatever scalars of the same class are."""
    letters = "".join("NT"[matrices.by_columns != c.by_columns] for matrices in (a, b))
    return prepare(
        handle, OPERATOR, letters, c.rows, c.columns, k, 1 if c.batch is None else c.batch,
        "col" if c.by_columns else "row", a.ld, b.ld, c.ld, a.stride, b.stride, c.stride,
        1.0 if alpha == 1 else 2.0, 0.0 if beta == 0 else 1.0, "device" if on_device else "host",
    )  # fmt: skip


def _apart(handle: Handle, operand: Matrices, first: int, last: int, kept: list[Any]) -> Matrices:
    """The operand, or a copy of it if it has memory in common with what will be written."""
    start, end = operand.span
    if end <= first or last <= start:
        return operand
    address, memory = copied_span(handle, start, end, operand.owner)
    kept.append(memory)
    return operand._replace(address=address)


def _staged(handle: Handle, product: Product) -> None:
    """Operands in host memory and a device that cannot see it: copies there, in their memory order, and of c back."""
    a, b, c = product.a, product.b, product.c
    host = None if c.device else np.ascontiguousarray(_stored(c))
    sources: list[Any] = []  # stay until the copies are made
    try:
        staged = product._replace(
            a=_on_device(handle, "a", a, sources),
            b=_on_device(handle, "b", b, sources),
            c=_on_device(handle, "c", c, sources),
        )
        launch(handle, staged)
        if host is not None:
            copy(handle, address_of(host), staged.c.address, host.nbytes, "to_host")
    except BaseException:
        try:
            handle.stream.synchronize()  # what is queued still uses the copies, which go when this call ends
        except StatusError:
            pass  # the error on its way is the first one
        raise
    handle.stream.synchronize()
    if host is not None:
        _stored(c)[...] = host


def _on_device(handle: Handle, name: str, matrices: Matrices, sources: list[Any]) -> Matrices:
    """Device memory for matrices, one after the other, with what they hold."""
    if matrices.device:
        return matrices
    source = np.ascontiguousarray(_stored(matrices))
    sources.append(source)
    memory = empty(source.shape, "fp32", target=handle.target)
    copy(handle, memory.address, address_of(source), source.nbytes, "to_device")
    made = as_matrices(memory, name, handle.target)
    return made.transposed() if matrices.by_columns else made


def _stored(matrices: Matrices) -> np.ndarray[Any, Any]:
    """A NumPy view of matrices in host memory whose last axis is the contiguous one."""
    along_rows = matrices.transposed() if matrices.by_columns else matrices
    return elements(along_rows.address, along_rows.shape, along_rows.strides, ITEM)


def _new(shape: tuple[int, ...], a: Any, b: Any, handle: Handle) -> Any:
    """An array like the operands for the result."""
    torch = sys.modules.get("torch")
    for operand in (a, b):
        if isinstance(operand, DeviceArray):
            return empty(shape, "fp32", target=handle.target)
        if torch is not None and isinstance(operand, torch.Tensor):
            return torch.empty(shape, dtype=torch.float32, device=operand.device)
    return np.empty(shape, np.float32)


def _is_transposed(word: str, name: str) -> bool:
    if not isinstance(word, str) or word not in ("N", "T", "C"):
        raise _refused(name, f"{name} is {word!r}; accepted are 'N', 'T' and 'C'")
    return word != "N"


def _refused(argument: str, message: str) -> StatusError:
    return StatusError(Status.INVALID_VALUE, OPERATOR, argument, message)
