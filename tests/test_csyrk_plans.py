"""Plans of Csyrk: the bits of the function, the workspace of the handle, and what they refuse."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitblas
from jitblas import Status, launcher
from jitblas.handle import Handle
from jitblas.hardware import HOST, PROFILES
from jitblas.operators.csyrk import workspace_bytes
from jitblas.problem import Problem
from tests.operands import refused
from tests.triangles import Array, Matrix, assert_close, assert_same_bits, numbers, square, triangle, update

LINE = "csyrk:LN,n=50,k=40"
NEEDED = workspace_bytes(Problem.parse(LINE), PROFILES[HOST])


def operands(form: str, n: int, k: int, order: str, pads: tuple[int, int]) -> tuple[Matrix, Matrix]:
    of, by_columns = numbers(n, k), order == "col"
    a = Matrix(of.a if form[1] == "N" else of.a.T, pad=pads[0], by_columns=by_columns)
    return a, Matrix(square(n, form[0]), pad=pads[1], by_columns=by_columns)


@pytest.mark.parametrize("form", ["LN", "LT", "UN", "UT"])
@pytest.mark.parametrize("order", ["row", "col"])
@pytest.mark.parametrize(
    ("n", "k", "alpha", "beta", "pads"),
    [
        (9, 7, 1, 0, (0, 0)), (9, 7, 2 - 1j, 1j, (1, 2)), (50, 40, 1, 0, (0, 0)), (97, 33, -1.5j, 1, (3, 0)),
        (50, 40, 0, 0.5, (0, 1)), (1, 40, 2, 1, (0, 0)), (33, 0, 2, -1, (0, 0)), (40, 1, 2, 0, (0, 0)),
    ],
)  # fmt: skip
def test_a_plan_gives_the_bits_of_the_function_the_short_way_and_the_long_one(
    monkeypatch: pytest.MonkeyPatch, form: str, order: str, n: int, k: int, alpha: complex, beta: complex,
    pads: tuple[int, int],
) -> None:  # fmt: skip
    a, wanted = operands(form, n, k, order, pads)
    expected = update(numbers(n, k), wanted.view.copy(), alpha if k else 0, beta)
    jitblas.csyrk(a.view, wanted.view, alpha=alpha, beta=beta, trans=form[1], uplo=form[0])
    assert_close(wanted.view, expected, form[0])
    line = f"csyrk:{form},n={n},k={k},order={order},lda={a.ld},ldc={wanted.ld},alpha={alpha},beta={beta}"
    planned = jitblas.plan(line.replace("(", "").replace(")", ""), exact=False)
    for call in (planned, planned._checked):
        c = operands(form, n, k, order, pads)[1]
        assert call(a.view, c.view) is c.view
        assert_same_bits(c.memory, wanted.memory, line)
    a.assert_untouched()

    def unexpected(*arguments: Any) -> None:
        raise AssertionError("Python code was called")

    with monkeypatch.context() as patch:
        patch.setattr(planned, "_checked", unexpected)
        if k:
            planned(a.view, operands(form, n, k, order, pads)[1].view)
            with pytest.raises(AssertionError, match="Python code was called"):
                planned(a.view, np.zeros((n, n), "c16"))


@pytest.mark.parametrize(
    ("line", "n", "k"), [("LN,n=50,k=40,algorithm=4m", 50, 40), ("UT,n=9,k=7,order=col,beta=1", 9, 7)]
)
def test_sizes_compiled_into_a_plan_change_no_bit(line: str, n: int, k: int) -> None:
    exact, general = (jitblas.plan(f"csyrk:{line}", exact=exact) for exact in (True, False))
    assert exact.specialization.key != general.specialization.key
    order, form = "col" if "col" in line else "row", line[:2]
    results = []
    for planned in (exact, general):
        a, c = operands(form, n, k, order, (0, 0))
        planned(a.view, c.view)
        c.assert_untouched(but=form[0])
        results.append(c.view)
    assert_same_bits(*results)


def test_the_algorithm_of_a_plan_is_the_problem_s() -> None:
    a = (np.ones((50, 40)) + 1e-6j).astype("c8")
    a *= (1 + np.arange(40) / 7).astype("f4")
    results = {}
    for algorithm in ("4m", "3m", "auto"):
        results[algorithm] = jitblas.plan(f"{LINE},algorithm={algorithm}", exact=False)(a, np.zeros((50, 50), "c8"))
        assert_same_bits(results[algorithm], jitblas.csyrk(a, algorithm=algorithm))
    assert (results["4m"] != results["3m"]).any()


def test_a_plan_without_the_compiled_call_gives_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launcher, "_library", lambda: None)
    slow = jitblas.plan(LINE, exact=False)
    assert slow._call == slow._checked
    a = numbers(50, 40).a
    assert_same_bits(slow(a, np.zeros((50, 50), "c8")), jitblas.csyrk(a))


def test_plans_take_device_arrays_and_write_in_stream_order() -> None:
    of = numbers(50, 40)
    with Handle(HOST) as handle:
        planned = jitblas.plan(f"{LINE},beta=1", exact=False, handle=handle)
        a, c = jitblas.array(of.a, target=HOST), jitblas.array(square(50, "L"), target=HOST)
        assert planned(a, c) is c
        got = c.numpy()
        assert_close(got, update(of, square(50, "L"), 1, 1), "L")
        assert_same_bits(planned(of.a, square(50, "L")), got)


@pytest.mark.parametrize("n", [9, 50])
def test_a_plan_copies_an_a_that_overlaps_c(n: int) -> None:
    memory = numbers(60, 60).a.copy()
    before = memory.copy()
    jitblas.plan(f"csyrk:n={n},k={n},lda=60,ldc=60", exact=False)(memory[3 : 3 + n, 3 : 3 + n], memory[:n, :n])
    wanted = before.copy()
    jitblas.csyrk(before[3 : 3 + n, 3 : 3 + n].copy(), wanted[:n, :n])
    assert_same_bits(memory, wanted)


# ---- The workspace --------------------------------------------------------------------------------------------------


def set_users_workspace(handle: Handle) -> None:
    handle.set_workspace(jitblas.zeros(NEEDED, "u8", target=HOST))


def change_twice(handle: Handle) -> None:
    set_users_workspace(handle)
    handle.set_workspace(None)


CHANGES: dict[str, Callable[[Handle], Any]] = {
    "grown": lambda handle: handle.workspace.reserve(33 << 20),
    "released": lambda handle: handle.workspace.release(),
    "on another stream": lambda handle: handle.set_stream(None),
    "the user's": set_users_workspace,
    "the user's, and one of its own again": change_twice,
}


def filled(handle: Handle) -> Array:
    """The handle's workspace, as far as it is needed, after filling it."""
    memory: Array = np.ctypeslib.as_array((ctypes.c_uint8 * NEEDED).from_address(handle.workspace.reserve(NEEDED)))
    memory[:] = 0xFF
    return memory


