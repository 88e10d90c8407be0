"""The artifact store: a writable folder, optional read-only tiers, entries that verify or do not count."""

from __future__ import annotations

import errno
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from jitblas.store import folders
from jitblas.store.entry import (
    META,
    BadEntry,
    Entry,
    Key,
    flush,
    folder_of,
    headers_changed,
    read_meta,
    verify,
    write_meta,
)

LEAST_BYTES, LEAST_INODES = 1 << 20, 16
"""A kernel needs a twentieth of that; a file system with less is as good as full."""


class Store:
    """Artifacts by key.

    Parameters
    ----------
    cache_folder : folder that the store's own 0700 folder is made in; None: a temporary store for this process
    read_only : cache folders that are looked into after the first
    writable : False: nothing is made, written or deleted, and the first folder need not be ours to write
    most_bytes : a new entry makes the longest unused ones go, so that all take no more; None: any number

    Attributes
    ----------
    root : the store's own folder
    roots : folders that entries may be loaded from, in order
    """

    def __init__(
        self,
        cache_folder: str | None,
        read_only: list[str],
        *,
        writable: bool = True,
        most_bytes: int | None = None,
    ) -> None:
        self.writable = writable
        self._most_bytes = most_bytes
        self._cache_folder = cache_folder
        if cache_folder is None:
            self.root = folders.temporary_root()
        else:
            self.root = folders.writable_root(cache_folder) if writable else folders.root_of(cache_folder)
        readable = ([] if writable or cache_folder is None else [cache_folder]) + read_only
        tiers = [root for folder in readable if (root := folders.readable_root(folder)) is not None]
        self.roots = [self.root, *tiers] if writable else tiers
        self._hits: Counter[str] = Counter()
        self._prebuilt: list[str] | None = None
        self._prebuilt_lock = threading.Lock()
        self._swept = False
        self._bytes: int | None = None
        """Of all entries, as far as this process knows; None: not counted yet."""
        self._bytes_lock = threading.Lock()

    @property
    def memo_folder(self) -> str:
        """Where what was learnt about compilers is kept."""
        return os.path.join(self.root, "toolchains")

    @property
    def compiler_cache(self) -> str:
        """Where a compiler may keep caches of its own."""
        return os.path.join(self.root, "compiler-cache")

    def owners(self, root: str) -> tuple[int, ...] | None:
        """Who may own what is loaded from a read-only tier; our own folder lets nobody else in."""
        return None if self.writable and root == self.root else (0, os.geteuid())

    @property
    def is_temporary(self) -> bool:
        """Whether what is put here goes with the process, because there is no place for it that lasts."""
        return self._cache_folder is None or self.root != folders.root_of(self._cache_folder)

    def find(self, key: Key, *, looking: bool = False) -> Entry | None:
        """The verified entry of a key, from the writable store or a read-only tier.

        A bad entry in the writable store is moved aside with one line on stderr, unless one is only looking; in a tier
        it is a miss.
        """
        for root in self.roots:
            try:
                entry = verify(root, key, self.owners(root))
                if entry is None:
                    continue
                changed = headers_changed(entry.meta["headers"])
                if changed is not None:
                    raise BadEntry(f"the header {changed} is not the one it was compiled with")
                return entry
            except BadEntry as reason:
                gone = not os.path.lexists(folder_of(root, key))  # somebody removed it meanwhile
                if root is self.root and self.writable and not looking and not gone:
                    self._quarantine(key, str(reason))
        return None

    def count(self, entry: Entry) -> None:
        """Note a use of an entry of the writable store."""
        if entry.folder.startswith(self.root + os.sep):
            self._hits[str(entry.key)] += 1

    def add_prebuilt(self) -> bool:
        """Look into installed packages of kernels, too, from now on; False if there are none.

        Asked for when something is missing: listing what is installed takes longer than loading a kernel.
        """
        with self._prebuilt_lock:
            if self._prebuilt is None:
                from jitblas.store import prebuilt

                packages = [] if self._cache_folder is None else prebuilt.usable()
                self._prebuilt = [root for folder in packages if (root := folders.readable_root(folder)) is not None]
                self.roots += self._prebuilt
            return bool(self._prebuilt)

    def candidates(self, what: str) -> list[tuple[str, Key, dict[str, Any]]]:
        """(root, key, meta) of every entry of *what*, whoever compiled it, newest first; files are not verified yet."""
        found = []
        for root in self.roots:
            try:
                hows = sorted(os.listdir(os.path.join(root, what[:2], what)))
            except OSError:
                continue
            for how in hows:
                key = Key(what, how)
                try:
                    found.append((root, key, read_meta(folder_of(root, key), key, self.owners(root))))
                except BadEntry:
                    continue
        return sorted(found, key=lambda item: -float(item[2].get("built", 0)))

    @contextmanager
    def private_folder(self) -> Iterator[str]:
        """A folder on the store's file system to build in; it is gone afterwards unless it was published."""
        import shutil
        import tempfile

        if not os.path.isdir(self.root) and self._cache_folder is not None:
            self._move(folders.writable_root(self._cache_folder))  # somebody deleted it under us
        self._sweep_once()
        folder = tempfile.mkdtemp(prefix=f"{folders.BUILD}{os.getpid()}-", dir=self.root)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _sweep_once(self) -> None:
        """Remove what others left behind, where something is made anyway."""
        if not self._swept:
            self._swept = True
            from jitblas.store import eviction

            eviction.sweep(self.root)

    def retreat(self, reason: str) -> bool:
        """Go on in a temporary folder, because nothing more can be put here; False if that is where we are."""
        if self._cache_folder is None:
            return False
        print(
            f"jitblas: no kernel can be put into the store {self.root} ({reason}); kernels of this process go to a "
            f"temporary folder. `jitblas cache clear` makes room, JITBLAS_CACHE_DIR names another place.",
            file=sys.stderr,
        )
        self._cache_folder = None
        self._move(folders.temporary_root())
        return True

    def is_full(self, times: int = 1) -> bool:
        """Whether the file system has no room for another kernel, or for that many times the room of one."""
        try:
            found = os.statvfs(self.root)
        except OSError:
            return True
        no_inodes = found.f_files > 0 and found.f_favail < LEAST_INODES * times
        return no_inodes or found.f_bavail * found.f_frsize < LEAST_BYTES * times

    def make_room(self) -> bool:
        """Remove what was not used for longest from a full file system; False if there was nothing to remove."""
        from jitblas.store import eviction

        return eviction.make_room(self)

    def _move(self, root: str) -> None:
        self.roots = [root, *(other for other in self.roots if other != root)]
        self.root = root

    def publish(self, key: Key, folder: str) -> Entry:
        """Move a complete private folder to its place by one rename.

        Somebody was faster: their entry is used if it verifies, else it makes room for ours.
        """
        place = folder_of(self.root, key)
        for attempt in (1, 2):
            os.makedirs(os.path.dirname(place), exist_ok=True, mode=0o700)
            try:
                os.rename(folder, place)
                break
            except OSError:
                try:
                    entry = verify(self.root, key)
                except BadEntry as reason:
                    self._quarantine(key, str(reason))
                    entry = None
                if entry is not None:
                    return entry
                if attempt == 2:
                    raise
        try:
            entry = verify(self.root, key)
        except BadEntry as reason:
            if os.path.lexists(place):
                raise OSError(errno.EIO, f"what was put there cannot be read back: {reason}") from None
            entry = None
        if entry is None:
            raise FileNotFoundError(errno.ENOENT, "it was deleted as soon as it was there", place)
        return entry

    def place(self, key: Key, files: Mapping[str, bytes]) -> Entry:
        """Publish an entry that was made elsewhere; its files were checked by whoever calls this."""
        with self.private_folder() as folder:
            for name in sorted(files, key=lambda name: name == META):  # meta.json last
                path = os.path.join(folder, name)
                with open(path, "wb") as file:
                    os.fchmod(file.fileno(), 0o644)
                    file.write(files[name])
                flush(path)
            entry = self.publish(key, folder)
        self.record(entry)
        return entry

    def replace_meta(self, entry: Entry, meta: Mapping[str, Any]) -> None:
        """Give an entry of the writable store another meta.json, such as one with a signature more."""
        with self.private_folder() as folder:
            write_meta(folder, meta)
            os.replace(os.path.join(folder, META), os.path.join(entry.folder, META))

    def _quarantine(self, key: Key, reason: str) -> None:
        print(f"jitblas: entry {key} is not used and moved aside: {reason}", file=sys.stderr)
        import shutil
        import tempfile

        aside = os.path.join(self.root, "quarantine")
        try:
            folders.make_private(aside)
            os.rename(folder_of(self.root, key), os.path.join(tempfile.mkdtemp(dir=aside), "entry"))
        except OSError:
            shutil.rmtree(folder_of(self.root, key), ignore_errors=True)

    def lock(
        self,
        name: str,
        timeout: float,
        waiting: Callable[[str], None] = lambda _: None,
        give_up: Callable[[], bool] = lambda: False,
    ) -> AbstractContextManager[None]:
        """Be the only one to do what that names, or go on without (:func:`jitblas.store.locks.held`)."""
        from jitblas.store import locks

        return locks.held(os.path.join(self.root, "locks"), name, timeout, waiting, give_up)

    def record(self, entry: Entry) -> None:
        """Tell the index of a new entry, and keep the store within its size."""
        from jitblas.store import eviction, journal

        journal.append(self.root, [(str(entry.key), {"bytes": entry.nbytes, "built": entry.meta["built"]})])
        if self._most_bytes is None:
            return
        with self._bytes_lock:
            if self._bytes is not None:
                self._bytes += entry.nbytes
            if self._bytes is None or self._bytes > self._most_bytes:
                self._bytes = eviction.prune_to(self, self._most_bytes, spared=entry.key)

    def leave_hits(self) -> None:
        """At exit: tell the index how often this process used which entry."""
        if self._hits and self.writable and os.path.isdir(self.root):
            from jitblas.store import journal

            now = time.time()
            journal.append(self.root, [(key, {"hits": count, "used": now}) for key, count in self._hits.items()])
            self._hits.clear()

    def stored_keys(self) -> Iterator[Key]:
        """Of every entry of the writable store."""
        import glob

        pattern = os.path.join("[0-9a-f][0-9a-f]", "*", "*", META)
        for path in sorted(glob.glob(pattern, root_dir=self.root)):
            _, what, how, _ = path.split(os.sep)
            yield Key(what, how)

    def entries(self) -> Iterator[tuple[Key, dict[str, Any]]]:
        """Every entry of the writable store with its meta.json (unreadable ones with an empty one)."""
        for key in self.stored_keys():
            try:
                yield key, read_meta(folder_of(self.root, key), key)
            except BadEntry:
                yield key, {}

    def remove(self, key: Key) -> None:
        """Remove an entry: moved away whole before its files go, so that nobody finds half of one."""
        import shutil

        place = folder_of(self.root, key)
        try:
            with self.private_folder() as aside:
                os.rename(place, os.path.join(aside, "entry"))
        except OSError:
            shutil.rmtree(place, ignore_errors=True)
        for folder in (os.path.dirname(place), os.path.dirname(os.path.dirname(place))):
            try:
                os.rmdir(folder)
            except OSError:
                break  # others are in it

    def clear(self) -> int:
        """Delete everything in the store; returns the number of entries that went."""
        import shutil

        count = 0
        for key in self.stored_keys():
            self.remove(key)
            count += 1
        for item in os.scandir(self.root):
            if item.name.startswith(folders.BUILD):
                continue  # somebody compiles; what was left behind is swept later
            if item.is_dir(follow_symlinks=False):
                shutil.rmtree(item.path, ignore_errors=True)
            else:
                os.unlink(item.path)
        return count
