"""The Reg API of the twin: right in selected lanes, zero in the others, and no byte stored that the mask leaves out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from jitblas.errors import CompileError
from jitblas.jit import artifacts
from tests.kernels import lanes
from tests.kernels.build import recipe, run
from tests.reference import assert_same_bits, bits, fused_multiply_add, numbers

LANES = 64
COUNTS = (0, 1, 2, 15, 16, 17, 31, 33, 63, 64, 65, 1000)

Array = np.ndarray[Any, np.dtype[Any]]

OPERATIONS: dict[str, Callable[[Array, Array, Array, np.float32], Array]] = {
    "reg_add": lambda a, b, c, number: a + b,
    "reg_sub": lambda a, b, c, number: a - b,
    "reg_mul": lambda a, b, c, number: a * b,
    "reg_adds": lambda a, b, c, number: a + number,
    "reg_muls": lambda a, b, c, number: a * number,
    "reg_axpy": lambda a, b, c, number: fused_multiply_add(number, a, c),
    "reg_mul_add_dst": lambda a, b, c, number: fused_multiply_add(a, b, c),
    "reg_duplicate": lambda a, b, c, number: np.full(LANES, number),
}


def operate(operation: str, operands: list[Array], number: float, selected: int, stored: int) -> Array:
    shown = np.full(2 * LANES, 77, "f4")
    run("registers", operation, *operands, shown, float(number), selected, stored)
    return shown


COMPUTED = """
void Computed(AscendC::Reg::RegTensor<%s>& a) {
    %s mask = AscendC::Reg::CreateMask<float, AscendC::Reg::MaskPattern::ALL>();
    AscendC::Reg::Add(a, a, a, mask);
}
"""


@pytest.mark.parametrize("mask", ["auto", "AscendC::Reg::MaskReg"])
def test_arithmetic_is_refused_on_registers_of_16_bit_elements(mask: str) -> None:
    for element in ("half", "bfloat16_t"):
        with pytest.raises(CompileError, match="arithmetic is on float"):
            artifacts.obtain(recipe("registers", COMPUTED % (element, mask)))
    artifacts.obtain(recipe("registers", COMPUTED % ("float", mask)))


@pytest.mark.parametrize("operation", list(OPERATIONS))
def test_selected_lanes_are_right_and_the_others_zero(operation: str) -> None:
    for seed, selected in enumerate(COUNTS):
        operands = [numbers("fp32", LANES, 10 * seed + i, special=True) for i in range(3)]
        for number in (-2.5, -0.0, np.inf):
            with np.errstate(all="ignore"):
                wanted = OPERATIONS[operation](*operands, np.float32(number)).astype("f4")
            wanted[selected:] = 0
            shown = operate(operation, operands, number, selected, LANES)
            assert_same_bits(shown[:LANES], wanted, f"{selected} lanes, {number}")
            assert (bits(shown[:LANES])[selected:] == 0).all()  # zero, not minus zero
            assert (shown[LANES:] == 77).all()


@pytest.mark.parametrize("operation", list(OPERATIONS))
def test_a_store_writes_no_lane_that_its_mask_leaves_out(operation: str) -> None:
    operands = [numbers("fp32", LANES, i) for i in range(3)]
    wanted = OPERATIONS[operation](*operands, np.float32(1.5)).astype("f4")
    for stored in COUNTS:
        shown = operate(operation, operands, 1.5, LANES, stored)
        assert_same_bits(shown[: min(stored, LANES)], wanted[:stored])
        assert (shown[min(stored, LANES) :] == 77).all()


@pytest.mark.parametrize("word", ["fp16", "bf16"])
def test_casts_zero_unselected_lanes_and_stores_leave_the_rest_alone(word: str) -> None:
    values = np.abs(numbers(word, LANES, 3)) + numbers(word, LANES, 4).dtype.type(1)
    for widened, narrowed, stored in [(64, 64, 64), (10, 64, 64), (64, 9, 64), (20, 30, 25), (64, 64, 1), (0, 64, 33)]:
        shown = np.full(2 * LANES, 77, values.dtype)
        run("registers", "convert", values, shown, int(word == "bf16"), widened, narrowed, stored)
        wanted = values.copy()
        wanted[min(widened, narrowed) :] = 0
        assert (bits(shown)[:stored] == bits(wanted)[:stored]).all()
        assert (shown[stored:] == 77).all()


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 128, 191, 192, 500])
def test_update_mask_takes_a_register_s_worth_off_the_count(count: int) -> None:
    shown = np.zeros(3 * LANES, "f4")
    run("registers", "ones", shown, count, 3)
    assert shown.tolist() == [1.0] * min(count, 192) + [0.0] * max(192 - count, 0)


@pytest.mark.parametrize("operation", list(lanes.OPERATIONS))
def test_lanes_go_where_they_belong_and_a_register_may_be_its_own_destination(operation: str) -> None:
    for seed, count in enumerate(lanes.COUNTS):
        a, b = lanes.operands(seed)
        shown = lanes.operate(operation, a, b, count)
        assert_same_bits(shown, lanes.wanted(operation, a, b, count), f"{count} lanes")


def test_numbers_are_equal_as_ieee_754_has_it() -> None:
    values = np.array([0.0, np.nan, np.inf, -np.inf, 1e-45], "f4")
    a, b = np.resize(values, lanes.LANES), np.resize(values, lanes.LANES)
    b[0], b[7] = -0.0, np.inf
    found = lanes.operate("reg_compare", a, b, lanes.LANES)[: lanes.LANES] == 2
    assert found.tolist() == [index % 5 != 1 for index in range(lanes.LANES)]


def test_nan_is_not_below_any_number_nor_any_number_below_it() -> None:
    values = np.array([-np.inf, -1, -0.0, 0, 1e-45, 2, np.inf, np.nan], "f4")
    a, b = np.repeat(values, 8), np.tile(values, 8)
    found = lanes.operate("reg_compare_le", a, b, lanes.LANES)[: lanes.LANES] == 2
    with np.errstate(invalid="ignore"):
        assert found.tolist() == (a <= b).tolist()
    assert found[2 * 8 + 3] and found[3 * 8 + 2] and not found[7 * 8 + 7]


def test_a_comparison_may_narrow_the_mask_it_is_made_under() -> None:
    """Lanes that the mask leaves out are not found, whatever they hold."""
    zeros = np.zeros(lanes.LANES, "f4")
    found = lanes.operate("reg_compare_le", zeros, zeros, 5)[: lanes.LANES] == 2
    assert found.tolist() == [True] * 5 + [False] * (lanes.LANES - 5)
