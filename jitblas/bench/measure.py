"""Timing two calls against each other: ours, the peer, ours, the peer, ... in one process.

Machines change pace from second to second. A ratio of two repeats that are neighbours in time does not notice, so the
figure that counts is the median of those ratios, not the ratio of two medians.
"""

from __future__ import annotations

import gc
import itertools
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

MOST_LOOPS = 10**7
"""Calls in one repeat at most, whatever the clock says."""


@dataclass(frozen=True)
class Call:
    """Something to time.

    Attributes
    ----------
    function : one call, without arguments
    finish : waits for what the calls left running; its time counts
    spins : seconds that the callee's idle threads keep cores busy after a call; whoever comes next waits that long
    note : what a reader of the figure must know
    keep : objects that must live as long as `function`
    leeway : how many times the bound for ours its error may be, where one number says how wrong a result is
    """

    function: Callable[[], Any]
    finish: Callable[[], object] | None = None
    spins: float = 0.0
    note: str = ""
    keep: tuple[object, ...] = ()
    leeway: float = 1.0

    def once(self) -> Any:
        """Call, and wait until it is done; what the call returns."""
        returned = self.function()
        if self.finish is not None:
            self.finish()
        return returned


@dataclass(frozen=True)
class Protocol:
    """How to measure.

    Attributes
    ----------
    repeats : turns of each contestant
    seconds : length that calls are repeated to within a turn (hot only)
    evict : None: hot, every call finds its arrays where the one before left them. Else called, untimed, before every
        call, and a turn is one call.
    clock, sleep : seconds, as in the module time
    """

    repeats: int = 20
    seconds: float = 0.02
    evict: Callable[[], object] | None = None
    clock: Callable[[], float] = time.perf_counter
    sleep: Callable[[float], object] = time.sleep

    @property
    def state(self) -> str:
        return "hot" if self.evict is None else "cold"


@dataclass(frozen=True)
class Timing:
    """Seconds per call, turn by turn; `peer` is empty where ours ran alone."""

    ours: tuple[float, ...]
    peer: tuple[float, ...]
    loops: tuple[int, ...]

    @property
    def ours_seconds(self) -> float:
        return statistics.median(self.ours)

    @property
    def peer_seconds(self) -> float | None:
        return statistics.median(self.peer) if self.peer else None

    @property
    def ratios(self) -> list[float]:
        """Peer's time over ours, pair by pair: above 1, ours is faster."""
        pairs = zip(self.ours, self.peer, strict=False)
        return [peer / ours for ours, peer in pairs if ours > 0]  # 0: a clock too coarse for the call

    @property
    def ratio(self) -> float | None:
        return statistics.median(self.ratios) if self.ratios else None

    @property
    def quartiles(self) -> tuple[float, float] | None:
        """Half of the pairs' ratios lie between these two."""
        if not self.ratios:
            return None
        if len(self.ratios) == 1:
            return self.ratios[0], self.ratios[0]
        low, _, high = statistics.quantiles(self.ratios, n=4, method="inclusive")
        return low, high


def alternate(ours: Call, peer: Call | None, protocol: Protocol) -> Timing:
    """Time `ours` and `peer` in turns, after a warm-up; `peer` None: ours alone."""
    contestants = [ours] if peer is None else [ours, peer]
    spins = contestants[-1].spins
    with _no_collector():
        loops = [1 if protocol.evict is not None else _loops(call, protocol) for call in contestants]
        seconds: list[list[float]] = [[] for _ in contestants]
        for _ in range(protocol.repeats):
            for call, count, spent in zip(contestants, loops, seconds, strict=True):
                if spins > 0 and len(contestants) > 1:
                    _outlast(spins, call, protocol)
                spent.append(_turn(call, count, protocol) / count)
                spins = call.spins
    return Timing(tuple(seconds[0]), tuple(seconds[-1]) if peer is not None else (), tuple(loops))


def _outlast(seconds: float, call: Call, protocol: Protocol) -> None:
    """Wait for another contestant's idle threads to stop spinning, without letting our own data and cores go cold."""
    if protocol.evict is not None:
        protocol.sleep(seconds)
        return
    end = protocol.clock() + seconds
    while protocol.clock() < end:
        call.once()


def _turn(call: Call, loops: int, protocol: Protocol) -> float:
    if protocol.evict is not None:
        protocol.evict()
    else:
        call.once()  # untimed: wakes the threads and brings back what the other contestant pushed out of the caches
    return _run(call, loops, protocol.clock)


def _run(call: Call, loops: int, clock: Callable[[], float]) -> float:
    function = call.function
    start = clock()
    for _ in itertools.repeat(None, loops):
        function()
    if call.finish is not None:
        call.finish()
    return clock() - start


def _loops(call: Call, protocol: Protocol) -> int:
    """How many calls take about `protocol.seconds`; finding out is the warm-up."""
    call.once()
    loops = 1
    while loops < MOST_LOOPS:
        spent = _run(call, loops, protocol.clock)
        if spent > 0 and spent >= protocol.seconds / 2:
            return max(1, min(MOST_LOOPS, round(loops * protocol.seconds / spent)))
        wanted = int(loops * protocol.seconds / spent) + 1 if spent > 0 else 10 * loops
        loops = min(max(wanted, loops + 1), 10 * loops, MOST_LOOPS)
    return loops


@contextmanager
def _no_collector() -> Iterator[None]:
    """A garbage collection in one contestant's turn would be paid for by the wrong one."""
    enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
