"""Errors of the file system itself, whatever call they come from: right with one line at most, or one clear error."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.faults.ground import debris, entries, entry_of

BROKEN = """
import builtins, errno, os, sys
name, code, count, cache = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), os.environ["JITBLAS_CACHE_DIR"]
import numpy, jitblas, jitblas.jit.artifacts, jitblas.jit.compiling, tempfile, shutil, subprocess
module = builtins if name == "open" else os
real, failed = getattr(module, name), []
def broken(*arguments, **named):
    places = [os.readlink(f"/proc/self/fd/{arguments[0]}") if name == "fsync" else str(word) for word in arguments[:2]]
    mine = any(place.startswith(cache) for place in places)
    if name == "open" and not any("w" in str(word) for word in (*arguments[1:2], named.get("mode"))):
        mine = False
    if mine and len(failed) < count:
        failed.append(places)
        raise OSError(code, os.strerror(code), places[0])
    return real(*arguments, **named)
setattr(module, name, broken)
"""
"""A function of `os`, or `open` for writing, fails so often in the cache folder."""

QUICK = [
    ("open", errno.ESTALE),
    ("rename", errno.ESTALE),
]
MORE = [
    ("stat", errno.ESTALE),
    ("rename", errno.EBUSY),
    ("mkdir", errno.ESTALE),
    ("unlink", errno.EBUSY),
    ("open", errno.EIO),
    ("replace", errno.EBUSY),
    ("rmdir", errno.EBUSY),
    ("fsync", errno.EIO),
    ("listdir", errno.ESTALE),
    ("scandir", errno.ESTALE),
    ("chmod", errno.EPERM),
    ("lstat", errno.ESTALE),
]


def cases(quick: list[tuple[str, int]], more: list[tuple[str, int]]) -> Any:
    """Those that are always run, and those that `make test-all` runs, too."""
    found = [(case, ()) for case in quick] + [(case, pytest.mark.slow) for case in more]
    marked = [pytest.param(*case, marks=marks, id=f"{case[0]}-{errno.errorcode[case[1]]}") for case, marks in found]
    return pytest.mark.parametrize(("call", "code"), marked)


def check(answer: Any) -> None:
    if answer.returncode == 0:
        assert answer.stdout == "right\n"
        assert len(answer.stderr.splitlines()) <= 1, answer.stderr
    else:
        assert answer.stdout == "" and answer.stderr.splitlines()[-1].startswith("jitblas.errors."), answer.stderr


@cases(QUICK, MORE)
def test_a_call_that_always_fails_is_no_obstacle_to_a_compile(
    python: Any, compute: str, full_store: Path, temporary: Path, call: str, code: int
) -> None:
    shutil.rmtree(entry_of(full_store))
    settings = {"JITBLAS_CACHE_DIR": full_store, "TMPDIR": temporary}
    check(python(BROKEN + compute, call, str(code), "9999", check=False, **settings))
    answer = python(compute, **settings)  # the file system works again
    assert answer.stdout == "right\n" and len(answer.stderr.splitlines()) <= 1


@cases(QUICK[1:2], QUICK[:1] + QUICK[2:] + MORE)
def test_a_call_that_fails_once_is_no_obstacle(
    python: Any, compute: str, full_store: Path, temporary: Path, call: str, code: int
) -> None:
    shutil.rmtree(entry_of(full_store))
    settings = {"JITBLAS_CACHE_DIR": full_store, "TMPDIR": temporary}
    check(python(BROKEN + compute, call, str(code), "1", **settings))


READING = """
import errno, os, sys
code, cache = int(sys.argv[1]), os.environ["JITBLAS_CACHE_DIR"]
import numpy, jitblas, jitblas.jit.artifacts, tempfile, subprocess
real = os.open
def broken(path, flags, *more, **named):
    if str(path).startswith(cache) and str(path).endswith(sys.argv[2]) and not flags & (os.O_WRONLY | os.O_RDWR):
        raise OSError(code, os.strerror(code), path)
    return real(path, flags, *more, **named)
os.open = broken
"""


@pytest.mark.parametrize("name", ["kernel.so", "meta.json"])
@pytest.mark.parametrize("code", [errno.ESTALE, pytest.param(errno.EIO, marks=pytest.mark.slow)], ids=["ESTALE", "EIO"])
def test_an_entry_that_cannot_be_read_is_compiled_again_or_one_clear_error(
    python: Any, compute: str, full_store: Path, temporary: Path, code: int, name: str
) -> None:
    settings = {"JITBLAS_CACHE_DIR": full_store, "TMPDIR": temporary}
    answer = python(READING + compute, str(code), name, check=False, **settings)
    if answer.returncode == 0:
        assert answer.stdout == "right\n"
    else:
        last = answer.stderr.splitlines()[-1]
        assert last.startswith("jitblas.errors."), answer.stderr
    assert python(compute, **settings).stdout == "right\n"
    assert len(entries(full_store)) == 2 and debris(full_store) == []


FLOCK = """
import fcntl, os, sys
def flock(*_):
    raise OSError(int(sys.argv[1]), os.strerror(int(sys.argv[1])))
fcntl.flock = fcntl.lockf = flock
"""


@pytest.mark.parametrize(
    "code",
    [
        errno.ENOSYS,
        *(pytest.param(code, marks=pytest.mark.slow) for code in (errno.ESTALE, errno.EIO, errno.EOPNOTSUPP)),
    ],
    ids=errno.errorcode.get,
)
def test_locks_that_fail_in_any_way_are_done_without(
    python: Any, compute: str, full_store: Path, temporary: Path, code: int
) -> None:
    shutil.rmtree(entry_of(full_store))
    answer = python(FLOCK + compute, str(code), JITBLAS_CACHE_DIR=full_store, TMPDIR=temporary)
    assert (answer.stdout, answer.stderr) == ("right\n", "")
    assert len(entries(full_store)) == 2


@pytest.mark.parametrize(
    "how",
    ["the whole cache, which somebody makes again", pytest.param("its private folder", marks=pytest.mark.slow)],
)
def test_what_is_deleted_in_the_middle_of_a_compile_is_compiled_again(
    python: Any, compute: str, tmp_path: Path, compiler_in: Any, how: str
) -> None:
    """As `jitblas cache clear` and `rm -rf` do in another process, just when the compiler starts."""
    cache, done = tmp_path / "cache", tmp_path / "done"
    delete = {
        "its private folder": f'rm -rf "{cache}"/v1/build-*',
        "the whole cache, which somebody makes again": f'rm -rf "{cache}"; mkdir "{cache}"; mkdir -m 700 "{cache}/v1"',
    }[how]
    compiler = compiler_in(tmp_path / "compiler", f'if [ ! -e "{done}" ]; then touch "{done}"; {delete}; fi')
    answer = python(compute, JITBLAS_CACHE_DIR=cache, **compiler.setting)
    assert answer.stdout == "right\n" and len(answer.stderr.splitlines()) <= 1
    assert len(compiler.compiled) <= 3 and debris(cache) == []
    assert os.path.exists(done)
