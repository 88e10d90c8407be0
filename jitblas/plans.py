"""Plans: a kernel compiled and tiled for one problem, for the cheapest repeated call."""

from __future__ import annotations

from typing import Any

from jitblas.arrays import as_vector, numpy_dtype, word_of
from jitblas.dispatch import SMALL_BYTES, fail
from jitblas.errors import ProblemSyntaxError, Status, StatusError
from jitblas.handle import Handle, default_handle
from jitblas.jit.kernels import Kernel, load
from jitblas.jit.specialization import Specialization, specialize
from jitblas.operators import OPERATORS
from jitblas.operators.axpy_ex import bytes_moved
from jitblas.problem import Problem


class Plan:
    """One AxpyEx problem, ready: `plan(alpha, x, y)` or, with the problem's own alpha, `plan(x, y)`.

    The arrays must be what the problem says: n elements of its dtype, at its increments. NumPy arrays of the planned
    layout take a short way in; anything else goes through the checks of :func:`jitblas.axpy_ex`. Used by one thread at
    a time.
    """

    def __init__(self, problem: Problem, exact: bool, handle: Handle) -> None:
        if problem["scalar"] != "host":
            raise ProblemSyntaxError(f"{problem}: plans take alpha from the host; scalar=device is for axpy_ex")
        self.problem = problem
        self.handle = handle
        profile = handle.runtime.profile()
        self.specialization: Specialization = specialize(problem, handle.target, exact, profile=profile)
        self.blocks, values = OPERATORS[problem.op].tiling(problem, profile)
        kernel = load(self.specialization)
        baked = {name for name, _ in self.specialization.baked}
        self._tiling: Any = kernel.tiling(**{name: value for name, value in values.items() if name not in baked})
        runtime, address = handle.runtime, handle.stream.address
        waiting = runtime.launch_stream(address, wait=True, small=True, overlapping=False)
        self._call = self._checked
        if runtime.shares_host_memory and problem["n"] > 1:
            self._call = self._compiled(kernel, waiting, small=bytes_moved(problem) < SMALL_BYTES) or self._checked

    def __call__(self, *arguments: Any) -> Any:
        """y := alpha * x + y; returns y, with the result there (DeviceArrays: asynchronous)."""
        if len(arguments) == 2:
            return self._call(self.problem["alpha"], *arguments)
        return self._call(*arguments)

    def _compiled(self, kernel: Kernel, stream: int, small: bool) -> Any:
        """The call in compiled code, None where there is no compiler for it."""
        from jitblas import launcher

        n, word = self.problem["n"], self.problem["dtype"]
        dtype = numpy_dtype(word)
        if word_of(dtype) != word:
            return None  # bfloat16 without ml_dtypes: no NumPy array can have the type
        arrays = [
            launcher.ArraySpec(dtype, (n,), (self.problem[inc] * dtype.itemsize,), written)
            for inc, written in (("incx", False), ("incy", True))
        ]
        return launcher.make(
            kernel.launch_packed, self.blocks, stream, self._tiling, "alpha", arrays, 1, small, self._checked
        )

    def _checked(self, *arguments: Any) -> Any:
        """The same through every check; called with a bare status, raise what it means."""
        from jitblas.blas import axpy_ex

        if len(arguments) == 1 and isinstance(arguments[0], int):
            fail(self.handle, arguments[0])
        if len(arguments) != 3:
            raise TypeError(f"a plan is called with (alpha, x, y) or (x, y), not with {len(arguments)} arguments")
        alpha, x, y = arguments
        for name, array in (("x", x), ("y", y)):
            vector = as_vector(array, "plan", name, self.handle.target)
            inc = self.problem[f"inc{name}"]
            if (vector.n, vector.dtype) != (self.problem["n"], self.problem["dtype"]) or (
                vector.n > 1 and vector.inc != inc
            ):
                raise StatusError(
                    Status.INVALID_VALUE,
                    "plan",
                    name,
                    f"{name} has {vector.n} elements of {vector.dtype}, {vector.inc} apart; the plan is for "
                    f"{self.problem}",
                )
        return axpy_ex(alpha, x, y, handle=self.handle)


def plan(problem: Problem | str, exact: bool = True, *, handle: Handle | None = None) -> Plan:
    """Compile and tile a problem once, for repeated calls.

    Parameters
    ----------
    problem : a problem or its line, such as "axpy_ex:n=1e6,dtype=bf16"
    exact : bake the sizes into the kernel
    handle : None: this thread's handle of the default target

    Examples
    --------
    >>> import numpy, jitblas
    >>> saxpy = jitblas.plan("axpy_ex:n=4")
    >>> saxpy(0.5, numpy.ones(4, "float32"), numpy.zeros(4, "float32"))
    array([0.5, 0.5, 0.5, 0.5], dtype=float32)
    """
    if isinstance(problem, str):
        problem = Problem.parse(problem)
    return Plan(problem, exact, default_handle() if handle is None else handle)
