"""Plans of AxpyEx."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jitblas.blas.axpy_ex import launch_axpy_ex
from jitblas.plans import Plan, array_type, planned_vector, vector_spec

if TYPE_CHECKING:
    from jitblas.launcher import ArraySpec


class OperatorPlan(Plan):
    """y := alpha * x + y for n elements of one dtype at the problem's increments."""

    signature = "(alpha, x, y) or (x, y)"
    scalar = "alpha"
    result = 1

    def __call__(self, *arguments: Any) -> Any:
        if len(arguments) == 3:
            return self._call(*arguments)
        if len(arguments) == 2:
            return self._call(self.problem.value("alpha"), *arguments)
        raise self._wrong_count(len(arguments))

    def _specs(self) -> list[ArraySpec] | None:
        dtype = array_type(self.problem.value("dtype"))
        if dtype is None or self.problem.value("n") <= 1:
            return None
        return [vector_spec(self.problem, "x", dtype, 0, False), vector_spec(self.problem, "y", dtype, 1, True)]

    def _run(self, *arguments: Any) -> Any:
        alpha, x, y = arguments
        dtype = self.problem.value("dtype")
        vectors = planned_vector(self, "x", x, dtype), planned_vector(self, "y", y, dtype, output=True)
        launch_axpy_ex(self.handle, alpha, *vectors, self._prepared)
        return y
