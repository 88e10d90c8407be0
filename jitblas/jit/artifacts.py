"""Artifacts: a recipe becomes a verified file, from the store or from a compiler."""

from __future__ import annotations

import atexit
import functools
import os
import shlex
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jitblas import config, toolchain
from jitblas.errors import CompileError, CompilerNotFound, MissingKernelError
from jitblas.jit import cpu, keys
from jitblas.store import Entry, Key, Store
from jitblas.store.entry import OBJECT, SCHEMA, BadEntry, describe, record_headers, verify, write_meta
from jitblas.targets import HOST
from jitblas.toolchain.base import Toolchain, run


@dataclass(frozen=True)
class Recipe:
    """Everything that turns one source text into one shared object.

    Attributes
    ----------
    title : for people
    what : first half of the key
    source : called when it comes to compiling
    include, defines : of the command line
    facts : entered into meta.json
    device_kind : "vector", "cube" or "mixed" where the object embeds device code, to be checked before loading
    """

    title: str
    what: str
    target: str
    source: Callable[[], str] = field(compare=False)
    include: tuple[str, ...]
    defines: tuple[tuple[str, str], ...]
    facts: Mapping[str, Any] = field(compare=False)
    problem: str = ""
    device_kind: str | None = None

    def toolchain(self) -> Toolchain:
        return find_toolchain(self.target)

    def key(self) -> Key:
        return Key(self.what, keys.how(self.toolchain(), config.extra_flags()))

    def command(self, source: str = "", output: str = OBJECT, depfile: str | None = None) -> list[str]:
        """The argv that compiles it."""
        compiler = self.toolchain()
        source = source or f"kernel{compiler.suffix}"
        extra = [*config.extra_flags()]
        if depfile is not None and compiler.target == HOST:
            extra += ["-MD", "-MF", depfile]
        if compiler.target == HOST:
            extra += [f"-ffile-prefix-map={path}=." for path in self.include]
        defines = {**dict(self.defines), "JITBLAS_KEY": f'"{self.key()}"'}
        return compiler.command(source, output, include=self.include, define=defines, extra=extra)


@functools.cache
def store() -> Store:
    """The process's store. JITBLAS_MODE=off has a temporary one."""
    if config.mode() == "off":
        return Store(None, [])
    opened = Store(config.cache_folder(), config.read_only_folders())
    atexit.register(opened.leave_hits)
    return opened


@functools.cache
def find_toolchain(target: str) -> Toolchain:
    """The process's compiler of a target, remembered in the store across processes."""
    memos = store().memo_folder if config.mode() != "off" else None
    return toolchain.find(target, memos, store().compiler_cache, cpu.fingerprint())


def obtain(recipe: Recipe) -> tuple[Path, str]:
    """(shared object, key): from the store, or compiled now. The file is verified.

    Raises
    ------
    CompilerNotFound, CompileError
    MissingKernelError
        Under JITBLAS_MODE=load when no entry that this CPU can run is there.
    """
    if config.mode() == "load":
        return _load_only(recipe)
    try:
        key = recipe.key()
    except CompilerNotFound:
        entry = _any_entry(recipe)
        if entry is None:
            raise
        return entry.shared_object, str(entry.key)
    entry = store().find(key)
    if entry is None:
        with store().lock(
            key, config.lock_timeout(), lambda pid: _say(f"waiting for pid {pid} to compile {recipe.title}")
        ):
            entry = store().find(key) or _compile(recipe, key)
    return entry.shared_object, str(key)


def _load_only(recipe: Recipe) -> tuple[Path, str]:
    entry = _any_entry(recipe)
    if entry is None:
        raise MissingKernelError(recipe.what, recipe.problem, recipe.target)
    return entry.shared_object, str(entry.key)


def _any_entry(recipe: Recipe) -> Entry | None:
    """An entry of the recipe's *what*, whatever compiled it, that this CPU can run: best instruction set first."""
    have = cpu.features()
    runnable = []
    for root, key, meta in store().candidates(recipe.what):
        needed = set(meta.get("cpu", ()))
        if meta.get("extra_flags") or meta.get("machine") != os.uname().machine:
            continue
        if recipe.target == HOST and not needed <= have:
            missing = ", ".join(sorted(needed - have)[:5])
            _say(f"entry {key} needs instructions that this CPU lacks ({missing}); not loaded")
            continue
        runnable.append((len(needed), root, key))
    for _, root, key in sorted(runnable, key=lambda item: -item[0]):
        try:
            entry = verify(root, key)
        except BadEntry as reason:
            _say(f"entry {key} is not used: {reason}")
            continue
        if entry is not None:
            return entry
    return None


def _compile(recipe: Recipe, key: Key) -> Entry:
    import tempfile

    compiler = recipe.toolchain()
    started = time.perf_counter()
    with store().private_folder() as folder, tempfile.TemporaryDirectory(dir=folder, prefix="empty-") as empty:
        source_name = f"kernel{compiler.suffix}"
        text = recipe.source()
        (folder / source_name).write_text(text, encoding="utf-8")
        depfile = folder / "headers.d"
        argv = recipe.command(str(folder / source_name), str(folder / OBJECT), str(depfile))
        finished = run(argv, cwd=empty, environment=compiler.environment(store().compiler_cache))
        if finished.returncode != 0 or not (folder / OBJECT).is_file():
            raise CompileError(argv, finished.returncode, finished.output, text, str(key))
        os.rmdir(empty)
        os.chmod(folder / OBJECT, 0o700)
        _flush(folder / OBJECT)
        headers = _outside_headers(depfile, [str(folder), *recipe.include])
        depfile.unlink(missing_ok=True)
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
                "extra_flags": list(config.extra_flags()),
                "cpu": sorted(cpu.required(compiler)) if recipe.target == HOST else [],
                "built": time.time(),
                "seconds": round(time.perf_counter() - started, 3),
                "headers": headers,
                "files": {name: describe(folder / name) for name in (OBJECT, source_name)},
            },
        )
        if recipe.device_kind is not None:
            from jitblas.runtime.device_object import check_device_object

            check_device_object(str(folder / OBJECT), recipe.device_kind)
        entry = store().publish(key, folder)
    store().record(entry)
    if announce or config.verbose():
        _say(
            f"compiled {recipe.title} for {recipe.target} with {compiler.name} in {time.perf_counter() - started:.2f} s"
        )
    return entry


announce = False
"""Whether every compile is told on stderr (the command line's demo turns it on)."""


def _say(text: str) -> None:
    print(f"jitblas: {text}", file=sys.stderr)


def _flush(path: Path) -> None:
    with open(path, "rb") as file:
        os.fsync(file.fileno())


def _outside_headers(depfile: Path, ours: list[str]) -> list[list[Any]]:
    """The headers that a compile read outside our own tree, from the compiler's dependency file."""
    try:
        words = shlex.split(depfile.read_text(encoding="utf-8").replace("\\\n", " "))[1:]
    except (OSError, ValueError):
        return []
    outside = [word for word in words if not any(word.startswith(f"{folder}{os.sep}") for folder in ours)]
    return record_headers(dict.fromkeys(os.path.abspath(word) for word in outside))
