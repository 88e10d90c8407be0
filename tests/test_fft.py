"""fft and ifft on arrays: NumPy's arguments and results, the accuracy of every length, and what is refused."""

from __future__ import annotations

import gc
import re
import threading
import weakref
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jitblas
from jitblas import Status
from jitblas.handle import Handle, default_handle
from jitblas.hardware import HOST
from jitblas.operators.fft import MOST_POINTS
from tests.operands import refused
from tests.transforms import KINDS, ROUNDING, Array, aligned, assert_close, exact, numbers, relative_error

fft, ifft = jitblas.fft.fft, jitblas.fft.ifft

kinds = pytest.mark.parametrize("kind", KINDS.values(), ids=str)

EVERY = [2**exponent for exponent in range(21)]

SOME = [1, 2, 16, 32, 64, 128, 512, 2**12, 2**16, 2**17]


@kinds
@pytest.mark.parametrize("points", EVERY)
def test_every_length_is_within_the_bound_and_leaves_its_input_alone(points: int, kind: Any) -> None:
    x = numbers((2, points) if points < 2**18 else points, kind, seed=points)
    before = x.copy()
    got = fft(x)
    assert got.dtype == kind and got.shape == x.shape
    assert_close(got, exact(x), f"{points} points")
    assert x.tobytes() == before.tobytes()
    assert fft(x).tobytes() == got.tobytes()


@kinds
@pytest.mark.parametrize("points", SOME)
def test_the_inverse_takes_it_back(points: int, kind: Any) -> None:
    x = numbers((3, points), kind)
    assert_close(ifft(x) * points, exact(x, "inverse"))
    assert relative_error(ifft(fft(x)), x) <= 2 * np.finfo(kind).eps * max(np.log2(points), 1) ** 0.5


