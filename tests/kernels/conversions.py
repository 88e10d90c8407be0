"""Every conversion between float and the 16-bit types, worked out with integers, and the inputs worth converting."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from tests.kernels.build import run
from tests.reference import DTYPES

Array = np.ndarray[Any, np.dtype[Any]]

TILE = 4096
EVERY_16_BIT = np.arange(2**16, dtype=np.uint16)


def widened(bits: Array, word: str) -> Array:
    """float bits of 16-bit numbers; a NaN keeps its sign and payload and becomes quiet."""
    wide = bits.view(DTYPES[word]).astype(np.float32).view(np.uint32)
    spread = bits.astype(np.uint32)
    if word == "fp16":
        nan = (spread & 0x8000) << 16 | 0x7FC00000 | (spread & 0x3FF) << 13
        return np.where((spread & 0x7FFF) > 0x7C00, nan, wide)
    return spread << 16


def narrowed(bits: Array, word: str) -> Array:
    """16-bit numbers nearest to floats, ties to even; a NaN keeps its sign and what fits of its payload, quiet."""
    with np.errstate(all="ignore"):
        near = bits.view(np.float32).astype(DTYPES[word]).view(np.uint16)
    high = (bits >> 16).astype(np.uint16)
    if word == "fp16":
        nan = (high & 0x8000) | 0x7E00 | ((bits >> 13) & 0x3FF).astype(np.uint16)
    else:
        nan = high | 0x40
    return np.where((bits & 0x7FFFFFFF) > 0x7F800000, nan, near)


def floats(count: int = 2**22) -> Array:
    """Bits of floats: random ones, and around every 16-bit number the places where rounding turns."""
    generator = np.random.default_rng(7)
    chosen = [generator.integers(0, 2**32, count // 2, np.uint32)]
    for word in ("fp16", "bf16"):
        exact = widened(EVERY_16_BIT, word)
        halfway = exact + np.uint32(0x1000 if word == "fp16" else 0x8000)
        chosen += [exact, halfway, halfway - np.uint32(1), halfway + np.uint32(1)]
    tiny = generator.uniform(-(2.0**-14), 2.0**-14, count // 8).astype(np.float32).view(np.uint32)
    steps = (np.arange(-4096, 4096) * 2.0**-25).astype(np.float32)  # ties between subnormal halves
    chosen += [tiny, steps.view(np.uint32), generator.normal(0, 3e4, count // 8).astype(np.float32).view(np.uint32)]
    together = np.concatenate(chosen)
    return np.ascontiguousarray(np.resize(together, -(-together.size // TILE) * TILE))


def widen(bits: Array, word: str, registers: bool) -> Array:
    """By the twin: with the Reg API, or with the basic Cast."""
    wide = np.zeros(bits.size, np.uint32)
    run("casts", "widen", bits, wide, bits.size, int(word == "bf16"), int(registers))
    return wide


def narrow(bits: Array, word: str, registers: bool) -> Array:
    near = np.zeros(bits.size, np.uint16)
    run("casts", "narrow", bits, near, bits.size, int(word == "bf16"), int(registers))
    return near


def digest() -> str:
    """Of all results, to be compared with another build's."""
    state = hashlib.sha256()
    values = floats(2**18)
    for word in ("fp16", "bf16"):
        for registers in (False, True):
            state.update(widen(EVERY_16_BIT, word, registers))
            state.update(narrow(values, word, registers))
    return state.hexdigest()
