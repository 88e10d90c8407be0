"""What the store holds, for people: sizes, times, hit counts. The entries are the truth; losing this loses nothing.

Every value is JSON text. diskcache's own serialisers unpickle what they find, and whoever can write an index would then
run code here, so :class:`JsonDisk` stores text keys and JSON text only and refuses everything else.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from typing import Any

import diskcache
from diskcache.core import MODE_RAW, MODE_TEXT, UNKNOWN

from jitblas.store import journal
from jitblas.store.folders import make_private


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

    def __init__(self, root: str) -> None:
        self._root = root
        folder = os.path.join(root, "index")
        make_private(folder)
        self._cache = diskcache.Cache(folder, disk=JsonDisk, eviction_policy="none", timeout=2)

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

    def fold_journal(self) -> None:
        """Take in what processes left in the journal: entries built, and how often which were used."""
        for key, news in journal.take(self._root):
            facts = {name: value for name, value in self.facts(key).items() if journal.is_number(value)}
            if "built" in news:
                facts = {"hits": 0, **facts, "bytes": int(news["bytes"]), "built": float(news["built"])}
            if not facts:
                continue  # an entry that is gone
            facts["hits"] = int(facts.get("hits", 0)) + int(news.get("hits", 0))
            facts["used"] = max(float(facts.get("used", 0.0)), float(news.get("used", 0.0)))
            self.add(key, facts)
