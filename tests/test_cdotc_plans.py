"""Plans of Cdotc: the bits of the function, the workspace they hold on to, and what they refuse."""

from __future__ import annotations

import copy
import ctypes
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitblas
from jitblas import Status, launcher
from jitblas.handle import Handle
from jitblas.hardware import HOST, PROFILES
from tests.dots import Array, Spread, assert_close, bits, complex_numbers
from tests.operands import read_only, refused

MANY_CORES = PROFILES[HOST].dot_one_core + 1
SUMS = 3
"""Partial sums of so many elements."""

SIX = np.ones(6, "c8")


def poisoned(handle: Handle) -> Array:
    """The handle's workspace, as far as a plan for MANY_CORES needs it, after filling it with NaN."""
    address = handle.workspace.reserve(64)
    memory: Array = np.ctypeslib.as_array((ctypes.c_float * 16).from_address(address)).view("c8")
    memory[:] = complex(np.nan, np.nan)
    return memory


@pytest.mark.parametrize(
    ("n", "incx", "incy", "exact"),
    [
        (1, 1, 1, False),
        (300, 1, 1, False),
        (300, -1, 3, False),
        (MANY_CORES, 1, 1, False),
        (MANY_CORES, -1, -1, False),
        (20_000, 2, 1, False),
        (1001, 1, 1, True),
        (MANY_CORES, 1, 1, True),
        (300, -1, 3, True),
    ],
)
def test_a_plan_gives_the_bits_of_the_function(n: int, incx: int, incy: int, exact: bool) -> None:
    planned = jitblas.plan(f"cdotc:n={n},incx={incx},incy={incy}", exact=exact)
    x, y = Spread(complex_numbers(n, 1), incx), Spread(complex_numbers(n, 2), incy)
    expected = jitblas.cdotc(x.view, y.view)
    assert_close(expected, x.view, y.view)
    number = planned(x.view, y.view)
    assert type(number) is np.complex64 and bits(number) == bits(expected)
    out = np.full(3, 9, "c8")
    part = out[1:2]
    assert planned(x.view, y.view, part) is part
    assert out.tolist() == [9, complex(expected), 9]
    x.assert_untouched()
    y.assert_untouched()


@pytest.mark.parametrize("inc", [1, 2])
def test_a_plan_of_nothing_gives_zero(inc: int) -> None:
    planned = jitblas.plan(f"cdotc:n=0,incx={inc},incy={inc}", exact=False)
    empty, out = np.ones(0, "c8"), np.full(1, np.nan, "c8")
    assert bits(planned(empty, empty)) == bytes(8)
    assert planned(empty, empty, out) is out and bits(out) == bytes(8)


def test_a_plan_repeats_an_element_at_an_increment_of_0() -> None:
    x, y = np.broadcast_to(np.complex64(2 - 1j), 300), complex_numbers(300, 2)
    assert_close(jitblas.plan("cdotc:n=300,incx=0", exact=False)(x, y), x, y)


@pytest.mark.parametrize(("n", "inc"), [(300, 1), (MANY_CORES, 1), (300, 2)], ids=["one core", "many cores", "strided"])
def test_a_call_as_planned_runs_no_python_code_and_any_other_does(
    monkeypatch: pytest.MonkeyPatch, n: int, inc: int
) -> None:
    planned = jitblas.plan(f"cdotc:n={n},incx={inc}", exact=False)
    x, y = Spread(complex_numbers(n, 1), inc).view, complex_numbers(n, 2)
    expected = jitblas.cdotc(x, y)

    def unexpected(*arguments: Any) -> None:
        raise AssertionError("Python code was called")

    with monkeypatch.context() as patch:
        patch.setattr(planned, "_checked", unexpected)
        assert bits(planned(x, y)) == bits(expected)
        assert bits(planned(x, y, np.empty(1, "c8"))) == bits(expected)
        for other in ((x[1:], y), (x, y.astype("c16")), (x, y, np.empty((), "c8")), (x, y, y[:1]), (x, y, x[-1:])):
            with pytest.raises(AssertionError, match="Python code was called"):
                planned(*other)
    assert bits(planned(x, y, np.empty((), "c8"))) == bits(expected)
    for operand in (x, y):  # a result that is part of an operand
        assert bits(planned(x, y, operand[7:8])) == bits(expected)
        operand[7] = complex_numbers(8, 1 if operand is x else 2)[7]
    monkeypatch.setattr(launcher, "_library", lambda: None)
    slow = jitblas.plan(f"cdotc:n={n},incx={inc}", exact=False)
    assert slow._call == slow._checked
    assert bits(slow(x, y)) == bits(expected)


