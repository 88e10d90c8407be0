"""Prewarming on this machine: compilers side by side, as many as processors and memory allow."""

from __future__ import annotations

import concurrent.futures
import os
import threading
import time
from collections.abc import Callable, Sequence
from types import TracebackType

from jitblas import config
from jitblas.errors import CompileError, Error
from jitblas.jit import artifacts
from jitblas.prewarming.report import FAILED, MISSING, NOT_DONE, STARTED, Outcome, Report
from jitblas.prewarming.work import Work
from jitblas.store.entry import Entry
from jitblas.toolchain import base

COMPILE_BYTES = 400 << 20
"""Memory that a compile is expected to take: g++ and clang++ need a quarter of it, zig two thirds."""

Finish = Callable[[Entry], object]
"""What is done with every entry, such as an upload."""

Told = Callable[[Outcome, int, int], object]


def look(work: Sequence[Work], progress: Told) -> Report:
    """Only look which artifacts are there."""
    started = time.perf_counter()
    outcomes = []
    for one in work:
        entry = artifacts.look_up(one.make_recipe())
        outcomes.append(begun(one, MISSING) if entry is None else of_entry(one, entry))
        progress(outcomes[-1], len(outcomes), len(work))
    return Report(tuple(outcomes), time.perf_counter() - started)


def build(work: Sequence[Work], jobs: int, finish: Finish | None, progress: Told) -> Report:
    """Obtain every artifact. An interrupt stops running compilers and leaves what is done."""
    started = time.perf_counter()
    outcomes = {one.what: begun(one, NOT_DONE) for one in work}
    gate = _MemoryGate()
    stopped = threading.Event()
    telling = threading.Lock()
    done = 0

    def tell(outcome: Outcome) -> None:
        with telling:
            progress(outcome, done, len(work))

    def make(one: Work) -> Outcome:
        with gate:
            if stopped.is_set():
                return begun(one, NOT_DONE)
            tell(begun(one, STARTED))
            outcome = obtained(one, finish)
            return begun(one, NOT_DONE) if stopped.is_set() and outcome.status == FAILED else outcome

    interrupted = False
    with concurrent.futures.ThreadPoolExecutor(jobs, thread_name_prefix="jitblas-prewarm") as pool:
        futures = {pool.submit(make, one): one for one in work}
        try:
            for future in concurrent.futures.as_completed(futures):
                outcomes[futures[future].what] = outcome = future.result()
                done += 1
                tell(outcome)
        except KeyboardInterrupt:
            interrupted = True
            stopped.set()
            pool.shutdown(wait=False, cancel_futures=True)
            base.stop_running()
    if interrupted:
        for future, one in futures.items():
            if not future.cancelled() and future.exception() is None:
                outcomes[one.what] = future.result()
    return Report(tuple(outcomes.values()), time.perf_counter() - started, interrupted)


def obtained(one: Work, finish: Finish | None) -> Outcome:
    """Obtain one artifact; what goes wrong is in the outcome."""
    try:
        return finished(one, artifacts.obtain(one.make_recipe()), finish)
    except CompileError as error:
        return begun(one, FAILED)._replace(key=error.key, message=f"{error}\n{error.output}".strip())
    except (Error, OSError, ValueError) as error:
        return begun(one, FAILED)._replace(message=str(error))


def finished(one: Work, entry: Entry, finish: Finish | None) -> Outcome:
    """The outcome of an artifact that is there, after what is done with every entry."""
    if finish is not None:
        try:
            finish(entry)
        except (Error, OSError) as error:
            return of_entry(one, entry)._replace(status=FAILED, message=str(error))
    return of_entry(one, entry)._replace(uploaded=finish is not None)


def begun(one: Work, status: str) -> Outcome:
    problem, target, exact = one.request
    return Outcome(status, one.title, "" if problem == one.title else problem, target or "", bool(exact), one.what)


def of_entry(one: Work, entry: Entry) -> Outcome:
    return begun(one, entry.origin)._replace(
        key=str(entry.key),
        seconds=float(entry.meta.get("seconds", 0.0)) if entry.origin == "compiled" else 0.0,
        nbytes=sum(facts["size"] for facts in entry.meta["files"].values()),
    )


class _MemoryGate:
    """Lets a further compile begin when there is memory for it; one at a time may always run."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._running = 0

    def __enter__(self) -> None:
        with self._changed:
            while self._running and available_memory() < COMPILE_BYTES:
                self._changed.wait(1.0)
            self._running += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._changed:
            self._running -= 1
            self._changed.notify_all()


def default_jobs() -> int:
    """One compile per processor, if memory allows."""
    return max(1, min(config.processors(), available_memory() // COMPILE_BYTES))


def available_memory() -> int:
    """Bytes that the machine, and the control group, can still give us."""
    found = [1 << 62]
    try:
        with open("/proc/meminfo") as file:
            facts = dict(line.split(":", 1) for line in file)
        found.append(int(facts["MemAvailable"].split()[0]) * 1024)
    except (OSError, ValueError, KeyError):
        pass
    for limit, used in _CGROUP_MEMORY:
        try:
            with open(limit) as most, open(used) as now:
                found.append(int(most.read()) - int(now.read()))
        except (OSError, ValueError):
            pass  # no such group, or "max"
    return max(0, min(found))


_CGROUP_MEMORY = tuple(
    (os.path.join("/sys/fs/cgroup", limit), os.path.join("/sys/fs/cgroup", used))
    for limit, used in (
        ("memory.max", "memory.current"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
    )
)
