"""Plans of SgemmStridedBatched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jitblas.blas.sgemm_strided_batched import ITEM, Product, as_matrices, launch
from jitblas.errors import Status, StatusError
from jitblas.operators.sgemm_strided_batched import row_major
from jitblas.plans import Plan, array_type

if TYPE_CHECKING:
    from jitblas.launcher import ArraySpec


class OperatorPlan(Plan):
    """c := alpha * op(a) @ op(b) + beta * c with the problem's scalars, for arrays in the problem's memory order.

    a and b are stored as `trans` says: with "T" a is (batch, k, m). A stride of 0 is one matrix, (m, k), for all.
    """

    signature = "(a, b, c)"
    result = 2

    def __call__(self, *arguments: Any) -> Any:
        if len(arguments) != 3:
            raise self._wrong_count(len(arguments))
        return self._call(*arguments)

    def _stored(self) -> list[tuple[str, int, int, int, int]]:
        """(name, rows, columns, ld, stride) of a, b and c, rows and columns as the arrays show them."""
        seen = row_major(self.problem)
        a, b = (seen.b, seen.a) if seen.swapped else (seen.a, seen.b)
        turned = self.problem.value("order") == "col"
        return [
            (name, *((one.columns, one.rows) if turned else (one.rows, one.columns)), one.ld, one.stride)
            for name, one in (("a", a), ("b", b), ("c", seen.c))
        ]

    def _specs(self) -> list[ArraySpec] | None:
        from jitblas.launcher import ArraySpec

        batch = self.problem.value("batch")
        turned = self.problem.value("order") == "col"
        specs = []
        for place, (name, rows, columns, ld, stride) in enumerate(self._stored()):
            strides = (ITEM, ld * ITEM) if turned else (ld * ITEM, ITEM)
            one = stride == 0 and name != "c"
            if 0 in (rows, columns, batch):
                return None
            operand = 1 - place if turned and place < 2 else place
            specs.append(
                ArraySpec(
                    array_type("fp32"),
                    (rows, columns) if one else (batch, rows, columns),
                    strides if one else (stride * ITEM, *strides),
                    operand,
                    name == "c",
                )
            )
        return specs

    def _run(self, *arguments: Any) -> Any:
        batch = self.problem.value("batch")
        turned = self.problem.value("order") == "col"
        matrices = []
        for array, (name, rows, columns, ld, stride) in zip(arguments, self._stored(), strict=True):
            given = as_matrices(array, name, self.handle.target, output=name == "c")
            # Distances between what there is one of do not matter.
            fits = (given.rows, given.columns) == (rows, columns) and (given.batch or 1) == (
                1 if stride == 0 and name != "c" and given.batch is None else batch
            )
            runs = columns if turned else rows
            if not fits or (
                0 not in given.shape
                and (
                    (given.by_columns != turned and min(rows, columns) > 1)
                    or (runs > 1 and given.ld != ld)
                    or (batch > 1 and given.stride != stride)
                )
            ):
                raise StatusError(
                    Status.INVALID_VALUE,
                    "plan",
                    name,
                    f"{name} has shape {given.shape} and strides {given.strides}; the plan is for {self.problem}",
                )
            matrices.append(given._replace(by_columns=turned, ld=ld, stride=stride))
        a, b, c = matrices
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
