"""Entries: verified before they are loaded, rebuilt when they are bad, published whole or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import jitblas
from jitblas.jit import artifacts
from jitblas.store.entry import BadEntry, Key, folder_of, verify
from jitblas.store.folders import root_of
from jitblas.store.store import Store


def entry_of(folder: Path, title: str = "axpy_ex") -> Path:
    """The folder of the entry whose title starts so."""
    metas = [meta for meta in folder.rglob("meta.json") if "quarantine" not in meta.parts]
    return next(meta.parent for meta in metas if json.loads(meta.read_text())["title"].startswith(title))


def change_meta(entry: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    meta = json.loads((entry / "meta.json").read_text())
    change(meta)
    (entry / "meta.json").write_text(json.dumps(meta))


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 4
    path.write_bytes(data)


def forge(entry: Path) -> None:
    """Another kernel's object with digests that agree: only the key in it gives it away."""
    other = entry_of(entry.parents[3], "the host runtime")
    (entry / "kernel.so").write_bytes((other / "kernel.so").read_bytes())
    facts = json.loads((other / "meta.json").read_text())["files"]["kernel.so"]
    change_meta(entry, lambda meta: meta["files"].update({"kernel.so": facts}))


DAMAGE: dict[str, Callable[[Path], Any]] = {
    "a truncated object": lambda entry: os.truncate(entry / "kernel.so", 4096),
    "an empty object": lambda entry: os.truncate(entry / "kernel.so", 0),
    "a flipped bit": lambda entry: flip(entry / "kernel.so", -2000),
    "a flipped bit in the source": lambda entry: flip(entry / "kernel.cpp", 100),
    "a longer object": lambda entry: (entry / "kernel.so").write_bytes((entry / "kernel.so").read_bytes() + b"\0"),
    "no object": lambda entry: (entry / "kernel.so").unlink(),
    "no source": lambda entry: (entry / "kernel.cpp").unlink(),
    "no meta": lambda entry: (entry / "meta.json").unlink(),
    "an empty meta": lambda entry: (entry / "meta.json").write_text(""),
    "a meta cut short": lambda entry: os.truncate(entry / "meta.json", 100),
    "a meta that is a list": lambda entry: (entry / "meta.json").write_text("[]"),
    "a meta that is no text": lambda entry: (entry / "meta.json").write_bytes(b"\xff\xfe\x00"),
    "another key's meta": lambda entry: change_meta(entry, lambda meta: meta.update(how="0" * 64)),
    "another schema": lambda entry: change_meta(entry, lambda meta: meta.update(schema=99)),
    "a meta without files": lambda entry: change_meta(entry, lambda meta: meta.pop("files")),
    "files of another kind": lambda entry: change_meta(entry, lambda meta: meta.update(files={"kernel.so": None})),
    "headers of another kind": lambda entry: change_meta(entry, lambda meta: meta.update(headers=[1, 2])),
    "an object in meta alone": lambda entry: change_meta(entry, lambda meta: meta["files"].pop("kernel.so")),
}


@pytest.mark.parametrize("damage", list(DAMAGE))
def test_a_damaged_entry_is_moved_aside_with_one_line_and_rebuilt(full_store: Path, damage: str) -> None:
    """In this process: what `find` answers; the test below goes the whole way in processes of their own."""
    entry = entry_of(full_store)
    key = Key(entry.parent.name, entry.name)
    store = Store(str(full_store), [])
    assert store.find(key) is not None
    DAMAGE[damage](entry)
    assert store.find(key) is None
    assert not entry.exists()
    assert store.find(key) is None


@pytest.mark.parametrize("damage", ["a truncated object", "a flipped bit", "no meta"])
def test_after_damage_the_result_is_right_and_the_next_process_hits(
    python: Any, compute: str, full_store: Path, damage: str
) -> None:
    entry = entry_of(full_store)
    DAMAGE[damage](entry)
    answer = python(compute, JITBLAS_CACHE_DIR=full_store)
    assert answer.stdout == "right\n"
    assert len(answer.stderr.splitlines()) == 1 and "moved aside" in answer.stderr
    again = python(compute, JITBLAS_CACHE_DIR=full_store, PATH="/nowhere", JITBLAS_MODE="load")
    assert (again.stdout, again.stderr) == ("right\n", "")


def test_an_object_with_another_key_in_it_is_never_used(python: Any, compute: str, full_store: Path) -> None:
    forge(entry_of(full_store))
    answer = python(compute, JITBLAS_CACHE_DIR=full_store, check=False)
    if answer.returncode != 0:  # one clear error is an answer too
        last = answer.stderr.splitlines()[-1]
        assert answer.stdout == "" and "CacheError" in last and "exports the key" in last
    else:
        assert answer.stdout == "right\n" and len(answer.stderr.splitlines()) == 1


def test_a_bad_entry_in_a_read_only_tier_is_a_miss_and_stays(
    python: Any, compute: str, full_store: Path, tmp_path: Path
) -> None:
    entry = entry_of(full_store)
    DAMAGE["a truncated object"](entry)
    settings = {"JITBLAS_CACHE_DIR": tmp_path / "own", "JITBLAS_CACHE_PATH": full_store}
    assert python(compute, **settings).stdout == "right\n"
    assert (entry / "kernel.so").stat().st_size == 4096
    assert entry_of(tmp_path / "own").name == entry.name


