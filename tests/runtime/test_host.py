"""The host runtime: streams, events, forks, the end of a process, threads, and who keeps what alive."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from typing import Any

import numpy as np
import pytest

import jitblas
from jitblas import Status
from jitblas.jit.kernels import runtime_for
from tests.kernels.build import Gate
from tests.operands import refused
from tests.reference import assert_same_bits, axpy, numbers

LARGE = 300_000


def add(stream: jitblas.Stream, x: Any, y: Any) -> None:
    """y += x on a stream, without waiting (y is a DeviceArray), by a handle that moves on."""
    handle = jitblas.Handle("host", stream=stream)
    jitblas.axpy_ex(1.0, x, y, handle=handle)
    handle.set_stream(None)
    handle.destroy()


# ---- Streams --------------------------------------------------------------------------------------------------------


def test_a_stream_keeps_order_and_streams_do_not_wait_for_each_other() -> None:
    held, free = jitblas.Stream("host"), jitblas.Stream("host")
    a, b = jitblas.zeros(4), jitblas.zeros(4)
    with Gate(held):
        add(held, np.ones(4, "f4"), a)
        add(free, np.ones(4, "f4"), b)
        free.synchronize()
        assert b.view.tolist() == [1] * 4
        assert a.view.tolist() == [0] * 4
    held.synchronize()
    assert a.view.tolist() == [1] * 4


def test_many_streams_run_at_once_and_each_in_its_own_order() -> None:
    count = 24
    streams = [jitblas.Stream("host") for _ in range(count)]
    handles = [jitblas.Handle("host", stream=stream) for stream in streams]
    arrays = [jitblas.array(numbers("fp32", 20_000, seed)) for seed in range(count)]
    expected = [numbers("fp32", 20_000, seed) for seed in range(count)]
    for step in range(12):
        for handle, array in zip(handles, arrays, strict=True):
            jitblas.axpy_ex(0.5 + step, array, array, handle=handle)
        expected = [axpy(0.5 + step, y, y) for y in expected]
    for stream, array, wanted in zip(streams, arrays, expected, strict=True):
        stream.synchronize()
        assert_same_bits(array.view, wanted)
    for handle in handles:
        handle.destroy()


def test_handles_of_different_threads_are_independent() -> None:
    wrong: list[Any] = []

    def work(seed: int) -> None:
        for n in (10, 5000, LARGE):
            x, y = numbers("fp16", n, seed), numbers("fp16", n, seed + 100)
            expected = axpy(seed, x, y)
            jitblas.axpy_ex(float(seed), x, y)
            if not np.array_equal(y.view("u2"), expected.view("u2")):
                wrong.append((seed, n))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_stream_destroyed_waits_for_its_work() -> None:
    stream = jitblas.Stream("host")
    y = jitblas.zeros(LARGE)
    for _ in range(10):
        add(stream, y, y)
        add(stream, np.ones(LARGE, "f4"), y)
    stream.destroy()
    assert (y.view == 2**10 - 1).all()
    stream.destroy()
    for use in (stream.synchronize, stream.record, lambda: stream.address):
        assert "destroyed" in refused(Status.INVALID_VALUE, use)


def test_a_stream_destroyed_before_its_handle_is_an_error_and_no_crash() -> None:
    stream = jitblas.Stream("host")
    handle = jitblas.Handle("host", stream=stream)
    assert "1 handle(s) still use" in refused(Status.INVALID_VALUE, stream.destroy)
    y = np.zeros(4, "f4")
    jitblas.axpy_ex(1.0, np.ones(4, "f4"), y, handle=handle)
    assert (y == 1).all()
    handle.destroy()
    stream.destroy()
    refused(Status.INVALID_VALUE, lambda: jitblas.Handle("host", stream=stream))


def test_a_handle_that_moves_on_frees_its_stream_for_destruction() -> None:
    first, second = jitblas.Stream("host"), jitblas.Stream("host")
    with jitblas.Handle("host", stream=first) as handle:
        handle.set_stream(second)
        first.destroy()
        refused(Status.INVALID_VALUE, second.destroy)
        handle.set_stream(None)
        second.destroy()
        assert handle.stream not in (first, second)


def test_streams_given_by_address_are_used_and_not_destroyed() -> None:
    owner = jitblas.Stream("host")

    class Foreign:
        _as_parameter_ = owner.address

    class FromTorch:
        npu_stream = owner.address

    for borrowed in (owner.address, Foreign(), FromTorch()):
        y = jitblas.zeros(4)
        with jitblas.Handle("host", stream=borrowed) as handle:
            assert handle.stream is owner
            jitblas.axpy_ex(1.0, np.ones(4, "f4"), y, handle=handle)
        owner.synchronize()
        assert y.view.tolist() == [1] * 4
    owner.destroy()


@pytest.mark.parametrize("wrong", ["stream", 1.5, True, object(), [1]])
def test_what_is_no_stream_is_a_type_error(wrong: Any) -> None:
    with pytest.raises(TypeError, match="accepted are"):
        jitblas.Handle("host", stream=wrong)


def test_a_stream_of_another_target_is_refused() -> None:
    stream = jitblas.Stream("host")
    stream.target = "ascend950pr"
    assert "ascend950pr" in refused(Status.INVALID_VALUE, lambda: jitblas.Handle("host", stream=stream))
    with jitblas.Handle("host") as handle:
        refused(Status.INVALID_VALUE, lambda: handle.set_stream(stream))
        foreign = jitblas.zeros(4)
        foreign._memory.target = "ascend950pr"
        said = refused(Status.INVALID_VALUE, lambda: jitblas.axpy_ex(1.0, foreign, jitblas.zeros(4), handle=handle))
        assert "ascend950pr" in said


@pytest.mark.parametrize("target", ["gpu", "", "HOST"])
def test_unknown_targets_are_refused_with_the_known_ones(target: str) -> None:
    for make in (jitblas.Handle, jitblas.Stream):
        with pytest.raises(ValueError, match="ascend950pr, host"):
            make(target)


# ---- Events ---------------------------------------------------------------------------------------------------------


def test_an_event_is_reached_when_what_came_before_is_done() -> None:
    stream = jitblas.Stream("host")
    with Gate(stream):
        event = stream.record()
        assert not event.complete
        time.sleep(0.02)
        assert not event.complete
    event.synchronize()
    assert event.complete
    stream.synchronize()
    assert stream.record().complete


def test_times_between_events_are_the_work_s() -> None:
    stream = jitblas.Stream("host")
    with Gate(stream):
        start = stream.record()
        refused(Status.INVALID_VALUE, lambda: start.elapsed_ms(start))
    begun = time.perf_counter()
    with Gate(stream):
        time.sleep(0.05)
    end = stream.record()
    end.synchronize()
    elapsed = end.elapsed_ms(start)
    assert 40 < elapsed < 1e3 * (time.perf_counter() - begun) + 1000
    assert start.elapsed_ms(start) == 0
    assert start.elapsed_ms(end) == -elapsed


def test_events_may_be_destroyed_before_they_are_reached() -> None:
    stream = jitblas.Stream("host")
    with Gate(stream):
        events = [stream.record() for _ in range(100)]
        first = events[0]
        first.destroy()
        first.destroy()
        refused(Status.INVALID_VALUE, lambda: first.complete)
        del events
        gc.collect()
    stream.synchronize()


def test_an_event_recorded_on_two_streams_is_reached_by_its_last_recording() -> None:
    """Whatever the order in which the streams get there."""
    runtime = runtime_for("host")
    busy, idle = jitblas.Stream("host"), jitblas.Stream("host")
    event = runtime.create_event()
    with Gate(busy):
        runtime.record_event(event, busy.address)
        runtime.record_event(event, idle.address)
        runtime.synchronize_event(event)
    busy.synchronize()
    assert runtime.event_complete(event)
    runtime.synchronize_event(event)
    runtime.destroy_event(event)


# ---- Keeping alive --------------------------------------------------------------------------------------------------


def test_arrays_are_kept_until_the_launch_is_done() -> None:
    handle = jitblas.Handle("host")
    x, y = jitblas.array(np.ones(1000, "f4")), jitblas.zeros(1000)
    scalar = jitblas.array([3.0], "fp32")
    alive = [weakref.ref(array) for array in (x, y, scalar)]
    with Gate(handle.stream):
        jitblas.axpy_ex(scalar, x, y, handle=handle)
        del x, y, scalar
        gc.collect()
        assert [reference() is None for reference in alive] == [False] * 3
    handle.synchronize()
    gc.collect()
    assert [reference() is None for reference in alive] == [True] * 3


def test_arrays_of_finished_launches_are_let_go_without_a_synchronise() -> None:
    handle = jitblas.Handle("host")
    first = jitblas.zeros(LARGE)
    alive = weakref.ref(first)
    jitblas.axpy_ex(1.0, first, first, handle=handle)
    del first
    handle.stream.record().synchronize()
    for _ in range(3):
        jitblas.axpy_ex(1.0, jitblas.zeros(LARGE), jitblas.zeros(LARGE), handle=handle)
        handle.stream.record().synchronize()
    gc.collect()
    assert alive() is None


def test_views_keep_their_memory_alive() -> None:
    view = jitblas.array(np.arange(100, dtype="f4"))[10:20:3]
    gc.collect()
    assert view.numpy().tolist() == [10, 13, 16, 19]


# ---- Device memory --------------------------------------------------------------------------------------------------


def test_addresses_inside_allocations_are_device_pointers_and_others_are_not() -> None:
    runtime = runtime_for("host")
    array = jitblas.empty(128)
    inside = [array.address, array.address + 1, array.address + 511]
    outside = [array.address - 1, array.address + 512, 0, np.zeros(4).ctypes.data]
    assert [runtime.is_device_pointer(address) for address in inside + outside] == [True] * 3 + [False] * 4
    address = array.address
    del array
    gc.collect()
    assert not runtime.is_device_pointer(address)


@pytest.mark.parametrize("dtype", ["fp32", "fp16", "bf16", "fp64", "c64", "c128", np.float32, "float16"])
def test_device_arrays_hold_what_they_were_given(dtype: Any) -> None:
    values = np.arange(12).reshape(3, 4)
    array = jitblas.array(values, dtype)
    assert (array.shape, array.size, len(array)) == ((3, 4), 12, 3)
    assert (array.numpy().real.astype("f8") == values).all()
    assert (array[::-1, 1:].numpy().real.astype("f8") == values[::-1, 1:]).all()
    assert (jitblas.zeros((2, 3), dtype).numpy().real.astype("f8") == 0).all()
    assert jitblas.zeros(0, dtype).numpy().shape == (0,)


def test_device_arrays_refuse_what_leaves_no_view_and_unknown_types() -> None:
    array = jitblas.zeros(10)
    for index in (3, [1, 2], np.array([True] * 10)):
        with pytest.raises(TypeError, match="slices"):
            array[index]
    refused(Status.NOT_SUPPORTED, lambda: jitblas.zeros(3, "int7"))
    refused(Status.NOT_SUPPORTED, lambda: jitblas.zeros(3, np.int32))


def test_more_memory_than_there_is_is_an_error() -> None:
    with pytest.raises((jitblas.StatusError, MemoryError, ValueError)):
        jitblas.empty(2**58)


# ---- Processes ------------------------------------------------------------------------------------------------------

FORK = """
import os, sys, threading, numpy as np, jitblas
from tests.kernels.build import Gate
x = np.arange(300_000, dtype="f4")
def compute():
    y = np.ones(300_000, "f4")
    jitblas.axpy_ex(2.0, x, y)
    return (y == 2 * x + 1).all()
