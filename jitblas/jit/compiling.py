"""From a recipe to a new entry: one run of a compiler in a private folder, published whole or not at all."""

from __future__ import annotations

import errno
import os
import re
import sys
import tempfile
import time
from typing import TYPE_CHECKING, Any

from jitblas import config
from jitblas.errors import CompileError
from jitblas.hardware import HOST
from jitblas.jit import cpu
from jitblas.store.entry import OBJECT, SCHEMA, Entry, Key, describe, flush, record_headers, write_meta
from jitblas.toolchain.base import Toolchain, run

if TYPE_CHECKING:
    from jitblas.jit.artifacts import Recipe
    from jitblas.store.store import Store

announce = False
"""Whether every compile is told on stderr (the command line's demo turns it on)."""


def compile_entry(store: Store, recipe: Recipe, key: Key) -> Entry | None:
    """A new entry, or None if the sources were edited meanwhile: nobody knows what was compiled then.

    Raises
    ------
    CompileError
        What the compiler said.
    OSError
        The store has no room.
    """
    compiler = recipe.toolchain()
    started = time.perf_counter()
    with store.private_folder() as folder, tempfile.TemporaryDirectory(prefix="jitblas-empty-") as empty:
        source_name = f"kernel{compiler.suffix}"
        text = recipe.source()
        source, shared_object, depfile = (os.path.join(folder, name) for name in (source_name, OBJECT, "headers.d"))
        with open(source, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)
        argv = recipe.command(source, shared_object, depfile)
        finished = run(argv, cwd=empty, environment=compiler.environment(store.compiler_cache))
        if not os.path.isfile(source):
            raise FileNotFoundError(errno.ENOENT, "the folder was deleted while its source was compiled", folder)
        if finished.returncode != 0 or not os.path.isfile(shared_object):
            error = CompileError(argv, finished.returncode, finished.output, text, str(key))
            error.store_full = store.is_full()  # asked now: what it left goes with the folder
            raise error
        if recipe.fresh().what != recipe.what:
            return None
        for path in (source, shared_object):
            os.chmod(path, 0o644)  # whatever the umask: what a group could write is not loaded from a tier
        flush(shared_object)
        headers = _outside_headers(depfile, [folder, *recipe.include])
        for leftover in set(os.listdir(folder)) - {OBJECT, source_name}:
            os.unlink(os.path.join(folder, leftover))
        write_meta(
            folder,
            {
                "schema": SCHEMA,
                "what": key.what,
                "how": key.how,
                "target": recipe.target,
                "machine": os.uname().machine,
                "title": recipe.title,
                "facts": dict(recipe.facts),
                "toolchain": compiler.name,
                "version": compiler.version,
                "command": recipe.command(),
                "resolved": _machine_flags(compiler),
                "extra_flags": list(config.extra_flags()),
                "cpu": sorted(cpu.required(compiler)) if recipe.target == HOST else [],
                "built": time.time(),
                "seconds": round(time.perf_counter() - started, 3),
                "headers": headers,
                "files": {OBJECT: describe(shared_object), source_name: describe(source)},
            },
        )
        if recipe.device_kind is not None:
            from jitblas.runtime.device_object import check_device_object

            check_device_object(shared_object, recipe.device_kind)
        entry = store.publish(key, folder)._replace(origin="compiled")
    store.record(entry)
    if announce or config.verbose():
        seconds = time.perf_counter() - started
        print(
            f"jitblas: compiled {recipe.title} for {recipe.target} with {compiler.name} in {seconds:.2f} s",
            file=sys.stderr,
        )
    return entry


def _machine_flags(compiler: Toolchain) -> list[str]:
    """What the compiler makes of -march= here."""
    return [word for word in dict(compiler.identity).get("expansion", "").split() if word.startswith("-m")]


def _outside_headers(depfile: str, ours: list[str]) -> list[list[Any]]:
    """The headers that a compile read outside our own tree, from the compiler's dependency file."""
    try:
        with open(depfile, "rb") as file:
            words = read_depfile(os.fsdecode(file.read()))
    except (OSError, ValueError):
        return []
    outside = [word for word in words if not any(word.startswith(f"{folder}{os.sep}") for folder in ours)]
    return record_headers(dict.fromkeys(os.path.abspath(word) for word in outside))


def read_depfile(text: str) -> list[str]:
    """The prerequisites of a make rule: `\\ ` is a blank, `\\#` a hash, `$$` a dollar, `\\` joins lines."""
    rule = re.sub(r"\\\r?\n", " ", text).partition(": ")[2]
    words = re.findall(r"(?:\\[ #]|[^\s])+", rule)
    return [re.sub(r"\\([ #])", r"\1", word).replace("$$", "$") for word in words]
