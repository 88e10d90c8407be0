"""What goes first: by age, by last use, until the store is small enough; and on full disks."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from jitblas.store import eviction, journal
from jitblas.store.entry import Key, write_meta
from jitblas.store.store import Store

DAY = 86400.0


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Five entries of 1000 bytes and more, compiled 50, 40, ... 10 days ago; the oldest was used an hour ago."""
    made = Store(str(tmp_path / "cache"), [])
    now = time.time()
    for number in range(5):
        key = Key(f"{number}{'a' * 63}", "b" * 64)
        with made.private_folder() as folder:
            Path(folder, "kernel.so").write_bytes(b"x" * 1000)
            facts = {"files": {"kernel.so": {}}, "headers": [], "cpu": [], "built": now - (50 - 10 * number) * DAY}
            texts = dict.fromkeys(("target", "machine", "toolchain", "version"), "")
            names = {"schema": 1, "what": key.what, "how": key.how, "title": str(number), "seconds": 1.0}
            write_meta(folder, {**names, **texts, **facts})
            Path(made.root, key.what[:2], key.what).mkdir(parents=True)
            Path(folder).rename(Path(made.root, key.what[:2], key.what, key.how))
        news = {"bytes": 1000, "built": facts["built"]}
        journal.append(made.root, [(str(key), news)])
    journal.append(made.root, [(f"0{'a' * 63}/{'b' * 64}", {"hits": 3, "used": now - 3600})])
    return made


def titles(items: list[eviction.Kept]) -> str:
    return "".join(item.meta["title"] for item in items)


def left(store: Store) -> str:
    return "".join(sorted(meta["title"] for _, meta in store.entries()))


def test_the_longest_unused_comes_first(store: Store) -> None:
    assert titles(eviction.kept(store)) == "12340"
    assert [item.hits for item in eviction.kept(store)] == [0, 0, 0, 0, 3]


@pytest.mark.parametrize(
    ("limits", "gone"),
    [
        ({"older_than": 35 * DAY}, "10"),
        ({"unused_for": 35 * DAY}, "1"),
        ({"most_bytes": 0}, "12340"),
        ({"most_bytes": 10_000}, ""),
        ({"most_bytes": 4_600}, "12"),
        ({"older_than": 15 * DAY, "most_bytes": 0}, "12304"),
        ({}, ""),
    ],
)
def test_prune_removes_by_age_by_last_use_and_by_size(store: Store, limits: dict[str, Any], gone: str) -> None:
    assert titles(eviction.prune(store, **limits, pretend=True)) == gone
    assert left(store) == "01234"
    assert titles(eviction.prune(store, **limits)) == gone
    assert left(store) == "".join(sorted(set("01234") - set(gone)))
    assert set(eviction.facts(store)) == {str(key) for key, _ in store.entries()}
    assert not [path for path in Path(store.root).iterdir() if path.name.startswith("build-")]


def test_removed_entries_leave_no_folder(store: Store) -> None:
    eviction.prune(store, most_bytes=0)
    assert not list(Path(store.root).glob("[0-9a-f][0-9a-f]"))


def test_a_broken_index_means_age_decides(store: Store) -> None:
    eviction.kept(store)
    Path(store.root, "index", "cache.db").write_bytes(b"no database" * 1000)
    assert titles(eviction.kept(store)) == "01234"


def test_damaged_entries_go_first(store: Store) -> None:
    next(Path(store.root).glob("4a/*/*/meta.json")).write_text("{")
    assert eviction.prune(store, most_bytes=3 * 1200)[0].meta == {}


def test_a_store_with_a_size_keeps_to_it(python: Any, tmp_path: Path) -> None:
    code = """
import numpy, jitblas
for dtype in ("f4", "f2", "f4"):
    assert jitblas.axpy_ex(2.0, numpy.ones(9, dtype), numpy.ones(9, dtype))[0] == 3
assert jitblas.cdotc(numpy.ones(9, "c8"), numpy.ones(9, "c8")) == 9
"""
    most = 150_000
    answer = python(code, JITBLAS_CACHE_DIR=tmp_path / "cache", JITBLAS_CACHE_MAX_SIZE=str(most))
    assert answer.stderr == ""
    kept = eviction.kept(Store(str(tmp_path / "cache"), []))
    assert 0 < sum(item.nbytes for item in kept) <= most
    python(code, JITBLAS_CACHE_DIR=tmp_path / "whole")
    assert len(eviction.kept(Store(str(tmp_path / "whole"), []))) > len(kept)


def test_a_store_too_small_for_one_kernel_keeps_the_one_in_use(python: Any, compute: str, tmp_path: Path) -> None:
    answer = python(compute, JITBLAS_CACHE_DIR=tmp_path / "cache", JITBLAS_CACHE_MAX_SIZE="1k")
    assert (answer.stdout, answer.stderr) == ("right\n", "")
    assert len(eviction.kept(Store(str(tmp_path / "cache"), []))) == 1


def test_room_is_made_once_on_a_full_disk(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    full = iter([True, True, True, False])
    monkeypatch.setattr(store, "is_full", lambda times=1: next(full))
    assert store.make_room()
    assert left(store) == "04"
    eviction.prune(store, most_bytes=0)
    monkeypatch.setattr(store, "is_full", lambda times=1: True)
    assert not store.make_room()
