"""jitblas.axpy_ex on arrays: the right bits, nothing else touched, and bad input refused."""

from __future__ import annotations

import ctypes
import itertools
import math
import mmap
import sys
import types
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jitblas
from jitblas import Status
from jitblas.jit.kernels import runtime_for
from tests.operands import Strided, read_only, refused, words
from tests.reference import (
    DTYPES,
    assert_same_bits,
    assert_within_gate,
    assert_within_half_ulp,
    axpy,
    bits,
    fused_multiply_add,
    numbers,
    specials,
)

SIZES = (0, 1, 7, 8, 255, 256, 257, 4096)
LARGE = 10**6 + 3
INCREMENTS = ((1, 1), (2, 1), (1, 2), (2, 2), (-1, 1), (1, -1), (-1, -1), (-3, 2), (2, -3), (-3, -3))
ALPHAS = (0.0, -0.0, 1.0, -2.5, math.nan, math.inf, 1e-45)
MAP_NORESERVE = 0x4000  # Linux; Python's mmap has had the name since 3.13

Array = np.ndarray[Any, np.dtype[Any]]

# ---- The reference itself -------------------------------------------------------------------------------------------

float32s = st.floats(width=32, allow_nan=False, allow_infinity=False)


@given(float32s, float32s, float32s)
@settings(deadline=None, max_examples=300)
def test_the_reference_rounds_the_exact_sum_once(a: float, b: float, c: float) -> None:
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    got = float(fused_multiply_add(np.float32(a), np.array([b], "f4"), np.array([c], "f4"))[0])
    if math.isinf(got):
        assert abs(exact) >= Fraction(2) ** 128 - Fraction(2) ** 103
        return
    with np.errstate(over="ignore"):
        below, above = np.nextafter(np.float32(got), np.float32([-np.inf, np.inf]))
    for other in (float(below), float(above)):
        if math.isfinite(other):
            assert abs(exact - Fraction(got)) <= abs(exact - Fraction(other))


# ---- Right bits -----------------------------------------------------------------------------------------------------


@words
@pytest.mark.parametrize(("incx", "incy"), INCREMENTS)
@pytest.mark.parametrize("n", SIZES)
def test_every_size_increment_and_alpha_is_right_to_the_bit(word: str, incx: int, incy: int, n: int) -> None:
    for alpha in ALPHAS:
        x = Strided(numbers(word, n, 1, special=True), incx)
        y = Strided(numbers(word, n, 2, special=True), incy)
        expected = axpy(alpha, x.view, y.view)
        x_before = x.memory.copy()
        answer = jitblas.axpy_ex(alpha, x.view, y.view)
        assert answer is y.view
        assert_same_bits(y.view, expected, f"alpha={alpha}")
        y.assert_padding_untouched()
        assert (x.memory == x_before).all()


@words
@pytest.mark.parametrize(("incx", "incy"), [(1, 1), (2, -3)])
def test_a_million_elements_are_right_to_the_bit(word: str, incx: int, incy: int) -> None:
    x, y = Strided(numbers(word, LARGE, 1), incx), Strided(numbers(word, LARGE, 2), incy)
    before = y.view.copy()
    jitblas.axpy_ex(-2.5, x.view, y.view)
    assert_same_bits(y.view, axpy(-2.5, x.view, before))
    assert_within_gate(y.view, -2.5, x.view, before, word)
    y.assert_padding_untouched()
    if word == "fp32":
        assert_within_half_ulp(y.view, -2.5, x.view, before)


@words
def test_positive_numbers_that_cannot_cancel_are_within_the_gate(word: str) -> None:
    x, y = numbers(word, 50_000, 3, positive=True), numbers(word, 50_000, 4, positive=True)
    before = y.copy()
    jitblas.axpy_ex(0.37, x, y)
    assert_within_gate(y, 0.37, x, before, word)


