"""Plans of Csyrk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jitblas.blas.csyrk import Update, as_matrix, launch
from jitblas.errors import ProblemSyntaxError
from jitblas.handle import Handle
from jitblas.operators.csyrk import fault, row_major
from jitblas.plans import Plan, array_type
from jitblas.plans.layouts import Layout
from jitblas.problem import Problem

if TYPE_CHECKING:
    from jitblas.launcher import ArraySpec


class OperatorPlan(Plan):
    """c := alpha * op(a) @ op(a).T + beta * c with the problem's scalars, for arrays in the problem's memory order.

    a is stored as the form says: with "LT" or "UT" it is (k, n).
    """

    signature = "(a, c)"
    result = 1
    workspace = 4

    def __init__(self, problem: Problem, exact: bool, handle: Handle) -> None:
        wrong = fault(problem)
        if wrong is not None:
            raise ProblemSyntaxError(f"{problem}: {wrong}")
        super().__init__(problem, exact, handle)

    def __call__(self, *arguments: Any) -> Any:
        if len(arguments) != 2:
            raise self._wrong_count(len(arguments))
        return self._call(*arguments)

    def _layouts(self) -> list[Layout]:
        """Of a and c."""
        seen = row_major(self.problem)
        n, k, by_columns = seen.n, seen.k, self.problem.value("order") == "col"
        rows, columns = (n, k) if self.problem.value("form")[1] == "N" else (k, n)
        return [
            Layout("a", None, rows, columns, seen.lda, 0, by_columns),
            Layout("c", None, n, n, seen.ldc, 0, by_columns),
        ]

    def _specs(self) -> list[ArraySpec] | None:
        layouts = self._layouts()
        if any(0 in (one.rows, one.columns) for one in layouts):
            return None
        return [one.spec(array_type("c64"), place) for place, one in enumerate(layouts)]

    def _run(self, *arguments: Any) -> Any:
        layouts = zip(arguments, self._layouts(), strict=True)
        a, c = (layout.view(self, array, as_matrix) for array, layout in layouts)
        value = dict(self.problem.values)
        update = Update(
            a if str(value["form"])[1] == "N" else a.transposed(),
            c,
            (complex(value["alpha"]), None),
            (complex(value["beta"]), None),
            str(value["form"])[0],
            str(value["algorithm"]),
        )
        launch(self.handle, update, self._prepared)
        return arguments[1]
