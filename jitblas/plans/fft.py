"""Plans of FFT."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from jitblas.arrays import as_operand, numpy_dtype
from jitblas.errors import Status, StatusError
from jitblas.fft.rows import Transforms, make_transforms, new_result, new_rows
from jitblas.fft.tables import table_on
from jitblas.handle import Handle
from jitblas.plans import Plan, array_type
from jitblas.problem import Problem

if TYPE_CHECKING:
    from jitblas.launcher import ArraySpec


class OperatorPlan(Plan):
    """The problem's transforms, of an array of shape (batch, n) or, with one batch, (n,)."""

    signature = "(x) or (x, out)"
    name = "plan"
    """For messages."""
    result = 1
    workspace = 2

    def __init__(self, problem: Problem, exact: bool, handle: Handle) -> None:
        batch, n = problem.value("batch"), problem.value("n")
        shape = (n,) if batch == 1 else (batch, n)
        self._transforms = Transforms("plan", problem, shape, len(shape) - 1)
        self._kind = numpy_dtype(self._transforms.dtype)
        super().__init__(problem, exact, handle)

    def __call__(self, x: Any, out: Any = None) -> Any:
        if out is not None:
            return self._call(x, out)
        if type(x) is np.ndarray:
            return self._call(x, new_rows(self._transforms.shape, self._kind))
        return self._call(x, new_result(self._transforms, x, self.handle))

    def _specs(self) -> list[ArraySpec] | None:
        from jitblas.launcher import ArraySpec

        what = self._transforms
        if 0 in what.shape:
            return None
        dtype = array_type(what.dtype)
        strides = (what.points * dtype.itemsize, dtype.itemsize)[-len(what.shape) :]
        return [ArraySpec(dtype, what.shape, strides, operand, operand == 1) for operand in range(2)]

    def _fixed(self) -> list[tuple[int, int]]:
        address, self._table = table_on(self.handle, self._transforms.points, self._transforms.dtype)
        return super()._fixed() + ([] if address is None else [(address, 3)])

    def _run(self, *arguments: Any) -> Any:
        x, out = arguments
        what = self._transforms._replace(name=self.name)
        source = as_operand(x, self.name, "x", self.handle.target)
        result = as_operand(out, self.name, "out", self.handle.target, output=True)
        for name, operand in (("x", source), ("out", result)):
            if (operand.shape, operand.dtype) != (what.shape, what.dtype):
                raise StatusError(
                    Status.INVALID_VALUE,
                    self.name,
                    name,
                    f"{name} is {operand.dtype} of shape {operand.shape}; the plan is for {what.dtype} of shape "
                    f"{what.shape}: {what.problem}",
                )
        make_transforms(self.handle, what, source, result, self._prepared)
        return out
