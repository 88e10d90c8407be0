"""Damaged entries: never a signal, never a wrong result, one line and one rebuild each."""

from __future__ import annotations

import ctypes
import os
import random
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jitblas.store.entry import Key
from jitblas.store.store import Store
from tests.conftest import CountingCompiler
from tests.faults.ground import AT_ONCE, entries, entry_of

LENGTHS = (0, 300, 1000, 10000, -1)
"""To which a kernel.so is cut; -1: all but its last byte."""

BOTH = """
import numpy, jitblas
for dtype, alpha in (("f4", 2.0), ("f2", 3.0)):
    x, y = numpy.arange(100, dtype=dtype), numpy.ones(100, dtype)
    assert (jitblas.axpy_ex(alpha, x, y) == alpha * x + 1).all(), dtype
print("right")
"""
"""The host runtime and two kernels of one operator."""


@pytest.fixture(scope="module")
def _counted(python: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, CountingCompiler]:
    folder = tmp_path_factory.mktemp("counted")
    compiler = CountingCompiler(folder / "compiler")
    assert python(BOTH, JITBLAS_CACHE_DIR=folder / "store", **compiler.setting).stdout == "right\n"
    return folder / "store", compiler


@pytest.fixture
def counted(_counted: tuple[Path, CountingCompiler], tmp_path: Path) -> tuple[Path, CountingCompiler]:
    """A store of this test's own with all that BOTH needs, and the compiler that filled it."""
    store, compiler = _counted
    compiler.forget()
    return Path(shutil.copytree(store, tmp_path / "store")), compiler


def cut(path: Path, length: int) -> None:
    os.truncate(path, length if length >= 0 else path.stat().st_size + length)


def flip(path: Path, bit: int) -> None:
    data = bytearray(path.read_bytes())
    data[bit // 8] ^= 1 << bit % 8
    path.write_bytes(data)


def check_rebuilt(python: Any, counted: tuple[Path, CountingCompiler], spoil: Callable[[], Any], rebuilds: int) -> None:
    """Two processes after damage: the first tells and rebuilds that many entries, the second is a hit."""
    store, compiler = counted
    settings = {"JITBLAS_CACHE_DIR": store, **compiler.setting}
    assert python(AT_ONCE + BOTH, **settings).stdout == "right\n"
    assert compiler.compiled == []
    spoil()
    answer = python(AT_ONCE + BOTH, **settings)
    assert answer.stdout == "right\n"
    assert len(compiler.compiled) == len(set(compiler.compiled)) == rebuilds
    lines = answer.stderr.splitlines()
    assert len(lines) == rebuilds and all("moved aside" in line for line in lines), answer.stderr
    again = python(BOTH, **settings)
    assert (again.stdout, again.stderr, len(compiler.compiled)) == ("right\n", "", rebuilds)


def test_every_truncation_and_every_flipped_bit_is_found_before_anything_is_loaded(
    full_store: Path, capfd: Any
) -> None:
    """In this process, in every object of the store: the five lengths and 64 random bits."""
    bits = random.Random(950)
    for title, folder in entries(full_store).items():
        key = Key(folder.parent.name, folder.name)
        good = (folder / "kernel.so").read_bytes()
        damages = [("cut", length) for length in LENGTHS]
        damages += [("flip", bits.randrange(len(good) * 8)) for _ in range(64)]
        for damage, number in damages:
            store = Store(str(full_store), [])
            assert store.find(key) is not None
            {"cut": cut, "flip": flip}[damage](folder / "kernel.so", number)
            assert store.find(key) is None, (title, damage, number)
            lines = capfd.readouterr().err.splitlines()
            assert len(lines) == 1 and "kernel.so is not the file that was published" in lines[0]
            aside = next((full_store / "v1" / "quarantine").glob("*/entry"))
            (aside / "kernel.so").write_bytes(good)
            aside.rename(folder)
            shutil.rmtree(aside.parent)


@pytest.mark.parametrize("length", [pytest.param(n, marks=() if n == 300 else pytest.mark.slow) for n in LENGTHS])
def test_a_truncated_object_is_rebuilt_once(python: Any, counted: tuple[Path, CountingCompiler], length: int) -> None:
    check_rebuilt(python, counted, lambda: cut(entry_of(counted[0]) / "kernel.so", length), 1)


@pytest.mark.slow
def test_a_truncated_runtime_is_rebuilt_once(python: Any, counted: tuple[Path, CountingCompiler]) -> None:
    check_rebuilt(python, counted, lambda: cut(entry_of(counted[0], "the host runtime") / "kernel.so", 300), 1)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 10))])
