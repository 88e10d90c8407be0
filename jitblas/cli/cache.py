"""`jitblas cache`: the artifact store, for people. Entries are the truth; hit counts come from the index."""

from __future__ import annotations

import argparse
import json
import shlex
import time
from collections.abc import Callable, Mapping
from typing import Any

from jitblas import config
from jitblas.errors import CacheError
from jitblas.report import entry_bytes, opened_store
from jitblas.report_text import size_text
from jitblas.store.entry import BadEntry, Key, folder_of, verify
from jitblas.store.folders import root_of
from jitblas.store.store import Store

Row = dict[str, Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(metavar="ACTION", required=True)

    def action(name: str, text: str, run: Callable[[argparse.Namespace], int]) -> argparse.ArgumentParser:
        made = actions.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
        made.set_defaults(action=run)
        return made

    action("path", "print the cache folder", _path)
    for made in (
        action("info", "size, number of entries, hits, oldest and newest", _info),
        action("ls", "list the entries", _ls),
    ):
        made.add_argument("--json", action="store_true", help="JSON on stdout, nothing else")
    shown = action("show", "print what is known of one entry", _show)
    shown.add_argument("key", metavar="KEY", help="the first characters of a key, as many as make it unique")
    action("clear", "delete every entry of the store", _clear)


def run(arguments: argparse.Namespace) -> int:
    code: int = arguments.action(arguments)
    return code


def _path(_: argparse.Namespace) -> int:
    print(config.cache_folder())
    return 0


def _info(arguments: argparse.Namespace) -> int:
    rows = entries(opened_store())
    built = [row["built"] for row in rows if row["built"]]
    facts: Row = {
        "path": root_of(config.cache_folder()),
        "entries": len(rows),
        "bytes": sum(row["bytes"] for row in rows),
        "hits": sum(row["hits"] for row in rows),
        "oldest": min(built, default=None),
        "newest": max(built, default=None),
        "read_only": [root_of(folder) for folder in config.read_only_folders()],
    }
    if arguments.json:
        print(json.dumps(facts, indent=1))
        return 0
    print(f"store    {facts['path']}")
    print(f"entries  {facts['entries']}, {size_text(facts['bytes'])}, {facts['hits']} hits")
    print(f"oldest   {time_text(facts['oldest'])}")
    print(f"newest   {time_text(facts['newest'])}")
    for folder in facts["read_only"]:
        print(f"also     {folder} (read-only)")
    return 0


def _ls(arguments: argparse.Namespace) -> int:
    rows = entries(opened_store())
    if arguments.json:
        print(json.dumps(rows, indent=1))
        return 0
    if not rows:
        print(f"no entries in {root_of(config.cache_folder())}")
        return 0
    print(f"{'key':<21} {'size':>8} {'hits':>5}  {'built':<16}  {'compiler':<8}  {'target':<11}  title")
    for row in rows:
        what, _, how = row["key"].partition("/")
        size, built = size_text(row["bytes"]), time_text(row["built"])
        print(
            f"{what[:12]}/{how[:8]} {size:>8} {row['hits']:>5}  {built:<16}  "
            f"{row['compiler']:<8}  {row['target']:<11}  {row['title']}"
        )
    return 0


def _show(arguments: argparse.Namespace) -> int:
    store = opened_store()
    key, meta = find(store, arguments.key)
    assert store is not None, "what was found is in a store"
    facts = _hits(store).get(str(key), {})
    print(f"key        {key}")
    print(f"folder     {folder_of(store.root, key)}")
    print(f"state      {_state(store, key)}")
    last = f", the last {time_text(facts['used'])}" if facts.get("used") else ""
    print(f"hits       {facts.get('hits', 0)}{last}")
    print(f"built      {time_text(meta.get('built'))}, in {meta.get('seconds', '?')} s")
    for name in ("title", "target", "machine", "toolchain", "version"):
        print(f"{name:<10} {meta.get(name, '?')}")
    for name, value in meta.get("facts", {}).items():
        shown = ", ".join(f"{k}={v}" for k, v in value.items()) if isinstance(value, dict) else value
        print(f"{name:<10} {shown or 'none'}")
    print(f"command    {shlex.join(meta.get('command', []))}")
    print(f"CPU needs  {' '.join(meta.get('cpu', [])) or 'nothing special'}")
    for name, described in meta.get("files", {}).items():
        print(f"file       {name}, {described.get('size')} bytes, sha256 {described.get('sha256')}")
    print(f"headers    {len(meta.get('headers', []))} outside the kernel sources")
    return 0


def _clear(_: argparse.Namespace) -> int:
    store = opened_store()
    if store is None:
        print(f"nothing to clear: there is no store in {config.cache_folder()}")
        return 0
    nbytes = sum(entry_bytes(meta) for _, meta in store.entries())
    try:
        count = store.clear()
    except OSError as error:
        raise CacheError(f"the store {store.root} was cleared in part only: {error}") from None
    print(f"{count} entries, {size_text(nbytes)}, deleted from {store.root}")
    return 0


def entries(store: Store | None) -> list[Row]:
    """One row per entry, the newest first."""
    if store is None:
        return []
    hits = _hits(store)
    rows = [_row(key, meta, hits.get(str(key), {})) for key, meta in store.entries()]
    return sorted(rows, key=lambda row: -(row["built"] or 0.0))


def _row(key: Key, meta: Mapping[str, Any], facts: Mapping[str, Any]) -> Row:
    return {
        "key": str(key),
        "title": meta.get("title", "cannot be read"),
        "target": meta.get("target", "?"),
        "compiler": meta.get("toolchain", "?"),
        "bytes": entry_bytes(dict(meta)),
        "hits": facts.get("hits", 0),
        "built": meta.get("built"),
        "used": facts.get("used"),
    }


def _hits(store: Store) -> dict[str, Row]:
    """Key -> facts of the index, hits of finished processes included; empty if the index cannot be used."""
    from jitblas.store.index import INDEX_ERRORS, Index

    try:
        with Index(store.root) as index:
            index.fold_journal()
            return {key: index.facts(key) for key in index.keys()}  # noqa: SIM118 (no mapping)
    except INDEX_ERRORS:
        return {}


def find(store: Store | None, text: str) -> tuple[Key, dict[str, Any]]:
    """The one entry whose `what`, or `what/how`, begins with `text`.

    Raises
    ------
    CacheError
        None does, or several do.
    """
    what, _, how = text.strip().lower().partition("/")
    every = [] if store is None else list(store.entries())
    found = [item for item in every if item[0].what.startswith(what) and item[0].how.startswith(how)]
    if len(found) == 1 and what:
        return found[0]
    if not found or not what:
        raise CacheError(f"no entry's key begins with {text!r}; `jitblas cache ls` lists them all")
    listed = "\n".join(f"  {key.what[:16]}/{key.how[:16]}  {meta.get('title', '')}" for key, meta in found[:10])
    more = f"\n  and {len(found) - 10} more" if len(found) > 10 else ""
    raise CacheError(f"{len(found)} keys begin with {text!r}; give more of it, or KEY/HOW:\n{listed}{more}")


def _state(store: Store, key: Key) -> str:
    try:
        return "complete" if verify(store.root, key) is not None else "gone"
    except BadEntry as reason:
        return f"damaged, will be compiled anew: {reason}"


def time_text(seconds: float | None) -> str:
    """A time in this machine's time zone."""
    return "-" if seconds is None else time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))
