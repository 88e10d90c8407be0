"""Casts of the twin: all 16-bit numbers to float, and millions of floats back, to the last bit.

And the same bits however the twin is compiled, of casts, of lanes that move, and of whole operators.
"""

from __future__ import annotations

import functools
import shutil
from typing import Any

import numpy as np
import pytest

from jitblas.jit import cpu
from tests.kernels import conversions
from tests.kernels.conversions import EVERY_16_BIT, narrow, narrowed, widen, widened

words = pytest.mark.parametrize("word", ["fp16", "bf16"])
ways = pytest.mark.parametrize("registers", [False, True], ids=["Cast", "Reg::Cast"])

floats = functools.cache(conversions.floats)


@words
@ways
def test_all_16_bit_numbers_become_the_same_floats(word: str, registers: bool) -> None:
    wide, expected = widen(EVERY_16_BIT, word, registers), widened(EVERY_16_BIT, word)
    assert [f"{bits:#06x}" for bits in np.flatnonzero(wide != expected)[:5]] == []


@words
@ways
def test_floats_are_rounded_to_nearest_even(word: str, registers: bool) -> None:
    near, expected = narrow(floats(), word, registers), narrowed(floats(), word)
    assert [f"{bits:#010x}" for bits in floats()[near != expected][:5]] == []


@words
@ways
def test_to_float_and_back_changes_nothing_but_quiets_nans(word: str, registers: bool) -> None:
    back = narrow(widen(EVERY_16_BIT, word, registers), word, registers)
    nan = np.isnan(widened(EVERY_16_BIT, word).view(np.float32))
    assert (back == EVERY_16_BIT)[~nan].all()
    assert (back == EVERY_16_BIT | (0x200 if word == "fp16" else 0x40))[nan].all()


BUILDS: dict[str, dict[str, str]] = {
    "without F16C and FMA": {"JITBLAS_MARCH": "x86-64"},
    "with AVX2": {"JITBLAS_MARCH": "x86-64-v3"},
    "clang": {"JITBLAS_CXX": "clang++"},
}
DIGESTS = """
import hashlib, jitblas
from tests.dots import bits, complex_numbers
from tests.kernels import conversions, lanes
from tests.reference import DTYPES, canonical, numbers
state = hashlib.sha256()
for word in DTYPES:
    for n, step in ((1, 1), (77, 1), (20_000, 1), (300, -2))[: 4 if word == "fp16" else 3]:
        x, y = (numbers(word, n * abs(step), seed, special=True)[::step] for seed in (1, 2))
        state.update(canonical(jitblas.axpy_ex(-2.5, x, y)))
for n in (1, 77, 20_000):
    state.update(bits(jitblas.cdotc(complex_numbers(n, 1), complex_numbers(n, 2))))
print(conversions.digest(), lanes.digest(), state.hexdigest())
"""


@functools.cache
def native(python: Any) -> str:
    answer: str = python(DIGESTS, JITBLAS_MARCH=None, JITBLAS_CXX=None).stdout
    return answer


@pytest.mark.parametrize("build", list(BUILDS))
def test_every_build_gives_the_same_bits(python: Any, build: str) -> None:
    if "avx2" not in cpu.features():
        pytest.skip("the builds compared are those of an x86-64 with AVX2")
    compiler = BUILDS[build].get("JITBLAS_CXX")
    if compiler is not None and shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    settings = {"JITBLAS_MARCH": None, "JITBLAS_CXX": None} | BUILDS[build]
    assert python(DIGESTS, **settings).stdout == native(python)