def test_an_entry_deleted_between_check_and_load_is_rebuilt(kernels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = kernels / "axpy_ex" / "contiguous.asc"
    path.write_text(path.read_text() + "// an entry of this test's own\n")
    jitblas.reload()
    obtain, deleted = artifacts.obtain, []

    def delete_first(recipe: Any) -> Any:
        entry = obtain(recipe)
        if not deleted:
            deleted.append(entry.key)
            Store.remove(artifacts.store(), entry.key)
        return entry

    monkeypatch.setattr(artifacts, "obtain", delete_first)
    import numpy

    assert jitblas.axpy_ex(2.0, numpy.ones(9, "f4"), numpy.ones(9, "f4")).tolist() == [3.0] * 9
    assert len(deleted) == 1


def test_an_entry_is_three_files_in_folders_of_0700(full_store: Path) -> None:
    entry = entry_of(full_store)
    assert sorted(path.name for path in entry.iterdir()) == ["kernel.cpp", "kernel.so", "meta.json"]
    relative = entry.relative_to(full_store).parts
    assert relative == ("v1", entry.parent.name[:2], entry.parent.name, entry.name)
    assert (full_store / "v1").stat().st_mode & 0o777 == 0o700
    assert not [path for path in (full_store / "v1").iterdir() if path.name.startswith("build-")]


def test_publishing_after_somebody_else_uses_theirs(full_store: Path, tmp_path: Path) -> None:
    entry = entry_of(full_store)
    key = Key(entry.parent.name, entry.name)
    store = Store(str(full_store), [])
    inode = (entry / "kernel.so").stat().st_ino
    with store.private_folder() as folder:
        for name in ("kernel.so", "kernel.cpp", "meta.json"):
            Path(folder, name).write_bytes((entry / name).read_bytes())
        assert store.publish(key, folder).folder == str(entry)
    assert (entry / "kernel.so").stat().st_ino == inode
    DAMAGE["a truncated object"](entry)
    other = Store(str(full_store), [])
    with other.private_folder() as folder:
        good = entry_of(full_store, "the host runtime")
        for name in ("kernel.so", "kernel.cpp"):
            Path(folder, name).write_bytes((good / name).read_bytes())
        meta = json.loads((good / "meta.json").read_text()) | {"what": key.what, "how": key.how}
        Path(folder, "meta.json").write_text(json.dumps(meta))
        assert other.publish(key, folder).folder == str(entry)
    assert verify(root_of(str(full_store)), key) is not None


def test_a_failed_build_leaves_no_folder(full_store: Path) -> None:
    store = Store(str(full_store), [])
    with pytest.raises(ZeroDivisionError), store.private_folder() as folder:
        Path(folder, "kernel.so").write_bytes(b"half")
        raise ZeroDivisionError
    assert not Path(folder).exists()


def test_a_name_in_meta_cannot_lead_out_of_the_entry(full_store: Path) -> None:
    entry = entry_of(full_store)
    key = Key(entry.parent.name, entry.name)
    change_meta(entry, lambda meta: meta["files"].update({"../../../../x": {"size": 1, "sha256": ""}}))
    with pytest.raises(BadEntry):
        verify(root_of(str(full_store)), key)
    assert folder_of(root_of(str(full_store)), key) == str(entry)


# ---- Headers outside our tree ---------------------------------------------------------------------------------------


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A header that every compile includes."""
    header = tmp_path / "outside.h"
    header.write_text("#define OUTSIDE 1\n")
    return header


def test_a_changed_outside_header_means_a_rebuild_and_a_touched_one_does_not(
    python: Any, compute: str, tmp_path: Path, outside: Path, compiler: Any
) -> None:
    settings = {"JITBLAS_CACHE_DIR": tmp_path / "store", **compiler.setting}
    settings["JITBLAS_EXTRA_FLAGS"] = f"-include {outside}"
    assert python(compute, **settings).stdout == "right\n"
    assert len(compiler.compiled) == 2
    os.utime(outside, (1e9, 1e9))
    compiler.forget()
    answer = python(compute, **settings)
    assert (answer.stdout, answer.stderr, compiler.compiled) == ("right\n", "", [])
    outside.write_text("#define OUTSIDE 2\n")
    answer = python(compute, **settings)
    assert answer.stdout == "right\n"
    assert len(compiler.compiled) == 2
    assert answer.stderr.count(str(outside)) == len(answer.stderr.splitlines()) == 2
    compiler.forget()
    assert python(compute, **settings).stderr == "" and compiler.compiled == []


def test_load_mode_does_not_ask_for_headers(python: Any, compute: str, full_store: Path) -> None:
    change_meta(entry_of(full_store), lambda meta: meta["headers"].append(["/gone/header.h", 1, 2, "0" * 64]))
    answer = python(compute, JITBLAS_CACHE_DIR=full_store, JITBLAS_MODE="load")
    assert (answer.stdout, answer.stderr) == ("right\n", "")
    answer = python(compute, JITBLAS_CACHE_DIR=full_store)
    assert answer.stdout == "right\n" and "/gone/header.h" in answer.stderr