@words
@pytest.mark.parametrize(("incx", "incy"), [(1, 1), (-1, 1), (2, -3)])
@pytest.mark.parametrize("alpha", ALPHAS)
def test_alpha_in_device_memory_gives_the_same_bits(word: str, incx: int, incy: int, alpha: float) -> None:
    scalar = jitblas.array(np.array([alpha], np.float32))
    handle = jitblas.Handle("host")
    for n in (0, 1, 7, 257, 4096, 40_000):
        x = Strided(numbers(word, n, 5, special=True), incx)
        y = Strided(numbers(word, n, 6, special=True), incy)
        expected = axpy(alpha, x.view, y.view)
        jitblas.axpy_ex(scalar, x.view, y.view, handle=handle)
        handle.synchronize()
        assert_same_bits(y.view, expected, f"n={n}")
        y.assert_padding_untouched()


@words
def test_every_special_number_meets_every_other(word: str) -> None:
    pairs = np.array(list(itertools.product(range(specials(word).size), repeat=2)))
    x, y = specials(word)[pairs[:, 0]], specials(word)[pairs[:, 1]]
    for alpha in (*specials("fp32").tolist(), -2.5):
        got = y.copy()
        jitblas.axpy_ex(alpha, x, got)
        assert_same_bits(got, axpy(alpha, x, y), f"alpha={alpha}")
        spread = np.repeat(y, 2)
        jitblas.axpy_ex(alpha, x, spread[::2])
        assert_same_bits(spread[::2], axpy(alpha, x, y), f"alpha={alpha}, strided")


def test_zero_times_infinity_is_nan_and_reaches_y() -> None:
    for alpha, x in ((0.0, np.inf), (np.inf, 0.0), (0.0, np.nan)):
        y = np.ones(300, "f4")
        assert np.isnan(jitblas.axpy_ex(float(alpha), np.full(300, x, "f4"), y)).all()


def test_alpha_zero_still_adds_so_minus_zero_becomes_zero() -> None:
    y = np.full(300, -0.0, "f4")
    jitblas.axpy_ex(0.0, np.ones(300, "f4"), y)
    assert not np.signbit(y).any()
    y = np.full(300, -0.0, "f4")
    jitblas.axpy_ex(-0.0, np.ones(300, "f4"), y)
    assert np.signbit(y).all()


def test_fp16_overflows_to_infinity_by_rounding_to_nearest() -> None:
    x = np.array([1, 15.9, 16, 1e4, -16], "f2").repeat(60)
    y = np.copysign(np.float16(65504), x)
    jitblas.axpy_ex(1.0, x, y)
    assert np.isinf(y[::60]).tolist() == [False, False, True, True, True]
    assert y[-1] == -np.inf


def test_subnormal_results_are_kept() -> None:
    for dtype, tiny in (("f4", np.float32(1e-45)), ("f2", np.float16(6e-8))):
        y = np.zeros(300, dtype)
        jitblas.axpy_ex(1.0, np.full(300, tiny, dtype), y)
        assert (y == tiny).all() and tiny > 0


def test_a_multiply_add_rounds_once() -> None:
    x = np.full(300, 1 + 2.0**-12, "f4")
    y = np.full(300, -(1 + 2.0**-11), "f4")
    jitblas.axpy_ex(1 + 2.0**-12, x, y)
    assert (y == 2.0**-24).all()  # rounding the product first leaves 0


@words
@pytest.mark.parametrize(("x_start", "y_start"), [(0, 1), (1, 0), (3, 1), (5, 7)])
def test_unaligned_starts_give_the_same_bits(word: str, x_start: int, y_start: int) -> None:
    for n in (1, 63, 64, 65, 4096, 8192, 50_000):
        x, y = numbers(word, n + 8, 7), numbers(word, n + 8, 8)
        before = y.copy()
        xs, ys = x[x_start : x_start + n], y[y_start : y_start + n]
        jitblas.axpy_ex(1.5, xs, ys)
        assert_same_bits(ys, axpy(1.5, xs, before[y_start : y_start + n]), f"n={n}")
        assert (bits(y)[:y_start] == bits(before)[:y_start]).all()
        assert (bits(y)[y_start + n :] == bits(before)[y_start + n :]).all()


