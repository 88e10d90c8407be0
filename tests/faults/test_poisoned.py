"""An index that somebody else wrote: nothing in it ever runs, whoever reads it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import diskcache
import pytest

import jitblas
from tests.cli.command_line import run

COMMANDS = [
    ("cache", "ls"),
    ("cache", "info"),
    ("cache", "verify"),
    ("cache", "prune", "--max-size", "1G"),
    pytest.param(("doctor",), marks=pytest.mark.slow),
]


class Poison:
    """Leaves a file behind when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.marker),)


@pytest.fixture
def marker(full_store: Path, tmp_path: Path) -> Path:
    """What exists once a pickle in the index of `full_store` was read: a value, a file, a key, a row of ours."""
    poison = Poison(tmp_path / "ran")
    with diskcache.Cache(str(full_store / "v1" / "index")) as index:
        index["a/b"] = poison
        index["large"] = [poison, "x" * 100_000]
        index[("key", poison)] = 1
        for meta in full_store.glob("v1/??/*/*/meta.json"):
            index[f"{meta.parent.parent.name}/{meta.parent.name}"] = poison
    return tmp_path / "ran"


def test_the_poison_of_these_tests_works(full_store: Path, marker: Path) -> None:
    assert not marker.exists()
    with diskcache.Cache(str(full_store / "v1" / "index")) as index:
        index["a/b"]
    assert marker.exists()


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_pickle_in_the_index_never_runs_in_the_command_line(
    full_store: Path, marker: Path, words: tuple[str, ...]
) -> None:
    finished = run(words, full_store)
    assert not marker.exists()
    assert "Traceback" not in finished.stderr
    assert finished.returncode == 0, finished.stderr


@pytest.mark.parametrize("size", [None, "1M"])
def test_a_pickle_in_the_index_never_runs_in_a_call(
    python: Any, compute: str, full_store: Path, marker: Path, size: str | None
) -> None:
    settings = {"JITBLAS_CACHE_DIR": full_store, "JITBLAS_CACHE_MAX_SIZE": size}
    for code in (compute, compute.replace('"f4"', '"f2"').replace("1000", "100")):  # a hit, and one to be entered
        answer = python(code, **settings)
        assert (answer.stdout, answer.stderr) == ("right\n", "")
    assert not marker.exists()


@pytest.mark.parametrize("word", ["import pickle", "import marshal", "import shelve", "allow_pickle=True"])
def test_nothing_is_ever_unpickled(word: str) -> None:
    for path in Path(jitblas.__file__).parent.rglob("*.py"):
        assert word not in path.read_text(), path
