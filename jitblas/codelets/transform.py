"""Discrete Fourier transforms of 2^n points as expressions, by the conjugate-pair split-radix recursion.

A transform of n points is one of n / 2 (even inputs) and two of n / 4 (inputs 1 after and 1 before a multiple of four),
whose twiddles are conjugates of each other (Kamar and Elcherif, 1989). It has the fewest operations of the simple
recursions: 4 n log2 n - 6 n + 8.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

from jitblas.codelets.expressions import ADD, INPUT, ROTATE, SCALE, SUB, Complex, Graph, Value


class Transform(NamedTuple):
    """X_k = sum over j of x_j exp(-2 pi i j k / n), as a graph whose outputs are X_0, X_1, ..."""

    points: int
    graph: Graph
    outputs: tuple[Complex, ...]

    def operations(self) -> tuple[int, int]:
        """(additions and subtractions, multiplications) of real numbers, a fused pair being one of each."""
        kinds = [self.graph.nodes[number].kind for number in self.needed()]
        fused = kinds.count(ROTATE)
        return kinds.count(ADD) + kinds.count(SUB) + fused, kinds.count(SCALE) + 2 * fused

    def needed(self) -> list[int]:
        """Numbers of the nodes that outputs depend on, ascending."""
        needed: set[int] = set()
        waiting = [value.node for output in self.outputs for value in output]
        while waiting:
            number = waiting.pop()
            node = self.graph.nodes[number]
            if number not in needed:
                needed.add(number)
                waiting += [] if node.kind == INPUT else node.operands
        return sorted(needed)


@functools.cache
def transform(points: int) -> Transform:
    """The transform of `points`, a power of two."""
    if points < 1 or points & (points - 1):
        raise ValueError(f"points={points}: powers of two are accepted")
    graph = Graph()
    outputs = _split(graph, [graph.input(number) for number in range(points)])
    return Transform(points, graph, tuple(outputs))


def unit_root(numerator: int, denominator: int) -> tuple[float, float]:
    """(cosine, sine) of 2 pi numerator / denominator, each correctly rounded or next to it: by the nearest octant."""
    numerator %= denominator
    eighth, rest = divmod(8 * numerator, denominator)
    # The angle is eighth / 8 of a turn and `rest`; odd octants are measured back from their end.
    angle = math.pi / 4 * ((denominator - rest if eighth % 2 else rest) / denominator)
    cosine, sine = math.cos(angle), math.sin(angle)
    if rest == 0 and eighth % 2:
        cosine = sine = math.sqrt(0.5)
    return (
        (cosine, sine), (sine, cosine), (-sine, cosine), (-cosine, sine),
        (-cosine, -sine), (-sine, -cosine), (sine, -cosine), (cosine, -sine),
    )[eighth]  # fmt: skip


def _split(graph: Graph, inputs: list[Complex]) -> list[Complex]:
    points = len(inputs)
    if points == 1:
        return inputs
    if points == 2:
        return [graph.plus(*inputs), graph.minus(*inputs)]
    even = _split(graph, inputs[::2])
    after = _split(graph, inputs[1::4])
    before = _split(graph, [inputs[-1], *inputs[3:-1:4]])  # inputs -1, 3, 7, ...
    outputs = [*even, *even]
    quarter = points // 4
    for k in range(quarter):
        cosine, sine = unit_root(-k, points)
        a, b = graph.times(after[k], cosine, sine), graph.times(before[k], cosine, -sine)
        both, turned = graph.plus(a, b), _minus_i(graph.minus(a, b))
        outputs[k], outputs[k + 2 * quarter] = graph.plus(even[k], both), graph.minus(even[k], both)
        k += quarter
        outputs[k], outputs[k + 2 * quarter] = graph.plus(even[k], turned), graph.minus(even[k], turned)
    return outputs


def _minus_i(a: Complex) -> Complex:
    """a * -i."""
    return Complex(a.im, -a.re)


def evaluate(what: Transform, inputs: list[complex]) -> list[complex]:
    """The transform of numbers, computed by the graph's operations: the codelet's meaning, for tests."""
    numbers: list[float] = []
    for node in what.graph.nodes:
        if node.kind == INPUT:
            number, part = node.operands
            numbers.append(inputs[number].imag if part else inputs[number].real)
            continue
        first = numbers[node.operands[0]]
        if node.kind == SCALE:
            numbers.append(node.first * first)
            continue
        second = numbers[node.operands[1]]
        numbers.append(
            first + second
            if node.kind == ADD
            else first - second
            if node.kind == SUB
            else node.first * first + node.second * second
        )

    def of(value: Value) -> float:
        return -numbers[value.node] if value.negative else numbers[value.node]

    return [complex(of(output.re), of(output.im)) for output in what.outputs]
