"""What leaves a store first: entries by their last use, which the index knows where it can be read."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from jitblas.store import journal
from jitblas.store.entry import Key, folder_bytes, folder_of
from jitblas.store.folders import BUILD

if TYPE_CHECKING:
    from jitblas.store.store import Store

ENOUGH = 4
"""Room is made until there is so many times what a file system must have to count as not full."""


HOUR, WEEK, MONTH = 3600.0, 7 * 86400.0, 30 * 86400.0

LEFTOVERS = (
    ("", BUILD, HOUR),  # private folders of compiles that were killed; compiles are stopped after ten minutes
    ("locks", "", HOUR),  # a lock that somebody still waits for would cost a compile, no more
    ("", "journal.jsonl.", HOUR),  # news that somebody died over
    ("quarantine", "", WEEK),  # damaged entries, for whoever wants to know why
    ("direct", "", MONTH),  # memos are made anew when they are missed
)
"""(folder, beginning of names, age in seconds) of what goes by itself."""


def sweep(root: str) -> None:
    """Remove what processes left behind in a store."""
    now = time.time()
    for folder, beginning, age in LEFTOVERS:
        try:
            items = list(os.scandir(os.path.join(root, folder)))
        except OSError:
            continue  # there is none
        for item in items:
            try:
                if not item.name.startswith(beginning) or item.stat(follow_symlinks=False).st_mtime > now - age:
                    continue
                if item.is_dir(follow_symlinks=False):
                    shutil.rmtree(item.path, ignore_errors=True)
                else:
                    os.unlink(item.path)
            except OSError:
                pass  # somebody else removed it


class Kept(NamedTuple):
    """An entry as eviction sees it. `used`: time of its last use, or of its compile; 0 if its meta.json is damaged."""

    key: Key
    meta: Mapping[str, Any]
    nbytes: int
    built: float
    used: float
    hits: int


def kept(store: Store) -> list[Kept]:
    """Every entry of the writable store, the one that was not used for longest first."""
    index = facts(store)
    found = []
    for key, meta in store.entries():
        known = {name: value for name, value in index.get(str(key), {}).items() if journal.is_number(value)}
        built = float(meta.get("built", 0.0))
        used = max(built, float(known.get("used", 0.0)))
        found.append(Kept(key, meta, folder_bytes(folder_of(store.root, key)), built, used, int(known.get("hits", 0))))
    return sorted(found, key=lambda item: item.used)


def facts(store: Store) -> dict[str, dict[str, Any]]:
    """Key -> facts of the index, those of finished processes included; empty if the index cannot be used."""
    from jitblas.store.index import INDEX_ERRORS, Index

    try:
        with Index(store.root) as index:
            index.fold_journal()
            return {key: index.facts(key) for key in index.keys()}  # noqa: SIM118 (no mapping)
    except INDEX_ERRORS:
        return {}


def prune(
    store: Store,
    *,
    most_bytes: int | None = None,
    older_than: float | None = None,
    unused_for: float | None = None,
    pretend: bool = False,
) -> list[Kept]:
    """Remove entries and return them.

    Parameters
    ----------
    most_bytes : the longest unused go until the others take no more than this
    older_than, unused_for : seconds since the compile and since the last use; older entries go
    pretend : only tell which would go
    """
    now = time.time()
    entries = kept(store)
    gone = [
        item
        for item in entries
        if (older_than is not None and item.built < now - older_than)
        or (unused_for is not None and item.used < now - unused_for)
    ]
    if most_bytes is not None:
        going = {item.key for item in gone}
        gone += _beyond([item for item in entries if item.key not in going], most_bytes)
    if not pretend:
        _remove(store, gone)
    return gone


def prune_to(store: Store, most_bytes: int, *, spared: Key) -> int:
    """Remove the longest unused entries beyond a size, all but the one that is about to be used; what is left."""
    entries = kept(store)
    entries.sort(key=lambda item: item.key == spared)  # last, and the order of the others stays
    gone = _beyond(entries, most_bytes)
    _remove(store, [item for item in gone if item.key != spared])
    return sum(item.nbytes for item in entries) - sum(item.nbytes for item in gone if item.key != spared)


def _beyond(entries: list[Kept], most_bytes: int) -> list[Kept]:
    """The first entries, as many as have to go for the others to take no more than that."""
    total = sum(item.nbytes for item in entries)
    count = 0
    while count < len(entries) and total > most_bytes:
        total -= entries[count].nbytes
        count += 1
    return entries[:count]


def make_room(store: Store) -> bool:
    """Remove the longest unused entries of a full file system until it has some room; False: nothing could go."""
    gone: list[Kept] = []
    for item in kept(store):
        if not store.is_full(ENOUGH):
            break
        store.remove(item.key)
        gone.append(item)
    _forget(store, gone)
    return bool(gone)


def _remove(store: Store, gone: list[Kept]) -> None:
    for item in gone:
        store.remove(item.key)
    _forget(store, gone)


def _forget(store: Store, gone: list[Kept]) -> None:
    from jitblas.store.index import INDEX_ERRORS, Index

    try:
        with Index(store.root) as index:
            for item in gone:
                index.discard(str(item.key))
    except INDEX_ERRORS:
        pass  # rows of entries that are gone are not shown
