"""Rendered sources: what a kernel is compiled from, for people to read too."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

import jitblas
from jitblas.hardware import PROFILES
from jitblas.jit import artifacts
from jitblas.jit.artifacts import Recipe
from jitblas.jit.kernels import open_library
from jitblas.jit.render import print_tiling, render
from jitblas.operators.axpy_ex import STRIDED
from jitblas.operators.base import TilingField, Variant, tiling_struct

KERNELS = Path(__file__).resolve().parent.parent.parent / "kernels_src"


def test_a_class_takes_its_sizes_at_run_time() -> None:
    source = jitblas.specialize("axpy_ex:n=1000,dtype=bf16,incx=2", "ascend950pr").source
    lines = source.splitlines()
    struct = lines[lines.index("struct Tiling {") : lines.index("};") + 1]
    fields = ["uint64_t n", "int64_t incx", "int64_t incy", "uint64_t per_block", "uint32_t threads", "float alpha"]
    assert struct == ["struct Tiling {", *(f"    {field};" for field in fields), "};"]
    assert "using Element = bfloat16_t;" in lines
    assert "constexpr bool kAlphaOnDevice = false;" in lines
    assert f"constexpr uint32_t kMaxThreads = {PROFILES['ascend950pr'].simt_max_threads};" in lines
    body = (KERNELS / "axpy_ex" / "strided.asc").read_text()
    assert f'#line 1 "axpy_ex/strided.asc"\n{body}' in source
    assert '#include "kernel_operator.h"' in lines


def test_an_exact_kernel_has_its_sizes_compiled_in() -> None:
    source = jitblas.specialize("axpy_ex:n=1000,dtype=bf16,incx=-2", "ascend950pr", exact=True).source
    assert "    static constexpr uint64_t n = 1000;\n    static constexpr int64_t incx = -2;\n" in source
    assert "    uint64_t per_block;\n" in source
    assert "    float alpha;\n" in source


def test_the_device_is_given_the_launch_as_it_stands_and_the_host_a_call() -> None:
    for line in ("axpy_ex:n=9", "axpy_ex:n=9,incx=2"):
        assert "<<<blocks, nullptr, stream>>>" in jitblas.specialize(line, "ascend950pr").source
        host = jitblas.specialize(line, "host").source
        assert "<<<blocks" not in host
        assert "::twin::Launch<::AscendC::KERNEL_TYPE_AIV_ONLY>(axpy_ex_" in host
        assert "#pragma" not in host.splitlines()[0]


def test_the_same_specialisation_renders_the_same_text() -> None:
    texts = {jitblas.specialize("axpy_ex:n=5,dtype=fp16", "host").source for _ in range(3)}
    assert len(texts) == 1


def test_the_text_on_disk_is_the_text_compiled(full_store: Path) -> None:
    rendered = jitblas.specialize("axpy_ex:n=1000", "host").source
    assert rendered in [path.read_text() for path in full_store.rglob("kernel.cpp")]


@pytest.mark.parametrize(
    ("value", "literal"),
    [
        (0, "0"),
        (-5, "-5"),
        (2**31 - 1, "2147483647"),
        (2**31, "2147483648ll"),
        (-(2**31), "-2147483648"),
        (2**63 - 1, "9223372036854775807ll"),
        (2**63, "9223372036854775808ull"),
    ],
)
def test_baked_numbers_are_literals_of_sufficient_width(value: int, literal: str) -> None:
    lines = print_tiling([TilingField("n", "int64_t", size=True)], {"n": value})
    assert lines == ["struct Tiling {", f"    static constexpr int64_t n = {literal};", "};"]


def test_constants_keep_their_order_and_kinds() -> None:
    variant = Variant("axpy_ex", "strided", "axpy_ex/strided.asc", STRIDED.fields, pointers=3)
    text = render(variant, [("Element", "half"), ("kFlag", True), ("kSize", 7)], [], KERNELS)
    block = "namespace spec {\nusing Element = half;\nconstexpr bool kFlag = true;\nconstexpr uint32_t kSize = 7;\n"
    assert block + "constexpr bool kSizesBaked = false;\n}" in text
    assert "constexpr bool kSizesBaked = true;\n}" in render(variant, [], [("n", 5)], KERNELS)


def test_python_and_cpp_lay_a_tiling_out_alike() -> None:
    types = ("uint32_t", "uint64_t", "float", "int64_t", "int32_t", "float", "float", "uint64_t", "uint32_t")
    fields = tuple(TilingField(f"f{index}", ctype, size=True) for index, ctype in enumerate(types))
    baked = {"f1": 3, "f4": -1}
    text = "\n".join(
        [
            "#include <stddef.h>",
            "#include <stdint.h>",
            *print_tiling(fields, baked),
            '#define SEEN extern "C" __attribute__((visibility("default")))',
            "SEEN const char* jitblas_key() { return JITBLAS_KEY; }",
            "SEEN size_t size() { return sizeof(Tiling); }",
            *(
                f"SEEN size_t at_{field.name}() {{ return offsetof(Tiling, {field.name}); }}"
                for field in fields
                if field.name not in baked
            ),
        ]
    )
    recipe = Recipe("a layout", "0" * 64, "host", lambda: text, (), (), {"operator": "test"})
    entry = artifacts.obtain(recipe)
    library = open_library(entry.shared_object, str(entry.key))
    struct = tiling_struct(fields, frozenset(baked))
    assert library.size() == ctypes.sizeof(struct)
    for name, _ in struct._fields_:
        assert getattr(library, f"at_{name}")() == getattr(struct, name).offset