@kinds
@pytest.mark.parametrize("points", SOME)
def test_an_impulse_becomes_a_wave_and_a_wave_an_impulse(points: int, kind: Any) -> None:
    for place in {0, 1, points // 3, points - 1} & set(range(points)):
        impulse = np.zeros(points, kind)
        impulse[place] = 1
        wave = np.exp(-2j * np.pi * (place * np.arange(points) % points) / points)
        got = fft(impulse)
        assert np.abs(got - wave).max() <= 8 * np.finfo(kind).eps
        back = ifft(got)
        assert np.abs(back - impulse).max() <= 8 * np.finfo(kind).eps
    assert np.all(fft(np.ones(points, kind))[1:] == 0)


@kinds
@pytest.mark.parametrize("points", SOME)
def test_linearity_time_shift_and_parseval(points: int, kind: Any) -> None:
    x, y = numbers(points, kind, 1), numbers(points, kind, 2)
    tolerance = 4 * np.finfo(kind).eps * max(np.log2(points), 1) ** 0.5
    assert relative_error(fft((2 - 1j) * x + y), (2 - 1j) * fft(x) + fft(y)) <= tolerance
    shift = points // 3
    turned = fft(x) * np.exp(-2j * np.pi * (shift * np.arange(points) % points) / points)
    assert relative_error(fft(np.roll(x, shift)), turned.astype(kind)) <= tolerance
    energy = (np.abs(fft(x).astype(complex)) ** 2).sum() / points
    assert abs(energy / (np.abs(x.astype(complex)) ** 2).sum() - 1) <= 4 * tolerance


@kinds
def test_all_positive_numbers(kind: Any) -> None:
    for points in SOME:
        x = np.abs(numbers(points, kind).real).astype(kind) + np.asarray(0.5j, kind)
        assert_close(fft(x), exact(x), f"{points} points")


@pytest.mark.parametrize("norm", [None, "backward", "ortho", "forward"])
@pytest.mark.parametrize("points", [1, 8, 32, 64, 2**14, 2**17])
def test_norms_are_numpys(points: int, norm: str | None) -> None:
    x = numbers(points, complex)
    assert relative_error(fft(x, norm=norm), np.fft.fft(x, norm=norm)) < 1e-14
    assert relative_error(ifft(x, norm=norm), np.fft.ifft(x, norm=norm)) < 1e-14


@settings(deadline=None, max_examples=150)
@given(
    shape=st.lists(st.integers(1, 5), max_size=2).map(tuple),
    length=st.integers(1, 40),
    points=st.sampled_from([None, 1, 2, 16, 64]),
    place=st.integers(0, 2),
    dtype=st.sampled_from(["c8", "c16", "f4", "f8", "f2", "i1", "u2", "i4", "u8", "?", ">c16", ">f4"]),
    norm=st.sampled_from([None, "ortho", "forward"]),
    inverse=st.booleans(),
    layout=st.sampled_from(["C", "F", "reversed", "gaps"]),
)
def test_arguments_are_numpys(
    shape: tuple[int, ...], length: int, points: int | None, place: int, dtype: str, norm: str | None, inverse: bool,
    layout: str,
) -> None:  # fmt: skip
    if points is None:
        length = 1 << (length.bit_length() - 1)
    axis = min(place, len(shape))
    whole = (*shape[:axis], length, *shape[axis:])
    x = (np.asarray(numbers(whole, complex)) * 20).astype("c16")
    x = (x if np.dtype(dtype).kind == "c" else np.abs(x.real)).astype(dtype)
    if layout == "F":
        x = np.asfortranarray(x)
    elif layout == "reversed":
        x = x[..., ::-1]
    elif layout == "gaps":
        wide = np.zeros((*whole[:-1], 2 * whole[-1]), x.dtype)
        wide[..., ::2] = x
        x = wide[..., ::2]
    ours, theirs = (ifft, np.fft.ifft) if inverse else (fft, np.fft.fft)
    for number in (axis, axis - len(whole)):
        got = ours(x, points, number, norm)
        wanted = theirs(x.astype("f4") if dtype == "f2" else x, points, number, norm)  # NumPy scales in half precision
        assert got.dtype == wanted.dtype
        assert got.shape == wanted.shape
        assert relative_error(got, wanted) <= 1e-5
        out = np.full(got.shape, np.nan, got.dtype)[..., ::-1]
        assert ours(x, points, number, norm, out=out) is out
        assert out.tobytes() == got.tobytes()


def test_lists_numbers_and_objects_with_memory() -> None:
    assert fft([1, 2, 3, 4]).tolist() == [10, -2 + 2j, -2, -2 - 2j]
    assert fft((1.0, -1.0)).dtype == np.complex128
    assert fft([[1, 2], [3, 4]], axis=0).tolist() == [[4, 6], [-2, -2]]


def test_memory_of_either_byte_order() -> None:
    class Memory:
        def __init__(self, array: Array) -> None:
            self.array, self.__array_interface__ = array, array.__array_interface__

    for dtype in (">c16", "<c16", ">c8", ">f4", ">i4"):
        assert fft(Memory(np.ones(4, dtype))).tolist() == [4, 0, 0, 0]


def test_short_transforms_are_within_a_few_roundings() -> None:
    for kind in KINDS.values():
        for points in (2, 4, 8, 16, 32):
            for norm in (None, "ortho"):
                x = numbers((20000, points), kind, seed=points)
                wanted = np.fft.fft(x.astype(np.clongdouble if kind == np.complex128 else complex), norm=norm)
                distance = np.linalg.norm((fft(x, norm=norm) - wanted).astype(complex), axis=1)
                assert (distance <= 3.5 * ROUNDING[kind.name] * np.linalg.norm(wanted.astype(complex), axis=1)).all()


def test_tensors_of_torch_give_tensors() -> None:
    torch = pytest.importorskip("torch")
    x = torch.ones((3, 8), dtype=torch.complex64)
    got = fft(x)
    assert isinstance(got, torch.Tensor) and got.dtype == torch.complex64
    assert got[:, 0].tolist() == [8, 8, 8]
    real = fft(torch.ones((8, 3), dtype=torch.float64), axis=0)
    assert real.dtype == torch.complex128 and real[0].tolist() == [8, 8, 8]


@kinds
@pytest.mark.parametrize("points", [8, 32, 64, 1024, 2**15, 2**17])
def test_in_place(points: int, kind: Any) -> None:
    x = numbers((2, points), kind)
    wanted = fft(x)
    assert fft(x, out=x) is x
    assert x.tobytes() == wanted.tobytes()


@kinds
@pytest.mark.parametrize("points", [4, 64, 2**16])
def test_results_that_overlap_their_input(points: int, kind: Any) -> None:
    memory = numbers(points + 7, kind)
    wanted = fft(memory[:points])
    assert fft(memory[:points], out=memory[7:]).tobytes() == wanted.tobytes()
    x = numbers((points, 2), kind)
    wanted = fft(x, axis=0)
    assert fft(x, axis=0, out=x).tobytes() == wanted.tobytes()


@pytest.mark.parametrize("points", [2**12, 2**19, 2**20])
@pytest.mark.parametrize("offset", [0, 8, 16, 56])
def test_nothing_is_written_beyond_the_result_wherever_it_begins(points: int, offset: int) -> None:
    """Past caches or through them: the same bits."""
    x = numbers(points, np.complex64)
    wanted = fft(x)
    memory = aligned(np.full(points + 32, 7 - 7j, np.complex64), offset)
    out = memory[16:-16]
    fft(aligned(x, offset), out=out)
    assert out.tobytes() == wanted.tobytes()
    assert np.all(memory[:16] == 7 - 7j) and np.all(memory[-16:] == 7 - 7j)


@kinds
@pytest.mark.parametrize("points", [16, 64, 2**12, 2**16])
def test_binding_changes_no_bit(points: int, kind: Any) -> None:
    x = numbers((5, points), kind)
    direct = fft(x)
    with default_handle(HOST).runtime.binding(False):
        assert fft(x).tobytes() == direct.tobytes()


@kinds
@pytest.mark.parametrize(("batch", "points"), [(1, 2**20), (300, 1024), (5000, 16), (7, 2**16)])
def test_the_number_of_threads_changes_no_bit(batch: int, points: int, kind: Any) -> None:
    x = numbers((batch, points), kind)
    runtime = default_handle(HOST).runtime
    results = []
    try:
        for threads in (1, 2, 5):
            runtime.set_threads(threads)
            results.append(fft(x).tobytes())
    finally:
        runtime.set_threads(2)
    assert len(set(results)) == 1
    assert results[0] == b"".join(fft(row).tobytes() for row in x)


def test_non_finite_numbers_go_through() -> None:
    for points in (8, 64, 2**16):
        x = numbers(points, np.complex64)
        x[points // 2] = np.nan
        assert np.isnan(fft(x)).all()
        x[points // 2] = np.inf
        assert not np.isfinite(fft(x)).any()


def test_empty_batches() -> None:
    assert fft(np.ones((0, 8), "c8")).shape == (0, 8)
    assert fft(np.ones((3, 0, 5)), 4, 0).shape == (4, 0, 5)


def test_device_arrays_are_taken_as_they_are() -> None:
    x = numbers((3, 2**16), np.complex64)
    there = jitblas.array(x)
    out = jitblas.empty(x.shape, "c64")
    assert fft(there, out=out) is out
    made = ifft(out)
    assert isinstance(made, jitblas.DeviceArray) and made.dtype == "c64"
    assert out.numpy().tobytes() == fft(x).tobytes()
    assert relative_error(made.numpy(), x) < 1e-6
    with Handle() as handle:
        assert fft(there, out=there, handle=handle) is there
        assert there.numpy().tobytes() == fft(x).tobytes()
    assert re.search("x: .*contiguous", refused(Status.INVALID_VALUE, lambda: fft(made[:, ::2])))
    assert re.search("x: .*contiguous", refused(Status.INVALID_VALUE, lambda: fft(made, axis=0, n=4)))
    assert re.search("x: it is fp32", refused(Status.INVALID_VALUE, lambda: fft(jitblas.zeros(8))))


def test_a_handle_that_made_transforms_goes_with_its_last_reference() -> None:
    handle = Handle()
    for x in (numbers(64, np.complex64), numbers((2, 64), complex), [1, 2]):
        fft(x, handle=handle)
    gone = weakref.ref(handle)
    gc.disable()
    try:
        del handle
        assert gone() is None
    finally:
        gc.enable()


def test_threads_with_handles_of_their_own() -> None:
    x = numbers((8, 4096), complex)
    wanted = [fft(row).tobytes() for row in x]
    got: list[bytes] = [b""] * 8

    def work(place: int) -> None:
        for _ in range(20):
            got[place] = fft(x[place]).tobytes()

    threads = [threading.Thread(target=work, args=(place,)) for place in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == wanted


REFUSED = [
    (lambda: fft(np.ones(12)), Status.NOT_SUPPORTED, "n=12: powers of two .* the nearest are 8 and 16"),
    (lambda: fft(np.ones(8), 1000), Status.NOT_SUPPORTED, "the nearest are 512 and 1024"),
    (lambda: fft(np.ones(8), MOST_POINTS + 1), Status.NOT_SUPPORTED, f"up to {MOST_POINTS}.* the nearest is"),
    (lambda: fft(np.ones(8), 2 * MOST_POINTS), Status.NOT_SUPPORTED, f"up to {MOST_POINTS}"),
    (lambda: jitblas.fft.plan(2 * MOST_POINTS), Status.NOT_SUPPORTED, f"up to {MOST_POINTS}"),
    (lambda: jitblas.fft.plan(12), Status.NOT_SUPPORTED, "the nearest are 8 and 16"),
    (lambda: fft(np.ones(8), 0), Status.INVALID_VALUE, "0 points; at least 1"),
    (lambda: fft(np.ones(8), -4), Status.INVALID_VALUE, "-4 points; at least 1"),
    (lambda: fft(np.ones(0)), Status.INVALID_VALUE, "0 points; at least 1"),
    (lambda: fft(np.float64(3)), Status.INVALID_VALUE, "no axis -1 in shape ()"),
    (lambda: fft(np.ones(8), axis=1), Status.INVALID_VALUE, r"no axis 1 in shape \(8,\)"),
    (lambda: fft(np.ones(8), norm="none"), Status.INVALID_VALUE, "norm: it is 'none'; None, 'backward'"),
    (lambda: fft(np.ones(8, np.longdouble)), Status.NOT_SUPPORTED, "x is (float128|longdouble)"),
    (lambda: fft(np.ones(8, "O")), Status.NOT_SUPPORTED, "x is object"),
    (lambda: fft(np.ones(8), out=np.ones(9, complex)), Status.INVALID_VALUE, r"out: it has shape \(9,\), the result"),
    (lambda: fft(np.ones(8), out=np.ones(8)), Status.NOT_SUPPORTED, "out is fp64; complex64 and complex128"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "status", "message"), REFUSED)
def test_what_is_refused_says_what_is_accepted(call: Any, status: Status, message: str) -> None:
    with pytest.raises(jitblas.StatusError, match=message) as caught:
        call()
    assert caught.value.status == status


def test_read_only_outputs_and_masked_arrays_are_refused() -> None:
    assert re.search("read-only", refused(Status.INVALID_VALUE, lambda: fft(np.ones(8), out=read_only(8))))
    assert re.search("mask", refused(Status.INVALID_VALUE, lambda: fft(np.ma.masked_array(np.ones(8)))))
    shared = np.lib.stride_tricks.as_strided(np.zeros(40, complex), (4, 8), (16, 16))
    for out in (np.lib.stride_tricks.as_strided(shared, (4, 8), (0, 16)), shared):
        assert "share memory" in refused(Status.INVALID_VALUE, lambda out=out: fft(np.ones((4, 8)), out=out))
        assert "share memory" in refused(Status.INVALID_VALUE, lambda out=out: fft(np.ones((4, 8), complex), out=out))
        assert not out.any()
    message = refused(Status.INVALID_VALUE, lambda: fft(np.ones(8, complex), out=read_only(8)))
    assert message.startswith("fft: ") and "read-only" in message
    for wrong in (["ortho"], np.ones(2), 7):
        assert "'ortho'" in refused(Status.INVALID_VALUE, lambda wrong=wrong: fft(np.ones(8, complex), norm=wrong))
    for call in (
        lambda: fft(np.ones(8), axis=1.0), lambda: fft(np.ones(8), 4.0), lambda: fft(np.ones(8), axis=None),
        lambda: jitblas.fft.plan(8.0), lambda: jitblas.fft.plan(8, handle=3), lambda: fft(np.ones(8), handle=3),
    ):  # fmt: skip
        with pytest.raises(TypeError, match=r"^fft(\.plan)?: (n|axis|handle) is a"):
            call()
    with pytest.raises(TypeError):
        fft("abc")
    with pytest.raises(TypeError):
        fft(np.ones(8), 4.0)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        fft([[1, 2], [3]])


def read_only(points: int) -> Array:
    out = np.ones(points, complex)
    out.flags.writeable = False
    return out


def test_a_workspace_that_is_too_small_names_what_is_needed() -> None:
    x = numbers(2**16, np.complex64)
    out = np.zeros(2**16, np.complex64)
    with Handle(workspace=jitblas.empty(1024, "u8")) as handle:
        with pytest.raises(jitblas.StatusError, match=f"{x.nbytes} bytes of workspace are needed") as caught:
            fft(x, out=out, handle=handle)
        assert caught.value.status == Status.ALLOC_FAILED
        assert not out.any()
        assert_close(fft(x[:4096], handle=handle), exact(x[:4096]))
