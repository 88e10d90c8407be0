"""Real expressions as a graph: equal ones are one node, constants are folded and signs move to where they cost nothing.

A :class:`Value` is a node with a sign. Sums and products of values are made by :class:`Graph`; a node once made is
found again, with its sign turned round if need be, so that what a transform uses twice is computed once.
"""

from __future__ import annotations

from typing import NamedTuple

INPUT, ADD, SUB, SCALE, ROTATE = "input", "add", "sub", "scale", "rotate"


class Node(NamedTuple):
    """One operation on nodes, by number.

    `input`: the number of an input and 0 (real part) or 1. `add`, `sub`: of two operands. `scale`: `first` times an
    operand. `rotate`: `first` times one operand plus `second` times the other, the second product fused with the sum.
    """

    kind: str
    operands: tuple[int, ...]
    first: float = 0.0
    second: float = 0.0


class Value(NamedTuple):
    """A node or, if `negative`, what is left when it is subtracted from zero."""

    node: int
    negative: bool = False

    def __neg__(self) -> Value:
        return Value(self.node, not self.negative)


class Complex(NamedTuple):
    re: Value
    im: Value


class Graph:
    """Nodes in an order in which they can be computed."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self._numbers: dict[Node, int] = {}

    def _node(self, node: Node) -> Value:
        number = self._numbers.get(node)
        if number is None:
            number = self._numbers[node] = len(self.nodes)
            self.nodes.append(node)
        return Value(number)

    def input(self, number: int) -> Complex:
        return Complex(self._node(Node(INPUT, (number, 0))), self._node(Node(INPUT, (number, 1))))

    def add(self, a: Value, b: Value) -> Value:
        if a.negative and b.negative:
            return -self.add(-a, -b)
        if a.negative:
            return self.sub(b, -a)
        if b.negative:
            return self.sub(a, -b)
        return self._node(Node(ADD, (min(a.node, b.node), max(a.node, b.node))))

    def sub(self, a: Value, b: Value) -> Value:
        if a.negative or b.negative:
            return -self.sub(-a, -b) if a.negative and b.negative else self.add(a, -b)
        if Node(SUB, (b.node, a.node)) in self._numbers:
            return -self._node(Node(SUB, (b.node, a.node)))
        return self._node(Node(SUB, (a.node, b.node)))

    def scale(self, factor: float, a: Value) -> Value:
        if factor < 0:
            return -self.scale(-factor, a)
        if factor == 1:
            return a
        return Value(self._node(Node(SCALE, (a.node,), factor)).node, a.negative)

    def _rotate(self, first: float, a: Value, second: float, b: Value) -> Value:
        """first * a + second * b."""
        first, second = -first if a.negative else first, -second if b.negative else second
        if first < 0:
            return -self._node(Node(ROTATE, (a.node, b.node), -first, -second))
        return self._node(Node(ROTATE, (a.node, b.node), first, second))

    def plus(self, a: Complex, b: Complex) -> Complex:
        return Complex(self.add(a.re, b.re), self.add(a.im, b.im))

    def minus(self, a: Complex, b: Complex) -> Complex:
        return Complex(self.sub(a.re, b.re), self.sub(a.im, b.im))

    def times(self, a: Complex, cosine: float, sine: float) -> Complex:
        """a * (cosine + i sine), a number on the unit circle."""
        if sine == 0:
            return Complex(self.scale(cosine, a.re), self.scale(cosine, a.im))
        if cosine == 0:
            return Complex(self.scale(-sine, a.im), self.scale(sine, a.re))
        if abs(cosine) == abs(sine):
            # h (1 + i) a and its like: two additions and two products.
            half = abs(cosine)
            s, d = self.add(a.re, a.im), self.sub(a.re, a.im)
            if cosine > 0:
                re, im = (d, s) if sine > 0 else (s, -d)
            else:
                re, im = (-s, d) if sine > 0 else (-d, -s)
            return Complex(self.scale(half, re), self.scale(half, im))
        return Complex(self._rotate(cosine, a.re, -sine, a.im), self._rotate(cosine, a.im, sine, a.re))
