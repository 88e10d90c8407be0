"""A store that goes away or has no room: one line, and the right result from a temporary folder."""

from __future__ import annotations

import errno
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from jitblas.store import eviction
from jitblas.store.store import Store

TWO_KERNELS = """
import os, shutil, sys, numpy as np, jitblas
from jitblas import Status
def right(dtype):
    x, y = np.arange(9, dtype=dtype), np.ones(9, dtype)
    jitblas.axpy_ex(2.0, x, y)
    assert (y == 2 * x + 1).all()
right("float32")
{between}
right("float16")
assert jitblas.plan("axpy_ex:n=4")(1.0, np.ones(4, "f4"), np.ones(4, "f4"))[0] == 2
"""


def test_a_cache_folder_deleted_while_a_process_runs_is_made_again(python: Any, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    between = 'shutil.rmtree(os.environ["JITBLAS_CACHE_DIR"])'
    answer = python(TWO_KERNELS.format(between=between), JITBLAS_CACHE_DIR=cache)
    assert answer.stderr == ""
    assert list((cache / "v1").glob("??/*/*/kernel.so"))


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EROFS])
def test_without_room_kernels_go_to_a_temporary_folder(python: Any, tmp_path: Path, code: int) -> None:
    between = f"""
import tempfile
made = tempfile.mkdtemp
def mkdtemp(suffix=None, prefix=None, dir=None):
    if dir is not None and os.environ["JITBLAS_CACHE_DIR"] in str(dir):
        raise OSError({code}, os.strerror({code}))
    return made(suffix, prefix, dir)
tempfile.mkdtemp = mkdtemp
"""
    answer = python(TWO_KERNELS.format(between=between), JITBLAS_CACHE_DIR=tmp_path / "cache")
    assert len(answer.stderr.splitlines()) == 1
    assert os.strerror(code) in answer.stderr and "temporary folder" in answer.stderr


@pytest.mark.slow
@pytest.mark.parametrize("options", ["size=64k", "size=200k", "nr_inodes=12"])
def test_a_full_file_system_is_no_obstacle(python: Any, tmp_path: Path, options: str) -> None:
    place = tmp_path / "small"
    place.mkdir()
    if os.system(f"mount -t tmpfs -o {options} tmpfs {place} 2>/dev/null") != 0:
        pytest.skip("no right to mount")
    try:
        answer = python(TWO_KERNELS.format(between=""), JITBLAS_CACHE_DIR=place)
        assert len(answer.stderr.splitlines()) == 1 and "temporary folder" in answer.stderr
        assert not list(place.glob("v1/build-*"))
    finally:
        os.system(f"umount {place}")


def test_what_killed_compiles_left_is_swept_after_an_hour(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "cache"), [])
    old, young = Path(store.root, "build-1-old"), Path(store.root, "build-1-young")
    for folder in (old, young):
        folder.mkdir()
        (folder / "kernel.cpp").write_text("")
    hour_ago = time.time() - 3700
    os.utime(old, (hour_ago, hour_ago))
    with store.private_folder():
        assert not old.exists() and young.exists()
    shutil.rmtree(young)


def test_old_locks_memos_and_damaged_entries_do_not_pile_up(tmp_path: Path) -> None:
    root = Path(Store(str(tmp_path / "cache"), []).root)
    for folder, beginning, age in eviction.LEFTOVERS:
        (root / folder / f"{beginning}entry").mkdir(parents=True)
        for name, seconds in (("old", age + 100), ("young", age - 100)):
            path = root / folder / f"{beginning}{name}"
            path.write_text("")
            os.utime(path, (time.time() - seconds,) * 2)
        os.utime(root / folder / f"{beginning}entry", (0, 0))
    with Store(str(tmp_path / "cache"), []).private_folder():
        pass
    for folder, beginning, _ in eviction.LEFTOVERS:
        left = [name for name in os.listdir(root / folder) if name.startswith(beginning) and beginning + folder]
        assert left == [f"{beginning}young"]


def test_a_compiler_that_leaves_files_about_does_no_harm(python: Any, tmp_path: Path) -> None:
    settings = {"JITBLAS_CACHE_DIR": tmp_path / "cache", "JITBLAS_EXTRA_FLAGS": "-save-temps=obj"}
    assert python(TWO_KERNELS.format(between=""), **settings).stderr == ""
    for entry in (tmp_path / "cache" / "v1").glob("??/*/*"):
        assert len(list(entry.iterdir())) == 3
