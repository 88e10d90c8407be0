"""Entries by what people type: the beginnings of their keys."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from jitblas import config
from jitblas.errors import CacheError
from jitblas.report import opened_store
from jitblas.store.entry import BadEntry, Entry, Key, verify
from jitblas.store.store import Store


def filled_store() -> Store:
    """The store; CacheError if there is none."""
    store = opened_store()
    if store is None:
        raise CacheError(f"there is no store in {config.cache_folder()}; `jitblas prewarm` fills one")
    return store


def verified(texts: Sequence[str], store: Store) -> list[Entry]:
    """The entries that texts name; without texts all, the damaged ones told and left out.

    Raises
    ------
    CacheError
        One that was named is not there or damaged, or the store has none.
    """
    entries = []
    for key in named(texts, store) if texts else store.stored_keys():
        try:
            entry = verify(store.root, key)
        except BadEntry as reason:
            if texts:
                raise CacheError(f"entry {key} is damaged: {reason}") from None
            print(f"jitblas: entry {key} is left out: {reason}", file=sys.stderr)
            continue
        if entry is not None:
            entries.append(entry)
    if not entries:
        raise CacheError(f"the store {store.root} has no entries; `jitblas prewarm` makes some")
    return entries


def named(texts: Sequence[str], store: Store) -> list[Key]:
    """The one entry that each text names: the beginning of its `what`, or of `what/how`.

    Raises
    ------
    CacheError
        No entry is named so, or several are.
    """
    every = list(store.entries())
    return [_named(text, every) for text in texts]


def _named(text: str, every: list[tuple[Key, dict[str, Any]]]) -> Key:
    what, _, how = text.strip().lower().partition("/")
    found = [item for item in every if item[0].what.startswith(what) and item[0].how.startswith(how)]
    if len(found) == 1 and what:
        return found[0][0]
    if not found or not what:
        raise CacheError(f"no entry's key begins with {text!r}; `jitblas cache ls` lists them all")
    listed = "\n".join(f"  {key.what[:16]}/{key.how[:16]}  {meta.get('title', '')}" for key, meta in found[:10])
    more = f"\n  and {len(found) - 10} more" if len(found) > 10 else ""
    raise CacheError(f"{len(found)} keys begin with {text!r}; give more of it, or KEY/HOW:\n{listed}{more}")
