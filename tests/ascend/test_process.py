"""The process around the calls: torch_npu's stream, forks, threads that end, what is alive at exit."""

from __future__ import annotations

import pytest

from tests.ascend.conftest import CLEAN, Scenario

TORCH = """
import types

def torch_npu(address):
    '''What jitblas may ask of torch_npu.'''
    module = types.ModuleType("torch_npu")
    module.current = types.SimpleNamespace(npu_stream=address)
    module.npu = types.SimpleNamespace(current_stream=lambda: module.current)
    sys.modules["torch_npu"] = module
    return module

def idle(address):
    state = ctypes.c_int(-1)
    assert raw().aclrtStreamQuery(ctypes.c_void_p(address), ctypes.byref(state)) == 0
    return state.value == 0
"""


def plain(code: str) -> str:
    """Code of a test's indentation, to stand after code that has none."""
    return code.replace("\n        ", "\n")


# ---- torch_npu -------------------------------------------------------------------------------------------------------


def test_the_current_stream_of_torch_npu_is_used(scenario: Scenario) -> None:
    code = """
        address = raw_stream()
        torch_npu(address)
        x, y = jitblas.array(np.ones(100, "float32")), jitblas.zeros(100)
        jitblas.axpy_ex(1.0, x, y)
        raw().aclrtSynchronizeStream(ctypes.c_void_p(address))
        jitblas.axpy_ex(1.0, x, y)
        assert not idle(address)
        assert (y.numpy() == 2).all()
        with jitblas.Handle() as handle:
            assert handle.stream.address == address and handle.stream.borrowed
        with jitblas.Handle("host") as handle:
            assert handle.stream.address != address
        handle = aclblas.aclblasCreate()
        assert aclblas.aclblasGetStream(handle).address == address
        own = jitblas.Stream()
        assert own.address != address
        handle.set_stream(own)
        handle.set_stream(None)
        assert handle.stream.address == address
        handle.destroy()
        assert (jitblas.axpy_ex(1.0, np.ones(3, "float32"), np.ones(3, "float32")) == 2).all()
    """
    scenario(TORCH + plain(code), report=CLEAN.replace("streams: 0", "streams: 1"), STANDIN_DELAY_US="30000")


def test_calls_without_a_handle_follow_torch_npus_current_stream(scenario: Scenario) -> None:
    """`with torch.npu.stream(s):` moves torch's work to another stream; what is called in there goes along."""
    code = """
        x, y = jitblas.array(np.ones(100, "float32")), jitblas.zeros(100)
        jitblas.axpy_ex(1.0, x, y)  # before torch_npu was imported
        y.numpy()
        first, second = raw_stream(), raw_stream()
        module = torch_npu(first)
        for address in (first, second, first):
            module.current = types.SimpleNamespace(npu_stream=address)
            jitblas.axpy_ex(1.0, x, y)
            assert not idle(address), address
            raw().aclrtSynchronizeStream(ctypes.c_void_p(address))
        assert (y.numpy() == 4).all()
    """
    scenario(TORCH + plain(code), report=CLEAN.replace("streams: 0", "streams: 2"), STANDIN_DELAY_US="30000")


