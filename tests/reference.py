"""What AxpyEx must answer, to the last bit, and the wider bounds that other implementations are held to."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

DTYPES: dict[str, np.dtype[Any]] = {
    "fp32": np.dtype(np.float32),
    "fp16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
}
GATES = {"fp32": 2.0**-13, "fp16": 2.0**-10, "bf16": 2.0**-7}
"""Largest mean relative error; the largest single one is ten times that."""


def fused_multiply_add(a: Array | float, b: Array, c: Array) -> Array:
    """a * b + c of float32 numbers with one rounding, to nearest even.

    The product of two float32 is exact in float64. The float64 sum is then rounded to odd, which makes the second
    rounding, to float32, the only one that counts.
    """
    with np.errstate(all="ignore"):
        product = np.asarray(a, np.float32).astype(np.float64) * np.asarray(b, np.float32)
        addend = np.asarray(c, np.float32).astype(np.float64)
        total = product + addend
        back = total - product
        lost = (product - (total - back)) + (addend - back)  # total + lost is the exact sum (TwoSum)
        even = (total.view(np.int64) & 1) == 0
        inexact = np.isfinite(total) & np.isfinite(lost) & (lost != 0) & even
        odd = np.where(inexact, np.nextafter(total, np.copysign(np.inf, lost)), total)
        return odd.astype(np.float32)


def axpy(alpha: float, x: Array, y: Array) -> Array:
    """alpha * x + y: arithmetic in FP32, one more rounding to nearest even at the store for 16-bit types."""
    with np.errstate(all="ignore"):
        wide = fused_multiply_add(np.float32(alpha), x.astype(np.float32), y.astype(np.float32))
        return wide.astype(y.dtype)


def bits(array: Array) -> Array:
    """The elements as unsigned integers."""
    return np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")


def canonical(array: Array) -> Array:
    """The elements' bits, with one pattern for every NaN: which of two NaNs survives is nobody's promise."""
    with np.errstate(invalid="ignore"):
        nan = np.isnan(array.astype(np.float32))
    found = bits(array)
    return np.where(nan, np.array(-1).astype(found.dtype), found)


def assert_same_bits(got: Array, expected: Array, note: str = "") -> None:
    different = np.flatnonzero(canonical(got) != canonical(expected))
    if different.size:
        at = different[0]
        raise AssertionError(
            f"{note}: {different.size} of {got.size} differ, first [{at}]: {got[at]!r}, not {expected[at]!r}"
        )


def assert_within_gate(got: Array, alpha: float, x: Array, y: Array, word: str) -> None:
    """The MERE/MARE gate of the operator's description."""
    wanted = np.float64(np.float32(alpha)) * x.astype(np.float64) + y.astype(np.float64)
    found = got.astype(np.float64)
    assert (np.isfinite(found) == np.isfinite(wanted.astype(y.dtype).astype(np.float64))).all()
    compared = np.isfinite(found) & np.isfinite(wanted) & (found != wanted)
    if compared.any():
        relative = np.abs(found - wanted)[compared] / (np.abs(wanted[compared]) + 2.0**-14)
        assert relative.mean() < GATES[word]
        assert relative.max() < 10 * GATES[word]


def assert_within_half_ulp(got: Array, alpha: float, x: Array, y: Array) -> None:
    """FP32 results are the correctly rounded ones: half a unit in the last place off float64 at most."""
    wanted = np.float64(np.float32(alpha)) * x.astype(np.float64) + y.astype(np.float64)
    unit = np.spacing(np.abs(wanted).astype(np.float32)).astype(np.float64)
    assert (np.abs(got.astype(np.float64) - wanted) <= 0.5 * unit * (1 + 2.0**-20)).all()


def numbers(word: str, n: int, seed: int, *, special: bool = False, positive: bool = False) -> Array:
    """Test data: normal numbers, with infinities, NaN, zeros, subnormals and extremes strewn in if `special`."""
    generator = np.random.default_rng(seed)
    values = generator.standard_normal(n).astype(np.float32)
    if positive:
        values = np.abs(values)
    with np.errstate(over="ignore"):
        made: Array = values.astype(DTYPES[word])
    if special and n:
        chosen = generator.random(n) < 0.25
        made[chosen] = generator.choice(specials(word), int(chosen.sum()))
    return made


def specials(word: str) -> Array:
    """Numbers on which shortcuts show."""
    dtype = DTYPES[word]
    limits = ml_dtypes.finfo(dtype)
    smallest, normal, largest = limits.smallest_subnormal, limits.smallest_normal, limits.max
    positive = [0.0, smallest, normal, normal * 0.5, 1.0, limits.eps, 3.0, largest, largest * 0.5, np.inf]
    with np.errstate(all="ignore"):
        ahead = np.array([np.nan, *positive], np.float64).astype(dtype)
        return np.concatenate([ahead, -ahead])
