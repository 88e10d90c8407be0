"""Another CPU, another compiler in the old one's place, edited files: new code. Other places and times: a hit."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jitblas.jit import cpu
from tests.conftest import CountingCompiler
from tests.faults.ground import AT_ONCE, entries

FIRST = """
import numpy, jitblas
def first(dtype="f4"):
    return float(jitblas.axpy_ex(2.0, numpy.full(100, 5, dtype), numpy.ones(100, dtype))[0])
"""
"""2 * 5 + 1 = 11, or 2 + 5 = 7 from a kernel whose Axpy became Adds."""


def change(path: Path, old: str, new: str) -> None:
    """Other text of the same length, under the same time."""
    before, text = path.stat(), path.read_text()
    assert old in text and len(old) == len(new)
    path.write_text(text.replace(old, new))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


# ---- Another CPU ----------------------------------------------------------------------------------------------------

WEAK = """
from jitblas.jit import cpu
strong = cpu.features()
cpu.features = lambda: frozenset(name for name in strong if not name.startswith(("avx", "fma", "f16c", "bmi", "abm")))
"""
"""Code that makes this CPU look like one without AVX."""

on_a_strong_cpu = pytest.mark.skipif("avx2" not in cpu.features(), reason="this CPU has no AVX2 to be taken away")

CHOSEN = "print(jitblas.jit.kernels.load(jitblas.specialize('axpy_ex:n=100')).key)"


@pytest.fixture
def two_machines(tmp_path: Path) -> CountingCompiler:
    """A compiler for which -march=native means less on the machine where the file `weak` is beside it."""
    compiler = CountingCompiler(tmp_path / "compiler")
    weak = shlex.quote(str(compiler.path.parent / "weak"))
    less = f'if [ -e {weak} ]; then for word in "$@"; do shift; case $word in -march=native) word=-march=x86-64-v2;; '
    less += 'esac; set -- "$@" "$word"; done; fi\nexec '
    compiler.path.write_text(compiler.path.read_text().replace("exec ", less))
    return compiler


@on_a_strong_cpu
def test_what_another_cpu_compiled_is_never_loaded(python: Any, tmp_path: Path, two_machines: CountingCompiler) -> None:
    """A store on a shared file system: entries, memos of the compiler and direct hits are all the other machine's."""
    code = AT_ONCE + FIRST + "print(first())\n" + CHOSEN
    settings = {"JITBLAS_CACHE_DIR": tmp_path / "store", **two_machines.setting}
    strong = python(code, **settings).stdout
    assert len(two_machines.compiled) == 2
    (two_machines.path.parent / "weak").touch()
    answer = python(WEAK + code, **settings)
    weak = answer.stdout
    assert weak.startswith("11.0\n") and answer.stderr == ""
    assert weak != strong and len(two_machines.compiled) == 4
    assert python(WEAK + code, **settings).stdout == weak
    (two_machines.path.parent / "weak").unlink()
    assert python(code, **settings).stdout == strong
    assert len(two_machines.compiled) == 4


@on_a_strong_cpu
def test_where_nothing_is_compiled_what_another_cpu_compiled_is_not_loaded_either(
    python: Any, compute: str, full_store: Path
) -> None:
    settings = {"JITBLAS_CACHE_DIR": full_store, "JITBLAS_MODE": "load"}
    answer = python(WEAK + compute, check=False, **settings)
    assert (answer.returncode, answer.stdout) == (1, "")
    lines = answer.stderr.splitlines()
    assert "needs instructions that this CPU lacks" in lines[0] and "MissingKernelError" in lines[-1]
    without = {**settings, "JITBLAS_MODE": "on", "PATH": "/nowhere", "JITBLAS_CXX": "/nowhere/g++"}
    answer = python(WEAK + compute, check=False, **without)
    assert (answer.returncode, answer.stdout) == (1, "") and "CompilerNotFound" in answer.stderr


# ---- Another compiler -----------------------------------------------------------------------------------------------


def in_place(path: Path, text: str) -> None:
    path.write_text(text)


def renamed_over(path: Path, text: str) -> None:
    other = path.with_name("other")
    other.write_text(text)
    other.chmod(0o755)
    other.rename(path)


