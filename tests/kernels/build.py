"""Test kernels: the Ascend C files in sources/, compiled for the host and launched like any other kernel."""

from __future__ import annotations

import ctypes
import functools
import os
from pathlib import Path
from typing import Any

import numpy as np

import jitblas
from jitblas import config
from jitblas.hardware import ASCEND950PR, CUBE_BUFFERS, HOST, PROFILES
from jitblas.jit import artifacts, keys
from jitblas.jit.artifacts import Recipe
from jitblas.jit.kernels import bind_cube, open_library, runtime_for
from jitblas.jit.launch_syntax import rewrite_launches
from jitblas.runtime.host import WAIT

SOURCES = Path(__file__).resolve().parent / "sources"
UB_BYTES = PROFILES[HOST].ub_bytes
GROUPS = ("groups", "two_kinds")
"""Sources whose kernels run on a cube core and its vector cores."""
MIXED = (
    ("JITBLAS_CORES", "JITBLAS_MIXED"),
    *((f"JITBLAS_{name.upper()}", str(getattr(PROFILES[ASCEND950PR], name))) for name in CUBE_BUFFERS),
)


@functools.cache
def library(name: str) -> ctypes.CDLL:
    """sources/<name>.asc, compiled once per store, loaded once per process."""
    entry = artifacts.obtain(recipe(name))
    loaded = open_library(entry.shared_object, str(entry.key))
    runtime_for(HOST).bind(loaded)
    if name in GROUPS:
        bind_cube(loaded)
    return loaded


def recipe(name: str, more: str = "") -> Recipe:
    """sources/<name>.asc, with more of the kind behind it."""
    text = (SOURCES / f"{name}.asc").read_text(encoding="utf-8") + more
    kernels = config.kernels_folder()
    what = keys.digest(
        [
            ("test kernel", name),
            ("source", text),
            ("sources", keys.tree_digest((os.path.join(kernels, "common"), os.path.join(kernels, "twin")))),
        ]
    )
    return Recipe(
        title=f"test kernel {name}",
        what=what,
        target=HOST,
        source=lambda: rewrite_launches(f'#line 1 "{name}.asc"\n{text}'),
        include=(os.path.join(kernels, "twin"), kernels),
        defines=(("JITBLAS_TWIN", "1"), ("JITBLAS_UB_BYTES", str(UB_BYTES)), *(MIXED if name in GROUPS else ())),
        facts={"operator": "test kernel"},
    )


@functools.cache
def stream() -> jitblas.Stream:
    return jitblas.Stream(HOST)


def run(name: str, function: str, *arguments: Any, blocks: int = 1) -> None:
    """Launch and wait; StatusError with the kernel's own message if it failed.

    Arrays are handed over as addresses, whole numbers as int64_t, others as float.
    """
    launch(name, function, *arguments, blocks=blocks, address=stream().address | WAIT)
    stream().synchronize()


def launch(name: str, function: str, *arguments: Any, address: int, blocks: int = 1) -> int:
    """Launch on a stream's address; the status of the launch."""
    entry = getattr(library(name), function)
    entry.restype = ctypes.c_int
    status: int = entry(ctypes.c_uint32(blocks), ctypes.c_void_p(address), *map(_argument, arguments))
    return status


def _argument(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return ctypes.c_void_p(value.__array_interface__["data"][0])
    return ctypes.c_int64(value) if isinstance(value, int) else ctypes.c_float(value)


class Gate:
    """Holds a stream up until it is opened (or ten seconds have passed, so that no test hangs)."""

    _flags: list[np.ndarray[Any, Any]] = []
    """Of all gates ever: a kernel may look at its flag after the gate is gone."""

    def __init__(self, held: jitblas.Stream) -> None:
        self._flag = np.zeros(1, np.int32)
        self._flags.append(self._flag)
        status = launch("gate", "gate", self._flag, address=held.address)
        assert status == 0

    def open(self) -> None:
        self._flag[0] = 1

    def __enter__(self) -> Gate:
        return self

    def __exit__(self, *_: object) -> None:
        self.open()
