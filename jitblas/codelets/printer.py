"""Ascend C of codelets: straight-line code of registers for vector functions, of scalars for SIMT threads.

A vector codelet is `Codelet<points>::Run(source, sink, all)`. It asks `source.Load<j>(re, im, all)` for an input just
before it needs it and hands an output to `sink.Store<k>(re, im, all)` as soon as it is there, so that few registers
are held at a time. A sink may change the registers it is given: outputs are nobody's operands.
`InterleavedCodelet<points>::Run(source, sink, all)` turns each output by `sink.Turn<k>(re, im, all)` and ends with the
elements of all outputs in turn (output 0's first one, output 1's first one, ...) for `sink.StoreReal<i>(part, all)` and
`sink.StoreImaginary<i>(part, all)`. `Transposer<rows>` does so with its inputs; with as many rows as a register has
lanes that transposes them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from jitblas.codelets.expressions import ADD, INPUT, ROTATE, SCALE, SUB, Node, Value
from jitblas.codelets.transform import Transform, transform
from jitblas.operators.base import Constant

WIDTH = 116
"""Longest line of names."""


def print_source(constants: Mapping[str, Constant]) -> list[str]:
    """What the constants of a kernel ask for: in each list the sizes of one kind of codelet."""
    lines = [f'#include "fft/{"scalars" if "kScalarCodelets" in constants else "registers"}.h"', ""]
    for constant, body in KINDS:
        sizes = constants.get(constant, ())
        assert isinstance(sizes, tuple)
        for points in sizes:
            lines += body(points)
    return lines


def vector_codelet(points: int) -> list[str]:
    what = transform(points)
    code = _Registers()
    code.transform(what, store=True)
    return [*_comment(what), *_struct("Codelet", points, code.printed())]


def interleaved_codelet(points: int) -> list[str]:
    what = transform(points)
    code = _Registers()
    code.transform(what, store=False)
    parts = [[code.operand(value) for value in output] for output in what.outputs]
    for k, (re, im) in enumerate(parts):
        code.lines.append(f"sink.template Turn<{k}>({re}, {im}, all);")
    code.interleave([re for re, _ in parts], "Real")
    code.interleave([im for _, im in parts], "Imaginary")
    return [*_comment(what), *_struct("InterleavedCodelet", points, code.printed())]


def transposer(rows: int) -> list[str]:
    code = _Registers()
    for row in range(rows):
        code.load(row)
    code.interleave([f"re{row}" for row in range(rows)], "Real")
    code.interleave([f"im{row}" for row in range(rows)], "Imaginary")
    return _struct("Transposer", rows, code.printed())


def scalar_codelet(points: int) -> list[str]:
    what = transform(points)
    lines = []
    loaded: set[int] = set()
    for number, node in enumerate(what.graph.nodes):
        if node.kind == INPUT:
            k = node.operands[0]
            if k not in loaded:
                loaded.add(k)
                lines += [f"Real re{k};", f"Real im{k};", f"source.template Load<{k}>(re{k}, im{k});"]
        else:
            lines.append(f"const Real t{number} = {_scalar(what, node)};")
    for k, output in enumerate(what.outputs):
        re, im = (f"{'-' if value.negative else ''}{_name(what, value.node)}" for value in output)
        lines.append(f"sink.template Store<{k}>({re}, {im});")
    body = [
        "template <>",
        f"struct ScalarCodelet<{points}> {{",
        "    template <typename Source, typename Sink>",
        "    __simt_callee__ static inline void Run(const Source& source, const Sink& sink) {",
        *(f"        {line}" for line in lines),
        "    }",
        "};",
        "",
    ]
    return [*_comment(what), *body]


KINDS: tuple[tuple[str, Callable[[int], list[str]]], ...] = (
    ("kCodelets", vector_codelet),
    ("kInterleavedCodelets", interleaved_codelet),
    ("kTransposers", transposer),
    ("kScalarCodelets", scalar_codelet),
)
"""(constant that lists sizes, what prints one)."""


class _Registers:
    """Lines of a vector codelet as they grow, and the registers that they name."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._names: list[str] = []

    def printed(self) -> list[str]:
        """Registers first, as many to a line as fit."""
        rows: list[str] = []
        for name in self._names:
            if rows and len(rows[-1]) + len(name) + 2 <= WIDTH:
                rows[-1] += f", {name}"
            else:
                rows.append(f"Register {name}")
        return [*(f"{row};" for row in rows), *self.lines]

    def _new(self, name: str) -> str:
        self._names.append(name)
        return name

    def load(self, k: int) -> None:
        re, im = self._new(f"re{k}"), self._new(f"im{k}")
        self.lines.append(f"source.template Load<{k}>({re}, {im}, all);")

    def transform(self, what: Transform, store: bool) -> None:
        """All operations; `store`: each output is handed over as soon as both its parts are there."""
        self._what = what
        waiting = list(enumerate(what.outputs)) if store else []
        loaded: set[int] = set()
        ready: set[int] = set()
        for number, node in enumerate(what.graph.nodes):
            if node.kind == INPUT:
                if node.operands[0] not in loaded:
                    loaded.add(node.operands[0])
                    self.load(node.operands[0])
            else:
                self._operation(number, node)
            ready.add(number)
            for k, output in [item for item in waiting if all(value.node in ready for value in item[1])]:
                waiting.remove((k, output))
                re, im = (self.operand(value) for value in output)
                self.lines.append(f"sink.template Store<{k}>({re}, {im}, all);")

    def _operation(self, number: int, node: Node) -> None:
        result = self._new(f"t{number}")
        names = [_name(self._what, operand) for operand in node.operands]
        if node.kind in (ADD, SUB):
            word = "Add" if node.kind == ADD else "Sub"
            self.lines.append(f"Reg::{word}({result}, {names[0]}, {names[1]}, all);")
        else:
            self.lines.append(f"Reg::Muls({result}, {names[0]}, Real({node.first!r}), all);")
        if node.kind == ROTATE:
            self.lines.append(f"Reg::Axpy({result}, {names[1]}, Real({node.second!r}), all);")

    def operand(self, value: Value) -> str:
        """The register of a value; one that is negative needs another."""
        name = _name(self._what, value.node)
        if not value.negative:
            return name
        turned = self._new(f"{name}_negative")
        self.lines.append(f"Reg::Neg({turned}, {name}, all);")
        return turned

    def interleave(self, rows: list[str], part: str) -> None:
        """The rows' elements in turn: of pairs half the rows apart, then of the longer rows that this gives, ..."""
        sequences = [[row] for row in rows]
        while len(sequences) > 1:
            half = len(sequences) // 2
            longer = []
            for a, b in zip(sequences[:half], sequences[half:], strict=True):
                together: list[str] = []
                for left, right in zip(a, b, strict=True):
                    low, high = (self._new(f"m{len(self._names)}") for _ in range(2))
                    self.lines.append(f"Reg::Interleave({low}, {high}, {left}, {right});")
                    together += [low, high]
                longer.append(together)
            sequences = longer
        for place, name in enumerate(sequences[0]):
            self.lines.append(f"sink.template Store{part}<{place}>({name}, all);")


def _name(what: Transform, number: int) -> str:
    node = what.graph.nodes[number]
    return f"{'im' if node.operands[1] else 're'}{node.operands[0]}" if node.kind == INPUT else f"t{number}"


def _scalar(what: Transform, node: Node) -> str:
    names = [_name(what, operand) for operand in node.operands]
    if node.kind == ADD:
        return f"{names[0]} + {names[1]}"
    if node.kind == SUB:
        return f"{names[0]} - {names[1]}"
    product = f"Real({node.first!r}) * {names[0]}"
    if node.kind == SCALE:
        return product
    return f"FusedMultiplyAdd(Real({node.second!r}), {names[1]}, {product})"


def _comment(what: Transform) -> list[str]:
    additions, multiplications = what.operations()
    return [f"// {what.points} points: {additions} additions, {multiplications} multiplications of real numbers."]


def _struct(name: str, points: int, lines: list[str]) -> list[str]:
    return [
        "template <>",
        f"struct {name}<{points}> {{",
        "    template <typename Source, typename Sink>",
        "    __simd_callee__ static inline void Run(const Source& source, const Sink& sink, AllLanes& all) {",
        *(f"        {line}" for line in lines),
        "    }",
        "};",
        "",
    ]
