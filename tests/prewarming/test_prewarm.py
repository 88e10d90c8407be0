"""Prewarming on this machine: everything once, failures told and the rest done, interrupts leave what is done."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import jitblas
from jitblas.prewarming import local
from jitblas.store import eviction
from jitblas.store.store import Store
from tests.conftest import environment

PREWARM = """
import sys, jitblas
report = jitblas.prewarm(sys.argv[2:], jobs=int(sys.argv[1]))
print([(one.status, one.title.split()[0]) for one in report.outcomes if one.problem], report.ok)
"""
FOUR = ("axpy_ex:n=9", "axpy_ex:n=9,dtype=fp16", "cdotc:n=9", "fft:n=16,dtype=c64")


def test_prewarmed_kernels_need_no_compiler_no_process_and_no_lock(
    python: Any, compute: str, tmp_path: Path, compiler: Any
) -> None:
    settings = {"JITBLAS_CACHE_DIR": tmp_path / "store", **compiler.setting}
    answer = python(PREWARM, "2", "axpy_ex:n=1000", **settings)
    assert (answer.stdout, answer.stderr) == ("[('compiled', 'axpy_ex')] True\n", "")
    count = len(compiler.compiled)
    assert python(PREWARM, "2", "axpy_ex:n=77", **settings).stdout == "[('stored', 'axpy_ex')] True\n"
    assert len(compiler.compiled) == count
    for path in [tmp_path / "store", *(tmp_path / "store").rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    watch = """
import sys
def watch(event, arguments):
    assert event not in ("subprocess.Popen", "os.fork", "os.posix_spawn", "os.mkdir", "os.rename"), event
    assert event != "open" or "lock" not in str(arguments[0]), arguments
sys.addaudithook(watch)
"""
    settings = {"JITBLAS_CACHE_DIR": tmp_path / "store", "JITBLAS_MODE": "load", "PATH": ""}
    answer = python(watch + compute, **settings)
    assert (answer.stdout, answer.stderr) == ("right\n", "")
    missing = "import numpy, jitblas\njitblas.cdotc(numpy.ones(9, 'c8'), numpy.ones(9, 'c8'))"
    answer = python(missing, check=False, **settings)
    assert "MissingKernelError" in answer.stderr
    assert answer.stderr.rstrip().endswith("this makes it: jitblas prewarm cdotc:n=9 --target host")


@pytest.mark.parametrize("jobs", ["1", "3"])
def test_every_kernel_is_compiled_once_whatever_the_number_of_jobs(
    python: Any, tmp_path: Path, compiler: Any, jobs: str
) -> None:
    answer = python(PREWARM, jobs, *FOUR, *FOUR, JITBLAS_CACHE_DIR=tmp_path / "store", **compiler.setting)
    assert answer.stdout.count("compiled") == 4 and answer.stdout.endswith(" True\n")
    assert set(Counter(compiler.compiled).values()) == {1}


def test_two_prewarms_of_one_store_share_the_work(tmp_path: Path, compiler: Any) -> None:
    settings = {"JITBLAS_CACHE_DIR": tmp_path / "store", **compiler.setting}
    argv = [sys.executable, "-c", PREWARM, "2", *FOUR]
    processes = [
        subprocess.Popen(argv, env=environment(**settings), stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    answers = [process.communicate(timeout=100)[0] for process in processes]
    assert all(answer.endswith(" True\n") for answer in answers), answers
    assert set(Counter(compiler.compiled).values()) == {1}


def test_a_failure_is_told_with_the_compiler_s_words_and_the_rest_is_done(
    python: Any, tmp_path: Path, compiler: Any
) -> None:
    compiler.fail_on("cdotc")
    code = PREWARM + "print([(one.problem, one.message) for one in report.failed])"
    answer = python(code, "2", *FOUR, JITBLAS_CACHE_DIR=tmp_path / "store", **compiler.setting)
    first, second = answer.stdout.splitlines()
    assert first.count("compiled") == 3 and first.endswith(" False")
    assert second.startswith("[('cdotc:n=9', ") and "error: no cdotc today" in second


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_stops_compilers_and_leaves_what_is_done(
    python: Any, tmp_path: Path, slow_compiler: Any, by: signal.Signals
) -> None:
    store, folder = tmp_path / "store", slow_compiler.path.parent
    settings = {"JITBLAS_CACHE_DIR": store, **slow_compiler.setting}
    assert python(PREWARM, "1", "axpy_ex:n=9", **settings).stdout.endswith(" True\n")
    (folder / "waiting").unlink()
    (folder / "hold").touch()
    process = subprocess.Popen(
        [sys.executable, "-m", "jitblas", "prewarm", "-j", "1", *FOUR],
        env=environment(**settings),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # a background shell ignores it
    )
    end = time.monotonic() + 30
    while not (folder / "waiting").exists() or not (folder / "waiting").read_text():
        assert time.monotonic() < end
        time.sleep(0.02)
    compiler = int((folder / "waiting").read_text())
    process.send_signal(by)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 130, (out, err)
    assert "4 stored, 3 not done" in out and "interrupted: the same command makes the 3 that are not done" in out
    with pytest.raises(ProcessLookupError):
        os.kill(compiler, 0)
    assert not list((store / "v1").glob("build-*"))
    (folder / "hold").unlink()
    assert python(PREWARM, "2", *FOUR, **settings).stdout.endswith(" True\n")


def test_looking_compiles_nothing_and_tells_what_is_missing(python: Any, tmp_path: Path, full_store: Path) -> None:
    code = """