@pytest.mark.parametrize("change", list(CHANGES))
def test_a_plan_uses_the_workspace_that_the_handle_has_now(change: str) -> None:
    a = numbers(50, 40).a
    with Handle(HOST) as handle:
        planned = jitblas.plan(LINE, exact=False, handle=handle)
        expected = planned(a, np.zeros((50, 50), "c8"))
        CHANGES[change](handle)
        memory = filled(handle)
        assert_same_bits(planned(a, np.zeros((50, 50), "c8")), expected)
        assert (memory != 0xFF).mean() > 0.9


def test_a_workspace_that_is_too_small_is_an_error_until_there_is_a_larger_one() -> None:
    small, large = np.zeros(NEEDED - 1, np.uint8), np.zeros(NEEDED + 64, np.uint8)
    of, c = numbers(50, 40), np.full((50, 50), 9, "c8")
    with Handle(HOST, workspace=(small.ctypes.data, small.size)) as handle:
        planned = jitblas.plan(LINE, exact=False, handle=handle)
        message = refused(Status.ALLOC_FAILED, lambda: planned(of.a, c))
        assert f"{NEEDED} bytes of workspace are needed, the workspace given has {NEEDED - 1}" in message
        assert (c == 9).all() and not small.any()
        handle.set_workspace((large.ctypes.data, large.size))
        planned(of.a, c)
        assert_close(c, update(of, c, 1, 0), "L")
        assert large[:NEEDED].any() and not large[NEEDED:].any() and not small.any()


