"""Operations of the Reg API that move lanes or choose between them: by the twin, and worked out with NumPy."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.kernels.build import run
from tests.reference import canonical, numbers

Array = np.ndarray[Any, np.dtype[Any]]

LANES = 64
COUNTS = (0, 1, 2, 15, 16, 17, 33, 63, 64, 65, 1000)
BEHIND = np.float32(77)


def _evens_and_odds(a: Array, b: Array, selected: Array) -> tuple[Array, Array]:
    both = np.concatenate([a, b])
    return both[0::2], both[1::2]


def _in_turn(a: Array, b: Array, selected: Array) -> tuple[Array, Array]:
    both = np.stack([a, b], axis=1).reshape(-1)
    return both[:LANES], both[LANES:]


def _negative(a: Array, b: Array, selected: Array) -> tuple[Array, Array]:
    zero = np.float32(0)
    return np.where(selected, -a, zero), np.where(selected, -b, zero)


def _magnitude(a: Array, b: Array, selected: Array) -> tuple[Array, Array]:
    zero = np.float32(0)
    return np.where(selected, np.abs(a), zero), np.where(selected, np.abs(b), zero)


def _largest(a: Array, b: Array, selected: Array) -> tuple[Array, Array]:
    """As the first element; numbers that are NaN are none, and of no number minus infinity is the largest."""
    first, second = np.zeros((2, LANES), np.float32)
    for out, values in ((first, a[selected]), (second, b[selected])):
        out[0] = max(values[~np.isnan(values)], default=-np.inf)
    return first, second


def _not_greater(a: Array, b: Array, selected: Array) -> tuple[Array, Array]:
    with np.errstate(invalid="ignore"):
        found = (a <= b) & selected
    return np.where(found, np.float32(2), np.float32(0)), np.where(found, np.float32(2), BEHIND)


def _from_anywhere(a: Array, b: Array, selected: Array) -> tuple[Array, Array]:
    both = np.concatenate([a, b])
    return both[1 : 1 + LANES], both[LANES - 3 : 2 * LANES - 3]


def _chosen(a: Array, b: Array, selected: Array) -> tuple[Array, Array]:
    return np.where(selected, a, b), np.where(selected, b, a)


def _chosen_in_place(a: Array, b: Array, selected: Array) -> tuple[Array, Array]:
    b = np.where(selected, a, b)
    return np.where(selected, b, a), b


def _equal(a: Array, b: Array, selected: Array) -> tuple[Array, Array]:
    found = (a == b) & selected
    return np.where(found, np.float32(2), np.float32(0)), np.where(found, np.float32(2), BEHIND)


OPERATIONS: dict[str, Callable[[Array, Array, Array], tuple[Array, Array]]] = {
    "reg_load_deinterleaved": _evens_and_odds,
    "reg_deinterleave": _evens_and_odds,
    "reg_deinterleave_in_place": _evens_and_odds,
    "reg_deinterleave_one": lambda a, b, selected: _evens_and_odds(a, a, selected),
    "reg_interleave": _in_turn,
    "reg_interleave_in_place": _in_turn,
    "reg_interleave_one": lambda a, b, selected: _in_turn(a, a, selected),
    "reg_neg": _negative,
    "reg_neg_in_place": _negative,
    "reg_select": _chosen,
    "reg_select_in_place": _chosen_in_place,
    "reg_compare": _equal,
    "reg_compare_le": _not_greater,
    "reg_abs": _magnitude,
    "reg_abs_in_place": _magnitude,
    "reg_reduce_max": _largest,
    "reg_load_unaligned": _from_anywhere,
}
"""What two registers and the lanes that a mask selects become: two registers."""


def operands(seed: int) -> tuple[Array, Array]:
    """Two registers of numbers, special ones among them, of which many are equal."""
    a, b = numbers("fp32", LANES, seed, special=True), numbers("fp32", LANES, seed + 100, special=True)
    same = np.random.default_rng(seed).random(LANES) < 0.5
    return a, np.where(same, a, b)


def wanted(operation: str, a: Array, b: Array, count: int) -> Array:
    """The two registers, and what lies behind them."""
    first, second = OPERATIONS[operation](a, b, np.arange(LANES) < count)
    return np.concatenate([first, second, np.full(LANES, BEHIND)])


def operate(operation: str, a: Array, b: Array, count: int) -> Array:
    """The same by the twin."""
    shown = np.full(3 * LANES, BEHIND)
    run("lanes", operation, np.concatenate([a, b]), shown, count)
    return shown


def digest() -> str:
    """Of all results, to be compared with another build's."""
    state = hashlib.sha256()
    for operation in OPERATIONS:
        for seed, count in enumerate(COUNTS):
            state.update(canonical(operate(operation, *operands(seed), count)).tobytes())
    return state.hexdigest()
