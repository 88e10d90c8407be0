"""File systems without room for bytes or inodes: what is old goes, or one line; the right result, and no debris."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from jitblas.store.entry import Key, describe
from jitblas.store.store import Store
from tests.faults.ground import AT_ONCE, check_one_line_at_most, debris, entries, entry_of, mounted

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.geteuid() != 0, reason="mounting takes root")]


def fill_with_entries(cache: Path, like: Path, count: int, nbytes: int) -> list[Path]:
    """Entries that nobody needs, of that many bytes each, as many as there is room for; `like`: a real one."""
    store, made = Store(str(cache), []), []
    real = json.loads((like / "meta.json").read_text())
    for number in range(count):
        key = Key(f"{number:02x}{'a' * 62}", "b" * 64)
        try:
            with store.private_folder() as folder:
                path = Path(folder, "kernel.so")
                path.write_bytes(b"x" * nbytes)
                changed = {"title": "old", "built": 1.0, "headers": [], "files": {"kernel.so": describe(str(path))}}
                meta = real | changed | key._asdict()
                Path(folder, "meta.json").write_text(json.dumps(meta))
                made.append(Path(store.publish(key, folder).folder))
        except OSError:
            break
    return made


def fill_up(place: Path) -> None:
    with open(place / "filler", "wb", buffering=0) as file:
        try:
            while file.write(b"x" * 4096):
                pass
        except OSError:
            pass


@pytest.mark.parametrize(
    ("options", "count", "nbytes"),
    [("size=8m", 200, 100_000), ("nr_inodes=200,size=8m", 100, 100)],
    ids=["bytes", "inodes"],
)
def test_a_full_file_system_is_cleared_of_the_longest_unused(
    python: Any,
    compute: str,
    full_store: Path,
    tmp_path: Path,
    temporary: Path,
    options: str,
    count: int,
    nbytes: int,
) -> None:
    with mounted(tmp_path / "cache", options) as cache:
        old = fill_with_entries(cache, entry_of(full_store), count, nbytes)
        assert 5 < len(old) < count
        answer = python(compute, JITBLAS_CACHE_DIR=cache, TMPDIR=temporary)
        assert (answer.stdout, answer.stderr) == ("right\n", "")
        assert len([title for title in entries(cache) if title != "old"]) == 2
        assert 0 < sum(folder.exists() for folder in old) < len(old)
        assert debris(cache) == []


@pytest.mark.parametrize("times", [1, 99])
def test_a_compiler_that_fills_the_file_system_is_no_obstacle(
    python: Any, compute: str, tmp_path: Path, temporary: Path, compiler_in: Any, times: int
) -> None:
    """It leaves the disk full, that many times; what it wrote goes with its private folder."""
    log, cache = tmp_path / "spawned", tmp_path / "cache"
    fill = (
        f'echo x >>"{log}"; if [ $(wc -l <"{log}") -le {times} ]; then case "$*" in *"{cache}"*) '
        f'for b in "{cache}"/v1/build-*; do dd if=/dev/zero of="$b/filler" bs=64k 2>/dev/null; done;; esac; fi'
    )
    compiler = compiler_in(tmp_path / "filling", fill)
    with mounted(cache, "size=3m"):
        settings = {"JITBLAS_CACHE_DIR": cache, "TMPDIR": temporary, **compiler.setting}
        lines = check_one_line_at_most(python(compute, **settings))
        assert debris(cache) == []
        assert not list(cache.rglob("filler"))
        assert len(compiler.compiled) <= 6
        assert times == 1 or (len(lines) == 1 and "temporary folder" in lines[0])


@pytest.mark.parametrize("options", ["size=600k", "nr_inodes=50,size=1m"])
def test_a_hit_needs_no_room_at_all(
    python: Any, compute: str, full_store: Path, tmp_path: Path, temporary: Path, options: str
) -> None:
    with mounted(tmp_path / "cache", options) as cache:
        shutil.copytree(full_store, cache, dirs_exist_ok=True)
        fill_up(cache)
        for number in range(100):
            try:
                (cache / f"inode{number}").touch()
            except OSError:
                break
        answer = python(AT_ONCE + compute, JITBLAS_CACHE_DIR=cache, TMPDIR=temporary)
        assert (answer.stdout, answer.stderr) == ("right\n", "")
        assert len(entries(cache)) == 2


def test_no_room_anywhere_is_one_clear_error_and_works_again_with_room(
    python: Any, compute: str, tmp_path: Path
) -> None:
    with mounted(tmp_path / "all", "size=4m") as place:
        (place / "tmp").mkdir()
        fill_up(place)
        code = f"""
import jitblas, os
try:
    exec({compute!r})
    print("no room was needed")
except jitblas.Error as error:
    print(type(error).__name__)
    os.unlink({str(place / "filler")!r})
    exec({compute!r})
"""
        answer = python(code, JITBLAS_CACHE_DIR=place / "cache", TMPDIR=place / "tmp", check=False)
        assert answer.returncode == 0, answer.stderr
        first, second = answer.stdout.splitlines()
        assert first in ("CacheError", "CompileError", "CompilerNotFound") and second == "right"
        assert len(answer.stderr.splitlines()) <= 1, answer.stderr
        assert list((place / "tmp").iterdir()) == []
