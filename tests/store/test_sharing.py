"""One compile per kernel however many ask: threads, processes, forks; and nothing that counts after a kill."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

THREADS = """
import threading, numpy, jitblas
def work():
    y = numpy.ones(100, "f4")
    jitblas.axpy_ex(2.0, numpy.ones(100, "f4"), y)
    results.append(y[0])
results, threads = [], [threading.Thread(target=work) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(results == [3.0] * 8)
"""


def start(code: str, settings: dict[str, Any]) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parent.parent.parent)}
    environment |= {name: str(value) for name, value in settings.items()}
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=pipe, stderr=pipe, text=True)


def wait_for(path: Path, seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not path.exists() or not path.read_text():
        assert time.monotonic() < end, f"{path} never came"
        time.sleep(0.02)


def test_a_second_process_compiles_nothing(python: Any, compute: str, tmp_path: Path, compiler: Any) -> None:
    settings = {"JITBLAS_CACHE_DIR": tmp_path / "store", **compiler.setting}
    assert python(compute, **settings).stdout == "right\n"
    assert len(compiler.compiled) == 2
    answer = python(compute, **settings)
    assert (answer.stdout, answer.stderr, len(compiler.compiled)) == ("right\n", "", 2)


def test_eight_cold_processes_compile_each_kernel_once(compute: str, tmp_path: Path, compiler: Any) -> None:
    settings = {"JITBLAS_CACHE_DIR": tmp_path / "store", **compiler.setting}
    processes = [start(compute, settings) for _ in range(8)]
    answers = [process.communicate(timeout=60) for process in processes]
    assert [out for out, _ in answers] == ["right\n"] * 8, answers
    assert sorted(Counter(compiler.compiled).values()) == [1, 1]


def test_eight_cold_processes_probe_the_compiler_once(compute: str, tmp_path: Path) -> None:
    log, script = tmp_path / "log", tmp_path / "g++"
    script.write_text(f'#!/bin/sh\necho "$*" >>{log}\nexec {shutil.which("g++") or shutil.which("clang++")} "$@"\n')
    script.chmod(0o755)
    settings = {"JITBLAS_CACHE_DIR": tmp_path / "store", "JITBLAS_CXX": script}
    processes = [start(compute, settings) for _ in range(8)]
    assert [process.communicate(timeout=60)[0] for process in processes] == ["right\n"] * 8
    started = log.read_text().splitlines()
    assert sum("--version" in line for line in started) == 1
    assert sum("-DJITBLAS_KEY=" in line for line in started) == 2


def test_threads_share_one_compile(python: Any, tmp_path: Path, compiler: Any) -> None:
    answer = python(THREADS, JITBLAS_CACHE_DIR=tmp_path / "store", **compiler.setting)
    assert (answer.stdout, answer.stderr) == ("True\n", "")
    assert sorted(Counter(compiler.compiled).values()) == [1, 1]


def test_whoever_waits_for_another_process_says_so(compute: str, tmp_path: Path, slow_compiler: Any) -> None:
    settings = {"JITBLAS_CACHE_DIR": tmp_path / "store", **slow_compiler.setting}
    hold = slow_compiler.path.parent / "hold"
    hold.touch()
    first = start(compute, settings)
    wait_for(slow_compiler.path.parent / "waiting")
    second = start(compute, settings)
    time.sleep(2.5)
    hold.unlink()
    (first_out, first_err), (second_out, second_err) = first.communicate(timeout=60), second.communicate(timeout=60)
    assert (first_out, first_err) == ("right\n", "")
    assert second_out == "right\n"
    assert f"waiting for pid {first.pid} to compile" in second_err
    assert len(slow_compiler.compiled) == 2


def test_a_lock_that_is_never_free_costs_a_bounded_wait(compute: str, tmp_path: Path, slow_compiler: Any) -> None:
    settings = {"JITBLAS_CACHE_DIR": tmp_path / "store", "JITBLAS_LOCK_TIMEOUT": "1.2", **slow_compiler.setting}
    folder = slow_compiler.path.parent
    (folder / "hold").touch()
    first = start(compute, settings)
    wait_for(folder / "waiting")
    second = start(compute, settings)
    end = time.monotonic() + 20
    while len(slow_compiler.compiled) < 2 and time.monotonic() < end:
        time.sleep(0.05)
    assert len(slow_compiler.compiled) == 2, "the second process should have compiled for itself"
    (folder / "hold").unlink()
    assert [process.communicate(timeout=60)[0] for process in (first, second)] == ["right\n"] * 2


def test_locks_that_do_not_work_are_done_without(python: Any, compute: str, tmp_path: Path) -> None:
    broken = """
import errno, fcntl
def flock(*_):
    raise OSError(errno.ENOLCK, "No locks available")
fcntl.flock = fcntl.lockf = flock
"""
    answer = python(broken + compute, JITBLAS_CACHE_DIR=tmp_path / "store")
    assert (answer.stdout, answer.stderr) == ("right\n", "")


FORK = """
import os, pathlib, sys, threading, time, numpy, jitblas
folder = pathlib.Path(sys.argv[1])
def compute(results):
    y = numpy.ones(100, "f4")
    jitblas.axpy_ex(2.0, numpy.ones(100, "f4"), y)
    results.append(y[0])
results = []
(folder / "hold").touch()
thread = threading.Thread(target=compute, args=(results,))
thread.start()
while not (folder / "waiting").exists():
    time.sleep(0.01)
child = os.fork()
if child == 0:
    mine = []
    compute(mine)
    os._exit(0 if mine == [3.0] else 1)
time.sleep(0.3)
(folder / "hold").unlink()
end = time.monotonic() + 10
done, status = 0, None
while not done and time.monotonic() < end:
    done, status = os.waitpid(child, os.WNOHANG)
    time.sleep(0.02)
if not done:
    os.kill(child, 9)
    print("the child hangs")
thread.join()
print(status, results == [3.0])
"""


def test_a_fork_during_a_compile_works(python: Any, tmp_path: Path, slow_compiler: Any) -> None:
    folder = str(slow_compiler.path.parent)
    answer = python(FORK, folder, JITBLAS_CACHE_DIR=tmp_path / "store", **slow_compiler.setting)
    assert answer.stdout == "0 True\n"


@pytest.mark.slow
@pytest.mark.parametrize("who", ["the process", "the compiler"])
def test_a_killed_compile_leaves_nothing_that_counts(
    python: Any, compute: str, tmp_path: Path, slow_compiler: Any, who: str
) -> None:
    store = tmp_path / "store"
    settings = {"JITBLAS_CACHE_DIR": store, **slow_compiler.setting}
    folder = slow_compiler.path.parent
    (folder / "hold").touch()
    process = start(compute, settings)
    wait_for(folder / "waiting")
    os.kill(process.pid if who == "the process" else int((folder / "waiting").read_text()), signal.SIGKILL)
    if who == "the compiler":
        (folder / "hold").unlink()
    _, errors = process.communicate(timeout=60)
    if who == "the process":
        os.kill(int((folder / "waiting").read_text()), signal.SIGKILL)
        (folder / "hold").unlink()
        assert process.returncode == -signal.SIGKILL
    else:
        assert process.returncode == 1 and "CompileError" in errors
    assert list((store / "v1").rglob("meta.json")) == []
    started = time.monotonic()
    answer = python(compute, **settings)
    assert (answer.stdout, answer.stderr) == ("right\n", "")
    assert time.monotonic() - started < 10
    assert len(list((store / "v1").glob("??/*/*/kernel.so"))) == 2
