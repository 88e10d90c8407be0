"""aclblasCdotc: its signature, the order of its checks, what pointers may be, and asynchronous order."""

from __future__ import annotations

import ctypes
import gc
import inspect
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import jitblas
from jitblas import Status, aclblas
from jitblas.handle import Handle
from jitblas.hardware import HOST, PROFILES
from tests.dots import Array, Spread, assert_close, bits, complex_numbers
from tests.kernels.build import Gate

MANY_CORES = PROFILES[HOST].dot_one_core + 1
BIG = 2**31 - 1


@pytest.fixture
def handle() -> Iterator[Handle]:
    with Handle(HOST) as made:
        yield made


def call(handle: Any, **changes: Any) -> Status:
    """aclblasCdotc with good arguments (4 elements, whose dot product is 20 - 10j) but for the changes."""
    good: dict[str, Any] = {
        "n": 4, "x": np.arange(1, 5).astype("c8") * (1 + 1j), "incx": 1, "y": np.full(4, 1 - 3j, "c8") * (-0.5 + 0.5j),
        "incy": 1, "result": np.full(1, 9, "c8"),
    }  # fmt: skip
    assert changes.keys() <= good.keys()
    return aclblas.aclblasCdotc(handle, **good | changes)


def position(handle: Handle) -> tuple[int, int]:
    return handle.runtime.stream_position(handle.stream.address)


def test_the_signature_is_that_of_the_c_function() -> None:
    assert list(inspect.signature(aclblas.aclblasCdotc).parameters) == [
        "handle", "n", "x", "incx", "y", "incy", "result",
    ]  # fmt: skip
    x, y, out = np.full(1, 2j, "c8"), np.full(1, 3 + 1j, "c8"), np.zeros(1, "c8")
    with Handle(HOST) as made:
        assert aclblas.aclblasCdotc(made, 1, x, 1, y, 1, out) is Status.SUCCESS
    assert out[0] == -2j * (3 + 1j)


# ---- The order of checks: each row breaks this rule and all later ones ----------------------------------------------

STILL: dict[str, Any] = {"incx": 0, "incy": 0}
LATER: dict[str, Any] = {"x": None, "y": None} | STILL

ROWS: list[tuple[str, dict[str, Any], str]] = [
    ("n below 0", {"n": -1, "result": None} | LATER, "n is -1; accepted are 0 to 2147483647"),
    ("n beyond int", {"n": 2**31, "result": None} | LATER, "n is 2147483648"),
    ("result null", {"result": None} | LATER, "result is null"),
    ("result null of nothing", {"n": 0, "result": 0} | LATER, "result is null"),
    ("x and y null", LATER, "x and y null"),
    ("x null", STILL | {"x": ctypes.c_void_p()}, "x null"),
    ("y null", STILL | {"y": 0}, "y null"),
    ("both increments 0", STILL | {"n": 99}, "incx is 0, incy is 0; an increment must not be 0"),
    ("incx 0", {"incx": 0, "n": 99}, "incx is 0"),
    ("incy 0", {"incy": 0, "n": 99}, "incy is 0"),
    ("incx beyond int", {"incx": 2**31}, "incx is 2147483648"),
    ("incy beyond int", {"incy": -(2**31)}, "incy is -2147483648"),
]


