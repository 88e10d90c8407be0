"""aclblasAxpyEx: the order of its checks, its statuses, what a pointer may be, and asynchronous order."""

from __future__ import annotations

import ctypes
import gc
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import jitblas
from jitblas import Status, aclblas
from jitblas.aclblas import ACL_BF16, ACL_DOUBLE, ACL_FLOAT, ACL_FLOAT16
from tests.kernels.build import Gate
from tests.reference import DTYPES, assert_same_bits, axpy, bits, numbers

Array = np.ndarray[Any, np.dtype[Any]]

TYPES = {"fp32": ACL_FLOAT, "fp16": ACL_FLOAT16, "bf16": ACL_BF16}
ARGUMENTS = ("n", "alpha", "alphaType", "x", "xType", "incx", "y", "yType", "incy", "executionType")
BIG = 2**31 - 1


@pytest.fixture
def handle() -> Iterator[jitblas.Handle]:
    with jitblas.Handle("host") as made:
        yield made


def call(handle: Any, **changes: Any) -> Status:
    """aclblasAxpyEx with good arguments (4 elements of FP32) but for the changes."""
    good = {
        "n": 4,
        "alpha": np.array([2], "f4"),
        "alphaType": ACL_FLOAT,
        "x": np.arange(1, 5, dtype="f4"),
        "xType": ACL_FLOAT,
        "incx": 1,
        "y": np.full(4, 10, "f4"),
        "yType": ACL_FLOAT,
        "incy": 1,
        "executionType": ACL_FLOAT,
    }
    arguments = good | changes
    assert set(arguments) == set(ARGUMENTS)
    return aclblas.aclblasAxpyEx(handle, *(arguments[name] for name in ARGUMENTS))


def position(handle: jitblas.Handle) -> tuple[int, int]:
    return handle.runtime.stream_position(handle.stream.address)


# ---- The order of checks: each row breaks this rule and all later ones ----------------------------------------------

NULLS: dict[str, Any] = {"alpha": None, "x": None, "y": None}
STILL: dict[str, Any] = {"incx": 0, "incy": 0}
TYPELESS: dict[str, Any] = {"alphaType": ACL_FLOAT16, "xType": 99, "yType": 98, "executionType": ACL_DOUBLE}
LATER = NULLS | STILL | TYPELESS

ROWS: list[tuple[str, dict[str, Any], Status, str]] = [
    ("n below 0", {"n": -1} | LATER, Status.INVALID_VALUE, "n is -1"),
    ("n most negative", {"n": -(2**31)} | LATER, Status.INVALID_VALUE, "n is -2147483648"),
    ("n beyond int", {"n": 2**31} | LATER, Status.INVALID_VALUE, "n is 2147483648"),
    ("n beyond 64 bits", {"n": 2**70} | LATER, Status.INVALID_VALUE, f"n is {2**70}"),
    ("n is 0", {"n": 0} | LATER, Status.SUCCESS, ""),
    ("alphaType", LATER, Status.NOT_SUPPORTED, "alphaType is 1"),
    ("executionType", LATER | {"alphaType": 0}, Status.NOT_SUPPORTED, "executionType is 11"),
    ("xType", LATER | {"alphaType": 0, "executionType": 0}, Status.NOT_SUPPORTED, "xType is 99"),
    ("yType", NULLS | STILL | {"yType": 98}, Status.NOT_SUPPORTED, "yType is 98"),
    ("xType is not yType", NULLS | STILL | {"yType": ACL_FLOAT16}, Status.NOT_SUPPORTED, "xType is 0 and yType is 1"),
    ("all null", NULLS | STILL, Status.INVALID_VALUE, "alpha and x and y null"),
    ("alpha null", STILL | {"alpha": None}, Status.INVALID_VALUE, "alpha null"),
    ("x null", STILL | {"x": 0}, Status.INVALID_VALUE, "x null"),
    ("y null", STILL | {"y": ctypes.c_void_p()}, Status.INVALID_VALUE, "y null"),
    ("both increments 0", STILL, Status.INVALID_VALUE, "incx is 0, incy is 0"),
    ("incx 0", {"incx": 0}, Status.INVALID_VALUE, "incx is 0"),
    ("incy 0", {"incy": 0}, Status.INVALID_VALUE, "incy is 0"),
    ("incx beyond int", {"incx": 2**31}, Status.INVALID_VALUE, "incx is 2147483648"),
    ("incy beyond int", {"incy": -(2**31) - 1}, Status.INVALID_VALUE, "incy is -2147483649"),
    ("x too short", {"n": 5, "y": np.zeros(5, "f4")}, Status.INVALID_VALUE, "x has 16 bytes"),
    ("y too short", {"incy": 2}, Status.INVALID_VALUE, "y has 16 bytes"),
]


