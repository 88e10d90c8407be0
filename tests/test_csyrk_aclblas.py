"""aclblasCsyrk: its signature, column-major meaning, the order of its checks, scalars, and the handle's algorithm."""

from __future__ import annotations

import ctypes
import gc
import inspect
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import jitblas
from jitblas import Status, aclblas
from jitblas.aclblas import LOWER, OP_C, OP_N, OP_T, UPPER
from jitblas.handle import Handle
from jitblas.hardware import HOST, PROFILES
from jitblas.operators.csyrk import workspace_bytes
from jitblas.problem import Problem
from tests.fences import Fences
from tests.kernels.build import Gate
from tests.triangles import (
    Array,
    Matrix,
    assert_close,
    assert_same_bits,
    device_scalar,
    numbers,
    square,
    triangle,
    update,
)

N, K = 4, 3


class Pair(ctypes.Structure):
    _fields_ = [("re", ctypes.c_float), ("im", ctypes.c_float)]


def scalar(value: complex) -> Array:
    return np.array([value], "c8")


@pytest.fixture
def handle() -> Iterator[Handle]:
    with Handle(HOST) as made:
        yield made


def assert_triangle(c: Array, inside: complex, outside: complex) -> None:
    """Of a column-major matrix: one number in the lower triangle, another in the rest."""
    n = round(c.size**0.5)
    assert_same_bits(c.reshape(n, n).T, np.where(triangle(n, "L"), inside, outside).astype("c8"))


def position(handle: Handle) -> tuple[int, int]:
    return handle.runtime.stream_position(handle.stream.address)


def call(handle: Any, **changes: Any) -> Status:
    """aclblasCsyrk with good arguments but for the changes: N x N of K columns of ones, so that elements become 3."""
    good: dict[str, Any] = {
        "uplo": LOWER, "trans": OP_N, "n": N, "k": K, "alpha": scalar(1), "A": np.ones(N * K, "c8"), "lda": N,
        "beta": scalar(0), "C": np.full(N * N, 9, "c8"), "ldc": N,
    }  # fmt: skip
    assert changes.keys() <= good.keys()
    return aclblas.aclblasCsyrk(handle, **good | changes)


def test_the_signature_is_that_of_the_c_function() -> None:
    assert list(inspect.signature(aclblas.aclblasCsyrk).parameters) == [
        "handle", "uplo", "trans", "n", "k", "alpha", "A", "lda", "beta", "C", "ldc",
    ]  # fmt: skip
    a, c = np.array([1j, 2], "c8"), np.full(4, 9, "c8")
    with Handle(HOST) as made:
        status = aclblas.aclblasCsyrk(made, LOWER, OP_N, 2, 1, scalar(1), a, 2, scalar(0), c, 2)
        assert status is Status.SUCCESS, jitblas.last_error()
    assert c.tolist() == [-1, 2j, 9, 4]


@pytest.mark.parametrize("uplo", [UPPER, LOWER])
@pytest.mark.parametrize("trans", [OP_N, OP_T, OP_C])
@pytest.mark.parametrize("pad", [0, 3])
def test_column_major_updates_of_one_triangle(handle: Handle, uplo: int, trans: int, pad: int) -> None:
    letter = "U" if uplo == UPPER else "L"
    for n, k, alpha, beta in ((1, 1, 1, 0), (9, 7, 2 - 1j, 1j), (50, 40, 1, 0), (97, 33, -1, 0.5), (33, 20, 2j, 1)):
        of = numbers(n, k)
        a = Matrix(of.a if trans == OP_N else of.a.T, pad=pad, by_columns=True)
        c = Matrix(square(n, letter), pad=pad, by_columns=True)
        expected = update(of, c.view.copy(), alpha, beta)
        status = call(
            handle, uplo=uplo, trans=trans, n=n, k=k, alpha=scalar(alpha), A=a.lowest, lda=a.ld, beta=scalar(beta),
            C=c.lowest, ldc=c.ld,
        )  # fmt: skip
        assert status is Status.SUCCESS, jitblas.last_error()
        handle.synchronize()
        assert_close(c.view, expected, letter, f"{letter} {trans} {n} x {k}")
        a.assert_untouched()
        c.assert_untouched(but=letter)


