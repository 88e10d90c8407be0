"""Libraries of the host that are no kernels: one C++ file each, compiled and kept as kernels are."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jitblas import config

if TYPE_CHECKING:
    from jitblas.jit.artifacts import Recipe

RUNTIME, CUBE, LAUNCHER = "the host runtime", "the host cube", "the launcher"

_SOURCES = {
    RUNTIME: ("twin/runtime/runtime.cpp", "twin/detail"),  # the one artifact with threads in it
    CUBE: ("twin/cube/cube.cpp", "twin/detail"),  # the micro-kernels of matrix products
    LAUNCHER: ("launcher/launcher.cpp",),  # the compiled way into plans
}
"""Title -> the source, and folders that it includes files of besides its own."""

NAMES = tuple(_SOURCES)


def recipe_of(name: str) -> Recipe:
    """How one of :data:`NAMES` is made."""
    from jitblas.jit import artifacts

    source, *others = (os.path.join(config.kernels_folder(), *path.split("/")) for path in _SOURCES[name])
    return artifacts.library_recipe(name, source, (os.path.dirname(source), *others))
