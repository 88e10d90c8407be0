"""Making caches cold: every processor we may use walks through memory larger than its caches."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any

import numpy as np

from jitblas.bench.machine import caches

SMALLEST_WALK = 16 << 20
"""Bytes; for machines that do not tell their caches."""


class Eviction:
    """Call it, and no cache holds any array of the caller's; a context manager that ends its threads.

    One thread per processor, since private caches are emptied only from their own core. Together they walk twice the
    last-level cache, and each at least four times its own second level.
    """

    def __init__(self) -> None:
        processors = sorted(os.sched_getaffinity(0))
        sizes = caches()
        share = 2 * sizes[max(sizes)] // len(processors) if sizes else 0
        walk = max(share, 4 * sizes.get(2, 0), SMALLEST_WALK)
        # Written once: memory that never was would all be one page of zeros.
        self._memory = [np.ones(walk // 8, np.uint64) for _ in processors]
        self._threads = [ThreadPoolExecutor(1) for _ in processors]
        for processor, thread in zip(processors, self._threads, strict=True):
            thread.submit(os.sched_setaffinity, 0, {processor}).result()  # 0 is the calling thread
        self.description = f"{len(processors)} x {walk >> 20} MiB walked before every call"

    def __call__(self) -> None:
        walks = [thread.submit(_walk, memory) for thread, memory in zip(self._threads, self._memory, strict=True)]
        for walk in walks:
            walk.result()

    def __enter__(self) -> Eviction:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for thread in self._threads:
            thread.shutdown()
        self._memory.clear()


def _walk(memory: np.ndarray[Any, Any]) -> None:
    memory.max()  # NumPy lets go of the interpreter lock meanwhile
