"""`jitblas cache`: looking at a store and clearing it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from jitblas import cli
from jitblas.store.entry import SCHEMA
from jitblas.store.index import Index
from tests.cli.command_line import Finished, Runner, environment, run


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
    texts = dict.fromkeys(("title", "target", "machine", "toolchain", "version"), "")
    facts = {**texts, "files": {"kernel.so": {}}, "headers": [], "cpu": [], "built": 1.0, "seconds": 1.0}
    meta = {**facts, "schema": SCHEMA, "what": what, "how": how, "title": f"planted {how}", **meta}
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


@pytest.mark.parametrize("words", [["show"], ["ls", "--nonsense"], ["path", "--json"]])
def test_what_is_not_there_is_wrong_usage(words: list[str]) -> None:
    assert cli.main(["cache", *words]) == 2


# ---- Verifying, pruning, exchanging ---------------------------------------------------------------------------------


def test_ls_sorts_and_filters(filled: Runner) -> None:
    for order, field in (("size", "bytes"), ("hits", "hits"), ("seconds", "seconds")):
        rows = json.loads(filled("cache", "ls", "--json", "--sort", order).stdout)
        assert [row[field] for row in rows] == sorted((row[field] for row in rows), reverse=True)
    rows = json.loads(
        filled("cache", "ls", "--json", "--sort", "title", "--operator", "fft", "--target", "host").stdout
    )
    assert rows and all(row["operator"] == "fft" and row["title"].startswith("fft ") for row in rows)
    assert filled("cache", "ls", "--target", "ascend950pr").stdout.endswith(" of that kind\n")


def test_show_prints_the_source_that_was_compiled(filled: Runner) -> None:
    row = json.loads(filled("cache", "ls", "--json", "--operator", "cdotc").stdout)[0]
    finished = filled("cache", "show", row["key"], "--source")
    assert finished.returncode == 0 and "#include" in finished.stdout
    told = filled("cache", "show", row["key"]).stdout
    assert "resolved   -m" in told and "signed by  nobody" in told


def test_verify_lists_what_is_damaged_and_exits_1(copied: Path) -> None:
    assert run(("cache", "verify"), copied).stdout == "19 of 19 entries are complete\n"
    path = sorted((copied / "v1").glob("??/*/*/kernel.so"))[3]
    path.write_bytes(path.read_bytes()[:-1])
    finished = run(("cache", "verify"), copied)
    assert finished.returncode == 1
    assert path.parent.name in finished.stdout and "18 of 19 entries are complete" in finished.stdout
    found = json.loads(run(("cache", "verify", "--json"), copied).stdout)
    assert found["entries"] == 19 and len(found["damaged"]) == 1


def test_prune_says_what_goes_and_takes_sizes_and_ages(copied: Path) -> None:
    finished = run(("cache", "prune", "--max-size", "200k", "--dry-run"), copied)
    assert "would be deleted" in finished.stdout
    assert json.loads(run(("cache", "info", "--json"), copied).stdout)["entries"] == 19
    assert run(("cache", "prune", "--max-size", "200k"), copied).returncode == 0
    left = json.loads(run(("cache", "info", "--json"), copied).stdout)
    assert 0 < left["bytes"] <= 200 * 1024
    assert run(("cache", "prune", "--older-than", "1d"), copied).stdout == "0 entries, 0 B, deleted\n"
    assert run(("cache", "prune", "--unused-for", "0s"), copied).returncode == 0
    assert json.loads(run(("cache", "info", "--json"), copied).stdout)["entries"] == 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "give --max-size, --older-than or --unused-for"),
        (("--max-size", "big"), "'big' is no size; accepted are such as 4096, 500M and 1.5G"),
        (("--older-than", "30"), "'30' is no duration; accepted are such as 90s, 15m, 12h, 30d and 4w"),
    ],
)
def test_prune_without_a_limit_or_with_a_wrong_one_is_wrong_usage(
    command: Runner, words: tuple[str, ...], told: str
) -> None:
    finished = command("cache", "prune", *words)
    assert finished.returncode == 2 and told in finished.stderr


def test_kernels_go_from_store_to_store_once_they_are_signed_and_trusted(copied: Path, tmp_path: Path) -> None:
    key, file, new = str(tmp_path / "key"), str(tmp_path / "kernels.tar.gz"), tmp_path / "new"
    trusting = {"JITBLAS_TRUSTED_KEYS": str(tmp_path / "trusted")}
    finished = run(("cache", "export", file), copied)
    assert finished.returncode == 0 and "19 of them are not signed" in finished.stdout
    assert run(("cache", "import", file), new, **trusting).returncode == 1
    assert run(("cache", "keygen", key, "--comment", "build farm"), copied).returncode == 0
    assert run(("cache", "sign", "--key", key), copied).stdout.startswith("19 entries signed with ")
    assert "0 entries signed" in run(("cache", "sign", "--key", key), copied).stdout
    assert "not signed" not in run(("cache", "export", file), copied).stdout
    assert run(("cache", "import", file), new, **trusting).returncode == 1
    assert "build farm" in run(("cache", "trust", f"{key}.pub"), new, **trusting).stdout
    assert "1 trusted keys in" in run(("cache", "trust"), new, **trusting).stdout
    assert "19 taken in" in run(("cache", "import", file), new, **trusting).stdout
    assert run(("demo", "-n", "4099"), new, JITBLAS_MODE="load", PATH="").returncode == 0
    line = Path(f"{key}.pub").read_text().strip()
    assert run(("cache", "trust", "--remove", line), new, **trusting).returncode == 0
    assert run(("cache", "import", file), new, **trusting).returncode == 1
    assert run(("cache", "trust", "--remove", line), new, **trusting).returncode == 1


def test_one_entry_can_be_exported_and_an_archive_is_replaced_whole(copied: Path, tmp_path: Path) -> None:
    row = json.loads(run(("cache", "ls", "--json"), copied).stdout)[0]
    file = tmp_path / "one.tar.gz"
    file.write_text("what was there before")
    finished = run(("cache", "export", str(file), row["key"]), copied)
    assert finished.stdout.startswith("1 entries, ") and file.read_bytes()[:2] == b"\x1f\x8b"
    assert run(("cache", "export", "/nowhere/x"), copied).returncode == 1
    assert run(("cache", "export", str(file), "0" * 64), copied).returncode == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted({"one.tar.gz", copied.name})


@pytest.mark.parametrize("words", [["export", "x"], ["sign", "--key", "x"], ["package", "x", "--name", "x"]])
def test_without_a_store_there_is_nothing_to_exchange(
    command: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    finished = command("cache", *words)
    assert finished.returncode == 1 and finished.stderr.startswith("jitblas: ")
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("words", [["verify"], ["prune", "--max-size", "1"]])
def test_verifying_or_pruning_nothing_is_no_error(command: Runner, cache: Path, words: list[str]) -> None:
    assert command("cache", *words).returncode == 0
    assert not cache.exists()


@pytest.mark.parametrize(
    "change",
    [{"built": 1e308}, {"built": -1}, {"seconds": "x"}, {"title": "\x1b[2J"}, {"title": "\ud800"}, {"target": []},
     {"toolchain": {}}, {"facts": []}, {"command": [1]}, {"resolved": 5}, {"signatures": []}],
    ids=str,
)  # fmt: skip
def test_facts_of_another_kind_are_damage_and_spoil_no_listing(
    command: Runner, cache: Path, change: dict[str, Any]
) -> None:
    plant(cache, "ab" + "0" * 62, "c" * 64, **change)
    plant(cache, "cd" + "0" * 62, "c" * 64)
    for words in (
        ["info"],
        ["ls"],
        ["ls", "--sort", "size"],
        ["show", "ab"],
        ["show", "cd"],
        ["prune", "--max-size", "1G"],
    ):
        finished = command("cache", *words)
        assert finished.returncode == 0 and "\x1b" not in finished.stdout, finished
    assert "cannot be read" in command("cache", "ls").stdout and "planted" in command("cache", "ls").stdout


@pytest.mark.parametrize("line", ["[" * 100_000, '["ab/c", {"hits": 1' + "0" * 400 + "}]", '["ab/c", {"used": null}]'])
def test_news_and_an_index_that_are_nonsense_spoil_no_listing(command: Runner, cache: Path, line: str) -> None:
    plant(cache, "ab" + "0" * 62, "c" * 64)
    (cache / "v1" / "journal.jsonl").write_text(line + "\n")
    assert command("cache", "ls").returncode == 0
    with Index(str(cache / "v1")) as index:
        for number, facts in enumerate(({"used": "abc"}, {"hits": []}, {"hits": float("inf")}, {"used": None})):
            plant(cache, f"a{number}" + "0" * 62, "c" * 64)
            index.add(f"a{number}{'0' * 62}/{'c' * 64}", facts)
    assert len(json.loads(command("cache", "ls", "--json").stdout)) == 5


def test_trusting_a_key_keeps_the_comments_of_the_file(command: Runner, tmp_path: Path) -> None:
    path, key = tmp_path / "trusted", f"ed25519 {'A' * 43}= somebody"
    path.write_text("# important\n\n# no end of line")
    for words, left in ((["trust", key], f"# important\n\n# no end of line\n{key}\n"),
                        (["trust", "--remove", key], "# important\n\n# no end of line\n")):  # fmt: skip
        assert command("cache", *words, JITBLAS_TRUSTED_KEYS=str(path)).returncode == 0
        assert path.read_text() == left


@pytest.mark.parametrize("kind", ["a dangling link", "a pipe", "a folder", "a link into a folder of everybody"])
def test_trusted_keys_that_are_no_file_of_ours_are_one_clear_error(command: Runner, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "trusted"
    if kind == "a pipe":
        os.mkfifo(path)
    elif kind == "a folder":
        path.mkdir()
    else:
        open_to_all = tmp_path / "open"
        open_to_all.mkdir()
        open_to_all.chmod(0o777)
        path.symlink_to(open_to_all / "keys")
        if kind != "a dangling link":
            (open_to_all / "keys").write_text("")
    finished = command("cache", "trust", JITBLAS_TRUSTED_KEYS=str(path))
    assert finished.returncode == 1 and finished.stderr.startswith("jitblas: the trusted keys ")


def test_two_who_sign_at_once_both_sign(copied: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        assert run(("cache", "keygen", str(tmp_path / name)), copied).returncode == 0
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "jitblas", "cache", "sign", "--key", str(tmp_path / name)],
            env=environment(copied),
            stdout=subprocess.DEVNULL,
        )
        for name in ("one", "two")
    ]
    assert [process.wait(60) for process in processes] == [0, 0]
    for path in (copied / "v1").glob("??/*/*/meta.json"):
        assert len(json.loads(path.read_text())["signatures"]) == 2


def test_an_export_writes_through_a_link_and_to_no_device(copied: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("real")
    assert run(("cache", "export", str(tmp_path / "link")), copied).returncode == 0
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real").stat().st_size > 1000
    os.mkfifo(tmp_path / "pipe")
    finished = run(("cache", "export", str(tmp_path / "pipe")), copied)
    assert finished.returncode == 1 and "is no regular file" in finished.stderr


def test_an_import_without_a_place_that_lasts_fails(copied: Path, tmp_path: Path) -> None:
    key, file = str(tmp_path / "key"), str(tmp_path / "kernels.tar.gz")
    trusting = {"JITBLAS_TRUSTED_KEYS": str(tmp_path / "trusted")}
    for words in (("keygen", key), ("sign", "--key", key), ("export", file), ("trust", f"{key}.pub")):
        assert run(("cache", *words), copied, **trusting).returncode == 0
    (tmp_path / "file").write_text("")
    finished = run(("cache", "import", file), tmp_path / "file", **trusting)
    assert finished.returncode == 1 and "there is no place for it that lasts" in finished.stderr


def test_clearing_spares_what_is_being_compiled(command: Runner, cache: Path) -> None:
    plant(cache, "ab" + "0" * 62, "c" * 64)
    (cache / "v1" / "build-1-x").mkdir()
    assert command("cache", "clear").returncode == 0
    assert os.listdir(cache / "v1") == ["build-1-x"]


def test_a_full_or_closed_standard_output_is_no_traceback(filled: Runner, demo: tuple[Path, Finished]) -> None:
    for words in (
        ["cache", "ls"],
        ["prewarm", "--check", "axpy_ex:n=9"],
        ["prewarm", "--check", "--json", "axpy_ex:n=9"],
    ):
        for redirection in (">/dev/full", ">&-"):
            shell = f'exec "$0" -m jitblas "$@" {redirection}'
            finished = subprocess.run(
                ["sh", "-c", shell, sys.executable, *words], env=environment(demo[0]), stderr=subprocess.PIPE, text=True
            )
            assert "Traceback" not in finished.stderr and "Exception" not in finished.stderr, finished