def test_tensors_on_the_chip_are_used_where_they_are(scenario: Scenario) -> None:
    code = """
        torch = types.ModuleType("torch")

        class Tensor:
            '''As much of a torch tensor on an NPU as is asked for.'''
            requires_grad = False
            layout = "torch.strided"
            def is_neg(self): return False
            is_conj = is_neg
            def __init__(self, array):
                self.array, self.dtype = array, "torch.float32"
                self.device = types.SimpleNamespace(type="npu")
                self.shape = array.shape
            def dim(self): return 1
            def stride(self, axis=None):
                step = self.array.view.strides[0] // 4
                return (step,) if axis is None else step
            def numel(self): return self.array.size
            def element_size(self): return 4
            def data_ptr(self): return self.array.address

        torch.Tensor = Tensor
        sys.modules["torch"] = torch
        x, y = numbers("fp32", 300, 1), numbers("fp32", 300, 2)
        dy = jitblas.array(y)
        tx, ty = Tensor(jitblas.array(x)[::2]), Tensor(dy[50:200])
        assert jitblas.axpy_ex(2.0, tx, ty) is ty
        with jitblas.Handle() as handle:
            handle.synchronize()
            F, one = aclblas.ACL_FLOAT, ctypes.c_float(1)
            handle.runtime.synchronize_stream(__import__("jitblas.handle").handle.default_handle().stream.address)
            expected = y.copy()
            expected[50:200] = axpy(2.0, x[::2], expected[50:200])
            assert_same_bits(dy.numpy(), expected)
            assert aclblas.aclblasAxpyEx(handle, 150, one, F, tx, F, 2, ty, F, 1, F) is Status.SUCCESS
            assert aclblas.aclblasAxpyEx(handle, 151, one, F, tx, F, 2, ty, F, 1, F) is Status.INVALID_VALUE
            handle.synchronize()
            expected[50:200] = axpy(1.0, x[::2], expected[50:200])
            assert_same_bits(dy.numpy(), expected)
        refused(Status.INVALID_VALUE, jitblas.axpy_ex, 1.0, tx, ty, handle=jitblas.Handle("host"))
    """
    scenario(TORCH + plain(code))


# ---- forks -----------------------------------------------------------------------------------------------------------

CHILD = """
x, y = jitblas.array(np.ones(100, "float32")), jitblas.zeros(100)
host = np.ones(100, "float32")
alpha, F = ctypes.c_float(1), aclblas.ACL_FLOAT
handle, plan = jitblas.Handle(), jitblas.plan("axpy_ex:n=100", exact=False)
jitblas.axpy_ex(1.0, x, y)
jitblas.axpy_ex(1.0, host, host)
plan(1.0, x, y)
handle.synchronize()

def told(call, *arguments, **named):
    message = refused(Status.NOT_INITIALIZED, call, *arguments, **named)
    assert "does not survive a fork" in message and "spawn" in message and str(parent) in message, message

parent, pid = os.getpid(), os.fork()
if pid == 0:
    before = host.copy()
    told(jitblas.axpy_ex, 1.0, x, y)
    told(jitblas.axpy_ex, 1.0, host, host)
    told(jitblas.axpy_ex, 1.0, x, y, handle=handle)
    told(jitblas.array, [1.0])
    told(jitblas.Stream)
    told(jitblas.Handle)
    told(plan, 1.0, x, y)
    told(y.numpy)
    told(handle.synchronize)
    told(handle.stream.record)
    assert aclblas.aclblasAxpyEx(handle, 100, alpha, F, x, F, 1, y, F, 1, F) is Status.NOT_INITIALIZED
    assert "does not survive a fork" in jitblas.last_error()
    assert (host == before).all()
    del x, y, handle, plan
    gc.collect()
    sys.exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
assert (y.numpy() == 2).all()
jitblas.axpy_ex(1.0, x, y)
assert (y.numpy() == 3).all()
"""


def test_a_forked_child_is_told_so(scenario: Scenario) -> None:
    finished = scenario(CHILD)
    assert finished.stderr == ""


def test_a_forked_child_does_not_change_to_the_host_in_silence(scenario: Scenario) -> None:
    """The parent named the target, so the child is the first to ask for the default one."""
    scenario("""
        jitblas.Handle("ascend950pr").destroy()
        pid = os.fork()
        if pid == 0:
            y = np.ones(5, "float32")
            assert "does not survive a fork" in refused(Status.NOT_INITIALIZED, jitblas.axpy_ex, 1.0, y, y)
            sys.exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    """)


def test_a_fork_before_the_first_call_is_fine(scenario: Scenario) -> None:
    scenario("""
        jitblas.Handle, jitblas.axpy_ex  # imported, not used
        pid = os.fork()
        y = np.ones(5, "float32")
        assert (jitblas.axpy_ex(1.0, y, y) == 2).all()
        if pid != 0:
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    """)