import jitblas
report = jitblas.prewarm(["axpy_ex:n=9", "cdotc:n=9"], check=True)
print(report.ok, [(one.title, one.problem) for one in report.missing])
"""
    for mode in ("on", "load"):
        answer = python(code, JITBLAS_CACHE_DIR=full_store, JITBLAS_MODE=mode)
        assert answer.stdout.startswith("False [('the host cube', ''), ('the launcher', ''), ('cdotc")
    assert len(list((tmp_path / "full").rglob("kernel.so"))) == 2


@pytest.mark.parametrize("mode", ["load", "off"])
def test_prewarming_where_nothing_may_be_kept_is_an_error(monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    monkeypatch.setenv("JITBLAS_MODE", mode)
    with pytest.raises(jitblas.Error, match=f"JITBLAS_MODE={mode}: prewarm needs JITBLAS_MODE=on"):
        jitblas.prewarm(["axpy_ex:n=9"])


def test_a_wrong_problem_or_target_is_refused_before_anything_is_compiled() -> None:
    with pytest.raises(jitblas.ProblemSyntaxError):
        jitblas.prewarm(["axpy_ex:n=9", "axpy_ex:n=nine"])
    with pytest.raises(ValueError, match="tpu"):
        jitblas.prewarm(["axpy_ex:n=9"], targets=["tpu"])


def test_the_chip_s_kernels_are_prewarmed_without_a_chip(python: Any, tmp_path: Path, cann: Any) -> None:
    code = """
import jitblas
report = jitblas.prewarm(["axpy_ex:n=1000", "cdotc:n=1000"], targets=["ascend950pr"])
print(report.ok, [one.status for one in report.outcomes])
"""
    answer = python(code, JITBLAS_CACHE_DIR=tmp_path / "store", ASCEND_HOME_PATH=cann.root)
    assert answer.stdout == "True ['compiled', 'compiled']\n"


def test_progress_hears_of_each_kernel_s_begin_and_end(python: Any, tmp_path: Path) -> None:
    code = """
import jitblas
told = []
jitblas.prewarm(["axpy_ex:n=9"], progress=lambda one, done, count: told.append((one.title, one.status, done, count)))
assert [count for *_, count in told] == [4] * 8
assert [done for _, status, done, _ in told if status == "compiled"] == [1, 2, 3, 4]
for title in {title for title, *_ in told}:
    assert [status for name, status, *_ in told if name == title] == ["started", "compiled"]
"""
    python(code, JITBLAS_CACHE_DIR=tmp_path / "store")


# ---- Memory ---------------------------------------------------------------------------------------------------------


def test_jobs_are_as_many_as_processors_and_memory_allow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local.config, "processors", lambda: 64)
    for available, jobs in ((0, 1), (local.COMPILE_BYTES, 1), (5 * local.COMPILE_BYTES, 5), (1 << 40, 64)):
        monkeypatch.setattr(local, "available_memory", lambda available=available: available)
        assert local.default_jobs() == jobs


def test_a_compile_waits_for_memory_unless_it_is_the_only_one(monkeypatch: pytest.MonkeyPatch) -> None:
    available = [0]
    monkeypatch.setattr(local, "available_memory", lambda: available[0])
    gate, entered = local._MemoryGate(), []
    second = threading.Thread(target=lambda: gate.__enter__() or entered.append(time.monotonic()))
    with gate:
        second.start()
        time.sleep(0.2)
        assert not entered
        available[0] = local.COMPILE_BYTES
        second.join(5)
        assert entered


def test_available_memory_is_what_the_machine_or_the_control_group_has_left(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    machine = local.available_memory()
    assert 1 << 20 < machine < 1 << 50
    (tmp_path / "max").write_text("1000000\n")
    (tmp_path / "current").write_text("400000\n")
    (tmp_path / "stat").write_text("anon 1\ninactive_file 50000\n")
    files = tuple(str(tmp_path / name) for name in ("max", "current", "stat"))
    monkeypatch.setattr(local, "_CGROUP_MEMORY", (files,))
    assert local.available_memory() == 650000
    (tmp_path / "max").write_text("max\n")
    assert local.available_memory() > 650000


def test_an_interrupted_probe_says_nothing_about_the_compiler(python: Any, tmp_path: Path) -> None:
    script = tmp_path / "g++"
    script.write_text(
        f'#!/bin/sh\nif [ ! -e {tmp_path}/second ]; then touch {tmp_path}/second; kill -9 $$; fi\nexec g++ "$@"\n'
    )
    script.chmod(0o755)
    settings = {"JITBLAS_CACHE_DIR": tmp_path / "store", "JITBLAS_CXX": script}
    assert python(PREWARM, "1", "axpy_ex:n=9", **settings).stdout.endswith(" False\n")
    assert python(PREWARM, "1", "axpy_ex:n=9", **settings).stdout.endswith(" True\n")


def test_looking_and_showing_do_not_count_as_using(python: Any, full_store: Path) -> None:
    look = "import jitblas\njitblas.prewarm(['axpy_ex:n=9'], check=True)"
    python(look, JITBLAS_CACHE_DIR=full_store)
    before = eviction.facts(Store(str(full_store), []))
    python(look, JITBLAS_CACHE_DIR=full_store)
    assert eviction.facts(Store(str(full_store), [])) == before
    next(full_store.glob("v1/??/*/*/kernel.so")).write_bytes(b"damaged")
    assert python(look, JITBLAS_CACHE_DIR=full_store).stderr == ""
    assert not (full_store / "v1" / "quarantine").exists()
