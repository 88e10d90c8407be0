"""Arrays for a problem, and whether a call leaves the right result in them."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from jitblas.arrays import aligned_empty
from jitblas.bench.measure import Call
from jitblas.errors import Error
from jitblas.operators import axpy_ex, cdotc, csyrk, fft, sgemm_strided_batched
from jitblas.operators.base import DENSE
from jitblas.problem import Problem, expand

Array = np.ndarray[Any, Any]

SENTINEL = 77.0
"""What lies between strided elements, and must still lie there afterwards."""

_ROUNDING = {"fp32": (2.0**-24, 2.0**-149), "fp16": (2.0**-11, 2.0**-24), "bf16": (2.0**-8, 2.0**-133)}
"""Type -> (unit roundoff, smallest number above 0)."""


class Data(Protocol):
    """The arrays of one problem, which all contestants share, so that none has the warmer ones."""

    problem: Problem
    work: int
    """Bytes of elements that are moved (whole cache lines may be more), or floating-point operations."""
    unit: str
    """Of work per nanosecond: "GB/s" or "Gflop/s"."""

    def reset(self) -> None:
        """Outputs as they were before the first call."""

    def fault(self, call: Call) -> str | None:
        """What is wrong with the result of one call on fresh arrays; None: nothing."""


class AxpyData:
    """x and y of an AxpyEx problem.

    Attributes
    ----------
    x_memory, y_memory : 1-D, contiguous, from the first element to the last, whatever the increments
    x, y : the vectors in logical order, as NumPy shows them
    alpha : exactly representable in FP32
    """

    unit = "GB/s"

    def __init__(self, problem: Problem) -> None:
        if problem.value("n") < 1 or problem.value("incx") == 0 or problem.value("incy") == 0:
            raise Error(f"{problem}: n of at least 1 and increments other than 0 are needed to measure anything")
        self.problem = problem
        self.n: int = problem.value("n")
        self.alpha = float(np.float32(problem.value("alpha")))
        self.work = axpy_ex.bytes_moved(problem)
        self.dtype = numpy_dtype(problem.value("dtype"))
        self.x_memory = self._memory(problem.value("incx"), seed=1)
        self.y_memory = self._memory(problem.value("incy"), seed=2)
        self._y_before = self.y_memory.copy()
        # From the far end for a negative increment, as BLAS has it.
        self.x = self.x_memory[:: problem.value("incx")]
        self.y = self.y_memory[:: problem.value("incy")]

    def _memory(self, inc: int, seed: int) -> Array:
        memory = np.full((self.n - 1) * abs(inc) + 1, SENTINEL, self.dtype)
        values = np.random.default_rng(seed).random(self.n, np.float32)
        memory[:: abs(inc)] = (2 * values - 1).astype(self.dtype)
        return memory

    def reset(self) -> None:
        """y as it was before the first call."""
        self.y_memory[...] = self._y_before

    @functools.cached_property
    def _expected(self) -> tuple[Array, Array]:
        """Result in float64, and how far from it each element may be.

        Four roundings: of alpha to the element type, of the product, of the sum, and one for luck. That is tight enough
        to notice any element that was left out, and lets pass whoever rounds more often than we do.
        """
        product = self.alpha * self.x.astype(np.float64)
        before = self._y_before[:: self.problem.value("incy")].astype(np.float64)
        unit, smallest = _ROUNDING[self.problem.value("dtype")]
        return product + before, 4 * (unit * (np.abs(product) + np.abs(before)) + smallest)

    def fault(self, call: Call) -> str | None:
        """What is wrong with the result of one call on fresh arrays; None: nothing."""
        _, raised = _outcome(self, call)
        if raised is not None:
            return raised
        expected, bound = self._expected
        got = self.y.astype(np.float64)
        wrong = ~(np.abs(got - expected) <= bound)  # so that NaN is wrong
        if wrong.any():
            first = int(np.argmax(wrong))
            return (
                f"wrong result: {int(wrong.sum())} of {self.n} elements; element {first} is {got[first]:.9g}, "
                f"{expected[first]:.9g} is right"
            )
        bits = f"u{self.dtype.itemsize}"
        changed = self.y_memory.view(bits) != self._y_before.view(bits)
        changed[:: abs(self.problem.value("incy"))] = False
        return "wrote between the elements of y" if changed.any() else None


class DotData:
    """x and y of a Cdotc problem.

    Attributes
    ----------
    x_memory, y_memory : 1-D, contiguous, from the first element to the last, whatever the increments
    x, y : the vectors in logical order, as NumPy shows them
    result : one element, where contestants that can put the number
    """

    unit = "GB/s"

    def __init__(self, problem: Problem) -> None:
        if problem.value("n") < 1 or problem.value("incx") == 0 or problem.value("incy") == 0:
            raise Error(f"{problem}: n of at least 1 and increments other than 0 are needed to measure anything")
        self.problem = problem
        self.n: int = problem.value("n")
        self.work = cdotc.bytes_moved(problem)
        self.x_memory, self.y_memory = (
            self._memory(problem.value(inc), seed) for seed, inc in enumerate(("incx", "incy"))
        )
        self.x = self.x_memory[:: problem.value("incx")]
        self.y = self.y_memory[:: problem.value("incy")]
        self.result = np.empty(1, np.complex64)

    def _memory(self, inc: int, seed: int) -> Array:
        memory = np.full((self.n - 1) * abs(inc) + 1, SENTINEL, np.complex64)
        memory[:: abs(inc)] = _complex_uniform(seed, (self.n,))
        return memory

    def reset(self) -> None:
        self.result[0] = np.nan

    @functools.cached_property
    def _expected(self) -> tuple[complex, float]:
        """Result in float64, and how far from it each component may be.

        Twice what ours are held to, and what a plain sum may lose: peers are compared for speed.
        """
        x, y = self.x.astype(np.complex128), self.y.astype(np.complex128)
        size = float((np.abs(x) * np.abs(y)).sum())
        return complex(np.vdot(x, y)), (16 + self.n**0.5) * 2.0**-24 * size

    def fault(self, call: Call) -> str | None:
        """What is wrong with the number that a call returns or leaves in `result`; None: nothing."""
        returned, raised = _outcome(self, call)
        if raised is not None:
            return raised
        got = complex(returned if np.isnan(self.result[0]) else self.result[0])
        expected, bound = self._expected
        if max(abs(got.real - expected.real), abs(got.imag - expected.imag)) <= bound:
            return None
        return f"wrong result: {got:.9g}, {expected:.9g} is right"


class GemmData:
    """Operands of a SgemmStridedBatched problem in row order.

    Attributes
    ----------
    a, b, c : as they are stored, contiguous: with "T" a is (batch, k, m)
    left, right : op(a) and op(b), views
    """

    unit = "Gflop/s"

    def __init__(self, problem: Problem) -> None:
        values = dict(problem.values)
        dense = all(values[name] == DENSE for name in ("lda", "ldb", "ldc"))
        strides = all(values[name] == DENSE for name in ("stridea", "strideb", "stridec"))
        sizes = [problem.value(name) for name in ("m", "n", "k", "batch")]
        if not (dense and strides) or problem.value("order") != "row" or min(sizes) < 1:
            raise Error(f"{problem}: contiguous matrices in row order, none of them empty, are what is measured")
        self.problem = problem
        m, n, k, batch = sizes
        self.trans: str = problem.value("trans")
        self.alpha, self.beta = (float(np.float32(problem.value(name))) for name in ("alpha", "beta"))
        self.work = sgemm_strided_batched.flops(problem)
        shapes = ((m, k) if self.trans[0] == "N" else (k, m), (k, n) if self.trans[1] == "N" else (n, k), (m, n))
        self.a, self.b, self.c = (
            np.random.default_rng(seed).random((batch, *shape), np.float32) - np.float32(0.5)
            for seed, shape in enumerate(shapes)
        )
        self._before = self.c.copy()
        self.left = self.a.transpose(0, 2, 1) if self.trans[0] == "T" else self.a
        self.right = self.b.transpose(0, 2, 1) if self.trans[1] == "T" else self.b

    def reset(self) -> None:
        self.c[...] = self._before

    @functools.cached_property
    def _expected(self) -> tuple[Array, Array]:
        """Result in float64, and how far from it each element may be: (8 + sqrt k) roundings of the sum of sizes."""
        left, right, before = (matrix.astype(np.float64) for matrix in (self.left, self.right, self._before))
        size = abs(self.alpha) * (np.abs(left) @ np.abs(right)) + abs(self.beta) * np.abs(before)
        bound = (8 + left.shape[2] ** 0.5) * 2.0**-24 * size
        return self.alpha * (left @ right) + self.beta * before, bound

    def fault(self, call: Call) -> str | None:
        """What is wrong with the result of one call on fresh arrays; None: nothing."""
        _, raised = _outcome(self, call)
        if raised is not None:
            return raised
        expected, bound = self._expected
        wrong = ~(np.abs(self.c - expected) <= bound)  # so that NaN is wrong
        if not wrong.any():
            return None
        first = tuple(int(index[0]) for index in np.nonzero(wrong))
        return (
            f"wrong result: {int(wrong.sum())} of {wrong.size} elements; {first} is {self.c[first]:.9g}, "
            f"{expected[first]:.9g} is right"
        )


class SyrkData:
    """Matrices of a Csyrk problem, dense, in its memory order.

    Attributes
    ----------
    a, c : as the arrays are; with "LT" and "UT" a is (k, n)
    fortran_a, fortran_c : the same memory as column-major matrices
    trans, lower : of the column-major problem that they are of
    """

    unit = "Gflop/s"

    def __init__(self, problem: Problem) -> None:
        n, k = problem.value("n"), problem.value("k")
        if not problem.value("lda") == problem.value("ldc") == DENSE or min(n, k) < 1:
            raise Error(f"{problem}: dense matrices, none of them empty, are what is measured")
        self.problem = problem
        self.work = csyrk.flops(problem)
        self.alpha, self.beta = (complex(np.complex64(problem.value(name))) for name in ("alpha", "beta"))
        form, by_columns = problem.value("form"), problem.value("order") == "col"
        order: Any = "F" if by_columns else "C"
        self.a, self.c = (
            np.array(_complex_uniform(seed, shape), order=order)
            for seed, shape in enumerate(((n, k) if form[1] == "N" else (k, n), (n, n)))
        )
        self._before = self.c.copy(order=order)
        self.fortran_a, self.fortran_c = (self.a, self.c) if by_columns else (self.a.T, self.c.T)
        self.trans, self.lower = (form[1] == "T") == by_columns, (form[0] == "L") == by_columns
        self._triangle = np.tril_indices(n) if form[0] == "L" else np.triu_indices(n)

    def reset(self) -> None:
        self.c[...] = self._before

    @functools.cached_property
    def _expected(self) -> tuple[Array, Array]:
        """The triangle in float64, and how far from it each component may be."""
        left = self.a if self.problem.value("form")[1] == "N" else self.a.T
        wide, size = left.astype(np.complex128), np.abs(left).astype(np.float64)
        before = self._before.astype(np.complex128)
        exact = self.alpha * (wide @ wide.T) + self.beta * before
        bound = abs(self.alpha) * (size @ size.T) + abs(self.beta) * np.abs(before)
        bound *= (8 + left.shape[1] ** 0.5) * 2.0**-24
        return exact[self._triangle], bound[self._triangle]

    def fault(self, call: Call) -> str | None:
        """What is wrong with the triangle after one call on fresh arrays; None: nothing."""
        _, raised = _outcome(self, call)
        if raised is not None:
            return raised
        expected, bound = self._expected
        got = self.c[self._triangle]
        off = got - expected
        wrong = ~(np.maximum(np.abs(off.real), np.abs(off.imag)) <= bound)
        if not wrong.any():
            return None
        first = int(np.nonzero(wrong)[0][0])
        place = tuple(int(index[first]) for index in self._triangle)
        return (
            f"wrong result: {int(wrong.sum())} of {wrong.size} elements; {place} is {got[first]:.9g}, "
            f"{expected[first]:.9g} is right"
        )


class FftData:
    """Points of an Fft problem and where their transforms go.

    Attributes
    ----------
    x, out : of shape (n,) or, with more than one batch, (batch, n), contiguous from a cache line on
    function, norm : "fft" or "ifft", and the name of its scaling, as libraries that go by NumPy have them
    scale : what those multiply by that know no scaling
    """

    unit = "Gflop/s"

    def __init__(self, problem: Problem) -> None:
        n, batch = problem.value("n"), problem.value("batch")
        if n < 2 or batch < 1:
            raise Error(f"{problem}: n of at least 2 and a batch of at least 1 are needed to measure anything")
        self.problem = problem
        self.work = fft.flops(problem)
        self.function = "fft" if problem.value("dir") == "forward" else "ifft"
        self.norm: str = problem.value("norm")
        self.scale = fft.scale(problem)
        shape = (n,) if batch == 1 else (batch, n)
        real = np.float32 if problem.value("dtype") == "c64" else np.float64
        values = _complex_uniform(0, shape, real)
        self.x, self.out = aligned_empty(shape, values.dtype), aligned_empty(shape, values.dtype)
        self.x[...] = values

    def reset(self) -> None:
        self.out[...] = np.nan

    @functools.cached_property
    def _expected(self) -> tuple[Array, float]:
        """Result in higher precision, and the relative L2 error that ours are held to: eps sqrt(log2 n).

        Before NumPy 2 only SciPy transforms wider numbers than COMPLEX128; without it the reference is no better than
        what it is compared with.
        """
        wide = np.complex128 if self.x.dtype == np.complex64 else np.clongdouble
        module = import_module("scipy.fft" if find_spec("scipy") is not None else "numpy.fft")
        exact: Array = getattr(module, self.function)(self.x.astype(wide), norm=self.norm)
        bound = float(np.finfo(self.x.dtype).eps) / 2 * math.log2(self.x.shape[-1]) ** 0.5
        return exact, bound if exact.dtype == wide else 2 * bound

    def fault(self, call: Call) -> str | None:
        """What is wrong with the result that a call returns or leaves in `out`; None: nothing."""
        returned, raised = _outcome(self, call)
        if raised is not None:
            return raised
        expected, bound = self._expected
        off = (returned if isinstance(returned, np.ndarray) else self.out) - expected
        error, bound = float(np.linalg.norm(off) / np.linalg.norm(expected)), call.leeway * bound
        if error <= bound:
            return None
        transform, point = divmod(int(np.argmax(np.abs(off))), off.shape[-1])
        return (
            f"wrong result: relative error {error:.3g}, at most {bound:.3g} is right; point {point} of transform "
            f"{transform} is furthest off"
        )


def _outcome(data: Data, call: Call) -> tuple[Any, str | None]:
    """What one call on fresh arrays returns, or what it raised."""
    data.reset()
    try:
        return call.once(), None
    except Exception as error:  # whatever a library raises, it gets no figure and the others go on
        return None, f"raised {type(error).__name__}: {error}"


def _complex_uniform(seed: int, shape: tuple[int, ...], real: type[np.floating[Any]] = np.float32) -> Array:
    parts: Array = np.random.default_rng(seed).random((*shape, 2), real) - real(0.5)
    return parts.view(np.result_type(real, np.complex64))[..., 0]


DATA: dict[str, Callable[[Problem], Data]] = {
    "axpy_ex": AxpyData,
    "cdotc": DotData,
    "csyrk": SyrkData,
    "fft": FftData,
    "sgemm_strided_batched": GemmData,
}
"""Operator -> its arrays."""


def make_data(problem: Problem) -> Data:
    """Arrays of a problem; the same values every time."""
    return DATA[problem.op](problem)


def numpy_dtype(word: str) -> np.dtype[Any]:
    """NumPy's type for a problem line's; bf16 is that of ml_dtypes."""
    if word != "bf16":
        return np.dtype({"fp32": np.float32, "fp16": np.float16}[word])
    try:
        bfloat16: type[np.generic] = import_module("ml_dtypes").bfloat16
    except ImportError:
        raise Error("measuring bf16 needs NumPy's type for it: pip install ml_dtypes") from None
    return np.dtype(bfloat16)


def parse_lines(lines: list[str]) -> list[Problem]:
    """Problems of lines with ranges, in order."""
    return [Problem.parse(line) for text in lines for line in expand(text)]


def read_file(path: Path) -> list[str]:
    """Problem lines of a file: one per line, `#` starts a comment."""
    lines = (line.partition("#")[0].strip() for line in path.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line]
