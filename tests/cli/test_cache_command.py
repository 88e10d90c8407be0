"""`jitblas cache`: looking at a store and clearing it."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from jitblas import cli
from jitblas.store.entry import SCHEMA
from tests.cli.command_line import Finished, Runner, run


@pytest.fixture
def copied(demo: tuple[Path, Finished], cache: Path) -> Path:
    """A copy of the demo's store that a test may change."""
    shutil.copytree(demo[0], cache)
    return cache


def plant(cache: Path, what: str, how: str, **meta: Any) -> Path:
    """An entry with nothing but a meta.json."""
    folder = cache / "v1" / what[:2] / what / how
    folder.mkdir(parents=True, mode=0o700)
    os.chmod(cache / "v1", 0o700)
    facts = {"files": {"kernel.so": {}}, "headers": [], "cpu": [], "built": 1.0}
    meta = {"schema": SCHEMA, "what": what, "how": how, "title": f"planted {how}", **facts, **meta}
    (folder / "meta.json").write_text(json.dumps(meta))
    return folder


def test_path_is_the_cache_folder_and_makes_nothing(command: Runner, cache: Path) -> None:
    finished = command("cache", "path")
    assert (finished.returncode, finished.stdout) == (0, f"{cache}\n")
    assert not cache.exists()


@pytest.mark.parametrize("words", [["info"], ["ls"], ["clear"]])
def test_a_store_that_is_not_there_is_no_error(command: Runner, cache: Path, words: list[str]) -> None:
    assert command("cache", *words).returncode == 0
    assert not cache.exists()


def test_info_counts_entries_bytes_and_hits(copied: Path) -> None:
    before = json.loads(run(("cache", "info", "--json"), copied).stdout)
    assert before["entries"] == 19
    assert before["bytes"] > 10_000
    assert 0 < before["oldest"] <= before["newest"]
    assert run(("demo", "-n", "10"), copied).returncode == 0
    after = json.loads(run(("cache", "info", "--json"), copied).stdout)
    assert after["hits"] >= before["hits"] + 19
    assert "entries  19, " in run(("cache", "info"), copied).stdout


def test_info_without_entries(command: Runner) -> None:
    found = json.loads(command("cache", "info", "--json").stdout)
    assert (found["entries"], found["bytes"], found["hits"], found["oldest"]) == (0, 0, 0, None)


def test_ls_lists_every_entry_newest_first(filled: Runner) -> None:
    rows = json.loads(filled("cache", "ls", "--json").stdout)
    assert len(rows) == 19
    assert [row["built"] for row in rows] == sorted((row["built"] for row in rows), reverse=True)
    text = filled("cache", "ls").stdout.splitlines()
    assert len(text) == 20
    assert all(row["key"][:12] in line and row["title"] in line for row, line in zip(rows, text[1:], strict=True))


def test_ls_of_nothing_says_so(command: Runner) -> None:
    assert command("cache", "ls").stdout.startswith("no entries in ")
    assert json.loads(command("cache", "ls", "--json").stdout) == []


def test_show_takes_any_unique_prefix(filled: Runner) -> None:
    row = json.loads(filled("cache", "ls", "--json").stdout)[0]
    what, _, how = row["key"].partition("/")
    for text in (what[:16], what, f"{what[:16]}/{how[:6]}", row["key"], what[:16].upper()):
        finished = filled("cache", "show", text)
        assert finished.returncode == 0, finished.stderr
        assert f"key        {row['key']}" in finished.stdout
        assert "state      complete" in finished.stdout


@pytest.mark.parametrize("text", ["nonsense", "", "/", "0" * 64, "../..", "*"])
def test_show_of_an_unknown_key_fails(filled: Runner, text: str) -> None:
    finished = filled("cache", "show", text)
    assert finished.returncode == 1
    assert finished.stderr == f"jitblas: no entry's key begins with {text!r}; `jitblas cache ls` lists them all\n"


def test_show_without_a_store_fails(command: Runner) -> None:
    assert command("cache", "show", "ab").returncode == 1


def test_show_of_an_ambiguous_prefix_lists_what_it_could_be(command: Runner, cache: Path) -> None:
    plant(cache, "ab" + "0" * 62, "c" * 64)
    plant(cache, "ab" + "1" * 62, "d" * 64)
    plant(cache, "ab" + "1" * 62, "e" * 64)
    finished = command("cache", "show", "ab")
    assert finished.returncode == 1
    assert "3 keys begin with 'ab'" in finished.stderr
    assert finished.stderr.count("planted") == 3
    assert command("cache", "show", "ab1").returncode == 1
    assert command("cache", "show", "ab1/e").returncode == 0
    assert command("cache", "show", "ab0").returncode == 0


def test_show_tells_damage(copied: Path) -> None:
    row = json.loads(run(("cache", "ls", "--json"), copied).stdout)[0]
    what, _, how = row["key"].partition("/")
    with open(copied / "v1" / what[:2] / what / how / "kernel.so", "ab") as file:
        file.write(b"!")
    finished = run(("cache", "show", what), copied)
    assert finished.returncode == 0
    assert "state      damaged, will be compiled anew: kernel.so" in finished.stdout


def test_an_entry_that_cannot_be_read_is_listed(command: Runner, cache: Path) -> None:
    folder = plant(cache, "ab" + "0" * 62, "c" * 64)
    (folder / "meta.json").write_text("{")
    assert "cannot be read" in command("cache", "ls").stdout
    assert "damaged" in command("cache", "show", "ab").stdout


def test_an_index_that_is_lost_or_broken_loses_hit_counts_only(copied: Path) -> None:
    for spoil in (b"no database", None):
        shutil.rmtree(copied / "v1" / "index", ignore_errors=True)
        if spoil is not None:
            (copied / "v1" / "index").mkdir()
            (copied / "v1" / "index" / "cache.db").write_bytes(spoil * 1000)
        found = json.loads(run(("cache", "info", "--json"), copied).stdout)
        assert found["entries"] == 19
        assert run(("cache", "ls"), copied).returncode == 0


def test_clear_deletes_everything_and_says_what_went(copied: Path) -> None:
    finished = run(("cache", "clear"), copied)
    assert finished.returncode == 0
    assert finished.stdout.startswith("19 entries, ") and str(copied / "v1") in finished.stdout
    assert json.loads(run(("cache", "info", "--json"), copied).stdout)["entries"] == 0
    assert run(("demo", "-n", "10"), copied).returncode == 0


@pytest.mark.parametrize("words", [["info"], ["ls"], ["show", "ab"], ["clear"]])
def test_a_store_that_is_not_ours_is_refused(command: Runner, cache: Path, tmp_path: Path, words: list[str]) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    (elsewhere / "precious").write_text("")
    cache.mkdir()
    (cache / "v1").symlink_to(elsewhere)
    finished = command("cache", *words)
    assert finished.returncode == 1
    assert finished.stderr.startswith(f"jitblas: the store {cache / 'v1'} is a symbolic link")
    assert (elsewhere / "precious").exists()


@pytest.mark.parametrize("words", [["verify"], ["show"], ["ls", "--nonsense"], ["path", "--json"]])
def test_what_is_not_there_is_wrong_usage(words: list[str]) -> None:
    assert cli.main(["cache", *words]) == 2
