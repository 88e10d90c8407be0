"""The aclblas level on ascend950pr: pointers, scalars, the order of checks, streams, errors."""

from __future__ import annotations

import pytest

from tests.ascend.conftest import Scenario

CALL = """
F, H, B = aclblas.ACL_FLOAT, aclblas.ACL_FLOAT16, aclblas.ACL_BF16
TYPES = {"fp32": F, "fp16": H, "bf16": B}
ONE = ctypes.c_float(1)

def call(handle, x, y, alpha=ONE, n=5, incx=1, incy=1, xType=F, yType=F, alphaType=F, executionType=F):
    return aclblas.aclblasAxpyEx(handle, n, alpha, alphaType, x, xType, incx, y, yType, incy, executionType)

def answers(status, *arguments, **named):
    got = call(*arguments, **named)
    assert got is status, (got, jitblas.last_error())
    return jitblas.last_error()

def succeeds(*arguments, **named):
    answers(Status.SUCCESS, *arguments, **named)
"""


@pytest.fixture
def level(scenario: Scenario) -> Scenario:
    """A scenario with `call`, `answers` and `succeeds`."""
    return lambda code, *arguments, **settings: scenario(
        CALL + code.replace("\n        ", "\n").lstrip(" "), *arguments, **settings
    )


def test_every_type_and_increment(level: Scenario) -> None:
    level("""
        handle = aclblas.aclblasCreate()
        for word, kind in TYPES.items():
            for incx in (1, 2, -1, -3):
                for incy in (1, 2, -1, -3):
                    n = 700
                    x = numbers(word, (n - 1) * abs(incx) + 1, 1)
                    y = numbers(word, (n - 1) * abs(incy) + 1, 2)
                    dx, dy = jitblas.array(x), jitblas.array(y)
                    succeeds(handle, dx, dy, ctypes.c_float(-0.3), n, incx, incy, kind, kind)
                    expected = y.copy()
                    at_y = expected[::abs(incy)][:: 1 if incy > 0 else -1]
                    at_y[:] = axpy(-0.3, x[::abs(incx)][:: 1 if incx > 0 else -1], at_y)
                    assert_same_bits(dy.numpy(), expected, f"{word}, {incx}, {incy}")
        assert aclblas.aclblasDestroy(handle) is Status.SUCCESS
    """)


def test_a_numpy_array_is_refused_and_told_how_to_mend_it(level: Scenario) -> None:
    level("""
        host, device = np.ones(5, "float32"), jitblas.zeros(5)
        with jitblas.Handle() as handle:
            for name, x, y in (("x", host, device), ("y", device, host)):
                message = answers(Status.INVALID_VALUE, handle, x, y)
                assert f"{name} is a NumPy array in host memory" in message and "ascend950pr" in message, message
                assert "jitblas.array()" in message and "jitblas.axpy_ex" in message, message
        assert (host == 1).all() and (device.numpy() == 0).all()
    """)


def test_alpha_from_the_host_in_every_guise(level: Scenario) -> None:
    code = """
        x, y = jitblas.array(np.ones(5, "float32")), jitblas.zeros(5)
        number, array = ctypes.c_float(2), np.array([2], np.float32)
        pair = (ctypes.c_float * 2)(2, 7)
        guises = (
            number, ctypes.byref(number), ctypes.pointer(number), ctypes.c_void_p(ctypes.addressof(number)),
            ctypes.addressof(number), array, array.ctypes.data, array.reshape(()), pair,
        )
        with jitblas.Handle() as handle:
            for alpha in guises:
                succeeds(handle, x, y, alpha)
                number.value = array[0] = pair[0] = 99  # alpha was read before the call returned
                number.value = array[0] = pair[0] = 2
            assert (y.numpy() == 2 * len(guises)).all()
            assert "float64" in answers(Status.INVALID_VALUE, handle, x, y, np.array([2.0]))
            for wrong in (2.0, "2", np.float32(2), [2]):
                try:
                    call(handle, x, y, wrong)
                except TypeError as error:
                    assert "alpha" in str(error)
                else:
                    raise AssertionError(wrong)
    """
    level(code, STANDIN_DELAY_US="5000")


