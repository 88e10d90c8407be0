"""`jitblas demo`: every operator once through compile, store, launch, and a check against float64."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jitblas import config
from jitblas.arrays import array as device_array
from jitblas.blas.axpy_ex import axpy_ex
from jitblas.blas.sgemm_strided_batched import sgemm_strided_batched
from jitblas.cli.show import stored
from jitblas.errors import CompilerNotFound, Status, StatusError
from jitblas.handle import Handle
from jitblas.hardware import TARGETS
from jitblas.jit import artifacts, kernels
from jitblas.jit.kernels import default_target
from jitblas.jit.specialization import Specialization, specialize
from jitblas.operators.axpy_ex import DTYPES, bytes_moved
from jitblas.operators.sgemm_strided_batched import flops
from jitblas.problem import Problem

Array = NDArray[Any]

SEED_X, SEED_Y = 950, 3510
ALPHA = 0.75
REPEATS = 7
"""Calls whose fastest is the one that GB/s are computed from."""

INCREMENTS = ((1, 1), (2, -3))
PRODUCTS = (
    "NN,m=8,n=8,k=8,batch=1000",
    "NT,m=256,n=256,k=256,batch=4",
    "TN,m=100,n=90,k=80,batch=10,alpha=0.75,beta=0.5",
)
"""One for each kernel: narrow, direct, general."""

GATES = {"fp32": 2.0**-13, "fp16": 2.0**-10, "bf16": 2.0**-7}
"""Most mean relative error; the largest may be ten times as much."""

ROUNDING = {"fp32": 2.0**-24, "fp16": 2.0**-11, "bf16": 2.0**-8}
"""Half a unit in the last place, relative: the error of the one rounding at the store."""

SMALLEST = {"fp32": 2.0**-149, "fp16": 2.0**-24, "bf16": 2.0**-133}
"""Distance between subnormal numbers."""

SENTINEL = 7.0
"""Fills the holes between strided elements; it must be there afterwards."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--target", choices=TARGETS, help="default: the target that calls would use")
    parser.add_argument("-n", type=_size, default=1_000_003, help="elements of a vector (default: %(default)s)")


def _size(text: str) -> int:
    number = float(text)
    if not 1 <= number <= 1e9 or number != int(number):
        raise argparse.ArgumentTypeError(f"{text}: a whole number from 1 to 1e9 is accepted")
    return int(number)


def run(arguments: argparse.Namespace) -> int:
    artifacts.announce = True
    target = arguments.target or default_target()
    print(f"target {target} · {_compiler(target)} · {config.threads()} threads · store {artifacts.store().root}")
    with Handle(target) as handle:
        print(f"\n{HEADING}")
        good = True
        for row in _rows(handle, arguments.n):
            good = good and row.ok
            print(row, flush=True)
    print("\nall results agree with NumPy" if good else "\nRESULTS ARE WRONG where ok says NO")
    return 0 if good else 1


def _compiler(target: str) -> str:
    try:
        return artifacts.find_toolchain(target).version
    except CompilerNotFound:
        return "no compiler (the store must have every kernel)"


HEADING = (
    f"{'operator':<21} {'of':<21} {'1st call ms':>12} {'from':<8} "
    f"{'2nd call ms':>12} {'from':<8} {'rate':>12} {'max error':>9}  ok"
)


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    problem: Problem
    first_ms: float
    first_from: str
    second_ms: float
    second_from: str
    rate: str
    error: float
    ok: bool

    def __str__(self) -> str:
        return (
            f"{self.problem.op:<21} {_sizes(self.problem):<21} "
            f"{self.first_ms:>12.2f} {self.first_from:<8} {self.second_ms:>12.2f} {self.second_from:<8} "
            f"{self.rate:>12} {self.error:>9.1e}  {'yes' if self.ok else 'NO'}"
        )


def _sizes(problem: Problem) -> str:
    value = dict(problem.values)
    if problem.op == "axpy_ex":
        inc = f"{value['incx']},{value['incy']}"
        return f"{value['dtype']:<5} {inc:<5} {value['n']:>9}"
    return f"{value['trans']} {value['m']}x{value['n']}x{value['k']} {value['batch']:>4}"


def _rows(handle: Handle, n: int) -> Iterator[Row]:
    yield from _axpy_rows(handle, n)
    for line in PRODUCTS:
        yield _product(Problem.parse(f"sgemm_strided_batched:{line}"), handle)


def _axpy_rows(handle: Handle, n: int) -> Iterator[Row]:
    for incx, incy in INCREMENTS:
        for dtype in DTYPES:
            problem = Problem.make("axpy_ex", {"n": n, "dtype": dtype, "incx": incx, "incy": incy, "alpha": ALPHA})
            yield _axpy(problem, handle)


