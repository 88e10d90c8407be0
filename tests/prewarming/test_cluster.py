"""Prewarming on a Dask cluster: workers that are processes of their own, one killed in the middle, nothing twice."""

from __future__ import annotations

import importlib.util
import os
import platform
import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import jitblas
from jitblas.jit import artifacts
from tests.conftest import PROJECT

pytestmark = pytest.mark.skipif(importlib.util.find_spec("distributed") is None, reason="distributed is missing")

PROBLEMS = ["axpy_ex:n=9", "axpy_ex:n=9,dtype=fp16", "cdotc:n=9", "fft:n=16,dtype=c64", "csyrk:LN,n=9,k=9"]


@pytest.fixture
def cluster(tmp_path: Path, slow_compiler: Any) -> Iterator[Any]:
    """Two workers that share a store of their own and log what they compile; here is another store, empty."""
    from distributed import LocalCluster

    settings = {"JITBLAS_CACHE_DIR": str(tmp_path / "workers"), "PYTHONPATH": str(PROJECT), **slow_compiler.setting}
    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, env=settings, host="127.0.0.1"
    ) as made:
        yield made


@pytest.fixture(autouse=True)
def own_store(tmp_path: Path, slow_compiler: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """This process has the workers' compiler, so that their entries are hits here, and an empty store."""
    monkeypatch.setenv("JITBLAS_CACHE_DIR", str(tmp_path / "own"))
    for name, value in slow_compiler.setting.items():
        monkeypatch.setenv(name, value)
    for cached in (artifacts.store, artifacts.find_toolchain):
        cached.cache_clear()
    yield tmp_path / "own"
    monkeypatch.undo()
    for cached in (artifacts.store, artifacts.find_toolchain):
        cached.cache_clear()


def test_what_workers_compile_is_kept_here_each_kernel_once(
    cluster: Any, own_store: Path, slow_compiler: Any, python: Any, compute: str
) -> None:
    report = jitblas.prewarm(PROBLEMS, scheduler=cluster.scheduler_address)
    assert [one.status for one in report.outcomes] == ["compiled"] * 8
    assert len(list(own_store.glob("v1/??/*/*/kernel.so"))) == len(slow_compiler.compiled) == 8
    assert set(Counter(slow_compiler.compiled).values()) == {1}
    again = jitblas.prewarm(PROBLEMS, scheduler=cluster.scheduler_address)
    assert [one.status for one in again.outcomes] == ["stored"] * 8
    answer = python(compute, JITBLAS_CACHE_DIR=own_store, JITBLAS_MODE="load", PATH="/nowhere")
    assert (answer.stdout, answer.stderr) == ("right\n", "")


def test_a_worker_killed_in_the_middle_loses_nothing_and_nothing_is_compiled_twice(
    cluster: Any, own_store: Path, slow_compiler: Any, tmp_path: Path
) -> None:
    folder = slow_compiler.path.parent

    def hold_after_two(_outcome: Any, done: int, _count: int) -> None:
        if done == 2:
            (folder / "waiting").unlink(missing_ok=True)
            (folder / "hold").touch()

    def kill() -> None:
        end = time.monotonic() + 60
        while not (folder / "waiting").exists() or not (folder / "hold").exists():
            if time.monotonic() > end:
                return
            time.sleep(0.02)
        time.sleep(0.3)
        compiler = int((folder / "waiting").read_text())
        parent = Path(f"/proc/{compiler}/stat").read_text().rpartition(")")[2].split()[1]  # the one that compiles
        os.kill(int(parent), signal.SIGKILL)
        killed.append(int(parent))
        time.sleep(0.5)
        (folder / "hold").unlink()

    killed: list[int] = []
    killer = threading.Thread(target=kill)
    killer.start()
    report = jitblas.prewarm(PROBLEMS, scheduler=cluster.scheduler_address, progress=hold_after_two)
    killer.join()
    assert len(killed) == 1
    assert report.ok, report
    assert len(list(own_store.glob("v1/??/*/*/kernel.so"))) == 8
    published = [path.parent for path in (tmp_path / "workers" / "v1").glob("??/*/*/kernel.so")]
    assert len(published) == 8
    # A compile that was killed had to be begun anew; none that was done was done again.
    counts = sorted(Counter(slow_compiler.compiled).values())
    assert counts[:7] == [1] * 7 and counts[7] <= 2


def test_a_failed_compile_on_a_worker_is_told_and_the_rest_is_done(cluster: Any, slow_compiler: Any) -> None:
    slow_compiler.fail_on("cdotc")
    report = jitblas.prewarm(PROBLEMS, scheduler=cluster.scheduler_address)
    assert [one.problem for one in report.failed] == ["cdotc:n=9"]
    assert "error: no cdotc today" in report.failed[0].message
    assert len(report.of("compiled")) == 7


@pytest.mark.skipif(platform.machine() != "x86_64", reason="its instruction sets have other names")
def test_kernels_for_other_machines_are_kept_and_told(tmp_path: Path, own_store: Path, slow_compiler: Any) -> None:
    from distributed import LocalCluster

    settings = {"JITBLAS_CACHE_DIR": str(tmp_path / "workers"), "PYTHONPATH": str(PROJECT), "JITBLAS_MARCH": "x86-64"}
    local = {"n_workers": 1, "processes": True, "dashboard_address": None, "host": "127.0.0.1"}
    with LocalCluster(env={**settings, **slow_compiler.setting}, **local) as other:
        report = jitblas.prewarm(["axpy_ex:n=9"], scheduler=other.scheduler_address)
    assert report.ok and {one.message for one in report.outcomes} == {"compiled for other machines than this one"}
    assert len(list(own_store.glob("v1/??/*/*/kernel.so"))) == 4


def test_a_scheduler_that_is_not_there_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    monkeypatch.setenv("JITBLAS_REMOTE_TIMEOUT", "1")
    for address, told in (
        (f"tcp://127.0.0.1:{port}", "does not answer"),
        ("nonsense://x", "no address"),
        ("", "no address"),
    ):
        with pytest.raises(jitblas.Error, match=f"the scheduler {address!r} .*{told}"):
            jitblas.prewarm(["axpy_ex:n=9"], scheduler=address)
