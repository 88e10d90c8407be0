"""Prewarming on a Dask cluster: workers compile, this process keeps what they made.

A task is one artifact. A worker obtains it from its own store or compiler and answers with the packed entry, which is
placed in the store here as soon as it comes. A worker that dies takes nothing with it: Dask gives its task to another,
and one that had compiled it already finds it in the store that it left.
"""

from __future__ import annotations

import io
import time
from collections.abc import Sequence
from typing import Any

from jitblas import __version__, config
from jitblas.errors import Error
from jitblas.jit import artifacts
from jitblas.prewarming.local import Finish, Told, begun, finished, obtained
from jitblas.prewarming.report import DONE, FAILED, NOT_DONE, Outcome, Report
from jitblas.prewarming.work import Request, Work, lay_out
from jitblas.store import archive
from jitblas.store.entry import Key, verify
from jitblas.store.signatures import Refused

Answer = tuple[dict[str, Any], bytes]
"""An outcome as a dict, and the packed entry if there is one."""


def build(work: Sequence[Work], scheduler: str, finish: Finish | None, progress: Told) -> Report:
    """Obtain every artifact, those that are not in the store already from the workers of a scheduler."""
    started = time.perf_counter()
    outcomes = {one.what: begun(one, NOT_DONE) for one in work}
    missing: list[Work] = []
    done = 0
    for one in work:
        entry = artifacts.look_up(one.make_recipe())
        if entry is None:
            missing.append(one)
            continue
        outcomes[one.what] = outcome = finished(one, entry, finish)
        done += 1
        progress(outcome, done, len(work))
    interrupted = False
    if missing:
        distributed = _distributed()
        client = _connected(distributed, scheduler)
        try:
            futures = {}
            for one in missing:
                task = client.submit(compile_on_worker, one.request, one.what, __version__, key=f"jitblas-{one.what}")
                futures[task] = one
            for future in distributed.as_completed(futures, loop=client.loop):
                one = futures[future]
                outcomes[one.what] = _kept(one, future, finish)
                done += 1
                progress(outcomes[one.what], done, len(work))
        except KeyboardInterrupt:
            interrupted = True
            client.cancel(list(futures))
        finally:
            client.close()
    return Report(tuple(outcomes.values()), time.perf_counter() - started, interrupted)


def compile_on_worker(request: Request, what: str, version: str) -> Answer:
    """Runs on a worker: the artifact from its store or compiler, packed."""
    one = lay_out(Request(*request))
    if one.what != what:
        reason = (
            f"jitblas {__version__} with other kernel sources" if version == __version__ else f"jitblas {__version__}"
        )
        outcome = begun(one, FAILED)._replace(message=f"the worker has {reason}; here is jitblas {version}")
        return outcome._asdict(), b""
    outcome = obtained(one, None)
    if outcome.status not in DONE:
        return outcome._asdict(), b""
    what, _, how = outcome.key.partition("/")
    entry = next(entry for root in artifacts.store().roots if (entry := verify(root, Key(what, how))) is not None)
    buffer = io.BytesIO()
    archive.pack([entry], buffer)
    return outcome._asdict(), buffer.getvalue()


def _kept(one: Work, future: Any, finish: Finish | None) -> Outcome:
    """The outcome of a task whose entry, if it has one, is in our store now."""
    if future.status != "finished":
        return begun(one, FAILED)._replace(message=f"the cluster gave it up: {future.exception()!r}")
    answer, data = future.result()
    future.release()
    outcome = Outcome(**answer)
    if not data:
        return outcome
    try:
        # Unsigned: whoever can answer here could run code here without it.
        (packed,) = archive.unpack(io.BytesIO(data), lambda _: None)
        entry = artifacts.store().place(packed.key, packed.files)
    except (OSError, Refused) as error:
        return begun(one, FAILED)._replace(message=str(error))
    return finished(one, entry._replace(origin=outcome.status), finish)


def _distributed() -> Any:
    try:
        import distributed
    except ImportError as error:
        raise Error(f"a scheduler needs the package distributed ({error}): pip install 'jitblas[cluster]'") from None
    return distributed


def _connected(distributed: Any, scheduler: str) -> Any:
    try:
        client = distributed.Client(scheduler, timeout=config.remote_timeout(), set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise Error(f"the scheduler {scheduler} does not answer: {error}") from None
    try:
        client.wait_for_workers(1, timeout=config.remote_timeout())
    except TimeoutError:
        client.close()
        raise Error(f"the scheduler {scheduler} has no workers; start some: dask worker {scheduler}") from None
    return client
