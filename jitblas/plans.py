"""Plans: a kernel compiled and tiled for one problem, for the cheapest repeated call."""

from __future__ import annotations

from typing import Any

import numpy as np

from jitblas.arrays import DTYPE_WORDS, as_vector
from jitblas.dispatch import fail
from jitblas.errors import ProblemSyntaxError, Status, StatusError
from jitblas.handle import Handle, default_handle
from jitblas.jit.kernels import load
from jitblas.jit.specialization import Specialization, specialize
from jitblas.operators import OPERATORS
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
        self._launch = kernel.launch
        runtime, address = handle.runtime, handle.stream.address
        self._waiting = runtime.launch_stream(address, wait=True, small=True, overlapping=False)
        self._stream = handle.stream
        n, incx, incy = problem["n"], problem["incx"], problem["incy"]
        self._fast = runtime.shares_host_memory and n > 1 and incx > 0 and incy > 0
        self._shape = (n,)
        names = {word: name for name, word in DTYPE_WORDS.items()}
        self._dtype = names[problem["dtype"]]
        size = 4 if problem["dtype"] == "fp32" else 2
        self._strides = ((incx * size,), (incy * size,))
        self._span = ((n - 1) * incx + 1) * size, ((n - 1) * incy + 1) * size

    def __call__(self, *arguments: Any) -> Any:
        """y := alpha * x + y; returns y, with the result there (DeviceArrays: asynchronous)."""
        if len(arguments) == 3:
            alpha, x, y = arguments
        elif len(arguments) == 2:
            x, y = arguments
            alpha = self.problem["alpha"]
        else:
            raise TypeError(f"a plan is called with (alpha, x, y) or (x, y), not with {len(arguments)} arguments")
        if (
            type(x) is np.ndarray
            and type(y) is np.ndarray
            and type(alpha) is float
            and self._fast
            and x.shape == self._shape == y.shape
            and x.dtype.name == self._dtype == y.dtype.name
            and x.strides == self._strides[0]
            and y.strides == self._strides[1]
        ):
            x_address, _ = x.__array_interface__["data"]
            y_address, read_only = y.__array_interface__["data"]
            apart = x_address + self._span[0] <= y_address or y_address + self._span[1] <= x_address
            if apart and not read_only and x.flags.aligned and y.flags.aligned and self._stream._address is not None:
                self._tiling.alpha = alpha
                status = self._launch(self.blocks, self._waiting, x_address, y_address, None, self._tiling)
                if status != 0:
                    fail(self.handle, status)
                return y
        return self._checked(alpha, x, y)

    def _checked(self, alpha: Any, x: Any, y: Any) -> Any:
        from jitblas.blas import axpy_ex

        for name, array in (("x", x), ("y", y)):
            vector = as_vector(array, "plan", name, self.handle.target)
            inc = self.problem[f"inc{name}"]
            if (vector.n, vector.dtype) != (self.problem["n"], self.problem["dtype"]) or (vector.n > 1 and vector.inc != inc):
                raise StatusError(
                    Status.INVALID_VALUE,
                    "plan",
                    name,
                    f"{name} has {vector.n} elements of {vector.dtype}, {vector.inc} apart; the plan is for {self.problem}",
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
