"""DeviceArrays on ascend950pr: values, views, asynchronous calls, scalars in stream order."""

from __future__ import annotations

import pytest

from tests.ascend.conftest import Scenario

SLOW = {"STANDIN_DELAY_US": "50000"}  # every task of a stream takes this much longer


# ---- values ----------------------------------------------------------------------------------------------------------


def test_arrays_travel_there_and_back(scenario: Scenario) -> None:
    scenario("""
        for word, dtype in DTYPES.items():
            values = numbers(word, 1001, 1, special=True)
            device = jitblas.array(values)
            assert (device.target, device.dtype, device.shape, len(device)) == ("ascend950pr", word, (1001,), 1001)
            assert device.numpy().dtype == dtype
            assert (device.numpy().view(np.uint8) == values.view(np.uint8)).all()
            assert (jitblas.zeros(77, word).numpy() == 0).all()
            assert jitblas.empty((3, 5), word).numpy().shape == (3, 5)
            assert jitblas.array([], dtype=word).numpy().size == jitblas.zeros(0, word).numpy().size == 0
        assert (jitblas.array([1, 2, 3]).numpy() == [1, 2, 3]).all()
        assert repr(jitblas.empty(2)) == "DeviceArray(shape=(2,), dtype='fp32', target='ascend950pr')"
    """)


@pytest.mark.parametrize("word", ["fp32", "fp16", "bf16"])
def test_views_of_any_stride(scenario: Scenario, word: str) -> None:
    code = """
        word = sys.argv[1]
        slices = (slice(0, 300), slice(7, 307), slice(0, 600, 2), slice(1, 901, 3), slice(299, None, -1),
                  slice(899, None, -3))
        for at_x in slices:
            for at_y in slices:
                x, y = numbers(word, 1000, 1), numbers(word, 1000, 2)
                expected = y.copy()
                expected[at_y] = axpy(-0.7, x[at_x], y[at_y])
                dx, dy = jitblas.array(x), jitblas.array(y)
                part = dy[at_y]
                assert jitblas.axpy_ex(-0.7, dx[at_x], part) is part
                assert_same_bits(part.numpy(), expected[at_y], f"{at_x}, {at_y}")
                assert_same_bits(dy.numpy(), expected, f"all of it, {at_x}, {at_y}")
                assert_same_bits(dx.numpy(), x)
    """
    scenario(code, word)


def test_one_operand_on_the_device_the_other_in_host_memory(scenario: Scenario) -> None:
    scenario("""
        x, y = numbers("fp32", 900, 1), numbers("fp32", 900, 2)
        for at_x, at_y in ((slice(None), slice(None)), (slice(0, 300, 2), slice(449, 299, -1))):
            dx, dy = jitblas.array(x), jitblas.array(y)
            expected = y.copy()
            expected[at_y] = axpy(2.5, x[at_x], y[at_y])
            got = y.copy()
            jitblas.axpy_ex(2.5, dx[at_x], got[at_y])
            assert_same_bits(got, expected)
            jitblas.axpy_ex(2.5, x[at_x], dy[at_y])
            assert_same_bits(dy.numpy(), expected)
    """)


def test_overlapping_views_are_as_if_copied_first(scenario: Scenario) -> None:
    scenario("""
        base = numbers("fp32", 4000, 5)
        for at_x, at_y in (
            (slice(None), slice(None)), (slice(0, 3000), slice(16, 3016)), (slice(16, 3016), slice(0, 3000)),
            (slice(0, 3000), slice(1, 3001)), (slice(1, 3001), slice(0, 3000)), (slice(None, None, -1), slice(None)),
            (slice(0, 2000), slice(0, 4000, 2)),
        ):
            memory = jitblas.array(base)
            expected = base.copy()
            expected[at_y] = axpy(3.0, base[at_x], base[at_y])
            jitblas.axpy_ex(3.0, memory[at_x], memory[at_y])
            assert_same_bits(memory.numpy(), expected, f"{at_x}, {at_y}")
    """)


