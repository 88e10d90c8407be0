"""Plans of SgemmStridedBatched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jitblas.blas.sgemm_strided_batched import Product, as_operands, launch
from jitblas.errors import ProblemSyntaxError
from jitblas.handle import Handle
from jitblas.operators.sgemm_strided_batched import fault, row_major
from jitblas.plans import Plan, array_type
from jitblas.plans.layouts import Layout
from jitblas.problem import Problem

if TYPE_CHECKING:
    from jitblas.launcher import ArraySpec


class OperatorPlan(Plan):
    """c := alpha * op(a) @ op(b) + beta * c with the problem's scalars, for arrays in the problem's memory order.

    a and b are stored as `trans` says: with "T" a is (batch, k, m). A stride of 0 is one matrix, (m, k), for all. The
    short way is for arrays of three dimensions, also where the batch is 1; others take the longer one.
    """

    signature = "(a, b, c)"
    result = 2

    def __init__(self, problem: Problem, exact: bool, handle: Handle) -> None:
        wrong = fault(problem)
        if wrong is not None:
            raise ProblemSyntaxError(f"{problem}: {wrong}")
        super().__init__(problem, exact, handle)

    def __call__(self, *arguments: Any) -> Any:
        if len(arguments) != 3:
            raise self._wrong_count(len(arguments))
        return self._call(*arguments)

    def _layouts(self) -> list[Layout]:
        """Of a, b and c."""
        seen = row_major(self.problem)
        a, b = (seen.b, seen.a) if seen.swapped else (seen.a, seen.b)
        batch = self.problem.value("batch")
        return [
            Layout(
                name, None if one.stride == 0 and name != "c" else batch,
                *((one.columns, one.rows) if seen.swapped else (one.rows, one.columns)),
                one.ld, one.stride, seen.swapped,
            )
            for name, one in (("a", a), ("b", b), ("c", seen.c))
        ]  # fmt: skip

    def _specs(self) -> list[ArraySpec] | None:
        layouts = self._layouts()
        if any(0 in (one.rows, one.columns, one.batch) for one in layouts):
            return None
        places = (1, 0, 2) if layouts[0].by_columns else (0, 1, 2)
        return [one.spec(array_type("fp32"), place) for one, place in zip(layouts, places, strict=True)]

    def _run(self, *arguments: Any) -> Any:
        layouts = zip(arguments, self._layouts(), strict=True)
        a, b, c = (layout.view(self, array, as_operands) for array, layout in layouts)
        letters = self.problem.value("trans")
        product = Product(
            a.transposed() if letters[0] == "T" else a,
            b.transposed() if letters[1] == "T" else b,
            c,
            (self.problem.value("alpha"), None),
            (self.problem.value("beta"), None),
        )
        launch(self.handle, product, self._prepared)
        return arguments[2]
