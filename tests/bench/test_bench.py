"""The machinery of the benchmarks. No test here depends on how fast anything is."""

from __future__ import annotations

import argparse
import functools
import json
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import jitblas
from jitblas import config
from jitblas.bench import cold, limits, measure, peers, session, tables
from jitblas.bench.measure import Call, Protocol, alternate
from jitblas.bench.peers import LEEWAY, PEERS, Fftw, NumPy, Peer
from jitblas.bench.problems import AxpyData, FftData, make_data, parse_lines, read_file
from jitblas.bench.session import Row, Session
from jitblas.cli import bench
from jitblas.handle import Handle
from jitblas.problem import Problem
from tests.conftest import PROJECT, Python, environment

MAIN = "import sys; from jitblas.cli import main; sys.exit(main(sys.argv[1:]))"
QUICK = Protocol(repeats=2, seconds=1e-5)


class Clock:
    """Time that passes only when a contestant says so."""

    def __init__(self) -> None:
        self.now = 0.0
        self.pace = 1.0
        self.log: list[str] = []

    def call(self, name: str, seconds: float, **rest: float) -> Call:
        def function() -> None:
            self.log.append(name)
            self.now += seconds * self.pace

        return Call(function, **rest)

    def protocol(self, repeats: int, **rest: Callable[[], object]) -> Protocol:
        return Protocol(repeats, 0.02, clock=lambda: self.now, sleep=lambda s: self.log.append(f"sleep {s}"), **rest)


def run(*words: str) -> int:
    parser = argparse.ArgumentParser()
    bench.add_arguments(parser)
    return bench.run(parser.parse_args(words))


# Measuring


def test_median_and_ratio_on_a_fake_clock() -> None:
    clock = Clock()
    timing = alternate(clock.call("ours", 0.001), clock.call("peer", 0.003), clock.protocol(5))
    assert timing.ours_seconds == pytest.approx(0.001)
    assert timing.peer_seconds == pytest.approx(0.003)
    assert timing.ratio == pytest.approx(3)
    assert timing.loops == (20, 7)
    assert len(timing.ours) == len(timing.peer) == 5


def test_ratio_is_taken_pair_by_pair() -> None:
    """The machine slows down tenfold half-way through the third pair: one pair is off, the median is not."""
    clock = Clock()
    turns = 0

    def evict() -> None:
        nonlocal turns
        turns += 1
        clock.pace = 1.0 if turns < 6 else 10.0

    timing = alternate(clock.call("ours", 1.0), clock.call("peer", 2.0), clock.protocol(5, evict=evict))
    assert timing.ratios == pytest.approx([2, 2, 20, 2, 2])
    assert timing.ratio == pytest.approx(2)
    assert timing.quartiles == pytest.approx((2, 2))
    assert statistics.median(timing.peer) / statistics.median(timing.ours) == pytest.approx(20)


def test_contestants_take_turns() -> None:
    clock = Clock()
    evict = functools.partial(clock.log.append, "evict")
    timing = alternate(clock.call("ours", 0.001), clock.call("peer", 0.001), clock.protocol(3, evict=evict))
    assert clock.log == ["evict", "ours", "evict", "peer"] * 3
    assert timing.loops == (1, 1)


def test_spinning_threads_are_waited_for() -> None:
    clock = Clock()
    ours, peer = clock.call("ours", 0.03), clock.call("peer", 0.03, spins=0.25)
    alternate(ours, peer, clock.protocol(2, evict=lambda: None))
    assert clock.log == ["sleep 0.25", "ours", "peer", "sleep 0.25", "ours", "peer"]


def test_hot_data_stays_hot_while_spinning_threads_are_waited_for() -> None:
    clock = Clock()
    ours, peer = clock.call("ours", 0.03), clock.call("peer", 0.03, spins=0.1)
    alternate(ours, peer, clock.protocol(1))
    assert "sleep 0.1" not in clock.log
    assert clock.log[-4 - 4 :] == ["ours"] * 4 + ["ours", "ours", "peer", "peer"]


