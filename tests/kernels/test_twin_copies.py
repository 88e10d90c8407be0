"""DataCopy and DataCopyPad of the twin move what the chip moves, and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.build import run

UB = 8192
EMPTY = 0xEE

Bytes = np.ndarray[Any, np.dtype[np.uint8]]


def source(nbytes: int) -> Bytes:
    """Bytes that are small whole numbers in every type used here, all different from EMPTY."""
    return np.random.default_rng(nbytes).integers(1, 0x70, nbytes, np.uint8)


def padded(block: Bytes, item: int, pad: bool, left: int, right: int, value: float) -> Bytes:
    """What one block becomes in UB: rounded up to 32 bytes with the padding value or its own first element."""
    kind = {4: "f4", 2: "f2", 1: "i1"}[item]
    fill = np.array([value]).astype(kind).view(np.uint8) if pad else block[:item]
    left, right = (left, right) if pad else (0, 0)
    body = np.concatenate([np.tile(fill, left), block, np.tile(fill, right)])
    return np.concatenate([body, np.tile(fill, -body.size % 32 // item)])


def expected_in(
    memory: Bytes, item: int, count: int, nbytes: int, gap: int, ub_gap: int, padding: tuple[bool, int, int, float]
) -> Bytes:
    ub = np.full(UB, EMPTY, np.uint8)
    at = 0
    for i in range(count):
        block = padded(memory[i * (nbytes + gap) :][:nbytes], item, *padding)
        ub[at : at + block.size] = block
        at += block.size + 32 * ub_gap
    return ub


@st.composite
def runs(draw: st.DrawFn) -> tuple[int, int, int, int, int, tuple[bool, int, int, float]]:
    item = draw(st.sampled_from([1, 2, 4]))
    sides = st.integers(0, 32 // item)
    padding = (draw(st.booleans()), draw(sides), draw(sides), draw(st.sampled_from([0.0, -7.0])))
    return (
        item,
        draw(st.integers(1, 6)),
        draw(st.integers(1, 120)) * item,
        draw(st.integers(0, 40)) * item,
        draw(st.integers(0, 5)),
        padding,
    )


@given(runs())
@settings(deadline=None, max_examples=150)
def test_blocks_come_in_with_gaps_on_both_sides_and_padding(
    case: tuple[int, int, int, int, int, tuple[bool, int, int, float]],
) -> None:
    item, count, nbytes, gap, ub_gap, padding = case
    memory = source(count * (nbytes + gap))
    ub = np.full(UB, EMPTY, np.uint8)
    pad, left, right, value = padding
    run("copies", "pad_in", memory, ub, item, count, nbytes, gap, ub_gap, int(pad), left, right, value)
    wanted = expected_in(memory, item, count, nbytes, gap, ub_gap, padding)
    assert np.flatnonzero(ub != wanted).tolist() == []


@pytest.mark.parametrize("item", [1, 2, 4])
def test_a_tail_is_filled_with_the_first_element_when_no_padding_is_asked_for(item: int) -> None:
    memory = source(3 * item)
    ub = np.full(UB, EMPTY, np.uint8)
    run("copies", "pad_in", memory, ub, item, 1, 3 * item, 0, 0, 0, 0, 0, 5.0)
    assert (ub[: 3 * item] == memory).all()
    assert (ub[3 * item : 32].reshape(-1, item) == memory[:item]).all()
    assert (ub[32:] == EMPTY).all()


def test_padding_left_and_right_holds_the_padding_value() -> None:
    memory = np.arange(1, 6, dtype="f4")
    ub = np.full(UB, EMPTY, np.uint8)
    run("copies", "pad_in", memory, ub, 4, 1, 20, 0, 0, 1, 2, 3, -1.5)
    assert ub.view("f4")[:16].tolist() == [-1.5, -1.5, 1, 2, 3, 4, 5, *[-1.5] * 9]
    assert (ub[64:] == EMPTY).all()


@given(st.integers(1, 6), st.integers(1, 300), st.integers(0, 5), st.integers(0, 70))
@settings(deadline=None, max_examples=150)
def test_blocks_go_out_with_gaps_on_both_sides(count: int, nbytes: int, ub_gap: int, gap: int) -> None:
    ub = source(UB)
    memory = np.full(count * (nbytes + gap) + 64, EMPTY, np.uint8)
    wanted = memory.copy()
    for i in range(count):
        start = i * (-(-nbytes // 32) + ub_gap) * 32
        wanted[i * (nbytes + gap) :][:nbytes] = ub[start : start + nbytes]
    run("copies", "pad_out", ub, memory, count, nbytes, ub_gap, gap)
    assert np.flatnonzero(memory != wanted).tolist() == []


@pytest.mark.parametrize("item", [2, 4])
@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 15, 16, 17, 100, 1000])
def test_the_count_form_moves_whole_32_byte_units_and_drops_the_rest(item: int, count: int) -> None:
    memory = source(UB)
    ub, out = np.full(UB, EMPTY, np.uint8), np.full(UB, EMPTY, np.uint8)
    run("copies", "counted", memory, ub, out, item, count)
    moved = count * item // 32 * 32
    for after in (ub, out):
        assert (after[:moved] == memory[:moved]).all()
        assert (after[moved:] == EMPTY).all()


def test_the_count_form_also_copies_within_ub() -> None:
    ub = source(UB).view("f4")
    before = ub.copy()
    run("copies", "within", ub, 64, 8, 20)
    assert (ub[64:80] == before[8:24]).all()
    assert (np.delete(ub, slice(64, 80)) == np.delete(before, slice(64, 80))).all()


@pytest.mark.parametrize(("count", "length", "gap", "ub_gap"), [(1, 4, 0, 0), (3, 2, 1, 0), (4, 1, 0, 3), (5, 3, 2, 4)])
def test_whole_blocks_move_with_gaps_in_32_byte_units(count: int, length: int, gap: int, ub_gap: int) -> None:
    memory, out = source(UB), np.full(UB, EMPTY, np.uint8)
    ub = np.full(UB, EMPTY, np.uint8)
    run("copies", "whole_blocks", memory, ub, out, count, length, gap, ub_gap)
    wanted_ub, wanted_out = np.full(UB, EMPTY, np.uint8), np.full(UB, EMPTY, np.uint8)
    for i in range(count):
        block = memory[i * (length + gap) * 32 :][: length * 32]
        wanted_ub[i * (length + ub_gap) * 32 :][: length * 32] = block
        wanted_out[i * (length + gap) * 32 :][: length * 32] = block
    assert (ub == wanted_ub).all()
    assert (out == wanted_out).all()
