"""JITBLAS_MODE and machines without a compiler: load only loads, off leaves nothing behind, errors say what to do."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

WATCHED = """
import sys
started = []
STARTS = ("subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.exec", "os.system", "pty.spawn")
def watch(event, arguments):
    if event in STARTS:
        started.append(event)
    elif event == "open" and "locks" in str(arguments[0]):
        started.append(arguments[0])
sys.addaudithook(watch)
"""
UNWATCHED = "\nprint(started, sorted(set(sys.modules) & {'subprocess', 'diskcache', 'filelock'}))\n"

FAILING = """
import jitblas, numpy
try:
    jitblas.axpy_ex(1.0, numpy.ones(3, "f4"), numpy.ones(3, "f4"))
except jitblas.Error as error:
    print(type(error).__name__, getattr(error, "key", ""))
    print(error)
"""


@pytest.fixture
def trap(tmp_path: Path) -> Path:
    """A folder of compilers that leave a file behind when they are started."""
    folder = tmp_path / "trap"
    folder.mkdir()
    for name in ("g++", "gcc", "clang++", "c++", "cc", "zig", "ccache", "as", "ld", "lscpu", "uname"):
        program = folder / name
        program.write_text(f"#!/bin/sh\necho started >{folder}/sprung\nexit 1\n")
        program.chmod(0o755)
    return folder


def entries(folder: Path) -> dict[str, Path]:
    """meta.json of each entry by the first word of its title."""
    return {json.loads(meta.read_text())["title"].split()[0]: meta for meta in folder.rglob("meta.json")}


def listing(folder: Path) -> list[tuple[str, int, int]]:
    return sorted((str(p), p.stat().st_size, p.stat().st_mtime_ns) for p in folder.rglob("*") if p.is_file())


# ---- load -----------------------------------------------------------------------------------------------------------


def test_load_with_a_full_store_starts_no_process_and_takes_no_lock(
    python: Any, compute: str, full_store: Path, trap: Path
) -> None:
    code = WATCHED + compute + UNWATCHED
    answer = python(code, JITBLAS_MODE="load", JITBLAS_CACHE_DIR=full_store, PATH=trap, JITBLAS_CXX=None)
    assert answer.stdout == "right\n[] []\n"
    assert answer.stderr == ""
    assert not (trap / "sprung").exists()


def test_a_full_store_starts_no_process_in_normal_mode_either(python: Any, compute: str, full_store: Path) -> None:
    answer = python(WATCHED + compute + UNWATCHED, JITBLAS_CACHE_DIR=full_store)
    assert (answer.stdout, answer.stderr) == ("right\n[] []\n", "")


def test_load_with_an_empty_store_says_which_kernel_and_how_to_get_it(python: Any, tmp_path: Path, trap: Path) -> None:
    answer = python(FAILING, JITBLAS_MODE="load", JITBLAS_CACHE_DIR=tmp_path / "empty", PATH=trap)
    first, second = answer.stdout.splitlines()
    kind, key = first.split()
    assert kind == "MissingKernelError" and len(key) == 64
    assert key in second and "JITBLAS_MODE=on" in second and "jitblas prewarm axpy_ex:n=1 --target host" in second
    assert not (trap / "sprung").exists()


def test_a_missing_kernel_names_the_problem_to_call(python: Any, full_store: Path) -> None:
    answer = python(FAILING.replace('"f4"', '"f2"'), JITBLAS_MODE="load", JITBLAS_CACHE_DIR=full_store)
    assert answer.stdout.endswith("this makes it: jitblas prewarm axpy_ex:n=3,dtype=fp16 --target host\n")


def test_load_uses_read_only_tiers(python: Any, compute: str, full_store: Path, tmp_path: Path, trap: Path) -> None:
    settings = {"JITBLAS_CACHE_DIR": tmp_path / "empty", "JITBLAS_CACHE_PATH": f"/nowhere:{full_store}", "PATH": trap}
    before = listing(full_store)
    answer = python(compute, JITBLAS_MODE="load", **settings)
    assert (answer.stdout, answer.stderr) == ("right\n", "")
    assert listing(full_store) == before


AS_NOBODY = """
import os, sys
import jitblas.blas.axpy_ex, jitblas.aclblas, jitblas.jit.artifacts, jitblas.runtime.host, numpy, tempfile
LATE = "hashlib importlib.metadata json subprocess shutil platform encodings.idna ml_dtypes"
for name in LATE.split():
    __import__(name)
os.setgroups([])
os.setresgid(65534, 65534, 65534)
os.setresuid(65534, 65534, 65534)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming somebody else takes root")
def test_load_accepts_a_store_that_root_owns_and_nobody_else_writes(
    python: Any, compute: str, full_store: Path, trap: Path
) -> None:
    for folder in (*full_store.parents, full_store):
        if folder.stat().st_mode & 0o001 == 0:
            folder.chmod(folder.stat().st_mode | 0o055)
    for path in full_store.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    before = listing(full_store)
    answer = python(AS_NOBODY + compute, JITBLAS_MODE="load", JITBLAS_CACHE_DIR=full_store, PATH=trap, check=False)
    assert (answer.stdout, answer.stderr) == ("right\n", "")
    assert listing(full_store) == before


