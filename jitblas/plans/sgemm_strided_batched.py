"""Plans of SgemmStridedBatched."""

from __future__ import annotations

from typing import Any

from jitblas.blas.sgemm_strided_batched import Product, as_operands, launch
from jitblas.operators.sgemm_strided_batched import row_major
from jitblas.plans.layouts import Layout, MatrixPlan


class OperatorPlan(MatrixPlan):
    """c := alpha * op(a) @ op(b) + beta * c with the problem's scalars, for arrays in the problem's memory order.

    a and b are stored as `trans` says: with "T" a is (batch, k, m). A stride of 0 is one matrix, (m, k), for all. The
    short way is for arrays of three dimensions, also where the batch is 1; others take the longer one.
    """

    signature = "(a, b, c)"
    result = 2
    dtype = "fp32"

    def _layouts(self) -> list[Layout]:
        seen = row_major(self.problem)
        a, b = (seen.b, seen.a) if seen.swapped else (seen.a, seen.b)
        places = (1, 0, 2) if seen.swapped else (0, 1, 2)
        batch = self.problem.value("batch")
        return [
            Layout(
                name, None if one.stride == 0 and name != "c" else batch,
                *((one.columns, one.rows) if seen.swapped else (one.rows, one.columns)),
                one.ld, one.stride, seen.swapped, place,
            )
            for name, one, place in zip("abc", (a, b, seen.c), places, strict=True)
        ]  # fmt: skip

    def _run(self, *arguments: Any) -> Any:
        a, b, c = self._matrices(arguments, as_operands)
        value: dict[str, Any] = dict(self.problem.values)
        product = Product(
            a.transposed() if value["trans"][0] == "T" else a,
            b.transposed() if value["trans"][1] == "T" else b,
            c,
            (value["alpha"], None),
            (value["beta"], None),
        )
        launch(self.handle, product, self._prepared)
        return arguments[2]