def test_a_flipped_bit_is_rebuilt_once(python: Any, counted: tuple[Path, CountingCompiler], seed: int) -> None:
    path = entry_of(counted[0]) / "kernel.so"
    check_rebuilt(python, counted, lambda: flip(path, random.Random(seed).randrange(path.stat().st_size * 8)), 1)


@pytest.mark.parametrize("length", [0, 300, -1])
def test_where_nothing_may_be_compiled_a_truncated_object_is_one_clear_error(
    python: Any, compute: str, full_store: Path, length: int
) -> None:
    cut(entry_of(full_store) / "kernel.so", length)
    answer = python(compute, JITBLAS_CACHE_DIR=full_store, JITBLAS_MODE="load", check=False)
    assert (answer.returncode, answer.stdout) == (1, "")
    assert "MissingKernelError" in answer.stderr.splitlines()[-1]


def swap(one: Path, other: Path) -> None:
    aside = one.parent / "aside"
    one.rename(aside)
    other.rename(one)
    aside.rename(other)


@pytest.mark.parametrize(
    ("what", "other"),
    [
        ("folders", "axpy_ex"),
        pytest.param("objects", "the host runtime", marks=pytest.mark.slow),
        pytest.param("folders", "the host runtime", marks=pytest.mark.slow),
        pytest.param("objects", "axpy_ex", marks=pytest.mark.slow),
    ],
)
def test_two_entries_that_were_swapped_are_both_rebuilt(
    python: Any, counted: tuple[Path, CountingCompiler], what: str, other: str
) -> None:
    """Also those of two kernels of one operator, either of which would load and run in place of the other."""
    found = entries(counted[0])
    first, *more = [folder for title, folder in sorted(found.items()) if title.startswith("axpy_ex")]
    second = more[0] if other == "axpy_ex" else found[other]
    name = "." if what == "folders" else "kernel.so"
    check_rebuilt(python, counted, lambda: swap((first / name).resolve(), (second / name).resolve()), 2)


CONSTRUCTOR = """
#include <fcntl.h>
__attribute__((constructor)) static void Run() { open("%s", O_CREAT | O_WRONLY, 0600); }
extern "C" const char* jitblas_key() { return "%s"; }
"""


@pytest.mark.parametrize("mode", ["on", "load"])
def test_code_of_an_object_that_was_replaced_never_runs(
    python: Any, compute: str, full_store: Path, tmp_path: Path, mode: str
) -> None:
    """Not even its constructors, which run when it is opened; it would tell the right key."""
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no compiler for the object")
    entry, marker = entry_of(full_store), tmp_path / "ran"
    source, object_ = tmp_path / "constructor.cpp", tmp_path / "constructor.so"
    source.write_text(CONSTRUCTOR % (marker, f"{entry.parent.name}/{entry.name}"))
    subprocess.run([compiler, "-shared", "-fPIC", source, "-o", object_], check=True)
    assert python(AT_ONCE + compute, JITBLAS_CACHE_DIR=full_store).stdout == "right\n"
    shutil.copy(object_, entry / "kernel.so")
    answer = python(compute, JITBLAS_CACHE_DIR=full_store, JITBLAS_MODE=mode, check=False)
    assert not marker.exists()
    assert (answer.stdout == "right\n") == (mode == "on") and answer.stderr
    ctypes.CDLL(str(object_))
    assert marker.exists(), "the object of this test does nothing"


DELETED = """
import shutil
from jitblas.jit import direct
find, deleted = direct.find, []
def find_and_delete(request):
    known = find(request)
    if known is not None:
        deleted.append(known)
        shutil.rmtree(known[0].removesuffix("kernel.so"))
    return known
direct.find = find_and_delete
"""


def test_entries_deleted_between_check_and_load_are_rebuilt(
    python: Any, counted: tuple[Path, CountingCompiler]
) -> None:
    store, compiler = counted
    settings = {"JITBLAS_CACHE_DIR": store, **compiler.setting}
    python(AT_ONCE + BOTH, **settings)
    answer = python(DELETED + AT_ONCE + BOTH + "print(len(deleted))", **settings)
    assert (answer.stdout, answer.stderr, len(compiler.compiled)) == ("right\n3\n", "", 3)
