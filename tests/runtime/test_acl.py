"""The ACL runtime through ctypes, against a stand-in library (tests/standins) that is strict.

Each test runs in a process of its own: the library is loaded and initialised once per process.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from jitblas.toolchain.bisheng import Bisheng
from tests.standins.build import PROJECT, Cann, environment_with

PRELUDE = """
import ctypes, os, sys, threading, time
from jitblas.errors import ArchMismatch, Status, StatusError
from jitblas.runtime.acl import AclRuntime, availability, find_library

def refused(function, *arguments):
    try:
        function(*arguments)
    except StatusError as error:
        return error
    raise AssertionError("no error")

def put(runtime, stream, data):
    address = runtime.allocate(len(data))
    buffer = ctypes.create_string_buffer(data, len(data))
    runtime.copy_async(address, ctypes.addressof(buffer), len(data), "to_device", stream)
    return address

def get(runtime, stream, address, nbytes):
    buffer = ctypes.create_string_buffer(nbytes)
    runtime.copy_async(ctypes.addressof(buffer), address, nbytes, "to_host", stream)
    runtime.synchronize_stream(stream)
    return buffer.raw
"""
TILING = {
    "contiguous": "uint64_t n; uint64_t per_block; float alpha;",
    "strided": "uint64_t n; int64_t incx, incy; uint64_t per_block; uint32_t threads; float alpha;",
}
CLEAN = "streams: 0\nevents: 0\nallocations: 0\n"

Run = Callable[..., str]


@pytest.fixture
def run(cann: Cann, tmp_path: Path) -> Run:
    """Run code against the stand-in; returns what it printed. `report`: what the stand-in must have seen."""

    def run(code: str, *arguments: str, report: str | None = CLEAN, **settings: str) -> str:
        path = tmp_path / "report"
        text = PRELUDE + textwrap.dedent(code)
        finished = cann.python(text, *arguments, STANDIN_REPORT=str(path), **settings)
        assert finished.returncode == 0, finished.stderr
        if report is not None:
            assert path.read_text() == report
        return finished.stdout

    return run


@pytest.fixture(scope="session")
def axpy(cann: Cann, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """Compile an AXPY kernel with the stand-in compiler; returns the path of the shared object."""

    def compile(variant: str = "contiguous", element: str = "float", on_device: bool = False, tiling: str = "") -> str:
        folder = tmp_path_factory.mktemp("kernel")
        fields = tiling or TILING[variant]
        head = f"""\