def test_a_plan_of_a_destroyed_handle_is_an_error() -> None:
    memory, c = np.zeros(NEEDED, np.uint8), np.full((50, 50), 9, "c8")
    with Handle(HOST, workspace=(memory.ctypes.data, NEEDED)) as handle:
        planned = jitblas.plan(LINE, exact=False, handle=handle)
    assert "make another" in refused(Status.NOT_INITIALIZED, lambda: planned(numbers(50, 40).a, c))
    assert (c == 9).all() and not memory.any()


# ---- What is refused ------------------------------------------------------------------------------------------------

FROZEN = np.full((4, 4), 9, "c8")
FROZEN.flags.writeable = False
A = np.ones((4, 3), "c8")

WRONG: dict[str, tuple[Any, Any, str]] = {
    "fewer rows": (A[:3], None, "a has shape (3, 3)"),
    "transposed a": (np.ones((3, 4), "c8"), None, "a has shape (3, 4)"),
    "columns of a": (np.asfortranarray(A), None, "a has shape (4, 3), strides (8, 32); the plan is for csyrk:n=4"),
    "padded a": (np.ones((4, 5), "c8")[:, :3], None, "a has shape (4, 3), strides (40, 8)"),
    "complex128 a": (A.astype("c16"), None, "a is c128"),
    "shape of c": (A, np.full((4, 5), 9, "c8"), "c has shape (4, 5)"),
    "columns of c": (A, np.full((4, 4), 9, "c8", order="F"), "c has shape (4, 4), strides (8, 32)"),
    "padded c": (A, np.full((4, 6), 9, "c8")[:, :4], "c has shape (4, 4), strides (48, 8)"),
    "read-only c": (A, FROZEN, "read-only"),
    "a batch": (A[None], None, "a matrix is needed"),
}


@pytest.mark.parametrize("case", list(WRONG))
def test_a_plan_refuses_what_it_is_not_for(case: str) -> None:
    a, c, said = WRONG[case]
    c = np.full((4, 4), 9, "c8") if c is None else c
    planned = jitblas.plan("csyrk:n=4,k=3", exact=False)
    status = Status.NOT_SUPPORTED if "128" in case else Status.INVALID_VALUE
    assert said in refused(status, lambda: planned(a, c))
    assert (c == 9).all()


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_plan_says_what_it_is_called_with(count: int) -> None:
    planned = jitblas.plan("csyrk:n=4,k=3", exact=False)
    with pytest.raises(TypeError, match=rf"called with \(a, c\), not with {count} arguments"):
        planned(*[A] * count)
    with pytest.raises(TypeError, match="a is a list"):
        planned([[1j]], FROZEN)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("n=4,k=3,lda=2", "lda=2: at least 3 is needed"), ("LT,n=4,k=3,lda=3", "lda=3: at least 4 is needed"),
        ("n=4,k=3,order=col,lda=3", "lda=3: at least 4 is needed"), ("n=4,k=3,ldc=3", "ldc=3: at least 4 is needed"),
        ("n=4,k=3,scalar=device", "plans take scalars from the host"),
    ],
)  # fmt: skip
def test_problems_that_no_matrices_fit_have_no_plan(line: str, said: str) -> None:
    with pytest.raises(jitblas.ProblemSyntaxError, match=said):
        jitblas.plan(f"csyrk:{line}", exact=False)


def test_a_plan_of_nothing_does_nothing() -> None:
    c = np.ones((0, 0), "c8")
    assert jitblas.plan("csyrk:n=0,k=3", exact=False)(np.ones((0, 3), "c8"), c) is c
    kept = np.full((4, 4), 9, "c8")
    assert jitblas.plan("csyrk:n=4,k=0,beta=1", exact=False)(np.ones((4, 0), "c8"), kept) is kept
    assert (kept == 9).all() and not triangle(4, "L").all()