def test_waiting_for_asynchronous_calls_counts() -> None:
    clock = Clock()
    timing = alternate(Call(lambda: None, finish=clock.call("wait", 0.03).function), None, clock.protocol(3))
    assert timing.ours_seconds == pytest.approx(0.03)
    assert timing.peer == () and timing.ratio is None and timing.quartiles is None


def test_a_clock_that_stands_still_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "MOST_LOOPS", 100)
    call = Call(lambda: None)
    timing = alternate(call, call, Protocol(1, clock=lambda: 0.0))
    assert timing.ours == (0.0,) and timing.ratio is None


# Arrays and results


LAYOUTS = [(1, 1), (2, 3), (2, -3), (-2, 3), (-1, -1), (-3, -2)]


@pytest.mark.parametrize("name", PEERS)
@pytest.mark.parametrize("dtype", ["fp32", "fp16", "bf16"])
def test_peers_compute_the_same(name: str, dtype: str) -> None:
    peer = PEERS[name]
    if not peer.available():
        pytest.skip(f"{name} is not installed")
    for incx, incy in LAYOUTS:
        for n in (1, 2, 1001):
            data = make_data(
                Problem.make("axpy_ex", {"n": n, "dtype": dtype, "incx": incx, "incy": incy, "alpha": 0.7})
            )
            call = peer.call(data, 1)
            assert call is None or data.fault(call) is None, (n, incx, incy)
    assert peer.version() and peer.kernels()


TRANSFORMS = [
    f"fft:n={n},batch={batch},dtype={dtype},dir={direction},norm={norm}"
    for n, batch in ((2, 1), (512, 3))
    for dtype in ("c64", "c128")
    for direction in ("forward", "inverse")
    for norm in ("backward", "ortho", "forward")
]


@pytest.mark.parametrize("name", PEERS)
def test_peers_transform_the_same(name: str) -> None:
    peer = PEERS[name]
    if not peer.available():
        pytest.skip(f"{name} is not installed")
    for problem in parse_lines(TRANSFORMS):
        data = FftData(problem)
        before = data.x.copy()
        call = peer.call(data, 2)
        if call is None:
            pytest.skip(f"{name} has no transforms")
        assert data.fault(call) is None, problem
        assert (data.x == before).all(), problem


