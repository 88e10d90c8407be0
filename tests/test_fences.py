"""No operator touches a byte outside first .. last element of an operand: their neighbours cannot be touched here.

Each test is one process, which a touch would kill.
"""

from __future__ import annotations

import pytest

from tests.conftest import Python

PRODUCTS = """
import itertools, sys
import numpy as np
import jitblas
from tests.fences import Fences
from tests.matrices import assert_close, product

trans, at_end = sys.argv[1], sys.argv[2] == "end"
shapes = [(1, 1, 1), (5, 3, 7), (16, 11, 16), (70, 20, 9), (33, 31, 33), (20, 49, 40), (130, 65, 129), (64, 96, 1)]

def matrices(rows, columns, pad, seed):
    ld = columns + pad
    array = Fences((2 * rows - 1) * ld + columns, "f4", at_end=at_end)
    view = np.lib.stride_tricks.as_strided(array.array, (2, rows, columns), (4 * rows * ld, 4 * ld, 4))
    view[...] = np.random.default_rng(seed).standard_normal(view.shape)
    return array, view

for (m, n, k), pad, (alpha, beta) in itertools.product(shapes, (0, 1), ((1.0, 0.0), (2.0, -1.0))):
    kept_a, a = matrices(*((m, k) if trans[0] == "N" else (k, m)), pad, 1)
    kept_b, b = matrices(*((k, n) if trans[1] == "N" else (n, k)), pad, 2)
    kept_c, c = matrices(m, n, pad, 3)
    left = a.transpose(0, 2, 1) if trans[0] == "T" else a
    right = b.transpose(0, 2, 1) if trans[1] == "T" else b
    expected = product(left, right, c, alpha, beta)
    jitblas.sgemm_strided_batched(a, b, c, alpha=alpha, beta=beta, transa=trans[0], transb=trans[1])
    assert_close(c, expected, f"{trans} {m} x {n} x {k} {pad} {alpha}")
"""

VECTORS = """
import itertools, sys
import numpy as np
import jitblas
from tests.fences import Fences

at_end = sys.argv[1] == "end"
for n, dtype, step in itertools.product((1, 7, 64, 129, 1000, 40001), ("f4", "f2"), (1, 2, -3)):
    kept = [Fences((n - 1) * abs(step) + 1, dtype, at_end=at_end) for _ in "xy"]
    x, y = (fences.array[::step] for fences in kept)
    x[...], y[...] = 1, np.arange(n) % 512
    jitblas.axpy_ex(2.0, x, y)
    assert (y == np.arange(n) % 512 + 2).all(), (n, dtype, step)
"""

DOTS = """
import itertools, sys
import numpy as np
import jitblas
from jitblas.hardware import HOST, PROFILES
from jitblas.operators.cdotc import workspace_bytes
from tests.dots import assert_close, complex_numbers
from tests.fences import Fences

at_end = sys.argv[1] == "end"
for n, (incx, incy) in itertools.product((1, 7, 32, 64, 96, 129, 1000, 131_072, 131_137), ((1, 1), (-1, -1), (2, -3))):
    kept = [Fences((n - 1) * abs(inc) + 1, "c8", at_end=at_end) for inc in (incx, incy)]
    x, y = (fences.array[::inc] for fences, inc in zip(kept, (incx, incy)))
    x[...], y[...] = complex_numbers(n, 1), complex_numbers(n, 2)
    size = workspace_bytes(jitblas.Problem.parse(f"cdotc:n={n},incx={incx if n > 1 else 1}"), PROFILES[HOST])
    out, workspace = Fences(1, "c8", at_end=at_end), Fences(max(size, 1), "u1", at_end=at_end)
    with jitblas.Handle("host", workspace=(workspace.array.ctypes.data, size)) as handle:
        jitblas.cdotc(x, y, handle=handle, out=out.array)
    assert_close(out.array[0], x, y, f"{n} {incx} {incy}")
"""

UPDATES = """
import itertools, sys
import numpy as np
import jitblas
from jitblas.hardware import HOST, PROFILES
from jitblas.operators.csyrk import workspace_bytes
from tests.fences import Fences
from tests.triangles import assert_close, assert_same_bits, numbers, square, triangle, update

trans, at_end = sys.argv[1], sys.argv[2] == "end"

def matrix(values, pad):
    rows, columns = values.shape
    kept = Fences((rows - 1) * (columns + pad) + columns, "c8", at_end=at_end)
    view = np.lib.stride_tricks.as_strided(kept.array, (rows, columns), (8 * (columns + pad), 8))
    view[...] = values
    return kept, view

shapes = [(1, 1), (5, 7), (16, 11), (17, 17), (33, 31), (20, 49), (99, 32), (97, 129), (150, 40), (64, 1), (3, 100)]
for (n, k), pad, (alpha, beta), uplo in itertools.product(shapes, (0, 1), ((1, 0), (2j, 1)), "LU"):
    of = numbers(n, k)
    kept_a, a = matrix(of.a if trans == "N" else of.a.T, pad)
    kept_c, c = matrix(square(n, uplo), pad)
    before = c.copy()
    algorithm = ("3m", "4m")[pad]
    line = f"csyrk:L{trans},n={n},k={k},algorithm={algorithm}"
    size = workspace_bytes(jitblas.Problem.parse(line), PROFILES[HOST])
    workspace = Fences(max(size, 1), "u1", at_end=at_end and size % 64 == 0)
    with jitblas.Handle("host", workspace=(workspace.array.ctypes.data, size)) as handle:
        jitblas.csyrk(
            a, c, alpha=alpha, beta=beta, trans=trans, uplo=uplo, algorithm=algorithm, handle=handle
        )
    assert_close(c, update(of, before, alpha, beta), uplo, f"{trans} {n} x {k} {pad} {alpha}")
    assert_same_bits(c[~triangle(n, uplo)], before[~triangle(n, uplo)])
"""

places = pytest.mark.parametrize("place", ["start", "end"])


@places
@pytest.mark.parametrize("trans", ["NN", "NT", "TN", "TT"])
def test_products(python: Python, trans: str, place: str) -> None:
    python(PRODUCTS, trans, place)


@places
def test_vectors(python: Python, place: str) -> None:
    python(VECTORS, place)


@places
def test_dots_with_their_result_and_workspace(python: Python, place: str) -> None:
    python(DOTS, place)


@places
@pytest.mark.parametrize("trans", ["N", "T"])
def test_updates_of_a_triangle_with_their_workspace(python: Python, trans: str, place: str) -> None:
    python(UPDATES, trans, place)


@pytest.mark.parametrize(("place", "element"), [("start", -1), ("end", 8)])
def test_a_fence_kills(python: Python, place: str, element: int) -> None:
    code = """
import ctypes, sys
from tests.fences import Fences
fences = Fences(8, "f4", at_end=sys.argv[1] == "end")
print(ctypes.c_float.from_address(fences.array.ctypes.data + 4 * int(sys.argv[2])).value)
"""
    assert python(code, place, str(element), check=False).returncode < 0
    python(code, place, "0")
