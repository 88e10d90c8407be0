"""The registry: one line per operator."""

from __future__ import annotations

from typing import cast

from jitblas.operators import axpy_ex, sgemm_strided_batched
from jitblas.operators.base import Operator

OPERATORS: dict[str, Operator] = {
    "axpy_ex": cast(Operator, axpy_ex),
    "sgemm_strided_batched": cast(Operator, sgemm_strided_batched),
}
