"""Direct hits: they spare a process the long way, and every kind of change sends it there."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import CountingCompiler

CALL = """
import os, sys
import numpy as np
import jitblas
from jitblas.jit import direct
direct.SETTLED = float(os.environ.get("SETTLED", "-10"))  # files made just now count as settled
y = np.ones(100, "f4")
assert (jitblas.axpy_ex(2.0, np.ones(100, "f4"), y) == 3).all()
print("long" if "jitblas.jit.artifacts" in sys.modules else "direct")
"""


@pytest.fixture
def call(python: Any, checkout: Path, compiler: CountingCompiler, tmp_path: Path) -> Callable[..., str]:
    """One process of a checkout of its own; the way that it took."""

    def run(**settings: str) -> str:
        chosen = {"PYTHONPATH": str(checkout), "JITBLAS_CACHE_DIR": str(tmp_path / "store"), **compiler.setting}
        finished = python(CALL, cwd=checkout, **chosen | settings)
        return str(finished.stdout.strip())

    return run


def change(path: Path, old: str, new: str) -> None:
    """Other text of the same length, under the same time: only the file system knows."""
    before = path.stat()
    text = path.read_text()
    assert old in text and len(old) == len(new)
    path.write_text(text.replace(old, new))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_a_second_process_takes_the_direct_way(call: Callable[..., str], compiler: CountingCompiler) -> None:
    assert [call(), call(), call()] == ["long", "direct", "direct"]
    assert len(compiler.compiled) == 2


def test_files_that_have_not_settled_are_not_trusted(call: Callable[..., str]) -> None:
    assert [call(SETTLED="3600"), call(SETTLED="3600"), call()] == ["long", "long", "long"]


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


KINDS: dict[str, tuple[Callable[[Path, Path], None], int]] = {
    "a kernel source edited": (
        lambda checkout, _: change(checkout / "kernels_src/axpy_ex/contiguous.asc", "// y := ", "// Y := "),
        1,
    ),
    "a header of the twin edited": (
        lambda checkout, _: change(checkout / "kernels_src/twin/detail/half.h", "// ", "//-"),
        2,
    ),
    "a header added": (lambda checkout, _: (checkout / "kernels_src/twin/detail/new.h").write_text("// new\n"), 2),
    "a source touched": (lambda checkout, _: os.utime(checkout / "kernels_src/axpy_ex/contiguous.asc"), 0),
    "a flag edited": (lambda checkout, _: edit(checkout / "jitblas/toolchain/gnu.py", '"-O2"', '"-O1"'), 2),
    "the facts edited": (lambda _, store: [edit(m, '"built"', ' "built"') for m in store.rglob("meta.json")], 0),  # type: ignore[dict-item]
    "the object truncated": (lambda _, store: [os.truncate(so, 1000) for so in store.rglob("kernel.so")], 2),  # type: ignore[dict-item]
    "the object deleted": (lambda _, store: [so.unlink() for so in store.rglob("kernel.so")], 2),  # type: ignore[dict-item]
    "a memo emptied": (lambda _, store: [memo.write_text("") for memo in (store / "v1/direct").iterdir()], 0),  # type: ignore[dict-item]
    "a memo of rubbish": (
        lambda _, store: [memo.write_bytes(b"\xff\n\x00") for memo in (store / "v1/direct").iterdir()], 0  # type: ignore[dict-item]
    ),
    "a memo without its last file": (
        lambda _, store: [
            memo.write_text("\n".join(memo.read_text().split("\n")[:-2])) for memo in (store / "v1/direct").iterdir()
        ], 0,  # type: ignore[dict-item]
    ),
    "a pipe for a memo": (
        lambda _, store: [(m.unlink(), os.mkfifo(m)) for m in (store / "v1/direct").iterdir()], 0  # type: ignore[dict-item, func-returns-value]
    ),
    "a memo cut off": (
        lambda _, store: [memo.write_text(memo.read_text()[:-3]) for memo in (store / "v1/direct").iterdir()], 0  # type: ignore[dict-item]
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", list(KINDS))
def test_every_change_leads_the_long_way(
    call: Callable[..., str], compiler: CountingCompiler, checkout: Path, tmp_path: Path, kind: str
) -> None:
    call()
    assert call() == "direct"
    compiler.forget()
    alter, compiles = KINDS[kind]
    alter(checkout, tmp_path / "store")
    assert call() == "long"
    assert len(compiler.compiled) == compiles, kind
    assert call() == "direct"


def test_memos_that_were_exchanged_are_not_believed(
    call: Callable[..., str], compiler: CountingCompiler, tmp_path: Path
) -> None:
    call()
    one, other = sorted((tmp_path / "store/v1/direct").iterdir())
    text = one.read_text(), other.read_text()
    one.write_text(text[1])
    other.write_text(text[0])
    compiler.forget()
    assert call() == "long"
    assert not compiler.compiled


def test_another_environment_or_compiler_leads_the_long_way(
    call: Callable[..., str], compiler_in: Callable[[Path], CountingCompiler], tmp_path: Path
) -> None:
    call()
    assert call() == "direct"
    assert call(JITBLAS_EXTRA_FLAGS="-DNOTHING") == "long"
    assert call(JITBLAS_MARCH="x86-64-v2" if os.uname().machine == "x86_64" else "armv8-a") == "long"
    assert call(CPATH=str(tmp_path)) == "long"
    other = compiler_in(tmp_path / "other")
    assert call(**other.setting) == "long"
    other.path.write_text(other.path.read_text() + "# edited\n")
    assert call(**other.setting) == "long"
    assert call() == "direct"


def test_a_copy_of_a_store_takes_the_long_way_once(call: Callable[..., str], tmp_path: Path) -> None:
    call()
    shutil.copytree(tmp_path / "store", tmp_path / "copy")
    for meta in (tmp_path / "copy").rglob("meta.json"):
        meta.unlink()
    copied = {"JITBLAS_CACHE_DIR": str(tmp_path / "copy")}
    assert [call(**copied), call(**copied)] == ["long", "direct"]


def test_load_and_off_know_no_memos(call: Callable[..., str]) -> None:
    call()
    assert call(JITBLAS_MODE="load") == "long"
    assert call(JITBLAS_MODE="off") == "long"


def test_a_store_that_others_may_write_is_not_believed(call: Callable[..., str], tmp_path: Path) -> None:
    call()
    root = tmp_path / "store/v1"
    root.chmod(0o777)
    assert call() == "long"


def test_an_edit_counts_in_the_same_process_after_reload(kernels: Path) -> None:
    import numpy as np

    import jitblas
    from jitblas.jit import direct

    def result() -> float:
        return float(jitblas.axpy_ex(2.0, np.ones(10, "f4"), np.ones(10, "f4"))[0])

    settled, direct.SETTLED = direct.SETTLED, -10.0
    try:
        assert result() == 3
        source = kernels / "axpy_ex" / "contiguous.asc"
        source.write_text(
            source.read_text().replace("Reg::Axpy(vy, vx, alpha, mask);", "Reg::Adds(vy, vx, alpha, mask);")
        )
        jitblas.reload()
        assert result() == 3.0 and jitblas.axpy_ex(2.0, np.full(10, 5, "f4"), np.ones(10, "f4"))[0] == 7
    finally:
        direct.SETTLED = settled


EDITED_WHILE_RUNNING = """
import os, sys, time
import numpy as np
import jitblas
from jitblas import config
from jitblas.jit import direct
direct.SETTLED = 0.0
jitblas.axpy_ex(2.0, np.ones(100, "f4"), np.ones(100, "f4"))  # all sources are read now
source = os.path.join(config.kernels_folder(), "axpy_ex", "contiguous.asc")
with open(source) as file:
    text = file.read()
