"""jitblas.cdotc on arrays: numbers against float64, the same bits every time, and what it refuses."""

from __future__ import annotations

import math
import mmap
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jitblas
from jitblas import Status
from jitblas.handle import Handle
from jitblas.hardware import HOST, PROFILES
from jitblas.jit.kernels import runtime_for
from jitblas.operators.cdotc import workspace_bytes
from jitblas.problem import Problem
from tests.dots import Array, Spread, assert_close, bits, complex_numbers, dot
from tests.kernels.build import Gate
from tests.operands import refused

ONE_CORE = PROFILES[HOST].dot_one_core
SIZES = (1, 2, 3, 7, 8, 31, 63, 64, 65, 127, 128, 129, 255, 1000, 4095, 4096, 4097)
LARGE = (ONE_CORE - 1, ONE_CORE, ONE_CORE + 1, 200_000, 2**20 + 3)
INCREMENTS = ((1, 1), (3, 1), (-1, -1), (-2, 1), (1, -1), (2, -3))
PATHS = ((300, 1), (ONE_CORE + 1, 1), (300, 2))
"""Size and increment of x for each kernel: one core, many cores, strided."""
MAP_NORESERVE = 0x4000  # Linux; Python's mmap has had the name since 3.13

paths = pytest.mark.parametrize(("n", "incx"), PATHS, ids=["one core", "many cores", "strided"])


def vectors(n: int, incx: int = 1, incy: int = 1) -> tuple[Array, Array]:
    return Spread(complex_numbers(n, 1), incx).view, Spread(complex_numbers(n, 2), incy).view


# ---- Right numbers --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("incx", "incy", "positive"), [(*pair, False) for pair in INCREMENTS] + [(1, 1, True), (2, -3, True)]
)
def test_both_parts_are_within_the_bound_and_only_elements_are_read(incx: int, incy: int, positive: bool) -> None:
    for n in (*SIZES, *LARGE):
        x = Spread(complex_numbers(n, 1, positive=positive), incx)
        y = Spread(complex_numbers(n, 2, positive=positive), incy)
        number = jitblas.cdotc(x.view, y.view)
        assert type(number) is np.complex64
        assert_close(number, x.view, y.view, f"n={n}")
        x.assert_untouched()
        y.assert_untouched()


@paths
def test_every_element_counts_and_x_is_the_conjugate_one(n: int, incx: int) -> None:
    """Small whole numbers, whose sums FP32 holds exactly: nothing may be off at all."""
    for first, last in ((2 - 1j, 1 + 3j), (-3 + 2j, 5j)):
        x = Spread(np.where(np.arange(n) % 5 == 0, first, 1j).astype("c8"), incx).view
        y = Spread(np.where(np.arange(n) % 7 == 0, last, 1 - 1j).astype("c8"), 1).view
        assert complex(jitblas.cdotc(x, y)) == dot(x, y)[0]
        assert complex(jitblas.cdotc(y, x)) == dot(x, y)[0].conjugate()


