"""NumPy arrays through the ascend950pr target: which target answers, staging, operands that overlap, failures."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ascend.conftest import CLEAN, Scenario

STRIDED = """
SENTINEL = 0xA5

class Strided:
    '''A vector in memory full of sentinels, between its elements too.'''

    def __init__(self, values, inc):
        size, n = values.itemsize, values.size
        length = ((n - 1) * abs(inc) + 1 + 6) * size
        self.memory = np.full(length, SENTINEL, np.uint8)
        places = slice(3, 3 + (n - 1) * abs(inc) + 1, abs(inc))
        view = self.memory.view(values.dtype)[places]
        self.view = view[::-1] if inc < 0 else view
        self.view[:] = values
        inside = np.zeros(length, np.uint8)
        inside.view(f"V{size}")[places] = b"\\x01" * size
        self.outside = inside == 0

    def check_holes(self):
        assert (self.memory[self.outside] == SENTINEL).all()
"""


# ---- which target ----------------------------------------------------------------------------------------------------


def test_targets_lists_the_chip_with_what_was_found(scenario: Scenario) -> None:
    scenario("""
        jitblas.Handle  # whatever was used before
        found = jitblas.targets()
        assert list(found) == ["ascend950pr", "host"], found
        assert "Ascend950PR_9579" in found["ascend950pr"] and "3510" in found["ascend950pr"]
    """)


def test_the_chip_is_the_default_where_toolkit_and_device_answer(scenario: Scenario) -> None:
    scenario("""
        with jitblas.Handle() as handle:
            assert handle.target == handle.stream.target == "ascend950pr"
        assert jitblas.empty(3).target == jitblas.Stream().target == "ascend950pr"
        assert jitblas.specialize("axpy_ex:n=9").target == "ascend950pr"
        handle = aclblas.aclblasCreate()
        assert handle.target == "ascend950pr"
        assert aclblas.aclblasDestroy(handle) is Status.SUCCESS
    """)


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [("STANDIN_ARCHITECTURE", "2201", "architecture 2201"), ("STANDIN_DEVICES", "0", "there is no device")],
)
def test_another_chip_or_none_makes_the_host_the_default(
    scenario: Scenario, name: str, value: str, reason: str
) -> None:
    code = """
        with jitblas.Handle() as handle:
            assert handle.target == "host"
        y = np.ones(5, "float32")
        assert (jitblas.axpy_ex(2.0, np.arange(5, dtype="float32"), y) == [1, 3, 5, 7, 9]).all()
        message = refused(Status.ARCH_MISMATCH, jitblas.Handle, "ascend950pr")
        assert sys.argv[1] in message and "3510" in message, message
    """
    scenario(code, reason, **{name: value})


def test_a_toolkit_without_its_runtime_makes_the_host_the_default(scenario: Scenario, tmp_path: Path) -> None:
    code = """
        with jitblas.Handle() as handle:
            assert handle.target == "host"
    """
    scenario(code, report=None, ASCEND_HOME_PATH=str(tmp_path))


def test_the_target_can_be_the_host_on_a_machine_with_a_chip(scenario: Scenario) -> None:
    code = """
        y = np.ones(5, "float32")
        assert (jitblas.axpy_ex(2.0, np.arange(5, dtype="float32"), y) == [1, 3, 5, 7, 9]).all()
        assert jitblas.array(y).target == "host"
        assert not mapped("libascendcl")
    """
    scenario(code, report=None, JITBLAS_TARGET="host")


def test_a_target_that_was_asked_for_is_not_replaced(scenario: Scenario) -> None:
    code = """
        x, y = np.ones(5, "float32"), np.ones(5, "float32")
        assert "there is no device" in refused(Status.ARCH_MISMATCH, jitblas.axpy_ex, 1.0, x, y)
        assert (y == 1).all()
    """
    scenario(code, JITBLAS_TARGET="ascend950pr", STANDIN_DEVICES="0")


def test_both_targets_in_one_process(scenario: Scenario) -> None:
    scenario("""
        x, y = numbers("bf16", 3000, 1), numbers("bf16", 3000, 2)
        expected = axpy(-1.5, x, y)
        with jitblas.Handle("host") as host, jitblas.Handle("ascend950pr") as chip:
            for handle in (host, chip, host, chip):
                got = y.copy()
                jitblas.axpy_ex(-1.5, x, got, handle=handle)
                assert_same_bits(got, expected, handle.target)
            here, there = jitblas.array(x, target="host"), jitblas.array(x, target="ascend950pr")
            for own, other, handle in ((here, there, host), (there, here, chip)):
                message = refused(Status.INVALID_VALUE, jitblas.axpy_ex, 1.0, own, other, handle=handle)
                assert "host" in message and "ascend950pr" in message
                jitblas.axpy_ex(1.0, own, own, handle=handle)
                assert_same_bits(own.numpy(), axpy(1.0, x, x))
            assert host.stream.target != chip.stream.target
            message = refused(Status.INVALID_VALUE, jitblas.Handle, "host", chip.stream)
            assert "ascend950pr" in message
    """)


# ---- staged NumPy arrays ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["fp32", "fp16", "bf16"])
def test_staged_arrays_of_any_increment(scenario: Scenario, word: str) -> None:
    code = """
        word = sys.argv[1]
        for incx in (1, 2, -1, -3):
            for incy in (1, 2, -1, -3):
                for n in (1, 2, 300, 4099):
                    x = Strided(numbers(word, n, 1), incx)
                    y = Strided(numbers(word, n, 2), incy)
                    before, x_before = y.view.copy(), x.memory.copy()
                    assert jitblas.axpy_ex(-1.7, x.view, y.view) is y.view
                    note = f"n={n}, incx={incx}, incy={incy}"
                    assert_same_bits(y.view.copy(), axpy(-1.7, x.view, before), note)
                    assert_within_gate(y.view, -1.7, x.view, before, word)
                    y.check_holes()
                    assert (x.memory == x_before).all()
    """
    scenario(STRIDED + code.replace("\n        ", "\n"), word)


def test_special_numbers_survive_staging(scenario: Scenario) -> None:
    scenario("""
        for word in DTYPES:
            for alpha in (0.0, -0.0, 1.0, np.inf, np.nan, 1e-45):
                x, y = numbers(word, 5000, 3, special=True), numbers(word, 5000, 4, special=True)
                assert_same_bits(jitblas.axpy_ex(alpha, x, y.copy()), axpy(alpha, x, y), f"{word}, alpha={alpha}")
    """)


def test_a_read_only_x_is_read_and_a_read_only_y_refused(scenario: Scenario) -> None:
    scenario("""
        x, y = np.arange(5, dtype="float32"), np.ones(5, "float32")
        x.flags.writeable = False
        assert (jitblas.axpy_ex(2.0, x, y) == [1, 3, 5, 7, 9]).all()
        assert "read-only" in refused(Status.INVALID_VALUE, jitblas.axpy_ex, 2.0, y, x)
        one = np.broadcast_to(np.float32(3), 5)  # stride 0
        assert (jitblas.axpy_ex(1.0, one, y) == [4, 6, 8, 10, 12]).all()
        assert jitblas.axpy_ex(1.0, x[:0], y[:0]).size == 0
    """)


def test_x_may_be_y_and_operands_may_overlap(scenario: Scenario) -> None:
    scenario("""
        base = numbers("fp32", 9000, 5)
        for x_part, y_part in (
            (slice(None), slice(None)), (slice(0, 8000), slice(1, 8001)), (slice(1, 8001), slice(0, 8000)),
            (slice(None, None, -1), slice(None)), (slice(0, 4000), slice(0, 8000, 2)),
            (slice(0, 8000, 2), slice(1, 8001, 2)),
        ):
            memory = base.copy()
            expected = base.copy()
            expected[y_part] = axpy(3.0, base[x_part], base[y_part])
            jitblas.axpy_ex(3.0, memory[x_part], memory[y_part])
            assert_same_bits(memory, expected, f"{x_part}, {y_part}")
    """)


def test_plans_take_numpy_arrays(scenario: Scenario) -> None:
    scenario("""
        for line, step_x, step_y in (("axpy_ex:n=5000,dtype=fp16", 1, 1), ("axpy_ex:n=700,dtype=bf16,incx=-2", -2, 1)):
            word = "fp16" if "fp16" in line else "bf16"
            for exact in (True, False):
                plan = jitblas.plan(line, exact=exact)
                n = plan.problem.value("n")
                x, y = numbers(word, n * abs(step_x), 6)[::step_x], numbers(word, n, 7)
                expected = axpy(0.5, x, y)
                assert plan(0.5, x, y) is y
                assert_same_bits(y, expected, line)
                refused(Status.INVALID_VALUE, plan, 0.5, x[1:], y)
    """)


# ---- failures --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pinned", [False, True])
@pytest.mark.parametrize("nth", [1, 2])
def test_without_device_memory_the_call_fails_and_the_next_works(scenario: Scenario, nth: int, pinned: bool) -> None:
    code = """
        x, y = np.arange(5, dtype="float32"), np.ones(5, "float32")
        message = refused(Status.ALLOC_FAILED, jitblas.axpy_ex, 2.0, x, y)
        assert "aclrtMalloc" in message and "207018" in message, message
        assert (y == 1).all()
        time.sleep(0.1)  # nothing that was begun may go on with memory that is gone
        assert (jitblas.axpy_ex(2.0, x, y) == [1, 3, 5, 7, 9]).all()
        assert (jitblas.axpy_ex(2.0, x, y) == [1, 5, 9, 13, 17]).all()
    """
    settings = {"STANDIN_PINNED": "1", "STANDIN_DELAY_US": "30000"} if pinned else {}
    scenario(code, STANDIN_FAIL=f"aclrtMalloc:{nth}", **settings)


def test_more_than_the_device_holds_is_refused(scenario: Scenario) -> None:
    code = """
        x, y = np.ones(300_000, "float32"), np.ones(300_000, "float32")
        assert "1200000 bytes" in refused(Status.ALLOC_FAILED, jitblas.axpy_ex, 2.0, x, y)
        assert (y == 1).all()
        assert (jitblas.axpy_ex(2.0, x[:5], y[:5]) == 3).all()
    """
    scenario(code, STANDIN_MEMORY="2000000")


def test_page_locked_memory_makes_no_difference(scenario: Scenario) -> None:
    code = """
        for step in (1, 2, -1):
            x, y = numbers("fp32", 6000, 8)[::step], numbers("fp32", 6000, 9)[::step]
            expected = axpy(2.0, x, y)
            assert_same_bits(jitblas.axpy_ex(2.0, x, y), expected)
    """
    scenario(code, STANDIN_PINNED="1", STANDIN_DELAY_US="10000")


@pytest.mark.parametrize("function", ["aclrtSynchronizeStream", "aclrtMemcpyAsync", "aclrtCreateStream"])
def test_a_runtime_that_fails_is_quoted(scenario: Scenario, function: str) -> None:
    code = """
        x, y = np.arange(5, dtype="float32"), np.ones(5, "float32")
        wanted = Status.EXECUTION_FAILED if sys.argv[1] == "aclrtSynchronizeStream" else Status.INTERNAL_ERROR
        message = refused(wanted, jitblas.axpy_ex, 2.0, x, y)
        assert f"{sys.argv[1]} fails because" in message and "ACL error" in message, message
        y[:] = 1
        assert (jitblas.axpy_ex(2.0, x, y) == [1, 3, 5, 7, 9]).all()
    """
    scenario(code, function, report=CLEAN, STANDIN_FAIL=f"{function}:1")
