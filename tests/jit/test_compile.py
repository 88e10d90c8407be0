"""Compiling: errors that show the source, remembered or not as they deserve; edited sources; flags that are refused."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jitblas
from jitblas import Status, aclblas
from jitblas.jit import compiling
from jitblas.toolchain.base import Finished

SOURCE = "axpy_ex/contiguous.asc"


def result() -> float:
    return float(jitblas.axpy_ex(2.0, np.ones(100, "f4"), np.ones(100, "f4"))[7])


def break_source(kernels: Path) -> int:
    """Put an error into the kernel; its line."""
    path = kernels / SOURCE
    lines = path.read_text().splitlines()
    lines.insert(20, "#error broken on purpose")
    path.write_text("\n".join(lines) + "\n")
    return 21


@pytest.fixture
def compiles(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Grows by one argv at each compile."""
    seen: list[Any] = []
    original = compiling.run

    def run(argv: Any, **options: Any) -> Finished:
        seen.append(argv)
        return original(argv, **options)

    monkeypatch.setattr(compiling, "run", run)
    return seen


def test_a_broken_kernel_raises_with_command_output_and_numbered_source(kernels: Path) -> None:
    line = break_source(kernels)
    jitblas.reload()
    with pytest.raises(jitblas.CompileError) as caught:
        result()
    error = caught.value
    assert "broken on purpose" in str(error)
    assert error.command[-1].endswith("kernel.so") and error.returncode == 1
    assert "broken on purpose" in error.output and f"contiguous.asc:{line}" in error.output
    dump = error.dump()
    assert error.command[0] in dump.splitlines()[0]
    numbered = error.source.splitlines().index("#error broken on purpose") + 1
    assert f"{numbered:5d}  #error broken on purpose" in dump.splitlines()
    assert len(error.key) == 129


def test_a_compile_error_is_remembered_until_reload(kernels: Path, compiles: list[Any]) -> None:
    original = (kernels / SOURCE).read_text()
    break_source(kernels)
    jitblas.reload()
    for _ in range(3):
        with pytest.raises(jitblas.CompileError):
            result()
    with jitblas.Handle("host") as handle:
        x = np.ones(100, "f4")
        status = aclblas.aclblasAxpyEx(handle, 100, np.ones(1, "f4"), 0, x, 0, 1, x.copy(), 0, 1, 0)
        assert status == Status.INTERNAL_ERROR
        assert "broken on purpose" in jitblas.last_error()
    assert len(compiles) == 1
    (kernels / SOURCE).write_text(original)
    with pytest.raises(jitblas.CompileError):
        result()
    jitblas.reload()
    assert result() == 3.0


def test_threads_that_wait_for_one_compile_share_its_error(kernels: Path, compiles: list[Any]) -> None:
    break_source(kernels)
    jitblas.reload()
    errors: list[str] = []

    def attempt() -> None:
        try:
            result()
        except jitblas.CompileError as error:
            errors.append(error.dump())

    threads = [threading.Thread(target=attempt) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(errors) == 8 and len(set(errors)) == 1
    assert len(compiles) == 1


PASSING: dict[str, Callable[[], Finished]] = {
    "a signal": lambda: Finished(-9, ""),
    "a timeout": lambda: Finished(None, ""),
    "a full disk": lambda: Finished(1, "/tmp/ccXYZ.s: fatal error: No space left on device"),
}


@pytest.mark.parametrize("trouble", list(PASSING))
def test_what_may_pass_is_not_remembered(kernels: Path, monkeypatch: pytest.MonkeyPatch, trouble: str) -> None:
    path = kernels / SOURCE
    path.write_text(f"{path.read_text()}// compiled afresh: {trouble}\n")
    jitblas.reload()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiling, "run", lambda *_, **__: PASSING[trouble]())
        with pytest.raises(jitblas.Error):
            result()
    assert result() == 3.0


def test_reload_sees_an_edited_source(kernels: Path) -> None:
    assert result() == 3.0
    path = kernels / SOURCE
    original = path.read_text()
    path.write_text(original.replace("alpha_ = tiling.alpha;", "alpha_ = 2 * tiling.alpha;"))
    assert path.read_text() != original
    assert result() == 3.0
    jitblas.reload()
    assert result() == 5.0
    path.write_text(original)
    jitblas.reload()
    assert result() == 3.0


def test_running_plans_keep_the_kernel_they_have(kernels: Path) -> None:
    planned = jitblas.plan("axpy_ex:n=100")
    break_source(kernels)
    jitblas.reload()
    assert planned(2.0, np.ones(100, "f4"), np.ones(100, "f4"))[0] == 3.0


EDITED = """
import pathlib, sys
import numpy as np
import jitblas
from jitblas import config
kernels = pathlib.Path(sys.argv[1])
config.kernels_folder = lambda: str(kernels)
def result(dtype):
    return float(jitblas.axpy_ex(2.0, np.ones(100, dtype), np.ones(100, dtype))[0])
assert result("f4") == 3
header = kernels / "twin" / "detail" / "reg.h"
text = header.read_text()
before, axpy, after = text.partition("void Axpy(RegTensor<R>&")
edited = before + axpy + after.replace("destination.chunk[i]);", "destination.chunk[i] + 1.0f);", 1)
assert edited != text
header.write_text(edited)
result("f2")  # whatever it computes: the sources changed under a running process
header.write_text(text)
jitblas.reload()
print(result("f4"), result("f2"))
"""


def test_sources_edited_under_a_running_process_never_enter_the_store_under_the_old_key(
    python: Any, checkout: Path, tmp_path: Path
) -> None:
    folder = str(checkout / "kernels_src")
    assert python(EDITED, folder, JITBLAS_CACHE_DIR=tmp_path / "store").stdout == "3.0 3.0\n"


