"""Keys: sha256 over labelled, length-delimited fields, in two halves.

*What* is compiled: schema, operator, path, constants, kernel sources, target, twin build. *How*: toolchain, resolved
flags, libraries, environment. No absolute paths, no times, no process ids, no order of a dict. Computing *what* never
needs a compiler.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable

from jitblas.digest import hex_digest, sha256
from jitblas.toolchain.base import Toolchain

SCHEMA = 1

_SOURCE_SUFFIXES = (".h", ".cpp", ".asc")


def digest(fields: Iterable[tuple[str, str]]) -> str:
    """sha256 of labelled fields; every label and value is preceded by its length, so none can run into the next."""
    state = sha256()
    for label, value in fields:
        for text in (label, value):
            data = text.encode(errors="surrogateescape")
            state.update(len(data).to_bytes(8, "little"))
            state.update(data)
    digest: str = state.hexdigest()
    return digest


@functools.cache
def tree_digest(folders: tuple[str, ...]) -> str:
    """Digest of all C++ files below the folders: relative names and bytes. Kept until `jitblas.reload()`."""
    fields = []
    for folder in folders:
        above = len(os.path.dirname(folder)) + 1
        paths = [os.path.join(place, name) for place, _, names in os.walk(folder) for name in names]
        fields += [(path[above:], _file_digest(path)) for path in sorted(paths) if path.endswith(_SOURCE_SUFFIXES)]
    return digest(fields)


@functools.cache
def _file_digest(path: str) -> str:
    with open(path, "rb") as file:
        return hex_digest(file.read())


def forget_sources() -> None:
    """Read source files anew when they are next asked for."""
    tree_digest.cache_clear()
    _file_digest.cache_clear()


def module_digest(name: str) -> str:
    """Digest of a module of this package: what it prints is compiled, so its text is part of *what*."""
    return _file_digest(os.path.join(os.path.dirname(__file__), name))


def how(toolchain: Toolchain, extra_flags: tuple[str, ...]) -> str:
    """The second half of a key."""
    return digest(
        [
            ("toolchain", toolchain.name),
            *((f"toolchain {label}", value) for label, value in toolchain.identity),
            *((f"flag {index}", flag) for index, flag in enumerate(toolchain.flags)),
            *((f"extra flag {index}", flag) for index, flag in enumerate(extra_flags)),
        ]
    )
