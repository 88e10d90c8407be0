"""SgemmStridedBatched on the device target: cube and mixed kernels, staging, and which objects are loaded."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ascend.conftest import Scenario

PRODUCTS = """
from tests.matrices import Batch, assert_close, product

SIZES = ((3, 4, 5), (40, 48, 30), (33, 17, 20))  # narrow, direct, general
"""


def test_numpy_arrays_of_every_order_are_staged(scenario: Scenario) -> None:
    scenario(
        PRODUCTS
        + """
for m, n, k in SIZES:
    for turned in (False, True):
        a = Batch(3, m, k, 1, pad=2, by_columns=turned)
        b = Batch(3, k, n, 2, gap=3, by_columns=not turned)
        for alpha, beta in ((1.0, 0.0), (2.0, -0.5)):
            c = Batch(3, m, n, 3, pad=1, gap=2, by_columns=turned)
            expected = product(a.view, b.view, c.view, alpha, beta)
            assert jitblas.sgemm_strided_batched(a.view, b.view, c.view, alpha=alpha, beta=beta) is c.view
            assert_close(c.view, expected)
            c.assert_padding_untouched()
    one = jitblas.sgemm_strided_batched(a.view[0], b.view)
    assert_close(one, product(a.view[:1], b.view, one, 1.0, 0.0))
"""
    )


def test_device_arrays_and_device_scalars(scenario: Scenario) -> None:
    scenario(
        PRODUCTS
        + """
for m, n, k in SIZES:
    a, b, c = Batch(2, m, k, 1).view, Batch(2, k, n, 2).view, Batch(2, m, n, 3).view
    da, db, dc = (jitblas.array(np.ascontiguousarray(matrix)) for matrix in (a, b, c))
    alpha, beta = (jitblas.array(np.array([value], "f4")) for value in (1.5, -2.0))
    jitblas.sgemm_strided_batched(da, db, dc, alpha=alpha, beta=beta)
    got = dc.numpy()
    assert_close(got, product(a, b, c, 1.5, -2.0))
    fresh = jitblas.sgemm_strided_batched(da, db)
    assert isinstance(fresh, jitblas.DeviceArray) and fresh.target == "ascend950pr"
    assert_close(fresh.numpy(), product(a, b, c, 1.0, 0.0))
    planned = jitblas.plan(f"sgemm_strided_batched:m={m},n={n},k={k},batch=2,alpha=0.5,beta=1")
    before = dc.numpy()
    planned(da, db, dc)
    assert_close(dc.numpy(), product(a, b, before, 0.5, 1.0))
"""
    )


def test_the_aclblas_level(scenario: Scenario) -> None:
    scenario(
        PRODUCTS
        + """
handle = aclblas.aclblasCreate()
a, b, c = (Batch(1, 20, 20, seed, by_columns=True) for seed in (1, 2, 3))
da, db, dc = (jitblas.array(operand.memory[16:416]) for operand in (a, b, c))
one, half = ctypes.c_float(1.0), ctypes.c_float(0.5)
arguments = [handle, aclblas.OP_N, aclblas.OP_N, 20, 20, 20, one, da, 20, 0, db, 20, 0, half, dc, 20, 0, 1]
assert aclblas.aclblasSgemmStridedBatched(*arguments) is Status.SUCCESS, jitblas.last_error()
got = dc.numpy().reshape(1, 20, 20).transpose(0, 2, 1)
assert_close(got, product(a.view, b.view, c.view, 1.0, 0.5))
arguments[7] = np.ones(400, "f4")
assert aclblas.aclblasSgemmStridedBatched(*arguments) is Status.INVALID_VALUE
assert "jitblas.sgemm_strided_batched, which stages" in jitblas.last_error()
aclblas.aclblasDestroy(handle)
"""
    )


@pytest.mark.parametrize(("sizes", "flags"), [("m=40,n=48,k=30", "0x990000"), ("m=3,n=4,k=5", "0x9a0000")])
def test_an_object_for_the_wrong_cores_is_refused(scenario: Scenario, tmp_path: Path, sizes: str, flags: str) -> None:
    settings = {"JITBLAS_CACHE_DIR": str(tmp_path / "empty")}
    scenario('jitblas.specialize("axpy_ex:n=5").key', **settings)  # finds a compiler that is right
    code = """
        try:
            jitblas.plan("sgemm_strided_batched:" + sys.argv[1])
        except jitblas.ArchMismatch as error:
            assert sys.argv[2] in str(error), error
        else:
            raise AssertionError("it was loaded")
    """
    scenario(code, sizes, flags, STANDIN_BISHENG_FLAGS=flags, **settings)