assert compute()
busy = jitblas.Handle("host")
target = jitblas.zeros(300_000)
gate = Gate(busy.stream)
jitblas.axpy_ex(1.0, x, target, handle=busy)
event = busy.stream.record()
child = os.fork()
if child == 0:
    try:
        assert compute()
        event.synchronize()  # nobody will reach it here: it must not hang
        busy.synchronize()
        mine = jitblas.zeros(300_000)
        jitblas.axpy_ex(1.0, x, mine, handle=busy)
        busy.synchronize()
        assert (mine.numpy() == x).all()
        results = []
        threads = [threading.Thread(target=lambda: results.append(compute())) for _ in range(4)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        assert results == [True] * 4
        ENDING
    except BaseException as error:
        print(repr(error), file=sys.stderr, flush=True)
        os._exit(1)
_, status = os.waitpid(child, 0)
gate.open()
busy.synchronize()
print(status, bool((target.numpy() == x).all()), bool(compute()))
"""


@pytest.mark.parametrize("ending", ["os._exit(0)", "sys.exit(0)"])
def test_a_forked_child_computes_while_the_parent_s_stream_is_busy(python: Any, ending: str) -> None:
    if ending == "sys.exit(0)":
        code = FORK.replace("ENDING", "pass").replace("_, status = ", "if child == 0: sys.exit(0)\n_, status = ")
    else:
        code = FORK.replace("ENDING", ending)
    answer = python(code, timeout=30)
    assert (answer.stdout, answer.stderr) == ("0 True True\n", "")


def test_forks_while_threads_compute_work(python: Any) -> None:
    code = """
import os, threading, numpy as np, jitblas
jitblas.axpy_ex(1.0, np.ones(9, "f4"), np.ones(9, "f4"))
stop = threading.Event()
def work():
    x, y = np.ones(200_000, "f4"), np.zeros(200_000, "f4")
    while not stop.is_set():
        jitblas.axpy_ex(1.0, x, y)
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads: thread.start()
statuses = []
for _ in range(15):
    child = os.fork()
    if child == 0:
        y = np.zeros(200_000, "f4")
        jitblas.axpy_ex(2.0, np.ones(200_000, "f4"), y)
        os._exit(0 if (y == 2).all() else 1)
    statuses.append(os.waitpid(child, 0)[1])
stop.set()
for thread in threads: thread.join()
print(statuses == [0] * 15)
"""
    assert python(code, timeout=40).stdout == "True\n"


EXITS = {
    "the end of the code": "",
    "sys.exit": "import sys; sys.exit(0)",
    "with a thread that waits": "import threading; threading.Thread(target=handle.synchronize).start()",
    "with the handle gone": "del handle",
    "with everything gone": "del handle, x, y",
}


@pytest.mark.parametrize("way", list(EXITS))
def test_exit_with_work_pending_is_clean(python: Any, way: str) -> None:
    code = """
import numpy as np, jitblas
handle = jitblas.Handle("host")
x, y = jitblas.array(np.ones(2_000_000, "f4")), jitblas.zeros(2_000_000)
for _ in range(30):
    jitblas.axpy_ex(1.0, x, y, handle=handle)
event = handle.stream.record()
"""
    answer = python(code + EXITS[way], timeout=30)
    assert (answer.stdout, answer.stderr) == ("", "")


def test_launches_after_shutdown_run_on_their_caller(python: Any) -> None:
    code = """
import os, time, numpy as np, jitblas
from jitblas.jit.kernels import runtime_for
handle = jitblas.Handle("host")
y = jitblas.zeros(300_000)
x = jitblas.array(np.ones(300_000, "f4"))
jitblas.axpy_ex(1.0, x, y, handle=handle)
runtime = runtime_for("host")
runtime.shutdown()
assert (y.view == 1).all()
runtime.shutdown()
jitblas.axpy_ex(1.0, x, y, handle=handle)
assert (y.view == 2).all()
z = np.zeros(300_000, "f4")
jitblas.axpy_ex(1.0, np.ones(300_000, "f4"), z)
late = jitblas.Stream("host")
with jitblas.Handle("host", stream=late) as other:
    jitblas.axpy_ex(1.0, x, y, handle=other)
event = late.record()
assert event.complete and (y.view == 3).all() and (z == 1).all()
late.destroy()
deadline = time.monotonic() + 5  # a thread's last instructions come after it has said goodbye
while len(os.listdir("/proc/self/task")) > 1 and time.monotonic() < deadline:
    time.sleep(0.001)
print(len(os.listdir("/proc/self/task")))
"""
    assert python(code, timeout=30, OPENBLAS_NUM_THREADS="1").stdout == "1\n"


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_no_more_threads_run_than_were_asked_for(python: Any, threads: int) -> None:
    code = """
import os, numpy as np, jitblas
x, y = np.ones(3_000_000, "f4"), np.zeros(3_000_000, "f4")
before = len(os.listdir("/proc/self/task"))
for _ in range(3):
    jitblas.axpy_ex(1.0, x, y)
assert (y == 3).all()
print(len(os.listdir("/proc/self/task")) - before)
"""
    answer = python(code, JITBLAS_THREADS=str(threads), OPENBLAS_NUM_THREADS="1")
    assert int(answer.stdout) == threads - 1


def test_the_default_is_what_affinity_allows(python: Any) -> None:
    code = """
import os
from jitblas import config
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
print(config.threads())
"""
    assert python(code, JITBLAS_THREADS=None).stdout == "1\n"


def test_forks_while_other_threads_allocate_leave_usable_children(python: Any) -> None:
    python("""
import os, threading, jitblas
stop = threading.Event()
def allocate():
    while not stop.is_set():
        jitblas.empty(10)
jitblas.empty(10)
threads = [threading.Thread(target=allocate) for _ in range(3)]
for thread in threads:
    thread.start()
for _ in range(60):
    pid = os.fork()
    if pid == 0:
        jitblas.empty(10)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
stop.set()
for thread in threads:
    thread.join()
""")
