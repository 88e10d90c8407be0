"""Codelets: what they compute, with how many operations, and the Ascend C that is printed of them."""

from __future__ import annotations

import cmath
import math
import re
from fractions import Fraction

import numpy as np
import pytest

from jitblas.codelets.expressions import INPUT, Complex, Graph, Value
from jitblas.codelets.printer import interleaved_codelet, scalar_codelet, transposer, vector_codelet
from jitblas.codelets.roots import unit_roots
from jitblas.codelets.transform import transform
from tests.transforms import evaluate, numbers

SIZES = [1, 2, 4, 8, 16, 32, 64, 128]

SPLIT_RADIX = {2: (4, 0), 4: (16, 0), 8: (52, 4), 16: (144, 24), 32: (372, 84), 64: (912, 248)}
"""Points -> additions, multiplications, as the literature counts them (Yavne, 1968; four products a complex one)."""


@pytest.mark.parametrize("points", SIZES)
def test_a_codelet_is_the_transform(points: int) -> None:
    x = numbers(points, complex)
    got = np.array(evaluate(transform(points), list(x)))
    assert np.abs(got - np.fft.fft(x)).max() <= 8 * 2.0**-53 * np.abs(x).sum()


@pytest.mark.parametrize("points", SPLIT_RADIX)
def test_a_codelet_has_the_operations_of_the_split_radix(points: int) -> None:
    made, known = sum(transform(points).operations()), sum(SPLIT_RADIX[points])
    assert made <= 1.1 * known
    assert transform(points).operations() == SPLIT_RADIX[points]


@pytest.mark.parametrize("points", SIZES)
def test_nothing_is_computed_that_no_output_needs(points: int) -> None:
    what = transform(points)
    needed = {value.node for output in what.outputs for value in output}
    for number in reversed(range(len(what.graph.nodes))):
        node = what.graph.nodes[number]
        assert number in needed
        needed |= set() if node.kind == INPUT else set(node.operands)


@pytest.mark.parametrize("points", [0, -4, 3, 12])
def test_codelets_have_powers_of_two_points(points: int) -> None:
    with pytest.raises(ValueError, match="powers of two"):
        transform(points)


def test_equal_expressions_are_one_and_signs_cost_nothing() -> None:
    graph = Graph()
    a, b = graph.input(0)
    assert graph.add(a, b) == graph.add(b, a)
    difference = graph.sub(a, b)
    assert graph.sub(b, a) == -difference
    assert graph.add(a, -b) == difference
    assert graph.add(-a, -b) == -graph.add(a, b)
    assert graph.sub(-a, b) == -graph.add(a, b)
    assert graph.scale(-1.0, a) == -a
    assert graph.scale(-0.5, a) == -graph.scale(0.5, a)
    assert len(graph.nodes) == 5


HALF = 0.5**0.5
UNIT = [(1, 0), (0, 1), (-1, 0), (0, -1), (HALF, HALF), (HALF, -HALF), (-HALF, HALF), (-HALF, -HALF), (0.6, -0.8)]


@pytest.mark.parametrize(("cosine", "sine"), UNIT)
def test_a_product_with_a_number_on_the_unit_circle(cosine: float, sine: float) -> None:
    graph = Graph()
    product = graph.times(graph.input(0), cosine, sine)
    what = transform(1)._replace(graph=graph, outputs=(product,))
    assert abs(evaluate(what, [3 - 2j])[0] - (3 - 2j) * complex(cosine, sine)) < 1e-15
    exactly = cosine in (0, 1, -1)
    assert (sum(what.operations()) == 0) is exactly


def test_negative_inputs_of_a_rotation_keep_their_sign() -> None:
    graph = Graph()
    x = graph.input(0)
    turned = graph.times(Complex(-x.re, x.im), 0.6, 0.8)
    what = transform(1)._replace(graph=graph, outputs=(turned,))
    assert abs(evaluate(what, [3 - 2j])[0] - complex(-3, -2) * complex(0.6, 0.8)) < 1e-15
    assert isinstance(turned.re, Value)


@pytest.mark.parametrize("denominator", [1, 2, 4, 8, 64, 2**20])
def test_roots_of_unity_are_next_to_the_exact_ones(denominator: int) -> None:
    numerators = [0, 1, 3, denominator // 8, denominator // 3, -1, -denominator // 4, 5 * denominator + 1]
    for numerator, cosine, sine in zip(numerators, *unit_roots(np.array(numerators), denominator), strict=True):
        root = cmath.exp(2j * math.pi * float(Fraction(numerator, denominator) % 1))
        assert abs(cosine - root.real) <= 2.0**-52
        assert abs(sine - root.imag) <= 2.0**-52
        assert abs(math.hypot(cosine, sine) - 1) <= 2.0**-52
    assert [float(part[0]) for part in unit_roots(np.array([1]), 4)] == [0.0, 1.0]
    assert [float(part[0]) for part in unit_roots(np.array([1]), 8)] == [0.5**0.5, 0.5**0.5]


def test_inputs_are_loaded_and_outputs_stored_once_each() -> None:
    text = "\n".join(vector_codelet(16))
    for word in ("Load", "Store"):
        assert sorted(int(k) for k in re.findall(rf"{word}<(\d+)>", text)) == list(range(16))
    assert "144 additions, 24 multiplications" in text
    assert text.count("Reg::Axpy") == 8  # fused halves of the products with numbers of no symmetry
    assert not re.search(r"\b(for|if|while)\b", text), "straight-line code"


def test_outputs_are_stored_before_the_last_ones_are_computed() -> None:
    lines = vector_codelet(16)
    first_store = next(place for place, line in enumerate(lines) if "Store<" in line)
    assert any("Reg::Add" in line or "Reg::Sub" in line for line in lines[first_store:])


@pytest.mark.parametrize("points", [4, 8, 16])
def test_an_interleaved_codelet_ends_with_all_outputs_in_turn(points: int) -> None:
    """The printed network, followed by hand: rows of a register's lanes become the elements of all rows in turn."""
    lanes = 2 * points
    held = {f"row{k}": [(k, lane) for lane in range(lanes)] for k in range(points)}
    lines = transposer(points)
    for k in range(points):
        held[f"re{k}"] = held[f"row{k}"]
    stored: dict[int, list[tuple[int, int]]] = {}
    for line in lines:
        if found := re.search(r"Reg::Interleave\((\w+), (\w+), (\w+), (\w+)\)", line):
            low, high, a, b = found.groups()
            if a in held:
                both = [element for pair in zip(held[a], held[b], strict=True) for element in pair]
                held[low], held[high] = both[:lanes], both[lanes:]
        if found := re.search(r"StoreReal<(\d+)>\((\w+)", line):
            stored[int(found[1])] = held[found[2]]
    order = [element for place in range(points) for element in stored[place]]
    assert order == [(k, lane) for lane in range(lanes) for k in range(points)]
    text = "\n".join(interleaved_codelet(points))
    assert len(re.findall(r"Turn<\d+>", text)) == points


def test_scalar_code_reads_all_inputs_before_it_writes_an_output() -> None:
    text = "\n".join(scalar_codelet(8))
    assert text.rindex("Load<") < text.index("Store<")
