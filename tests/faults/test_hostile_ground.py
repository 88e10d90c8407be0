"""Names and surroundings that look like something else: paths, the working directory, the home folder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import environment
from tests.faults.ground import AT_ONCE, entries

NAMES = {
    "spaces and quotes": '-rf it\'s "quoted" `here` ',
    "dollars and unicode": "$HOME $(touch ran) ${x} $$ ünï-码-🎉",
    "a make rule": "a: b # c % d = e \\ f",
    "shell words": "a;b&c|d>e(f)*?[g]~,h",
    "a tab and a line break": "a\tb\nc",
}
QUICK = ("spaces and quotes", "a tab and a line break")


@pytest.mark.parametrize("name", [*QUICK, *(pytest.param(n, marks=pytest.mark.slow) for n in NAMES if n not in QUICK)])
def test_no_character_in_the_cache_path_spoils_a_compile_or_a_hit(
    python: Any, compute: str, tmp_path: Path, compiler: Any, name: str
) -> None:
    cache = tmp_path / NAMES[name]
    cache.mkdir()
    settings = {"JITBLAS_CACHE_DIR": cache, **compiler.setting}
    for code in (AT_ONCE + compute, AT_ONCE + compute):
        answer = python(code, cwd=cache, **settings)
        assert (answer.stdout, answer.stderr, len(compiler.compiled)) == ("right\n", "", 2)
    for meta in cache.rglob("v1/direct/*"):
        meta.unlink()
    answer = python(compute, **settings)  # the long way
    assert (answer.stdout, answer.stderr, len(compiler.compiled)) == ("right\n", "", 2)
    assert sorted(os.listdir(cache)) == ["v1"] and len(entries(cache)) == 2


@pytest.mark.slow
def test_a_relative_cache_path_with_a_leading_dash_is_a_folder(python: Any, compute: str, tmp_path: Path) -> None:
    for _ in range(2):
        answer = python(compute, JITBLAS_CACHE_DIR="-rf", cwd=tmp_path)
        assert (answer.stdout, answer.stderr) == ("right\n", "")
    assert len(entries(tmp_path / "-rf")) == 2


def test_a_cache_path_that_is_no_utf_8_is_used_or_one_clear_error(compute: str, tmp_path: Path) -> None:
    cache = os.fsencode(tmp_path) + b"/caf\xe9"
    try:
        os.mkdir(cache)
    except OSError as error:
        pytest.skip(f"this file system has no such names: {error}")
    settings = {os.fsencode(name): os.fsencode(value) for name, value in environment().items()}
    settings[b"JITBLAS_CACHE_DIR"] = cache
    for code in (AT_ONCE + compute, compute):
        answer = subprocess.run(
            [sys.executable, "-c", code], env=settings, capture_output=True, text=True, errors="replace", timeout=60
        )
        if answer.returncode == 0:
            assert answer.stdout == "right\n" and len(answer.stderr.splitlines()) <= 1
        else:  # one clear error is an answer, too
            assert answer.stderr.splitlines()[-1].startswith("jitblas.errors."), answer.stderr


def test_nothing_in_the_working_directory_is_included_or_imported(python: Any, compute: str, tmp_path: Path) -> None:
    """Headers, a package torch that is none, and modules of the names of ours."""
    ground = tmp_path / "ground"
    ground.mkdir()
    for name in ("math.h", "string", "stdint.h", "new", "kernel_operator.h", "pthread.h", "specs"):
        (ground / name).write_text("#error from the working directory\n")
    for package in ("torch", "torch_npu", "ml_dtypes"):
        (ground / package).mkdir()
        (ground / package / "__init__.py").write_text("raise SystemExit('imported from the working directory')\n")
    for program in ("g++", "cc1plus", "as", "ld"):
        (ground / program).write_text("#!/bin/sh\nexit 1\n")
        (ground / program).chmod(0o755)
    before = sorted(os.listdir(ground))
    answer = python(compute, JITBLAS_CACHE_DIR=tmp_path / "store", cwd=ground)
    assert (answer.stdout, answer.stderr) == ("right\n", "")
    assert sorted(os.listdir(ground)) == before


def test_a_folder_named_torch_is_not_torch(python: Any, compute: str, tmp_path: Path, full_store: Path) -> None:
    (tmp_path / "ground" / "torch").mkdir(parents=True)
    code = "import torch\n" + compute  # a namespace package without anything in it
    answer = python(code, JITBLAS_CACHE_DIR=full_store, cwd=tmp_path / "ground")
    assert (answer.stdout, answer.stderr) == ("right\n", "")


@pytest.mark.parametrize("home", [None, "/", "/etc/hostname", "/nowhere/at all", ""])
def test_the_home_folder_does_not_matter_where_the_cache_is_named(
    python: Any, compute: str, tmp_path: Path, full_store: Path, home: str | None
) -> None:
    settings = {"HOME": home, "XDG_CACHE_HOME": None, "XDG_CONFIG_HOME": None, "JITBLAS_CACHE_DIR": full_store}
    answer = python(compute, **settings)
    assert (answer.stdout, answer.stderr) == ("right\n", "")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["line\nbreak", "quo'te \" and, comma"], ids=["a line break", "quotes and a comma"])
def test_the_folder_of_temporary_files_may_have_any_name(python: Any, compute: str, tmp_path: Path, name: str) -> None:
    """Compilers print it where they tell what they run."""
    (tmp_path / name).mkdir()
    answer = python(compute, JITBLAS_CACHE_DIR=tmp_path / "store", TMPDIR=tmp_path / name, check=False)
    if answer.returncode == 0:
        assert (answer.stdout, answer.stderr) == ("right\n", "")
    else:
        assert answer.stderr.splitlines()[-1].startswith("jitblas.errors."), answer.stderr
