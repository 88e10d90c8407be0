"""The registry: one line per operator."""

from __future__ import annotations

from typing import cast

from jitblas.operators import axpy_ex
from jitblas.operators.base import Operator

OPERATORS: dict[str, Operator] = {
    "axpy_ex": cast(Operator, axpy_ex),
}
