"""Many processes and threads at once, also while the store is emptied, evicted or deleted under them."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from jitblas.store import eviction
from jitblas.store.store import Store
from tests.faults.ground import LIBRARIES, debris, entries, entry_of, start

FIFTY = 50

ALL_IN_ANY_ORDER = (
    LIBRARIES
    + """
import random
count, seed = int(sys.argv[2]), int(sys.argv[3])
numbers = list(range(count))
random.Random(seed).shuffle(numbers)
assert all(number_of(number) == number for number in numbers)
print("right")
"""
)


@pytest.fixture
def sources(python: Any, tmp_path: Path) -> Path:
    """Sources of fifty small libraries."""
    folder = tmp_path / "sources"
    python(LIBRARIES + f"for number in range({FIFTY}): write_library(number)", str(folder))
    return folder


def finish(processes: list[subprocess.Popen[str]]) -> list[tuple[str, str]]:
    """What each said; all must have ended by themselves and well."""
    answers = [process.communicate(timeout=100) for process in processes]
    last = [
        errors.splitlines()[-1] for process, (_, errors) in zip(processes, answers, strict=True) if process.returncode
    ]
    assert last == [], "\n".join(last)
    return answers


def test_eight_cold_processes_compile_each_of_fifty_keys_once(tmp_path: Path, sources: Path, compiler: Any) -> None:
    settings = {"JITBLAS_CACHE_DIR": tmp_path / "store", **compiler.setting}
    processes = [start(ALL_IN_ANY_ORDER, sources, str(FIFTY), str(seed), **settings) for seed in range(8)]
    answers = finish(processes)
    assert [out for out, _ in answers] == ["right\n"] * 8
    assert sorted(Counter(compiler.compiled).values()) == [1] * FIFTY
    assert len(entries(tmp_path / "store")) == FIFTY and debris(tmp_path / "store") == []


THREADS = """
import random, threading, numpy as np, jitblas
def axpy(dtype, step):
    x, y = np.arange(100, dtype=dtype)[::step], np.ones(100, dtype)[::step]
    return (jitblas.axpy_ex(2.0, x, y) == 2 * x + 1).all()
calls = [lambda d=d, s=s: axpy(d, s) for d in ("f4", "f2") for s in (1, 2)]
calls.append(lambda: jitblas.cdotc(np.ones(9, "c8"), np.ones(9, "c8")) == 9)
def work(seed):
    mine = calls * 3
    random.Random(seed).shuffle(mine)
    barrier.wait()
    results.extend(call() for call in mine)