def test_numbers_that_cancel_leave_what_is_left_over() -> None:
    """Adding one after the other would lose the small number between two large ones."""
    for n in (192, 3 * 2**16):
        x, y = np.ones(n, "c8"), np.zeros(n, "c8")
        y[: n // 3], y[n // 3 : 2 * n // 3], y[-n // 3 :] = 2.0**20, 1 + 1j, -(2.0**20)
        assert_close(jitblas.cdotc(x, y), x, y)


@pytest.mark.parametrize(("n", "incx"), [(ONE_CORE, 1), (2**20, 1), (200_000, 2)], ids=["one core", "many", "strided"])
def test_rounding_errors_of_one_sign_do_not_add_up(n: int, incx: int) -> None:
    """Equal numbers are rounded the same way again and again, which a plain sum does not survive."""
    x, y = Spread(np.full(n, 1 + 0.25j, "c8"), incx).view, np.full(n, (4 - 1j) / 3, "c8")
    assert_close(jitblas.cdotc(x, y), x, y)


@given(
    n=st.integers(0, 700) | st.integers(ONE_CORE - 70, ONE_CORE + 300),
    increments=st.tuples(*[st.integers(-5, 5).filter(bool)] * 2),
    offsets=st.tuples(*[st.integers(0, 9)] * 2),
    seeds=st.tuples(*[st.integers(3, 6)] * 2),
    positive=st.booleans(),
)
@settings(deadline=None, max_examples=120)
def test_any_size_increment_and_offset(
    n: int, increments: tuple[int, int], offsets: tuple[int, int], seeds: tuple[int, int], positive: bool
) -> None:
    x, y = (
        Spread(complex_numbers(n, seed, positive=positive), inc, offset)
        for inc, offset, seed in zip(increments, offsets, seeds, strict=True)
    )
    assert_close(jitblas.cdotc(x.view, y.view), x.view, y.view)
    x.assert_untouched()
    y.assert_untouched()


def test_elements_may_be_gigabytes_apart() -> None:
    """Index arithmetic beyond 2^31 elements; the pages between are never touched, so they cost nothing."""
    inc, n = 3 * 2**28 + 1, 4
    needed = ((n - 1) * inc + 1) * 8
    try:
        memory = mmap.mmap(-1, needed, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_NORESERVE)
    except (OSError, ValueError) as error:
        pytest.skip(f"{needed} bytes of address space cannot be had: {error}")
    far = np.frombuffer(memory, "c8")[::inc]
    assert far.size == n and (n - 1) * inc > 2**31
    far[:] = [1, 2j, 3, 4j]
    for x, y in ((far, far[::-1]), (far, np.ones(n, "c8"))):
        assert complex(jitblas.cdotc(x, y)) == dot(x, y)[0]
        assert complex(jitblas.cdotc(y, x)) == dot(y, x)[0]


@pytest.mark.parametrize("n", [0, 1])
@pytest.mark.parametrize("step", [1, -2])
def test_nothing_is_zero_and_one_element_is_a_product(n: int, step: int) -> None:
    x, y = np.full(2, 2 + 1j, "c8")[::step][:n], np.full(2, 3 - 2j, "c8")[::step][:n]
    wanted = np.complex64((2 - 1j) * (3 - 2j) if n else 0)
    assert bits(jitblas.cdotc(x, y)) == bits(wanted)
    for out in (np.full(1, np.nan, "c8"), jitblas.array(np.full(1, np.nan, "c8"), target=HOST)):
        assert jitblas.cdotc(x, y, out=out) is out
        got = out if isinstance(out, np.ndarray) else out.numpy()
        assert bits(got[0]) == bits(wanted)


# ---- Numbers that are not finite ------------------------------------------------------------------------------------


def formula(x: Array, y: Array) -> list[float]:
    """Both parts of the sum in float64, written as the operator's description has it."""
    xr, xi, yr, yi = (part.astype(np.float64) for part in (x.real, x.imag, y.real, y.imag))
    with np.errstate(invalid="ignore"):
        return [float((xr * yr + xi * yi).sum()), float((xr * yi - xi * yr).sum())]


def kind(number: float) -> str:
    return str(number) if not math.isfinite(number) else "finite"


SPECIAL: dict[str, tuple[dict[float, complex], dict[float, complex]]] = {
    "infinity": ({0.5: complex(np.inf, 1)}, {}),
    "minus infinity": ({}, {0.0: complex(2, -np.inf)}),
    "both parts infinite": ({1.0: complex(np.inf, np.inf)}, {}),
    "infinity of one sign, twice": ({0.0: complex(0.5, np.inf), 1.0: complex(0.5, np.inf)}, {0.0: 1, 1.0: 1}),
    "infinities of both signs": ({0.0: complex(np.inf, 1), 1.0: complex(-np.inf, 1)}, {0.0: 1 + 1j, 1.0: 1 + 1j}),
    "infinity times zero": ({0.7: complex(np.inf, 0)}, {0.7: 0}),
    "infinity times infinity": ({0.3: complex(-np.inf, 1)}, {0.3: complex(np.inf, 1)}),
    "NaN": ({}, {0.2: complex(np.nan, 1)}),
    "NaN in the last element": ({1.0: complex(1, np.nan)}, {}),
    "NaN and infinity": ({0.1: complex(np.nan, 1)}, {0.9: complex(1, np.inf)}),
}


@paths
@pytest.mark.parametrize("case", list(SPECIAL))
def test_infinities_and_nans_end_where_the_formula_has_them(case: str, n: int, incx: int) -> None:
    given_vectors = vectors(n, incx)
    for vector, changes in zip(given_vectors, SPECIAL[case], strict=True):
        for place, value in changes.items():
            vector[round(place * (n - 1))] = value
    number = jitblas.cdotc(*given_vectors)
    wanted = [kind(part) for part in formula(*given_vectors)]
    assert [kind(float(number.real)), kind(float(number.imag))] == wanted
    assert wanted != ["finite", "finite"]


@paths
def test_a_sum_beyond_fp32_is_infinite_and_not_nan(n: int, incx: int) -> None:
    for sign in (1, -1):
        x = Spread(np.full(n, 3e37, "c8"), incx).view
        number = jitblas.cdotc(x, np.full(n, complex(sign, sign), "c8"))
        assert (number.real, number.imag) == (sign * np.inf, sign * np.inf)


# ---- The same bits every time ---------------------------------------------------------------------------------------

DIGEST = """
import hashlib, jitblas
from tests.dots import Spread, bits, complex_numbers
state = hashlib.sha256()
for n in (1, 257, 131_072, 131_073, 1_000_003):
    for incx, incy in ((1, 1), (2, -3)):
        x, y = Spread(complex_numbers(n, 1), incx).view, Spread(complex_numbers(n, 2), incy).view
        state.update(bits(jitblas.cdotc(x, y)))
print(state.hexdigest())
"""


def test_the_number_of_threads_does_not_change_a_bit(python: Any) -> None:
    assert len({python(DIGEST, JITBLAS_THREADS=threads).stdout for threads in ("1", "2", "5")}) == 1


@pytest.mark.parametrize(("n", "incx"), [(64, 1), (5000, 1), (200_001, 1), (1001, 3), (200_001, -1)])
def test_repetition_alignment_and_copies_do_not_change_a_bit(n: int, incx: int) -> None:
    """Memory at every multiple of 8 bytes, read in place or by way of copies."""
    runtime: Any = runtime_for(HOST)
    x, y = complex_numbers(n, 1), complex_numbers(n, 2)
    numbers = set()
    for x_offset, y_offset in ((0, 0), (0, 0), (1, 0), (0, 1), (3, 5), (6, 7)):
        operands = [Spread(vector, inc, offset) for vector, inc, offset in ((x, incx, x_offset), (y, 1, y_offset))]
        views = [operand.view for operand in operands]
        numbers.add(bits(jitblas.cdotc(*views)))
        with runtime.binding(False):
            numbers.add(bits(jitblas.cdotc(*views)))
    assert len(numbers) == 1


@pytest.mark.parametrize(("n", "incx"), [(ONE_CORE + 1, 1), (200_000, 1), (4, 2), (150_000, 2)])
def test_nothing_that_lay_in_the_workspace_reaches_the_sum(n: int, incx: int) -> None:
    x, y = vectors(n, incx)
    size = workspace_bytes(Problem.parse(f"cdotc:n={n},incx={incx}"), PROFILES[HOST])
    memory = np.empty(4096, np.uint8)
    with Handle(HOST, workspace=(memory.ctypes.data, memory.size)) as handle:
        jitblas.cdotc(*vectors(2**20), handle=handle)  # leaves more partial sums than are used now
        first = jitblas.cdotc(x, y, handle=handle)
        memory[:] = 0xFF  # NaN
        assert bits(jitblas.cdotc(x, y, handle=handle)) == bits(first)
    assert_close(first, x, y)
    assert 0 < size < memory.size
    assert (memory[size:] == 0xFF).all()


def test_one_core_needs_no_workspace() -> None:
    with Handle(HOST) as handle:
        jitblas.cdotc(*vectors(ONE_CORE), handle=handle)
        assert handle.workspace.size == 0
        jitblas.cdotc(*vectors(ONE_CORE + 1), handle=handle)
        assert handle.workspace.size == 32 << 20


@pytest.mark.parametrize(("n", "incx", "needed"), [(ONE_CORE + 1, 1, 64), (2**20, 1, 128), (6, 2, 64)])
def test_a_workspace_that_is_too_small_is_an_error_with_the_bytes_needed(n: int, incx: int, needed: int) -> None:
    memory, out = np.zeros(needed, np.uint8), np.full(1, 9, "c8")
    x, y = vectors(n, incx)
    with Handle(HOST, workspace=(memory.ctypes.data, needed - 1)) as handle:
        message = refused(Status.ALLOC_FAILED, lambda: jitblas.cdotc(x, y, handle=handle, out=out))
        assert f"{needed} bytes of workspace are needed" in message and f"has {needed - 1}" in message
        assert out[0] == 9 and (memory == 0).all()
        handle.set_workspace((memory.ctypes.data, needed))
        assert_close(jitblas.cdotc(x, y, handle=handle), x, y)


# ---- Where results go, and what an array may be ---------------------------------------------------------------------


@paths
@pytest.mark.parametrize("shape", [(1,), (), (1, 1)], ids=str)
def test_a_result_goes_to_an_array_of_one_element_and_nowhere_else(n: int, incx: int, shape: tuple[int, ...]) -> None:
    x, y = vectors(n, incx)
    memory = np.full(5, 9, "c8")
    out = memory[2:3].reshape(shape)
    assert jitblas.cdotc(x, y, out=out) is out
    assert bits(memory[2]) == bits(jitblas.cdotc(x, y))
    assert (memory[[0, 1, 3, 4]] == 9).all()


@paths
def test_a_result_in_a_device_array_is_written_in_stream_order(n: int, incx: int) -> None:
    x, y = vectors(n, incx)
    dx, dy = (jitblas.array(vector, target=HOST) for vector in (x, y))
    out = jitblas.array(np.full(3, 9, "c8"), target=HOST)
    with Handle(HOST) as handle:
        expected = jitblas.cdotc(dx, dy, handle=handle)
        submitted, completed = handle.runtime.stream_position(handle.stream.address)
        with Gate(handle.stream):
            part = out[1:2]
            assert jitblas.cdotc(dx, dy, handle=handle, out=part) is part
            now = handle.runtime.stream_position(handle.stream.address)
            assert now[0] > submitted + 1 and now[1] == completed
            del dx, dy
        assert [bits(number) for number in out.numpy()] == [bits(9), bits(expected), bits(9)]
    assert_close(expected, x, y)


def test_device_and_numpy_arrays_mix() -> None:
    x, y = vectors(500)
    dx, dy = jitblas.array(x, target=HOST), jitblas.array(y, target=HOST)
    host = np.empty(1, "c8")
    for left, right in ((dx, y), (x, dy), (dx[::-2], y[::-2]), (x[1::3], dy[1::3])):
        a, b = (vector.numpy() if isinstance(vector, jitblas.DeviceArray) else vector for vector in (left, right))
        jitblas.cdotc(left, right, out=host)  # there when the call returns: `out` is in host memory
        assert_close(host[0], a, b)


@pytest.mark.parametrize("offer", ["__array_interface__", "__dlpack__"])
def test_objects_that_offer_their_memory_are_arrays(offer: str) -> None:
    class Offering:
        def __init__(self, array: Array) -> None:
            setattr(self, offer, getattr(array, offer))
            self.array = array

        def __dlpack_device__(self) -> tuple[int, int]:
            return self.array.__dlpack_device__()

    x, y = vectors(20, 2)
    out = Offering(np.zeros(1, "c8"))
    assert jitblas.cdotc(Offering(x), Offering(y[::-1]), out=out) is out
    assert_close(out.array[0], x, y[::-1])


def test_an_input_may_be_read_only_repeat_one_element_or_be_a_row_or_column() -> None:
    matrix = complex_numbers(600, 1).reshape(20, 30)
    matrix.flags.writeable = False
    same = np.broadcast_to(np.complex64(2 - 1j), 20)
    for x, y in ((matrix[:, 7], matrix[:, 8]), (matrix.T[:20, 3], matrix[:, 3]), (same, matrix[:, 0]), (same, same)):
        assert_close(jitblas.cdotc(x, y), x, y)


# ---- Operands that share memory -------------------------------------------------------------------------------------


@paths
def test_x_may_be_y_or_overlap_it(n: int, incx: int) -> None:
    memory = complex_numbers(n * incx + 1, 3)
    x = memory[: n * incx : incx]
    for y in (x, x[::-1], memory[1 : n * incx + 1 : incx], memory[:n]):
        assert_close(jitblas.cdotc(x, y), x, y)
    square = jitblas.cdotc(x, x)
    assert square.real > 0 and abs(square.imag) <= dot(x, x)[1]


@paths
@pytest.mark.parametrize("place", [0.0, 0.5, 1.0])
def test_the_result_may_be_an_element_of_x_or_y(n: int, incx: int, place: float) -> None:
    at = round(place * (n - 1))
    for which in (0, 1):
        operands = vectors(n, incx)
        before = [operand.copy() for operand in operands]
        out = operands[which][at : at + 1]
        jitblas.cdotc(*operands, out=out)
        assert_close(out[0], before[0], before[1])
        before[which][at] = out[0]
        assert all((now == then).all() for now, then in zip(operands, before, strict=True))


# ---- What is refused ------------------------------------------------------------------------------------------------

SIX = np.ones(6, "c8")


def changed(**flags: bool) -> Array:
    array = np.full(1, 9, "c8")
    array.setflags(**flags)
    return array


REFUSED: dict[str, tuple[Any, Any, Any, Status, list[str]]] = {
    "lengths": (SIX, SIX[:5], None, Status.INVALID_VALUE, ["x has 6 elements", "y has 5"]),
    "an empty x": (SIX[:0], SIX, None, Status.INVALID_VALUE, ["x has 0 elements", "y has 6"]),
    "2-D x": (SIX.reshape(2, 3), SIX, None, Status.INVALID_VALUE, ["x: ", "1-D", "(2, 3)"]),
    "0-D y": (SIX, np.ones((), "c8"), None, Status.INVALID_VALUE, ["y: ", "1-D", "()"]),
    "complex128 x": (SIX.astype("c16"), SIX, None, Status.NOT_SUPPORTED, ["x is c128", "complex64"]),
    "float y": (SIX, SIX.real.copy(), None, Status.NOT_SUPPORTED, ["y is fp32", "complex64"]),
    "float x and y": (SIX.real.copy(), SIX.real.copy(), None, Status.NOT_SUPPORTED, ["x is fp32", "complex64"]),
    "empty and of another type": (np.ones(0), np.ones(0), None, Status.NOT_SUPPORTED, ["x is fp64", "complex64"]),
    "swapped y": (SIX, SIX.astype(">c8"), None, Status.NOT_SUPPORTED, ["y is byte-swapped", "complex64"]),
    "objects": (SIX.astype(object), SIX, None, Status.NOT_SUPPORTED, ["x is object", "complex64"]),
    "x between items": (
        np.ones(6, "c8,u4")["f0"], SIX, None, Status.INVALID_VALUE, ["x: ", "12 bytes", "item size, 8", "give a copy"],
    ),
    "misaligned y": (
        SIX, np.zeros(49, np.uint8)[1:].view("c8"), None, Status.INVALID_VALUE, ["y: ", "multiple of 4", "give a copy"],
    ),
    "masked x": (np.ma.ones(6, "c8"), SIX, None, Status.INVALID_VALUE, ["x: ", "mask", ".filled"]),
    "x elsewhere": ("foreign", SIX, None, Status.INVALID_VALUE, ["x: ", "ascend950pr", "host"]),
    "2^31 elements": (
        np.lib.stride_tricks.as_strided(SIX, (2**31,), (0,)), SIX, None, Status.INVALID_VALUE,
        ["2147483648 elements", "2147483647"],
    ),
    "read-only out": (SIX, SIX, changed(write=False), Status.INVALID_VALUE, ["out: ", "read-only"]),
    "two elements of out": (SIX, SIX, np.full(2, 9, "c8"), Status.INVALID_VALUE, ["out: ", "one element", "(2,)"]),
    "no element of out": (SIX, SIX, np.ones((1, 0), "c8"), Status.INVALID_VALUE, ["out: ", "one element", "(1, 0)"]),
    "complex128 out": (SIX, SIX, np.full(1, 9, "c16"), Status.NOT_SUPPORTED, ["out", "c128", "complex64"]),
    "float out": (SIX, SIX, np.full(1, 9, "f4"), Status.NOT_SUPPORTED, ["out", "fp32", "complex64"]),
    "misaligned out": (
        SIX, SIX, np.full(17, 9, np.uint8)[1:9].view("c8"), Status.INVALID_VALUE, ["out: ", "multiple of 4"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", list(REFUSED))
def test_what_is_refused_is_named_with_what_is_accepted_and_nothing_is_written(case: str) -> None:
    x, y, out, status, said = REFUSED[case]
    if isinstance(x, str):
        x = jitblas.zeros(6, "c64", target=HOST)
        x._memory.target = "ascend950pr"
    out = np.full(1, 9, "c8") if out is None else out
    before = out.tobytes()
    with Handle(HOST) as handle:
        message = refused(status, lambda: jitblas.cdotc(x, y, out=out, handle=handle))
        assert handle.runtime.stream_position(handle.stream.address) == (0, 0)
    assert message.startswith(f"cdotc: {status.name}: ")
    assert [words for words in said if words not in message] == []
    assert out.tobytes() == before


@pytest.mark.parametrize("wrong", [[1j], (1j,), 1j, np.complex64(1), "text", b"bytes"], ids=repr)
def test_what_is_no_array_is_a_type_error(wrong: Any) -> None:
    out = np.full(1, 9, "c8")
    for name, arguments in (("x", (wrong, SIX, out)), ("y", (SIX, wrong, out)), ("out", (SIX, SIX, wrong))):
        with pytest.raises(TypeError, match=f"{name} is a {type(wrong).__name__}; accepted are NumPy arrays"):
            jitblas.cdotc(arguments[0], arguments[1], out=arguments[2])
    assert out[0] == 9


@pytest.mark.parametrize("wrong", [3, "host", object()], ids=repr)
def test_what_is_no_handle_is_a_type_error(wrong: Any) -> None:
    with pytest.raises(TypeError, match=f"handle is a {type(wrong).__name__}"):
        jitblas.cdotc(SIX, SIX, handle=wrong)


def test_a_destroyed_handle_is_refused() -> None:
    out = np.full(1, 9, "c8")
    handle = Handle(HOST)
    handle.destroy()
    assert "make another" in refused(Status.NOT_INITIALIZED, lambda: jitblas.cdotc(SIX, SIX, handle=handle, out=out))
    assert out[0] == 9


ROUNDED_UP = np.float32(2.0**-12) * np.float32(1 + 2.0**-18)
"""Its square is slightly more than half a unit in the last place of 1."""


@pytest.mark.parametrize(
    ("n", "step", "chain", "others"),
    [
        (256, 1, (64, 128, 192), (1,)),  # in one lane, then one in another lane
        (2**18, 1, (64, 128, 192), (1, 2**18 - 1)),  # and one of another core
        (32, 2, (4, 8, 12), (1, 2, 16)),  # in one chain of a thread, then in others
        (2**18, 2, (4, 8, 12), (1, 2, 16, 2**18 - 1)),
    ],
)
def test_the_bound_holds_where_every_rounding_errs_the_same_way(
    n: int, step: int, chain: tuple[int, ...], others: tuple[int, ...]
) -> None:
    """One large product, and small ones that are rounded up by half a unit of it wherever a sum is rounded."""
    x, y = np.zeros(step * n, np.complex64)[::step], np.zeros(n, np.complex64)
    x[0] = complex(np.float32(1 + 2049 * 2.0**-23), ROUNDED_UP)
    y[0] = complex(np.float32(1 + 2048 * 2.0**-23), ROUNDED_UP)
    for i in chain:
        x[i] = y[i] = complex(ROUNDED_UP, ROUNDED_UP)
    for i in others:
        x[i] = y[i] = ROUNDED_UP
    assert_close(jitblas.cdotc(x, y), x, y)