def broken(data: AxpyData, how: str) -> Call:
    """NumPy's result, and one thing wrong with it."""
    right = NumPy().axpy_ex(data, 1).function

    def call() -> None:
        last = data.y[-1]
        right()
        if how == "element left out":
            data.y[-1] = last
        elif how == "not a number":
            data.y[data.n // 2] = np.nan
        elif how == "gap written":
            data.y_memory[1] = 0

    return Call(call)


@pytest.mark.parametrize("dtype", ["fp32", "fp16", "bf16"])
@pytest.mark.parametrize(
    "how, told",
    [
        ("element left out", "wrong result: 1 of 999"),
        ("not a number", "is nan"),
        ("gap written", "between the elements"),
    ],
)
def test_wrong_results_are_noticed(dtype: str, how: str, told: str) -> None:
    data = AxpyData(Problem.parse(f"axpy_ex:n=999,dtype={dtype},incx=-2,incy=3"))
    assert data.fault(broken(data, "nothing")) is None
    assert told in str(data.fault(broken(data, how)))
    assert data.fault(broken(data, "nothing")) is None, "arrays are fresh every time"


class Wrong(Peer):
    name = "wrong"
    packages = ("numpy",)

    def kernels(self) -> str:
        return "none"

    def axpy_ex(self, data: AxpyData, threads: int) -> Call:
        return broken(data, "element left out")


class Raising(Wrong):
    name = "raising"

    def axpy_ex(self, data: AxpyData, threads: int) -> Call:
        raise RuntimeError("no such kernel")


class Elsewhere(Wrong):
    name = "elsewhere"
    axpy_ex = None  # type: ignore[assignment]


def test_a_wrong_peer_is_a_row_without_figures() -> None:
    against = (Wrong(), Raising(), NumPy())
    rows = list(Session(peers=against, protocol=QUICK).rows([Problem.parse("axpy_ex:n=100")]))
    assert [row.peer for row in rows] == ["wrong", "raising", "numpy"]
    assert rows[0].error is not None and rows[0].error.startswith("wrong: wrong result: 1 of 100")
    assert rows[1].error == "raising: raised RuntimeError: no such kernel"
    assert all(row.ours_seconds is row.peer_seconds is row.ratio is None for row in rows[:2])
    assert rows[2].error is None and rows[2].ratio is not None
    assert "ERROR: wrong: wrong result" in tables.text_table(tables.row_cells(rows))


def test_we_being_wrong_is_a_row_without_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    real = session.entries

    def entries(data: AxpyData, handle: Handle, exact: bool) -> list[object]:
        return [type(entry)(entry.level, entry.kernel, entry.key, broken(data, "not a number"))
                for entry in real(data, handle, exact)]  # fmt: skip

    monkeypatch.setattr(session, "entries", entries)
    rows = list(Session(peers=(NumPy(),), protocol=QUICK).rows([Problem.parse("axpy_ex:n=100")]))
    assert len(rows) == 1 and rows[0].peer is None and rows[0].ours_seconds is None
    assert rows[0].error is not None and rows[0].error.startswith("jitblas: wrong result")


def test_without_a_peer_ours_is_measured_alone() -> None:
    (row,) = Session(peers=(Elsewhere(),), protocol=QUICK).rows([Problem.parse("axpy_ex:n=100")])
    assert (row.peer, row.ratio, row.peer_turns) == (None, None, ())
    assert row.ours_seconds is not None and len(row.ours_turns) == 2 and row.work == 1200


def test_every_way_in_of_a_tiny_problem_has_a_row() -> None:
    rows = list(
        Session(exact=True, threads=(1, 2), protocol=QUICK).rows(parse_lines(["axpy_ex:n=8,dtype={fp32,bf16}"]))
    )
    assert not [row.error for row in rows if row.error]
    ways = [(row.level, row.kernel, row.threads) for row in rows if "bf16" in row.problem]
    plans = [("plan", "class"), ("plan", "exact")]
    others = [("array", "class"), ("aclblas arrays", "class"), ("aclblas addresses", "class")]
    assert ways == [(*way, 1) for way in plans + others] + [(*way, 2) for way in plans]
    assert rows[0].key != rows[1].key


@pytest.mark.parametrize(
    "line",
    ["axpy_ex:n=0", "axpy_ex:n=9,incx=0", "axpy_ex:n=9,scalar=device", "fft:n=1", "fft:n=8,batch=0", "fft:n=1000"],
)
def test_what_cannot_be_measured_is_a_row(line: str) -> None:
    rows = list(Session(protocol=QUICK).rows(parse_lines([line, "axpy_ex:n=100"])))
    assert rows[0].error is not None and rows[0].problem == line
    assert rows[1].error is None


# Problems


def test_ranges_expand() -> None:
    lines = [str(problem) for problem in parse_lines(["axpy_ex:n={1e3..1e5:*10},incx={1,-2}", "axpy_ex:n=7"])]
    sizes = ["axpy_ex:n=1000", "axpy_ex:n=10000", "axpy_ex:n=100000"]
    assert lines == [size + inc for size in sizes for inc in ("", ",incx=-2")] + ["axpy_ex:n=7"]


def test_problem_files_parse() -> None:
    problems = parse_lines(read_file(PROJECT / "bench/problems/axpy_ex.txt"))
    assert len(problems) == len(set(problems)) == 18
    assert {(problem.value("incx"), problem.value("incy")) for problem in problems} == {(1, 1), (2, -3)}
    problems = parse_lines(read_file(PROJECT / "bench/problems/fft.txt"))
    assert len(problems) == len(set(problems)) == 28
    assert {problem.value("n") * problem.value("batch") for problem in problems[16:]} == {2**22}
    sizes = [problem.value("n") for problem in parse_lines(read_file(PROJECT / "bench/more/fft_sizes.txt"))]
    assert sizes[::2] == sizes[1::2] == [2**exponent for exponent in range(1, 27)]


# The command line


def test_json_is_complete_and_alone_on_stdout(python: Python) -> None:
    words = ["axpy_ex:n={100,200}", "--against", "numpy", "--threads", "1", "--repeats", "3", "--exact", "--json", "-"]
    finished = python(MAIN, "bench", *words, OPENBLAS_CORETYPE="Haswell", OMP_NUM_THREADS="2")
    report = json.loads(finished.stdout)
    assert "OPENBLAS_CORETYPE" in finished.stderr and "again" in finished.stderr
    assert report["environment"]["OPENBLAS_CORETYPE"] is report["environment"]["OPENBLAS_L2_SIZE"] is None
    assert report["environment"]["OMP_NUM_THREADS"] == "2"
    assert report["machine"]["cpu"] and report["date"] and "axpy_ex:n={100,200}" in report["command"]
    assert (
        report["versions"]["numpy"] == np.__version__ and report["versions"]["jitblas"] and report["compiler"]["flags"]
    )
    assert report["peers"]["numpy"]["version"] and report["peers"]["numpy"]["kernels"]
    assert report["protocol"]["repeats"] == 3 and report["protocol"]["state"] == "hot"
    assert [(row["problem"], row["kernel"]) for row in report["rows"]] == [
        (f"axpy_ex:n={n}", kernel) for n in (100, 200) for kernel in ("class", "exact")
    ]
    for row in report["rows"]:
        assert row["error"] is None and row["threads"] == 1 and row["state"] == "hot" and row["key"]
        assert len(row["ours_turns"]) == len(row["peer_turns"]) == 3 and len(row["loops"]) == 2
        assert row["ratio"] == statistics.median(
            p / o for o, p in zip(row["ours_turns"], row["peer_turns"], strict=True)
        )
        assert row["ours_rate"] == pytest.approx(row["work"] / row["ours_seconds"] / 1e9)


def test_table_and_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    assert run("axpy_ex:n=100", "--against", "numpy", "--threads", "1", "--repeats", "1", "--json", str(file)) == 0
    out = capsys.readouterr().out
    assert "hot data" in out and "ratio" in out and "numpy" in out
    assert [row["peer"] for row in json.loads(file.read_text())["rows"]] == ["numpy"]


def test_errors_make_the_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("axpy_ex:n=0", "--against", "numpy", "--repeats", "1") == 1
    assert "ERROR" in capsys.readouterr().out


@pytest.mark.parametrize("name, package", [("torch", "torch"), ("fftw", "pyfftw"), ("mkl", "mkl mkl_fft")])
def test_a_missing_peer_that_was_asked_for(
    name: str, package: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(PEERS[name]), "available", lambda self: False)
    assert run("axpy_ex:n=100", "--against", f"numpy,{name}", "--threads", "1", "--repeats", "1") == 1
    assert f"{name}: not installed; pip install {package}" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words",
    [[], ["axpy_ex:n=8", "--against", "atlas"], ["axpy_ex:n=8", "--threads", "0"], ["axpy_ex:n=8", "--repeats", "0"],
     ["axpy_ex:n=8", "--against", ","], ["axpy_ex:n=8", "--threads", "some"]],
)  # fmt: skip
def test_usage_errors(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*words) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.startswith("jitblas: ")