@pytest.mark.parametrize("replace", [in_place, pytest.param(renamed_over, marks=pytest.mark.slow)])
def test_a_compiler_replaced_by_one_of_the_same_size_and_time_is_another_compiler(
    python: Any, tmp_path: Path, compiler: CountingCompiler, replace: Callable[[Path, str], None]
) -> None:
    """Such as a package manager leaves, that gives all files of a release one time: inode or ctime tell them apart."""
    text = compiler.path.read_text() + "# release 1\n"
    compiler.path.write_text(text)
    os.utime(compiler.path, (1e9, 1e9))
    code = AT_ONCE + FIRST + "print(first())\n" + CHOSEN
    settings = {"JITBLAS_CACHE_DIR": tmp_path / "store", **compiler.setting}
    before = python(code, **settings).stdout
    replace(compiler.path, text.replace("release 1", "release 2"))
    os.utime(compiler.path, (1e9, 1e9))
    after = python(code, **settings).stdout
    assert after.startswith("11.0\n") and after != before
    assert len(compiler.compiled) == 4


@pytest.fixture
def ccache(tmp_path: Path) -> Path:
    """A folder with a program `ccache` that notes each start and runs its arguments."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "ccache").write_text(f'#!/bin/sh\necho "$*" >>{shlex.quote(str(folder / "log"))}\nexec "$@"\n')
    (folder / "ccache").chmod(0o755)
    return folder


@pytest.mark.parametrize("variable", ["CXX", pytest.param("JITBLAS_CXX", marks=pytest.mark.slow)])
def test_a_compiler_behind_ccache_works_and_its_kernels_are_found_again(
    python: Any, compute: str, tmp_path: Path, ccache: Path, compiler: CountingCompiler, variable: str
) -> None:
    path = f"{ccache}:{compiler.path.parent}:{os.environ['PATH']}"
    settings = {"JITBLAS_CACHE_DIR": tmp_path / "store", "PATH": path, "CXX": None, "JITBLAS_CXX": None}
    settings[variable] = "ccache g++"
    for _ in range(2):
        answer = python(compute, **settings)
        assert (answer.stdout, answer.stderr, len(compiler.compiled)) == ("right\n", "", 2)
    log = (ccache / "log").read_text()
    assert log.count("-DJITBLAS_KEY=") == 2 and "--version" in log


def test_another_compiler_behind_the_same_ccache_is_another_compiler(
    python: Any, tmp_path: Path, ccache: Path, compiler: CountingCompiler
) -> None:
    path = f"{ccache}:{compiler.path.parent}:{os.environ['PATH']}"
    settings = {"JITBLAS_CACHE_DIR": tmp_path / "store", "PATH": path, "CXX": "ccache g++", "JITBLAS_CXX": None}
    code = AT_ONCE + FIRST + "print(first())\n" + CHOSEN
    before = python(code, **settings).stdout
    compiler.path.write_text(compiler.path.read_text() + "# another release\n")
    after = python(code, **settings).stdout
    assert after.startswith("11.0\n") and after != before and len(compiler.compiled) == 4


SURROUNDINGS = """
for word in "$@"; do last=$word; done
{ pwd; ls -A | wc -l; echo "$LC_ALL"; ps -o pid= -o pgid= -p $$ 2>/dev/null || echo 1 1; } >>"$(dirname "$0")/seen"
"""


@pytest.mark.slow
def test_the_compiler_runs_in_an_empty_folder_in_the_c_locale_and_in_a_group_of_its_own(
    python: Any, compute: str, tmp_path: Path, compiler_in: Any
) -> None:
    compiler = compiler_in(tmp_path / "compiler", SURROUNDINGS)
    settings = {"JITBLAS_CACHE_DIR": tmp_path / "store", "LC_ALL": "de_DE.UTF-8", **compiler.setting}
    python(compute, cwd=tmp_path, **settings)
    folder, count, locale, group = (compiler.path.parent / "seen").read_text().splitlines()[:4]
    assert not Path(folder).exists() and count == "0" and locale == "C"
    assert len(set(group.split())) == 1


# ---- Edited headers and sources -------------------------------------------------------------------------------------


@pytest.fixture
def outside(tmp_path: Path, checkout: Path) -> Path:
    """A header outside the checkout that its axpy_ex adds to alpha."""
    path = checkout / "kernels_src" / "axpy_ex" / "contiguous.asc"
    text = path.read_text()
    assert "alpha_ = tiling.alpha;" in text
    path.write_text(text.replace("alpha_ = tiling.alpha;", "alpha_ = tiling.alpha + EXTRA;"))
    header = tmp_path / "outside.h"
    header.write_text("#define EXTRA 0\n")
    os.utime(header, (1e9, 1e9))
    return header


TIMES: dict[str, float] = {"an older time": 5e8, "a newer time": 1.5e9, "its old time": 1e9}


@pytest.mark.parametrize(
    "case", ["an older time", "its old time", pytest.param("a newer time", marks=pytest.mark.slow)]
)
def test_an_edited_header_of_the_system_counts_whatever_its_time_and_size_say(
    python: Any, tmp_path: Path, checkout: Path, outside: Path, case: str
) -> None:
    settings = {"JITBLAS_CACHE_DIR": tmp_path / "store", "PYTHONPATH": checkout}
    settings["JITBLAS_EXTRA_FLAGS"] = f"-include {outside}"
    code = AT_ONCE + FIRST + "print(first())"
    assert python(code, cwd=checkout, **settings).stdout == "11.0\n"
    outside.write_text("#define EXTRA 1\n")
    os.utime(outside, (TIMES[case], TIMES[case]))
    assert python(code, cwd=checkout, **settings).stdout == "16.0\n"


def test_a_header_edited_under_a_running_process_counts_after_reload(
    python: Any, tmp_path: Path, checkout: Path, outside: Path
) -> None:
    """The key is the same and so is the entry's path: what was loaded from there before must not be handed out."""
    settings = {"JITBLAS_CACHE_DIR": tmp_path / "store", "PYTHONPATH": checkout}
    settings["JITBLAS_EXTRA_FLAGS"] = f"-include {outside}"
    code = f"""{FIRST}
print(first())
with open({str(outside)!r}, "w") as file:
    file.write("#define EXTRA 100\\n")
jitblas.reload()
print(first())
"""
    assert python(code, cwd=checkout, **settings).stdout == "11.0\n511.0\n"
    assert python(FIRST + "print(first())", cwd=checkout, **settings).stdout == "511.0\n"