assert "Reg::Axpy(vy, vx, alpha" in text
with open(source, "w") as file:
    file.write(text.replace("Reg::Axpy(vy, vx, alpha", "Reg::Adds(vy, vx, alpha"))
time.sleep(0.1)
jitblas.axpy_ex(2.0, np.ones(100, "f2"), np.ones(100, "f2"))  # another kernel of what was read before
"""


def test_a_source_edited_in_a_living_process_is_not_remembered_under_its_old_key(
    python: Any, checkout: Path, compiler: CountingCompiler, tmp_path: Path
) -> None:
    settings = {"PYTHONPATH": str(checkout), "JITBLAS_CACHE_DIR": str(tmp_path / "store"), **compiler.setting}
    python(EDITED_WHILE_RUNNING, cwd=checkout, **settings)
    code = """
import numpy as np
import jitblas
print([float(jitblas.axpy_ex(2.0, np.full(100, 5, t), np.ones(100, t))[0]) for t in ("f4", "f2")])
"""
    assert python(code, cwd=checkout, **settings).stdout.strip() == "[7.0, 7.0]"


def test_hits_of_the_direct_way_are_counted(call: Callable[..., str], python: Any, tmp_path: Path) -> None:
    call()
    started = time.time()
    assert call() == "direct"
    lines = (tmp_path / "store/v1/journal.jsonl").read_text().splitlines()
    used = [facts["used"] for _, facts in map(json.loads, lines) if facts.get("hits") == 1 and facts["used"] >= started]
    assert len(used) == 2
