"""The index: JSON only, never a pickle; losing, damaging or locking it loses nothing; the journal is folded in."""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
import time
from pathlib import Path
from typing import Any

import diskcache
import pytest

from jitblas.store import journal
from jitblas.store.index import Index
from jitblas.store.journal import JOURNAL
from jitblas.store.store import Store

ran: list[str] = []


class Evil:
    """Says so when it is unpickled."""

    def __reduce__(self) -> Any:
        return ran.append, ("code of an index ran",)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    ran.clear()
    return tmp_path


def test_facts_are_json_and_come_back(root: Path) -> None:
    facts = {"bytes": 123, "built": 1.5, "hits": 0}
    with Index(str(root)) as index:
        index.add("a/b", facts)
    with Index(str(root)) as index:
        assert index.facts("a/b") == facts
        assert index.facts("c/d") == {}
        assert list(index.keys()) == ["a/b"]
        index.discard("a/b")
        assert list(index.keys()) == []
    rows = sqlite3.connect(root / "index" / "cache.db").execute("SELECT mode, filename FROM Cache").fetchall()
    assert rows == []


def test_values_that_a_plain_diskcache_wrote_are_refused_and_run_no_code(root: Path) -> None:
    plain = diskcache.Cache(str(root / "index"))
    plain["pickled"] = Evil()
    plain["bytes"] = b"{}"
    plain["number"] = 7
    plain["large"] = "x" * 100_000  # lies in a file
    plain[("a", 1)] = "a pickled key"
    plain.close()
    with Index(str(root)) as index:
        for key in ("pickled", "bytes", "number", "large"):
            with pytest.raises(ValueError, match="not JSON"):
                index.facts(key)
        with pytest.raises(ValueError, match="plain text"):
            list(index.keys())
    assert ran == []


def test_only_text_keys_and_json_values_can_be_put_in(root: Path) -> None:
    with Index(str(root)) as index:
        for key, facts in (("a", Evil()), (("a", 1), {}), (b"a", {}), (1, {})):
            with pytest.raises((TypeError, ValueError)):
                index.add(key, facts)  # type: ignore[arg-type]
    assert ran == []


def test_json_that_is_no_object_is_no_facts(root: Path) -> None:
    with Index(str(root)) as index:
        index.add("a", [1, 2])  # type: ignore[arg-type]
        assert index.facts("a") == {}


# ---- The journal ----------------------------------------------------------------------------------------------------


def test_what_processes_left_in_the_journal_is_taken_in_once(root: Path) -> None:
    journal.append(str(root), [("a/b", {"bytes": 10, "built": 50.0})])
    journal.append(str(root), [("a/b", {"hits": 3, "used": 100.0}), ("gone/one", {"hits": 1, "used": 80.0})])
    journal.append(str(root), [("a/b", {"hits": 2, "used": 90.0})])
    with Index(str(root)) as index:
        index.fold_journal()
        facts = {"bytes": 10, "built": 50.0, "hits": 5, "used": 100.0}
        assert index.facts("a/b") == facts
        assert index.facts("gone/one") == {}
        index.fold_journal()
        assert index.facts("a/b") == facts
    assert not list(root.glob(f"{JOURNAL}*"))


def test_an_entry_built_again_keeps_its_hits(root: Path) -> None:
    for built in (50.0, 60.0):
        journal.append(str(root), [("a/b", {"bytes": int(built), "built": built}), ("a/b", {"hits": 2, "used": built})])
        with Index(str(root)) as index:
            index.fold_journal()
    with Index(str(root)) as index:
        assert index.facts("a/b") == {"bytes": 60, "built": 60.0, "hits": 4, "used": 60.0}


FOREIGN = b"""\xff\xfe
not json
[1]
["a/b"]
["a/b", {"hits": "x"}]
["a/b", {"hits": true}]
["a/b", {"hits": NaN}]
["a/b", {"used": Infinity, "hits": Infinity}]
["a/b", {"built": 1.0}]
["a/b", {"built": 1.0, "bytes": -Infinity}]
["a/b", [1, 2]]
[["a"], {"hits": 1}]
{"a": 1}
["a/b", {"hits": 2, "used": 7.0}]
["cut"""