@words
def test_pointing_at_memory_and_copying_it_agree_bit_by_bit(word: str) -> None:
    runtime: Any = runtime_for("host")
    for n in (1, 63, 64, 128, 255, 256, 257, 4095, 4096, 4097, 8192, 16384, 65_536, 300_001):
        for start in (0, 1):
            x, y = numbers(word, n + start, 9, special=True)[start:], numbers(word, n + start, 10, special=True)[start:]
            bound, copied = y.copy(), y.copy()
            jitblas.axpy_ex(-0.75, x, bound)
            with runtime.binding(False):
                jitblas.axpy_ex(-0.75, x, copied)
            assert (bits(bound) == bits(copied)).all(), n
            same = y.copy()
            other = y.copy()
            jitblas.axpy_ex(-0.75, same, same)
            with runtime.binding(False):
                jitblas.axpy_ex(-0.75, other, other)
            assert (bits(same) == bits(other)).all(), n


THREADS = """
import hashlib, numpy as np, jitblas
from tests.reference import DTYPES, bits, numbers
state = hashlib.sha256()
for word in DTYPES:
    for n in (1, 257, 40_000, 200_003):
        for incx, incy in ((1, 1), (2, -3)):
            x = numbers(word, n * abs(incx), 1, special=True)[::incx]
            y = numbers(word, n * abs(incy), 2, special=True)[::incy]
            jitblas.axpy_ex(-2.5, x, y)
            state.update(bits(y).tobytes())
print(state.hexdigest())
"""


def test_the_number_of_threads_does_not_change_a_bit(python: Any) -> None:
    digests = {python(THREADS, JITBLAS_THREADS=threads).stdout for threads in ("1", "2", "5")}
    assert len(digests) == 1


@st.composite
def problems(draw: st.DrawFn) -> tuple[str, int, int, int, int, int, float]:
    increments = st.integers(-5, 5).filter(bool)
    return (
        draw(st.sampled_from(list(DTYPES))),
        draw(st.integers(0, 600)),
        draw(increments),
        draw(increments),
        draw(st.integers(0, 9)),
        draw(st.integers(0, 9)),
        draw(st.floats(width=32)),
    )


@given(problems())
@settings(deadline=None, max_examples=250)
def test_any_size_stride_offset_and_alpha(problem: tuple[str, int, int, int, int, int, float]) -> None:
    word, n, incx, incy, x_offset, y_offset, alpha = problem
    x = Strided(numbers(word, n, 11, special=True), incx, x_offset)
    y = Strided(numbers(word, n, 12, special=True), incy, y_offset)
    expected = axpy(alpha, x.view, y.view)
    jitblas.axpy_ex(alpha, x.view, y.view)
    assert_same_bits(y.view, expected)
    y.assert_padding_untouched()


def test_elements_may_be_gigabytes_apart() -> None:
    """Byte distances beyond 2^32; the pages between are never touched, so they cost nothing."""
    inc, n = 3 * 2**28 + 1, 4
    length = ((n - 1) * inc + 1) * 4
    with mmap.mmap(-1, length, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_NORESERVE) as memory:
        whole = np.frombuffer(memory, "f4")
        far = whole[::inc]
        assert far.size == n and (n - 1) * inc * 4 > 2**33
        far[:] = [1, 2, 3, 4]
        y = np.full(n, 10, "f4")
        assert jitblas.axpy_ex(2.0, far, y).tolist() == [12, 14, 16, 18]
        jitblas.axpy_ex(1.0, np.ones(n, "f4"), far[::-1])
        assert far.tolist() == [2, 3, 4, 5]
        del whole, far