@pytest.mark.parametrize(("changes", "said"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_the_first_broken_rule_wins_and_nothing_is_written(handle: Handle, changes: dict[str, Any], said: str) -> None:
    result = np.full(1, 9, "c8")
    assert call(handle, **{"result": result} | changes) is Status.INVALID_VALUE
    assert jitblas.last_error().startswith("aclblasCdotc: INVALID_VALUE: ") and said in jitblas.last_error()
    assert position(handle) == (0, 0) and handle.workspace.size == 0
    assert result[0] == 9


@pytest.mark.parametrize("changes", [row[1] for row in ROWS], ids=[row[0] for row in ROWS])
def test_a_null_or_destroyed_handle_comes_before_everything(changes: dict[str, Any]) -> None:
    assert call(None, **changes) is Status.HANDLE_IS_NULLPTR
    assert "aclblasCreate" in jitblas.last_error()
    gone = Handle(HOST)
    gone.destroy()
    assert call(gone, **changes) is Status.NOT_INITIALIZED
    with pytest.raises(TypeError, match="no handle"):
        call("handle", **changes)


@pytest.mark.parametrize(
    "changes",
    [{"x": None, "y": None}, STILL, LATER, {"x": 1, "y": 2}, {"incx": 2**40}, {"x": np.zeros(0), "y": np.zeros(3)}],
    ids=str,
)
@pytest.mark.parametrize("device", [False, True])
def test_the_sum_of_nothing_is_zero_and_looks_at_neither_vector_nor_increment(
    handle: Handle, changes: dict[str, Any], device: bool
) -> None:
    nan = np.full(1, complex(np.nan, np.nan), "c8")
    result = jitblas.array(nan, target=HOST) if device else nan
    assert call(handle, n=0, result=result, **changes) is Status.SUCCESS
    handle.synchronize()
    assert bits(result.numpy() if isinstance(result, jitblas.DeviceArray) else result) == bytes(8)


READ_ONLY = np.full(1, 9, "c8")
READ_ONLY.flags.writeable = False

OPERANDS: dict[str, tuple[dict[str, Any], str]] = {
    "short x": ({"x": np.ones(3, "c8")}, "x has 24 bytes, n = 4 and an increment of 1 need 32"),
    "strided x": ({"x": np.ones(6, "c8"), "incx": 2}, "an increment of 2 need 56"),
    "negative y": ({"y": np.ones(6, "c8"), "incy": -2}, "y has 48 bytes, n = 4 and an increment of -2 need 56"),
    "tail of y": ({"y": np.ones(8, "c8")[5:]}, "y has 24 bytes"),
    "reversed x": ({"x": np.ones(8, "c8")[::-1]}, "x has 8 bytes"),
    "huge incx": ({"incx": BIG}, "x has 32 bytes"),
    "huge negative incy": ({"incy": -BIG}, "y has 32 bytes"),
    "ctypes x": ({"x": (ctypes.c_float * 7)()}, "x has 28 bytes"),
    "complex128 x": ({"x": np.ones(4, "c16")}, "x is an array of complex128"),
    "float y": ({"y": np.ones(8, "f4")}, "y is an array of float32"),
    "doubles y": ({"y": np.ones(4)}, "y is an array of float64"),
    "swapped x": ({"x": np.ones(4, ">c8")}, "x is an array of >c8"),
    "short result": ({"result": np.ones(0, "c8")}, "result has 0 bytes, complex64 results need 8"),
    "small result": ({"result": ctypes.c_float()}, "result has 4 bytes"),
    "complex128 result": ({"result": np.ones(1, "c16")}, "result is an array of complex128"),
    "float result": ({"result": np.ones(2, "f4")}, "result is an array of float32"),
    "read-only result": ({"result": READ_ONLY}, "result is read-only"),
}


@pytest.mark.parametrize("case", list(OPERANDS))
def test_arrays_too_short_or_of_another_type_are_invalid(handle: Handle, case: str) -> None:
    changes, said = OPERANDS[case]
    result = np.full(1, 9, "c8")
    assert call(handle, **{"result": result} | changes) is Status.INVALID_VALUE
    assert said in jitblas.last_error()
    assert position(handle) == (0, 0)
    assert result[0] == 9 and READ_ONLY[0] == 9


@pytest.mark.parametrize(
    ("name", "length", "word", "said"),
    [
        ("x", 3, "c64", "x has 24 bytes"),
        ("y", 8, "fp32", "y is an array of fp32"),
        ("result", 1, "c128", "result is an array of c128"),
        ("result", 0, "c64", "result has 0 bytes"),
    ],
)
def test_device_arrays_too_short_or_of_another_type_are_invalid(
    handle: Handle, name: str, length: int, word: str, said: str
) -> None:
    assert call(handle, **{name: jitblas.zeros(length, word, target=HOST)}) is Status.INVALID_VALUE
    assert said in jitblas.last_error()
    assert position(handle) == (0, 0)


@pytest.mark.parametrize("name", ["x", "y", "result"])
def test_what_cannot_be_known_of_a_number_is_that_it_is_an_address(handle: Handle, name: str) -> None:
    for number in (-1, 2**64):
        assert call(handle, **{name: number}) is Status.INVALID_VALUE
        assert f"{name} is {number}, which is no address" in jitblas.last_error()
    elsewhere = jitblas.zeros(4, "c64", target=HOST)
    elsewhere._memory.target = "ascend950pr"
    assert call(handle, **{name: elsewhere}) is Status.INVALID_VALUE
    assert f"{name} is on ascend950pr, the handle on host" in jitblas.last_error()
    assert position(handle) == (0, 0)


@pytest.mark.parametrize(
    "changes",
    [
        {"n": 4.0}, {"n": None}, {"incx": 1.5}, {"incy": "1"}, {"x": [1j] * 4}, {"y": "text"}, {"x": True},
        {"result": 0j}, {"result": np.complex64(0)}, {"result": object()}, {"n": 0, "result": 1.5},
    ],
    ids=repr,
)  # fmt: skip
def test_what_is_neither_a_pointer_nor_a_number_is_a_type_error(handle: Handle, changes: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=f"{list(changes)[-1]} is a"):
        call(handle, **changes)
    assert position(handle) == (0, 0)


@pytest.mark.parametrize(("n", "inc"), [(MANY_CORES, 1), (6, 2)])
def test_a_workspace_that_is_too_small_is_the_last_thing_found(handle: Handle, n: int, inc: int) -> None:
    memory, result = np.zeros(64, np.uint8), np.full(1, 9, "c8")
    x = complex_numbers(n * inc, 1)
    arguments: dict[str, Any] = {"n": n, "x": x, "incx": inc, "y": x, "incy": inc, "result": result}
    assert aclblas.aclblasSetWorkspace(handle, memory, 63) is Status.SUCCESS
    assert call(handle, **arguments | {"incx": 0}) is Status.INVALID_VALUE
    assert call(handle, **arguments) is Status.ALLOC_FAILED
    assert "64 bytes of workspace are needed, the workspace given has 63" in jitblas.last_error()
    assert position(handle) == (0, 0) and result[0] == 9 and not memory.any()
    assert call(handle) is Status.SUCCESS  # one core writes its result itself
    assert aclblas.aclblasSetWorkspace(handle, memory, 64) is Status.SUCCESS
    assert call(handle, **arguments) is Status.SUCCESS
    handle.synchronize()
    assert_close(result[0], x[::inc], x[::inc])


# ---- Increments and pointers ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("incx", "incy"), [(1, 1), (2, 1), (-1, -1), (1, -1), (-3, 2), (-2, -4)])
@pytest.mark.parametrize("n", [1, 2, 300, MANY_CORES])
def test_a_negative_increment_begins_at_the_far_end(handle: Handle, n: int, incx: int, incy: int) -> None:
    x, y = Spread(complex_numbers(n, 1), incx), Spread(complex_numbers(n, 2), incy)
    result = np.zeros(1, "c8")
    status = call(handle, n=n, x=x.lowest, incx=incx, y=y.lowest, incy=incy, result=result)
    assert status is Status.SUCCESS, jitblas.last_error()
    handle.synchronize()
    assert_close(result[0], x.view, y.view)
    if n > 1:
        assert bits(result[0]) == bits(jitblas.cdotc(x.view, y.view))


POINTERS: dict[str, Any] = {
    "address": lambda array: array.ctypes.data,
    "NumPy integer": lambda array: np.uint64(array.ctypes.data),
    "NumPy array": lambda array: array,
    "64-bit words": lambda array: array.view(np.uint64),
    "POINTER(c_float)": lambda array: array.ctypes.data_as(ctypes.POINTER(ctypes.c_float)),
    "c_void_p": lambda array: ctypes.c_void_p(array.ctypes.data),
    "c_float array": lambda array: (ctypes.c_float * (2 * array.size)).from_buffer(array),
    "byref": lambda array: ctypes.byref((ctypes.c_float * (2 * array.size)).from_buffer(array)),
}


@pytest.mark.parametrize("kind", list(POINTERS))
def test_every_kind_of_pointer_leads_to_the_same_memory(handle: Handle, kind: str) -> None:
    x, y, results = np.arange(1, 5).astype("c8"), np.full(4, 1 + 2j, "c8"), np.full(3, 9, "c8")
    pointer = POINTERS[kind]
    assert call(handle, x=pointer(x), y=pointer(y), result=pointer(results[1:])) is Status.SUCCESS
    handle.synchronize()
    assert results.tolist() == [9, 10 + 20j, 9]


def test_device_arrays_and_addresses_inside_them_are_pointers(handle: Handle) -> None:
    x = jitblas.array(np.arange(1, 5).astype("c8"), target=HOST)
    results = jitblas.zeros(3, "c64", target=HOST)
    assert call(handle, x=x, y=x, result=results[1:]) is Status.SUCCESS
    assert call(handle, n=3, x=x.address, y=x.address + 8, result=results.address + 16) is Status.SUCCESS
    handle.synchronize()
    assert results.numpy().tolist() == [0, 30, 1 * 2 + 2 * 3 + 3 * 4]


@pytest.mark.parametrize(("n", "inc"), [(300, 1), (MANY_CORES, 1), (300, 2)], ids=["one core", "many cores", "strided"])
def test_operands_may_be_the_same_and_contain_the_result(handle: Handle, n: int, inc: int) -> None:
    x = complex_numbers(n * inc, 1)
    before = x.copy()
    assert call(handle, n=n, x=x, incx=inc, y=x, incy=inc, result=x[5 * inc :]) is Status.SUCCESS
    handle.synchronize()
    assert_close(x[5 * inc], before[::inc], before[::inc])


# ---- Asynchronous order ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "inc"), [(0, 1), (4, 1), (MANY_CORES, 1), (4, -1)])
def test_a_call_returns_before_the_result_is_there(handle: Handle, n: int, inc: int) -> None:
    x: Array = np.ones(n, "c8")
    result = np.full(1, 9, "c8")
    with Gate(handle.stream):
        assert call(handle, n=n, x=x, y=x, incx=inc, result=result) is Status.SUCCESS
        assert position(handle)[1] == 0
        x *= 2
        assert result[0] == 9
    handle.synchronize()
    assert result[0] == 4 * n


def test_calls_run_in_the_order_they_were_made(handle: Handle) -> None:
    """Each result is an element of the next call's operand; the workspace is shared by those that need one."""
    n = MANY_CORES
    x, ones = np.ones(n, "c8"), np.ones(n, "c8")
    with Gate(handle.stream):
        for place in range(6):
            used = n if place % 2 else 4096
            assert call(handle, n=used, x=ones, y=x, result=x[place:]) is Status.SUCCESS
    handle.synchronize()
    expected = np.ones(n)
    for place in range(6):
        expected[place] = np.float32(expected[: n if place % 2 else 4096].sum())
    assert (x.real == expected).all() and not x.imag.any()


def test_arrays_live_until_the_work_on_them_is_done(handle: Handle) -> None:
    operands = {name: np.ones(4, "c8") for name in ("x", "y", "result")}
    alive = [weakref.ref(array) for array in operands.values()]
    with Gate(handle.stream):
        assert call(handle, **operands) is Status.SUCCESS
        operands.clear()
        gc.collect()
        assert all(reference() is not None for reference in alive)
    handle.synchronize()
    gc.collect()
    assert all(reference() is None for reference in alive)