@pytest.mark.parametrize(("changes", "status", "said"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_the_first_broken_rule_wins_and_nothing_is_written(
    handle: jitblas.Handle, changes: dict[str, Any], status: Status, said: str
) -> None:
    y = np.full(4, 10, "f4")
    before = position(handle)
    assert call(handle, **({"y": y} | changes)) == status
    if status:
        assert said in jitblas.last_error()
        assert jitblas.last_error().startswith(f"aclblasAxpyEx: {status.name}: ")
    assert position(handle) == before
    assert (y == 10).all()


@pytest.mark.parametrize("changes", [row[1] for row in ROWS], ids=[row[0] for row in ROWS])
def test_a_null_or_destroyed_handle_comes_before_everything(changes: dict[str, Any]) -> None:
    assert call(None, **changes) == Status.HANDLE_IS_NULLPTR
    assert "aclblasCreate" in jitblas.last_error()
    gone = jitblas.Handle("host")
    assert aclblas.aclblasDestroy(gone) == Status.SUCCESS
    assert call(gone, **changes) == Status.NOT_INITIALIZED
    assert "destroyed" in jitblas.last_error()


@pytest.mark.parametrize("changes", [{"alphaType": ACL_BF16}, {"xType": ACL_DOUBLE, "yType": ACL_DOUBLE}])
def test_unsupported_types_name_what_is_accepted(handle: jitblas.Handle, changes: dict[str, Any]) -> None:
    assert call(handle, **changes) == Status.NOT_SUPPORTED
    assert "ACL_FLOAT (0)" in jitblas.last_error()
    assert ("ACL_BF16 (27)" in jitblas.last_error()) == ("xType" in changes)


def test_n_zero_looks_at_nothing(handle: jitblas.Handle) -> None:
    before = position(handle)
    assert call(handle, n=0, **LATER) == Status.SUCCESS
    assert call(handle, n=0, x=1, y=2, alpha=3) == Status.SUCCESS
    assert position(handle) == before


def test_success_leaves_the_last_error_and_threads_have_their_own(handle: jitblas.Handle) -> None:
    call(handle, n=-5)
    said = jitblas.last_error()
    assert "n is -5" in said
    assert call(handle) == Status.SUCCESS
    assert jitblas.last_error() == said
    elsewhere: list[str] = []
    thread = threading.Thread(target=lambda: elsewhere.append(jitblas.last_error()))
    thread.start()
    thread.join()
    assert elsewhere == [""]


# ---- TypeErrors -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {"n": 4.0},
        {"n": "4"},
        {"n": None},
        {"incx": 1.0},
        {"incy": None},
        {"alphaType": "fp32"},
        {"executionType": 0.0},
        {"xType": np.float32},
        {"alpha": 2.0},
        {"alpha": np.float32(2)},
        {"x": [1.0, 2.0, 3.0, 4.0]},
        {"x": "text"},
        {"y": b"bytes"},
        {"y": object()},
        {"x": True},
    ],
    ids=repr,
)
def test_what_is_neither_a_pointer_nor_a_number_is_a_type_error(
    handle: jitblas.Handle, changes: dict[str, Any]
) -> None:
    before = position(handle)
    with pytest.raises(TypeError):
        call(handle, **changes)
    assert position(handle) == before


@pytest.mark.parametrize("wrong", [1, "handle", object()])
def test_what_is_no_handle_is_a_type_error(wrong: Any) -> None:
    with pytest.raises(TypeError, match="no handle"):
        call(wrong)
    with pytest.raises(TypeError, match="no handle"):
        aclblas.aclblasDestroy(wrong)


@pytest.mark.parametrize("wrong", [None, 1, "handle"])
def test_what_is_no_handle_has_no_stream(wrong: Any) -> None:
    with pytest.raises((TypeError, jitblas.StatusError), match="handle"):
        aclblas.aclblasGetStream(wrong)


