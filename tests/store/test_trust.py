"""Who may put code here, and what happens where no store can be: one warning, a private folder, the right result."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="giving files away takes root")


def listing(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def link(root: Path) -> None:
    root.rename(root.parent / "elsewhere")
    root.symlink_to("elsewhere")


DISTRUSTED: dict[str, tuple[Callable[[Path], Any], str]] = {
    "a symbolic link": (link, "is a symbolic link"),
    "group-writable": (lambda root: root.chmod(0o770), "can be written by group or others"),
    "world-writable": (lambda root: root.chmod(0o1777), "can be written by group or others"),
    "somebody else's": (lambda root: os.chown(root, 65534, 65534), "belongs to uid 65534"),
    "a file": (lambda root: (shutil.rmtree(root), root.write_text("")), "cannot be made"),
}
CASES = [pytest.param(name, marks=as_root if name == "somebody else's" else ()) for name in DISTRUSTED]


@pytest.mark.parametrize("case", CASES)
def test_a_store_that_others_may_have_written_is_neither_used_nor_changed(
    python: Any, compute: str, full_store: Path, tmp_path: Path, compiler: Any, case: str
) -> None:
    spoil, reason = DISTRUSTED[case]
    spoil(full_store / "v1")
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    before = listing(full_store)
    answer = python(compute, JITBLAS_CACHE_DIR=full_store, TMPDIR=temporary, **compiler.setting)
    assert answer.stdout == "right\n"
    assert len(compiler.compiled) == 2
    assert len(answer.stderr.splitlines()) == 1
    assert reason in answer.stderr and "JITBLAS_CACHE_DIR" in answer.stderr
    assert listing(full_store) == before
    assert listing(temporary) == []


@pytest.mark.parametrize("case", ["a symbolic link", "group-writable"])
def test_a_read_only_store_that_others_may_have_written_is_not_used(
    python: Any, compute: str, full_store: Path, tmp_path: Path, compiler: Any, case: str
) -> None:
    spoil, reason = DISTRUSTED[case]
    spoil(full_store / "v1")
    settings = {"JITBLAS_CACHE_PATH": full_store, "JITBLAS_CACHE_DIR": tmp_path / "own", **compiler.setting}
    answer = python(compute, **settings)
    assert answer.stdout == "right\n"
    assert len(compiler.compiled) == 2
    assert len(answer.stderr.splitlines()) == 1 and reason in answer.stderr


def test_a_read_only_store_is_used_and_never_written(
    python: Any, compute: str, full_store: Path, tmp_path: Path
) -> None:
    before = listing(full_store)
    code = "import sys; sys.modules['filelock'] = None\n" + compute
    answer = python(code, JITBLAS_CACHE_PATH=f"/nowhere:{full_store}", JITBLAS_CACHE_DIR=tmp_path / "own")
    assert (answer.stdout, answer.stderr) == ("right\n", "")
    assert listing(full_store) == before
    assert not list((tmp_path / "own").rglob("kernel.so"))


@as_root
def test_a_read_only_store_of_root_is_used_and_one_of_a_third_user_is_not(full_store: Path) -> None:
    from jitblas.store.folders import refusal

    root = full_store / "v1"
    assert refusal(root, (0, 4242)) is None
    os.chown(root, 1234, 1234)
    assert refusal(root, (0, 1234)) is None
    assert refusal(root, (0, 4242)) == "belongs to uid 1234, not to 0 or 4242"


# ---- No place for a store -------------------------------------------------------------------------------------------


def test_a_cache_folder_that_cannot_be_made_means_a_temporary_one_and_one_warning(
    python: Any, compute: str, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "tmp").mkdir()
    for folder in (tmp_path / "file" / "below", "/proc/nowhere"):
        answer = python(compute, JITBLAS_CACHE_DIR=folder, TMPDIR=tmp_path / "tmp")
        assert answer.stdout == "right\n"
        assert len(answer.stderr.splitlines()) == 1 and str(folder) in answer.stderr
        assert listing(tmp_path / "tmp") == []


@pytest.fixture
def installed(checkout: Path) -> Path:
    """The package as a wheel lays it out, without a checkout around it."""
    (checkout / "kernels_src").rename(checkout / "jitblas" / "kernels_src")
    (checkout / "pyproject.toml").unlink()
    for path in (checkout, *checkout.parents):
        if path.stat().st_mode & 0o005 != 0o005:
            path.chmod(path.stat().st_mode | 0o055)
    return checkout


def test_an_installed_package_keeps_its_store_in_the_user_s_cache_folder(
    python: Any, compute: str, installed: Path, tmp_path: Path
) -> None:
    for settings, folder in (
        ({"XDG_CACHE_HOME": tmp_path / "xdg", "HOME": tmp_path / "home"}, tmp_path / "xdg" / "jitblas"),
        ({"XDG_CACHE_HOME": None, "HOME": tmp_path / "home"}, tmp_path / "home" / ".cache" / "jitblas"),
    ):
        answer = python(compute, JITBLAS_CACHE_DIR=None, PYTHONPATH=installed, cwd=tmp_path, **settings)
        assert (answer.stdout, answer.stderr) == ("right\n", "")
        assert len(list(folder.rglob("kernel.so"))) == 2
    assert not list(installed.rglob("kernel.so"))


AS_NOBODY = """
import os, sys
uid = int(sys.argv[1])
import ctypes, hashlib, importlib.metadata, importlib.util, json, shlex, platform, shutil, sqlite3, subprocess, tempfile
import diskcache, filelock, numpy, platformdirs, platformdirs.unix
import jitblas.blas.axpy_ex, jitblas.jit.artifacts, jitblas.runtime.host, jitblas.store.index, jitblas.toolchain.gnu
import jitblas.toolchain.zig
os.setgroups([])
os.setresgid(uid, uid, uid)
os.setresuid(uid, uid, uid)
"""
NOBODY, NO_PASSWD_ENTRY = 65534, 54321
HOMES = [(NOBODY, None), (NOBODY, "/etc/hostname"), (NO_PASSWD_ENTRY, None), (NO_PASSWD_ENTRY, "/")]


@as_root
@pytest.mark.parametrize(("uid", "home"), HOMES)
def test_no_home_folder_means_a_temporary_store_and_one_warning_or_one_clear_error(
    python: Any, compute: str, installed: Path, tmp_path: Path, uid: int, home: str | None
) -> None:
    working, temporary = tmp_path / "working", tmp_path / "tmp"
    for folder in (working, temporary):
        folder.mkdir()
        folder.chmod(0o777)
    settings = {"JITBLAS_CACHE_DIR": None, "XDG_CACHE_HOME": None, "HOME": home, "PYTHONPATH": installed}
    answer = python(AS_NOBODY + compute, str(uid), cwd=working, TMPDIR=temporary, **settings, check=False)
    if answer.returncode != 0:
        last = answer.stderr.splitlines()[-1]
        assert "CacheError" in last and "JITBLAS_CACHE_DIR" in last
    else:
        assert answer.stdout == "right\n" and len(answer.stderr.splitlines()) == 1
    assert listing(working) == []
    assert listing(temporary) == []


@as_root
def test_a_store_that_cannot_be_written_means_a_temporary_one(
    python: Any, compute: str, installed: Path, tmp_path: Path
) -> None:
    cache, temporary = tmp_path / "cache", tmp_path / "tmp"
    for folder, mode in ((cache, 0o755), (temporary, 0o777)):
        folder.mkdir()
        folder.chmod(mode)
    settings = {"JITBLAS_CACHE_DIR": cache, "TMPDIR": temporary, "PYTHONPATH": installed}
    answer = python(AS_NOBODY + compute, "65534", cwd="/", **settings)
    assert answer.stdout == "right\n"
    assert len(answer.stderr.splitlines()) == 1 and "cannot be made (Permission denied)" in answer.stderr
    (cache / "v1").mkdir(mode=0o500)
    os.chown(cache / "v1", 65534, 65534)
    answer = python(AS_NOBODY + compute, "65534", cwd="/", **settings)
    assert answer.stdout == "right\n"
    assert len(answer.stderr.splitlines()) == 1 and "cannot be written" in answer.stderr
