"""What an operator is: pure functions from a problem to a variant, its constants and its tiling. No I/O here."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from jitblas.hardware import Profile
from jitblas.problem import Parameter, Problem, Value

FIELD_TYPES: Mapping[str, type[Any]] = {
    "uint32_t": ctypes.c_uint32,
    "uint64_t": ctypes.c_uint64,
    "int64_t": ctypes.c_int64,
    "float": ctypes.c_float,
    "double": ctypes.c_double,
}
"""C types that a tiling may hold, and what ctypes calls them."""


FRACTAL_ROWS, FRACTAL_COLUMNS = 16, 8
"""Matrices lie in the cube's buffers in fractals of that size, FP32."""

DENSE = -1
"""Leading dimension or stride of matrices that lie close to each other, without padding."""

FLOPS_PER_BYTE = 3
"""Of a CPU's core: what it computes in the time it takes to move a byte."""


class TilingField(NamedTuple):
    """One number handed to a kernel at run time.

    `size`: it follows from the problem's sizes alone, so that exact specialisations bake it into the kernel.
    """

    name: str
    ctype: str
    size: bool = False


class Variant(NamedTuple):
    """One kernel source of an operator: a path of the problem, with its own entry and tiling."""

    op: str
    name: str
    source: str
    """File in kernels_src/, relative."""
    fields: tuple[TilingField, ...]
    pointers: int
    """How many addresses its launch takes, between the stream and the tiling."""
    kind: str = "vector"
    """Which cores it runs on: "vector", "cube" or "mixed"."""
    printer: str = ""
    """Module whose `print_source(constants)` gives the lines that are generated ahead of the source; "": none are."""
    any_register_width: bool = False
    """Results do not depend on how wide registers are: the twin may have the profile's instead of the chip's."""


Constant = Value | tuple[int, ...]
"""What a kernel is compiled with: a number, a type's name, or an array of numbers."""


class Choice(NamedTuple):
    """What a problem resolves to: a variant and the constants that its class fixes."""

    variant: Variant
    constants: tuple[tuple[str, Constant], ...]


class Operator(Protocol):
    """One operator: a module of functions, found through :data:`jitblas.operators.OPERATORS`."""

    name: str
    parameters: tuple[Parameter, ...]
    minimum_cann: str
    limits: tuple[str, ...]
    """Fields of the profile that decide between paths."""

    def choose(self, problem: Problem, profile: Profile) -> Choice:
        """The variant and class constants of a problem."""

    def tiling(self, problem: Problem, profile: Profile) -> tuple[int, dict[str, int | float]]:
        """(blocks, tiling values) of a launch."""

    def workspace_bytes(self, problem: Problem, profile: Profile) -> int:
        """Bytes of workspace that a launch needs."""

    def bytes_moved(self, problem: Problem) -> int:
        """Bytes of the elements that a call reads and writes."""

    def cost(self, problem: Problem) -> int:
        """Bytes of memory traffic that take a CPU's core about as long as a call."""


_structs: dict[tuple[tuple[str, str], ...], type[ctypes.Structure]] = {}


def tiling_struct(fields: tuple[TilingField, ...], baked: frozenset[str]) -> type[ctypes.Structure]:
    """The ctypes structure of a tiling without its baked fields; the C++ header is printed from the same fields."""
    members = tuple((field.name, field.ctype) for field in fields if field.name not in baked)
    struct = _structs.get(members)
    if struct is None:
        struct = type("Tiling", (ctypes.Structure,), {"_fields_": [(name, FIELD_TYPES[c]) for name, c in members]})
        struct = _structs.setdefault(members, struct)
    return struct


def ceil_div(numerator: int, denominator: int) -> int:
    return -(-numerator // denominator)


def round_up(number: int, unit: int) -> int:
    return ceil_div(number, unit) * unit


def even_part(total: int, most: int, unit: int) -> int:
    """The size of equal parts of `total`: a multiple of `unit`, and at most `most` unless that is less than a unit."""
    most = max(most // unit, 1) * unit
    return min(most, round_up(max(1, ceil_div(total, ceil_div(total, most) or 1)), unit))
