"""Prewarming on a Dask cluster: workers compile, this process keeps what they made.

A task is one artifact. A worker obtains it from its own store or compiler and answers with the packed entry, which is
placed in the store here as soon as it comes. A worker that dies takes nothing with it: Dask gives its task to another,
and one that had compiled it already finds it in the store that it left.
"""

from __future__ import annotations

import asyncio
import io
import re
import time
from collections.abc import Sequence
from typing import Any

from jitblas import __version__, config
from jitblas.errors import CompilerNotFound, Error
from jitblas.jit import artifacts
from jitblas.prewarming.local import Finish, finished, lasting, obtained, outcome_of
from jitblas.prewarming.report import FAILED, NOT_DONE, Outcome, Progress, Report
from jitblas.prewarming.work import Request, Work, lay_out
from jitblas.store import archive
from jitblas.store.entry import Entry
from jitblas.store.signatures import Refused

Answer = tuple[dict[str, Any], bytes]
"""An outcome as a dict, and the packed entry if there is one."""


def build(work: Sequence[Work], scheduler: str, finish: Finish | None, progress: Progress) -> Report:
    """Obtain every artifact, those that are not in the store already from the workers of a scheduler."""
    started = time.perf_counter()
    outcomes = {one.recipe.what: outcome_of(one, NOT_DONE) for one in work}
    missing: list[Work] = []
    done = 0
    for one in work:
        entry = artifacts.look_up(one.recipe)
        if entry is None:
            missing.append(one)
            continue
        outcomes[one.recipe.what] = outcome = finished(one, entry, finish)
        done += 1
        progress(outcome, done, len(work))
    interrupted = False
    if missing:
        distributed = _distributed()
        client = _connected(distributed, scheduler)
        futures: dict[Any, Work] = {}
        try:
            for one in missing:
                what = one.recipe.what
                task = client.submit(compile_on_worker, tuple(one.request), what, __version__, key=f"jitblas-{what}")
                futures[task] = one
            for future in distributed.as_completed(futures, loop=client.loop):
                one = futures[future]
                outcomes[one.recipe.what] = _kept(one, future, finish)
                done += 1
                progress(outcomes[one.recipe.what], done, len(work))
        except KeyboardInterrupt:
            interrupted = True
            client.cancel(list(futures))
        finally:
            client.close()
    return Report(lasting(outcomes.values()), time.perf_counter() - started, interrupted)


def compile_on_worker(request: tuple[str, str, bool], what: str, version: str) -> Answer:
    """Runs on a worker: the artifact from its store or compiler, packed."""
    one = lay_out(Request(*request))
    if one.recipe.what != what:
        message = f"a worker has jitblas {__version__} with other kernel sources than the jitblas {version} here"
        return outcome_of(one, FAILED, message=message)._asdict(), b""
    buffer = io.BytesIO()

    def pack(entry: Entry) -> bool:
        archive.pack([entry], buffer)
        return False

    return obtained(one, pack)._asdict(), buffer.getvalue()


def _kept(one: Work, future: Any, finish: Finish | None) -> Outcome:
    """The outcome of a task whose entry, if it has one, is in our store now."""
    if future.status != "finished":
        return outcome_of(one, FAILED, message=f"the cluster gave it up: {future.exception() or future.status}")
    answer, data = future.result()
    future.release()
    outcome = Outcome(**answer)
    if outcome.status == FAILED:
        return outcome
    try:
        # Unsigned: whoever can answer here could run code here without it.
        (packed,) = archive.unpack(io.BytesIO(data), lambda _: None)
        entry = artifacts.store().place(packed.key, packed.files)
    except (OSError, ValueError, Refused) as error:
        return outcome_of(one, FAILED, message=f"what a worker made could not be kept: {error}")
    kept = finished(one, entry._replace(origin=outcome.status), finish)
    try:
        foreign = kept.status != FAILED and one.recipe.key() != packed.key
    except CompilerNotFound:
        foreign = False
    return kept._replace(message="compiled for other machines than this one") if foreign else kept


def _distributed() -> Any:
    try:
        import distributed
    except ImportError as error:
        raise Error(f"a scheduler needs the package distributed ({error}): pip install 'jitblas[cluster]'") from None
    return distributed


def _connected(distributed: Any, scheduler: str) -> Any:
    timeout = config.remote_timeout()
    if not re.fullmatch(r"(tcp|tls|ucx|ws|wss)://.+:\d+", scheduler):
        raise Error(
            f"the scheduler {scheduler!r} is no address; accepted are such as tcp://head:8786 and tls://head:8786"
        )
    try:
        client = distributed.Client(scheduler, timeout=timeout, set_as_default=False)
    except Exception as error:  # of other people's network code
        raise Error(f"the scheduler {scheduler!r} does not answer: {type(error).__name__}: {error}") from None
    try:
        client.wait_for_workers(1, timeout=timeout)
    except (TimeoutError, asyncio.TimeoutError):
        client.close()
        raise Error(f"the scheduler {scheduler} has no workers; start some: dask worker {scheduler}") from None
    return client