def test_lines_that_are_none_of_ours_are_dropped(root: Path) -> None:
    journal.append(str(root), [("a/b", {"bytes": 10, "built": 5.0}), ("a/b", {"hits": 1, "used": 6.0})])
    with open(root / JOURNAL, "ab") as file:
        file.write(FOREIGN)
    with Index(str(root)) as index:
        index.fold_journal()
        assert index.facts("a/b") == {"bytes": 10, "built": 5.0, "hits": 3, "used": 7.0}


def test_a_link_in_place_of_the_journal_is_not_followed(root: Path, tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("precious")
    (root / JOURNAL).symlink_to(tmp_path / "victim")
    journal.append(str(root), [("a/b", {"hits": 1, "used": 1.0})])
    assert (tmp_path / "victim").read_text() == "precious"


def test_processes_say_what_they_built_and_how_often_they_used_it(python: Any, compute: str, full_store: Path) -> None:
    for _ in range(2):
        python(compute, JITBLAS_CACHE_DIR=full_store)
    with Index(full_store / "v1") as index:
        index.fold_journal()
        found = [index.facts(key) for key in list(index.keys())]
    assert len(found) == 2
    assert all(facts["hits"] == 2 and facts["bytes"] > 0 and facts["used"] > facts["built"] for facts in found)


# ---- Damage ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("damage", ["garbage", "gone", "a folder", "a file in the way", "an old table"])
def test_a_damaged_index_loses_nothing(python: Any, compute: str, full_store: Path, damage: str) -> None:
    database = full_store / "v1" / "index" / "cache.db"
    shutil.rmtree(database.parent, ignore_errors=True)
    database.parent.mkdir()
    if damage == "garbage":
        database.write_bytes(os.urandom(20_000))
    elif damage == "a folder":
        database.mkdir()
    elif damage == "a file in the way":
        database.parent.rmdir()
        database.parent.write_text("no folder")
    elif damage == "an old table":
        with sqlite3.connect(database) as connection:
            connection.execute("CREATE TABLE Cache (something INTEGER)")
            connection.execute("CREATE TABLE Settings (key TEXT, value)")
        connection.close()
    more = compute.replace('"f4"', '"f2"').replace("1000", "100")  # another kernel, so that the index is written
    for code in (more, compute):
        answer = python(code, JITBLAS_CACHE_DIR=full_store)
        assert answer.stdout == "right\n"
        assert len(answer.stderr.splitlines()) <= 1, answer.stderr
    assert len(list((full_store / "v1").glob("??/*/*/kernel.so"))) == 3


def test_a_locked_index_is_not_waited_for(python: Any, compute: str, full_store: Path) -> None:
    Index(full_store / "v1").__exit__()
    connection = sqlite3.connect(full_store / "v1" / "index" / "cache.db", check_same_thread=False)
    connection.execute("BEGIN EXCLUSIVE")
    released = threading.Timer(12, connection.rollback)
    released.start()
    started = time.monotonic()
    answer = python(compute.replace('"f4"', '"f2"').replace("1000", "100"), JITBLAS_CACHE_DIR=full_store, check=False)
    took = time.monotonic() - started
    released.cancel()
    connection.rollback()
    connection.close()
    assert (answer.returncode, answer.stdout) == (0, "right\n"), answer.stderr
    assert took < 8


def test_entries_are_listed_without_the_index(full_store: Path) -> None:
    store = Store(str(full_store), [])
    listed = {str(key): meta["title"] for key, meta in store.entries()}
    assert len(listed) == 2 and "the host runtime" in listed.values()
    with Index(store.root) as index:
        index.fold_journal()
        assert set(index.keys()) == set(listed)
    (next((full_store / "v1").glob("??/*/*/meta.json"))).write_text("{")
    assert sorted(bool(meta) for _, meta in store.entries()) == [False, True]
    assert store.clear() == 2
    assert os.listdir(store.root) == []
