"""Plans of SgemmStridedBatched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from jitblas.blas.sgemm_strided_batched import ITEM, Matrices, Product, as_matrices, launch
from jitblas.errors import ProblemSyntaxError, Status, StatusError
from jitblas.handle import Handle
from jitblas.operators.sgemm_strided_batched import fault, row_major
from jitblas.plans import Plan, array_type
from jitblas.problem import Problem

if TYPE_CHECKING:
    from jitblas.launcher import ArraySpec


class Layout(NamedTuple):
    """What an operand of a plan must be: rows and columns as the array shows them, distances in elements.

    `batch`: None where one matrix is for all batches.
    """

    name: str
    batch: int | None
    rows: int
    columns: int
    ld: int
    stride: int
    by_columns: bool

    def fits(self, given: Matrices) -> bool:
        """Whether elements are where the kernel looks for them; distances between what there is one of do not count."""
        batch = 1 if self.batch is None else self.batch
        if (given.rows, given.columns, 1 if given.batch is None else given.batch) != (self.rows, self.columns, batch):
            return False
        if 0 in given.shape:
            return True
        runs, length = (self.columns, self.rows) if self.by_columns else (self.rows, self.columns)
        from_run_to_run, within = (given.ld, 1) if given.by_columns == self.by_columns else (1, given.ld)
        return (
            (length == 1 or within == 1)
            and (runs == 1 or from_run_to_run == self.ld)
            and (batch == 1 or given.stride == self.stride)
        )


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
        from jitblas.launcher import ArraySpec

        layouts = self._layouts()
        if any(0 in (one.rows, one.columns, one.batch) for one in layouts):
            return None
        swapped = layouts[0].by_columns
        specs = []
        for place, one in enumerate(layouts):
            strides: tuple[int, ...] = (ITEM, one.ld * ITEM) if one.by_columns else (one.ld * ITEM, ITEM)
            shape: tuple[int, ...] = (one.rows, one.columns)
            if one.batch is not None:
                shape, strides = (one.batch, *shape), (one.stride * ITEM, *strides)
            operand = 1 - place if swapped and place < 2 else place
            specs.append(ArraySpec(array_type("fp32"), shape, strides, operand, one.name == "c"))
        return specs

    def _run(self, *arguments: Any) -> Any:
        matrices = []
        for array, layout in zip(arguments, self._layouts(), strict=True):
            given = as_matrices(array, layout.name, self.handle.target, output=layout.name == "c")
            if not layout.fits(given):
                raise StatusError(
                    Status.INVALID_VALUE,
                    "plan",
                    layout.name,
                    f"{layout.name} has shape {given.shape}, strides {given.strides}; the plan is for {self.problem}",
                )
            matrices.append(given._replace(by_columns=layout.by_columns, ld=layout.ld, stride=layout.stride))
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