@pytest.mark.parametrize("address", [-1, 2**64])
@pytest.mark.parametrize("name", ["alpha", "x", "y"])
def test_a_number_that_cannot_be_an_address_is_invalid(python: Any, name: str, address: int) -> None:
    answer = python(
        f"""
import numpy as np, jitblas
from jitblas import aclblas
pointers = dict.fromkeys(("alpha", "x", "y"), np.ones(1, "f4")) | {{{name!r}: {address}}}
alpha, x, y = pointers.values()
print(aclblas.aclblasAxpyEx(jitblas.Handle("host"), 1, alpha, 0, x, 0, 1, y, 0, 1, 0).name)
""",
        check=False,
    )
    assert answer.stdout == "INVALID_VALUE\n", answer.stderr or answer.returncode


# ---- Pointers -------------------------------------------------------------------------------------------------------


class Tensor:
    """As a torch tensor gives its address."""

    def __init__(self, array: Array) -> None:
        self.array = array

    def data_ptr(self) -> int:
        return int(self.array.ctypes.data)


POINTERS: dict[str, Any] = {
    "address": lambda array: array.ctypes.data,
    "NumPy integer": lambda array: np.uint64(array.ctypes.data),
    "NumPy array": lambda array: array,
    "POINTER(c_float)": lambda array: array.ctypes.data_as(ctypes.POINTER(ctypes.c_float)),
    "c_void_p": lambda array: ctypes.c_void_p(array.ctypes.data),
    "c_float array": lambda array: (ctypes.c_float * array.size).from_buffer(array),
    "byref": lambda array: ctypes.byref((ctypes.c_float * array.size).from_buffer(array)),
    "tensor": Tensor,
}


@pytest.mark.parametrize("kind", list(POINTERS))
def test_every_kind_of_pointer_leads_to_the_same_memory(handle: jitblas.Handle, kind: str) -> None:
    alpha, x, y = np.array([2], "f4"), np.arange(1, 5, dtype="f4"), np.full(4, 10, "f4")
    pointer = POINTERS[kind]
    assert call(handle, alpha=pointer(alpha), x=pointer(x), y=pointer(y)) == Status.SUCCESS
    handle.synchronize()
    assert y.tolist() == [12, 14, 16, 18]


@pytest.mark.parametrize("pointed", [lambda number: number, ctypes.byref, ctypes.pointer])
def test_alpha_may_be_a_ctypes_number(handle: jitblas.Handle, pointed: Any) -> None:
    y = np.full(4, 10, "f4")
    assert call(handle, alpha=pointed(ctypes.c_float(2)), y=y) == Status.SUCCESS
    handle.synchronize()
    assert y.tolist() == [12, 14, 16, 18]


def test_device_arrays_and_addresses_inside_them_are_pointers(handle: jitblas.Handle) -> None:
    x, y, alpha = jitblas.array(np.arange(1, 5, dtype="f4")), jitblas.zeros(4), jitblas.array([9.0, 2.0], "fp32")
    assert call(handle, x=x, y=y, alpha=alpha[1:]) == Status.SUCCESS
    assert call(handle, x=x.address, y=y.address + 4, alpha=alpha.address + 4, n=3) == Status.SUCCESS
    handle.synchronize()
    assert y.numpy().tolist() == [2, 6, 10, 14]


@pytest.mark.parametrize("word", list(DTYPES))
def test_all_types_give_the_reference_bits(handle: jitblas.Handle, word: str) -> None:
    for n, incx, incy in ((1, 1, 1), (300, 1, 1), (70_001, 1, 1), (300, 2, -3), (20_000, -1, -1)):
        x, y = numbers(word, n * abs(incx), 1), numbers(word, n * abs(incy), 2)
        expected = y.copy()
        logical_x = x[:: abs(incx)][:n][:: 1 if incx > 0 else -1]
        logical_y = expected[:: abs(incy)][:n][:: 1 if incy > 0 else -1]
        logical_y[:] = axpy(2.0, logical_x, logical_y)
        kinds = TYPES[word]
        assert call(handle, n=n, x=x, xType=kinds, incx=incx, y=y, yType=kinds, incy=incy) == Status.SUCCESS
        handle.synchronize()
        assert_same_bits(y, expected, f"n={n} incx={incx} incy={incy}")


def test_bf16_may_be_given_as_plain_16_bit_numbers(handle: jitblas.Handle) -> None:
    x = np.ones(4, ml_dtypes.bfloat16)
    y = np.zeros(4, np.uint16)
    assert call(handle, x=x, y=y, xType=ACL_BF16, yType=ACL_BF16) == Status.SUCCESS
    handle.synchronize()
    assert y.view(ml_dtypes.bfloat16).tolist() == [2.0] * 4


