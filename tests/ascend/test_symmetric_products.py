"""Csyrk on the device target: staging, device arrays and scalars, workspace, and which objects are loaded."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ascend.conftest import Scenario

UPDATES = """
from tests.triangles import Matrix, assert_close, assert_same_bits, numbers, square, triangle, update

SIZES = ((9, 7), (40, 50))  # small, large
"""


def test_numpy_arrays_of_every_order_are_staged(scenario: Scenario) -> None:
    scenario(
        UPDATES
        + """
for n, k in SIZES:
    for trans, uplo, turned in (("N", "L", False), ("T", "U", False), ("C", "L", True), ("N", "U", True)):
        of = numbers(n, k)
        a = Matrix(of.a if trans == "N" else of.a.T, pad=2, by_columns=turned)
        for alpha, beta in ((1, 0), (2 - 1j, 0.5j), (0, 2), (0, 1)):
            c = Matrix(square(n, uplo), pad=1, by_columns=not turned)
            before = c.view.copy()
            assert jitblas.csyrk(a.view, c.view, alpha=alpha, beta=beta, trans=trans, uplo=uplo) is c.view
            assert_close(c.view, update(of, before, alpha, beta), uplo, f"{n} {trans} {uplo} {alpha} {beta}")
            c.assert_untouched(but=uplo)
    made = jitblas.csyrk(of.a)
    assert_close(made, update(of, made, 1, 0), "L")
    assert (made[~triangle(n, "L")] == 0).all()
"""
    )


def test_device_arrays_device_scalars_and_plans(scenario: Scenario) -> None:
    scenario(
        UPDATES
        + """
for n, k in SIZES:
    of = numbers(n, k)
    a, c = jitblas.array(of.a), jitblas.array(square(n, "U"))
    alpha, beta = (jitblas.array(np.array([value], "c8")) for value in (1.5j, -2))
    for first, second in ((alpha, beta), (alpha, -2), (1.5j, beta)):
        before = c.numpy()
        assert jitblas.csyrk(a, c, alpha=first, beta=second, uplo="U") is c
        assert_close(c.numpy(), update(of, before, 1.5j, -2), "U", gate=False)
        assert_same_bits(c.numpy()[~triangle(n, "U")], square(n, "U")[~triangle(n, "U")])
    fresh = jitblas.csyrk(a)
    assert isinstance(fresh, jitblas.DeviceArray) and fresh.target == "ascend950pr"
    assert_close(fresh.numpy(), update(of, before, 1, 0), "L")
    assert (fresh.numpy()[~triangle(n, "L")] == 0).all()
    for exact in (True, False):
        planned = jitblas.plan(f"csyrk:n={n},k={k},alpha=0.5-1j,beta=1", exact=exact)
        before = fresh.numpy()
        assert planned(a, fresh) is fresh
        assert_close(fresh.numpy(), update(of, before, 0.5 - 1j, 1), "L")
"""
    )


def test_the_aclblas_level_and_its_workspace(scenario: Scenario) -> None:
    scenario(
        UPDATES
        + """
from jitblas.hardware import PROFILES
from jitblas.operators.csyrk import workspace_bytes
handle = aclblas.aclblasCreate()
n, k = SIZES[1]
of, one, half = numbers(n, k), np.array([1], "c8"), (ctypes.c_float * 2)(0, 0.5)
a, c = jitblas.array(np.ascontiguousarray(of.a.T)), jitblas.array(np.ascontiguousarray(square(n, "L").T))
arguments = [handle, aclblas.LOWER, aclblas.OP_N, n, k, one, a, n, half, c, n]
needed = workspace_bytes(jitblas.Problem.parse(f"csyrk:LN,n={n},k={k},order=col"), PROFILES["ascend950pr"])
room = jitblas.zeros(needed, "u8")
assert aclblas.aclblasSetWorkspace(handle, room, needed - 1) is Status.SUCCESS
assert aclblas.aclblasCsyrk(*arguments) is Status.ALLOC_FAILED
assert f"{needed} bytes" in jitblas.last_error()
assert_same_bits(c.numpy().T, square(n, "L"))
assert aclblas.aclblasSetWorkspace(handle, room, needed) is Status.SUCCESS
assert aclblas.aclblasCsyrk(*arguments) is Status.SUCCESS, jitblas.last_error()
assert_close(c.numpy().T, update(of, square(n, "L"), 1, 0.5j), "L")
arguments[6] = np.ones((k, n), "c8")
assert aclblas.aclblasCsyrk(*arguments) is Status.INVALID_VALUE
assert "jitblas.csyrk, which stages" in jitblas.last_error()
aclblas.aclblasDestroy(handle)
"""
    )


@pytest.mark.parametrize(("sizes", "flags"), [("n=40,k=50", "0x930000"), ("n=9,k=7", "0x9a0000")])
def test_an_object_for_the_wrong_cores_is_refused(scenario: Scenario, tmp_path: Path, sizes: str, flags: str) -> None:
    settings = {"JITBLAS_CACHE_DIR": str(tmp_path / "empty")}
    scenario('jitblas.specialize("axpy_ex:n=5").key', **settings)  # finds a compiler that is right
    code = """
        try:
            jitblas.plan("csyrk:" + sys.argv[1])
        except jitblas.ArchMismatch as error:
            assert sys.argv[2] in str(error), error
        else:
            raise AssertionError("it was loaded")
    """
    scenario(code, sizes, flags, STANDIN_BISHENG_FLAGS=flags, **settings)
