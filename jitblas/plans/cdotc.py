"""Plans of Cdotc."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from jitblas.blas.cdotc import as_result, launch_cdotc
from jitblas.plans import Plan, array_type, planned_vector, vector_spec

if TYPE_CHECKING:
    from jitblas.launcher import ArraySpec


class OperatorPlan(Plan):
    """The sum of conj(x_i) * y_i for n elements at the problem's increments."""

    signature = "(x, y) or (x, y, out)"
    result = 2
    workspace = 3

    def __call__(self, *arguments: Any) -> Any:
        if len(arguments) == 2:
            return self._call(*arguments, np.empty(1, np.complex64))[0]
        if len(arguments) == 3:
            return self._call(*arguments)
        raise self._wrong_count(len(arguments))

    def _specs(self) -> list[ArraySpec] | None:
        from jitblas.launcher import ArraySpec

        if self.problem.value("n") <= 1:
            return None
        dtype = array_type("c64")
        vectors = [vector_spec(self.problem, name, dtype, place, False) for place, name in enumerate("xy")]
        return [*vectors, ArraySpec(dtype, (1,), (dtype.itemsize,), 2, True)]

    def _run(self, *arguments: Any) -> Any:
        x, y, out = arguments
        vectors = planned_vector(self, "x", x, "c64"), planned_vector(self, "y", y, "c64")
        launch_cdotc(self.handle, *vectors, as_result(out, self.handle), self._prepared)
        return out
