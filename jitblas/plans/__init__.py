"""Plans: a kernel compiled and tiled for one problem, for the cheapest repeated call. One module per operator."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

from jitblas.arrays import Vector, as_vector, numpy_dtype, word_of
from jitblas.dispatch import QUICK_BYTES, Prepared, fail, make_prepared
from jitblas.errors import ProblemSyntaxError, Status, StatusError
from jitblas.handle import Handle, Unique, default_handle
from jitblas.jit.kernels import load
from jitblas.jit.specialization import Specialization, specialize
from jitblas.operators import OPERATORS
from jitblas.problem import Problem
from jitblas.runtime.host import HostRuntime

if TYPE_CHECKING:
    from jitblas.launcher import ArraySpec


class Plan(Unique):
    """One problem, ready to be called with arrays that are what it says.

    NumPy arrays on the host take a short way in, without Python code; anything else goes through the checks of the
    operator's function, whose results are the same. Used by one thread at a time, like its handle.
    """

    signature: ClassVar[str]
    """Arguments of a call, for messages."""
    scalar: ClassVar[str | None] = None
    """Tiling field that the first argument of a call sets; None: there is no such argument."""
    result: ClassVar[int]
    """Which array a call returns."""
    workspace: ClassVar[int] = 0
    """Place of the workspace among the operands of the kernel, where it needs one."""

    def __init__(self, problem: Problem, exact: bool, handle: Handle) -> None:
        if ("scalar", "device") in problem.values:
            raise ProblemSyntaxError(
                f"{problem}: plans take scalars from the host; scalar=device is for jitblas.{problem.op}"
            )
        self.problem = problem
        self.handle = handle
        profile = handle.runtime.profile()
        self.specialization: Specialization = specialize(problem, handle.target, exact, profile=profile)
        self._kernel = load(self.specialization)
        self._prepared: Prepared = make_prepared(handle, problem, exact)
        self._call: Callable[..., Any] = self._checked
        handle.plans.add(self)
        self._call = self._shortest()

    def __call__(self, *arguments: Any) -> Any:
        """Returns the array that was written, with the result there (DeviceArrays: asynchronous)."""
        raise NotImplementedError

    def _specs(self) -> list[ArraySpec] | None:
        """What arrays must be to take the short way; None if none can."""
        raise NotImplementedError

    def _run(self, *arguments: Any) -> Any:
        """Check the arguments and launch."""
        raise NotImplementedError

    def follow_handle(self) -> None:
        """The stream or the workspace is another: the next call makes its short way anew."""
        self._call = self._following

    def _following(self, *arguments: Any) -> Any:
        self._call = self._shortest()
        return self._call(*arguments)

    def _shortest(self) -> Callable[..., Any]:
        """The short way for what the handle has now; a handle that was destroyed has none."""
        return (None if self.handle.destroyed else self._compiled()) or self._checked

    def _compiled(self) -> Callable[..., Any] | None:
        """The call in compiled code, None where there is no compiler for it."""
        runtime = self.handle.runtime
        if not isinstance(runtime, HostRuntime):
            return None
        specs = self._specs()
        if specs is None:
            return None
        try:
            fixed = self._fixed()
        except StatusError:
            return None  # the call will say what is needed
        from jitblas import launcher

        stream = runtime.launch_stream(self.handle.stream.address, wait=True, small=True, overlapping=False)
        plan = weakref.ref(self)  # the compiled call is the plan's own: it must not keep the plan alive

        def fallback(*arguments: Any) -> Any:
            this = plan()
            assert this is not None, "a plan outlives its calls"
            return this._checked(*arguments)

        return launcher.make(
            self._kernel.launch_packed,
            self._prepared.blocks,
            stream,
            runtime.stream_idle,
            self._prepared.tiling,
            self.scalar,
            specs,
            result=self.result,
            quick=OPERATORS[self.problem.op].cost(self.problem) < QUICK_BYTES,
            fallback=fallback,
            fixed=fixed,
        )

    def _fixed(self) -> list[tuple[int, int]]:
        """(address, place among the operands) of what is the same for every call: the workspace, if one is needed."""
        needed = self._prepared.workspace
        return [(self.handle.workspace.reserve(needed), self.workspace)] if needed else []

    def _checked(self, *arguments: Any) -> Any:
        """The same through every check; called with a bare status, raise what it means."""
        if len(arguments) == 1 and isinstance(arguments[0], int):
            fail(self.handle, arguments[0])
        self.handle.require()
        return self._run(*arguments)

    def _wrong_count(self, count: int) -> TypeError:
        return TypeError(f"this plan is called with {self.signature}, not with {count} arguments")


def array_type(word: str) -> Any:
    """The NumPy type of a word; None where no array can have it (bfloat16 without ml_dtypes)."""
    dtype = numpy_dtype(word)
    return dtype if word_of(dtype) == word else None


def vector_spec(problem: Problem, name: str, dtype: Any, operand: int, written: bool) -> ArraySpec:
    """What the vector `name` must be to take the short way."""
    from jitblas.launcher import ArraySpec

    step = problem.value(f"inc{name}") * dtype.itemsize
    return ArraySpec(dtype, (problem.value("n"),), (step,), operand, written)


def planned_vector(plan: Plan, name: str, array: Any, dtype: str, *, output: bool = False) -> Vector:
    """The vector that an array is; INVALID_VALUE if the plan is for another."""
    vector = as_vector(array, "plan", name, plan.handle.target, output=output)
    inc = plan.problem.value(f"inc{name}")
    sizes = (vector.n, vector.dtype, vector.inc if vector.n > 1 else inc)
    if sizes != (plan.problem.value("n"), dtype, inc):
        raise StatusError(
            Status.INVALID_VALUE,
            "plan",
            name,
            f"{name} has {vector.n} elements of {vector.dtype}, {vector.inc} apart; the plan is for {plan.problem}",
        )
    return vector


def plan(problem: Problem | str, exact: bool = True, *, handle: Handle | None = None) -> Plan:
    """Compile and tile a problem once, for repeated calls.

    Parameters
    ----------
    problem : a problem or its line, such as "axpy_ex:n=1e6,dtype=bf16"
    exact : bake the sizes into the kernel
    handle : None: this thread's handle of the default target

    Returns
    -------
    A function: of AxpyEx `plan(alpha, x, y)` or, with the problem's own alpha, `plan(x, y)`; of Cdotc `plan(x, y)`,
    which returns the number, or `plan(x, y, out)`; of FFT `plan(x)` or `plan(x, out)`; with the problem's alpha and
    beta, of Csyrk `plan(a, c)` and of SgemmStridedBatched `plan(a, b, c)`.

    Examples
    --------
    >>> import numpy, jitblas
    >>> saxpy = jitblas.plan("axpy_ex:n=4")
    >>> saxpy(0.5, numpy.ones(4, "float32"), numpy.zeros(4, "float32"))
    array([0.5, 0.5, 0.5, 0.5], dtype=float32)
    """
    if not isinstance(problem, Problem):
        problem = Problem.parse(problem)
    kind: type[Plan] = import_module(f"jitblas.plans.{problem.op}").OperatorPlan
    return kind(problem, exact, default_handle() if handle is None else handle)