# ---- Operands that share memory -------------------------------------------------------------------------------------


@words
@pytest.mark.parametrize("n", [1, 5, 257, 5000, 100_000])
def test_x_may_be_y_itself(word: str, n: int) -> None:
    y = numbers(word, n, 13)
    expected = axpy(2.0, y, y)
    jitblas.axpy_ex(2.0, y, y)
    assert_same_bits(y, expected)
    strided = numbers(word, 3 * n, 14)[::-3]
    expected = axpy(2.0, strided, strided)
    jitblas.axpy_ex(2.0, strided, strided)
    assert_same_bits(strided, expected)


VIEWS: dict[str, tuple[slice, slice]] = {
    "x one behind": (slice(0, -1), slice(1, None)),
    "x one ahead": (slice(1, None), slice(0, -1)),
    "x reversed": (slice(None, None, -1), slice(None)),
    "y reversed": (slice(None), slice(None, None, -1)),
    "interleaved": (slice(0, None, 2), slice(1, None, 2)),
    "every second of itself": (slice(0, 500), slice(0, 1000, 2)),
    "half over": (slice(0, 600), slice(400, 1000)),
}


@words
@pytest.mark.parametrize("views", list(VIEWS))
@pytest.mark.parametrize("n", [1000, 60_000])
def test_overlapping_operands_are_as_if_x_were_copied_first(word: str, views: str, n: int) -> None:
    x_slice, y_slice = VIEWS[views]
    memory = numbers(word, n, 15)
    untouched = memory.copy()
    expected = memory.copy()
    x, y = memory[x_slice], memory[y_slice]
    shared = min(x.size, y.size)
    x, y = x[:shared], y[:shared]
    expected[y_slice][:shared] = axpy(-1.25, untouched[x_slice][:shared], untouched[y_slice][:shared])
    jitblas.axpy_ex(-1.25, x, y)
    assert_same_bits(memory, expected)


def test_overlapping_device_arrays_are_as_if_x_were_copied_first() -> None:
    values = numbers("fp32", 50_000, 16)
    memory = jitblas.array(values)
    jitblas.axpy_ex(2.0, memory[:-1], memory[1:])
    expected = values.copy()
    expected[1:] = axpy(2.0, values[:-1], values[1:])
    assert_same_bits(memory.numpy(), expected)


# ---- What an array may be -------------------------------------------------------------------------------------------


class Interface:
    """Offers its memory through __array_interface__ alone."""

    def __init__(self, array: Array) -> None:
        self._array = array
        self.__array_interface__ = array.__array_interface__


class DLPack:
    """Offers its memory through __dlpack__ alone."""

    def __init__(self, array: Array) -> None:
        self._array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()


@pytest.mark.parametrize("kind", [Interface, DLPack])
@pytest.mark.parametrize("dtype", ["f4", "f2"])
@pytest.mark.parametrize("step", [1, 2, -1])
def test_objects_that_offer_their_memory_are_updated_in_place(kind: Any, dtype: str, step: int) -> None:
    x, y = np.arange(20, dtype=dtype)[::step], np.ones(20, dtype)[::step]
    target = kind(y)
    assert jitblas.axpy_ex(2.0, kind(x), target) is target
    assert (y == 2 * x + 1).all()


def test_read_only_memory_behind_an_interface_is_refused() -> None:
    y = np.ones(20, "f4")
    y.flags.writeable = False
    for kind in (Interface, DLPack):
        assert "read-only" in refused(
            Status.INVALID_VALUE, lambda kind=kind: jitblas.axpy_ex(1.0, np.ones(20, "f4"), kind(y))
        )
    assert (y == 1).all()


