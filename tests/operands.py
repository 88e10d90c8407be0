"""Operands of a call: vectors amid sentinels that show a stray write, and calls that must refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitblas
from jitblas import Status
from tests.reference import DTYPES

SENTINEL = 0xA5

Array = np.ndarray[Any, np.dtype[Any]]

words = pytest.mark.parametrize("word", list(DTYPES))


class Strided:
    """A vector in the middle of memory that is full of sentinels, between its elements too."""

    def __init__(self, values: Array, inc: int, offset: int = 3) -> None:
        size, n = values.itemsize, values.size
        length = (max(n - 1, 0) * abs(inc) + 1 + 2 * offset) * size
        self.memory = np.full(length, SENTINEL, np.uint8)
        lowest = self.memory.view(values.dtype)[offset:]
        view = lowest[: (n - 1) * abs(inc) + 1 : abs(inc)] if n else lowest[:0]
        self.view = view[::-1] if inc < 0 else view
        self.view[:] = values
        mask = np.full(length, False)
        mask.view(f"V{size}")[offset : offset + max(n - 1, 0) * abs(inc) + 1 : abs(inc)] = b"\x01" * size
        self.outside = ~mask if n else np.full(length, True)

    def assert_padding_untouched(self) -> None:
        assert (self.memory[self.outside] == SENTINEL).all()


def refused(status: Status, call: Callable[[], Any]) -> str:
    """The message of the StatusError that the call must raise."""
    with pytest.raises(jitblas.StatusError) as caught:
        call()
    assert caught.value.status == status, caught.value
    return str(caught.value)


def read_only() -> Array:
    array = np.ones(6, "f4")
    array.flags.writeable = False
    return array
