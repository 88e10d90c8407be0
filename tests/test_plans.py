"""Plans: the bits of the function, what they refuse, and what they hold."""

from __future__ import annotations

import gc
import sys
import threading
import time
import weakref
from typing import Any

import numpy as np
import pytest

import jitblas
from jitblas import Status
from tests.kernels.build import Gate
from tests.operands import Strided, read_only, refused, words
from tests.reference import assert_same_bits, axpy, numbers

ONES = np.ones(6, "f4")


@words
@pytest.mark.parametrize(
    ("n", "incx", "incy", "exact"),
    [
        (1, 1, 1, False),
        (300, -1, 3, False),
        (20_000, 1, 1, False),
        (20_000, 2, 1, False),
        (20_007, 1, 1, True),
        (300, -1, 3, True),
    ],
)
def test_a_plan_gives_the_bits_of_the_function(word: str, n: int, incx: int, incy: int, exact: bool) -> None:
    planned = jitblas.plan(f"axpy_ex:n={n},dtype={word},incx={incx},incy={incy},alpha=0.5", exact=exact)
    x = Strided(numbers(word, n, 21, special=True), incx)
    y = Strided(numbers(word, n, 22, special=True), incy)
    expected = axpy(-3.5, x.view, y.view)
    assert planned(-3.5, x.view, y.view) is y.view
    assert_same_bits(y.view, expected)
    expected = axpy(0.5, x.view, y.view)
    planned(x.view, y.view)
    assert_same_bits(y.view, expected)
    y.assert_padding_untouched()


def test_a_plan_of_nothing_does_nothing() -> None:
    y = np.ones(0, "f4")
    for line in ("axpy_ex:n=0", "axpy_ex:n=0,incx=2"):
        assert jitblas.plan(line)(2.0, np.ones(0, "f4"), y) is y


def test_a_plan_refuses_what_it_is_not_for() -> None:
    planned = jitblas.plan("axpy_ex:n=6")
    y = np.ones(6, "f4")
    refused(Status.INVALID_VALUE, lambda: planned(1.0, np.ones(5, "f4"), y))
    refused(Status.INVALID_VALUE, lambda: planned(1.0, np.ones(12, "f4")[::2], y))
    refused(Status.INVALID_VALUE, lambda: planned(1.0, np.ones(6, "f2"), y))
    refused(Status.INVALID_VALUE, lambda: planned(1.0, np.ones((2, 3), "f4"), y))
    refused(Status.INVALID_VALUE, lambda: planned(1.0, ONES, read_only()))
    for arguments in ((), (1.0,), (1.0, ONES, y, y)):
        with pytest.raises(TypeError):
            planned(*arguments)
    with pytest.raises(TypeError):
        planned(1j, ONES, y)
    assert (y == 1).all()


def test_a_plan_copies_overlapping_operands_first() -> None:
    planned = jitblas.plan("axpy_ex:n=4999")
    memory = numbers("fp32", 5000, 23)
    expected = memory.copy()
    expected[1:] = axpy(2.0, memory[:-1], memory[1:])
    planned(2.0, memory[:-1], memory[1:])
    assert_same_bits(memory, expected)


def test_a_plan_of_a_destroyed_handle_is_an_error_and_no_crash(python: Any) -> None:
    answer = python(
        """
import numpy as np, jitblas
x, y = np.ones(100, "f4"), np.ones(100, "f4")
with jitblas.Handle("host") as handle:
    planned = jitblas.plan("axpy_ex:n=100", handle=handle)
    planned(1.0, x, y)
streams = [jitblas.Stream("host") for _ in range(50)]
try:
    planned(1.0, x, y)
except jitblas.StatusError as error:
    print(error.status.name, y[0])
"""
    )
    assert answer.stdout == "NOT_INITIALIZED 2.0\n"


def test_a_plan_follows_its_handle_to_another_stream() -> None:
    x, y = np.ones(100, "f4"), np.ones(100, "f4")
    with jitblas.Handle("host") as handle:
        planned = jitblas.plan("axpy_ex:n=100", handle=handle)
        other = jitblas.Stream("host")
        handle.set_stream(other)
        planned(1.0, x, y)
        assert handle.runtime.stream_position(other.address) == (1, 1)
        handle.set_stream(None)
        planned(1.0, x, y)
        assert y[0] == 3


@pytest.mark.parametrize("n", [100, 100_000])
def test_a_call_that_waits_for_earlier_work_lets_other_threads_run(n: int) -> None:
    x, y = np.ones(n, "f4"), np.ones(n, "f4")
    with jitblas.Handle("host") as handle:
        planned = jitblas.plan(f"axpy_ex:n={n}", handle=handle)
        for call in (planned, lambda *arguments: jitblas.axpy_ex(*arguments, handle=handle)):
            gate = Gate(handle.stream)
            threading.Timer(0.05, gate.open).start()
            begun = time.monotonic()
            call(1.0, x, y)
            assert time.monotonic() - begun < 3
    assert (y == 3).all()


def test_a_plan_that_nobody_holds_is_freed() -> None:
    planned = jitblas.plan("axpy_ex:n=100")
    planned(1.0, np.ones(100, "f4"), np.ones(100, "f4"))
    alive = weakref.ref(planned)
    del planned
    gc.collect()
    assert alive() is None


def test_a_plan_leaves_the_reference_counts_as_they_were() -> None:
    planned = jitblas.plan("axpy_ex:n=100")
    x, y, short = np.ones(100, "f4"), np.ones(100, "f4"), np.ones(99, "f4")
    before = [sys.getrefcount(thing) for thing in (x, y, short, x.dtype, np.ndarray)]
    for _ in range(300):
        planned(1.0, x, y)
        for wrong in ((1.0, short, y), (1.0, x), ("1", x, y)):
            with pytest.raises((TypeError, jitblas.StatusError)):
                planned(*wrong)
    after = [sys.getrefcount(thing) for thing in (x, y, short, x.dtype, np.ndarray)]
    assert all(abs(now - then) < 10 for now, then in zip(after, before, strict=True))
