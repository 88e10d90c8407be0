"""Plans of FFT: the bits of the function, new results, the workspace of the handle, and what they refuse."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import jitblas
from jitblas import Status
from jitblas.handle import Handle
from tests.operands import refused
from tests.transforms import KINDS, aligned, numbers

plan, fft, ifft = jitblas.fft.plan, jitblas.fft.fft, jitblas.fft.ifft

kinds = pytest.mark.parametrize("kind", KINDS.values(), ids=str)


@kinds
@pytest.mark.parametrize(("points", "batch"), [(1, 1), (8, 3), (1024, 1), (64, 5), (2**16, 2), (2**20, 1)])
def test_a_plan_gives_the_bits_of_the_function_the_short_way_and_the_long_one(
    points: int, batch: int, kind: Any
) -> None:
    x = numbers((batch, points) if batch > 1 else points, kind)
    forward = plan(points, batch=batch, dtype=kind)
    inverse = plan(points, batch=batch, dtype=kind.name, direction="inverse")
    wanted, back = fft(x), ifft(x)
    for given in (x, aligned(x, 16), np.asfortranarray(x)):
        for out in (np.full_like(x, np.nan), aligned(x), aligned(x, 8)):
            assert forward(given, out) is out
            assert out.tobytes() == wanted.tobytes()
            assert inverse(given, out=out) is out
            assert out.tobytes() == back.tobytes()
    assert forward(x).tobytes() == wanted.tobytes()
    assert forward(x).dtype == kind
    assert forward(x, None).shape == x.shape
    assert forward(x, x) is x
    assert x.tobytes() == wanted.tobytes()


def test_results_are_new_each_time_and_large_ones_begin_at_a_cache_line() -> None:
    transform = plan(2**16, dtype="c64")
    x = numbers(2**16, np.complex64)
    first, second = transform(x), transform(x)
    assert not np.shares_memory(first, second)
    assert first.__array_interface__["data"][0] % 64 == 0


def test_the_problem_line_of_a_plan() -> None:
    made = plan(64, batch=3, dtype=np.complex64, direction="inverse", norm="ortho")
    assert str(made.problem) == "fft:n=64,batch=3,dtype=c64,dir=inverse,norm=ortho"
    again = jitblas.plan(str(made.problem))
    x = numbers((3, 64), np.complex64)
    assert again(x).tobytes() == made(x).tobytes() == ifft(x, norm="ortho").tobytes()


def test_one_kernel_serves_every_batch() -> None:
    keys = {plan(64, batch=batch).specialization.key for batch in (1, 2, 77)}
    assert len(keys) == 1


def test_other_arrays_are_refused_and_nothing_is_written() -> None:
    transform = plan(64, batch=2, dtype="c64")
    x, out = numbers((2, 64), np.complex64), np.zeros((2, 64), np.complex64)
    for wrong in (x[0], x.T, x.astype("c16"), x[:, :32], x.real.copy()):
        message = refused(Status.INVALID_VALUE, lambda wrong=wrong: transform(wrong, out))
        assert "x is" in message and "the plan is for c64 of shape (2, 64)" in message
        assert "out is" in refused(Status.INVALID_VALUE, lambda wrong=wrong: transform(x, np.array(wrong)))
    out.flags.writeable = False
    assert "read-only" in refused(Status.INVALID_VALUE, lambda: transform(x, out))
    assert not out.any()
    for arguments in ((), (x, x, x)):
        with pytest.raises(TypeError):
            transform(*arguments)
    with pytest.raises(TypeError):
        transform([[1] * 64] * 2)


def test_what_no_plan_can_be_made_of() -> None:
    assert "nearest are 8 and 16" in refused(Status.NOT_SUPPORTED, lambda: plan(12))
    assert "nearest are 8 and 16" in refused(Status.NOT_SUPPORTED, lambda: jitblas.plan("fft:n=12"))
    for dtype in ("float64", "c32", "fp32", np.longdouble, 7):
        assert "complex64 and complex128 are accepted" in refused(
            Status.NOT_SUPPORTED, lambda dtype=dtype: plan(8, dtype=dtype)
        )
    assert "'forward' and 'inverse'" in refused(Status.INVALID_VALUE, lambda: plan(8, direction="backward"))
    assert "'ortho'" in refused(Status.INVALID_VALUE, lambda: plan(8, norm="no"))
    for wrong in (0, -8, 2**27):
        with pytest.raises(jitblas.Error, match=r"at (least|most)|n="):
            plan(wrong)
    with pytest.raises(TypeError):
        plan(8.0)  # type: ignore[arg-type]


def test_a_plan_follows_its_handles_workspace() -> None:
    x = numbers(2**16, np.complex64)
    wanted = fft(x)
    with Handle() as handle:
        transform = plan(2**16, dtype="c64", handle=handle)
        for workspace in (None, jitblas.empty(x.nbytes, "u8"), None):
            handle.set_workspace(workspace)
            assert transform(x).tobytes() == wanted.tobytes()
        handle.set_workspace(jitblas.empty(x.nbytes - 8, "u8"))
        assert f"{x.nbytes} bytes" in refused(Status.ALLOC_FAILED, lambda: transform(x))


def test_device_arrays_in_and_out() -> None:
    x = numbers((2, 256), np.complex64)
    transform = plan(256, batch=2, dtype="c64")
    there = jitblas.array(x)
    made = transform(there)
    assert isinstance(made, jitblas.DeviceArray)
    assert made.numpy().tobytes() == transform(x).tobytes()
    assert transform(there, there) is there
    assert there.numpy().tobytes() == transform(x).tobytes()


def test_the_array_level_uses_plans_without_keeping_arrays() -> None:
    x = numbers(128, np.complex64)
    fft(x)
    before = sys.getrefcount(x)
    for _ in range(10):
        fft(x)
    assert sys.getrefcount(x) == before