def test_a_problem_with_a_typing_error_is_a_usage_error(python: Python) -> None:
    finished = python(MAIN, "bench", "axpy_ex:m=8", check=False)
    assert finished.returncode == 2 and "unknown name 'm'" in finished.stderr


def test_all_threads_are_those_of_the_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JITBLAS_THREADS", "3")
    assert bench.thread_counts("1,all,3,2") == (1, 3, 2)
    assert config.threads() == 3


# Tables, limits, costs


def test_cold_data_is_said_and_loops_are_single(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cold, "caches", lambda: {1: 32 << 10})
    with session.protocol_for(1, cold=True) as protocol:
        chosen = Session(peers=(NumPy(),), protocol=protocol)
        (row,) = chosen.rows([Problem.parse("axpy_ex:n=100")])
        report = session.report(chosen, {}, {}, [row])
    assert (row.state, row.loops) == ("cold", (1, 1))
    assert "walked before every call" in report["protocol"]["eviction"]


def test_products_are_checked_element_by_element() -> None:
    data = make_data(Problem.parse("sgemm_strided_batched:TN,m=5,n=6,k=7,batch=3,alpha=2,beta=0.5"))
    right = session.entries(data, Handle("host"), exact=True)
    assert [entry.level for entry in right] == ["plan", "plan"]
    assert all(data.fault(entry.call) is None for entry in right)

    def almost() -> None:
        right[0].call.once()
        data.c[2, 4, 5] += 1e-4  # type: ignore[attr-defined]

    assert "wrong result: 1 of 90 elements; (2, 4, 5)" in str(data.fault(Call(almost)))
    for line in ("m=0,n=1,k=1", "m=4,n=4,k=4,lda=9", "m=4,n=4,k=4,order=col", "m=4,n=4,k=4,batch=2,strideb=0"):
        with pytest.raises(jitblas.Error):
            make_data(Problem.parse(f"sgemm_strided_batched:{line}"))