# ---- Arrays say how long they are -----------------------------------------------------------------------------------

SHORT: dict[str, dict[str, Any]] = {
    "NumPy x": {"x": np.ones(3, "f4")},
    "strided x": {"x": np.ones(6, "f4"), "incx": 2},
    "negative x": {"x": np.ones(6, "f4"), "incx": -2},
    "reversed x": {"x": np.ones(8, "f4")[::-1]},
    "tail of x": {"x": np.ones(8, "f4")[5:]},
    "ctypes x": {"x": (ctypes.c_float * 3)()},
    "NumPy y": {"y": np.ones(3, "f4")},
    "empty y": {"y": np.ones(0, "f4")},
    "huge incx": {"incx": BIG},
    "huge negative incy": {"incy": -BIG},
    "another type": {"x": np.ones(4, "f2")},
    "doubles": {"x": np.ones(4)},
    "swapped": {"y": np.ones(4, ">f4")},
    "short alpha": {"alpha": np.ones(0, "f4")},
    "double alpha": {"alpha": np.ones(1)},
    "small alpha": {"alpha": ctypes.c_short(2)},
    "half alpha": {"alpha": np.ones(1, "f2")},
}


@pytest.mark.parametrize("case", list(SHORT))
def test_arrays_too_short_or_of_another_type_are_invalid(handle: jitblas.Handle, case: str) -> None:
    before = position(handle)
    assert call(handle, **SHORT[case]) == Status.INVALID_VALUE
    assert position(handle) == before


def test_device_arrays_too_short_or_elsewhere_are_invalid(handle: jitblas.Handle) -> None:
    for changes in ({"y": jitblas.zeros(3)}, {"x": jitblas.zeros(4, "fp16")}, {"alpha": jitblas.zeros(1, "bf16")}):
        assert call(handle, **changes) == Status.INVALID_VALUE
    foreign = jitblas.zeros(4)
    foreign._memory.target = "ascend950pr"
    assert call(handle, x=foreign) == Status.INVALID_VALUE
    assert "ascend950pr" in jitblas.last_error()


def test_a_read_only_y_is_invalid(handle: jitblas.Handle) -> None:
    y = np.ones(4, "f4")
    y.flags.writeable = False
    assert call(handle, y=y) == Status.INVALID_VALUE
    assert "read-only" in jitblas.last_error()
    assert (y == 1).all()


def test_arrays_may_be_longer_than_needed(handle: jitblas.Handle) -> None:
    y = np.zeros(100, "f4")
    assert call(handle, x=np.ones(10, "f4"), incx=3, y=y[50:], incy=-4) == Status.SUCCESS
    handle.synchronize()
    assert np.flatnonzero(y).tolist() == [50, 54, 58, 62]


def test_operands_that_overlap_never_crash(handle: jitblas.Handle) -> None:
    memory = np.ones(50_000, "f4")
    for x, y in ((memory[1:], memory[:-1]), (memory[:-1], memory[1:]), (memory, memory[3:])):
        assert call(handle, n=y.size - 8, x=x, y=y) == Status.SUCCESS
    assert call(handle, n=10_000, x=memory, incx=-1, y=memory, incy=3) == Status.SUCCESS
    handle.synchronize()


def test_x_identical_to_y_is_exact(handle: jitblas.Handle) -> None:
    y = numbers("fp32", 30_000, 3)
    expected = axpy(2.0, y, y)
    assert call(handle, n=30_000, x=y, y=y) == Status.SUCCESS
    handle.synchronize()
    assert_same_bits(y, expected)


# ---- Handle, stream, workspace --------------------------------------------------------------------------------------


def test_create_stream_and_destroy_are_a_round() -> None:
    handle = aclblas.aclblasCreate()
    assert isinstance(handle, jitblas.Handle)
    stream = jitblas.Stream("host")
    assert aclblas.aclblasSetStream(handle, stream) == Status.SUCCESS
    assert aclblas.aclblasGetStream(handle) is stream
    assert aclblas.aclblasSetStream(handle, stream.address) == Status.SUCCESS
    assert aclblas.aclblasGetStream(handle).address == stream.address
    assert aclblas.aclblasDestroy(handle) == Status.SUCCESS
    assert aclblas.aclblasDestroy(handle) == Status.NOT_INITIALIZED
    assert aclblas.aclblasSetStream(handle, None) == Status.NOT_INITIALIZED
    stream.destroy()
    for function in (aclblas.aclblasDestroy, lambda h: aclblas.aclblasSetStream(h, None)):
        assert function(None) == Status.HANDLE_IS_NULLPTR