def test_device_arrays_are_worked_on_asynchronously_and_read_back() -> None:
    for word in DTYPES:
        x, y = numbers(word, 30_000, 17), numbers(word, 30_000, 18)
        dx, dy = jitblas.array(x), jitblas.array(y)
        assert (dx.dtype, dy.shape) == (word, (30_000,))
        assert jitblas.axpy_ex(3.0, dx, dy) is dy
        jitblas.axpy_ex(3.0, dx[::-2], dy[1::2])
        expected = axpy(3.0, x, y)
        expected[1::2] = axpy(3.0, x[::-2], expected[1::2])
        assert_same_bits(dy.numpy(), expected)


def test_device_and_numpy_arrays_mix() -> None:
    x, y = np.arange(5000, dtype="f4"), jitblas.zeros(5000)
    jitblas.axpy_ex(1.0, x, y)
    target = np.ones(5000, "f4")
    handle = jitblas.Handle("host")
    jitblas.axpy_ex(1.0, jitblas.array(y.numpy()), target, handle=handle)
    handle.synchronize()
    assert (target == x + 1).all()


def test_x_may_have_stride_zero() -> None:
    x = np.broadcast_to(np.float32(3), 1000)
    y = np.arange(1000, dtype="f4")
    assert (jitblas.axpy_ex(2.0, x, y) == np.arange(1000) + 6).all()


def test_the_stride_of_a_single_element_does_not_matter() -> None:
    one = np.lib.stride_tricks.as_strided(np.ones(2, "f4"), (1,), (7,))
    y = np.lib.stride_tricks.as_strided(np.ones(2, "f4"), (1,), (0,))
    assert jitblas.axpy_ex(2.0, one, y).tolist() == [3.0]


def test_subclasses_and_views_of_arrays_count_as_arrays() -> None:
    class Mine(np.ndarray):  # type: ignore[type-arg]
        pass

    y = np.ones(10, "f4").view(Mine)
    assert jitblas.axpy_ex(1.0, np.ones(10, "f4"), y) is y
    assert y.tolist() == [2.0] * 10


def test_rows_and_columns_of_a_matrix_are_vectors() -> None:
    matrix = np.zeros((30, 40), "f4")
    jitblas.axpy_ex(1.0, np.arange(30, dtype="f4"), matrix[:, 7])
    jitblas.axpy_ex(1.0, np.arange(40, dtype="f4"), matrix.T[:, 3])
    expected = np.zeros((30, 40), "f4")
    expected[:, 7] += np.arange(30)
    expected[3] += np.arange(40)
    assert (matrix == expected).all()


@pytest.mark.parametrize(
    "alpha",
    [2, True, np.float64(2), np.float32(2), np.int8(2), np.array(2.0), np.array([2], "f4"), Fraction(2), 2.0],
    ids=lambda alpha: type(alpha).__name__,
)
def test_alpha_may_be_any_real_number(alpha: Any) -> None:
    assert jitblas.axpy_ex(alpha, np.ones(3, "f4"), np.ones(3, "f4")).tolist() == [1 + float(np.ravel(alpha)[0])] * 3


def test_alpha_beyond_fp32_is_infinity() -> None:
    assert np.isinf(jitblas.axpy_ex(1e300, np.ones(3, "f4"), np.ones(3, "f4"))).all()


# ---- What is refused ------------------------------------------------------------------------------------------------

ONES = np.ones(6, "f4")


def misaligned() -> Array:
    return np.ones(25, np.uint8)[1:].view("f4")


def torn() -> Array:
    return np.ones(6, [("a", "f4"), ("b", "u2")])["a"]


