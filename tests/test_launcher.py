"""The compiled way into a plan."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitblas
from jitblas import launcher


@pytest.fixture
def plan(monkeypatch: pytest.MonkeyPatch) -> jitblas.Plan:
    """A plan whose Python code must not be reached."""
    made = jitblas.plan("axpy_ex:n=9")

    def unexpected(*arguments: Any) -> None:
        raise AssertionError(f"Python code was called with {arguments}")

    monkeypatch.setattr(made, "_checked", unexpected)
    return made


def test_a_call_as_planned_runs_no_python_code(plan: jitblas.Plan) -> None:
    x, y = np.arange(9, dtype="f4"), np.ones(9, "f4")
    assert plan(2.0, x, y) is y
    assert (y == 2 * x + 1).all()
    assert plan(x, y) is y  # the problem's own alpha, 1
    assert (y == 3 * x + 1).all()


@pytest.mark.parametrize(
    "arguments",
    [
        (2, np.ones(9, "f4"), np.ones(9, "f4")),
        (2.0, np.ones(8, "f4"), np.ones(9, "f4")),
        (2.0, np.ones(9, "f8"), np.ones(9, "f4")),
        (2.0, np.ones(18, "f4")[::2], np.ones(9, "f4")),
        (2.0, np.ones((9, 1), "f4"), np.ones(9, "f4")),
        (2.0, [1.0] * 9, np.ones(9, "f4")),
    ],
    ids=str,
)
def test_any_other_call_goes_to_the_python_code(plan: jitblas.Plan, arguments: tuple[Any, ...]) -> None:
    with pytest.raises(AssertionError, match="Python code was called"):
        plan(*arguments)


def test_without_a_launcher_plans_give_the_same_results(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launcher, "_library", lambda: None)
    slow = jitblas.plan("axpy_ex:n=300,incx=2,incy=-1")
    monkeypatch.undo()
    fast = jitblas.plan("axpy_ex:n=300,incx=2,incy=-1")
    assert slow._call == slow._checked
    assert fast._call != fast._checked
    x = np.random.default_rng(3).standard_normal(600).astype("f4")[::2]
    ours, theirs = np.ones(300, "f4")[::-1], np.ones(300, "f4")[::-1]
    fast(0.3, x, ours)
    slow(0.3, x, theirs)
    assert (ours == theirs).all()


@pytest.mark.parametrize("arguments", [(), (1,), (2.0,), (1.0, 2.0, 3.0, 4.0)], ids=str)
def test_a_wrong_number_of_arguments_is_a_type_error(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError, match=r"called with \(alpha, x, y\) or \(x, y\), not with"):
        jitblas.plan("axpy_ex:n=9")(*arguments)
