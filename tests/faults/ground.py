"""Processes to kill, file systems to spoil and kernels that compile in no time, for tests of what goes wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import environment

AT_ONCE = "from jitblas.jit import direct; direct.SETTLED = -10.0\n"
"""Code before a call: what was found is remembered even if its files were made a moment ago, so that the next process
tries the direct way first. It falls back to the long way, so both are tested."""

LIBRARIES = """
import os, pathlib, sys
from jitblas.jit import kernels
from jitblas.jit.artifacts import library_recipe
SOURCE = '''
#define EXPORT extern "C" __attribute__((visibility("default")))
EXPORT const char* jitblas_key() { return JITBLAS_KEY; }
EXPORT int number() { return %d; }
'''
def write_library(number):
    folder = pathlib.Path(sys.argv[1]) / str(number)
    folder.mkdir(parents=True)
    (folder / "small.cpp").write_text(SOURCE % number)
def small_recipe(number):
    folder = os.path.join(sys.argv[1], str(number))
    return library_recipe(f"library {number}", os.path.join(folder, "small.cpp"), (folder,))
def number_of(number):
    return kernels.load_library(f"library {number}", lambda: small_recipe(number))[0].number()
"""
"""Libraries of three lines, each with a key of its own; the first argument is the folder of their sources."""


def start(code: str, *arguments: str | Path, quiet: bool = False, **settings: Any) -> subprocess.Popen[str]:
    """A new Python with pipes to read, or (quiet) without, so that nobody waits for its forks to close them."""
    pipe = subprocess.DEVNULL if quiet else subprocess.PIPE
    words = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(words, env=environment(**settings), stdout=pipe, stderr=pipe, text=True)


def wait_for(path: Path, seconds: float = 30) -> None:
    """Until a file is there and has something in it."""
    end = time.monotonic() + seconds
    while not path.exists() or not path.read_text():
        assert time.monotonic() < end, f"{path} never came"
        time.sleep(0.02)


def entries(cache: Path) -> dict[str, Path]:
    """Folder of each entry by its title."""
    metas = cache.glob("v1/??/*/*/meta.json")
    return {json.loads(meta.read_text())["title"]: meta.parent for meta in metas}


def entry_of(cache: Path, title: str = "axpy_ex") -> Path:
    """The folder of the first entry whose title begins so."""
    return next(folder for name, folder in sorted(entries(cache).items()) if name.startswith(title))


def debris(cache: Path) -> list[str]:
    """Private folders that compiles left in a store."""
    return [path.name for path in cache.glob("v1/build-*")]


@contextmanager
def mounted(place: Path, options: str, source: str | Path = "tmpfs") -> Iterator[Path]:
    """A tmpfs, or (`source` is a folder, `options` begin with "bind") that folder, mounted for a while."""
    place.mkdir(exist_ok=True)
    words = ["mount", "-o", options, str(source), str(place)]
    if source == "tmpfs":
        words[1:1] = ["-t", "tmpfs"]
    try:
        done = subprocess.run(words, capture_output=True, text=True)
    except OSError as error:
        pytest.skip(f"nothing can be mounted: {error}")
    if done.returncode != 0:
        pytest.skip(f"nothing can be mounted: {done.stderr.strip()}")
    try:
        if "bind" in options and "ro" in options.split(","):  # the first mount of a bind ignores the other options
            subprocess.run(["mount", "-o", f"remount,{options}", str(place)], check=True, capture_output=True)
        yield place
    finally:
        if os.system(f"umount '{place}' 2>/dev/null") != 0:
            os.system(f"umount -l '{place}'")


def check_one_line_at_most(answer: subprocess.CompletedProcess[str]) -> list[str]:
    """The lines on stderr of a process that is right."""
    assert answer.stdout == "right\n"
    lines = answer.stderr.splitlines()
    assert len(lines) <= 1, answer.stderr
    return lines
