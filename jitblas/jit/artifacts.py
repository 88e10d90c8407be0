"""Artifacts: a recipe becomes a verified file, from the store or from a compiler."""

from __future__ import annotations

import atexit
import functools
import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from jitblas import config, toolchain
from jitblas.errors import CacheError, CompileError, CompilerNotFound, MissingKernelError
from jitblas.hardware import HOST
from jitblas.jit import cpu, keys
from jitblas.store.entry import OBJECT, SCHEMA, BadEntry, Entry, Key, describe, record_headers, verify, write_meta
from jitblas.store.store import Store
from jitblas.toolchain.base import Toolchain, run

MOST_TRIES = 4
"""Compiles before giving up: one is thrown away if sources were edited meanwhile, or the store had no room for it."""


class Recipe(NamedTuple):
    """Everything that turns one source text into one shared object.

    Attributes
    ----------
    title : for people
    what : first half of the key
    source : called when it comes to compiling
    include, defines : of the command line
    facts : entered into meta.json
    folders : of sources
    device_kind : "vector", "cube" or "mixed" where the object embeds device code, to be checked before loading
    """

    title: str
    what: str
    target: str
    source: Callable[[], str]
    include: tuple[str, ...]
    defines: tuple[tuple[str, str], ...]
    facts: Mapping[str, Any]
    folders: tuple[str, ...] = ()
    problem: str = ""
    device_kind: str | None = None
    remake: Callable[[], Recipe] | None = None

    def fresh(self) -> Recipe:
        """The same recipe from the source files as they are now, where it is made from files."""
        keys.forget_sources()
        return self.remake() if self.remake is not None else self

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


def library_recipe(title: str, source: str, folders: tuple[str, ...]) -> Recipe:
    """A library for this CPU that is no kernel: one C++ file and the folders whose files it may include."""
    what = keys.digest(
        [
            ("schema", str(keys.SCHEMA)),
            ("library", title),
            ("source", os.path.basename(source)),
            ("sources", keys.tree_digest(folders)),
            ("target", HOST),
        ]
    )
    return Recipe(
        title=title,
        what=what,
        target=HOST,
        source=functools.partial(_read_text, source),
        include=(os.path.dirname(source),),
        defines=(),
        facts={"library": title},
        folders=folders,
        remake=lambda: library_recipe(title, source, folders),
    )


def _read_text(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


@functools.cache
def store() -> Store:
    """The process's store. JITBLAS_MODE=off has a temporary one."""
    if config.mode() == "off":
        return Store(None, [])
    opened = Store(config.cache_folder(), config.read_only_folders(), writable=config.mode() == "on")
    atexit.register(opened.leave_hits)
    return opened


@functools.cache
def find_toolchain(target: str) -> Toolchain:
    """The process's compiler of a target, remembered in the store across processes."""
    memos = store().memo_folder if config.mode() == "on" else None
    return toolchain.find(target, memos, store().compiler_cache, cpu.fingerprint())


def obtain(recipe: Recipe) -> Entry:
    """The entry of a recipe: from the store, or compiled now. Its shared object is verified.

    Raises
    ------
    CompilerNotFound, CompileError
    MissingKernelError
        Under JITBLAS_MODE=load when no entry that this CPU can run is there.
    """
    if config.mode() == "load":
        entry = _any_entry(recipe)
        if entry is None:
            raise MissingKernelError(recipe.what, recipe.problem, recipe.target)
        return entry
    try:
        key = recipe.key()
    except CompilerNotFound:
        entry = _any_entry(recipe)
        if entry is None:
            raise
        return entry
    entry = store().find(key)
    for _ in range(MOST_TRIES):
        if entry is not None:
            return entry
        # What is compiled is what the files hold now, not what they held when this process first read them.
        recipe = recipe.fresh()
        key = recipe.key()
        try:
            with store().lock(key, config.lock_timeout(), functools.partial(_tell_waiting, recipe.title)):
                entry = store().find(key) or _compile(recipe, key)
        except OSError as error:
            if not store().retreat(error.strerror or str(error)):
                raise CacheError(
                    f"{recipe.title} cannot be built: {error}; make room in the temporary folder"
                ) from None
        except CompileError:
            if not (store().is_full() and store().retreat("its file system is full")):
                raise
    if entry is not None:
        return entry
    raise CacheError(f"the sources of {recipe.title} change faster than they compile; try again when they rest")


def _tell_waiting(title: str, pid: str) -> None:
    _say(f"waiting for pid {pid} to compile {title}")


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
            entry = verify(root, key, store().owners(root))
        except BadEntry as reason:
            _say(f"entry {key} is not used: {reason}")
            continue
        if entry is not None:
            return entry
    return None


def _compile(recipe: Recipe, key: Key) -> Entry | None:
    """A new entry, or None if the sources were edited meanwhile: nobody knows what was compiled then."""
    import tempfile

    compiler = recipe.toolchain()
    started = time.perf_counter()
    with store().private_folder() as folder, tempfile.TemporaryDirectory(prefix="jitblas-empty-") as empty:
        source_name = f"kernel{compiler.suffix}"
        text = recipe.source()
        source, shared_object, depfile = (os.path.join(folder, name) for name in (source_name, OBJECT, "headers.d"))
        with open(source, "w", encoding="utf-8") as file:
            file.write(text)
        argv = recipe.command(source, shared_object, depfile)
        finished = run(argv, cwd=empty, environment=compiler.environment(store().compiler_cache))
        if finished.returncode != 0 or not os.path.isfile(shared_object):
            raise CompileError(argv, finished.returncode, finished.output, text, str(key))
        if recipe.fresh().what != recipe.what:
            return None
        for path in (source, shared_object):
            os.chmod(path, 0o644)  # whatever the umask: what a group could write is not loaded from a tier
        _flush(shared_object)
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


def _flush(path: str) -> None:
    with open(path, "rb") as file:
        os.fsync(file.fileno())


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
    import re

    rule = re.sub(r"\\\r?\n", " ", text).partition(": ")[2]
    words = re.findall(r"(?:\\[ #]|[^\s])+", rule)
    return [re.sub(r"\\([ #])", r"\1", word).replace("$$", "$") for word in words]