barrier, results = threading.Barrier(16), []
threads = [threading.Thread(target=work, args=(seed,)) for seed in range(16)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(len(results), all(results))
"""


def test_sixteen_threads_compile_each_of_several_kernels_once(python: Any, tmp_path: Path, compiler: Any) -> None:
    answer = python(THREADS, JITBLAS_CACHE_DIR=tmp_path / "store", **compiler.setting)
    assert (answer.stdout, answer.stderr) == ("240 True\n", "")
    assert len(compiler.compiled) == len(set(compiler.compiled)) == 6


IN_MEMORY = """
import builtins, os, threading, numpy as np, jitblas
from jitblas.jit import kernels, specialization
x, y = np.ones(100, "f4"), np.ones(100, "f4")
jitblas.axpy_ex(2.0, x, y)
wanted = jitblas.specialize("axpy_ex:n=100")
kernels.load(wanted)
class Refused:
    def __call__(self, *_, **__): raise AssertionError("a file was asked for, or a lock taken")
    __enter__ = __exit__ = acquire = __call__
refused = Refused()
kernels._lock = refused
kept = {name: getattr(os, name) for name in ("stat", "lstat", "open", "listdir", "scandir", "access", "readlink")}
for name in kept: setattr(os, name, refused)
opened, builtins.open = builtins.open, refused
try:
    for _ in range(100):
        kernels.load(wanted)
        jitblas.axpy_ex(2.0, x, y)
finally:
    builtins.open = opened
    for name, function in kept.items(): setattr(os, name, function)
print(y[0])
"""


def test_a_kernel_in_memory_is_found_without_lock_and_without_asking_a_file(python: Any, full_store: Path) -> None:
    assert python(IN_MEMORY, JITBLAS_CACHE_DIR=full_store).stdout == "203.0\n"


@pytest.mark.slow
def test_many_processes_that_find_one_bad_entry_are_all_right(compute: str, full_store: Path) -> None:
    os.truncate(entry_of(full_store) / "kernel.so", 1000)
    answers = finish([start(compute, JITBLAS_CACHE_DIR=full_store) for _ in range(6)])
    assert [out for out, _ in answers] == ["right\n"] * 6
    told = [line for _, errors in answers for line in errors.splitlines() if "waiting for" not in line]
    assert all("moved aside" in line for line in told) and len(told) <= 6, told
    assert len(entries(full_store)) == 2 and debris(full_store) == []


# ---- Under fire -----------------------------------------------------------------------------------------------------

AGAIN_AND_AGAIN = """
import sys, time, numpy as np, jitblas
from jitblas.jit import direct
direct.SETTLED = -10.0
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    for dtype in ("f4", "f2"):
        for step in (1, 2):
            x, y = np.arange(100, dtype=dtype)[::step], np.ones(100, dtype)[::step]
            assert (jitblas.axpy_ex(2.0, x, y) == 2 * x + 1).all()
    jitblas.reload()
print("right")
"""
SECONDS = 6


@contextmanager
def fire(shoot: Callable[[], Any], pause: float) -> Iterator[list[BaseException]]:
    """Does something again and again while others work; what it raises is kept."""
    over, raised = threading.Event(), []

    def run() -> None:
        while not over.wait(pause):
            try:
                shoot()
            except BaseException as error:
                raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield raised
    finally:
        over.set()
        thread.join()


def evict(cache: Path) -> None:
    eviction.prune(Store(str(cache), []), most_bytes=0)


def delete(cache: Path) -> None:
    shutil.rmtree(cache, ignore_errors=True)


def empty(cache: Path) -> None:
    if (cache / "v1").is_dir():
        Store(str(cache), []).clear()


SHOTS: dict[str, Callable[[Path], Any]] = {
    "entries are evicted": evict,
    "the store is cleared": empty,
    "the cache folder is deleted": delete,
}


@pytest.mark.slow
@pytest.mark.parametrize("pause", [0.02, 0.3])
@pytest.mark.parametrize("shot", list(SHOTS))
def test_under_fire_every_result_is_right(python: Any, compute: str, tmp_path: Path, shot: str, pause: float) -> None:
    """Whatever goes, and whenever: no process fails, and each says at most one line."""
    cache, temporary = tmp_path / "cache", tmp_path / "tmp"
    cache.mkdir()
    temporary.mkdir()
    settings = {"JITBLAS_CACHE_DIR": cache, "TMPDIR": temporary}
    with fire(lambda: SHOTS[shot](cache), pause) as raised:
        processes = [start(AGAIN_AND_AGAIN, str(SECONDS), **settings) for _ in range(4)]
        answers = finish(processes)
    assert [out for out, _ in answers] == ["right\n"] * 4
    for _, errors in answers:
        lines = [line for line in errors.splitlines() if "waiting for pid" not in line]
        assert len(lines) <= 1, errors
    assert shot == "the store is cleared" or raised == []
    assert list(temporary.iterdir()) == []
    answer = python(compute, **settings)
    assert (answer.stdout, answer.stderr) == ("right\n", "")


@pytest.mark.slow
def test_processes_that_keep_a_store_small_together_are_all_right(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    settings = {"JITBLAS_CACHE_DIR": cache, "JITBLAS_CACHE_MAX_SIZE": "80k"}
    answers = finish([start(AGAIN_AND_AGAIN, str(SECONDS), **settings) for _ in range(4)])
    assert [out for out, _ in answers] == ["right\n"] * 4
    for _, errors in answers:
        assert len([line for line in errors.splitlines() if "waiting for pid" not in line]) <= 1, errors
    time.sleep(0.1)
    sizes = [path.stat().st_size for folder in entries(cache).values() for path in folder.iterdir()]
    assert 0 < sum(sizes) <= 4 * 80_000
    assert debris(cache) == []