#include <stdint.h>
#include "kernel_operator.h"
struct Tiling {{ {fields} }};
namespace spec {{
using Element = {element};
constexpr bool kAlphaOnDevice = {str(on_device).lower()};
constexpr uint32_t kTileElements = 2048;
constexpr uint32_t kMaxThreads = 1024;
}}
"""
        kernels = PROJECT / "kernels_src"
        (folder / "kernel.cpp").write_text(head + (kernels / "axpy_ex" / f"{variant}.asc").read_text())
        toolchain = Bisheng().probe((str(cann.bisheng),), str(folder))
        argv = toolchain.command(
            "kernel.cpp", "kernel.so", include=[str(kernels)], define={"JITBLAS_KEY": '"what/how"'}
        )
        made = subprocess.run(argv, cwd=folder, env=dict(cann.environment), capture_output=True, text=True)
        assert made.returncode == 0, made.stderr
        return str(folder / "kernel.so")

    return compile


# ---- finding it


def test_importing_loads_no_library(cann: Cann) -> None:
    code = "import jitblas.runtime.acl; print('libascendcl' in open('/proc/self/maps').read())"
    assert cann.python(code).stdout == "False\n"


def test_without_a_toolkit_the_answer_is_a_quick_no() -> None:
    code = PRELUDE + textwrap.dedent("""
        start = time.perf_counter()
        found, why = availability()
        assert time.perf_counter() - start < 0.01
        assert not found and "ASCEND_HOME_PATH" in why and "set_env.sh" in why, why
        assert find_library() is None
        assert threading.active_count() == 1 and len(os.listdir("/proc/self/task")) == 1
        error = refused(AclRuntime)
        assert error.status is Status.NOT_INITIALIZED and "libascendcl.so" in error.message
    """)
    environment = {**environment_with(None), "PYTHONPATH": str(PROJECT)}
    finished = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr


def test_the_library_is_found_in_the_toolkit_and_by_name(cann: Cann, run: Run, tmp_path: Path) -> None:
    assert run("print(find_library())", report=None) == f"{cann.library}\n"
    library_path = str(cann.library.parent)
    code = "print(find_library()); AclRuntime()"
    assert run(code, ASCEND_HOME_PATH=str(tmp_path), LD_LIBRARY_PATH=library_path) == "libascendcl.so\n"
    assert run(code, ASCEND_HOME_PATH="", LD_LIBRARY_PATH=library_path) == "libascendcl.so\n"


@pytest.mark.parametrize(
    ("settings", "answer"),
    [
        ({}, "True Ascend950PR_9579: 1 of 1 devices have architecture 3510"),
        ({"STANDIN_DEVICES": "8"}, "True Ascend950PR_9579: 8 of 8 devices have architecture 3510"),
        ({"STANDIN_DEVICES": "0"}, "False the CANN runtime answers but shows no device: see npu-smi"),
        (
            {"STANDIN_ARCHITECTURE": "2201", "STANDIN_SOC": "Ascend910B1"},
            "False Ascend910B1: architecture 2201, kernels are for 3510 (Ascend 950)",
        ),
        ({"STANDIN_FAIL": "aclInit:0"}, "False ACL error 507000: aclInit fails because"),
        ({"STANDIN_FAIL": "aclrtGetDeviceInfo:1"}, "False ACL error 507000: aclrtGetDeviceInfo fails"),
    ],
)
def test_availability_says_what_answers(settings: dict[str, str], answer: str, run: Run) -> None:
    assert run("print(*availability())", report=None, **settings).startswith(answer)


@pytest.mark.parametrize("content", [b"", b"\x7fELF and nothing more"])
def test_a_damaged_library_is_told_and_not_fatal(content: bytes, tmp_path: Path, run: Run) -> None:
    (tmp_path / "lib64").mkdir()
    (tmp_path / "lib64" / "libascendcl.so").write_bytes(content)
    printed = run("print(*availability())", report=None, ASCEND_HOME_PATH=str(tmp_path))
    assert printed.startswith(f"False {tmp_path}/lib64/libascendcl.so cannot be used (") and "driver" in printed


def test_another_owner_in_the_process_may_initialise_first(run: Run) -> None:
    run("""
        theirs = ctypes.CDLL(find_library())
        assert theirs.aclInit(None) == 0
        assert AclRuntime().create_stream()
    """, report="streams: 1\nevents: 0\nallocations: 0\n")  # fmt: skip


# ---- the device


def test_the_profile_has_the_cores_of_the_device(run: Run) -> None:
    run("""
        from jitblas.hardware import PROFILES
        runtime = AclRuntime()
        profile = runtime.profile()
        assert profile.vector_cores == 72 and profile.ub_bytes == PROFILES["ascend950pr"].ub_bytes
        assert runtime.soc_name == "Ascend950PR_9599" and runtime.target == "ascend950pr"
        assert not runtime.shares_host_memory
    """, STANDIN_VECTOR_CORES="72", STANDIN_SOC="Ascend950PR_9599")  # fmt: skip


def test_another_chip_is_refused(run: Run) -> None:
    code = "error = refused(AclRuntime); assert isinstance(error, ArchMismatch); print(error)"
    printed = run(code, STANDIN_ARCHITECTURE="2201")
    assert "3510" in printed and "device 0 has architecture 2201" in printed
    assert "there is no device" in run(code, STANDIN_DEVICES="0")


def test_the_current_device_of_the_thread_is_kept(run: Run) -> None:
    run("""
        theirs = ctypes.CDLL(find_library())
        theirs.aclInit(None)
        theirs.aclrtSetDevice(2)
        runtime = AclRuntime()
        assert runtime.device == 2
        runtime.destroy_stream(runtime.create_stream())
    """, STANDIN_DEVICES="4")  # fmt: skip


def test_every_thread_gets_the_device(run: Run) -> None:
    run("""
        runtime = AclRuntime()
        assert runtime.device == 0
        failures = []
        def use():
            try:
                stream = runtime.create_stream()
                address = put(runtime, stream, b"text")
                assert get(runtime, stream, address, 4) == b"text"
                runtime.release(address)
                runtime.destroy_stream(stream)
            except BaseException as error:
                failures.append(error)
        threads = [threading.Thread(target=use) for _ in range(8)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        assert not failures, failures
    """)


def test_the_runtime_starts_once_when_threads_race_for_it(run: Run) -> None:
    run("""
        runtimes = []
        barrier = threading.Barrier(8)
        def start():
            barrier.wait()
            runtimes.append(AclRuntime())
        threads = [threading.Thread(target=start) for _ in range(8)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        assert len(runtimes) == 8
    """)


def test_a_forked_child_gets_a_clear_error(run: Run) -> None:
    run("""
        runtime = AclRuntime()
        stream = runtime.create_stream()
        child = os.fork()
        if child == 0:
            launch = lambda: runtime.launch_stream(stream, wait=False, small=False, overlapping=False)
            wait = lambda: runtime.synchronize_stream(stream)
            for attempt in (AclRuntime, runtime.create_stream, wait, launch):
                error = refused(attempt)
                assert error.status is Status.NOT_INITIALIZED and "spawn" in error.message, error
            found, why = availability()
            assert not found and "fork" in why
            runtime.shutdown()
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        runtime.destroy_stream(stream)
    """)


# ---- memory


def test_memory_goes_there_and_back(run: Run) -> None:
    run("""
        runtime = AclRuntime()
        stream = runtime.create_stream()
        data = bytes(range(256)) * 64
        first, second = put(runtime, stream, data), runtime.allocate(len(data))
        assert runtime.is_device_pointer(first) and runtime.is_device_pointer(first + 5)
        assert not runtime.is_device_pointer(0)
        assert not runtime.is_device_pointer(ctypes.addressof(host := ctypes.c_int()))
        runtime.copy_async(second, first, len(data), "on_device", stream)
        runtime.set_async(second, 0xEE, 3, stream)
        assert get(runtime, stream, second, len(data)) == b"\\xee" * 3 + data[3:]
        runtime.copy_async(0, 0, 0, "to_device", stream)
        runtime.set_async(0, 0, 0, stream)
        runtime.release(first)
        runtime.release(second)
        assert not runtime.is_device_pointer(first)
        runtime.release(runtime.allocate(0))
        runtime.destroy_stream(stream)
    """)


def test_too_much_memory_is_alloc_failed(run: Run) -> None:
    run("""
        runtime = AclRuntime()
        error = refused(runtime.allocate, 1 << 50)
        assert error.status is Status.ALLOC_FAILED and error.operator == "aclrtMalloc", error
        assert "207018" in error.message and "out of device memory" in error.message
    """)


def test_an_injected_allocation_failure_passes(run: Run) -> None:
    run("""
        runtime = AclRuntime()
        first = runtime.allocate(10)
        assert refused(runtime.allocate, 10).status is Status.ALLOC_FAILED
        runtime.release(first)
        runtime.release(runtime.allocate(10))
    """, STANDIN_FAIL="aclrtMalloc:2")  # fmt: skip


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("runtime.release(address); release = runtime.release", "freed twice"),
        ("release = lambda address: runtime.release(address + 1)", "not an allocation"),
        ("release = runtime.destroy_stream", "is not a stream"),
        ("release = runtime.destroy_event", "is not an event"),
        ("release = lambda a: runtime.copy_async(a, a + 32, 8, 'on_device', 0)", "aligned to 64"),
        ("release = lambda a: runtime.copy_async(a, a, 8, 'to_device', 0)", "not host memory"),
        ("release = lambda a: runtime.set_async(a, 0, 101, 0)", "not device memory"),
    ],
)
def test_misuse_is_an_error_and_not_a_crash(code: str, message: str, run: Run) -> None:
    printed = run(f"""
        runtime = AclRuntime()
        address = runtime.allocate(100)
        {code}
        error = refused(release, address)
        assert error.status in (Status.INTERNAL_ERROR, Status.EXECUTION_FAILED)
        print(error)
    """, report=None)  # fmt: skip
    assert message in printed


# ---- streams and events


def test_streams_work_asynchronously_and_in_order(run: Run) -> None:
    run("""
        runtime = AclRuntime()
        stream = runtime.create_stream()
        address = runtime.allocate(64)
        start, end = runtime.create_event(), runtime.create_event()
        assert runtime.stream_position(stream) == (0, 0)
        begun = time.perf_counter()
        runtime.record_event(start, stream)
        for value in range(4):
            runtime.set_async(address, value, 64, stream)
        runtime.record_event(end, stream)
        assert time.perf_counter() - begun < 0.1
        assert not runtime.event_complete(end) and runtime.stream_position(stream) == (4, 0)
        error = refused(runtime.elapsed_ms, start, end)
        assert error.status is Status.INTERNAL_ERROR and "not reached yet" in error.message
        runtime.synchronize_event(end)
        assert runtime.event_complete(end) and runtime.stream_position(stream) == (4, 4)
        assert 0.2e3 < runtime.elapsed_ms(start, end) < 5e3
        assert get(runtime, stream, address, 64) == bytes([3]) * 64
        runtime.release(address)
        runtime.destroy_event(start)
        runtime.destroy_event(end)
        runtime.destroy_stream(stream)
    """, STANDIN_DELAY_US="50000")  # fmt: skip


def test_destroying_a_stream_waits_for_its_work(run: Run) -> None:
    run("""
        runtime = AclRuntime()
        stream = runtime.create_stream()
        address = runtime.allocate(64)
        begun = time.perf_counter()
        runtime.set_async(address, 7, 64, stream)
        runtime.destroy_stream(stream)
        assert time.perf_counter() - begun >= 0.1
        runtime.release(address)
        error = refused(runtime.synchronize_stream, stream)
        assert error.status is Status.EXECUTION_FAILED and "is not a stream" in error.message
    """, report=None, STANDIN_DELAY_US="100000")  # fmt: skip


def test_a_synchronise_failure_is_execution_failed_and_completes_nothing(run: Run) -> None:
    run("""
        runtime = AclRuntime()
        stream = runtime.create_stream()
        address = runtime.allocate(64)
        runtime.set_async(address, 7, 64, stream)
        error = refused(runtime.synchronize_stream, stream)
        assert error.status is Status.EXECUTION_FAILED and "507035" in error.message, error
        assert runtime._positions[stream] == [1, 0]
        runtime.synchronize_stream(stream)
        assert runtime._positions[stream] == [1, 1]
        runtime.release(address)
        runtime.destroy_stream(stream)
    """, STANDIN_FAIL="aclrtSynchronizeStream:1")  # fmt: skip


def test_a_failed_query_keeps_what_was_known(run: Run) -> None:
    run("""
        runtime = AclRuntime()
        stream = runtime.create_stream()
        address = runtime.allocate(64)
        runtime.set_async(address, 7, 64, stream)
        runtime.synchronize_stream(stream)
        runtime.set_async(address, 7, 64, stream)
        assert runtime.stream_position(stream) == (2, 1)
        runtime.release(address) if runtime.synchronize_stream(stream) is None else None
        runtime.destroy_stream(stream)
    """, STANDIN_FAIL="aclrtStreamQuery:0")  # fmt: skip


def test_the_default_stream_and_streams_of_others_can_be_used(run: Run) -> None:
    run("""
        runtime = AclRuntime()
        theirs, stream = ctypes.CDLL(find_library()), ctypes.c_void_p()
        theirs.aclrtSetDevice(0)
        assert theirs.aclrtCreateStream(ctypes.byref(stream)) == 0
        for handle in (0, stream.value):
            address = put(runtime, handle, b"text")
            assert get(runtime, handle, address, 4) == b"text"
            assert runtime.stream_position(handle) == (2, 2)
            runtime.release(address)
        runtime.destroy_stream(stream.value)
    """)


def test_shutdown_waits_and_raises_nothing(run: Run) -> None:
    run("""
        runtime = AclRuntime()
        stream, failing = runtime.create_stream(), runtime.create_stream()
        address = runtime.allocate(64)
        runtime.set_async(address, 7, 64, stream)
        os.environ["STANDIN_FAIL"] = "aclrtSynchronizeStream:1"
        runtime.set_async(address, 7, 64, failing)
        runtime.shutdown()
        assert runtime._acl.aclrtStreamQuery(failing, ctypes.byref(status := ctypes.c_int(-1))) == 0
        runtime.destroy_stream(stream)
        runtime.destroy_stream(failing)
        runtime.release(address)
    """, STANDIN_DELAY_US="20000")  # fmt: skip


# ---- kernels

LAUNCH = """
import numpy as np
def load(path, pointers, fields):
    library = ctypes.CDLL(path)
    library.jitblas_key.restype = ctypes.c_char_p
    assert library.jitblas_key() == b"what/how"
    class Tiling(ctypes.Structure):
        _fields_ = fields
    library.launch.argtypes = [ctypes.c_uint32, ctypes.c_void_p, *[ctypes.c_void_p] * pointers, Tiling]
    return library.launch, Tiling
def launched(runtime, stream):
    return runtime.launch_stream(stream, wait=False, small=False, overlapping=False)
U64, I64, U32, F32 = ctypes.c_uint64, ctypes.c_int64, ctypes.c_uint32, ctypes.c_float
CONTIGUOUS = [("n", U64), ("per_block", U64), ("alpha", F32)]
STRIDED = [("n", U64), ("incx", I64), ("incy", I64), ("per_block", U64), ("threads", U32), ("alpha", F32)]
"""


def test_a_contiguous_kernel_computes_what_its_blocks_cover(run: Run, axpy: Callable[..., str]) -> None:
    code = LAUNCH + textwrap.dedent("""
        runtime = AclRuntime()
        stream = runtime.create_stream()
        launch, Tiling = load(sys.argv[1], 3, CONTIGUOUS)
        n = 1000
        x, y = np.arange(n, dtype="f4"), np.ones(n, "f4")
        dx, dy = put(runtime, stream, x.tobytes()), put(runtime, stream, y.tobytes())
        before = runtime.stream_position(stream)[0]
        assert launch(8, launched(runtime, stream), dx, dy, 0, Tiling(n, 128, 2.5)) == 0
        assert runtime.stream_position(stream)[0] == before + 1
        assert (np.frombuffer(get(runtime, stream, dy, 4 * n), "f4") == 2.5 * x + 1).all()
        launch(2, launched(runtime, stream), dx, dy, 0, Tiling(n, 128, -2.5))
        result = np.frombuffer(get(runtime, stream, dy, 4 * n), "f4")
        assert (result[:256] == 1).all() and (result[256:] == 2.5 * x[256:] + 1).all()
        [runtime.release(address) for address in (dx, dy)]
        runtime.destroy_stream(stream)
    """)
    run(code, axpy())


@pytest.mark.parametrize(("element", "infinity"), [("half", 0x7C00), ("bfloat16_t", 0x7F80)])
def test_every_16_bit_value_survives_a_kernel(element: str, infinity: int, run: Run, axpy: Callable[..., str]) -> None:
    code = LAUNCH + textwrap.dedent("""
        runtime = AclRuntime()
        stream = runtime.create_stream()
        launch, Tiling = load(sys.argv[1], 3, CONTIGUOUS)
        x = np.arange(1 << 16, dtype="u2")
        minus_zero = np.full(1 << 16, 0x8000, "u2")
        dx, dy = put(runtime, stream, x.tobytes()), put(runtime, stream, minus_zero.tobytes())
        launch(2, launched(runtime, stream), dx, dy, 0, Tiling(1 << 16, 1 << 15, 1.0))
        result = np.frombuffer(get(runtime, stream, dy, 2 << 16), "u2")
        nan = (x & 0x7FFF) > int(sys.argv[2])
        assert (result[~nan] == x[~nan]).all()
        assert ((result[nan] & 0x7FFF) > int(sys.argv[2])).all()
        [runtime.release(address) for address in (dx, dy)]
        runtime.destroy_stream(stream)
    """)
    run(code, axpy(element=element), str(infinity))


def test_half_results_are_rounded_to_nearest_even(run: Run, axpy: Callable[..., str]) -> None:
    code = LAUNCH + textwrap.dedent("""
        runtime = AclRuntime()
        stream = runtime.create_stream()
        launch, Tiling = load(sys.argv[1], 3, CONTIGUOUS)
        x = np.arange(1 << 16, dtype="u2").view("f2")
        x[np.isnan(x)] = 1
        dx, dy = put(runtime, stream, x.tobytes()), put(runtime, stream, bytes(2 << 16))
        for alpha in (0.37, 0.5, 1.0009765625, 2.0 ** -12):
            runtime.set_async(dy, 0, 2 << 16, stream)
            launch(1, launched(runtime, stream), dx, dy, 0, Tiling(1 << 16, 1 << 16, alpha))
            result = np.frombuffer(get(runtime, stream, dy, 2 << 16), "f2")
            with np.errstate(all="ignore"):
                assert (result == (np.float32(alpha) * x.astype("f4")).astype("f2")).all(), alpha
        [runtime.release(address) for address in (dx, dy)]
        runtime.destroy_stream(stream)
    """)
    run(code, axpy(element="half"))


def test_a_strided_kernel_starts_negative_increments_at_the_far_end(run: Run, axpy: Callable[..., str]) -> None:
    code = LAUNCH + textwrap.dedent("""
        runtime = AclRuntime()
        stream = runtime.create_stream()
        launch, Tiling = load(sys.argv[1], 3, STRIDED)
        x, y = np.arange(19, dtype="f4"), np.zeros(28, "f4")
        dx, dy = put(runtime, stream, x.tobytes()), put(runtime, stream, y.tobytes())
        dalpha = put(runtime, stream, np.float32(3).tobytes())
        launch(1, launched(runtime, stream), dx, dy, dalpha, Tiling(10, -2, 3, 32, 32, 99))
        y[::3] += 3 * x[::-2]
        assert (np.frombuffer(get(runtime, stream, dy, y.nbytes), "f4") == y).all()
        [runtime.release(address) for address in (dx, dy, dalpha)]
        runtime.destroy_stream(stream)
    """)
    run(code, axpy("strided", on_device=True))


def test_an_exact_kernel_takes_its_sizes_from_the_source(run: Run, axpy: Callable[..., str]) -> None:
    code = LAUNCH + textwrap.dedent("""
        runtime = AclRuntime()
        stream = runtime.create_stream()
        launch, Tiling = load(sys.argv[1], 3, [("per_block", U64), ("alpha", F32)])
        dx, dy = (put(runtime, stream, np.ones(8, "f4").tobytes()) for _ in range(2))
        launch(1, launched(runtime, stream), dx, dy, 0, Tiling(128, 2))
        assert np.frombuffer(get(runtime, stream, dy, 32), "f4").tolist() == [3] * 5 + [1] * 3
        [runtime.release(address) for address in (dx, dy)]
        runtime.destroy_stream(stream)
    """)
    run(code, axpy(tiling="static constexpr uint64_t n = 5; uint64_t per_block; float alpha;"))


def test_a_kernel_fails_at_the_next_synchronise_for_what_is_not_device_memory(
    run: Run, axpy: Callable[..., str]
) -> None:
    code = LAUNCH + textwrap.dedent("""
        runtime = AclRuntime()
        stream = runtime.create_stream()
        launch, Tiling = load(sys.argv[1], 3, CONTIGUOUS)
        host, device = np.zeros(128, "f4"), runtime.allocate(512)
        freed = runtime.allocate(512)
        runtime.release(freed)
        cases = ((host.ctypes.data, device, 128), (device, host.ctypes.data, 128), (freed, device, 128),
                 (device, 0, 128), (device, device, 129))
        for x, y, n in cases:
            assert launch(1, launched(runtime, stream), x, y, 0, Tiling(n, 256, 1)) == 0
            error = refused(runtime.synchronize_stream, stream)
            assert error.status is Status.EXECUTION_FAILED and "is not device memory" in error.message
            runtime.synchronize_stream(stream)
        launch(1, launched(runtime, stream), host.ctypes.data, device, 0, Tiling(128, 128, 1))
        error = refused(runtime.destroy_stream, stream)
        assert error.status is Status.EXECUTION_FAILED
        runtime.release(device)
    """)
    run(code, axpy())


def test_impossible_launches_are_noticed(run: Run, axpy: Callable[..., str]) -> None:
    code = LAUNCH + textwrap.dedent("""
        runtime = AclRuntime()
        launch, Tiling = load(sys.argv[1], 3, CONTIGUOUS)
        device = runtime.allocate(512)
        for blocks in (0, 65536):
            launch(blocks, launched(runtime, 0), device, device, 0, Tiling(128, 128, 1))
            assert "1 to 65535" in refused(runtime.synchronize_stream, 0).message
        runtime.release(device)
    """)
    run(code, axpy(), report=None)


def test_device_memory_is_out_of_the_hosts_reach(cann: Cann) -> None:
    code = PRELUDE + "ctypes.string_at(AclRuntime().allocate(64), 1)"
    assert cann.python(code).returncode == -11
