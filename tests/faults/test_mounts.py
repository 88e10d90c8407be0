"""File systems that are read-only or noexec, and locks that cannot be made: one line at most, the right result."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from jitblas.store.folders import root_of
from tests.faults.ground import AT_ONCE, check_one_line_at_most, debris, entries, mounted, start

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="mounting takes root")


# ---- noexec ---------------------------------------------------------------------------------------------------------


def test_a_cache_that_nothing_may_be_run_from_is_no_obstacle(
    python: Any, compute: str, tmp_path: Path, temporary: Path, compiler: Any
) -> None:
    with mounted(tmp_path / "cache", "noexec,size=20m") as cache:
        settings = {"JITBLAS_CACHE_DIR": cache, "TMPDIR": temporary, **compiler.setting}
        check_one_line_at_most(python(AT_ONCE + compute, **settings))
        assert len(compiler.compiled) == 2
        for code in (AT_ONCE + compute, compute):
            check_one_line_at_most(python(code, **settings))
        assert len(compiler.compiled) == 2, "what is there was compiled again"
        answer = python(compute, **settings | {"JITBLAS_MODE": "load"})
        check_one_line_at_most(answer)
        assert len(entries(cache)) == 2 and debris(cache) == []


MANY = """
import numpy as np, jitblas
for dtype in ("f4", "f2"):
    for step in (1, 2):
        x, y = np.arange(100, dtype=dtype)[::step], np.ones(100, dtype)[::step]
        assert (jitblas.axpy_ex(3.0, x, y) == 3 * x + 1).all(), (dtype, step)