def test_plans_take_device_arrays_and_write_in_stream_order() -> None:
    with Handle(HOST) as handle:
        planned = jitblas.plan(f"cdotc:n={MANY_CORES}", exact=False, handle=handle)
        x, y = complex_numbers(MANY_CORES, 1), complex_numbers(MANY_CORES, 2)
        dx, dy, out = (jitblas.array(values, target=HOST) for values in (x, y, SIX[:1]))
        assert planned(dx, dy, out) is out
        assert bits(out.numpy()) == bits(planned(x, y)) == bits(planned(dx, dy)) == bits(planned(dx, y))
        assert_close(out.numpy()[0], x, y)


# ---- The workspace --------------------------------------------------------------------------------------------------


def set_users_workspace(handle: Handle) -> None:
    handle.set_workspace(jitblas.zeros(64, "u8", target=HOST))


def change_twice(handle: Handle) -> None:
    set_users_workspace(handle)
    handle.set_workspace(None)


CHANGES: dict[str, Callable[[Handle], Any]] = {
    "grown": lambda handle: handle.workspace.reserve(33 << 20),
    "on another stream": lambda handle: handle.set_stream(None),
    "the user's": set_users_workspace,
    "the user's, and one of its own again": change_twice,
}


@pytest.mark.parametrize("change", list(CHANGES))
def test_a_plan_uses_the_workspace_that_the_handle_has_now(change: str) -> None:
    x, y = complex_numbers(MANY_CORES, 1), complex_numbers(MANY_CORES, 2)
    with Handle(HOST) as handle:
        planned = jitblas.plan(f"cdotc:n={MANY_CORES}", exact=False, handle=handle)
        expected = planned(x, y)
        CHANGES[change](handle)
        sums = poisoned(handle)
        assert bits(planned(x, y)) == bits(expected)
        assert_close(sums[:SUMS].sum(), x, y)
        assert np.isnan(sums[SUMS:]).all()


def test_a_plan_does_not_use_a_workspace_that_was_released(python: Any) -> None:
    """In a process of its own: memory that is gone may be gone altogether."""
    answer = python(
        """
import sys, numpy as np, jitblas
x = np.ones(int(sys.argv[1]), "c8")
with jitblas.Handle("host") as handle:
    planned = jitblas.plan(f"cdotc:n={x.size}", exact=False, handle=handle)
    planned(x, x)
    handle.workspace.release()
    print(planned(x, x).real == x.size, handle.workspace.size)
""",
        str(MANY_CORES),
        check=False,
    )
    assert (answer.returncode, answer.stdout) == (0, f"True {32 << 20}\n")


def test_a_workspace_of_the_user_s_is_used_as_far_as_it_is_needed_and_no_longer_than_it_is_set() -> None:
    memory = np.full(128, 0xFF, np.uint8)
    x, y = complex_numbers(MANY_CORES, 1), complex_numbers(MANY_CORES, 2)
    with Handle(HOST, workspace=(memory.ctypes.data, 64)) as handle:
        planned = jitblas.plan(f"cdotc:n={MANY_CORES}", exact=False, handle=handle)
        assert_close(planned(x, y), x, y)
        assert_close(memory.view("c8")[:SUMS].sum(), x, y)
        assert (memory[64:] == 0xFF).all()
        handle.set_workspace(None)
        memory[:] = 0xFF
        assert_close(planned(x, y), x, y)
        assert (memory == 0xFF).all()


