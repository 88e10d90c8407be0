"""What this CPU can run, and what a kernel needs."""

from __future__ import annotations

import functools
import platform
from typing import TYPE_CHECKING

from jitblas.digest import hex_digest

if TYPE_CHECKING:
    from jitblas.toolchain.base import Toolchain


@functools.cache
def features() -> frozenset[str]:
    """Instruction set extensions as Linux names them (`flags` or `Features` of /proc/cpuinfo)."""
    try:
        with open("/proc/cpuinfo", "rb") as file:
            text = file.read(16384).decode(errors="replace")  # the first processor's lines
    except OSError:
        return frozenset()
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("flags", "Features"):
            return frozenset(value.split())
    return frozenset()


@functools.cache
def fingerprint() -> str:
    """Changes when -march=native may mean something else."""
    text = " ".join([platform.machine(), *sorted(features())])
    return hex_digest(text.encode())


# Predefined macro of an extension (without underscores around it) -> its name in /proc/cpuinfo.
_MACROS = {
    "SSE3": "pni", "SSSE3": "ssse3", "SSE4_1": "sse4_1", "SSE4_2": "sse4_2", "POPCNT": "popcnt", "AVX": "avx",
    "AVX2": "avx2", "FMA": "fma", "F16C": "f16c", "BMI": "bmi1", "BMI2": "bmi2", "LZCNT": "abm", "MOVBE": "movbe",
    "AVX512F": "avx512f", "AVX512BW": "avx512bw", "AVX512CD": "avx512cd", "AVX512DQ": "avx512dq",
    "AVX512VL": "avx512vl", "AVX512IFMA": "avx512ifma", "AVX512VBMI": "avx512vbmi", "AVX512VBMI2": "avx512_vbmi2",
    "AVX512VNNI": "avx512_vnni", "AVX512BITALG": "avx512_bitalg", "AVX512VPOPCNTDQ": "avx512_vpopcntdq",
    "AVX512BF16": "avx512_bf16", "AVX512FP16": "avx512_fp16", "AVXVNNI": "avx_vnni", "GFNI": "gfni",
    "VAES": "vaes", "VPCLMULQDQ": "vpclmulqdq", "FMA4": "fma4", "XOP": "xop",
    "ARM_FEATURE_FP16_VECTOR_ARITHMETIC": "asimdhp", "ARM_FEATURE_DOTPROD": "asimddp", "ARM_FEATURE_SVE": "sve",
    "ARM_FEATURE_SVE2": "sve2", "ARM_FEATURE_BF16": "bf16", "ARM_FEATURE_ATOMICS": "atomics",
}  # fmt: skip


def required(toolchain: Toolchain) -> frozenset[str]:
    """The extensions that kernels of the toolchain may use, from the macros that its flags switch on."""
    enabled = dict(toolchain.identity).get("instructions", "").split()
    return frozenset(_MACROS[name] for name in enabled if name in _MACROS)