REFUSED = ["-ffast-math", "-Ofast", "-funsafe-math-optimizations", "-ffinite-math-only", "-fassociative-math"]
REFUSED += ["-freciprocal-math", "-ffp-contract=fast", "-fno-signed-zeros", "-ffp-contract=on", "-mdaz-ftz"]


@pytest.mark.parametrize("flag", REFUSED)
def test_flags_that_change_rounding_are_refused(monkeypatch: pytest.MonkeyPatch, flag: str) -> None:
    monkeypatch.setenv("JITBLAS_EXTRA_FLAGS", f"-O2 {flag}")
    with pytest.raises(jitblas.Error, match=flag):
        jitblas.specialize("axpy_ex:n=5", "host").key  # noqa: B018


@pytest.mark.parametrize("variable", ["JITBLAS_CXX", "CXX"])
def test_the_compiler_s_own_command_may_not_bring_them_either(python: Any, variable: str, tmp_path: Path) -> None:
    code = "import jitblas; print(' '.join(jitblas.specialize('axpy_ex:n=5', 'host').command))"
    settings = {"JITBLAS_CXX": None, variable: "g++ -ffast-math", "JITBLAS_CACHE_DIR": tmp_path}
    answer = python(code, check=False, **settings)
    assert answer.returncode != 0 or "-ffast-math" not in answer.stdout


def test_extra_flags_reach_the_compiler(monkeypatch: pytest.MonkeyPatch, kernels: Path) -> None:
    path = kernels / SOURCE
    text = path.read_text().replace("alpha_ = tiling.alpha;", "alpha_ = tiling.alpha + EXTRA;")
    path.write_text(text)
    monkeypatch.setenv("JITBLAS_EXTRA_FLAGS", "-DEXTRA=3")
    jitblas.reload()
    assert result() == 6.0


def test_the_command_is_an_argv_list_with_no_word_of_this_process(full_store: Path) -> None:
    command = jitblas.specialize("axpy_ex:n=5", "host").command
    assert "-ffp-contract=off" in command
    assert not any(word in command for word in REFUSED)
    assert command[-2:] == ["-o", "kernel.so"]
    assert any(word.startswith("-DJITBLAS_KEY=") for word in command)


FOLDERS = ["-dash and space 'quo\"tes", "semi;colon & star* ünï — code #", "$HOME $$ `pwd`", "back\\slash"]


@pytest.mark.parametrize("name", FOLDERS)
def test_no_character_in_a_path_means_anything(python: Any, compute: str, tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    answer = python(compute, JITBLAS_CACHE_DIR=folder, TMPDIR=folder, cwd=folder)
    assert (answer.stdout, answer.stderr) == ("right\n", "")
    assert len(list(folder.rglob("kernel.so"))) == 2
    assert python(compute, JITBLAS_CACHE_DIR=folder, PATH="/nowhere", JITBLAS_MODE="load").stdout == "right\n"


def test_a_compiler_with_arguments_and_a_space_in_its_path(
    python: Any, compute: str, compiler_in: Any, tmp_path: Path
) -> None:
    spaced = compiler_in(tmp_path / "a folder")
    command = f"{spaced.setting['JITBLAS_CXX']} -pipe"
    answer = python(compute, JITBLAS_CACHE_DIR=tmp_path / "store", JITBLAS_CXX=command)
    assert (answer.stdout, answer.stderr, len(spaced.compiled)) == ("right\n", "", 2)


def test_the_working_directory_is_never_included(python: Any, compute: str, tmp_path: Path) -> None:
    for name in ("stdint.h", "math.h", "string", "stdlib.h", "pthread.h", "kernel_operator.h"):
        (tmp_path / name).write_text("#error from the working directory\n")
    answer = python(compute, JITBLAS_CACHE_DIR=tmp_path / "store", cwd=tmp_path)
    assert (answer.stdout, answer.stderr) == ("right\n", "")


@pytest.mark.parametrize("delay", [0.05, 0.15, 0.25])
def test_an_interrupt_during_a_compile_is_a_keyboard_interrupt(python: Any, tmp_path: Path, delay: float) -> None:
    """Also when the compiler ends while it is being waited for, and the next call works."""
    python(
        f"""
import os, signal, threading, numpy as np, jitblas
x, y = np.ones(9, "float32"), np.ones(9, "float32")
jitblas.axpy_ex(1.0, x[:3], y[:3])  # runtime and compiler are known
threading.Timer({delay}, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    for _ in range(3):
        jitblas.axpy_ex(1.0, x.astype("float16"), y.astype("float16"))
        jitblas.reload()
        os.environ["JITBLAS_EXTRA_FLAGS"] = f"-DUNIQUE_NAME={{os.urandom(4).hex()}}"
        jitblas.axpy_ex(1.0, x[::2], y[::2])
    signal.pause()
except KeyboardInterrupt:
    pass
jitblas.axpy_ex(1.0, x.astype("float16"), y.astype("float16"))
""",
        JITBLAS_CACHE_DIR=tmp_path / "cache",
    )


@pytest.mark.parametrize("flag", ["--fast-math", "--optimize=fast", "--unsafe-math-optimizations", "@flags"])
def test_other_spellings_of_flags_that_change_rounding_are_refused(monkeypatch: pytest.MonkeyPatch, flag: str) -> None:
    monkeypatch.setenv("JITBLAS_EXTRA_FLAGS", f"-DNDEBUG {flag}")
    jitblas.reload()
    with pytest.raises(jitblas.Error, match="changes rounding"):
        result()
