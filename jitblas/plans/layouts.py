"""How the matrices of a plan lie in memory, and whether those of a call do."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from jitblas.blas.matrices import Matrices
from jitblas.errors import Status, StatusError
from jitblas.plans import Plan

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

    def spec(self, dtype: Any, operand: int) -> ArraySpec:
        """What an array must be to take the short way as the kernel's operand of that number."""
        from jitblas.launcher import ArraySpec

        shape: tuple[int, ...] = (self.rows, self.columns)
        steps: tuple[int, ...] = (1, self.ld) if self.by_columns else (self.ld, 1)
        if self.batch is not None:
            shape, steps = (self.batch, *shape), (self.stride, *steps)
        return ArraySpec(dtype, shape, tuple(step * dtype.itemsize for step in steps), operand, self.name == "c")

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