def test_a_workspace_that_is_too_small_is_an_error_until_there_is_a_larger_one() -> None:
    small, large = np.zeros(63, np.uint8), np.zeros(64, np.uint8)
    x, out = complex_numbers(MANY_CORES, 1), np.full(1, 9, "c8")
    with Handle(HOST, workspace=(small.ctypes.data, 63)) as handle:
        planned = jitblas.plan(f"cdotc:n={MANY_CORES}", exact=False, handle=handle)
        for _ in range(2):
            message = refused(Status.ALLOC_FAILED, lambda: planned(x, x, out))
            assert "64 bytes of workspace are needed, the workspace given has 63" in message
            assert out[0] == 9 and not small.any()
            handle.set_workspace((large.ctypes.data, 64))
            assert_close(planned(x, x), x, x)
            handle.set_workspace((small.ctypes.data, 63))


def test_a_plan_of_a_destroyed_handle_leaves_its_workspace_alone() -> None:
    memory, x, out = np.zeros(64, np.uint8), complex_numbers(MANY_CORES, 1), np.full(1, 9, "c8")
    with Handle(HOST, workspace=(memory.ctypes.data, 64)) as handle:
        planned = jitblas.plan(f"cdotc:n={MANY_CORES}", exact=False, handle=handle)
    assert "make another" in refused(Status.NOT_INITIALIZED, lambda: planned(x, x, out))
    assert out[0] == 9 and not memory.any()


# ---- What is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        ((SIX[:5], SIX), Status.INVALID_VALUE, "x has 5 elements of c64, 1 apart; the plan is for cdotc:n=6"),
        ((SIX, np.ones(12, "c8")[::2]), Status.INVALID_VALUE, "y has 6 elements of c64, 2 apart; the plan is for"),
        ((SIX, SIX[::-1]), Status.INVALID_VALUE, "y has 6 elements of c64, -1 apart; the plan is for"),
        ((SIX.astype("c16"), SIX), Status.INVALID_VALUE, "x has 6 elements of c128"),
        ((SIX.reshape(2, 3), SIX), Status.INVALID_VALUE, "a 1-D array is needed, this one has shape (2, 3)"),
        ((SIX, SIX, read_only().view("c8")[:1]), Status.INVALID_VALUE, "read-only"),
        ((SIX, SIX, np.full(2, 9, "c8")), Status.INVALID_VALUE, "one element is needed, this array has shape (2,)"),
        ((SIX, SIX, np.full(1, 9, "c16")), Status.NOT_SUPPORTED, "out is an array of c128; c64 (complex64)"),
    ],
    ids=range(8),
)
def test_a_plan_refuses_what_it_is_not_for(arguments: tuple[Any, ...], status: Status, said: str) -> None:
    planned = jitblas.plan("cdotc:n=6", exact=False)
    arguments = arguments if len(arguments) == 3 else (*arguments, np.full(1, 9, "c8"))
    before = arguments[2].tobytes()
    assert said in refused(status, lambda: planned(*arguments))
    assert arguments[2].tobytes() == before


@pytest.mark.parametrize("count", [0, 1, 4])
def test_a_plan_says_what_it_is_called_with(count: int) -> None:
    planned = jitblas.plan("cdotc:n=6", exact=False)
    with pytest.raises(TypeError, match=rf"called with \(x, y\) or \(x, y, out\), not with {count} arguments"):
        planned(*[SIX] * count)
    for arguments, name in ((([1j] * 6, SIX), "x"), ((SIX, 1j), "y"), ((SIX, SIX, None), "out")):
        with pytest.raises(TypeError, match=f"{name} is a "):
            planned(*arguments)


@pytest.mark.parametrize("take", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_plan_cannot_be_copied(take: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError, match="cannot be copied or pickled"):
        take(jitblas.plan("cdotc:n=6", exact=False))