def test_a_destroyed_stream_is_no_stream(handle: jitblas.Handle) -> None:
    stream = jitblas.Stream("host")
    stream.destroy()
    assert aclblas.aclblasSetStream(handle, stream) == Status.INVALID_VALUE
    assert call(handle) == Status.SUCCESS
    with pytest.raises(TypeError):
        aclblas.aclblasSetStream(handle, "stream")


def test_a_workspace_is_used_as_it_is_given(handle: jitblas.Handle) -> None:
    memory = np.full(4096, 0x5A, np.uint8)
    assert aclblas.aclblasSetWorkspace(handle, memory, 4096) == Status.SUCCESS
    assert (handle.workspace.size, handle.workspace.owned) == (4096, False)
    assert handle.workspace.reserve(4096) == memory.ctypes.data
    with pytest.raises(jitblas.StatusError, match="4097 bytes of workspace are needed") as caught:
        handle.workspace.reserve(4097)
    assert caught.value.status == Status.ALLOC_FAILED
    assert call(handle) == Status.SUCCESS
    handle.synchronize()
    assert (memory == 0x5A).all()


@pytest.mark.parametrize(
    ("pointer", "size", "said"),
    [
        (None, 100, "null"),
        (0, 100, "null"),
        (np.zeros(99, np.uint8), 100, "99 bytes"),
        (np.zeros(99, np.uint8), -1, "size is -1"),
        (np.zeros(99, np.uint8)[90:], 10, "9 bytes"),
    ],
)
def test_an_impossible_workspace_is_invalid(handle: jitblas.Handle, pointer: Any, size: int, said: str) -> None:
    kept = handle.workspace
    assert aclblas.aclblasSetWorkspace(handle, pointer, size) == Status.INVALID_VALUE
    assert said in jitblas.last_error()
    assert handle.workspace is kept


def test_workspace_calls_check_their_handle_and_types(handle: jitblas.Handle) -> None:
    memory = np.zeros(64, np.uint8)
    assert aclblas.aclblasSetWorkspace(None, memory, 64) == Status.HANDLE_IS_NULLPTR
    for pointer, size in ((memory, 64.0), ([1], 64), (memory, None)):
        with pytest.raises(TypeError):
            aclblas.aclblasSetWorkspace(handle, pointer, size)


def test_a_workspace_lives_as_long_as_the_handle_may_use_it(handle: jitblas.Handle) -> None:
    memory = np.zeros(64, np.uint8)
    alive = weakref.ref(memory)
    assert aclblas.aclblasSetWorkspace(handle, memory, 64) == Status.SUCCESS
    del memory
    gc.collect()
    assert alive() is not None


# ---- Asynchronous order ---------------------------------------------------------------------------------------------


def test_a_call_returns_before_the_work_is_done(handle: jitblas.Handle) -> None:
    y = np.full(4, 10, "f4")
    with Gate(handle.stream):
        assert call(handle, y=y) == Status.SUCCESS
        submitted, completed = position(handle)
        assert (submitted, completed) == (2, 0)
        assert (y == 10).all()
    handle.synchronize()
    assert y.tolist() == [12, 14, 16, 18]


@pytest.mark.parametrize("kind", ["NumPy array", "address", "c_float array"])
def test_a_host_alpha_is_read_before_the_call_returns(handle: jitblas.Handle, kind: str) -> None:
    alpha = np.array([2], "f4")
    y, large = np.full(4, 10, "f4"), np.zeros(100_000, "f4")
    with Gate(handle.stream):
        assert call(handle, y=y, alpha=POINTERS[kind](alpha)) == Status.SUCCESS
        alpha[0] = 1000
        assert call(handle, n=100_000, x=np.ones(100_000, "f4"), y=large, alpha=POINTERS[kind](alpha)) == Status.SUCCESS
        alpha[0] = 5
    handle.synchronize()
    assert y.tolist() == [12, 14, 16, 18]
    assert (large == 1000).all()


def test_a_device_alpha_is_read_in_stream_order(handle: jitblas.Handle) -> None:
    alpha = jitblas.array([2.0], "fp32")
    y = np.zeros(3, "f4")
    one, ten = np.ones(1, "f4"), np.full(1, 10, "f4")
    with Gate(handle.stream):
        for element in range(3):
            assert call(handle, n=1, alpha=alpha, x=one, y=y[element:]) == Status.SUCCESS
            assert call(handle, n=1, alpha=ten, x=one, y=alpha) == Status.SUCCESS
        assert (y == 0).all()
    handle.synchronize()
    assert y.tolist() == [2, 12, 22]
    assert alpha.numpy().tolist() == [32]


