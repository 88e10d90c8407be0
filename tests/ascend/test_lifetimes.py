"""How long arrays, streams and handles live on ascend950pr, and that nothing is left behind."""

from __future__ import annotations

import pytest

from tests.ascend.conftest import Scenario

SLOW = {"STANDIN_DELAY_US": "50000"}  # every task of a stream takes this much longer


# ---- lifetimes -------------------------------------------------------------------------------------------------------


def test_arrays_live_until_their_launch_is_complete(scenario: Scenario) -> None:
    code = """
        y = jitblas.zeros(1000)
        alpha = jitblas.array([1.0], "fp32")
        jitblas.axpy_ex(alpha, y, y)
        jitblas.axpy_ex(1.0, y, y)
        for value in (1, 2, 3, 4):
            jitblas.axpy_ex(1.0, jitblas.array(np.full(1000, value, "float32")), y)
            jitblas.axpy_ex(jitblas.array([10.0 * value], "fp32"), jitblas.array(np.ones(1000, "float32")), y)
            gc.collect()
        assert (y.numpy() == 110).all()
    """
    scenario(code, STANDIN_DELAY_US="20000", STANDIN_PINNED="1")


CHANGES = {
    "another stream": "handle.set_stream(None)",
    "destroyed": "handle.destroy()",
    "dropped": "del handle",
}


@pytest.mark.parametrize("change", list(CHANGES))
def test_arrays_outlive_the_handle_that_used_them_on_a_borrowed_stream(scenario: Scenario, change: str) -> None:
    code = f"""
        address = raw_stream()
        x, y = jitblas.array(np.ones(1000, "float32")), jitblas.zeros(1000)
        jitblas.axpy_ex(1.0, x, y)  # compiled and prepared
        y.numpy()
        handle = jitblas.Handle(stream=address)
        for _ in range(4):
            jitblas.axpy_ex(1.0, x, y, handle=handle)
        {CHANGES[change]}
        del x, y
        gc.collect()
        acl = raw()
        code = acl.aclrtSynchronizeStream(ctypes.c_void_p(address))
        acl.aclGetRecentErrMsg.restype = ctypes.c_char_p
        assert code == 0, acl.aclGetRecentErrMsg()
        destroy_raw_stream(address)
        gc.collect()
    """
    scenario(code, **SLOW)


def test_a_copy_of_overlapping_operands_outlives_a_compile_error(scenario: Scenario, empty_store: str) -> None:
    code = """
        memory = jitblas.array(np.arange(4000, dtype="float32"))
        jitblas.axpy_ex(1.0, memory[0:64], memory[64:128])
        os.environ["STANDIN_BISHENG_FAILS"] = "not today"
        try:
            jitblas.axpy_ex(1.0, memory[0:128:2], memory[0:64])
        except jitblas.CompileError:
            pass
        else:
            raise AssertionError("no error")
        gc.collect()
        time.sleep(0.2)
        expected = np.arange(4000, dtype="float32")
        expected[64:128] += expected[0:64]
        assert (memory.numpy() == expected).all()
    """
    scenario(code, JITBLAS_CACHE_DIR=empty_store, **SLOW)


def test_dropped_handles_leave_nothing(scenario: Scenario) -> None:
    scenario("""
        for _ in range(3):
            handle = jitblas.Handle()
            x = jitblas.array(np.ones(100, "float32"))
            jitblas.axpy_ex(1.0, x, x, handle=handle)
            handle.workspace.reserve(100)
        del handle
    """)


def test_what_is_alive_at_exit_is_given_back(scenario: Scenario) -> None:
    code = """
        handle, stream = jitblas.Handle(), jitblas.Stream()
        x = jitblas.array(np.ones(100, "float32"))
        event = handle.stream.record()
        handle.workspace.reserve(1000)
        kept_by_a_cycle = [x, jitblas.Stream()]
        kept_by_a_cycle.append(kept_by_a_cycle)
        plan = jitblas.plan("axpy_ex:n=100")
        plan(1.0, x, x)
        jitblas.axpy_ex(1.0, x, x, handle=handle)
    """
    scenario(code, STANDIN_DELAY_US="20000")


# ---- streams and threads ---------------------------------------------------------------------------------------------


def test_threads_have_streams_of_their_own(scenario: Scenario) -> None:
    scenario("""
        failures, streams = [], set()
        def work(seed):
            try:
                x, y = numbers("fp16", 3000, seed), numbers("fp16", 3000, seed + 100)
                dx, dy = jitblas.array(x), jitblas.array(y)
                expected = y
                for step in (1, 2, -1):
                    jitblas.axpy_ex(1.5, dx[::step], dy[::step])
                    expected = expected.copy()
                    expected[::step] = axpy(1.5, x[::step], expected[::step])
                assert_same_bits(dy.numpy(), expected)
                assert_same_bits(jitblas.axpy_ex(1.5, x, y.copy()), axpy(1.5, x, y))
                from jitblas.handle import default_handle
                streams.add(default_handle().stream.address)
                barrier.wait()
            except BaseException as error:
                failures.append(error)
                barrier.abort()
        barrier = threading.Barrier(6)
        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        assert not failures, failures
        assert len(streams) == 6
    """)


def test_a_kernel_that_fails_is_heard_of_at_the_next_wait_and_once(scenario: Scenario) -> None:
    code = """
        x = jitblas.zeros(100)
        memory, F = np.zeros(100, "float32"), aclblas.ACL_FLOAT
        host = memory.ctypes.data
        for wait in ("synchronize", "destroy"):
            handle = jitblas.Handle()
            status = aclblas.aclblasAxpyEx(
                handle, 100, ctypes.c_float(1), F, host, F, 1, x, F, 1, F)
            assert status is Status.SUCCESS
            message = refused(Status.EXECUTION_FAILED, getattr(handle, wait))
            assert "vector core exception" in message and "507035" in message, message
            getattr(handle, wait)()
            if wait == "synchronize":
                jitblas.axpy_ex(1.0, x, x, handle=handle)
                handle.synchronize()
                handle.destroy()
        assert (x.numpy() == 0).all()
    """
    scenario(code, STANDIN_DELAY_US="10000")


def test_a_stream_in_use_by_a_handle_cannot_be_destroyed(scenario: Scenario) -> None:
    scenario("""
        stream = jitblas.Stream("ascend950pr")
        handle = jitblas.Handle(stream=stream)
        assert "1 handle" in refused(Status.INVALID_VALUE, stream.destroy)
        handle.destroy()
        stream.destroy()
        refused(Status.INVALID_VALUE, jitblas.Handle, stream=stream)
    """)


def test_collected_streams_do_not_lock_the_runtime(scenario: Scenario) -> None:
    """The collector may run between any two lines, also inside the runtime, and find streams to destroy."""
    scenario("""
        import faulthandler
        faulthandler.dump_traceback_later(10, exit=True)

        def collecting(frame, event, argument):
            if event == "line" and streams:
                cycle = [streams.pop()]
                cycle.append(cycle)
                del cycle
                gc.collect(0)
            return collecting

        def trace(frame, event, argument):
            return collecting if "/runtime/acl" in frame.f_code.co_filename else None

        x = jitblas.array(np.ones(100, "float32"))
        jitblas.axpy_ex(1.0, x, x)
        gc.collect()
        gc.disable()
        for call in (x.numpy, jitblas.Stream, lambda: jitblas.axpy_ex(1.0, x, x), lambda: jitblas.zeros(3)):
            streams = [jitblas.Stream() for _ in range(30)]
            sys.settrace(trace)
            call()
            sys.settrace(None)
            assert len(streams) < 30
    """)
