"""Keys: the same wherever and whenever the same is compiled in the same way, another as soon as anything differs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import jitblas
from jitblas.jit import artifacts, keys, libraries
from jitblas.jit.specialization import Specialization

LINE = "axpy_ex:n=100,dtype=fp16"
KEY = f"import jitblas; print(jitblas.specialize({LINE!r}).key)"
PROJECT = Path(__file__).resolve().parent.parent.parent


def what(line: str = LINE, **options: Any) -> str:
    jitblas.reload()
    return jitblas.specialize(line, "host", **options).what


def how() -> str:
    jitblas.reload()
    return jitblas.specialize(LINE, "host").recipe.key().how


@pytest.fixture(autouse=True)
def forget_compilers() -> Iterator[None]:
    yield
    jitblas.reload()


def test_another_hash_seed_gives_the_same_key(python: Any) -> None:
    assert len({python(KEY, PYTHONHASHSEED=seed).stdout for seed in ("0", "1", "4242")}) == 1


def test_a_moved_and_touched_checkout_gives_the_same_key(python: Any, checkout: Path) -> None:
    here = python(KEY).stdout
    there = python(f"{KEY}; import sys; print(jitblas.__file__, file=sys.stderr)", PYTHONPATH=checkout, cwd=checkout)
    assert str(checkout) in there.stderr
    assert there.stdout == here
    for path in checkout.rglob("*.*"):
        os.utime(path, (1e9, 1e9))
    assert python(KEY, PYTHONPATH=checkout, cwd="/").stdout == here


def test_what_is_compiled_holds_no_path_of_the_checkout(full_store: Path) -> None:
    objects = list(full_store.rglob("kernel.so"))
    assert len(objects) == 2
    for path in objects:
        data = path.read_bytes()
        assert str(PROJECT).encode() not in data
        assert str(full_store.parent).encode() not in data


@pytest.mark.parametrize(
    "name",
    [
        "axpy_ex/contiguous.asc",
        "common/kernel_common.h",
        "twin/kernel_operator.h",
        "twin/detail/half.h",
        "twin/detail/abi.h",
        "twin/simt_api/asc_simt.h",
    ],
)
def test_a_changed_byte_of_any_source_used_gives_another_key(kernels: Path, name: str) -> None:
    before = what()
    path = kernels / name
    path.write_text(path.read_text() + "\n")
    assert what() != before
    path.write_text(path.read_text()[:-1])
    assert what() == before


def test_a_new_or_renamed_header_gives_another_key(kernels: Path) -> None:
    before = what()
    (kernels / "common" / "more.h").write_text("")
    added = what()
    (kernels / "common" / "more.h").rename(kernels / "common" / "other.h")
    assert len({before, added, what()}) == 3


def test_what_no_kernel_reads_does_not_matter(kernels: Path) -> None:
    before = what()
    (kernels / "axpy_ex" / "README.md").write_text("about")
    (kernels / "axpy_ex" / ".contiguous.asc.swp").write_text("an editor's")
    (kernels / "another_operator").mkdir()
    (kernels / "another_operator" / "kernel.asc").write_text("int x;")
    assert what() == before


def test_the_runtime_has_a_key_of_its_own_sources(kernels: Path) -> None:
    before = libraries.recipe_of(libraries.RUNTIME).what, what()
    path = kernels / "axpy_ex" / "strided.asc"
    path.write_text(path.read_text() + "\n")
    jitblas.reload()
    assert libraries.recipe_of(libraries.RUNTIME).what == before[0]
    path = kernels / "twin" / "runtime" / "runtime.cpp"
    path.write_text(path.read_text() + "\n")
    jitblas.reload()
    assert libraries.recipe_of(libraries.RUNTIME).what != before[0]


def test_sizes_of_one_class_share_a_key_and_classes_do_not() -> None:
    one = what("axpy_ex:n=100")
    assert what("axpy_ex:n=12345,alpha=3") == one
    others = {
        one,
        what("axpy_ex:n=100,dtype=bf16"),
        what("axpy_ex:n=100,incx=2"),
        what("axpy_ex:n=100,scalar=device"),
        what("axpy_ex:n=100", exact=True),
        what("axpy_ex:n=101", exact=True),
        what("axpy_ex:n=100", profile="ascend950pr"),
        jitblas.specialize("axpy_ex:n=100", "ascend950pr").what,
    }
    assert len(others) == 8
    assert what("axpy_ex:n=100,incx=2") == what("axpy_ex:n=7,incx=-5,incy=3")


def test_what_needs_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(target: str) -> None:
        raise AssertionError("a compiler was asked for")

    monkeypatch.setattr(artifacts, "find_toolchain", refuse)
    assert len(jitblas.specialize(LINE, "host").what) == 64


@pytest.mark.parametrize(
    "change",
    [
        {"JITBLAS_EXTRA_FLAGS": "-O1"},
        {"JITBLAS_EXTRA_FLAGS": "-DX=1 -DY=2"},
        {"JITBLAS_MARCH": "x86-64"},
        {"CPATH": "/nowhere"},
        {"GCC_EXEC_PREFIX": "/nowhere/"},
    ],
    ids=str,
)
def test_other_flags_and_what_compilers_read_give_another_key(
    monkeypatch: pytest.MonkeyPatch, change: dict[str, str]
) -> None:
    before = how()
    for name, value in change.items():
        monkeypatch.setenv(name, value)
    try:
        assert how() != before
    except jitblas.CompilerNotFound:
        pytest.skip("no compiler works with that setting")
    for name in change:
        monkeypatch.delenv(name)
    assert how() == before


def test_the_order_of_flags_counts_and_where_one_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    found = set()
    for flags in ("-DA -DB", "-DB -DA", "-DA-DB", "'-DA -DB'"):
        monkeypatch.setenv("JITBLAS_EXTRA_FLAGS", flags)
        found.add(how())
    assert len(found) == 4


def test_other_variables_do_not_matter(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    before = how()
    for name in ("LANG", "LC_ALL", "EDITOR", "JITBLAS_THREADS", "JITBLAS_VERBOSE"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert how() == before


def test_another_version_text_of_the_compiler_gives_another_key(monkeypatch: pytest.MonkeyPatch, compiler: Any) -> None:
    """The same file, the same flags: only what it says about itself changes."""
    script = compiler.path.read_text()
    version = compiler.path.parent / "version"
    answer = f'[ "$*" = --version ] && exec cat "{version}"'
    compiler.path.write_text(script.replace("#!/bin/sh\n", f"#!/bin/sh\n{answer}\n"))
    monkeypatch.setattr(artifacts, "store", lambda: jitblas_store(compiler.path.parent / "memos"))
    monkeypatch.setenv("JITBLAS_CXX", compiler.setting["JITBLAS_CXX"])
    found = []
    for text in ("g++ (Somebody's) 12.2.0", "g++ (Somebody's) 12.3.0", "g++ (Somebody's) 12.2.0"):
        version.write_text(text)
        shutil.rmtree(compiler.path.parent / "memos", ignore_errors=True)
        found.append(how())
    assert found[0] == found[2] != found[1]


def jitblas_store(folder: Path) -> Any:
    from jitblas.store.store import Store

    return Store(str(folder), [])


def test_a_replaced_compiler_is_noticed_by_a_new_process(python: Any, compiler: Any) -> None:
    before = python(KEY, **compiler.setting).stdout
    compiler.path.write_text(compiler.path.read_text() + "# another release\n")
    assert python(KEY, **compiler.setting).stdout != before


def test_labels_and_values_cannot_run_into_each_other() -> None:
    texts: list[Callable[[], str]] = [
        lambda: keys.digest([("a", "bc")]),
        lambda: keys.digest([("ab", "c")]),
        lambda: keys.digest([("a", "b"), ("c", "")]),
        lambda: keys.digest([("a", "b"), ("", "c")]),
        lambda: keys.digest([]),
    ]
    assert len({text() for text in texts}) == len(texts)


def test_a_key_names_its_folder() -> None:
    specialization: Specialization = jitblas.specialize(LINE, "host")
    first, _, second = specialization.key.partition("/")
    assert (first, len(second)) == (specialization.what, 64)
