"""Plans of AxpyEx."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jitblas.arrays import as_vector
from jitblas.blas.axpy_ex import launch_axpy_ex
from jitblas.errors import Status, StatusError
from jitblas.plans import Plan, array_type

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
        from jitblas.launcher import ArraySpec

        dtype = array_type(self.problem.value("dtype"))
        if dtype is None or self.problem.value("n") <= 1:
            return None
        return [
            ArraySpec(dtype, (self.problem.value("n"),), (self.problem.value(inc) * dtype.itemsize,), operand, written)
            for operand, (inc, written) in enumerate((("incx", False), ("incy", True)))
        ]

    def _run(self, *arguments: Any) -> Any:
        alpha, x, y = arguments
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
