"""Data for Fourier transforms, references of higher precision, and the bound that results are held to."""

from __future__ import annotations

from typing import Any

import numpy as np

from jitblas.codelets.expressions import ADD, INPUT, SCALE, SUB, Value
from jitblas.codelets.transform import Transform

Array = np.ndarray[Any, np.dtype[Any]]

KINDS = {"c64": np.dtype("complex64"), "c128": np.dtype("complex128")}

ROUNDING = {"complex64": 2.0**-24, "complex128": 2.0**-53}


def numbers(shape: int | tuple[int, ...], kind: Any, seed: int = 1) -> Array:
    """Normally distributed complex numbers."""
    random = np.random.default_rng(seed)
    return (random.standard_normal(shape) + 1j * random.standard_normal(shape)).astype(kind)


def exact(x: Array, direction: str = "forward") -> Array:
    """The transform along the last axis, unscaled, in a precision beyond the type of x."""
    if x.dtype == np.complex64:
        return np.fft.fft(x.astype(np.complex128)) if direction == "forward" else np.conj(np.fft.fft(np.conj(x)))
    points = x.shape[-1]
    values = (x if direction == "forward" else np.conj(x)).astype(np.clongdouble).reshape(-1, points, 1)
    while values.shape[1] > 1:
        left = values.shape[1] // 2
        angle = -np.pi / np.longdouble(left) * np.arange(left, dtype=np.longdouble)
        if left > 1:  # pi of float64 is not that of the angle's precision
            angle = -np.arctan2(np.longdouble(0), np.longdouble(-1)) / left * np.arange(left)
        turn = (np.cos(angle) + 1j * np.sin(angle))[:, None]
        first, second = values[:, :left], values[:, left:]
        values = np.stack([first + second, (first - second) * turn], axis=2).reshape(len(values), left, -1)
    result = values.reshape(x.shape)
    return result if direction == "forward" else np.conj(result)


def relative_error(got: Array, wanted: Array) -> float:
    """Of all elements together, in the L2 norm."""
    size = float(np.sqrt((np.abs(wanted) ** 2).sum()))
    distance = float(np.sqrt((np.abs(got.astype(wanted.dtype) - wanted) ** 2).sum()))
    return distance / size if size else distance


def bound(points: int, kind: Any) -> float:
    return float(ROUNDING[np.dtype(kind).name] * np.sqrt(max(np.log2(points), 1)))


def assert_close(got: Array, wanted: Array, note: str = "") -> None:
    """Within the bound for a transform along the last axis."""
    error, most = relative_error(got, wanted), bound(got.shape[-1], got.dtype)
    assert error <= most, f"{note}: relative error {error:.3g}, at most {most:.3g} is allowed"


def aligned(values: Array, offset: int = 0) -> Array:
    """A copy that begins `offset` bytes after a cache line's start."""
    memory = np.empty(values.nbytes + 128, np.uint8)
    start = -memory.__array_interface__["data"][0] % 64 + offset
    copy = memory[start : start + values.nbytes].view(values.dtype).reshape(values.shape)
    copy[...] = values
    return copy


def evaluate(what: Transform, inputs: list[complex]) -> list[complex]:
    """The transform of numbers by the operations of a codelet."""
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
