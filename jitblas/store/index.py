"""What the store holds, for people: sizes, times, hit counts. The entries are the truth; losing this loses nothing.

Every value is JSON text. diskcache's own serialisers unpickle what they find, and whoever can write an index would then
run code here, so :class:`JsonDisk` stores text keys and JSON text only and refuses everything else.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import diskcache
from diskcache.core import MODE_RAW, MODE_TEXT, UNKNOWN


class JsonDisk(diskcache.Disk):  # type: ignore[misc]
    """Text keys, JSON values, no pickle in either direction."""

    def put(self, key: Any) -> tuple[str, bool]:
        if not isinstance(key, str):
            raise TypeError(f"index keys are text, not {type(key).__name__}")
        return key, True

    def get(self, key: Any, raw: bool) -> str:
        if not isinstance(key, str) or not raw:
            raise ValueError("the index holds a key that is not plain text")
        return key

    def store(self, value: Any, read: bool, key: Any = UNKNOWN) -> tuple[int, int, str | None, str | None]:
        if read:
            raise TypeError("the index holds JSON values, no files")
        return 0, MODE_RAW, None, json.dumps(value)

    def fetch(self, mode: int, filename: str | None, value: Any, read: bool) -> Any:
        if mode not in (MODE_RAW, MODE_TEXT) or filename is not None or read or not isinstance(value, str):
            raise ValueError("the index holds a value that is not JSON text")
        return json.loads(value)


INDEX_ERRORS = (OSError, ValueError, sqlite3.Error, diskcache.Timeout)
"""What methods of an index raise when it is damaged, locked or full."""


class Index:
    """The index of one store. Methods raise :data:`INDEX_ERRORS`."""

    def __init__(self, root: Path) -> None:
        self._root = root
        folder = root / "index"
        folder.mkdir(mode=0o700, exist_ok=True)
        self._cache = diskcache.Cache(str(folder), disk=JsonDisk, eviction_policy="none", timeout=2)

    def __enter__(self) -> Index:
        return self

    def __exit__(self, *_: object) -> None:
        self._cache.close()

    def add(self, key: str, facts: dict[str, Any]) -> None:
        self._cache.set(key, facts)

    def discard(self, key: str) -> None:
        self._cache.delete(key)

    def clear(self) -> None:
        self._cache.clear()

    def facts(self, key: str) -> dict[str, Any]:
        found = self._cache.get(key, {})
        return found if isinstance(found, dict) else {}

    def keys(self) -> Iterator[str]:
        return iter(self._cache)

    def fold_hits(self) -> None:
        """Add the hit counts that processes left at their exit."""
        for key, (count, last) in _take_hits(self._root).items():
            facts = self.facts(key)
            if not facts:
                continue  # an entry that is gone
            facts["hits"] = int(facts.get("hits", 0)) + count
            facts["used"] = max(float(facts.get("used", 0.0)), last)
            self.add(key, facts)


HITS = "hits.jsonl"


def leave_hits(root: Path, hits: Counter[str], now: float) -> None:
    """Append a process's hit counts to the store's journal: one short write at exit instead of opening a database."""
    lines = "".join(json.dumps([key, count, now]) + "\n" for key, count in hits.items())
    try:
        descriptor = os.open(root / HITS, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError:
        return
    try:
        os.write(descriptor, lines.encode())
    except OSError:
        pass
    finally:
        os.close(descriptor)


def _take_hits(root: Path) -> dict[str, tuple[int, float]]:
    """Read and remove the journal; lines that are none of ours are dropped."""
    taken = root / f"{HITS}.{os.getpid()}"
    try:
        os.rename(root / HITS, taken)
        text = taken.read_text(encoding="utf-8", errors="replace")
        taken.unlink()
    except OSError:
        return {}
    hits: dict[str, tuple[int, float]] = {}
    for line in text.splitlines():
        try:
            key, count, now = json.loads(line)
            before, last = hits.get(str(key), (0, 0.0))
            hits[str(key)] = (before + int(count), max(last, float(now)))
        except (ValueError, TypeError):
            continue
    return hits
