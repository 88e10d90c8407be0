"""Entries that somebody meddled with: never loaded, never a hang, rebuilt where they are ours to rebuild."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


def only_entry(cache: Path) -> Path:
    entries = [
        path.parent
        for path in cache.glob("v1/??/*/*/kernel.so")
        if "axpy_ex" in (path.parent / "meta.json").read_text()
    ]
    return entries[0]


def as_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def as_link_out(path: Path) -> None:
    elsewhere = path.parent.parent.parent.parent.parent / "elsewhere"
    shutil.move(path, elsewhere)
    path.symlink_to(elsewhere)


DAMAGES: dict[str, Callable[[Path], Any]] = {
    "a pipe for the object": lambda entry: as_fifo(entry / "kernel.so"),
    "a pipe for the facts": lambda entry: as_fifo(entry / "meta.json"),
    "facts nested without end": lambda entry: (entry / "meta.json").write_text("[" * 200_000),
    "a link out of the store": lambda entry: as_link_out(entry / "kernel.so"),
    "a file for the entry": lambda entry: (shutil.rmtree(entry), entry.write_text("no folder")),
}


@pytest.mark.parametrize("damage", list(DAMAGES))
def test_a_meddled_entry_is_moved_aside_and_rebuilt(python: Any, compute: str, full_store: Path, damage: str) -> None:
    entry = only_entry(full_store)
    DAMAGES[damage](entry)
    answer = python(compute, JITBLAS_CACHE_DIR=full_store)
    assert len(answer.stderr.splitlines()) == 1 and "moved aside" in answer.stderr
    assert (entry / "kernel.so").is_file()
    assert python(compute, JITBLAS_CACHE_DIR=full_store).stderr == ""


@pytest.mark.parametrize("place", [".", "..", "../..", "kernel.so", "meta.json"])
def test_what_others_could_have_written_is_not_loaded_from_a_tier(
    python: Any, compute: str, full_store: Path, tmp_path: Path, place: str
) -> None:
    """Though the tier's own folder is in order."""
    settings = {"JITBLAS_CACHE_DIR": tmp_path / "none", "JITBLAS_CACHE_PATH": full_store, "JITBLAS_MODE": "load"}
    assert python(compute, **settings).stderr == ""
    meddled = only_entry(full_store) / place
    meddled.chmod(meddled.stat().st_mode | 0o020)
    answer = python(compute, check=False, **settings)
    assert answer.returncode == 1 and "MissingKernelError" in answer.stderr


def test_files_of_an_entry_are_nobody_elses_to_write_whatever_the_umask(
    python: Any, compute: str, tmp_path: Path
) -> None:
    python(f"import os; os.umask(0)\n{compute}", JITBLAS_CACHE_DIR=tmp_path / "cache")
    for path in (tmp_path / "cache" / "v1").glob("??/*/*/*"):
        assert path.stat().st_mode & 0o022 == 0, path