@pytest.mark.parametrize("word", list(DTYPES))
def test_a_long_queue_of_dependent_calls_gives_the_sequential_result(handle: jitblas.Handle, word: str) -> None:
    generator = np.random.default_rng(4)
    sizes = [*(2 ** generator.uniform(0, 15.5, 150)).astype(int).tolist(), 40_000]
    alphas = (2 ** -generator.uniform(2, 4, len(sizes))).astype("f4")
    a, b = numbers(word, 50_000, 5), numbers(word, 50_000, 6)
    expected_a, expected_b = a.copy(), b.copy()
    kinds = TYPES[word]
    for step, (n, alpha) in enumerate(zip(sizes, alphas, strict=True)):
        x, y = (a, b) if step % 2 else (b, a)
        status = call(handle, n=n, alpha=alpha.reshape(1), x=x, xType=kinds, y=y, yType=kinds)
        assert status == Status.SUCCESS
    for step, (n, alpha) in enumerate(zip(sizes, alphas, strict=True)):
        x, y = (expected_a, expected_b) if step % 2 else (expected_b, expected_a)
        y[:n] = axpy(alpha, x[:n], y[:n])
    handle.synchronize()
    assert (bits(a) == bits(expected_a)).all()
    assert (bits(b) == bits(expected_b)).all()


def test_arrays_live_until_the_work_on_them_is_done(handle: jitblas.Handle) -> None:
    x, y = np.ones(4, "f4"), np.ones(4, "f4")
    alive = [weakref.ref(x), weakref.ref(y)]
    with Gate(handle.stream):
        assert call(handle, x=x, y=y) == Status.SUCCESS
        del x, y
        gc.collect()
        assert all(reference() is not None for reference in alive)
    handle.synchronize()
    gc.collect()
    assert all(reference() is None for reference in alive)


def test_a_device_alpha_lives_until_it_is_read_even_if_x_and_y_are_addresses(handle: jitblas.Handle) -> None:
    x, y = np.ones(4, "f4"), np.ones(4, "f4")
    alpha = jitblas.array([2.0], "fp32")
    alive = weakref.ref(alpha)
    with Gate(handle.stream):
        assert call(handle, alpha=alpha, x=x.ctypes.data, y=y.ctypes.data) == Status.SUCCESS
        del alpha
        gc.collect()
        assert alive() is not None
    handle.synchronize()
    assert y.tolist() == [3.0] * 4


def test_switching_streams_does_not_lose_what_the_first_one_holds() -> None:
    first, second = jitblas.Stream("host"), jitblas.Stream("host")
    with jitblas.Handle("host", stream=first) as handle:
        y, z = np.full(4, 10, "f4"), np.full(4, 10, "f4")
        with Gate(first):
            assert call(handle, y=y) == Status.SUCCESS
            assert aclblas.aclblasSetStream(handle, second) == Status.SUCCESS
            assert call(handle, y=z) == Status.SUCCESS
            second.synchronize()
            assert z.tolist() == [12, 14, 16, 18]
            assert y.tolist() == [10] * 4
        first.synchronize()
        assert y.tolist() == [12, 14, 16, 18]


def test_destroying_a_handle_waits_for_its_work() -> None:
    handle = jitblas.Handle("host")
    y = np.zeros(1_000_000, "f4")
    x = np.ones(1_000_000, "f4")
    for _ in range(20):
        assert call(handle, n=y.size, x=x, y=y) == Status.SUCCESS
    assert aclblas.aclblasDestroy(handle) == Status.SUCCESS
    assert (y == 40).all()


@pytest.mark.parametrize("alpha", [ctypes.c_double(2), ctypes.c_int(2), (ctypes.c_double * 1)(2)], ids=str)
def test_an_alpha_of_another_ctypes_type_is_invalid(handle: jitblas.Handle, alpha: Any) -> None:
    x, y = np.ones(4, "f4"), np.ones(4, "f4")
    assert aclblas.aclblasAxpyEx(handle, 4, alpha, 0, x, 0, 1, y, 0, 1, 0) == Status.INVALID_VALUE
    assert "a c_float is needed" in jitblas.last_error()
    assert (y == 1).all()