def test_transforms_have_rows() -> None:
    rows = list(
        Session(peers=(NumPy(),), threads=(1, 2), protocol=QUICK).rows(parse_lines(["fft:n=8,dtype={c64,c128}"]))
    )
    assert not [row.error for row in rows if row.error]
    ways = [("plan", 1, ""), ("array", 1, ""), ("plan", 2, "one thread: numpy.fft has no more")]
    assert [(row.level, row.threads, row.note) for row in rows] == 2 * ways
    assert {(row.peer, row.work, row.unit) for row in rows} == {("numpy", 5 * 8 * 3, "Gflop/s")}


@pytest.mark.parametrize("line", ["fft:n=64,dtype=c64", "fft:n=16,batch=4,dir=inverse,norm=ortho"])
def test_transforms_are_checked_by_their_error_in_all(line: str) -> None:
    data = FftData(Problem.parse(line))
    assert data.x.ctypes.data % 64 == data.out.ctypes.data % 64 == 0
    entries = session.entries(data, Handle("host"), exact=True)
    assert [entry.level for entry in entries] == ["plan", "array"]
    assert all(data.fault(entry.call) is None for entry in entries)
    right = NumPy().fft(data, 1).function
    place = (*(1 for _ in data.out.shape[1:]), 7)

    def off_by(share: float) -> Callable[[], None]:
        """The right result, but for one point that adds this share to what all may be wrong by."""

        def call() -> None:
            right()
            data.out[place] += share * data._expected[1] * np.linalg.norm(data.out)

        return call

    transform = place[0] if len(place) > 1 else 0
    told = str(data.fault(Call(off_by(1e3))))
    assert "wrong result: relative error" in told and f"point 7 of transform {transform} is furthest off" in told
    assert data.fault(Call(off_by(LEEWAY / 2))) is not None
    assert data.fault(Call(off_by(LEEWAY / 2), leeway=LEEWAY)) is None, "a peer may be off by more than we may"
    assert "relative error nan" in str(data.fault(Call(lambda: None))), "nothing was written"


def test_functions_without_out_are_said() -> None:
    data = FftData(Problem.parse("fft:n=16,dtype=c64"))
    call = peers._module_fft(SimpleNamespace(fft=lambda x, norm: np.fft.fft(x, norm=norm)), data, "one thread")
    assert call.note == "one thread; a new array every call" and data.fault(call) is None