def test_an_edited_kernel_source_runs_the_new_code_in_a_new_process(
    python: Any, tmp_path: Path, checkout: Path, compiler: CountingCompiler
) -> None:
    """Of the same size, under the same time; going back to the old text finds the old kernel."""
    settings = {"JITBLAS_CACHE_DIR": tmp_path / "store", "PYTHONPATH": checkout, **compiler.setting}
    source = checkout / "kernels_src" / "axpy_ex" / "contiguous.asc"
    code = AT_ONCE + FIRST + "print(first())"
    texts = ["Reg::Axpy(vy, vx, alpha, mask);", "Reg::Adds(vy, vx, alpha, mask);"]
    for expected, compiled in (("11.0\n", 2), ("7.0\n", 3), ("11.0\n", 3)):
        answer = python(code, cwd=checkout, **settings)
        assert (answer.stdout, answer.stderr, len(compiler.compiled)) == (expected, "", compiled)
        change(source, *texts)
        texts.reverse()


@pytest.mark.slow
def test_an_edited_kernel_source_runs_the_new_code_in_the_same_process_after_reload(
    python: Any, tmp_path: Path, checkout: Path
) -> None:
    source = str(checkout / "kernels_src" / "axpy_ex" / "contiguous.asc")
    code = f"""{FIRST}
def edit(old, new):
    with open({source!r}) as file: text = file.read()
    assert old in text
    with open({source!r}, "w") as file: file.write(text.replace(old, new))
print(first(), first("f2"))
edit("Reg::Axpy(vy, vx, alpha, mask);", "Reg::Adds(vy, vx, alpha, mask);")
print(first(), first("f2"))
jitblas.reload()
print(first(), first("f2"))
edit("Reg::Adds(vy, vx, alpha, mask);", "Reg::Axpy(vy, vx, alpha, mask);")
jitblas.reload()
print(first(), first("f2"))
"""
    answer = python(code, cwd=checkout, PYTHONPATH=checkout, JITBLAS_CACHE_DIR=tmp_path / "store")
    assert answer.stdout == "11.0 11.0\n11.0 11.0\n7.0 7.0\n11.0 11.0\n"
    assert answer.stderr == ""


# ---- What does not matter -------------------------------------------------------------------------------------------


def test_a_moved_checkout_and_a_moved_store_are_hits(
    python: Any, compute: str, tmp_path: Path, checkout: Path, compiler: CountingCompiler
) -> None:
    settings = {"JITBLAS_CACHE_DIR": tmp_path / "store", **compiler.setting}
    code = AT_ONCE + compute
    assert python(code, PYTHONPATH=checkout, cwd=checkout, **settings).stdout == "right\n"
    assert len(compiler.compiled) == 2
    moved = checkout.rename(tmp_path / "elsewhere")
    for path in moved.rglob("*.*"):
        os.utime(path, (1e9, 1e9))
    (tmp_path / "store").rename(tmp_path / "another store")
    settings["JITBLAS_CACHE_DIR"] = tmp_path / "another store"
    for seed in ("0", "1", "4242"):
        answer = python(code, PYTHONPATH=moved, cwd=moved, PYTHONHASHSEED=seed, **settings)
        assert (answer.stdout, answer.stderr, len(compiler.compiled)) == ("right\n", "", 2)
    assert len(entries(tmp_path / "another store")) == 2
