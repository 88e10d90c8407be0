"""SgemmStridedBatched on arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

from jitblas.arrays import DeviceArray
from jitblas.blas.matrices import Matrices, apart, as_matrices, is_transposed, new_array, staged
from jitblas.blas.operands import as_scalar, chosen_handle, scalar_apart
from jitblas.dispatch import Prepared, keep_until_done, prepare, run
from jitblas.errors import Status, StatusError
from jitblas.handle import Handle

OPERATOR = "sgemm_strided_batched"


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
    turned_a, turned_b = is_transposed(transa, OPERATOR, "transa"), is_transposed(transb, OPERATOR, "transb")
    left, right = as_operands(a, "a", handle.target), as_operands(b, "b", handle.target)
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
        c = new_array(shape, "fp32", (a, b), handle, zeroed=False)
    out = as_operands(c, "c", handle.target, output=True)
    if out.shape != shape:
        raise _refused("c", f"c has shape {out.shape}, the product has {shape}")
    product = Product(left, right, out, (value_a, device_a), (value_b, device_b))
    launch(handle, product)
    return c


class Product(NamedTuple):
    """One checked call; a scalar is its value, or where it is in device memory."""

    a: Matrices
    b: Matrices
    c: Matrices
    alpha: tuple[float, DeviceArray | None]
    beta: tuple[float, DeviceArray | None]


def as_operands(array: Any, name: str, target: str, *, output: bool = False) -> Matrices:
    """A 2-D or 3-D array of fp32 seen as matrices, without copying."""
    return as_matrices(array, OPERATOR, name, target, dtype="fp32", batches=True, output=output)


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
        staged(handle, OPERATOR, product, ("a", "b", "c"), launch)
        return
    asynchronous = a.device or b.device or c.device or on_device
    first, last = c.span
    kept: list[Any] = []
    if not empty_product:
        a, b = (apart(handle, operand, first, last, kept) for operand in (a, b))
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
        keep_until_done(handle, (a.owner, b.owner, c.owner), alpha_kept, beta_kept, *kept)
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


def _refused(argument: str, message: str) -> StatusError:
    return StatusError(Status.INVALID_VALUE, OPERATOR, argument, message)
