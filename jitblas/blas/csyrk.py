"""Csyrk on arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

from jitblas.arrays import DeviceArray, invalid
from jitblas.blas.matrices import Matrices, apart, as_matrices, is_transposed, new_array, staged
from jitblas.blas.operands import as_scalar, chosen_handle, scalar_apart
from jitblas.dispatch import Prepared, keep_until_done, prepare, run
from jitblas.handle import Handle
from jitblas.operators.csyrk import ALGORITHMS

OPERATOR = "csyrk"


def csyrk(
    a: Any, c: Any = None, *, alpha: Any = 1, beta: Any = 0, trans: str = "N", uplo: str = "L",
    algorithm: str = "auto", handle: Handle | None = None,
) -> Any:  # fmt: skip
    """c := alpha * op(a) @ op(a).T + beta * c in one triangle of a symmetric c, complex64, in place.

    Parameters
    ----------
    a : (n, k), or with trans "T" (k, n)
    c : (n, n); None: a new array of zeros, for beta 0
    alpha, beta : complex numbers, or DeviceArrays of one c64 element, which are read in stream order
    trans : "N", "T", or "C", which is "T": nothing is conjugated
    uplo : "L" or "U", the triangle of c as NumPy shows it; the other one is neither read nor written
    algorithm : "4m" (four real products), "3m" (three, a quarter fewer operations), or "auto", the handle's choice and
        otherwise three where k is at least 2048
    handle : None: this thread's handle of the default target

    Returns
    -------
    c, updated. With NumPy arrays and CPU tensors the result is there; if any operand is a DeviceArray the call is
    asynchronous on the handle's stream.

    Raises
    ------
    StatusError
        INVALID_VALUE: shapes do not fit; a matrix has neither contiguous rows nor contiguous columns; c is read-only,
        or missing where beta is not 0. NOT_SUPPORTED: another type than complex64. ALLOC_FAILED: the handle's workspace
        is too small.
    TypeError
        a or c is no array, alpha or beta no number.

    Notes
    -----
    With "4m" and "auto" each component of c_ij is within (8 + sqrt(k)) * 2^-24 * (|alpha| sum(|a_ip| |a_jp|) +
    |beta c_ij|) of the exact one, with "3m" within three times that (it takes numbers that are nearly equal to come
    close; random ones stay within). Relative to itself an imaginary part is less exact with "3m" where it is much
    smaller than the real products it comes from: "4m" makes it from products of real and imaginary parts alone.

    Memory order is free: C- and F-ordered matrices, and slices of either, are used where they are. With beta 0 c is not
    read, with alpha 0 a is not. Rows and columns of a that hold infinities, NaN or huge numbers are computed by the
    complex formula, which does not overflow where the results do not. An a that overlaps c is copied first. NumPy
    arrays on ascend950pr are staged through device memory by copies.

    Examples
    --------
    >>> import numpy, jitblas
    >>> a = numpy.array([[1, 1j], [2, 0]], "complex64")
    >>> jitblas.csyrk(a)
    array([[0.+0.j, 0.+0.j],
           [2.+0.j, 4.+0.j]], dtype=complex64)
    """
    handle = chosen_handle(handle, OPERATOR)
    turned = is_transposed(trans, OPERATOR, "trans")
    if not isinstance(uplo, str) or uplo not in ("L", "U"):
        raise invalid(OPERATOR, "uplo", f"it is {uplo!r}; accepted are 'L' and 'U'")
    if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
        raise invalid(OPERATOR, "algorithm", f"it is {algorithm!r}; accepted are 'auto', '4m' and '3m'")
    operand = as_matrix(a, "a", handle.target)
    if turned:
        operand = operand.transposed()
    value_a, device_a = as_scalar(alpha, OPERATOR, "alpha", handle, "c64")
    value_b, device_b = as_scalar(beta, OPERATOR, "beta", handle, "c64")
    shape = (operand.rows, operand.rows)
    if c is None:
        if device_b is not None or value_b != 0:
            raise invalid(OPERATOR, "c", "it is missing, and beta is not 0: give the array that beta * c means")
        c = new_array(shape, "c64", (a,), handle, zeroed=True)
    out = as_matrix(c, "c", handle.target, output=True)
    if out.shape != shape:
        raise invalid(OPERATOR, "c", f"it has shape {out.shape}, the product has {shape}")
    chosen = handle.csyrk_algorithm if algorithm == "auto" else algorithm
    launch(handle, Update(operand, out, (value_a, device_a), (value_b, device_b), uplo, chosen))
    return c


class Update(NamedTuple):
    """One checked call. `a` is op(A); a scalar is its value, or where it is in device memory."""

    a: Matrices
    c: Matrices
    alpha: tuple[complex, DeviceArray | None]
    beta: tuple[complex, DeviceArray | None]
    uplo: str
    algorithm: str


def as_matrix(array: Any, name: str, target: str, *, output: bool = False) -> Matrices:
    """A 2-D array of complex64 seen as a matrix, without copying."""
    return as_matrices(array, OPERATOR, name, target, dtype="c64", batches=False, output=output)


def launch(handle: Handle, update: Update, prepared: Prepared | None = None) -> None:
    """Launch a checked update; see :func:`csyrk` for when the result is there.

    `prepared`: the launch to make where the matrices are used as they are; None: the handle's own for their sizes.
    """
    a, c, (alpha, alpha_array), (beta, beta_array), _, _ = update
    if c.rows == 0:
        return
    scalars_on_device = alpha_array is not None or beta_array is not None
    no_product = a.columns == 0 or (not scalars_on_device and alpha == 0)
    if no_product and not scalars_on_device and beta == 1:
        return
    if not handle.runtime.shares_host_memory and not (a.device and c.device):
        staged(handle, OPERATOR, update, ("a", "c"), launch)
        return
    asynchronous = a.device or c.device or scalars_on_device
    if prepared is None:
        prepared = _prepared(handle, update, 0 if no_product else a.columns, scalars_on_device)
    workspace = handle.workspace.reserve(prepared.workspace) if prepared.workspace else None
    first, last = c.span
    kept: list[Any] = []
    if not no_product:
        a = apart(handle, a, first, last, kept)
    set_scalars(prepared, alpha, beta)
    (alpha_address, alpha_kept), (beta_address, beta_kept) = (
        scalar_apart(handle, scalar, first, last) for scalar in (alpha_array, beta_array)
    )
    run(handle, prepared, a.address, c.address, alpha_address, beta_address, workspace, wait=not asynchronous)
    if asynchronous:
        keep_until_done(handle, (a.owner, c.owner), alpha_kept, beta_kept, *kept)
    elif kept:
        handle.stream.keep()  # keeps nothing more and lets the copies go


def set_scalars(prepared: Prepared, alpha: complex, beta: complex) -> None:
    """Of the next launch."""
    tiling = prepared.tiling
    tiling.alpha_re, tiling.alpha_im = alpha.real, alpha.imag
    tiling.beta_re, tiling.beta_im = beta.real, beta.imag


def _prepared(handle: Handle, update: Update, k: int, scalars_on_device: bool) -> Prepared:
    """The handle's launch for these sizes, whatever the scalars are."""
    a, c = update.a, update.c
    form = update.uplo + "NT"[a.by_columns != c.by_columns]
    return prepare(
        handle, OPERATOR, form, c.rows, k, "col" if c.by_columns else "row", a.ld, c.ld, 1.0, 1.0, update.algorithm,
        "device" if scalars_on_device else "host",
    )  # fmt: skip