assert jitblas.cdotc(np.ones(9, "c8"), np.ones(9, "c8")) == 9
print("right")
"""


@pytest.mark.slow
def test_several_kernels_from_such_a_cache_are_not_taken_for_one_another(python: Any, tmp_path: Path) -> None:
    with mounted(tmp_path / "cache", "noexec,size=20m") as cache:
        for _ in range(2):
            check_one_line_at_most(python(MANY, JITBLAS_CACHE_DIR=cache))


@pytest.mark.slow
def test_where_not_even_temporary_files_may_be_run_the_result_is_right_or_one_clear_error(
    python: Any, compute: str, tmp_path: Path
) -> None:
    with mounted(tmp_path / "all", "noexec,size=20m") as place:
        (place / "tmp").mkdir()
        answer = python(compute, JITBLAS_CACHE_DIR=place / "cache", TMPDIR=place / "tmp", check=False)
        if answer.returncode == 0:
            check_one_line_at_most(answer)
        else:
            assert answer.stderr.splitlines()[-1].startswith("jitblas.errors.")
        assert list((place / "tmp").iterdir()) == []


# ---- read-only ------------------------------------------------------------------------------------------------------


def test_a_full_read_only_cache_is_used_as_it_is(
    python: Any, compute: str, full_store: Path, tmp_path: Path, temporary: Path
) -> None:
    with mounted(tmp_path / "cache", "bind,ro", full_store) as cache:
        settings = {"JITBLAS_CACHE_DIR": cache, "TMPDIR": temporary}
        answer = python(compute, JITBLAS_MODE="load", PATH="/nowhere", **settings)
        assert (answer.stdout, answer.stderr) == ("right\n", "")
        check_one_line_at_most(python(compute, **settings))
        as_tier = {"JITBLAS_CACHE_DIR": tmp_path / "own", "JITBLAS_CACHE_PATH": cache}
        answer = python(compute, **as_tier)
        assert (answer.stdout, answer.stderr, entries(tmp_path / "own")) == ("right\n", "", {})


def test_an_empty_read_only_cache_means_a_temporary_folder_and_one_line(
    python: Any, compute: str, tmp_path: Path, temporary: Path
) -> None:
    with mounted(tmp_path / "cache", "ro,size=1m") as cache:
        lines = check_one_line_at_most(python(compute, JITBLAS_CACHE_DIR=cache, TMPDIR=temporary))
        assert len(lines) == 1 and str(cache) in lines[0] and "JITBLAS_CACHE_DIR" in lines[0]


@pytest.mark.slow
def test_a_bad_entry_in_a_read_only_cache_is_a_miss(
    python: Any, compute: str, full_store: Path, tmp_path: Path, temporary: Path
) -> None:
    for folder in entries(full_store).values():
        os.truncate(folder / "kernel.so", 300)
    with mounted(tmp_path / "cache", "bind,ro", full_store) as cache:
        check_one_line_at_most(python(compute, JITBLAS_CACHE_DIR=cache, TMPDIR=temporary))
        as_tier = {"JITBLAS_CACHE_DIR": tmp_path / "own", "JITBLAS_CACHE_PATH": cache}
        assert python(compute, **as_tier).stdout == "right\n"


@pytest.mark.slow
def test_a_cache_that_becomes_read_only_while_a_process_runs_means_one_line(
    python: Any, compute: str, tmp_path: Path, temporary: Path
) -> None:
    with mounted(tmp_path / "cache", "size=20m") as cache:
        code = f"{compute}\nimport os; assert os.system('mount -o remount,ro {cache}') == 0\n"
        more = compute.replace('"f4"', '"f2"').replace("1000", "100")
        answer = python(code + more, JITBLAS_CACHE_DIR=cache, TMPDIR=temporary)
        os.system(f"mount -o remount,rw {cache}")
        assert answer.stdout == "right\nright\n"
        assert len(answer.stderr.splitlines()) == 1 and "Read-only file system" in answer.stderr


# ---- Locks ----------------------------------------------------------------------------------------------------------


def a_file(locks: Path) -> None:
    shutil.rmtree(locks, ignore_errors=True)
    locks.write_text("no folder")


def a_dangling_link(locks: Path) -> None:
    shutil.rmtree(locks, ignore_errors=True)
    locks.symlink_to("/nowhere/locks")


IN_THE_WAY = {"a file": a_file, "a dangling link": a_dangling_link}


@pytest.mark.parametrize("case", ["a file", pytest.param("a dangling link", marks=pytest.mark.slow)])
def test_something_in_the_place_of_the_locks_costs_compiles_at_most(
    compute: str, full_store: Path, compiler: Any, case: str
) -> None:
    IN_THE_WAY[case](full_store / "v1" / "locks")
    settings = {"JITBLAS_CACHE_DIR": full_store, **compiler.setting}
    processes = [start(compute, **settings) for _ in range(3)]
    assert [process.communicate(timeout=60) for process in processes] == [("right\n", "")] * 3
    assert len(set(compiler.compiled)) == 2 and len(compiler.compiled) <= 6
    assert len(entries(full_store)) >= 2 and debris(full_store) == []


@pytest.mark.slow
def test_a_folder_of_locks_that_cannot_be_written_costs_compiles_at_most(
    compute: str, full_store: Path, compiler: Any
) -> None:
    with mounted(full_store / "v1" / "locks", "ro,size=1m"):
        settings = {"JITBLAS_CACHE_DIR": full_store, **compiler.setting}
        processes = [start(compute, **settings) for _ in range(3)]
        assert [process.communicate(timeout=60) for process in processes] == [("right\n", "")] * 3
        assert len(set(compiler.compiled)) == 2


@pytest.mark.slow
def test_another_file_system_for_temporary_files_does_not_matter(python: Any, compute: str, tmp_path: Path) -> None:
    with mounted(tmp_path / "tmp", "size=20m") as temporary, mounted(tmp_path / "cache", "size=20m") as cache:
        answer = python(compute, JITBLAS_CACHE_DIR=cache, TMPDIR=temporary)
        assert (answer.stdout, answer.stderr) == ("right\n", "")
        assert len(entries(cache)) == 2 and os.listdir(temporary) == []
        assert Path(root_of(str(cache))).stat().st_mode & 0o777 == 0o700
