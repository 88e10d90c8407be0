"""Loaded kernels and running runtimes of this process."""

from __future__ import annotations

import atexit
import ctypes
import functools
import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from jitblas import config
from jitblas.errors import CacheError, CompileError
from jitblas.hardware import ASCEND950PR, HOST, TARGETS
from jitblas.jit import direct, libraries
from jitblas.jit.specialization import Specialization
from jitblas.operators.base import tiling_struct

if TYPE_CHECKING:
    from jitblas.jit.artifacts import Recipe
    from jitblas.runtime.protocol import Runtime
    from jitblas.store.entry import Entry


class Kernel(NamedTuple):
    """A loaded kernel.

    `launch(blocks, stream, *addresses, numbers)` returns a status; `numbers` is an instance of `tiling`, the structure
    of the specialisation's run-time numbers.
    """

    specialization: Specialization
    key: str
    launch: Callable[..., int]
    tiling: type[ctypes.Structure]
    launch_packed: int
    """Address of the same launch with operands in an array and the tiling by address (kernels_src/launcher)."""


class _Pending:
    """A kernel that one thread loads and others wait for (concurrent.futures would cost 5 ms of imports).

    Done with neither kernel nor error: the loading thread failed for a reason of its own.
    """

    def __init__(self) -> None:
        self.done = threading.Event()
        self.kernel: Kernel | None = None
        self.error: CompileError | None = None


_kernels: dict[Specialization, _Pending] = {}
_lock = threading.Lock()


def load(specialization: Specialization) -> Kernel:
    """The loaded kernel of a specialisation, compiled if need be. A hit in memory takes no lock and asks no file.

    Threads that ask for one kernel share one compile; a compile error is remembered until :func:`reload`.
    """
    while True:
        pending = _kernels.get(specialization)
        if pending is None:
            with _lock:
                mine = specialization not in _kernels
                pending = _kernels.setdefault(specialization, _Pending())
            if mine:
                return _fill(pending, specialization)
        pending.done.wait()
        if pending.kernel is not None:
            return pending.kernel
        if pending.error is not None:
            raise pending.error.again() from None


def _fill(pending: _Pending, specialization: Specialization) -> Kernel:
    if config.record():
        from jitblas.jit import record

        record.add(config.record(), specialization)
    try:
        pending.kernel = _load(specialization)
        return pending.kernel
    except BaseException as error:
        if isinstance(error, CompileError) and not error.may_pass:
            pending.error = error.again()  # a copy, whose traceback does not keep the caller's arrays alive
        else:
            _kernels.pop(specialization, None)
        raise
    finally:
        pending.done.set()


def _load(specialization: Specialization) -> Kernel:
    runtime = runtime_for(specialization.target)  # first: a device kernel needs the libraries that it brings
    library, key = load_library(repr(specialization[:-1]), lambda: specialization.recipe)
    runtime.bind(library)
    if specialization.target == HOST and specialization.path.kind != "vector":
        bind_cube(library)
    baked = frozenset(name for name, _ in specialization.baked)
    struct = tiling_struct(specialization.path.fields, baked)
    launch = library.launch
    launch.argtypes = [ctypes.c_uint32, ctypes.c_void_p, *[ctypes.c_void_p] * specialization.path.pointers, struct]
    launch.restype = ctypes.c_int
    packed = ctypes.cast(library.launch_packed, ctypes.c_void_p).value or 0
    return Kernel(specialization, key, launch, struct, packed)


def load_library(
    request: str, make_recipe: Callable[[], Recipe], kind: type[ctypes.CDLL] = ctypes.CDLL
) -> tuple[ctypes.CDLL, str]:
    """A loaded library and its key, from the store or a compiler.

    `request` names what the recipe is made for; the recipe itself is made if nobody knows where that led last time.
    """
    known = direct.find(request)
    if known is not None:
        try:
            return open_library(*known, kind), known[1]
        except CacheError:
            pass  # the long way says what is wrong
    recipe = make_recipe()
    library, entry = _load_recipe(recipe, kind)
    direct.remember(request, recipe, entry)
    return library, str(entry.key)


def load_named(name: str, kind: type[ctypes.CDLL] = ctypes.CDLL) -> ctypes.CDLL:
    """One of the libraries that are no kernels (:mod:`jitblas.jit.libraries`)."""
    return load_library(name, lambda: libraries.recipe_of(name), kind)[0]


def _load_recipe(recipe: Recipe, kind: type[ctypes.CDLL]) -> tuple[ctypes.CDLL, Entry]:
    """Compiled if need be, anew if it is deleted before it is open, at last where nobody deletes it."""
    from jitblas.jit import artifacts

    for left in (3, 2, 1, 0):
        entry = artifacts.obtain(recipe)
        path, key = entry.shared_object, str(entry.key)
        try:
            if recipe.device_kind is not None:
                from jitblas.runtime.device_object import check_device_object

                check_device_object(path, recipe.device_kind)
            return open_library(path, key, kind), entry
        except (CacheError, FileNotFoundError):
            if left == 0 or os.path.exists(path):
                raise
            if left == 1:
                artifacts.store().retreat("its entries are deleted while they are loaded")
    raise AssertionError("unreachable")


