"""Plans of Csyrk."""

from __future__ import annotations

from typing import Any

from jitblas.blas.csyrk import Update, as_matrix, launch
from jitblas.operators.csyrk import row_major
from jitblas.plans.layouts import Layout, MatrixPlan


class OperatorPlan(MatrixPlan):
    """c := alpha * op(a) @ op(a).T + beta * c with the problem's scalars, for arrays in the problem's memory order.

    a is stored as the form says: with "LT" or "UT" it is (k, n).
    """

    signature = "(a, c)"
    result = 1
    workspace = 4
    dtype = "c64"

    def _layouts(self) -> list[Layout]:
        seen = row_major(self.problem)
        n, k, by_columns = seen.n, seen.k, self.problem.value("order") == "col"
        rows, columns = (n, k) if self.problem.value("form")[1] == "N" else (k, n)
        return [
            Layout("a", None, rows, columns, seen.lda, 0, by_columns, 0),
            Layout("c", None, n, n, seen.ldc, 0, by_columns, 1),
        ]

    def _run(self, *arguments: Any) -> Any:
        a, c = self._matrices(arguments, as_matrix)
        value: dict[str, Any] = dict(self.problem.values)
        uplo, trans = value["form"]
        alpha, beta = ((complex(value[name]), None) for name in ("alpha", "beta"))
        update = Update(a if trans == "N" else a.transposed(), c, alpha, beta, uplo, value["algorithm"])
        launch(self.handle, update, self._prepared)
        return arguments[1]
