"""Prewarming on this machine: compilers side by side, as many as processors and memory allow."""

from __future__ import annotations

import concurrent.futures
import os
import threading
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

from jitblas import config
from jitblas.errors import CompileError, Error
from jitblas.jit import artifacts
from jitblas.prewarming.report import DONE, FAILED, MISSING, NOT_DONE, STARTED, Outcome, Progress, Report
from jitblas.prewarming.work import Work
from jitblas.store.entry import META, Entry
from jitblas.toolchain import base

COMPILE_BYTES = 400 << 20
"""Memory that a compile is expected to take: g++ and clang++ need a quarter of it, zig two thirds."""

Finish = Callable[[Entry], bool]
"""What is done with every entry, such as an upload; whether it was uploaded."""


def look(work: Sequence[Work], progress: Progress) -> Report:
    """Only look which artifacts are there."""
    started = time.perf_counter()
    outcomes = []
    for one in work:
        entry = artifacts.look_up(one.recipe)
        outcomes.append(outcome_of(one, MISSING) if entry is None else finished(one, entry, None))
        progress(outcomes[-1], len(outcomes), len(work))
    return Report(tuple(outcomes), time.perf_counter() - started)


def build(work: Sequence[Work], jobs: int, finish: Finish | None, progress: Progress) -> Report:
    """Obtain every artifact. An interrupt stops running compilers and leaves what is done."""
    started = time.perf_counter()
    outcomes = {one.recipe.what: outcome_of(one, NOT_DONE) for one in work}
    gate = _MemoryGate()
    interrupted = threading.Event()
    telling = threading.Lock()
    done = 0

    def tell(outcome: Outcome) -> None:
        with telling:
            progress(outcome, done, len(work))

    def make(one: Work) -> Outcome:
        with gate:
            if interrupted.is_set():
                return outcome_of(one, NOT_DONE)
            tell(outcome_of(one, STARTED))
            outcome = obtained(one, finish)
            return outcome_of(one, NOT_DONE) if interrupted.is_set() and outcome.status == FAILED else outcome

    pool = concurrent.futures.ThreadPoolExecutor(jobs, thread_name_prefix="jitblas-prewarm")
    futures = {pool.submit(make, one): one for one in work}
    try:
        for future in concurrent.futures.as_completed(futures):
            outcomes[futures[future].recipe.what] = outcome = future.result()
            done += 1
            tell(outcome)
    except KeyboardInterrupt:
        interrupted.set()
        with base.stopped():
            pool.shutdown(cancel_futures=True)
        for future, one in futures.items():
            if not future.cancelled() and future.exception() is None:
                outcomes[one.recipe.what] = future.result()
    finally:
        pool.shutdown(cancel_futures=True)
    return Report(lasting(outcomes.values()), time.perf_counter() - started, interrupted.is_set())


def obtained(one: Work, finish: Finish | None) -> Outcome:
    """Obtain one artifact; what goes wrong is in the outcome."""
    try:
        return finished(one, artifacts.obtain(one.recipe), finish)
    except CompileError as error:
        return outcome_of(one, FAILED, key=error.key, message=f"{error}\n{error.output}".strip())
    except (Error, OSError, ValueError) as error:
        return outcome_of(one, FAILED, message=str(error))


def finished(one: Work, entry: Entry, finish: Finish | None) -> Outcome:
    """The outcome of an artifact that is there, after what is done with every entry."""
    facts: dict[str, Any] = {"key": str(entry.key), "folder": entry.folder, "nbytes": entry.nbytes}
    if entry.origin == "compiled":
        facts["seconds"] = float(entry.meta.get("seconds", 0.0))
    try:
        uploaded = finish is not None and finish(entry)
    except (Error, OSError) as error:
        return outcome_of(one, FAILED, message=str(error), **facts)
    return outcome_of(one, entry.origin, uploaded=uploaded, **facts)


def outcome_of(one: Work, status: str, **facts: Any) -> Outcome:
    problem = "" if one.request.problem == one.recipe.title else one.request.problem
    target, exact = str(one.request.target), bool(one.request.exact)
    return Outcome(status, one.recipe.title, problem, target, exact, **{"key": one.recipe.what, **facts})


def lasting(outcomes: Any) -> tuple[Outcome, ...]:
    """The outcomes; those whose entries are not there any more, or go with this process, failed."""

    def kept(outcome: Outcome) -> bool:
        store = artifacts.store()
        temporary = store.is_temporary and outcome.folder.startswith(store.root + os.sep)
        return not temporary and os.path.isfile(os.path.join(outcome.folder, META))

    lost = "it was not kept: the store has no room for it (JITBLAS_CACHE_MAX_SIZE, or its file system)"
    return tuple(
        outcome._replace(status=FAILED, message=lost) if outcome.status in DONE and not kept(outcome) else outcome
        for outcome in outcomes
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
    for limit, used, statistics in _CGROUP_MEMORY:
        try:
            with open(limit) as most, open(used) as now, open(statistics) as file:
                # Pages of files count as used, and go when memory is asked for.
                cached = next((int(line.split()[1]) for line in file if "inactive_file" in line.split()[0]), 0)
                found.append(int(most.read()) - int(now.read()) + cached)
        except (OSError, ValueError):
            pass  # no such group, or "max"
    return max(0, min(found))


_CGROUP_MEMORY = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current", "/sys/fs/cgroup/memory.stat"),
    (
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        "/sys/fs/cgroup/memory/memory.usage_in_bytes",
        "/sys/fs/cgroup/memory/memory.stat",
    ),
)