def open_library(path: str, key: str, kind: type[ctypes.CDLL] = ctypes.CDLL) -> ctypes.CDLL:
    """dlopen a verified file; it must export the key that was asked for."""
    try:
        library = _dlopen(path, kind)
        library.jitblas_key.restype = ctypes.c_char_p
        exported = library.jitblas_key()
    except (OSError, AttributeError) as error:
        raise CacheError(f"{path} cannot be loaded: {error}") from None
    if exported is None or exported.decode(errors="replace") != key:
        raise CacheError(f"{path} exports the key {exported!r} instead of {key}; delete its folder")
    return library


_opened: dict[str, tuple[int, int, int]] = {}
"""Path -> (device, inode, time) of the files that this process has loaded."""


def _dlopen(path: str, kind: type[ctypes.CDLL]) -> ctypes.CDLL:
    mode = os.RTLD_NOW | os.RTLD_LOCAL
    found = os.stat(path)
    identity = (found.st_dev, found.st_ino, found.st_mtime_ns)
    if _opened.setdefault(path, identity) == identity:
        try:
            return kind(path, mode=mode)
        except OSError:
            if not os.statvfs(path).f_flag & os.ST_NOEXEC:
                raise
    # dlopen would hand out the library that it loaded from this path before, or nothing may be run from this file
    # system: from memory, then. The descriptor stays open, so that no other library gets the same path.
    descriptor = os.memfd_create(os.path.basename(path))
    with open(path, "rb") as file, open(descriptor, "wb", closefd=False) as copy:
        copy.write(file.read())
    return kind(f"/proc/self/fd/{descriptor}", mode=mode)


@functools.cache
def _runtime(target: str) -> Runtime:
    runtime: Runtime
    if target == ASCEND950PR:
        from jitblas.runtime.acl import AclRuntime

        runtime = AclRuntime()
    else:
        from jitblas.runtime.host import HostRuntime

        runtime = HostRuntime(load_named(libraries.RUNTIME), config.threads())
    atexit.register(runtime.shutdown)
    return runtime


def bind_cube(library: Any) -> None:
    """Introduce a freshly loaded cube or mixed kernel to the cube's micro-kernels."""
    library.jitblas_bind_cube.argtypes, library.jitblas_bind_cube.restype = [ctypes.c_void_p], None
    library.jitblas_bind_cube(_cube_table())


@functools.cache
def _cube_table() -> int:
    """Address of the cube's functions; the library stays loaded for as long as the process."""
    library: Any = load_named(libraries.CUBE)
    library.jitblas_cube_table.restype = ctypes.c_void_p
    table: int = library.jitblas_cube_table()
    return table


_runtime_lock = threading.Lock()


def _after_fork_in_child() -> None:
    """Locks that other threads of the parent hold, and kernels that they were loading, are nobody's here."""
    global _lock, _runtime_lock
    _lock, _runtime_lock = threading.Lock(), threading.Lock()
    for specialization in [key for key, pending in _kernels.items() if not pending.done.is_set()]:
        del _kernels[specialization]


os.register_at_fork(after_in_child=_after_fork_in_child)


def runtime_for(target: str) -> Runtime:
    """The process's runtime of a target, started at the first question."""
    with _runtime_lock:
        return _runtime(target)


def targets() -> dict[str, str]:
    """Targets that can run here: name -> what was found."""
    from jitblas.runtime import acl

    usable, found = acl.availability()
    return ({ASCEND950PR: found} if usable else {}) | {HOST: f"this CPU, {config.threads()} threads"}


def default_target() -> str:
    """JITBLAS_TARGET, else ascend950pr where a CANN toolkit and a 950 answer, else host."""
    return config.forced_target() or _found_target()


@functools.cache
def _found_target() -> str:
    if not os.environ.get("ASCEND_HOME_PATH"):
        return HOST
    from jitblas.runtime import acl, acl_library

    acl_library.refuse_fork()  # a child whose parent used the chip must not go on with another target in silence
    return ASCEND950PR if acl.availability()[0] else HOST


def resolve_target(target: str) -> str:
    if target not in TARGETS:
        raise ValueError(f"target={target!r}: accepted are {', '.join(TARGETS)}")
    return target


def reload() -> None:
    """Forget loaded kernels and what was read from files, so that edited sources take effect in this process.

    Running launches, streams and plans keep the kernels they have.
    """
    with _lock:
        _kernels.clear()
    from jitblas.jit import artifacts, keys

    direct.forget()
    keys.forget_sources()
    artifacts.find_toolchain.cache_clear()
    for forget in _on_reload:
        forget()


_on_reload: list[Callable[[], Any]] = []
"""Caches of the layers above that hold kernels."""


def on_reload(forget: Callable[[], Any]) -> None:
    _on_reload.append(forget)
