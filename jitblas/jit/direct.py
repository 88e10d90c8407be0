"""Direct hits: what a library resolved to last time, for as long as nothing that it was resolved from has changed.

Resolving means reading every source, asking what is known of the compiler and reading meta.json: little work, but with
the modules that do it two thirds of a first call. So the answer is kept in a memo, together with the stat of every file
and folder that it came from. A process that finds all of them as they were has its library at once. Anything else,
whatever it is, takes the long way, which asks for contents and not for times.
"""

from __future__ import annotations

import atexit
import functools
import os
import stat
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from jitblas import __version__, config
from jitblas.digest import hex_digest
from jitblas.errors import CompilerNotFound
from jitblas.files import write_whole
from jitblas.hardware import HOST
from jitblas.jit import cpu
from jitblas.store.folders import make_private, refusal, root_of

if TYPE_CHECKING:
    from jitblas.jit.artifacts import Recipe
    from jitblas.store.entry import Entry

FOLDER = "direct"
MEMO_FORMAT = "2"

SETTLED = 2.0
"""Seconds: a file that was touched less long ago could be changed once more without its stat telling."""

_first_look = time.time()
"""Contents are read after this and stats at the end, so what was changed in between must not be remembered."""

ENVIRONMENT = (*config.COMPILER_ENVIRONMENT, "PATH", "CXX", "JITBLAS_CXX", "JITBLAS_MARCH", "JITBLAS_EXTRA_FLAGS")
"""Variables that decide which compiler is found and what it makes."""

MODULES = ("jit", "toolchain", "operators", "hardware.py", "config.py")
"""Parts of this package that decide what is compiled, and how."""


def find(request: str) -> tuple[str, str] | None:
    """(shared object, key) of what `request` resolved to, its bytes verified; None: nobody knows."""
    if config.mode() != "on":
        return None
    root = root_of(config.cache_folder())
    if refusal(root, (os.geteuid(),)) is not None:
        return None
    try:
        memo = _memo(root, request)
        tag, name, key, size, digest, count, *known = os.fsdecode(_read(memo)).split("\n")
        if (tag, name, count) != (MEMO_FORMAT, os.path.basename(memo), str(len(known))) or any(
            _signature(path) != signature for signature, path in _pairs(known)
        ):
            return None
        what, how = key.split("/")
        path = os.path.join(root, what[:2], what, how, "kernel.so")
        data = _read(path)
    except (OSError, ValueError):
        return None
    if len(data) != int(size) or hex_digest(data) != digest:
        return None
    _count(root, key)
    return path, key


def remember(request: str, recipe: Recipe, entry: Entry) -> None:
    """Keep what was found the long way, if it stands in the writable store and all that it depends on has settled.

    An entry that this machine's compiler does not make of the recipe (there was none) is not remembered.
    """
    root = root_of(config.cache_folder())
    if recipe.target != HOST or config.mode() != "on" or not entry.folder.startswith(root + os.sep):
        return
    try:
        if entry.key != recipe.key():
            return
    except CompilerNotFound:
        return
    outside = (header[0] for header in entry.meta["headers"])
    own = (entry.folder, os.path.join(entry.folder, "meta.json"))  # just made, perhaps; what is loaded is verified
    paths = {*own, *outside, *recipe.toolchain().depends, *_searched(), *_sources(recipe.folders), *_modules()}
    _signature.cache_clear()  # what was seen on the way to the answer may have changed since
    lines: list[str] = []
    for path in sorted(paths):
        if "\n" in path or not (path in own or _settled(path)):
            return
        lines += [_signature(path), path]
    facts = entry.meta["files"]["kernel.so"]
    memo = _memo(root, request)
    name = os.path.basename(memo)
    head = [MEMO_FORMAT, name, str(entry.key), str(facts["size"]), facts["sha256"], str(len(lines))]
    text = "\n".join([*head, *lines])
    try:
        make_private(os.path.dirname(memo))
        write_whole(memo, os.fsencode(text))
    except OSError:
        pass  # the long way remains


def _memo(root: str, request: str) -> str:
    """The memo's path: another environment, another place of store or sources, another CPU has another."""
    values = [f"{name}={os.environ.get(name)}" for name in ENVIRONMENT]
    places = [root, config.kernels_folder(), os.path.dirname(__file__)]
    fields = [__version__, request, *places, cpu.fingerprint(), *values]
    return os.path.join(root, FOLDER, hex_digest(os.fsencode("\0".join(fields))))


def _pairs(lines: list[str]) -> Iterator[tuple[str, str]]:
    return zip(lines[::2], lines[1::2], strict=True)


@functools.cache
def _signature(path: str) -> str:
    """What changes whenever a file's contents do, or a folder's names; kept until :func:`forget`."""
    try:
        found = os.stat(path)
    except OSError as error:
        return f"errno {error.errno}"
    return f"{found.st_dev} {found.st_ino} {found.st_size} {found.st_mtime_ns} {found.st_ctime_ns}"


def _settled(path: str) -> bool:
    """Whether a file's contents have been what its stat says since well before this process looked at any."""
    try:
        found = os.stat(path)
    except OSError:
        return True  # not there, and that is what the memo says
    return max(found.st_mtime, found.st_ctime) <= _first_look - SETTLED


def forget() -> None:
    """Look at files anew."""
    global _first_look
    _first_look = time.time()
    _signature.cache_clear()


def _sources(folders: Iterable[str]) -> Iterator[str]:
    for top in folders:
        for folder, _, names in os.walk(top):
            yield folder
            yield from (os.path.join(folder, name) for name in names)


def _modules() -> Iterator[str]:
    package = os.path.dirname(os.path.dirname(__file__))
    for part in MODULES:
        path = os.path.join(package, part)
        yield path
        if os.path.isdir(path):
            yield from (os.path.join(path, name) for name in os.listdir(path) if name.endswith(".py"))


def _searched() -> list[str]:
    """Folders in which a compiler that is preferred could appear."""
    return [os.path.abspath(folder) for folder in os.environ.get("PATH", os.defpath).split(os.pathsep)]


def _read(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(f"{path} is no regular file")
        return file.read()


_hits: Counter[tuple[str, str]] = Counter()
os.register_at_fork(after_in_child=_hits.clear)


def _count(root: str, key: str) -> None:
    """At exit the index hears how often this process used which entry."""
    _hits[root, key] += 1


@atexit.register
def _leave_hits() -> None:
    from jitblas.store import journal

    for (root, key), count in _hits.items():
        journal.append(root, [(key, {"hits": count, "used": time.time()})])
