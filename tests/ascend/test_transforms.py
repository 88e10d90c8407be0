"""FFT on the device target: staging, device arrays, plans, tables in device memory, and what has no FP64."""

from __future__ import annotations

from tests.ascend.conftest import Scenario

SIZES = """
from tests.transforms import assert_close, exact, numbers

SIZES = (1, 16, 64, 4096, 2**15)
fft, ifft, plan = jitblas.fft.fft, jitblas.fft.ifft, jitblas.fft.plan
"""


def test_numpy_arrays_of_any_layout_are_staged(scenario: Scenario) -> None:
    scenario(
        SIZES
        + """
for points in SIZES:
    x = numbers((3, points), "c8")
    before = x.copy()
    assert_close(fft(x), exact(x), f"{points}")
    assert_close(ifft(x) * points, exact(x, "inverse"), f"{points}")
    turned = np.asfortranarray(x)
    out = np.zeros((points, 3), "c8")
    assert fft(turned.T, axis=0, out=out) is out
    assert_close(np.ascontiguousarray(out.T), exact(x), f"{points}")
    assert x.tobytes() == before.tobytes()
    assert fft(x, out=x) is x
    assert_close(x, exact(before), f"{points}")
assert fft(np.ones(8, "f4"))[0] == 8
assert fft(np.ones((0, 8), "c8")).shape == (0, 8)
"""
    )


def test_device_arrays_and_plans(scenario: Scenario) -> None:
    scenario(
        SIZES
        + """
for points in SIZES:
    x = numbers((2, points), "c8")
    there, out = jitblas.array(x), jitblas.zeros((2, points), "c64")
    assert fft(there, out=out) is out
    assert_close(out.numpy(), exact(x))
    made = ifft(out)
    assert made.target == "ascend950pr"
    assert np.abs(made.numpy() - x).max() < 1e-5
    transform = plan(points, batch=2, dtype="c64")
    for given in (x, there):
        got = transform(given)
        assert_close(got if given is x else got.numpy(), exact(x))
    assert fft(there, out=there) is there
    assert_close(there.numpy(), exact(x))
"""
    )


def test_double_precision_is_refused_with_the_alternatives(scenario: Scenario) -> None:
    scenario(
        SIZES
        + """
for call in (lambda: fft(np.ones(8)), lambda: fft([1, 2]), lambda: plan(64), lambda: plan(64, dtype="c128")):
    try:
        call()
        raise AssertionError("accepted")
    except jitblas.StatusError as error:
        assert error.status == jitblas.Status.NOT_SUPPORTED
        assert "no FP64; give complex64 (c64), or a handle of target 'host'" in str(error), error
with jitblas.Handle("host") as host:
    assert fft(np.ones(8), handle=host)[0] == 8
"""
    )
