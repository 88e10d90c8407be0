"""One artifact on disk: a folder with the shared object, its source and meta.json.

    <root>/ab/<what>/<how>/{kernel.so, kernel.cpp, meta.json}

An entry is complete or not there: it is built in a private folder and published by one rename. Everything that can be
checked is checked before dlopen, which runs constructors and turns a truncated file into a signal.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from jitblas.digest import hex_digest
from jitblas.store.folders import refusal

SCHEMA = 1
OBJECT = "kernel.so"
META = "meta.json"


class Key(NamedTuple):
    """Names an artifact: *what* was compiled (operator, constants, sources, target) and *how* (compiler, flags)."""

    what: str
    how: str

    def __str__(self) -> str:
        return f"{self.what}/{self.how}"


class BadEntry(Exception):
    """An entry that must not be loaded; the text says why."""


class Entry(NamedTuple):
    """A verified entry. `origin`: "stored", or "compiled" or "downloaded" just now."""

    key: Key
    folder: str
    meta: Mapping[str, Any]
    origin: str = "stored"

    @property
    def shared_object(self) -> str:
        return os.path.join(self.folder, OBJECT)

    @property
    def nbytes(self) -> int:
        """Of its files on disk."""
        return folder_bytes(self.folder)


def folder_of(root: str, key: Key) -> str:
    return os.path.join(root, key.what[:2], key.what, key.how)


def folder_bytes(folder: str) -> int:
    """Bytes of the files in an entry's folder; 0 if it is gone."""
    try:
        return sum(item.stat(follow_symlinks=False).st_size for item in os.scandir(folder))
    except OSError:
        return 0


def read_meta(folder: str, key: Key, owners: tuple[int, ...] | None = None) -> dict[str, Any]:
    """meta.json of an entry; BadEntry unless it is one of ours and says the key that its path says."""
    try:
        meta = json.loads(_read(os.path.join(folder, META), owners))
    except (ValueError, RecursionError) as error:
        raise BadEntry(f"{META} cannot be read ({type(error).__name__})") from None
    return check_meta(meta, key)


def check_meta(meta: Any, key: Key) -> dict[str, Any]:
    """The contents of a meta.json; BadEntry unless it is one of ours and says the key that is asked for."""
    if not isinstance(meta, dict) or meta.get("schema") != SCHEMA or not _well_formed(meta):
        raise BadEntry(f"{META} is not of schema {SCHEMA}")
    if meta.get("what") != key.what or meta.get("how") != key.how:
        raise BadEntry(f"{META} belongs to another key")
    return meta


def _read(path: str, owners: tuple[int, ...] | None) -> bytes:
    """A regular file's bytes; BadEntry for links, pipes, and files that others than `owners` could have written."""
    name = os.path.basename(path)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError as error:
        raise BadEntry(f"{name} cannot be read ({error.strerror})") from None
    with open(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise BadEntry(f"{name} is no regular file")
        if owners is not None and (found.st_uid not in owners or found.st_mode & 0o022):
            raise BadEntry(f"{name} can be written by others")
        return file.read()


def _well_formed(meta: dict[str, Any]) -> bool:
    """Whether every field is of the kind that the compile of an entry writes."""
    files, headers = meta.get("files"), meta.get("headers")
    return (
        isinstance(files, dict)
        and OBJECT in files
        and all(isinstance(facts, dict) for facts in files.values())
        and isinstance(headers, list)
        and all(isinstance(header, list) and list(map(type, header)) == [str, int, int, str] for header in headers)
        and all(_is_number(meta.get(name)) for name in ("built", "seconds"))
        and all(_is_text(meta.get(name)) for name in ("title", "target", "machine", "toolchain", "version"))
        and all(_are_texts(meta.get(name, [])) for name in ("cpu", "command", "resolved", "extra_flags"))
        and all(isinstance(meta.get(name, {}), dict) for name in ("facts", "signatures"))
        and "cpu" in meta
    )


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value < 1e11


def _is_text(value: Any) -> bool:
    """Text for people: nothing in it that would steer their terminal."""
    return isinstance(value, str) and value.isprintable()


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def verify(root: str, key: Key, owners: tuple[int, ...] | None = None) -> Entry | None:
    """The entry, its files checked byte for byte; None if there is none, BadEntry if it must not be loaded.

    `owners`: who may own its folders and files, nobody else being able to write them; None: the root keeps others out.
    """
    folder = folder_of(root, key)
    if not os.path.lexists(folder):
        return None
    for place in (folder, os.path.dirname(folder), os.path.join(root, key.what[:2])):
        reason = refusal(place, owners) if owners is not None else None if os.path.isdir(place) else "is not a folder"
        if reason is not None:
            raise BadEntry(f"{place} {reason}")
    meta = read_meta(folder, key, owners)
    for name, facts in meta["files"].items():
        data = _read(os.path.join(folder, os.path.basename(name)), owners)
        if [len(data), hex_digest(data)] != [facts.get("size"), facts.get("sha256")]:
            raise BadEntry(f"{name} is not the file that was published ({len(data)} bytes)")
    return Entry(key, folder, meta)


def describe(path: str) -> dict[str, Any]:
    """Size and digest of a file, as meta.json keeps them."""
    with open(path, "rb") as file:
        data = file.read()
    return {"size": len(data), "sha256": hex_digest(data)}


def headers_changed(headers: Iterable[Any]) -> str | None:
    """The first outside header whose content is no longer what the entry was compiled from, or None.

    `headers` are meta.json's [path, size, ctime in ns, sha256]; equal size and time spare the digest. Of a file's times
    this is the one that no program sets, and that every change of it does.
    """
    for path, size, ctime, digest in headers:
        try:
            found = os.stat(path)
            if (found.st_size, found.st_ctime_ns) == (size, ctime):
                continue
            if found.st_size != size or not stat.S_ISREG(found.st_mode):
                return str(path)
            if describe(path)["sha256"] != digest:
                return str(path)
        except OSError:
            return str(path)
    return None


def record_headers(paths: Iterable[str]) -> list[list[Any]]:
    """What :func:`headers_changed` compares with."""
    recorded: list[list[Any]] = []
    for path in paths:
        try:
            digest = describe(path)["sha256"]
            found = os.stat(path)
        except OSError:
            continue  # gone already: nothing to compare with later
        recorded.append([path, found.st_size, found.st_ctime_ns, digest])
    return recorded


def meta_text(meta: Mapping[str, Any]) -> str:
    """What a meta.json holds."""
    return json.dumps(meta, indent=1, sort_keys=True)


def write_meta(folder: str, meta: Mapping[str, Any]) -> None:
    """meta.json, last of an entry's files and on disk before the entry is published."""
    with open(os.path.join(folder, META), "w", encoding="utf-8") as file:
        os.fchmod(file.fileno(), 0o644)
        file.write(meta_text(meta))
        file.flush()
        os.fsync(file.fileno())


def flush(path: str) -> None:
    """Wait until a file is on disk."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())