def test_a_device_alpha_is_found_out_from_its_address(level: Scenario) -> None:
    code = """
        x, y = jitblas.array(np.ones(5, "float32")), jitblas.zeros(5)
        alpha = jitblas.array([2.0, 50.0], "fp32")
        with jitblas.Handle() as handle:
            guises = (alpha, alpha.address, ctypes.c_void_p(alpha.address),
                      ctypes.cast(alpha.address, ctypes.POINTER(ctypes.c_float)))
            for guise in guises:
                succeeds(handle, x, y, guise)
            assert (y.numpy() == 8).all()
            succeeds(handle, x, y, alpha.address + 4)
            assert (y.numpy() == 58).all()
            # In stream order: alpha changes on the way.
            succeeds(handle, x, alpha, ONE, n=1)
            succeeds(handle, x, y, alpha.address)
            succeeds(handle, x, alpha, ONE, n=1)
            assert (y.numpy() == 61).all()
            # A class of its own; no host memory is read for it.
            assert sum("kAlphaOnDevice = true" in s.rendered for s in jitblas_kernels()) == 1
    """
    code = code.replace("jitblas_kernels()", "__import__('jitblas.jit.kernels').jit.kernels._kernels")
    level(code, STANDIN_DELAY_US="5000")


def test_a_runtime_that_cannot_tell_what_alpha_is(level: Scenario) -> None:
    code = """
        x, y = jitblas.array(np.ones(5, "float32")), jitblas.zeros(5)
        with jitblas.Handle() as handle:
            message = answers(Status.INTERNAL_ERROR, handle, x, y, ctypes.addressof(ONE))
            assert "aclrtPointerGetAttributes fails" in message
            succeeds(handle, x, y, ctypes.addressof(ONE))
        assert (y.numpy() == 1).all()
    """
    level(code, STANDIN_FAIL="aclrtPointerGetAttributes:1")


def test_the_order_of_checks(level: Scenario) -> None:
    level("""
        x, y = jitblas.array(np.ones(5, "float32")), jitblas.zeros(5)
        handle = jitblas.Handle()
        assert "aclblasCreate" in answers(Status.HANDLE_IS_NULLPTR, None, None, None, None, n=-1, incx=0, xType=9)
        answers(Status.INVALID_VALUE, handle, None, None, None, n=-1, xType=9)
        succeeds(handle, None, None, None, n=0, xType=9, incx=0)
        for name in ("alphaType", "executionType", "xType", "yType"):
            assert name in answers(Status.NOT_SUPPORTED, handle, None, None, None, incx=0, **{name: 11})
        assert "equal" in answers(Status.NOT_SUPPORTED, handle, None, None, None, xType=F, yType=H, incx=0)
        for null in ("x", "y", "alpha"):
            pointers = {"x": x, "y": y, "alpha": ONE, null: None}
            assert f"{null} null" in answers(Status.INVALID_VALUE, handle, incx=0, **pointers)
        assert "incx is 0" in answers(Status.INVALID_VALUE, handle, x, y, incx=0)
        assert "incy is 0" in answers(Status.INVALID_VALUE, handle, x, y, incy=0, n=99)
        for inc in ({}, {"incx": 2}, {"incy": -3}):
            assert "need" in answers(Status.INVALID_VALUE, handle, x, y, n=5 if inc else 6, **inc)
        answers(Status.INVALID_VALUE, handle, jitblas.zeros(5, "fp16"), y)
        answers(Status.INVALID_VALUE, handle, x, jitblas.zeros(5, target="host"))
        answers(Status.INVALID_VALUE, handle, x, y, jitblas.zeros(1, target="host"))
        handle.synchronize()
        assert (y.numpy() == 0).all()
        handle.destroy()
        answers(Status.NOT_INITIALIZED, handle, x, y)
    """)


def test_refused_calls_reach_no_stream_and_no_compiler(level: Scenario, empty_store: str) -> None:
    level(
        """
        x = jitblas.zeros(5)
        with jitblas.Handle() as handle:
            for wrong in ({"n": -1}, {"incx": 0}, {"n": 6}, {"xType": H}, {"alpha": None}):
                assert call(handle, x, x, **wrong) is not Status.SUCCESS
            succeeds(handle, x, x, n=0)
            assert handle.runtime.stream_position(handle.stream.address) == (0, 0)
            assert not os.path.exists(sys.argv[1] + "/v1")  # nobody even looked
    """,
        empty_store,
        JITBLAS_CACHE_DIR=empty_store,
    )