def _axpy(problem: Problem, handle: Handle) -> Row:
    """Two timed calls on the same data, both checked, then more for the rate."""
    dtype, incx, incy = problem.value("dtype"), problem.value("incx"), problem.value("incy")
    x = _strided(_normal(SEED_X, problem.value("n"), dtype), incx)
    before = _strided(_normal(SEED_Y, problem.value("n"), dtype), incy)
    chosen = specialize(problem, handle.target, profile=handle.runtime.profile())
    times, sources, errors, good = [], [], [], True
    for _ in range(2):
        sources.append(_source(chosen))
        call, result = _prepare(problem, handle, x, before.copy())
        times.append(_timed(call))
        error, ok = check(problem, x, before, result())
        errors.append(error)
        good = good and ok
    call, _ = _prepare(problem, handle, x, before.copy())
    best = min(_timed(call) for _ in range(REPEATS))
    rate = f"{bytes_moved(problem) / best / 1e9:.1f} GB/s"
    first, second = (seconds * 1e3 for seconds in times)
    return Row(problem, first, sources[0], second, sources[1], rate, max(errors), good)


def _product(problem: Problem, handle: Handle) -> Row:
    """The same for a batched product."""
    m, n, k, batch = (problem.value(size) for size in ("m", "n", "k", "batch"))
    trans, alpha, beta = problem.value("trans"), problem.value("alpha"), problem.value("beta")
    shapes = ((m, k) if trans[0] == "N" else (k, m), (k, n) if trans[1] == "N" else (n, k), (m, n))
    a, b, before = (
        np.random.default_rng(seed).standard_normal((batch, *shape), np.float32)
        for seed, shape in zip((SEED_X, SEED_Y, SEED_Y + 1), shapes, strict=True)
    )
    c = before.copy()

    def call() -> None:
        sgemm_strided_batched(a, b, c, alpha=alpha, beta=beta, transa=trans[0], transb=trans[1], handle=handle)

    chosen = specialize(problem, handle.target, profile=handle.runtime.profile())
    left = (a if trans[0] == "N" else a.transpose(0, 2, 1)).astype(np.float64)
    right = (b if trans[1] == "N" else b.transpose(0, 2, 1)).astype(np.float64)
    reference = alpha * (left @ right) + beta * before
    size = abs(alpha) * (np.abs(left) @ np.abs(right)) + abs(beta) * np.abs(before)
    bound = (8 + k**0.5) * 2.0**-24 * size
    times, sources, errors, good = [], [], [], True
    for _ in range(2):
        c[...] = before
        sources.append(_source(chosen))
        times.append(_timed(call) * 1e3)
        error = np.abs(c - reference)
        errors.append(float((error / size).max()))
        good = good and bool((error <= bound).all())
    best = min(_timed(call) for _ in range(REPEATS))
    rate = f"{flops(problem) / best / 1e9:.1f} Gflop/s"
    return Row(problem, times[0], sources[0], times[1], sources[1], rate, max(errors), good)


def _source(chosen: Specialization) -> str:
    """Where a call would have its kernel from."""
    if chosen in kernels._kernels:
        return "memory"
    return "disk" if stored(chosen) else "compiler"


def _timed(call: Callable[[], None]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def _prepare(problem: Problem, handle: Handle, x: Array, y: Array) -> tuple[Callable[[], None], Callable[[], Array]]:
    """(a call that returns when y is updated, what gives all of y's memory afterwards).

    NumPy arrays where kernels can reach them: through axpy_ex, or for BF16, which NumPy lacks, as bits
    through the aclblas level. Elsewhere copies in device memory.
    """
    n, dtype, incx, incy = (problem.value(name) for name in ("n", "dtype", "incx", "incy"))
    if not handle.runtime.shares_host_memory:
        dx, dy = (device_array(_typed(memory, dtype), dtype, target=handle.target) for memory in (x, y))

        def on_device() -> None:
            axpy_ex(ALPHA, dx[::incx], dy[::incy], handle=handle)
            handle.synchronize()

        return on_device, lambda: dy.numpy().view(y.dtype)

    def on_host() -> None:
        if dtype == "bf16":
            _axpy_bits(handle, n, x, incx, y, incy)
        else:
            axpy_ex(ALPHA, x[::incx], y[::incy], handle=handle)

    return on_host, lambda: y


def _axpy_bits(handle: Handle, n: int, x: Array, incx: int, y: Array, incy: int) -> None:
    from jitblas import aclblas

    alpha = np.array([ALPHA], np.float32)
    bf16, fp32 = aclblas.ACL_BF16, aclblas.ACL_FLOAT
    status = aclblas.aclblasAxpyEx(handle, n, alpha, fp32, x, bf16, incx, y, bf16, incy, fp32)
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
