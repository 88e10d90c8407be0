"""A run of the benchmark: problems, threads and peers to rows."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from jitblas import config
from jitblas.bench.cold import Eviction
from jitblas.bench.measure import Call, Protocol, Timing, alternate
from jitblas.bench.ours import Entry, entries
from jitblas.bench.peers import PEERS, Peer
from jitblas.bench.problems import Data, make_data
from jitblas.errors import Error
from jitblas.handle import Handle
from jitblas.hardware import HOST
from jitblas.problem import Problem
from jitblas.runtime.host import HostRuntime

SCHEMA = 1
"""Of the JSON."""


@dataclass(frozen=True)
class Row:
    """One comparison. Seconds are medians per call; with an `error` there are none."""

    problem: str
    level: str
    kernel: str
    threads: int
    state: str
    peer: str | None = None
    key: str = ""
    work: int = 0
    unit: str = "GB/s"
    """Of rates: work is bytes moved, or (Gflop/s) floating-point operations."""
    ours_seconds: float | None = None
    peer_seconds: float | None = None
    ours_rate: float | None = None
    peer_rate: float | None = None
    ratio: float | None = None
    """Peer's time over ours, the median over pairs of turns: above 1, ours is faster."""
    quartiles: tuple[float, float] | None = None
    loops: tuple[int, ...] = ()
    ours_turns: tuple[float, ...] = ()
    peer_turns: tuple[float, ...] = ()
    note: str = ""
    error: str | None = None


@dataclass(frozen=True)
class Session:
    """What to measure against whom.

    Attributes
    ----------
    exact : measure exact kernels as well as those of the class
    peers : empty: ours alone
    threads : numbers of threads, one after the other
    """

    exact: bool = False
    peers: tuple[Peer, ...] = ()
    threads: tuple[int, ...] = (1,)
    protocol: Protocol = dataclasses.field(default_factory=Protocol)

    def rows(self, problems: Iterable[Problem], progress: Callable[[str], object] = lambda text: None) -> Iterator[Row]:
        """Measure; each row as soon as it is there."""
        with Handle(HOST) as handle:
            for problem in problems:
                yield from self._measured(problem, handle, progress)

    def _measured(self, problem: Problem, handle: Handle, progress: Callable[[str], object]) -> Iterator[Row]:
        try:
            data = make_data(problem)
            found = entries(data, handle, self.exact)
        except (Error, ValueError, MemoryError) as error:
            yield Row(str(problem), "plan", "class", self.threads[0], self.protocol.state, error=str(error))
            return
        for threads in self.threads:
            progress(f"{problem} on {threads} thread{'s' if threads > 1 else ''}")
            with _limited(handle, self.peers, threads):
                yield from self._compared(data, found, threads)
            # The other ways in are for problems so small that threads play no part.
            found = [entry for entry in found if entry.level == "plan"]

    def _compared(self, data: Data, found: Sequence[Entry], threads: int) -> Iterator[Row]:
        # Results first: no time of a wrong one is ever taken.
        contestants: list[tuple[str | None, Call | None, str | None]] = []
        for peer in self.peers:
            try:
                call = peer.call(data, threads)
            except Exception as error:  # a peer's trouble is a row, not the end
                contestants.append((peer.name, None, f"raised {type(error).__name__}: {error}"))
                continue
            if call is not None:
                contestants.append((peer.name, call, data.fault(call)))
        contestants = contestants or [(None, None, None)]
        for entry in found:
            row = Row(
                str(data.problem), entry.level, entry.kernel, threads, self.protocol.state, key=entry.key,
                work=data.work, unit=data.unit,
            )  # fmt: skip
            wrong = entry.error or data.fault(entry.call)
            if wrong is not None:
                yield dataclasses.replace(row, error=f"jitblas: {wrong}")
                continue
            for name, call, fault in contestants:
                if fault is not None:
                    yield dataclasses.replace(row, peer=name, error=f"{name}: {fault}")
                else:
                    data.reset()
                    note = call.note if call is not None else ""
                    named = dataclasses.replace(row, peer=name, note=note)
                    yield _filled(named, alternate(entry.call, call, self.protocol))


def _filled(row: Row, timing: Timing) -> Row:
    peer = timing.peer_seconds
    return dataclasses.replace(
        row,
        ours_seconds=timing.ours_seconds,
        peer_seconds=peer,
        ours_rate=row.work / timing.ours_seconds / 1e9 if timing.ours_seconds > 0 else None,
        peer_rate=row.work / peer / 1e9 if peer else None,
        ratio=timing.ratio,
        quartiles=timing.quartiles,
        loops=timing.loops,
        ours_turns=timing.ours,
        peer_turns=timing.peer,
    )


@contextlib.contextmanager
def _limited(handle: Handle, peers: Sequence[Peer], threads: int) -> Iterator[None]:
    """Everybody on the same number of threads."""
    runtime = handle.runtime
    assert isinstance(runtime, HostRuntime)
    with contextlib.ExitStack() as stack:
        for peer in peers:
            stack.enter_context(peer.limited(threads))
        runtime.set_threads(threads)
        stack.callback(runtime.set_threads, config.threads())
        yield


def choose_peers(names: Sequence[str] | None) -> tuple[tuple[Peer, ...], dict[str, str]]:
    """(peers to measure against, those that are not there and how to get them). None: all that are installed."""
    chosen = [PEERS[name] for name in (PEERS if names is None else dict.fromkeys(names))]
    missing = {peer.name: peer.remedy() for peer in chosen if not peer.available()}
    return tuple(peer for peer in chosen if peer.name not in missing), missing


@contextlib.contextmanager
def protocol_for(repeats: int, cold: bool, seconds: float = Protocol.seconds) -> Iterator[Protocol]:
    """The way of measuring, with what it holds while it lasts."""
    if not cold:
        yield Protocol(repeats, seconds)
        return
    with Eviction() as evict:
        yield Protocol(repeats, seconds, evict)


def report(session: Session, known: dict[str, Any], missing: dict[str, str], rows: Sequence[Row]) -> dict[str, Any]:
    """Rows and everything that is needed to measure them again, for json.dump. `known`: the facts before the run."""
    protocol = session.protocol
    evict = protocol.evict
    return {
        "schema": SCHEMA,
        **known,
        "protocol": {
            "repeats": protocol.repeats,
            "seconds_per_repeat": protocol.seconds if evict is None else None,
            "state": protocol.state,
            "eviction": getattr(evict, "description", None),
            "threads": list(session.threads),
            "ratio": "peer's time over ours, median over alternating pairs",
        },
        "peers": {peer.name: {"version": peer.version(), "kernels": peer.kernels()} for peer in session.peers},
        "missing": missing,
        "rows": [dataclasses.asdict(row) for row in rows],
    }
