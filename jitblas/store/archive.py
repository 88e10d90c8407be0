"""Entries in a tar file: how they are exported, imported, and kept in remote stores.

Members are `<what>/<how>/<file>`, regular files and nothing else. Whatever comes from elsewhere is checked whole, in
memory, before any of it is placed.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import IO, Any, NamedTuple

from jitblas.digest import hex_digest
from jitblas.errors import CacheError
from jitblas.store.entry import META, OBJECT, BadEntry, Entry, Key, check_meta, meta_text
from jitblas.store.signatures import Refused

MOST_BYTES = 64 << 20
"""Of one file in an archive; kernels take less than a megabyte."""

_NAME = re.compile(r"([0-9a-f]{64})/([0-9a-f]{64})/(kernel\.so|kernel\.(?:cpp|asc)|meta\.json)")


class Packed(NamedTuple):
    """An entry in memory, its digests and key checked."""

    key: Key
    meta: Mapping[str, Any]
    files: Mapping[str, bytes]


def pack(entries: Iterable[Entry], file: IO[bytes]) -> None:
    """Write verified entries as a compressed tar; the same entries give the same bytes."""
    with tarfile.open(fileobj=file, mode="w:gz", compresslevel=6) as tar:
        for entry in entries:
            for name in (META, *sorted(entry.meta["files"])):
                if name == META:
                    data = meta_text(entry.meta).encode()  # as given: a signature in it need not be in the store
                else:
                    try:
                        with open(os.path.join(entry.folder, name), "rb") as source:
                            data = source.read()
                    except OSError:
                        raise CacheError(f"entry {entry.key} was removed meanwhile; try again") from None
                member = tarfile.TarInfo(f"{entry.key}/{name}")
                member.size, member.mode, member.mtime = len(data), 0o644, int(entry.meta["built"])
                tar.addfile(member, io.BytesIO(data))


def unpack(file: IO[bytes], vouched: Callable[[Mapping[str, Any]], object]) -> Iterator[Packed]:
    """The entries of an archive, one after the other, each checked: names, sizes, key, digests.

    `vouched(meta)` raises :class:`Refused` for an entry that nobody who is trusted signed. So does this for anything
    that is not as :func:`pack` writes it.
    """
    try:
        with _Bounded(fileobj=file) as unzipped, tarfile.open(fileobj=unzipped, mode="r:") as tar:
            yield from _entries(tar, vouched)
    except Refused:
        raise
    except Exception as error:  # whatever parsers make of bytes that anybody may have written
        raise Refused(f"it is no archive of kernels, or a damaged one ({type(error).__name__})") from None


class _Bounded(gzip.GzipFile):
    """Unpacks no more at a time than a file may have, whatever sizes an archive tells."""

    def read(self, size: int | None = -1) -> bytes:
        if size is None or not 0 <= size <= MOST_BYTES + tarfile.BLOCKSIZE:
            raise Refused("one of its headers is larger than any kernel")
        return super().read(size)


def _entries(tar: tarfile.TarFile, vouched: Callable[[Mapping[str, Any]], object]) -> Iterator[Packed]:
    current: Key | None = None
    files: dict[str, bytes] = {}
    for member in tar:
        found = _NAME.fullmatch(member.name)
        if found is None or not member.isreg() or member.issparse():
            raise Refused(f"its member {member.name[:200]!r} is none of a kernel's files")
        if member.size > MOST_BYTES:
            raise Refused(f"its member {member.name!r} has {member.size} bytes, more than any kernel")
        key, name = Key(found[1], found[2]), found[3]
        if key != current:
            if current is not None:
                yield _checked(current, files, vouched)
            current, files = key, {}
        if name in files:
            raise Refused(f"its member {member.name!r} is there twice")
        content = tar.extractfile(member)
        files[name] = b"" if content is None else content.read()
    if current is not None:
        yield _checked(current, files, vouched)


def _checked(key: Key, files: Mapping[str, bytes], vouched: Callable[[Mapping[str, Any]], object]) -> Packed:
    try:
        meta = check_meta(json.loads(files.get(META, b"")), key)
    except (ValueError, RecursionError):
        raise Refused(f"the {META} of {key} cannot be read") from None
    except BadEntry as reason:
        raise Refused(f"{key}: {reason}") from None
    try:
        vouched(meta)
    except Refused as reason:
        raise type(reason)(f"{key} ({meta['title']}): {reason}") from None
    if set(meta["files"]) | {META} != set(files) or OBJECT not in files:
        raise Refused(f"{key}: its files are not those that its {META} lists")
    for name, facts in meta["files"].items():
        if [len(files[name]), hex_digest(files[name])] != [facts.get("size"), facts.get("sha256")]:
            raise Refused(f"{key}: {name} was altered")
    return Packed(key, meta, files)
