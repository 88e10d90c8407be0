"""Locks that save work: one process compiles a kernel, others wait for as long as it shows that it lives.

Correctness never needs them: whatever goes wrong with one, the answer is to go on without.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from jitblas.store.folders import make_private

BEAT_SECONDS = 1.0
"""The holder of a lock writes a heartbeat so often."""

SILENT_SECONDS = 5.0
"""A holder that was not heard of for so long is dead, though a fork of it may still have the lock's descriptor."""


@contextmanager
def held(
    folder: str, name: str, timeout: float, waiting: Callable[[str], None], give_up: Callable[[], bool]
) -> Iterator[None]:
    """Hold a lock, or go on without: after `timeout` seconds, if its holder died, or on any trouble with locks.

    `waiting` is called with the holder's pid after a second, and `give_up` each second: whether to wait no more.
    """
    lock = heart = None
    try:
        make_private(folder)
        # Of those who find a holder silent one takes its place, by another lock, and the others go on waiting.
        for path in (os.path.join(folder, name + suffix) for suffix in ("", "-second", "-third")):
            lock, silent = _acquire(path, timeout, waiting, give_up)
            if lock is not None:
                heart = _Heart(path)
            if not silent:
                break
    except (ImportError, OSError, NotImplementedError, RuntimeError):  # the last: no thread can be started
        pass  # a duplicate compile at worst
    try:
        yield
    finally:
        if heart is not None:
            heart.stop()
        if lock is not None:
            try:
                lock.release()
            except OSError:
                pass  # the file system went away; so did the lock


def _acquire(
    path: str, timeout: float, waiting: Callable[[str], None], give_up: Callable[[], bool]
) -> tuple[Any, bool]:
    """The lock, or None if it is not to be had, and whether that is because its holder is silent."""
    from filelock import FileLock, Timeout

    try:
        lock = FileLock(path, fallback_to_soft=False)
    except TypeError:  # a version that has no other kind of lock to fall back to
        lock = FileLock(path)
    started = time.monotonic()
    beat, heard, told = "", started, False
    while True:
        now = time.monotonic()
        left = timeout - (now - started)
        try:
            lock.acquire(timeout=max(0.0, min(BEAT_SECONDS, left)))
            return lock, False
        except Timeout:
            pass
        if left <= BEAT_SECONDS or give_up():
            return None, False
        # Compared with itself, and not with a clock: file servers have clocks of their own.
        latest = _read(path)
        if latest != beat:
            beat, heard = latest, time.monotonic()
        elif time.monotonic() - heard >= SILENT_SECONDS:
            return None, True
        if not told:
            told = True
            waiting(beat.partition(" ")[0] or "?")


class _Heart:
    """A thread that writes `pid beats` beside a lock while it is held."""

    def __init__(self, path: str) -> None:
        self._path = f"{path}.pid"
        self._stop = threading.Event()
        self._beat(0)
        self._thread = threading.Thread(target=self._run, name="jitblas-heartbeat", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        beats = 0
        while not self._stop.wait(BEAT_SECONDS):
            beats += 1
            try:
                self._beat(beats)
            except OSError:
                return  # others will not wait, then

    def _beat(self, beats: int) -> None:
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            os.pwrite(descriptor, f"{os.getpid():<10} {beats:<10}".encode(), 0)  # one length: never half of one
        finally:
            os.close(descriptor)

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()
        try:
            os.unlink(self._path)
        except OSError:
            pass


def _read(path: str) -> str:
    try:
        with open(f"{path}.pid") as file:
            return file.read(32)
    except OSError:
        return ""
