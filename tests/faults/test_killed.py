"""Processes that are killed, stopped or slow in the middle of a compile: the next one is done soon, and right."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.faults.ground import debris, entries, start, wait_for

pytestmark = pytest.mark.slow

FORKING = """
import ctypes, os, pathlib, sys, threading, time
folder = pathlib.Path(sys.argv[1])
def fork():
    while not (folder / "waiting").exists():
        time.sleep(0.01)
    child = ctypes.PyDLL(None).fork()
    if child == 0:
        time.sleep(100)
        os._exit(0)
    (folder / "child").write_text(str(child))
threading.Thread(target=fork).start()
"""
"""A fork of which Python and filelock know nothing, so that nobody closes the descriptors that it inherits."""


@pytest.fixture
def held(slow_compiler: Any) -> Iterator[Path]:
    """The slow compiler's folder, in which a compile waits until `hold` is gone."""
    folder = slow_compiler.path.parent
    (folder / "hold").touch()
    yield folder
    (folder / "hold").unlink(missing_ok=True)
    for name in ("waiting", "child"):
        if (folder / name).exists():
            try:
                os.kill(int((folder / name).read_text()), signal.SIGKILL)
            except ProcessLookupError:
                pass


def release(folder: Path) -> None:
    """Compiles wait no longer; the one that waits is killed."""
    os.kill(int((folder / "waiting").read_text()), signal.SIGKILL)
    (folder / "hold").unlink()


def holds_a_lock(pid: int) -> bool:
    """Whether a process has a descriptor of a file in a folder of locks."""
    return any("/locks/" in os.readlink(descriptor) for descriptor in Path(f"/proc/{pid}/fd").iterdir())


@pytest.mark.parametrize("fork", [False, True], ids=["alone", "a fork of it lives on"])
def test_after_a_kill_in_mid_compile_the_next_process_is_right_within_ten_seconds(
    python: Any, compute: str, tmp_path: Path, slow_compiler: Any, held: Path, fork: bool
) -> None:
    settings = {"JITBLAS_CACHE_DIR": tmp_path / "store", **slow_compiler.setting}
    first = start((FORKING if fork else "") + compute, held, quiet=True, **settings)
    wait_for(held / ("child" if fork else "waiting"))
    time.sleep(1.5)  # it has been heard of
    first.kill()
    first.wait()
    release(held)
    if fork:
        assert holds_a_lock(int((held / "child").read_text()))
    started = time.monotonic()
    answer = python(compute, **settings)
    took = time.monotonic() - started
    assert answer.stdout == "right\n"
    assert took < 10, f"{took:.1f} s"
    assert len(answer.stderr.splitlines()) <= 1, answer.stderr
    assert len(entries(tmp_path / "store")) == 2
    again = python(compute, PATH="/nowhere", **settings | {"JITBLAS_MODE": "load"})
    assert (again.stdout, again.stderr) == ("right\n", "")


def test_whoever_waits_when_the_holder_is_killed_is_done_within_ten_seconds(
    compute: str, tmp_path: Path, slow_compiler: Any, held: Path
) -> None:
    settings = {"JITBLAS_CACHE_DIR": tmp_path / "store", **slow_compiler.setting}
    first = start(FORKING + compute, held, quiet=True, **settings)
    wait_for(held / "child")
    others = [start(compute, **settings) for _ in range(3)]
    time.sleep(2)
    first.kill()
    first.wait()
    release(held)
    started = time.monotonic()
    answers = [other.communicate(timeout=60) for other in others]
    assert time.monotonic() - started < 10
    assert [out for out, _ in answers] == ["right\n"] * 3, answers


def test_a_long_compile_is_waited_for_while_its_process_lives(
    compute: str, tmp_path: Path, slow_compiler: Any, held: Path
) -> None:
    settings = {"JITBLAS_CACHE_DIR": tmp_path / "store", **slow_compiler.setting}
    first = start(compute, **settings)
    wait_for(held / "waiting")
    second = start(compute, **settings)
    time.sleep(8)
    assert len(slow_compiler.compiled) == 1, "the second process did not wait"
    (held / "hold").unlink()
    answers = [process.communicate(timeout=60) for process in (first, second)]
    assert [out for out, _ in answers] == ["right\n"] * 2
    assert len(slow_compiler.compiled) == 2
    assert answers[0][1] == "" and answers[1][1].count(f"waiting for pid {first.pid}") == 1


def test_a_process_that_was_stopped_is_not_waited_for_and_goes_on_later(
    python: Any, compute: str, tmp_path: Path, slow_compiler: Any, held: Path
) -> None:
    settings = {"JITBLAS_CACHE_DIR": tmp_path / "store", **slow_compiler.setting}
    first = start(compute, **settings)
    wait_for(held / "waiting")
    first.send_signal(signal.SIGSTOP)
    try:
        release(held)
        started = time.monotonic()
        answer = python(compute, **settings)
        assert answer.stdout == "right\n"
        assert time.monotonic() - started < 10
    finally:
        first.send_signal(signal.SIGCONT)
    out, errors = first.communicate(timeout=60)
    assert out == "right\n" or "CompileError" in errors  # its compiler was killed, too
    assert debris(tmp_path / "store") == []


def test_kills_at_any_moment_leave_nothing_that_counts(python: Any, compute: str, tmp_path: Path) -> None:
    """Seeded moments from the first import to after the last compile."""
    moments = random.Random(950)
    store = tmp_path / "store"
    for _ in range(15):
        process = start(compute, quiet=True, JITBLAS_CACHE_DIR=store)
        time.sleep(moments.uniform(0.05, 0.7))
        process.kill()
        process.wait()
    started = time.monotonic()
    answer = python(compute, JITBLAS_CACHE_DIR=store)
    assert time.monotonic() - started < 10
    assert answer.stdout == "right\n"
    assert "moved aside" not in answer.stderr and "CompileError" not in answer.stderr
    python("import jitblas.cli; raise SystemExit(jitblas.cli.main(['cache', 'verify']))", JITBLAS_CACHE_DIR=store)


def test_a_compiler_that_never_ends_is_stopped_with_all_that_it_started(tmp_path: Path) -> None:
    from jitblas.toolchain.base import run

    script = f"sleep 300 & echo $! >{tmp_path}/child; echo $$ >{tmp_path}/leader; sleep 300"
    started = time.monotonic()
    finished = run(["sh", "-c", script], cwd=str(tmp_path), timeout=0.5)
    assert finished.returncode is None and finished.first_error() == "timed out"
    assert time.monotonic() - started < 5
    for name in ("child", "leader"):
        state = Path(f"/proc/{(tmp_path / name).read_text().strip()}/stat")
        time.sleep(0.1)
        assert not state.exists() or state.read_text().split()[2] == "Z"
