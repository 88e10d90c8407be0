"""`jitblas cache export|import|package`: artifacts for other machines, and from them."""

from __future__ import annotations

import argparse
import io
import os
import shlex
from typing import TYPE_CHECKING

from jitblas import config
from jitblas.cli.cache.choosing import filled_store, verified
from jitblas.errors import CacheError
from jitblas.files import write_whole
from jitblas.report import opened_store
from jitblas.store import archive, prebuilt, signatures
from jitblas.store.archive import Packed
from jitblas.store.entry import BadEntry, Entry, Key, verify
from jitblas.store.signatures import Refused, Untrusted
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
    entries = verified(arguments.keys, filled_store())
    buffer = io.BytesIO()
    archive.pack(entries, buffer)
    path = os.path.realpath(arguments.file)
    try:
        if os.path.exists(path) and not os.path.isfile(path):
            raise CacheError(f"{arguments.file} is no regular file; give the name of one, or a new name")
        write_whole(path, buffer.getvalue(), 0o644)
    except OSError as error:
        raise CacheError(f"{arguments.file} cannot be written: {error.strerror}") from None
    print(f"{len(entries)} entries, {size_text(len(buffer.getvalue()))}, in {arguments.file}")
    unsigned = sum(not entry.meta.get(signatures.FIELD) for entry in entries)
    if unsigned:
        print(f"{unsigned} of them are not signed and nobody can import them; first `jitblas cache sign --key FILE`")
    return 0


def _import(arguments: argparse.Namespace) -> int:
    trusted = signatures.read_trusted(config.trusted_keys_file())
    try:
        with open(arguments.file, "rb") as file:
            packed = list(archive.unpack(file, lambda meta: signatures.check(meta, trusted)))
    except Refused as reason:
        remedy = "; `jitblas cache trust KEY` trusts whoever signed it" if isinstance(reason, Untrusted) else ""
        raise CacheError(f"nothing of {arguments.file} was taken in: {reason}{remedy}") from None
    except OSError as error:
        raise CacheError(f"{arguments.file} cannot be read: {error.strerror}") from None
    store = opened_store() or Store(config.cache_folder(), [])
    if store.is_temporary:
        raise CacheError(f"nothing of {arguments.file} was taken in: there is no place for it that lasts")
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
    entries = verified(arguments.keys, filled_store())
    try:
        prebuilt.write_project(arguments.folder, arguments.name, arguments.version, entries)
    except FileExistsError:
        raise CacheError(f"{arguments.folder} is there already; choose another folder") from None
    except OSError as error:
        raise CacheError(
            f"{arguments.folder} cannot be written: {error.strerror or 'not every file was copied'}"
        ) from None
    place = shlex.quote(os.path.abspath(arguments.folder))
    print(f"{len(entries)} entries in {arguments.folder}; the wheel: pip wheel --no-deps {place}")
    return 0
