"""Which folders may hold code. Loading an artifact is running code, so whoever can write here can run code as us."""

from __future__ import annotations

import atexit
import os
import stat
import sys

FORMAT = "v1"
"""Folder below the cache directory; a new layout gets a new name and the old one is left alone."""

BUILD = "build-"
"""Begins the names of private folders in a store."""


def root_of(cache_folder: str) -> str:
    """The store's own folder inside a cache directory."""
    return os.path.join(cache_folder, FORMAT)


def refusal(folder: str, owners: tuple[int, ...]) -> str | None:
    """Why code in `folder` must not be trusted, or None."""
    try:
        found = os.lstat(folder)
    except OSError as error:
        return f"cannot be examined ({error.strerror})"
    if stat.S_ISLNK(found.st_mode):
        return "is a symbolic link"
    if not stat.S_ISDIR(found.st_mode):
        return "is not a folder"
    if found.st_uid not in owners:
        return f"belongs to uid {found.st_uid}, not to {' or '.join(map(str, owners))}"
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return "can be written by group or others (chmod go-w mends that)"
    return None


def writable_root(cache_folder: str) -> str:
    """The store's own 0700 folder inside the cache directory, or a private temporary one when that cannot be had.

    Says so on stderr in the second case: kernels then live as long as the process.
    """
    root = root_of(cache_folder)
    try:
        os.makedirs(cache_folder, exist_ok=True)
        make_private(root)
        reason = refusal(root, (os.geteuid(),))
        if reason is None and not os.access(root, os.W_OK | os.X_OK):
            reason = "cannot be written"
    except OSError as error:
        reason = f"cannot be made ({error.strerror})"
    if reason is None:
        return root
    print(
        f"jitblas: the store {root} {reason}; kernels of this process go to a temporary folder. "
        f"Set JITBLAS_CACHE_DIR to a folder of your own.",
        file=sys.stderr,
    )
    return temporary_root()


def make_private(folder: str) -> None:
    """Make one 0700 folder unless it is there. Its parent must be: a store that was deleted does not come back so."""
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        if not os.path.isdir(folder):
            raise


def temporary_root() -> str:
    """A private folder that goes with the process that made it (not with its forks)."""
    import shutil
    import tempfile

    folder = tempfile.mkdtemp(prefix="jitblas-")
    owner = os.getpid()

    def remove() -> None:
        if os.getpid() == owner:
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return folder


def readable_root(cache_folder: str) -> str | None:
    """The store inside a read-only tier if its code may be trusted: owned by root or us, writable by nobody else."""
    root = root_of(cache_folder)
    if not os.path.isdir(root):
        return None
    reason = refusal(root, (0, os.geteuid()))
    if reason is None:
        return root
    print(f"jitblas: the read-only store {root} is not used: it {reason}", file=sys.stderr)
    return None
