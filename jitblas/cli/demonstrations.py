"""What `jitblas demo` calls: generated data for a problem, a call on it, and a check of the result against float64."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jitblas.arrays import array as device_array
from jitblas.arrays import numpy_dtype
from jitblas.blas.axpy_ex import axpy_ex
from jitblas.blas.cdotc import cdotc
from jitblas.blas.csyrk import csyrk
from jitblas.blas.sgemm_strided_batched import sgemm_strided_batched
from jitblas.errors import Status, StatusError
from jitblas.fft.transforms import fft, ifft
from jitblas.handle import Handle
from jitblas.problem import Problem

Array = NDArray[Any]

SEED_X, SEED_Y = 950, 3510

GATES = {"fp32": 2.0**-13, "fp16": 2.0**-10, "bf16": 2.0**-7}
"""Most mean relative error; the largest may be ten times as much."""

ROUNDING = {"fp32": 2.0**-24, "fp16": 2.0**-11, "bf16": 2.0**-8}
"""Half a unit in the last place, relative: the error of the one rounding at the store."""

SMALLEST = {"fp32": 2.0**-149, "fp16": 2.0**-24, "bf16": 2.0**-133}
"""Distance between subnormal numbers."""

SENTINEL = 7.0
"""Fills the holes between strided elements; it must be there afterwards."""


class Demonstration(NamedTuple):
    """A call on data of its own, which returns when the result is there.

    `error`: (largest error, relative to what is added up, and whether every bound holds) after exactly one call.
    """

    call: Callable[[], Any]
    error: Callable[[], tuple[float, bool]]


def demonstration(problem: Problem, handle: Handle) -> Demonstration:
    return _DEMONSTRATIONS[problem.op](problem, handle)


def _axpy(problem: Problem, handle: Handle) -> Demonstration:
    dtype = problem.value("dtype")
    x = _strided(_normal(SEED_X, problem.value("n"), dtype), problem.value("incx"))
    y = _strided(_normal(SEED_Y, problem.value("n"), dtype), problem.value("incy"))
    before = y.copy()
    call, result = _prepare(problem, handle, x, y)
    return Demonstration(call, lambda: check(problem, x, before, result()))


def _cdotc(problem: Problem, handle: Handle) -> Demonstration:
    x, y = (_complex(seed, problem.value("n")) for seed in (SEED_X, SEED_Y))
    got: list[complex] = []

    def error() -> tuple[float, bool]:
        exact = np.vdot(x.astype(np.complex128), y.astype(np.complex128))
        size = float((np.abs(x) * np.abs(y)).sum())
        return _worst(np.array(got[-1:]), np.array([exact]), np.array([size]), 8)

    return Demonstration(lambda: got.append(cdotc(x, y, handle=handle)), error)


def _csyrk(problem: Problem, handle: Handle) -> Demonstration:
    n, k = problem.value("n"), problem.value("k")
    a, c = _complex(SEED_X, n, k), _complex(SEED_Y, n, n)
    alpha, beta = complex(problem.value("alpha")), complex(problem.value("beta"))
    before = c.astype(np.complex128)

    def error() -> tuple[float, bool]:
        wide, size = a.astype(np.complex128), np.abs(a).astype(np.float64)
        bounds = abs(alpha) * (size @ size.T) + abs(beta) * np.abs(before)
        lower = np.tril_indices(n)
        untouched = np.array_equal(np.triu(c, 1), np.triu(before, 1))
        exact = alpha * (wide @ wide.T) + beta * before
        worst, good = _worst(c[lower], exact[lower], bounds[lower], 8 + k**0.5)
        return worst, good and untouched

    return Demonstration(lambda: csyrk(a, c, alpha=alpha, beta=beta, handle=handle), error)


def _product(problem: Problem, handle: Handle) -> Demonstration:
    m, n, k, batch = (problem.value(size) for size in ("m", "n", "k", "batch"))
    trans, alpha, beta = problem.value("trans"), problem.value("alpha"), problem.value("beta")
    shapes = ((m, k) if trans[0] == "N" else (k, m), (k, n) if trans[1] == "N" else (n, k), (m, n))
    a, b, c = (
        np.random.default_rng(seed).standard_normal((batch, *shape), np.float32)
        for seed, shape in zip((SEED_X, SEED_Y, SEED_Y + 1), shapes, strict=True)
    )
    before = c.copy()

    def call() -> None:
        sgemm_strided_batched(a, b, c, alpha=alpha, beta=beta, transa=trans[0], transb=trans[1], handle=handle)

    def error() -> tuple[float, bool]:
        left = (a if trans[0] == "N" else a.transpose(0, 2, 1)).astype(np.float64)
        right = (b if trans[1] == "N" else b.transpose(0, 2, 1)).astype(np.float64)
        size = abs(alpha) * (np.abs(left) @ np.abs(right)) + abs(beta) * np.abs(before)
        return _worst(c, alpha * (left @ right) + beta * before, size, 8 + k**0.5)

    return Demonstration(call, error)


def _transform(problem: Problem, handle: Handle) -> Demonstration:
    n, batch, kind = problem.value("n"), problem.value("batch"), numpy_dtype(problem.value("dtype"))
    inverse = problem.value("dir") == "inverse"
    x = _complex(SEED_X, batch, n).astype(kind)
    out = np.empty_like(x)

    def error() -> tuple[float, bool]:
        # NumPy's own error counts as ours where it computes in the same precision.
        exact = (np.fft.ifft if inverse else np.fft.fft)(x.astype(np.complex128))
        error = float(np.linalg.norm(out - exact) / np.linalg.norm(exact))
        return error, error <= (2 if kind == np.complex128 else 1) * np.finfo(kind).eps / 2 * max(np.log2(n), 1) ** 0.5

    return Demonstration(lambda: (ifft if inverse else fft)(x, out=out, handle=handle), error)


_DEMONSTRATIONS: dict[str, Callable[[Problem, Handle], Demonstration]] = {
    "axpy_ex": _axpy,
    "cdotc": _cdotc,
    "csyrk": _csyrk,
    "fft": _transform,
    "sgemm_strided_batched": _product,
}


def _worst(got: Array, exact: Array, size: Array, bound: float) -> tuple[float, bool]:
    """(largest error relative to `size`, whether every component is within `bound` roundings of that)."""
    off = got - exact
    error = np.maximum(np.abs(off.real), np.abs(off.imag)) / size
    return float(error.max()), bool((error <= bound * 2.0**-24).all())


def _complex(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).standard_normal((*shape, 2), np.float32).view(np.complex64)[..., 0]


def _prepare(problem: Problem, handle: Handle, x: Array, y: Array) -> tuple[Callable[[], None], Callable[[], Array]]:
    """(a call that returns when y is updated, what gives all of y's memory afterwards).

    NumPy arrays where kernels can reach them: through axpy_ex, or for BF16, which NumPy lacks, as bits
    through the aclblas level. Elsewhere copies in device memory.
    """
    n, dtype, incx, incy, alpha = (problem.value(name) for name in ("n", "dtype", "incx", "incy", "alpha"))
    if not handle.runtime.shares_host_memory:
        dx, dy = (device_array(_typed(memory, dtype), dtype, target=handle.target) for memory in (x, y))

        def on_device() -> None:
            axpy_ex(alpha, dx[::incx], dy[::incy], handle=handle)
            handle.synchronize()

        return on_device, lambda: dy.numpy().view(y.dtype)

    def on_host() -> None:
        if dtype == "bf16":
            _axpy_bits(handle, n, alpha, x, incx, y, incy)
        else:
            axpy_ex(alpha, x[::incx], y[::incy], handle=handle)

    return on_host, lambda: y


def _axpy_bits(handle: Handle, n: int, alpha: float, x: Array, incx: int, y: Array, incy: int) -> None:
    from jitblas import aclblas

    factor = np.array([alpha], np.float32)
    bf16, fp32 = aclblas.ACL_BF16, aclblas.ACL_FLOAT
    status = aclblas.aclblasAxpyEx(handle, n, factor, fp32, x, bf16, incx, y, bf16, incy, fp32)
    if status != Status.SUCCESS:
        raise StatusError(status, "axpy_ex", None, aclblas.last_error())
    handle.synchronize()


def _typed(array: Array, dtype: str) -> Array:
    """BF16 bits as the type that jitblas.array takes them for: ml_dtypes' if that is in use."""
    ml_dtypes = sys.modules.get("ml_dtypes")
    return array.view(ml_dtypes.bfloat16) if dtype == "bf16" and ml_dtypes is not None else array


def _normal(seed: int, n: int, dtype: str) -> Array:
    """Normally distributed numbers of a type; BF16 as bits."""
    values = np.random.default_rng(seed).standard_normal(n, np.float32)
    if dtype == "fp32":
        return values
    return values.astype(np.float16) if dtype == "fp16" else to_bf16(values)


def _strided(values: Array, inc: int) -> Array:
    """Memory with `values` as the elements of a BLAS vector of increment `inc`, and sentinels in between."""
    hole = to_bf16(np.array([SENTINEL], np.float32))[0] if values.dtype == np.uint16 else SENTINEL
    memory = np.full((len(values) - 1) * abs(inc) + 1, hole, values.dtype)
    memory[::inc] = values
    return memory


def check(problem: Problem, x: Array, before: Array, after: Array) -> tuple[float, bool]:
    """(largest relative error, whether every bound holds), against float64.

    The gate on mean and largest relative error, and per element what FP32 arithmetic with one rounding at the
    store allows: |error| <= 2^-23 * (|alpha x| + |ref|) + half a unit in the last place of ref. What lies
    between the elements must be as it was.
    """
    dtype = problem.value("dtype")
    (vx, vy, out) = (
        to_float64(memory)[::inc]
        for memory, inc in ((x, problem.value("incx")), (before, problem.value("incy")), (after, problem.value("incy")))
    )
    product = float(np.float32(problem.value("alpha"))) * vx
    reference = product + vy
    error = np.abs(out - reference)
    relative = error / (np.abs(reference) + 2.0**-14)
    gate = GATES[dtype]
    bound = 2.0**-23 * (np.abs(product) + np.abs(reference)) + ROUNDING[dtype] * np.abs(reference) + SMALLEST[dtype]
    holes = np.ones(len(before), bool)
    holes[:: problem.value("incy")] = False
    untouched = np.array_equal(before[holes], after[holes])
    within = relative.mean() < gate and relative.max() < 10 * gate and bool((error <= bound).all())
    return float(relative.max()), bool(within and untouched)


def to_bf16(values: Array) -> Array:
    """FP32 to the bits of BF16, to nearest even (finite numbers)."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def to_float64(memory: Array) -> Array:
    """Numbers of any of the three types; 16-bit integers are the bits of BF16."""
    if memory.dtype == np.uint16:
        memory = (memory.astype(np.uint32) << 16).view(np.float32)
    return memory.astype(np.float64)
