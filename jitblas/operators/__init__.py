"""The registry: one word per operator, the name of its module."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from jitblas.operators.base import Operator

NAMES = ("axpy_ex", "cdotc", "csyrk", "fft", "sgemm_strided_batched")


class Registry(Mapping[str, "Operator"]):
    """Operators by name, each imported when it is first asked for: a call of one need not know the others."""

    def __getitem__(self, name: str) -> Operator:
        if name not in NAMES:
            raise KeyError(name)
        return _imported(name)

    def __iter__(self) -> Iterator[str]:
        return iter(NAMES)

    def __len__(self) -> int:
        return len(NAMES)


@functools.cache
def _imported(name: str) -> Operator:
    return cast("Operator", import_module(f"jitblas.operators.{name}"))


OPERATORS = Registry()
