"""Plans of operators on matrices: how these lie in memory, and whether those of a call do."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from jitblas.blas.matrices import Matrices
from jitblas.errors import ProblemSyntaxError, Status, StatusError
from jitblas.handle import Handle
from jitblas.operators import OPERATORS
from jitblas.plans import Plan, array_type
from jitblas.problem import Problem

if TYPE_CHECKING:
    from jitblas.launcher import ArraySpec


class Layout(NamedTuple):
    """What an operand of a plan must be: rows and columns as the array shows them, distances in elements.

    `batch`: None where one matrix is for all batches. `place`: its number among the kernel's operands.
    """

    name: str
    batch: int | None
    rows: int
    columns: int
    ld: int
    stride: int
    by_columns: bool
    place: int

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

    def spec(self, dtype: Any) -> ArraySpec:
        """What an array must be to take the short way."""
        from jitblas.launcher import ArraySpec

        shape: tuple[int, ...] = (self.rows, self.columns)
        steps: tuple[int, ...] = (1, self.ld) if self.by_columns else (self.ld, 1)
        if self.batch is not None:
            shape, steps = (self.batch, *shape), (self.stride, *steps)
        return ArraySpec(dtype, shape, tuple(step * dtype.itemsize for step in steps), self.place, self.name == "c")

    def view(self, plan: Plan, array: Any, as_matrices: Callable[..., Matrices]) -> Matrices:
        """The matrices that an array of a call is; INVALID_VALUE if the plan is for others."""
        given = as_matrices(array, self.name, plan.handle.target, output=self.name == "c")
        if not self.fits(given):
            raise StatusError(
                Status.INVALID_VALUE,
                "plan",
                self.name,
                f"{self.name} has shape {given.shape}, strides {given.strides}; the plan is for {plan.problem}",
            )
        return given._replace(by_columns=self.by_columns, ld=self.ld, stride=self.stride)


class MatrixPlan(Plan):
    """A plan whose arrays are all matrices; the last one, c, is written and returned."""

    dtype: ClassVar[str]
    """Word of their type."""

    def __init__(self, problem: Problem, exact: bool, handle: Handle) -> None:
        operator: Any = OPERATORS[problem.op]
        wrong = operator.fault(problem)
        if wrong is not None:
            raise ProblemSyntaxError(f"{problem}: {wrong}")
        super().__init__(problem, exact, handle)

    def __call__(self, *arguments: Any) -> Any:
        if len(arguments) != self.result + 1:
            raise self._wrong_count(len(arguments))
        return self._call(*arguments)

    def _layouts(self) -> list[Layout]:
        """Of the arguments, in order."""
        raise NotImplementedError

    def _specs(self) -> list[ArraySpec] | None:
        layouts = self._layouts()
        if any(0 in (one.rows, one.columns, one.batch) for one in layouts):
            return None
        return [one.spec(array_type(self.dtype)) for one in layouts]

    def _matrices(self, arguments: tuple[Any, ...], as_matrices: Callable[..., Matrices]) -> list[Matrices]:
        """The arguments as what the plan is for."""
        return [one.view(self, array, as_matrices) for array, one in zip(arguments, self._layouts(), strict=True)]