REFUSED: dict[str, tuple[Array, Array, Status, str]] = {
    "read-only y": (ONES, read_only(), Status.INVALID_VALUE, "read-only"),
    "stride 0 of y": (ONES, np.broadcast_to(np.float32(1), 6), Status.INVALID_VALUE, "y: "),
    "writable stride 0 of y": (
        ONES,
        np.lib.stride_tricks.as_strided(np.ones(1, "f4"), (6,), (0,)),
        Status.INVALID_VALUE,
        "stride is 0",
    ),
    "x between items": (torn(), ONES, Status.INVALID_VALUE, "stride of 6 bytes"),
    "y between items": (ONES, torn(), Status.INVALID_VALUE, "stride of 6 bytes"),
    "misaligned x": (misaligned(), ONES, Status.INVALID_VALUE, "address"),
    "misaligned y": (ONES, misaligned(), Status.INVALID_VALUE, "address"),
    "swapped x": (ONES.astype(">f4"), ONES, Status.NOT_SUPPORTED, "byte-swapped"),
    "swapped y": (ONES, ONES.astype(">f4"), Status.NOT_SUPPORTED, "byte-swapped"),
    "2-D x": (np.ones((2, 3), "f4"), ONES, Status.INVALID_VALUE, "(2, 3)"),
    "2-D y": (ONES, np.ones((6, 1), "f4"), Status.INVALID_VALUE, "(6, 1)"),
    "0-D y": (ONES, np.ones((), "f4"), Status.INVALID_VALUE, "()"),
    "longer x": (np.ones(7, "f4"), ONES, Status.INVALID_VALUE, "x has 7 elements, y has 6"),
    "shorter x": (np.ones(0, "f4"), ONES, Status.INVALID_VALUE, "x has 0 elements, y has 6"),
    "fp32 and fp16": (ONES, ONES.astype("f2"), Status.NOT_SUPPORTED, "fp16"),
    "fp16 and bf16": (ONES.astype("f2"), ONES.astype(ml_dtypes.bfloat16), Status.NOT_SUPPORTED, "bf16"),
    "float64": (np.ones(6), np.ones(6), Status.NOT_SUPPORTED, "fp64"),
    "integers": (np.ones(6, "i4"), np.ones(6, "i4"), Status.NOT_SUPPORTED, "int32"),
    "complex": (np.ones(6, "c8"), np.ones(6, "c8"), Status.NOT_SUPPORTED, "c64"),
    "records": (np.ones(6, "f4,f4"), np.ones(6, "f4,f4"), Status.NOT_SUPPORTED, "accepted"),
}


@pytest.mark.parametrize("case", list(REFUSED))
def test_what_cannot_be_viewed_or_mixed_is_refused_with_a_reason(case: str) -> None:
    x, y, status, said = REFUSED[case]
    before = y.tobytes()
    message = refused(status, lambda: jitblas.axpy_ex(1.0, x, y))
    assert said in message and message.startswith("axpy_ex: ")
    assert y.tobytes() == before


@pytest.mark.parametrize("array", [[1.0, 2.0], (1.0,), 3.0, np.float32(3), None, "text", b"bytes"], ids=repr)
def test_what_is_no_array_is_a_type_error(array: Any) -> None:
    with pytest.raises(TypeError, match="x is a"):
        jitblas.axpy_ex(1.0, array, np.ones(2, "f4"))
    with pytest.raises(TypeError, match="y is a"):
        jitblas.axpy_ex(1.0, np.ones(2, "f4"), array)


@pytest.mark.parametrize(
    "alpha",
    [1j, np.complex64(1), np.array(1j), np.array([1 + 0j]), "2", None, [2.0], np.ones(2, "f4"), ctypes.c_float(2)],
    ids=lambda alpha: type(alpha).__name__,
)
def test_alpha_that_is_no_real_number_is_a_type_error(alpha: Any) -> None:
    y = np.ones(3, "f4")
    with pytest.raises(TypeError, match="alpha"):
        jitblas.axpy_ex(alpha, np.ones(3, "f4"), y)
    assert (y == 1).all()


def test_alpha_in_device_memory_must_be_one_fp32_number() -> None:
    for wrong in (jitblas.zeros(2), jitblas.zeros(1, "fp16"), jitblas.zeros(0)):
        assert "alpha" in refused(Status.INVALID_VALUE, lambda wrong=wrong: jitblas.axpy_ex(wrong, ONES, ONES.copy()))