class PretendedFFTW:
    """As FFTW is: planning overwrites both arrays, and results are not scaled."""

    made: list[tuple[str, tuple[str, ...], int]] = []

    def __init__(self, x: np.ndarray, out: np.ndarray, direction: str, flags: tuple[str, ...], threads: int) -> None:
        self.made.append((direction, flags, threads))
        self.x, self.out, self.forward = x, out, direction == "FFTW_FORWARD"
        x[...] = out[...] = 0

    def execute(self) -> None:
        self.out[...] = np.fft.fft(self.x) if self.forward else np.fft.ifft(self.x, norm="forward")


def test_plans_of_fftw(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "_pyfftw", lambda: SimpleNamespace(FFTW=PretendedFFTW))
    monkeypatch.setattr(peers, "MOST_MEASURED", 16)
    monkeypatch.setattr(PretendedFFTW, "made", [])
    lines = ["fft:n=16,dtype=c64", "fft:n=16,batch=2,dir=inverse", "fft:n=16,dtype=c64,norm=ortho"]
    notes = []
    for problem in parse_lines(lines):
        data = FftData(problem)
        call = Fftw().call(data, 2)
        assert call is not None and data.fault(call) is None
        notes.append(call.note)
    scaled = "; scaled by NumPy afterwards: FFTW does not scale"
    assert notes == ["FFTW_MEASURE", f"FFTW_ESTIMATE{scaled}", f"FFTW_MEASURE{scaled}"]
    assert PretendedFFTW.made[1] == ("FFTW_BACKWARD", ("FFTW_ESTIMATE",), 2)


def test_fftw_is_its_own_even_when_mkl_is_there() -> None:
    """MKL has functions of the same names."""
    fftw, mkl = PEERS["fftw"], PEERS["mkl"]
    if not (fftw.available() and mkl.available()):
        pytest.skip("fftw and mkl are not both installed")
    with mkl.limited(1):
        assert fftw.kernels().startswith("fftw-")


def test_tables_leave_out_what_is_empty() -> None:
    rows = [Row("axpy_ex:n=8", "plan", "class", 1, "hot", ours_seconds=1.5e-6, ours_rate=0.064)] * 2
    text, markdown = tables.text_table(tables.row_cells(rows)), tables.markdown_table(tables.row_cells(rows))
    assert text.splitlines()[0].split() == ["problem", "level", "kernel", "threads", "jitblas", "rate"]
    assert text.splitlines()[2].split() == ["plan", "class", "1", "1.50", "us", "0.06", "GB/s"]
    assert markdown.splitlines()[2] == "| axpy_ex:n=8 | plan | class | 1 | 1.50 us | 0.06 GB/s |"


def test_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "working_sets", lambda: {"L1": 24 << 10, "DRAM": 1 << 20})
    monkeypatch.setattr(config, "threads", lambda: 2)
    rows = limits.measure_limits(seconds=1e-4, repeats=1)
    assert [row["what"] for row in rows] == [
        "FP32 FMA, one core", "triad L1, one core", "triad DRAM, one core", "triad DRAM, 2 threads",
    ]  # fmt: skip
    assert all(row["value"] > 0 for row in rows)


def test_the_triad_reads_and_writes_all_of_its_arrays() -> None:
    a, b, c = limits._three_arrays(30_000)
    limits._triad(limits._library(), [a, b, c], 1)
    assert a.size % 256 == 0 and (a == b + np.float32(0.5) * c).all()


@pytest.mark.parametrize("what", ["call", "compile"])
def test_one_call_tells_seconds(what: str, tmp_path: Path) -> None:
    command = [sys.executable, str(PROJECT / "bench/one_call.py"), what]
    finished = subprocess.run(
        command, env=environment(JITBLAS_CACHE_DIR=tmp_path), capture_output=True, text=True, check=True
    )
    assert float(finished.stdout) > 0