# ---- The order of checks: each row breaks this rule and all later ones ----------------------------------------------

NULL: dict[str, Any] = {"A": None, "C": None}
SCALARS: dict[str, Any] = {"alpha": None, "beta": None} | NULL
DIMENSIONS: dict[str, Any] = {"lda": 3, "ldc": 3} | SCALARS

ROWS: list[tuple[str, dict[str, Any], str]] = [
    ("uplo", {"uplo": 0, "trans": 5, "n": -1, "k": -1} | SCALARS, "uplo is 0; accepted are UPPER (121) and LOWER"),
    ("trans", {"trans": 110, "n": -1, "k": -1} | SCALARS, "trans is 110; accepted are OP_N (111), OP_T (112)"),
    ("n below 0", {"n": -1, "k": -1, "lda": 0, "ldc": 0} | SCALARS, "n is -1; accepted are 0 to 2147483647"),
    ("n beyond int", {"n": 2**31, "k": -1} | SCALARS, "n is 2147483648"),
    ("k below 0", {"k": -1} | DIMENSIONS, "k is -1; accepted are 0 to 2147483647"),
    ("k below 0 of nothing", {"n": 0, "k": -1, "lda": 0} | SCALARS, "k is -1"),
    ("lda with N", DIMENSIONS, "lda is 3; at least 4 is needed"),
    ("lda with T", {"trans": OP_T} | DIMENSIONS | {"lda": 2}, "lda is 2; at least 3 is needed"),
    ("lda with C", {"trans": OP_C} | DIMENSIONS | {"lda": 2}, "lda is 2; at least 3 is needed"),
    ("lda of nothing", {"n": 0, "k": 0, "lda": 0, "ldc": 0} | SCALARS, "lda is 0; at least 1 is needed"),
    ("lda of an empty sum", {"trans": OP_T, "k": 0, "lda": 0} | SCALARS, "lda is 0; at least 1 is needed"),
    ("ldc", DIMENSIONS | {"lda": 4}, "ldc is 3; at least 4 is needed"),
    ("ldc of nothing", {"n": 0, "ldc": 0} | SCALARS, "ldc is 0; at least 1 is needed"),
    ("ldc below 0", {"ldc": -4} | SCALARS, "ldc is -4; at least 4 is needed"),
    ("alpha and beta null", SCALARS, "alpha is null"),
    ("alpha null of nothing", {"n": 0} | SCALARS, "alpha is null"),
    ("beta null", NULL | {"beta": ctypes.c_void_p()}, "beta is null"),
    ("beta null where nothing is to do", NULL | {"alpha": scalar(0), "beta": 0}, "beta is null"),
    ("A and C null", NULL, "is null"),
    ("A null", {"A": None}, "A is null"),
    ("C null", {"C": 0}, "C is null"),
    ("C null and alpha 0", NULL | {"alpha": scalar(0)}, "C is null"),
    ("C null and k 0", NULL | {"k": 0}, "C is null"),
    ("A null and alpha on the device", {"A": None, "alpha": device_scalar(0), "beta": scalar(1)}, "A is null"),
    ("C null and beta on the device", {"C": None, "k": 0, "beta": device_scalar(1)}, "C is null"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "said"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_the_first_broken_rule_wins_and_nothing_is_written(handle: Handle, changes: dict[str, Any], said: str) -> None:
    c = np.full(N * N, 9, "c8")
    assert call(handle, **{"C": c} | changes) is Status.INVALID_VALUE
    assert jitblas.last_error().startswith("aclblasCsyrk: INVALID_VALUE: ") and said in jitblas.last_error()
    assert position(handle) == (0, 0) and handle.workspace.size == 0
    assert (c == 9).all()


@pytest.mark.parametrize("changes", [row[1] for row in ROWS], ids=[row[0] for row in ROWS])
def test_a_null_or_destroyed_handle_comes_before_everything(changes: dict[str, Any]) -> None:
    assert call(None, **changes) is Status.HANDLE_IS_NULLPTR
    gone = Handle(HOST)
    gone.destroy()
    assert call(gone, **changes) is Status.NOT_INITIALIZED


QUICK: dict[str, dict[str, Any]] = {
    "n 0": {"n": 0, "beta": scalar(2)} | NULL,
    "n 0 and arrays too short": {"n": 0, "k": 100, "lda": 1, "ldc": 1, "A": np.ones(1, "c8"), "C": np.ones(1)},
    "n 0 and a scalar of another type": {"n": 0, "alpha": np.ones(1), "beta": np.ones(1)} | NULL,
    "alpha 0 and beta 1": {"alpha": scalar(0), "beta": scalar(1)} | NULL,
    "k 0 and beta 1": {"k": 0, "beta": scalar(1)} | NULL,
}


@pytest.mark.parametrize("case", list(QUICK))
def test_quick_returns_look_at_nothing(handle: Handle, case: str) -> None:
    assert call(handle, **QUICK[case]) is Status.SUCCESS, jitblas.last_error()
    assert position(handle) == (0, 0)


@pytest.mark.parametrize("n", [4, 50])
@pytest.mark.parametrize("changes", [{"alpha": 0}, {"k": 0}], ids=["alpha 0", "k 0"])
def test_a_may_be_null_where_it_is_not_read(handle: Handle, n: int, changes: dict[str, int]) -> None:
    """Or be where nothing can be read, or be too short."""
    fence = Fences(1, "c8", at_end=True).array.ctypes.data + 8
    for a in (None, 0, fence, np.ones(1, "c8"), np.ones(3)):
        for beta in (0, 0.5j):
            c = Matrix(square(n, "U"), by_columns=True)
            before = c.view.copy()
            if beta == 0:
                c.view[triangle(n, "U")] = np.nan
            status = call(
                handle, uplo=UPPER, n=n, k=changes.get("k", 40), alpha=scalar(changes.get("alpha", 3)), A=a, lda=n,
                beta=scalar(beta), C=c.lowest, ldc=n,
            )  # fmt: skip
            assert status is Status.SUCCESS, jitblas.last_error()
            handle.synchronize()
            assert_close(c.view, update(numbers(n, 1), before, 0, beta), "U")
            c.assert_untouched(but="U")


@pytest.mark.parametrize("n", [4, 50])
def test_a_device_alpha_of_zero_reads_no_a(handle: Handle, n: int) -> None:
    """What the call cannot know: A must be there, but its numbers do not count."""
    a, c = np.full(n * 40, np.nan, "c8"), np.full(n * n, 4, "c8")
    status = call(
        handle, n=n, k=40, alpha=device_scalar(0), A=a, lda=n, beta=scalar(0.5), C=c, ldc=n
    )  # fmt: skip
    assert status is Status.SUCCESS
    handle.synchronize()
    assert_triangle(c, 2, 4)


READ_ONLY = np.full(N * N, 9, "c8")
READ_ONLY.flags.writeable = False

OPERANDS: dict[str, tuple[dict[str, Any], str]] = {
    "short A": ({"A": np.ones(11, "c8")}, "A has 88 bytes, 3 columns of 4 elements, 4 apart, need 96"),
    "short A with T": ({"trans": OP_T, "lda": 5, "A": np.ones(17, "c8")}, "4 columns of 3 elements, 5 apart, need 144"),
    "short C": ({"C": np.full(15, 9, "c8")}, "C has 120 bytes, 4 columns of 4 elements, 4 apart, need 128"),
    "spread C": ({"ldc": 6}, "C has 128 bytes, 4 columns of 4 elements, 6 apart, need 176"),
    "huge lda": ({"lda": 2**31 - 1}, "A has 96 bytes"),
    "ctypes A": ({"A": (ctypes.c_float * 23)()}, "A has 92 bytes"),
    "complex128 A": ({"A": np.ones(12, "c16")}, "A is an array of complex128"),
    "float C": ({"C": np.full(32, 9, "f4")}, "C is an array of float32"),
    "read-only C": ({"C": READ_ONLY}, "C is read-only"),
    "short device A": ({"A": jitblas.zeros(11, "c64", target=HOST)}, "A has 88 bytes"),
    "real device C": ({"C": jitblas.zeros(32, "fp32", target=HOST)}, "C is an array of fp32"),
    "no address": ({"A": -1}, "A is -1, which is no address"),
    "real alpha": ({"alpha": np.ones(2, "f4")}, "alpha is an array of 2 float32; one complex64 is needed"),
    "double beta": ({"beta": np.ones(1, "c16")}, "beta is an array of 1 complex128; one complex64 is needed"),
    "empty alpha": ({"alpha": np.ones(0, "c8")}, "alpha is an array of 0 complex64"),
    "one float": ({"alpha": ctypes.c_float(1)}, "alpha is a c_float; an array or a structure of two c_float is needed"),
    "one float in an array": ({"beta": (ctypes.c_float * 1)()}, "a structure of two c_float is needed"),
    "doubles": ({"beta": (ctypes.c_double * 2)()}, "a structure of two c_float is needed"),
    "real device alpha": ({"alpha": jitblas.zeros(2, "fp32", target=HOST)}, "one c64 element is needed"),
    "empty device beta": ({"beta": jitblas.zeros(0, "c64", target=HOST)}, "is needed"),
}


@pytest.mark.parametrize("case", list(OPERANDS))
def test_arrays_too_short_or_of_another_type_are_invalid(handle: Handle, case: str) -> None:
    changes, said = OPERANDS[case]
    c = np.full(N * N, 9, "c8")
    assert call(handle, **{"C": c} | changes) is not Status.SUCCESS
    assert said in jitblas.last_error(), jitblas.last_error()
    assert jitblas.last_error().startswith(("aclblasCsyrk: INVALID_VALUE", "aclblasCsyrk: NOT_SUPPORTED"))
    assert position(handle) == (0, 0)
    assert (c == 9).all() and (READ_ONLY == 9).all()


@pytest.mark.parametrize(
    "changes",
    [
        {"uplo": "L"}, {"uplo": None}, {"trans": "N"}, {"n": 4.0}, {"k": None}, {"lda": "4"}, {"ldc": 4.5},
        {"alpha": 1.0}, {"alpha": 1j}, {"beta": np.complex64(1)}, {"A": [1j] * 12}, {"C": "text"}, {"C": True},
    ],
    ids=repr,
)  # fmt: skip
def test_what_is_neither_a_pointer_nor_a_number_is_a_type_error(handle: Handle, changes: dict[str, Any]) -> None:
    c = np.full(N * N, 9, "c8")
    with pytest.raises(TypeError):
        call(handle, **{"C": c} | changes)
    assert position(handle) == (0, 0) and (c == 9).all()


def test_a_workspace_that_is_too_small_is_the_last_thing_found(handle: Handle) -> None:
    n, k = 50, 40
    needed = workspace_bytes(Problem.parse(f"csyrk:LN,n={n},k={k},order=col"), PROFILES[HOST])
    of, c = numbers(n, k), Matrix(square(n, "L"), by_columns=True)
    memory, before = np.zeros(needed, np.uint8), c.view.copy()
    arguments = {"n": n, "k": k, "A": np.asfortranarray(of.a).T, "lda": n, "beta": scalar(1), "C": c.lowest, "ldc": n}
    assert aclblas.aclblasSetWorkspace(handle, memory, needed - 1) is Status.SUCCESS
    assert call(handle, **arguments | {"A": None}) is Status.INVALID_VALUE
    assert call(handle, **arguments) is Status.ALLOC_FAILED
    assert f"{needed} bytes of workspace are needed, the workspace given has {needed - 1}" in jitblas.last_error()
    assert position(handle) == (0, 0) and not memory.any()
    c.assert_untouched()
    assert call(handle) is Status.SUCCESS  # a small problem needs none
    assert call(handle, **arguments | {"alpha": scalar(0)}) is Status.SUCCESS  # nor does one that reads no A
    assert aclblas.aclblasSetWorkspace(handle, memory, needed) is Status.SUCCESS
    assert call(handle, **arguments) is Status.SUCCESS, jitblas.last_error()
    handle.synchronize()
    assert_close(c.view, update(of, before, 1, 1), "L")


# ---- Pointers and scalars -------------------------------------------------------------------------------------------

POINTERS: dict[str, Any] = {
    "address": lambda array: array.ctypes.data,
    "NumPy integer": lambda array: np.uint64(array.ctypes.data),
    "64-bit words": lambda array: array.view(np.uint64),
    "POINTER(c_float)": lambda array: array.ctypes.data_as(ctypes.POINTER(ctypes.c_float)),
    "c_void_p": lambda array: ctypes.c_void_p(array.ctypes.data),
    "c_float array": lambda array: (ctypes.c_float * (2 * array.size)).from_buffer(array),
    "structures": lambda array: (Pair * array.size).from_buffer(array),
    "byref": lambda array: ctypes.byref((ctypes.c_float * (2 * array.size)).from_buffer(array)),
}


@pytest.mark.parametrize("kind", list(POINTERS))
def test_every_kind_of_pointer_leads_to_the_same_memory(handle: Handle, kind: str) -> None:
    pointer = POINTERS[kind]
    a, memory = np.full(N * K, 1 + 1j, "c8"), np.full(N * N + 2, 9, "c8")
    assert call(handle, A=pointer(a), C=pointer(memory[1:-1])) is Status.SUCCESS, jitblas.last_error()
    handle.synchronize()
    assert_triangle(memory[1:-1], 6j, 9)
    assert memory[0] == memory[-1] == 9


SCALAR_KINDS: dict[str, Any] = {
    "NumPy array": scalar,
    "0-d array": lambda value: np.array(value, "c8"),
    "array of three": lambda value: np.array([value, 9, 9], "c8"),
    "ctypes array": lambda value: (ctypes.c_float * 2)(complex(value).real, complex(value).imag),
    "ctypes structure": lambda value: Pair(complex(value).real, complex(value).imag),
    "POINTER": lambda value: ctypes.pointer(Pair(complex(value).real, complex(value).imag)),
    "byref": lambda value: ctypes.byref(Pair(complex(value).real, complex(value).imag)),
    "device array": device_scalar,
    "address in device memory": lambda value: KEPT.setdefault(value, device_scalar(value)).address,
}
KEPT: dict[complex, Any] = {}


@pytest.mark.parametrize("kind", list(SCALAR_KINDS))
def test_scalars_of_every_kind_and_class_give_the_same_bits(handle: Handle, kind: str) -> None:
    make = SCALAR_KINDS[kind]
    for n, k in ((9, 7), (50, 40)):
        of = numbers(n, k)
        stored = np.ascontiguousarray(of.a.T)
        for alpha, beta in ((1, 0), (0, 0), (0, 2), (-1.5j, 1), (2 + 0j, 0.5 - 1j), (0, 1)):
            results = []
            for given in (make, scalar):
                c = Matrix(square(n, "L"), by_columns=True)
                before = c.view.copy()
                if beta == 0:
                    c.view[triangle(n, "L")] = np.nan
                status = call(
                    handle, n=n, k=k, A=np.full_like(stored, np.nan) if alpha == 0 else stored, lda=n,
                    alpha=given(alpha), beta=given(beta), C=c.lowest, ldc=n,
                )  # fmt: skip
                assert status is Status.SUCCESS, jitblas.last_error()
                handle.synchronize()
                assert_close(c.view, update(of, before, alpha, beta), "L", f"{kind} {alpha} {beta}")
                c.assert_untouched(but="L")
                results.append(c.view.copy())
            assert_same_bits(*results, note=f"{kind} {alpha} {beta}")


def test_host_scalars_are_read_before_the_call_returns_and_device_scalars_in_stream_order(handle: Handle) -> None:
    for n in (4, 50):
        a, first, second = np.ones(n * 40, "c8"), np.zeros(n * n, "c8"), np.zeros(n * n, "c8")
        on_host, on_device = scalar(1), device_scalar(1)
        with Gate(handle.stream):
            submitted = position(handle)[0]
            arguments: dict[str, Any] = {"n": n, "k": 40, "A": a, "lda": n, "ldc": n}
            assert call(handle, alpha=on_host, C=first, **arguments) is Status.SUCCESS
            assert call(handle, alpha=on_device, C=second, **arguments) is Status.SUCCESS
            assert position(handle)[0] > submitted and not first.any() and not second.any()
            on_host[0] = 100
            on_device.view[0] = 2
        handle.synchronize()
        assert first[0] == 40 and second[0] == 80


def test_arrays_live_until_the_work_on_them_is_done(handle: Handle) -> None:
    operands: dict[str, Any] = {"A": np.ones(50 * 40, "c8"), "C": np.zeros(50 * 50, "c8")}
    alive = [weakref.ref(array) for array in operands.values()]
    with Gate(handle.stream):
        assert call(handle, n=50, k=40, lda=50, ldc=50, **operands) is Status.SUCCESS
        operands.clear()
        gc.collect()
        assert all(reference() is not None for reference in alive)
    handle.synchronize()
    gc.collect()
    assert all(reference() is None for reference in alive)


def test_calls_run_in_the_order_they_were_made_and_share_the_workspace(handle: Handle) -> None:
    n, k = 50, 40
    a, c = np.full(n * k, 1, "c8"), np.zeros(n * n, "c8")
    for times in range(4):
        status = call(handle, n=n, k=k, A=a, lda=n, beta=scalar(2), C=c, ldc=n)
        assert status is Status.SUCCESS
        wanted = k * (2 ** (times + 1) - 1)
    handle.synchronize()
    assert_triangle(c, wanted, 0)


# ---- The handle's algorithm -----------------------------------------------------------------------------------------


def test_the_handle_s_algorithm_selects_the_kernel_of_both_levels(handle: Handle) -> None:
    """Parts of very different size show which: with three products the imaginary part loses the small one."""
    n, k = 50, 40
    a = np.asfortranarray(np.full((n, k), 1 + 1e-6j, "c8") * (1 + np.arange(k) / 7)).astype("c8", order="F")
    results = {}
    for algorithm in ("auto", "4m", "3m"):
        handle.csyrk_algorithm = algorithm
        assert handle.csyrk_algorithm == algorithm
        c = np.zeros((n, n), "c8", order="F")
        assert call(handle, n=n, k=k, A=a, lda=n, C=c, ldc=n) is Status.SUCCESS, jitblas.last_error()
        handle.synchronize()
        results[algorithm] = c
        chosen = jitblas.csyrk(a, np.zeros((n, n), "c8", order="F"), algorithm=algorithm, handle=Handle(HOST))
        assert_same_bits(chosen, c)
        assert_same_bits(jitblas.csyrk(a, np.zeros((n, n), "c8", order="F"), handle=handle), c)
    assert any((results["auto"] == results[name]).all() for name in ("4m", "3m"))
    exact = (a.astype("c16") @ a.astype("c16").T).imag
    relative = {name: np.abs(c.imag / exact - 1)[triangle(n, "L")].max() for name, c in results.items()}
    assert relative["4m"] < 1e-5 < relative["3m"]
    assert len({key[-2] for key in handle.prepared if key[0] == "csyrk"}) >= 2


def test_an_algorithm_of_a_call_comes_before_the_handle_s(handle: Handle) -> None:
    handle.csyrk_algorithm = "4m"
    jitblas.csyrk(numbers(50, 40).a, algorithm="3m", handle=handle)
    assert [key[-2] for key in handle.prepared] == ["3m"]


@pytest.mark.parametrize("wrong", ["5m", "", "AUTO", None, 4])
def test_an_algorithm_that_there_is_not_is_refused_and_changes_nothing(handle: Handle, wrong: Any) -> None:
    handle.csyrk_algorithm = "4m"
    with pytest.raises(ValueError, match="accepted are 'auto', '4m' and '3m'"):
        handle.csyrk_algorithm = wrong
    assert handle.csyrk_algorithm == "4m"
