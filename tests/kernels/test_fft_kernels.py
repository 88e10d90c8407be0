"""Transforms with the chip's tiling in the twin, by as many passes as a profile asks for, in place and side by side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitblas
from jitblas.fft.tables import REALS, twiddle_table
from jitblas.handle import default_handle
from jitblas.hardware import ASCEND950PR, HOST, PROFILES, Profile
from jitblas.jit.kernels import load
from jitblas.operators.fft import passes, tiling, together, workspace_bytes
from jitblas.problem import Problem
from jitblas.runtime.host import WAIT
from tests.kernels.build import stream
from tests.transforms import KINDS, Array, aligned, assert_close, exact, numbers

CHIP = PROFILES[ASCEND950PR]

SHORT = PROFILES[HOST]._replace(name="host", fft_whole_bytes=64, fft_tile_bytes=16 * 128)
"""Transforms of 16 points at most to a pass."""


def address(array: Array) -> int:
    found: int = array.__array_interface__["data"][0]
    return found


def transform(x: Array, out: Array, profile: Profile, direction: str = "forward", blocks: int | None = None) -> int:
    """Launch a profile's kernel; how many passes it had."""
    batch, points = x.shape
    dtype = next(word for word, kind in KINDS.items() if kind == x.dtype)
    problem = Problem.parse(f"fft:n={points},batch={batch},dtype={dtype},dir={direction}")
    kernel = load(jitblas.specialize(problem, HOST, profile=profile))
    chosen, values = tiling(problem, profile)
    planned = passes(points, dtype, profile)
    table = aligned(twiddle_table(points, planned, REALS[dtype]))
    workspace = np.full(workspace_bytes(problem, profile) // 8 + 8, np.nan)
    status = kernel.launch(
        chosen if blocks is None else blocks, stream().address | WAIT, address(x), address(out), address(workspace),
        address(table), kernel.tiling(**values),
    )  # fmt: skip
    assert status == 0
    assert np.isnan(workspace[-8:]).all(), "the workspace is as large as stated"
    return len(planned)


@pytest.mark.parametrize("exponent", [*range(21), 23])
def test_every_length_with_the_chips_tiling(exponent: int) -> None:
    x = numbers((3 if exponent < 18 else 1, 2**exponent), np.complex64, seed=exponent)
    out = np.full((len(x) + 2, x.shape[1]), 7, x.dtype)
    transform(x, out[1:-1], CHIP)
    assert_close(out[1:-1], exact(x))
    assert np.all(out[[0, -1]] == 7)


@pytest.mark.parametrize("points", [1, 32, 64, 256, 4096, 2**14, 2**15])
def test_inverses_with_the_chips_tiling(points: int) -> None:
    x = numbers((2, points), np.complex64)
    out = np.empty_like(x)
    transform(x, out, CHIP, "inverse")
    assert_close(out * points, exact(x, "inverse"))


@pytest.mark.parametrize("points", [64, 4096, 2**13, 2**15])
def test_binding_changes_no_bit_with_the_chips_tiling(points: int) -> None:
    x = numbers((3, points), np.complex64)
    direct, copied = np.empty_like(x), np.empty_like(x)
    transform(x, direct, CHIP)
    with default_handle(HOST).runtime.binding(False):
        transform(x, copied, CHIP)
    assert direct.tobytes() == copied.tobytes()


@pytest.mark.parametrize("kind", KINDS.values(), ids=str)
@pytest.mark.parametrize(("points", "count"), [(2**8, 2), (2**12, 3), (2**16, 4)])
@pytest.mark.parametrize("direction", ["forward", "inverse"])
@pytest.mark.parametrize("binding", [True, False])
def test_two_three_and_four_passes(points: int, count: int, kind: Any, direction: str, binding: bool) -> None:
    """With an even number of passes the workspace lies between input and output, with an odd one the output does."""
    x = numbers((3, points), kind)
    out = np.full((5, points), 7, kind)
    with default_handle(HOST).runtime.binding(binding):
        profile = SHORT if kind == np.complex64 else SHORT._replace(fft_whole_bytes=128)
        assert transform(x, out[1:-1], profile, direction) == count
        scale = points if direction == "inverse" else 1
        assert_close(out[1:-1] * scale, exact(x, direction))
        assert np.all(out[[0, -1]] == 7)
        wanted = out[1:-1].tobytes()
        transform(x, x, profile, direction)  # in place
    assert x.tobytes() == wanted


@pytest.mark.parametrize("points", [16, 1024, 2**12])
def test_any_number_of_blocks_gives_the_same_bits(points: int) -> None:
    x = numbers((5, points), np.complex64)
    results = set()
    for blocks in (1, 2, 3, 7, 64):
        out = np.full_like(x, np.nan)
        transform(x, out, SHORT if points == 2**12 else PROFILES[HOST], blocks=blocks)
        results.add(out.tobytes())
    assert len(results) == 1


@pytest.mark.parametrize("profile", [PROFILES[HOST], CHIP, SHORT], ids=["host", "chip", "short"])
def test_many_transforms_are_made_by_a_core_each_with_the_same_bits(profile: Profile) -> None:
    points, batch = (2**13, 230) if profile is CHIP else (2**16 if profile is not SHORT else 2**12, 19)
    problem = Problem.parse(f"fft:n={points},batch={batch},dtype=c64")
    assert together(problem, profile)
    blocks = tiling(problem, profile)[0]
    assert blocks == min(batch // 4, profile.vector_cores)
    assert workspace_bytes(problem, profile) == blocks * points * 8
    x = numbers((batch, points), np.complex64)
    wanted, got = np.empty_like(x), np.empty_like(x)
    transform(x, wanted, profile._replace(fft_together_bytes=0))
    for binding in (True, False):
        with default_handle(HOST).runtime.binding(binding):
            transform(x, got, profile)
        assert got.tobytes() == wanted.tobytes()
    transform(x, x, profile)
    assert x.tobytes() == wanted.tobytes()


def test_few_or_large_transforms_are_not() -> None:
    def of(line: str) -> bool:
        return together(Problem.parse(line), PROFILES[HOST])

    assert of("fft:n=65536,batch=8,dtype=c64")
    assert not of("fft:n=65536,batch=7,dtype=c64")
    assert not of("fft:n=262144,batch=100,dtype=c64")
    assert not of("fft:n=1024,batch=100000,dtype=c64")


def test_what_vector_units_lack_is_refused() -> None:
    problem = Problem.parse("fft:n=64,dtype=c128")
    refused: list[Callable[[], Any]] = [
        lambda: jitblas.specialize(problem, ASCEND950PR),
        lambda: jitblas.specialize(problem, HOST, profile=ASCEND950PR),
    ]
    for call in refused:
        with pytest.raises(jitblas.StatusError, match=r"c128.*no FP64; give complex64.*'host'") as caught:
            call()
        assert caught.value.status == jitblas.Status.NOT_SUPPORTED
