"""The source of a specialisation: tiling structure and constants first, then the operator's own kernel text."""

from __future__ import annotations

import os
from collections.abc import Iterable
from importlib import import_module

from jitblas.operators.base import Constant, TilingField, Variant
from jitblas.problem import Value


def render(
    variant: Variant,
    constants: Iterable[tuple[str, Constant]],
    baked: Iterable[tuple[str, Value]],
    kernels: str,
) -> str:
    """One self-describing source file; the same text for every target.

    Parameters
    ----------
    constants : (name, value) of the class; words are types, the others are `constexpr`
    baked : tiling fields that are constants of this kernel (exact specialisations)
    kernels : folder of the kernel sources
    """
    sizes, classes = dict(baked), dict(constants)
    with open(os.path.join(kernels, variant.source), encoding="utf-8") as file:
        body = file.read()
    return "\n".join(
        [
            "#include <stdint.h>",
            "",
            '#include "kernel_operator.h"',
            "",
            "// Run-time numbers of a launch; what is static is the same for every launch of this kernel.",
            *print_tiling(variant.fields, sizes),
            "",
            "namespace spec {",
            *(_constant(name, value) for name, value in classes.items()),
            _constant("kSizesBaked", bool(sizes)),
            "}  // namespace spec",
            "",
            *(import_module(variant.printer).print_source(classes) if variant.printer else ()),
            f'#line 1 "{variant.source}"',
            body,
            *print_packed_launch(variant.pointers),
        ]
    )


def print_packed_launch(pointers: int) -> list[str]:
    """The launch with its operands in an array and its tiling by address, one signature for all kernels."""
    operands = ", ".join(f"operands[{index}]" for index in range(pointers))
    return [
        "JITBLAS_EXPORT int launch_packed(uint32_t blocks, void* stream, void* const* operands,",
        "                                 const Tiling* tiling) {",
        f"    return launch(blocks, stream, {operands}, *tiling);",
        "}",
        "",
    ]


def print_tiling(fields: Iterable[TilingField], baked: dict[str, Value]) -> list[str]:
    """The C++ structure of a tiling; its ctypes twin is :func:`jitblas.operators.base.tiling_struct`."""
    lines = ["struct Tiling {"]
    for field in fields:
        if field.name in baked:
            lines.append(f"    static constexpr {field.ctype} {field.name} = {_literal(baked[field.name])};")
        else:
            lines.append(f"    {field.ctype} {field.name};")
    return [*lines, "};"]


def _constant(name: str, value: Constant) -> str:
    if isinstance(value, str):
        return f"using {name} = {value};"
    if isinstance(value, tuple):
        return f"constexpr uint32_t {name}[] = {{{', '.join(str(number) for number in value)}}};"
    kind = "bool" if isinstance(value, bool) else "uint32_t"
    return f"constexpr {kind} {name} = {_literal(value)};"


def _literal(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and value > 2**31 - 1:
        return f"{value}ull" if value > 2**63 - 1 else f"{value}ll"
    return str(value)
