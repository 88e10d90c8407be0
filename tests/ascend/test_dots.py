"""Cdotc on ascend950pr: staging, device arrays, results in either memory, and the two launches of many cores."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ascend.conftest import Scenario

DOTS = """
from tests.dots import Spread, assert_close, bits, complex_numbers

SIZES = (1, 300, 40_000)  # one core, and many cores
STEPS = (1, 2, -1, -3)

def on_device(spread, inc):
    '''The same elements at the same distances, in device memory.'''
    memory = jitblas.array(spread.lowest)
    last = (spread.view.size - 1) * abs(inc)
    part = memory[: last + 1 : abs(inc)]
    return part[::-1] if inc < 0 else part
"""


@pytest.fixture
def dots(scenario: Scenario) -> Scenario:
    """A scenario with the vectors of tests/dots.py."""
    return lambda code, *arguments, **settings: scenario(
        DOTS + code.replace("\n        ", "\n").lstrip(" "), *arguments, **settings
    )


def test_arrays_of_any_increment_in_either_memory(dots: Scenario) -> None:
    dots("""
        for n in SIZES:
            for incx in STEPS if n == 300 else (1, -3):
                for incy in STEPS if n == 300 else (1, 2):
                    x, y = Spread(complex_numbers(n, 1), incx), Spread(complex_numbers(n, 2), incy)
                    x.memory.flags.writeable = False
                    note = f"n={n}, incx={incx}, incy={incy}"
                    host, device = (x.view, y.view), (on_device(x, incx), on_device(y, incy))
                    out, there = np.full(3, 9, "c8"), jitblas.array(np.full(3, 9, "c8"))
                    for operands in (host, device, (host[0], device[1]), (device[0], host[1])):
                        number = jitblas.cdotc(*operands)
                        assert type(number) is np.complex64
                        assert_close(number, x.view, y.view, note)
                        part = out[1:2]
                        assert jitblas.cdotc(*operands, out=part) is part
                        assert bits(part) == bits(number)
                        part = there[1:2]
                        assert jitblas.cdotc(*operands, out=part) is part
                        assert bits(there.numpy()) == bits(out) == bits([9, number, 9])
                    x.assert_untouched()
                    y.assert_untouched()
        nothing = np.ones(0, "c8")
        there = jitblas.array(np.full(1, np.nan, "c8"))
        assert bits(jitblas.cdotc(nothing, nothing)) == bytes(8)
        assert bits(jitblas.cdotc(nothing, jitblas.array(nothing), out=there).numpy()) == bytes(8)
    """)


def test_page_locked_memory_makes_no_difference(dots: Scenario) -> None:
    code = """
        for n in SIZES:
            x, y = complex_numbers(n, 1), complex_numbers(n, 2)
            out = np.zeros(1, "c8")
            for operands in ((x, y), (jitblas.array(x), y)):
                assert_close(jitblas.cdotc(*operands), x, y)
                assert_close(jitblas.cdotc(*operands, out=out)[0], x, y)
    """
    dots(code, STANDIN_PINNED="1", STANDIN_DELAY_US="5000")


def test_a_result_on_the_device_is_asynchronous_and_arrays_live_until_then(dots: Scenario) -> None:
    code = """
        x, y = complex_numbers(40_000, 1), complex_numbers(40_000, 2)
        with jitblas.Handle() as handle:
            jitblas.cdotc(x, y, handle=handle)  # compiled and prepared
            out = jitblas.zeros(2, "c64")
            jitblas.cdotc(jitblas.array(x), jitblas.array(y), handle=handle, out=out[:1])
            jitblas.cdotc(jitblas.array(y[::2]), jitblas.array(x)[::2], handle=handle, out=out[1:])
            event = handle.stream.record()
            assert not event.complete
            gc.collect()
            first, second = out.numpy()  # waits for the handle's stream
            assert event.complete
            assert_close(first, x, y)
            assert_close(second, y[::2], x[::2])
    """
    dots(code, STANDIN_DELAY_US="30000")


@pytest.mark.parametrize("cores", [8, 56])
def test_many_cores_leave_sums_that_a_second_launch_adds_up(dots: Scenario, tmp_path: Path, cores: int) -> None:
    launches = tmp_path / "launches"
    code = """
        for n, step in ((32 * 1024, 1), (504 * 1024, 1), (504 * 1024, -1), (100, 2), (504 * 1024, 2)):
            x, y = complex_numbers(n * abs(step), 1), complex_numbers(n * abs(step), 2)
            dx, dy = jitblas.array(x), jitblas.array(y)
            assert_close(jitblas.cdotc(dx[::step], dy[::step]), x[::step], y[::step])
    """
    dots(code, STANDIN_VECTOR_CORES=str(cores), STANDIN_LAUNCHES=str(launches))
    assert launches.read_text().split() == ["1", *[str(cores), "1"] * 2, "1", "1", str(cores), "1"]


def test_plans_take_arrays_of_either_memory(dots: Scenario) -> None:
    dots("""
        for line in ("cdotc:n=300", "cdotc:n=40000", "cdotc:n=300,incx=2,incy=-1"):
            for exact in (True, False):
                planned = jitblas.plan(line, exact=exact)
                n, incx, incy = (planned.problem.value(name) for name in ("n", "incx", "incy"))
                x, y = Spread(complex_numbers(n, 1), incx), Spread(complex_numbers(n, 2), incy)
                dx, dy, out = on_device(x, incx), on_device(y, incy), jitblas.zeros(1, "c64")
                assert_close(planned(x.view, y.view), x.view, y.view, line)
                assert planned(dx, dy, out) is out
                assert bits(out.numpy()) == bits(planned(dx, dy))
                assert_close(out.numpy()[0], x.view, y.view, line)
                refused(Status.INVALID_VALUE, planned, dx[1:], dy)
    """)


@pytest.mark.parametrize("nth", [1, 2, 3])
def test_without_device_memory_the_call_fails_and_the_next_works(dots: Scenario, nth: int) -> None:
    code = """
        x, y = complex_numbers(40_000, 1), complex_numbers(40_000, 2)
        out = np.full(1, 9, "c8")
        assert "aclrtMalloc" in refused(Status.ALLOC_FAILED, jitblas.cdotc, x, y, out=out)
        assert out[0] == 9
        assert_close(jitblas.cdotc(x, y), x, y)
    """
    dots(code, STANDIN_FAIL=f"aclrtMalloc:{nth}")


# ---- The aclblas level ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pinned", [False, True])
def test_a_result_in_either_memory_is_written_in_stream_order(dots: Scenario, pinned: bool) -> None:
    code = """
        for n, incx, incy in ((300, 1, 1), (40_000, 1, 1), (300, -2, 3), (0, 0, 0)):
            x, y = (Spread(complex_numbers(n, seed), inc) for seed, inc in ((1, incx or 1), (2, incy or 1)))
            dx, dy = (jitblas.array(operand.lowest) if n else None for operand in (x, y))
            array, floats, raw = np.full(1, 9, "c8"), (ctypes.c_float * 2)(9, 0), np.full(1, 9, "c8")
            there = jitblas.array(np.full(3, 9, "c8"))
            results = (array, floats, raw.ctypes.data, there[:1], there.address + 16)
            handle = aclblas.aclblasCreate()
            for result in results:
                status = aclblas.aclblasCdotc(handle, n, dx, incx, dy, incy, result)
                assert status is Status.SUCCESS, jitblas.last_error()
            if "STANDIN_PINNED" in os.environ:
                assert array[0] == floats[0] == raw[0] == 9
            handle.synchronize()
            first, between, last = there.numpy()
            assert between == 9
            for number in (array[0], complex(*floats), raw[0], first, last):
                assert_close(number, x.view, y.view)
            assert aclblas.aclblasDestroy(handle) is Status.SUCCESS
    """
    dots(code, **({"STANDIN_PINNED": "1", "STANDIN_DELAY_US": "5000"} if pinned else {}))


def test_a_host_result_that_nobody_holds_lives_until_it_is_written(dots: Scenario) -> None:
    code = """
        x = jitblas.array(complex_numbers(300, 1))
        handle = aclblas.aclblasCreate()
        memory = np.full(1 << 20, 9, "c8")  # given back to the system when it is freed
        assert aclblas.aclblasCdotc(handle, 300, x, 1, x, 1, memory[1000:]) is Status.SUCCESS
        del memory
        gc.collect()
        assert aclblas.aclblasDestroy(handle) is Status.SUCCESS
    """
    dots(code, STANDIN_PINNED="1", STANDIN_DELAY_US="30000")


def test_what_is_refused_writes_nothing_and_says_how_to_mend_it(dots: Scenario) -> None:
    dots("""
        host, device, result = np.ones(6, "c8"), jitblas.array(np.ones(6, "c8")), jitblas.zeros(1, "c64")
        handle = aclblas.aclblasCreate()
        elsewhere = jitblas.zeros(6, "c64", target="host")
        for name, x, y in (("x", host, device), ("y", device, host)):
            assert aclblas.aclblasCdotc(handle, 6, x, 1, y, 1, result) is Status.INVALID_VALUE
            message = jitblas.last_error()
            assert f"{name} is a NumPy array in host memory" in message and "jitblas.array()" in message, message
            assert "jitblas.cdotc, which stages" in message, message
        for name, x, y, out in (("x", elsewhere, device, result), ("result", device, device, elsewhere)):
            assert aclblas.aclblasCdotc(handle, 6, x, 1, y, 1, out) is Status.INVALID_VALUE
            assert f"{name} is on host, the handle on ascend950pr" in jitblas.last_error()
        assert handle.runtime.stream_position(handle.stream.address) == (0, 0)
        assert result.numpy()[0] == 0
        aclblas.aclblasDestroy(handle)
    """)


RESULTS = {
    "read-only": ("memory[:1]", "read-only"),
    "too short": ("memory[:0]", "result has 0 bytes"),
    "of another type": ('memory.view("c16")[:1]', "complex128"),
}


@pytest.mark.parametrize("case", list(RESULTS))
def test_a_numpy_result_is_checked_like_any_other(dots: Scenario, case: str) -> None:
    expression, said = RESULTS[case]
    code = f"""
        device, memory = jitblas.array(np.ones(6, "c8")), np.full(4, 9, "c8")
        memory.flags.writeable = {case != "read-only"}
        handle = aclblas.aclblasCreate()
        status = aclblas.aclblasCdotc(handle, 6, device, 1, device, 1, {expression})
        handle.synchronize()
        assert (memory == 9).all(), "it was written"
        assert status is Status.INVALID_VALUE and {said!r} in jitblas.last_error(), jitblas.last_error()
        aclblas.aclblasDestroy(handle)
    """
    dots(code)


def test_a_workspace_of_the_user_s_and_one_that_is_too_small(dots: Scenario) -> None:
    dots("""
        x, y = complex_numbers(40_000, 1), complex_numbers(40_000, 2)
        dx, dy, result = jitblas.array(x), jitblas.array(y), jitblas.zeros(1, "c64")
        memory = jitblas.array(np.full(512, 0xFF), "u8")
        handle = aclblas.aclblasCreate()
        arguments = (handle, 40_000, dx, 1, dy, 1, result)
        assert aclblas.aclblasSetWorkspace(handle, memory, 319) is Status.SUCCESS
        assert aclblas.aclblasCdotc(*arguments) is Status.ALLOC_FAILED
        assert "320 bytes of workspace are needed, the workspace given has 319" in jitblas.last_error()
        assert handle.runtime.stream_position(handle.stream.address) == (0, 0)
        assert aclblas.aclblasSetWorkspace(handle, memory, 320) is Status.SUCCESS
        for result in (result, np.zeros(1, "c8")):
            assert aclblas.aclblasCdotc(*arguments[:-1], result) is Status.SUCCESS, jitblas.last_error()
            handle.synchronize()
            assert_close((result if isinstance(result, np.ndarray) else result.numpy())[0], x, y)
        assert (memory.numpy()[320:] == 0xFF).all()
        assert aclblas.aclblasDestroy(handle) is Status.SUCCESS
    """)