def test_an_entry_for_instructions_this_cpu_lacks_is_not_loaded_and_said_so(python: Any, full_store: Path) -> None:
    path = entries(full_store)["axpy_ex"]
    meta = json.loads(path.read_text())
    meta["cpu"] += ["avx4096"]
    path.write_text(json.dumps(meta))
    answer = python(FAILING, JITBLAS_MODE="load", JITBLAS_CACHE_DIR=full_store)
    assert answer.stdout.startswith("MissingKernelError")
    assert "avx4096" in answer.stderr and len(answer.stderr.splitlines()) == 1


def test_load_prefers_the_best_instruction_set_and_ignores_extra_flags(
    python: Any, compute: str, full_store: Path
) -> None:
    chosen = "\nprint(jitblas.jit.kernels.load(jitblas.specialize('axpy_ex:n=1000')).key)\n"
    best = python(compute + chosen, JITBLAS_CACHE_DIR=full_store).stdout
    for settings in ({"JITBLAS_MARCH": "x86-64"}, {"JITBLAS_EXTRA_FLAGS": "-O3"}):
        other = python(compute + chosen, JITBLAS_CACHE_DIR=full_store, check=False, **settings)
        if other.returncode != 0:
            pytest.skip("this compiler has no such instruction set")
        assert other.stdout != best
    answer = python(compute + chosen, JITBLAS_MODE="load", JITBLAS_CACHE_DIR=full_store, JITBLAS_CXX="/nowhere")
    assert answer.stdout == best


def test_a_damaged_entry_is_no_entry_in_load_mode(python: Any, full_store: Path) -> None:
    path = entries(full_store)["axpy_ex"].parent / "kernel.so"
    path.write_bytes(path.read_bytes()[:-10])
    answer = python(FAILING, JITBLAS_MODE="load", JITBLAS_CACHE_DIR=full_store)
    assert answer.stdout.startswith("MissingKernelError")
    assert "kernel.so" in answer.stderr and len(answer.stderr.splitlines()) == 1


# ---- no compiler ----------------------------------------------------------------------------------------------------

WITHOUT_ZIG = "import sys; sys.modules['ziglang'] = None\n"


def test_without_a_compiler_what_is_in_the_store_still_runs(
    python: Any, compute: str, full_store: Path, trap: Path
) -> None:
    settings = {"JITBLAS_CACHE_DIR": full_store, "JITBLAS_CXX": None, "CXX": None}
    answer = python(WITHOUT_ZIG + compute, PATH="/nowhere", **settings)
    assert (answer.stdout, answer.stderr) == ("right\n", "")
    assert python(WITHOUT_ZIG + compute, PATH=trap, **settings).stdout == "right\n"


def test_without_a_compiler_an_empty_store_says_what_was_tried(python: Any, tmp_path: Path, trap: Path) -> None:
    settings = {"JITBLAS_CACHE_DIR": tmp_path / "store", "JITBLAS_CXX": None, "CXX": None}
    answer = python(WITHOUT_ZIG + FAILING, PATH="/nowhere", **settings)
    assert answer.stdout.startswith("CompilerNotFound")
    assert "gnu: not found" in answer.stdout and "apt install g++" in answer.stdout
    answer = python(WITHOUT_ZIG + FAILING, PATH=trap, **settings)
    assert f"{trap}/clang++" in answer.stdout


def test_a_named_compiler_is_the_only_one_tried(python: Any, tmp_path: Path, trap: Path) -> None:
    answer = python(FAILING, JITBLAS_CACHE_DIR=tmp_path / "s", JITBLAS_CXX=trap / "clang++")
    assert answer.stdout.startswith("CompilerNotFound") and str(trap / "clang++") in answer.stdout
    answer = python(FAILING, JITBLAS_CACHE_DIR=tmp_path / "s", JITBLAS_CXX="/no/such/compiler")
    assert answer.stdout.startswith("CompilerNotFound") and "zig" not in answer.stdout


# ---- off ------------------------------------------------------------------------------------------------------------


def test_off_neither_reads_nor_writes_the_store_and_leaves_nothing(
    python: Any, compute: str, full_store: Path, tmp_path: Path, compiler: Any
) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    before = listing(full_store)
    settings = {"JITBLAS_MODE": "off", "TMPDIR": temporary, "JITBLAS_CACHE_PATH": full_store, **compiler.setting}
    answer = python(compute, JITBLAS_CACHE_DIR=full_store, **settings)
    assert (answer.stdout, answer.stderr) == ("right\n", "")
    assert len(compiler.compiled) == 2
    assert listing(full_store) == before
    assert python(compute, JITBLAS_CACHE_DIR=tmp_path / "never", **settings).stdout == "right\n"
    assert not (tmp_path / "never").exists()
    assert list(temporary.iterdir()) == []


# ---- settings -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "accepted"),
    [
        ("JITBLAS_MODE", "maybe", "on, load, off"),
        ("JITBLAS_TARGET", "gpu", "ascend950pr, host"),
        ("JITBLAS_TWIN", "slow", "fast"),
        ("JITBLAS_THREADS", "0", "1 to 4096"),
        ("JITBLAS_THREADS", "many", "1 to 4096"),
        ("JITBLAS_LOCK_TIMEOUT", "-1", "0 or more"),
        ("JITBLAS_LOCK_TIMEOUT", "soon", "0 or more"),
    ],
)
def test_a_setting_that_is_not_accepted_is_one_clear_error(
    python: Any, tmp_path: Path, name: str, value: str, accepted: str
) -> None:
    answer = python(FAILING, JITBLAS_CACHE_DIR=tmp_path, **{name: value})
    assert answer.stdout.startswith("Error")
    assert f"{name}={value}" in answer.stdout and accepted in answer.stdout
