"""`jitblas cache export|import|package`: artifacts for other machines, and from them."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from typing import TYPE_CHECKING

from jitblas import config
from jitblas.cli.cache.looking import chosen
from jitblas.errors import CacheError
from jitblas.report import opened_store
from jitblas.store import archive, prebuilt, signatures
from jitblas.store.archive import Packed
from jitblas.store.entry import BadEntry, Entry, Key, verify
from jitblas.store.signatures import Refused
from jitblas.store.store import Store
from jitblas.units import size_text

if TYPE_CHECKING:
    from jitblas.cli.cache import Add


def add_actions(add: Add) -> None:
    exported = add("export", "write entries to an archive", _export)
    exported.add_argument("file", metavar="FILE", help="such as kernels.tar.gz; an existing file is replaced")
    imported = add("import", "take in an archive whose every entry is signed by somebody trusted", _import)
    imported.add_argument("file", metavar="FILE")
    packaged = add("package", "write a Python project that `pip wheel` makes a wheel of prebuilt kernels of", _package)
    packaged.add_argument("folder", metavar="FOLDER", help="the project's folder, which is not there yet")
    packaged.add_argument("--name", required=True, help="of the package, such as my-kernels")
    packaged.add_argument("--version", default="1", help="of the package; default: 1")
    for made in (exported, packaged):
        made.add_argument("keys", nargs="*", metavar="KEY", help="entries, as `cache show` takes them; default: all")


def _export(arguments: argparse.Namespace) -> int:
    entries = _verified(arguments.keys)
    private = f"{arguments.file}.{os.getpid()}"
    try:
        with open(private, "wb") as file:
            archive.pack(entries, file)
        os.replace(private, arguments.file)
        size = os.path.getsize(arguments.file)
    except OSError as error:
        raise CacheError(f"{arguments.file} cannot be written: {error.strerror}") from None
    finally:
        if os.path.exists(private):
            os.unlink(private)
    print(f"{len(entries)} entries, {size_text(size)}, in {arguments.file}")
    unsigned = sum(not entry.meta.get(signatures.FIELD) for entry in entries)
    if unsigned:
        print(f"{unsigned} of them are not signed and nobody can import them; first `jitblas cache sign --key FILE`")
    return 0


def _verified(texts: list[str]) -> list[Entry]:
    """The chosen entries, or all; damaged ones are told and left out unless they were chosen."""
    store = opened_store()
    if store is None:
        raise CacheError(f"there is no store in {config.cache_folder()}; `jitblas prewarm` fills one")
    keys = chosen(texts)[1] if texts else [key for key, _ in store.entries()]
    entries = []
    for key in keys:
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


def _import(arguments: argparse.Namespace) -> int:
    trusted = signatures.read_trusted(config.trusted_keys_file())
    try:
        with open(arguments.file, "rb") as file:
            packed = list(archive.unpack(file, lambda meta: signatures.check(meta, trusted)))
    except Refused as reason:
        raise CacheError(
            f"nothing of {arguments.file} was taken in: {reason}. `jitblas cache trust KEY` trusts whoever signed it"
        ) from None
    except OSError as error:
        raise CacheError(f"{arguments.file} cannot be read: {error.strerror}") from None
    store = opened_store() or Store(config.cache_folder(), [])
    new = sum(_placed(store, one) for one in packed)
    print(f"{len(packed)} entries of {arguments.file}: {new} taken in, {len(packed) - new} were there")
    return 0


def _placed(store: Store, packed: Packed) -> bool:
    """Whether an entry was new."""
    if _stored(store, packed.key) is not None:
        return False
    try:
        store.place(packed.key, packed.files)
    except OSError as error:
        raise CacheError(f"the store {store.root} took in a part only: {error}") from None
    return True


def _stored(store: Store, key: Key) -> Entry | None:
    try:
        return verify(store.root, key)
    except BadEntry:
        return None


def _package(arguments: argparse.Namespace) -> int:
    entries = _verified(arguments.keys)
    try:
        prebuilt.write_project(arguments.folder, arguments.name, arguments.version, entries)
    except FileExistsError:
        raise CacheError(f"{arguments.folder} is there already; choose another folder") from None
    except OSError as error:
        raise CacheError(f"{arguments.folder} cannot be written: {error}") from None
    place = shlex.quote(os.path.abspath(arguments.folder))
    print(f"{len(entries)} entries in {arguments.folder}; the wheel: pip wheel --no-deps {place}")
    return 0
