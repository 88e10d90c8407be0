"""`jitblas cache path|info|ls|show|verify`: what is in the store."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from jitblas import config
from jitblas.cli import FAILED
from jitblas.cli.cache.choosing import filled_store, named
from jitblas.errors import CacheError
from jitblas.hardware import TARGETS
from jitblas.operators import NAMES
from jitblas.report import opened_store
from jitblas.store import eviction, prebuilt, signatures
from jitblas.store.entry import OBJECT, BadEntry, Key, folder_of, verify
from jitblas.store.eviction import Kept
from jitblas.store.folders import root_of
from jitblas.store.store import Store
from jitblas.units import duration_text, size_text

if TYPE_CHECKING:
    from jitblas.cli.cache import Add

Row = dict[str, Any]

ORDERS: Mapping[str, Callable[[Row], Any]] = {
    "built": lambda row: -(row["built"] or 0.0),
    "used": lambda row: -(row["used"] or 0.0),
    "size": lambda row: -row["bytes"],
    "hits": lambda row: -row["hits"],
    "seconds": lambda row: -row["seconds"],
    "title": lambda row: row["title"],
}
"""Orders of a listing: the largest or latest first, titles by the alphabet."""


def add_actions(add: Add) -> None:
    add("path", "print the cache folder", _path)
    info = add("info", "size, number of entries, hits, compile time saved, oldest and newest", _info)
    listing = add("ls", "list the entries", _ls)
    listing.add_argument("--sort", choices=tuple(ORDERS), default="built", help="default: built, the newest first")
    listing.add_argument("--operator", choices=NAMES, help="only kernels of this operator")
    listing.add_argument("--target", choices=TARGETS, help="only entries for this target")
    shown = add("show", "print what is known of one entry", _show)
    shown.add_argument("key", metavar="KEY", help="the first characters of a key, as many as make it unique")
    shown.add_argument("--source", action="store_true", help="print the source that was compiled")
    checked = add("verify", "check every byte of every entry; exit 1 and list what is damaged", _verify)
    for made in (info, listing, checked):
        made.add_argument("--json", action="store_true", help="JSON on stdout, nothing else")


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
        "seconds_saved": round(sum(row["hits"] * row["seconds"] for row in rows), 3),
        "oldest": min(built, default=None),
        "newest": max(built, default=None),
        "most_bytes": config.cache_max_size(),
        "read_only": [root_of(folder) for folder in config.read_only_folders()],
        "prebuilt": [package.facts() for package in prebuilt.installed()],
        "remote": config.remote() or None,
    }
    if arguments.json:
        print(json.dumps(facts, indent=1))
        return 0
    most = f" of at most {size_text(facts['most_bytes'])}" if facts["most_bytes"] is not None else ""
    print(f"store    {facts['path']}")
    print(f"entries  {facts['entries']}, {size_text(facts['bytes'])}{most}, {facts['hits']} hits")
    print(f"saved    {duration_text(facts['seconds_saved'])} of compiling")
    print(f"oldest   {time_text(facts['oldest'])}")
    print(f"newest   {time_text(facts['newest'])}")
    for folder in facts["read_only"]:
        print(f"also     {folder} (read-only)")
    for package in facts["prebuilt"]:
        print(f"prebuilt {package['verdict']}")
    if facts["remote"]:
        print(f"remote   {facts['remote']}")
    return 0


def _ls(arguments: argparse.Namespace) -> int:
    rows = [
        row
        for row in entries(opened_store(), arguments.sort)
        if arguments.operator in (None, row["operator"]) and arguments.target in (None, row["target"])
    ]
    if arguments.json:
        print(json.dumps(rows, indent=1))
        return 0
    if not rows:
        print(f"no entries in {root_of(config.cache_folder())}" + (" of that kind" if _filtered(arguments) else ""))
        return 0
    print(f"{'key':<21} {'size':>8} {'hits':>5} {'compile':>8}  {'built':<16}  {'compiler':<8}  {'target':<11}  title")
    for row in rows:
        what, _, how = row["key"].partition("/")
        size, built = size_text(row["bytes"]), time_text(row["built"])
        print(
            f"{what[:12]}/{how[:8]} {size:>8} {row['hits']:>5} {row['seconds']:>6.2f} s  {built:<16}  "
            f"{row['compiler']:<8}  {row['target']:<11}  {row['title']}"
        )
    return 0


def _filtered(arguments: argparse.Namespace) -> bool:
    return arguments.operator is not None or arguments.target is not None


def entries(store: Store | None, order: str = "built") -> list[Row]:
    """One row per entry."""
    return [] if store is None else sorted((_row(item) for item in eviction.kept(store)), key=ORDERS[order])


def _row(item: Kept) -> Row:
    facts = item.meta.get("facts", {})
    return {
        "key": str(item.key),
        "title": item.meta.get("title", "cannot be read"),
        "operator": facts.get("operator") if isinstance(facts, dict) else None,
        "target": item.meta.get("target", "?"),
        "compiler": item.meta.get("toolchain", "?"),
        "bytes": item.nbytes,
        "seconds": item.meta.get("seconds", 0.0),
        "hits": item.hits,
        "built": item.built or None,
        "used": item.used if item.hits else None,
        "signed": bool(item.meta.get(signatures.FIELD)),
    }


def _show(arguments: argparse.Namespace) -> int:
    store = filled_store()
    (key,) = named([arguments.key], store)
    item = next((item for item in eviction.kept(store) if item.key == key), None)
    if item is None:
        raise CacheError(f"entry {key} was removed meanwhile")
    folder, meta = folder_of(store.root, key), item.meta
    if arguments.source:
        print(_source(folder, meta), end="")
        return 0
    print(f"key        {key}")
    print(f"folder     {folder}")
    print(f"state      {_damage(store, key) or 'complete'}")
    print(f"hits       {item.hits}{f', the last {time_text(item.used)}' if item.hits else ''}")
    print(f"built      {time_text(item.built or None)}, in {meta.get('seconds', '?')} s")
    for name in ("title", "target", "machine", "toolchain", "version"):
        print(f"{name:<10} {meta.get(name, '?')}")
    for name, value in meta.get("facts", {}).items():
        shown = ", ".join(f"{k}={v}" for k, v in value.items()) if isinstance(value, dict) else value
        print(f"{name:<10} {shown or 'none'}")
    print(f"command    {shlex.join(meta.get('command', []))}")
    print(f"resolved   {' '.join(meta.get('resolved', [])) or 'no machine flags'}")
    print(f"CPU needs  {' '.join(meta.get('cpu', [])) or 'nothing special'}")
    for name, described in meta.get("files", {}).items():
        print(f"file       {name}, {described.get('size')} bytes, sha256 {described.get('sha256')}")
    print(f"headers    {len(meta.get('headers', []))} outside the kernel sources")
    for public in meta.get(signatures.FIELD, {}) or ["nobody"]:
        print(f"signed by  {public}")
    print(f"source     jitblas cache show {key.what[:16]}/{key.how[:8]} --source")
    return 0


def _source(folder: str, meta: Mapping[str, Any]) -> str:
    for name in meta.get("files", {}):
        if name != OBJECT:
            try:
                with open(os.path.join(folder, os.path.basename(name)), encoding="utf-8", errors="replace") as file:
                    return file.read()
            except OSError as error:
                raise CacheError(f"the source cannot be read: {error}") from None
    raise CacheError(f"the entry in {folder} is damaged; the next call that needs it compiles it anew")


def _verify(arguments: argparse.Namespace) -> int:
    store = opened_store()
    keys = [] if store is None else list(store.stored_keys())
    damaged = {str(key): damage for key in keys if store is not None and (damage := _damage(store, key)) is not None}
    if arguments.json:
        print(json.dumps({"entries": len(keys), "damaged": damaged}, indent=1))
    else:
        for key, damage in damaged.items():
            print(f"{key}: {damage}")
        print(f"{len(keys) - len(damaged)} of {len(keys)} entries are complete")
    return FAILED if damaged else 0


def _damage(store: Store, key: Key) -> str | None:
    try:
        return None if verify(store.root, key) is not None else "gone"
    except BadEntry as reason:
        return f"damaged, will be compiled anew: {reason}"


def time_text(seconds: float | None) -> str:
    """A time in this machine's time zone."""
    return "-" if seconds is None else time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))
