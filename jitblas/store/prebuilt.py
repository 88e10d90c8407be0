"""Kernels that came as a wheel: a package whose folder is a read-only store, found by the entry-point group.

[project.entry-points."jitblas.prebuilt"]
my-kernels = "my_kernels"          the package's name; it is looked for, never imported
"""

from __future__ import annotations

import json
import keyword
import os
import re
import shutil
import sys
from collections.abc import Iterable
from importlib import metadata, util
from typing import NamedTuple

from jitblas import __version__
from jitblas.errors import CacheError
from jitblas.store.entry import Entry, folder_of
from jitblas.store.folders import root_of

GROUP = "jitblas.prebuilt"
FACTS = "prebuilt.json"
"""Says what the kernels were built with: {"jitblas": version}."""


class Prebuilt(NamedTuple):
    """An installed package of kernels. `problem`: why it is not used, or None."""

    name: str
    folder: str
    problem: str | None

    @property
    def verdict(self) -> str:
        """For people."""
        return f"{self.name!r} in {self.folder or '?'}" + (f", not used: it {self.problem}" if self.problem else "")

    def facts(self) -> dict[str, str | None]:
        """For JSON and reports."""
        return {**self._asdict(), "verdict": self.verdict}


def installed() -> list[Prebuilt]:
    """Every package of kernels that is installed."""
    found = []
    for point in metadata.entry_points(group=GROUP):
        folder, problem = "", None
        try:
            if "." in point.value:  # looking for it would import what is before the dot
                raise ValueError(f"{point.value!r} is no name of a package")
            spec = util.find_spec(point.value)
            if spec is None or not spec.submodule_search_locations:
                raise ImportError(f"there is no package {point.value!r}")
            folder = os.path.abspath(next(iter(spec.submodule_search_locations)))
            with open(os.path.join(folder, FACTS), encoding="utf-8") as file:
                version = json.load(file)["jitblas"]
            if version != __version__:
                problem = f"was built with jitblas {version}, this is {__version__}: install the one for this version"
        except (ImportError, OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            problem = f"is broken ({type(error).__name__}: {error}): install it anew"
        found.append(Prebuilt(point.name, folder, problem))
    return found


def usable() -> list[str]:
    """Folders of the packages that count; others are told on stderr."""
    packages = installed()
    for package in packages:
        if package.problem is not None:
            print(f"jitblas: prebuilt kernels {package.verdict}", file=sys.stderr)
    return [package.folder for package in packages if package.problem is None]


def write_project(folder: str, name: str, version: str, entries: Iterable[Entry]) -> None:
    """Write the project that `pip wheel` makes a wheel of: a package of entries, and its entry point.

    Raises
    ------
    CacheError
        The name is none for a package.
    FileExistsError, OSError
        The folder is there already, or cannot be written.
    """
    if not re.fullmatch(r"[A-Za-z](?:[A-Za-z0-9._-]*[A-Za-z0-9])?", name):
        raise CacheError(f"{name!r} is no name for a package; accepted are letters, digits, '.', '-' and '_'")
    if not re.fullmatch(r"\d+(?:\.\d+)*(?:[A-Za-z0-9.+]*)", version):
        raise CacheError(f"{version!r} is no version of a package; accepted are such as 1 and 2.0.1")
    module = re.sub(r"[^A-Za-z0-9_]", "_", name)
    if keyword.iskeyword(module) or _is_taken(module):
        raise CacheError(f"{name!r} is the name of another package or a word of Python; choose another")
    os.mkdir(folder)
    try:
        _fill(folder, name, version, module, entries)
    except OSError:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _is_taken(module: str) -> bool:
    """Whether a package of that name is installed that is none of kernels."""
    spec = util.find_spec(module)
    places = [] if spec is None else list(spec.submodule_search_locations or [])
    return spec is not None and not any(os.path.isfile(os.path.join(place, FACTS)) for place in places)


def _fill(folder: str, name: str, version: str, module: str, entries: Iterable[Entry]) -> None:
    package = os.path.join(folder, module)
    root = root_of(package)
    for entry in entries:
        shutil.copytree(entry.folder, folder_of(root, entry.key))
    _write(os.path.join(package, "__init__.py"), f'"""Kernels for jitblas {__version__}, compiled ahead of time."""\n')
    _write(os.path.join(package, FACTS), json.dumps({"jitblas": __version__}) + "\n")
    _write(
        os.path.join(folder, "pyproject.toml"), _PROJECT.format(name=name, version=version, module=module, group=GROUP)
    )


_PROJECT = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "{name}"
version = "{version}"
description = "Kernels for jitblas, compiled ahead of time"
requires-python = ">=3.10"

[project.entry-points."{group}"]
{module} = "{module}"

[tool.hatch.build.targets.wheel]
packages = ["{module}"]
"""


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
