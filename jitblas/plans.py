"""Plans: a kernel compiled and tiled for one problem, for the cheapest repeated call."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from jitblas.arrays import as_vector, numpy_dtype, word_of
from jitblas.blas import launch_axpy_ex
from jitblas.dispatch import QUICK_BYTES, SMALL_BYTES, Prepared, fail
from jitblas.errors import ProblemSyntaxError, Status, StatusError
from jitblas.handle import Handle, Unique, default_handle
from jitblas.jit.kernels import load
from jitblas.jit.specialization import Specialization, specialize
from jitblas.operators import OPERATORS
from jitblas.problem import Problem
from jitblas.runtime.host import HostRuntime


class Plan(Unique):
    """One AxpyEx problem, ready: `plan(alpha, x, y)` or, with the problem's own alpha, `plan(x, y)`.

    The arrays must be what the problem says: n elements of its dtype, at its increments. NumPy arrays on the host take
    a short way in, without Python code; anything else goes through the checks of :func:`jitblas.axpy_ex`, whose results
    are the same. Used by one thread at a time, like its handle.
    """

    def __init__(self, problem: Problem, exact: bool, handle: Handle) -> None:
        if problem.value("scalar") != "host":
            raise ProblemSyntaxError(f"{problem}: plans take alpha from the host; scalar=device is for axpy_ex")
        self.problem = problem
        self.handle = handle
        profile = handle.runtime.profile()
        self.specialization: Specialization = specialize(problem, handle.target, exact, profile=profile)
        operator = OPERATORS[problem.op]
        blocks, values = operator.tiling(problem, profile)
        self._bytes = operator.bytes_moved(problem)
        baked = {name for name, _ in self.specialization.baked}
        self._kernel = load(self.specialization)
        tiling = self._kernel.tiling(**{name: value for name, value in values.items() if name not in baked})
        self._prepared = Prepared(self._kernel.launch, blocks, tiling, self._bytes < SMALL_BYTES)
        self._call: Callable[..., Any] = self._checked
        handle.plans.add(self)
        self.follow_handle()

    def __call__(self, *arguments: Any) -> Any:
        """y := alpha * x + y; returns y, with the result there (DeviceArrays: asynchronous)."""
        if len(arguments) == 3:
            return self._call(*arguments)
        if len(arguments) == 2:
            return self._call(self.problem.value("alpha"), *arguments)
        raise TypeError(f"a plan is called with (alpha, x, y) or (x, y), not with {len(arguments)} arguments")

    def follow_handle(self) -> None:
        """Make the short way for the stream that the handle has now; a handle that was destroyed has none."""
        self._call = self._checked
        if not self.handle.destroyed and self.problem.value("n") > 1:
            self._call = self._compiled() or self._checked

    def _compiled(self) -> Callable[..., Any] | None:
        """The call in compiled code, None where there is no compiler for it."""
        from jitblas import launcher

        word = self.problem.value("dtype")
        dtype = numpy_dtype(word)
        if word_of(dtype) != word:
            return None  # bfloat16 without ml_dtypes: no NumPy array can have the type
        arrays = [
            launcher.ArraySpec(dtype, (self.problem.value("n"),), (self.problem.value(inc) * dtype.itemsize,), written)
            for inc, written in (("incx", False), ("incy", True))
        ]
        runtime = self.handle.runtime
        if not isinstance(runtime, HostRuntime):
            return None
        stream = runtime.launch_stream(self.handle.stream.address, wait=True, small=True, overlapping=False)
        plan = weakref.ref(self)  # the compiled call is the plan's own: it must not keep the plan alive

        def fallback(*arguments: Any) -> Any:
            this = plan()
            assert this is not None, "a plan outlives its calls"
            return this._checked(*arguments)

        _, blocks, tiling, _ = self._prepared
        return launcher.make(
            self._kernel.launch_packed,
            blocks,
            stream,
            runtime.stream_idle,
            tiling,
            "alpha",
            arrays,
            result=1,
            quick=self._bytes < QUICK_BYTES,
            fallback=fallback,
        )

    def _checked(self, *arguments: Any) -> Any:
        """The same through every check; called with a bare status, raise what it means."""
        if len(arguments) == 1 and isinstance(arguments[0], int):
            fail(self.handle, arguments[0])
        alpha, x, y = arguments
        self.handle.require()
        vectors = []
        for name, array in (("x", x), ("y", y)):
            vector = as_vector(array, "plan", name, self.handle.target, output=name == "y")
            inc = self.problem.value(f"inc{name}")
            sizes = (vector.n, vector.dtype, vector.inc if vector.n > 1 else inc)
            if sizes != (self.problem.value("n"), self.problem.value("dtype"), inc):
                raise StatusError(
                    Status.INVALID_VALUE,
                    "plan",
                    name,
                    f"{name} has {vector.n} elements of {vector.dtype}, {vector.inc} apart; the plan is for "
                    f"{self.problem}",
                )
            vectors.append(vector)
        launch_axpy_ex(self.handle, alpha, vectors[0], vectors[1], self._prepared)
        return y


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
    if not isinstance(problem, Problem):
        problem = Problem.parse(problem)
    return Plan(problem, exact, default_handle() if handle is None else handle)
