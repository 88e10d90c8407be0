"""Artifacts: a recipe becomes a verified file, from the store or from a compiler."""

from __future__ import annotations

import atexit
import functools
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from jitblas import config, toolchain
from jitblas.errors import CacheError, CompileError, CompilerNotFound, MissingKernelError
from jitblas.hardware import HOST
from jitblas.jit import cpu, keys
from jitblas.jit.compiling import compile_entry
from jitblas.store.entry import OBJECT, BadEntry, Entry, Key, verify
from jitblas.store.store import Store
from jitblas.toolchain.base import Toolchain

MOST_TRIES = 6
"""Compiles before giving up: one is lost if sources were edited meanwhile, the store had no room or was deleted."""


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
    problem, exact : what would be compiled for, for messages; "" for libraries
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
    exact: bool = False
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
    opened = Store(
        config.cache_folder(),
        config.read_only_folders(),
        writable=config.mode() == "on",
        most_bytes=config.cache_max_size(),
    )
    atexit.register(opened.leave_hits)
    return opened


@functools.cache
def find_toolchain(target: str) -> Toolchain:
    """The process's compiler of a target, remembered in the store across processes."""
    memos = store().memo_folder if config.mode() == "on" else None

    def alone(name: str) -> AbstractContextManager[None]:
        return _lock(name, "probe the compiler")

    return toolchain.find(target, memos, store().compiler_cache, cpu.fingerprint(), alone)


def look_up(recipe: Recipe) -> Entry | None:
    """The entry that a call would load without compiling or asking a remote store. Looking changes nothing."""
    return _found(recipe, _key(recipe), looking=True)


def _found(recipe: Recipe, key: Key | CompilerNotFound | None, *, looking: bool) -> Entry | None:
    """Its files are verified."""

    def find() -> Entry | None:
        return store().find(key, looking=looking) if isinstance(key, Key) else _any_entry(recipe)

    entry = find()
    return find() if entry is None and store().add_prebuilt() else entry


def _key(recipe: Recipe) -> Key | CompilerNotFound | None:
    """The key that an entry must have; where nothing can be compiled every entry of the recipe's *what* counts."""
    if config.mode() == "load":
        return None
    try:
        return recipe.key()
    except CompilerNotFound as error:
        return error


def obtain(recipe: Recipe) -> Entry:
    """The entry of a recipe: from the store, a remote store, or compiled now. Its shared object is verified.

    Raises
    ------
    CompilerNotFound, CompileError
    MissingKernelError
        Under JITBLAS_MODE=load when no entry that this CPU can run is there.
    """
    key = _key(recipe)
    entry = _found(recipe, key, looking=False)
    if entry is not None:
        store().count(entry)
        return entry
    if key is None:
        raise MissingKernelError(recipe.what, recipe.problem, recipe.exact, recipe.target)
    made_room = False
    for left in reversed(range(MOST_TRIES)):
        root = store().root
        try:
            if isinstance(key, CompilerNotFound):
                entry = _downloaded(recipe, None)
                if entry is None:
                    raise key
                return entry
            # What is compiled is what the files hold now, not what they held when this process first read them.
            recipe = recipe.fresh()
            key = recipe.key()
            with _lock(f"{key.what[:24]}-{key.how[:24]}", f"compile {recipe.title}"):
                entry = store().find(key) or _downloaded(recipe, key) or compile_entry(store(), recipe, key)
        except (OSError, CompileError) as error:
            # Another thread moved the store, or somebody deletes what is made in it.
            deleted = store().root != root or not os.path.isdir(root) or isinstance(error, FileNotFoundError)
            if deleted and left > 2:
                continue
            refused = isinstance(error, CompileError)
            full = store().is_full() or (isinstance(error, CompileError) and error.store_full)
            if refused and not (deleted or full):
                raise
            if full and not made_room and store().make_room():
                made_room = True
            elif not store().retreat(_why_not_there(error, deleted)):
                if refused:
                    raise
                raise CacheError(
                    f"{recipe.title} cannot be built: {error}; make room in the temporary folder"
                ) from None
        if entry is not None:
            return entry
    raise CacheError(f"{recipe.title} cannot be built: its sources or its store change faster than it compiles")


def _why_not_there(error: OSError | CompileError, deleted: bool) -> str:
    if deleted:
        return "what is put there is deleted"
    return "its file system is full" if isinstance(error, CompileError) else error.strerror or str(error)


def _lock(name: str, task: str) -> AbstractContextManager[None]:
    """Whoever waits for another process says so after a second."""
    waiting = functools.partial(_say_waiting, task)
    return store().lock(name, config.lock_timeout(), waiting, toolchain.base.is_stopping)


def _say_waiting(task: str, pid: str) -> None:
    _say(f"waiting for pid {pid} to {task}")


def _downloaded(recipe: Recipe, key: Key | None) -> Entry | None:
    """An entry of the remote store, placed in ours: that of a key, or the best for this CPU of the recipe's *what*."""
    if config.mode() != "on" or not config.remote():
        return None
    from jitblas.store import remote

    if key is not None:
        return remote.download(store(), key)
    return remote.download_best(store(), recipe.what, lambda meta: _fitness(recipe, meta))


def _any_entry(recipe: Recipe) -> Entry | None:
    """An entry of the recipe's *what*, whatever compiled it, that this CPU can run: best instruction set first."""
    runnable = []
    for root, key, meta in store().candidates(recipe.what):
        fitness = _fitness(recipe, meta)
        if fitness is not None:
            runnable.append((fitness, root, key))
    for _, root, key in sorted(runnable, key=lambda item: -item[0]):
        try:
            entry = verify(root, key, store().owners(root))
        except BadEntry as reason:
            _say_once(f"entry {key} is not used: {reason}")
            continue
        if entry is not None:
            return entry
    return None


def _fitness(recipe: Recipe, meta: Mapping[str, Any]) -> int | None:
    """How many of this CPU's instruction sets an entry uses, None if it is not for this CPU."""
    if meta.get("extra_flags") or meta.get("machine") != os.uname().machine:
        return None
    needed = set(meta["cpu"])
    missing = sorted(needed - cpu.features()) if recipe.target == HOST else []
    if missing:
        key = f"{meta['what']}/{meta['how']}"
        _say_once(f"entry {key} needs instructions that this CPU lacks ({', '.join(missing[:5])}); not loaded")
        return None
    return len(needed)


@functools.cache
def _say_once(text: str) -> None:
    _say(text)


def _say(text: str) -> None:
    print(f"jitblas: {text}", file=sys.stderr)