def test_streams_of_others(level: Scenario) -> None:
    code = """
        address = raw_stream()
        x, y = jitblas.array(np.ones(5, "float32")), jitblas.zeros(5)
        handle = aclblas.aclblasCreate()
        own = aclblas.aclblasGetStream(handle)
        succeeds(handle, x, y)
        assert aclblas.aclblasSetStream(handle, address) is Status.SUCCESS
        assert aclblas.aclblasGetStream(handle).address == address
        succeeds(handle, x, y)
        acl, state = raw(), ctypes.c_int(-1)
        acl.aclrtStreamQuery(ctypes.c_void_p(address), ctypes.byref(state))
        assert state.value == 1  # not complete: the kernel is on this stream
        acl.aclrtSynchronizeStream(ctypes.c_void_p(address))
        assert (y.numpy() == 2).all()

        class Holder:
            npu_stream = address
        class Parameter:
            _as_parameter_ = address
        for stream in (Holder(), Parameter(), jitblas.Stream("ascend950pr", address=address)):
            assert aclblas.aclblasSetStream(handle, stream) is Status.SUCCESS
            assert aclblas.aclblasGetStream(handle).address == address
        host = jitblas.Stream("host")
        assert aclblas.aclblasSetStream(handle, host) is Status.INVALID_VALUE
        assert "host" in jitblas.last_error()
        assert aclblas.aclblasGetStream(handle).address == address
        assert aclblas.aclblasDestroy(handle) is Status.SUCCESS
        destroy_raw_stream(address)  # it was borrowed: still there
    """
    level(code, STANDIN_DELAY_US="30000")


def test_the_default_stream_of_the_runtime(level: Scenario) -> None:
    level("""
        x, y = jitblas.array(np.ones(5, "float32")), jitblas.zeros(5)
        with jitblas.Handle(stream=0) as handle:
            succeeds(handle, x, y)
            handle.synchronize()
            assert (y.numpy() == 1).all()
    """)


def test_a_workspace_of_the_users(level: Scenario) -> None:
    level("""
        memory = jitblas.empty(1000)
        handle = aclblas.aclblasCreate()
        assert aclblas.aclblasSetWorkspace(handle, memory, 4000) is Status.SUCCESS
        assert handle.workspace.reserve(4000) == memory.address
        assert "8000" in refused(Status.ALLOC_FAILED, handle.workspace.reserve, 8000)
        assert aclblas.aclblasSetWorkspace(handle, memory, 4001) is Status.INVALID_VALUE
        assert aclblas.aclblasSetWorkspace(handle, None, 1) is Status.INVALID_VALUE
        assert aclblas.aclblasDestroy(handle) is Status.SUCCESS
    """)


def test_a_kernel_that_fails_and_one_that_cannot_be_compiled(level: Scenario, empty_store: str) -> None:
    level(
        """
        x, memory = jitblas.zeros(5), np.zeros(5, "float32")
        handle = aclblas.aclblasCreate()
        succeeds(handle, memory.ctypes.data, x)  # a promise that is not kept
        refused(Status.EXECUTION_FAILED, handle.synchronize)
        succeeds(handle, memory.ctypes.data, x)
        assert aclblas.aclblasDestroy(handle) is Status.EXECUTION_FAILED
        assert "vector core exception" in jitblas.last_error()

        handle = aclblas.aclblasCreate()
        os.environ["STANDIN_BISHENG_FAILS"] = "no such register"
        assert "no such register" in answers(Status.INTERNAL_ERROR, handle, x, x, n=2, incx=2)
        del os.environ["STANDIN_BISHENG_FAILS"]
        os.environ["STANDIN_BISHENG_FLAGS"] = "0x930000"
        memory = jitblas.zeros(5, "bf16")
        message = answers(Status.ARCH_MISMATCH, handle, memory, memory, xType=B, yType=B)
        assert "910 family" in message and "--npu-arch=dav-3510" in message
        succeeds(handle, x, x)
        assert aclblas.aclblasDestroy(handle) is Status.SUCCESS
    """,
        JITBLAS_CACHE_DIR=empty_store,
    )
