"""Discrete Fourier transforms of 2^n points as expressions, by the conjugate-pair split-radix recursion.

A transform of n points is one of n / 2 (even inputs) and two of n / 4 (inputs 1 after and 1 before a multiple of four),
whose twiddles are conjugates of each other (Kamar and Elcherif, 1989). It has the fewest operations of the simple
recursions: 4 n log2 n - 6 n + 8.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from jitblas.codelets.expressions import ADD, ROTATE, SCALE, SUB, Complex, Graph
from jitblas.codelets.roots import unit_roots


class Transform(NamedTuple):
    """X_k = sum over j of x_j exp(-2 pi i j k / n), as a graph whose outputs are X_0, X_1, ..."""

    points: int
    graph: Graph
    outputs: tuple[Complex, ...]

    def operations(self) -> tuple[int, int]:
        """(additions and subtractions, multiplications) of real numbers, a fused pair being one of each."""
        kinds = [node.kind for node in self.graph.nodes]
        fused = kinds.count(ROTATE)
        return kinds.count(ADD) + kinds.count(SUB) + fused, kinds.count(SCALE) + 2 * fused


@functools.cache
def transform(points: int) -> Transform:
    """The transform of `points`, a power of two."""
    if points < 1 or points & (points - 1):
        raise ValueError(f"points={points}: powers of two are accepted")
    graph = Graph()
    outputs = _split(graph, [graph.input(number) for number in range(points)])
    return Transform(points, graph, tuple(outputs))


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
        cosine, sine = (float(part[0]) for part in unit_roots(np.array([-k]), points))
        a, b = graph.times(after[k], cosine, sine), graph.times(before[k], cosine, -sine)
        both, turned = graph.plus(a, b), _minus_i(graph.minus(a, b))
        outputs[k], outputs[k + 2 * quarter] = graph.plus(even[k], both), graph.minus(even[k], both)
        k += quarter
        outputs[k], outputs[k + 2 * quarter] = graph.plus(even[k], turned), graph.minus(even[k], turned)
    return outputs


def _minus_i(a: Complex) -> Complex:
    """a * -i."""
    return Complex(a.im, -a.re)