def test_multiprocessing_with_spawn_works_beside_a_parent_that_uses_the_chip(scenario: Scenario) -> None:
    scenario("""
        import multiprocessing
        y = np.ones(5, "float32")
        assert (jitblas.axpy_ex(1.0, y, y) == 2).all()
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            assert pool.apply(jitblas.axpy_ex, (1.0, y, y)).tolist() == [4] * 5
    """)


# ---- ends ------------------------------------------------------------------------------------------------------------


def test_failed_work_at_exit_is_no_trouble(scenario: Scenario) -> None:
    code = """
        x, memory, F = jitblas.zeros(5), np.zeros(5, "float32"), aclblas.ACL_FLOAT
        streams = [jitblas.Stream() for _ in range(3)]
        handles = [jitblas.Handle(), *(jitblas.Handle(stream=stream) for stream in streams)]
        for handle in handles:
            for _ in range(2):
                status = aclblas.aclblasAxpyEx(
                    handle, 5, ctypes.c_float(1), F, memory.ctypes.data, F, 1, x, F, 1, F)
                assert status is Status.SUCCESS
        del handle, handles[1:]
    """
    finished = scenario(code, STANDIN_DELAY_US="20000")
    assert finished.stderr == ""


@pytest.mark.parametrize("kind", ["arrays", "staged", "failed"])
def test_threads_that_end_take_their_streams_along(scenario: Scenario, kind: str) -> None:
    code = """
        def work():
            y = np.ones(100, "float32")
            if kind != "staged":
                y = jitblas.array(y)
            jitblas.axpy_ex(1.0, y, y)
            if kind == "failed":
                from jitblas.handle import default_handle
                F = aclblas.ACL_FLOAT
                memory = np.zeros(100, "float32")
                aclblas.aclblasAxpyEx(
                    default_handle(), 100, ctypes.c_float(1), F, memory.ctypes.data, F, 1, y, F, 1, F)
        kind = sys.argv[1]
        for _ in range(5):
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
        gc.collect()
        text = ctypes.create_string_buffer(1000)
        raw().standin_report(text, ctypes.c_uint64(1000))
        assert b"streams: 0" in text.value and b"allocations: 0" in text.value, text.value
    """
    finished = scenario(code, kind)
    assert finished.stderr == ""


def test_a_borrowed_stream_that_was_destroyed_is_an_error_and_no_crash(scenario: Scenario) -> None:
    code = """
        address = raw_stream()
        x = jitblas.array(np.ones(5, "float32"))
        handle = jitblas.Handle(stream=address)
        jitblas.axpy_ex(1.0, x, x, handle=handle)
        destroy_raw_stream(address)
        for call in (handle.synchronize, handle.stream.record, handle.destroy):
            try:
                call()
            except StatusError as error:
                assert "is not a stream" in str(error), error
        with jitblas.Handle() as other:
            jitblas.axpy_ex(1.0, x, x, handle=other)
            other.synchronize()
    """
    finished = scenario(code, check=False)  # the stand-in complains, as it should
    assert (finished.returncode, finished.stderr) == (0, "")


def test_the_runtime_of_others_is_left_running(scenario: Scenario) -> None:
    """Who initialised the runtime before us finds it as it was, with the device that it chose."""
    code = """
        stream = raw_stream()
        acl = raw()
        assert acl.aclrtSetDevice(1) == 0
        y = jitblas.array(np.ones(5, "float32"))
        jitblas.axpy_ex(1.0, y, y)
        assert (y.numpy() == 2).all()
        device = ctypes.c_int32(-1)
        assert acl.aclrtGetDevice(ctypes.byref(device)) == 0 and device.value == 1
        with jitblas.Handle() as handle:
            assert handle.runtime.device == 1
        destroy_raw_stream(stream)
    """
    scenario(code, STANDIN_DEVICES="2")