@pytest.mark.parametrize("index", ["0", "[0, 2]", "np.array([True, False, True])", "-1"])
def test_an_index_that_would_read_memory_is_a_type_error(scenario: Scenario, index: str) -> None:
    """Device memory is out of the host's reach: reading it ends the process."""
    scenario(f"""
        device = jitblas.array([1.0, 2.0, 3.0])
        try:
            device[{index}]
        except TypeError as error:
            assert "slices" in str(error)
        else:
            raise AssertionError("no error")
    """)


def test_views_may_be_empty(scenario: Scenario) -> None:
    scenario("""
        device = jitblas.array([1, 2, 3])
        for empty in (device[:0], device[3:], device[2:1]):
            assert empty.size == 0 and empty.numpy().size == 0
            assert jitblas.axpy_ex(1.0, empty, empty) is empty
    """)


# ---- asynchronous ----------------------------------------------------------------------------------------------------


def test_a_call_returns_before_its_result_is_there(scenario: Scenario) -> None:
    code = """
        x, y = jitblas.array(np.ones(4096, "float32")), jitblas.zeros(4096)
        jitblas.axpy_ex(1.0, x, y)  # compiled and prepared
        y.numpy()
        with jitblas.Handle() as handle:
            jitblas.axpy_ex(1.0, x, x, handle=handle)
            handle.synchronize()
            start = time.perf_counter()
            for _ in range(4):
                jitblas.axpy_ex(1.0, x, y, handle=handle)
            event = handle.stream.record()
            assert not event.complete
            assert time.perf_counter() - start < 0.15
            assert (y.numpy() == 9).all()  # 1 + 4 * 2: numpy() waits for the stream that the work is on
            assert event.complete and time.perf_counter() - start > 0.2
    """
    scenario(code, **SLOW)


def test_numpy_waits_for_all_work_on_an_array_whatever_its_stream(scenario: Scenario) -> None:
    code = """
        x, y, z = jitblas.array(np.ones(100, "float32")), jitblas.zeros(100), jitblas.zeros(100)
        with jitblas.Handle() as one, jitblas.Handle() as other:
            for handle in (one, other):
                jitblas.axpy_ex(0.0, x, z, handle=handle)
                handle.synchronize()
            for _ in range(6):
                jitblas.axpy_ex(1.0, x, y, handle=one)
            jitblas.axpy_ex(1.0, x, z, handle=other)
            jitblas.axpy_ex(0.0, y, z, handle=other)  # reads y, whatever it is by now
            assert (y.numpy() == 6).all(), y.numpy()[0]
    """
    scenario(code, **SLOW)


def test_a_device_alpha_is_read_in_stream_order(scenario: Scenario) -> None:
    code = """
        alpha, two = jitblas.array([3.0], "fp32"), jitblas.array([2.0], "fp32")
        for at in (slice(None), slice(None, None, -2)):
            x, y = numbers("bf16", 800, 1), numbers("bf16", 800, 2)
            dx, dy = jitblas.array(x), jitblas.array(y)
            before = alpha.numpy()[0]
            jitblas.axpy_ex(1.0, two, alpha)  # alpha += 2, when the stream gets there
            jitblas.axpy_ex(alpha, dx[at], dy[at])
            jitblas.axpy_ex(1.0, two, alpha)  # and 2 more afterwards
            expected = y.copy()
            expected[at] = axpy(before + 2, x[at], y[at])
            assert_same_bits(dy.numpy(), expected)
            assert alpha.numpy()[0] == before + 4
        x, y = np.ones(5, "float32"), np.ones(5, "float32")
        assert (jitblas.axpy_ex(alpha, x, y) == 12).all()
    """
    scenario(code, STANDIN_DELAY_US="20000")


def test_events_measure_the_stream(scenario: Scenario) -> None:
    code = """
        x = jitblas.zeros(100)
        jitblas.axpy_ex(1.0, x, x)
        x.numpy()
        with jitblas.Handle() as handle:
            start = handle.stream.record()
            for _ in range(3):
                jitblas.axpy_ex(1.0, x, x, handle=handle)
            end = handle.stream.record()
            assert "not reached" in refused(Status.INTERNAL_ERROR, end.elapsed_ms, start)
            end.synchronize()
            assert start.complete and end.complete
            assert 200 <= end.elapsed_ms(start) < 2000  # three kernels and the event itself
    """
    scenario(code, **SLOW)