def test_more_than_2_to_the_31_elements_are_refused() -> None:
    many = np.lib.stride_tricks.as_strided(np.zeros(1, "f4"), (2**31,), (0,), writeable=False)
    assert "2147483648 elements" in refused(Status.INVALID_VALUE, lambda: jitblas.axpy_ex(1.0, many, ONES.copy()))


def test_empty_arrays_are_checked_like_others_and_do_nothing() -> None:
    empty = np.ones(0, "f4")
    assert jitblas.axpy_ex(1.0, empty, empty) is empty
    refused(Status.NOT_SUPPORTED, lambda: jitblas.axpy_ex(1.0, empty, np.ones(0, "f2")))
    with pytest.raises(TypeError):
        jitblas.axpy_ex("1", empty, empty)


def test_a_destroyed_handle_is_refused() -> None:
    handle = jitblas.Handle("host")
    handle.destroy()
    refused(Status.NOT_INITIALIZED, lambda: jitblas.axpy_ex(1.0, ONES, ONES.copy(), handle=handle))


# ---- Tensors, by a stand-in for torch -------------------------------------------------------------------------------


class Tensor:
    """As much of torch.Tensor as axpy_ex looks at."""

    requires_grad = False
    layout = "torch.strided"

    def is_neg(self) -> bool:
        return False

    is_conj = is_neg

    def __init__(self, array: Array, device: str = "cpu") -> None:
        self.array = array
        self.device = types.SimpleNamespace(type=device)
        self.dtype = f"torch.{array.dtype.name}"
        self.shape = array.shape

    def data_ptr(self) -> int:
        return int(self.array.ctypes.data)

    def dim(self) -> int:
        return self.array.ndim

    def numel(self) -> int:
        return self.array.size

    def element_size(self) -> int:
        return self.array.itemsize

    def stride(self, axis: int | None = None) -> Any:
        strides = tuple(stride // self.array.itemsize for stride in self.array.strides)
        return strides if axis is None else strides[axis]


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(Tensor=Tensor))


@pytest.mark.usefixtures("torch")
def test_cpu_tensors_are_updated_in_place() -> None:
    for word in DTYPES:
        x, y = numbers(word, 3000, 19), numbers(word, 3000, 20)
        expected = axpy(2.0, x[::3], y[:1000])
        target = Tensor(y[:1000])
        assert jitblas.axpy_ex(2.0, Tensor(x[::3]), target) is target
        assert_same_bits(y[:1000], expected)


@pytest.mark.usefixtures("torch")
def test_tensors_elsewhere_watched_or_of_other_shape_are_refused() -> None:
    y = Tensor(np.ones(6, "f4"))
    refused(Status.INVALID_VALUE, lambda: jitblas.axpy_ex(1.0, Tensor(ONES, "cuda"), y))
    refused(Status.INVALID_VALUE, lambda: jitblas.axpy_ex(1.0, Tensor(ONES, "npu"), y))
    refused(Status.INVALID_VALUE, lambda: jitblas.axpy_ex(1.0, Tensor(np.ones((2, 3), "f4")), y))
    refused(Status.NOT_SUPPORTED, lambda: jitblas.axpy_ex(1.0, Tensor(ONES.astype("f2")), y))
    y.requires_grad = True
    assert "grad" in refused(Status.INVALID_VALUE, lambda: jitblas.axpy_ex(1.0, ONES, y))


def test_an_alpha_that_is_part_of_y_is_read_before_y_is_written() -> None:
    x = np.ones(300_000, "f4")
    for place in (0, 299_999):
        y = jitblas.array(np.full(300_000, 2, "f4"), target="host")
        jitblas.axpy_ex(y[place : place + 1], jitblas.array(x, target="host"), y)
        assert (y.numpy() == 4).all()
