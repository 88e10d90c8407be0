"""Kernels that must not run: built for another chip, or not built at all."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.ascend.conftest import Scenario
from tests.ascend.test_kernels import AXPY, RIGHT, WATCHED, entries, runs

MARKING = """
#include <stdio.h>
#include <stdlib.h>
__attribute__((used, section(".device_image"))) static const unsigned char image[64] = {
    0x7f, 'E', 'L', 'F', 2, 1, 1, [16] = 2, [18] = 0x29, [19] = 0x10, [20] = 1, [50] = FLAGS, [52] = 64};
__attribute__((constructor)) static void mark(void) {
    FILE *file = fopen(getenv("MARK"), "w");
    fclose(file);
}
__attribute__((visibility("default"))) const char *jitblas_key(void) { return KEY; }
int launch(void) { return 0; }
int launch_packed(void) { return 0; }
"""
ARCH_MISMATCH = """
try:
    jitblas.axpy_ex(2.0, x, y)
except jitblas.ArchMismatch as error:
    assert error.status is Status.ARCH_MISMATCH
    message = str(error)
else:
    raise AssertionError("no error")
assert (y == 1).all()
assert "910 family" in message and "0x930000" in message and "0x990000" in message, message
assert opened and not [path for path in opened if "kernel.so" in path], opened
"""


def test_a_fresh_kernel_for_another_chip_is_refused_before_it_is_opened(scenario: Scenario, empty_store: str) -> None:
    settings = {"JITBLAS_CACHE_DIR": empty_store}
    scenario('jitblas.specialize("axpy_ex:n=5").key', **settings)  # finds a compiler that is right
    scenario(WATCHED + AXPY + ARCH_MISMATCH, STANDIN_BISHENG_FLAGS="0x930000", **settings)
    assert not entries(empty_store)
    scenario(AXPY + RIGHT, **settings)


@pytest.mark.parametrize("flags", ["0x930000", "0x9a0000", "0"])
def test_a_compiler_for_another_chip_does_not_count(scenario: Scenario, empty_store: str, flags: str) -> None:
    code = """
        try:
            jitblas.axpy_ex(2.0, x, y)
        except jitblas.CompilerNotFound as error:
            ((name, reason),) = error.tried
            assert "bisheng" in name and "not for this chip" in reason, error.tried
        else:
            raise AssertionError("no error")
        assert (y == 1).all()
    """
    code = AXPY + code.replace("\n        ", "\n")
    scenario(code, JITBLAS_CACHE_DIR=empty_store, STANDIN_BISHENG_FLAGS=flags)


@pytest.mark.parametrize("mode", ["on", "load"])
def test_a_stored_kernel_for_another_chip_is_refused_before_it_is_opened(
    scenario: Scenario, empty_store: str, tmp_path: Path, mode: str
) -> None:
    settings = {"JITBLAS_CACHE_DIR": empty_store, "JITBLAS_MODE": mode, "MARK": str(tmp_path / "mark")}
    scenario(AXPY + RIGHT, **{**settings, "JITBLAS_MODE": "on"})
    (folder,) = entries(empty_store)

    def swap(flags: int) -> None:
        """Another object takes the kernel's place, together with the digests of meta.json."""
        (tmp_path / "marking.c").write_text(MARKING)
        key = f'"{folder.parent.name}/{folder.name}"'
        argv = ["cc", "-shared", "-fPIC", f"-DFLAGS={flags >> 16}", f"-DKEY={key}", "marking.c", "-o", "marking.so"]
        subprocess.run(argv, cwd=tmp_path, check=True)
        data = (tmp_path / "marking.so").read_bytes()
        (folder / "kernel.so").write_bytes(data)
        meta = json.loads((folder / "meta.json").read_text())
        meta["files"]["kernel.so"] = {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        (folder / "meta.json").write_text(json.dumps(meta))

    swap(0x930000)
    scenario(WATCHED + AXPY + ARCH_MISMATCH, **settings)
    assert not (tmp_path / "mark").exists()
    # The same object with the flags of this chip is opened: the mark does show that.
    shutil.rmtree(folder.parent.parent)
    scenario(AXPY + RIGHT, **{**settings, "JITBLAS_MODE": "on"})
    swap(0x990000)
    scenario(AXPY + "jitblas.axpy_ex(2.0, x, y)", **settings)
    assert (tmp_path / "mark").exists()


def test_a_damaged_stored_kernel_is_compiled_anew(scenario: Scenario, empty_store: str, compiler_log: Path) -> None:
    settings = {"JITBLAS_CACHE_DIR": empty_store, "STANDIN_BISHENG_LOG": str(compiler_log)}
    scenario(AXPY + RIGHT, **settings)
    (folder,) = entries(empty_store)
    data = (folder / "kernel.so").read_bytes()
    (folder / "kernel.so").write_bytes(data[: len(data) // 2])
    finished = scenario(AXPY + RIGHT, **settings)
    assert "moved aside" in finished.stderr
    assert len(runs(compiler_log)) == 2


def test_a_compile_error_is_told_once_and_remembered(scenario: Scenario, empty_store: str, compiler_log: Path) -> None:
    code = """
        jitblas.axpy_ex(1.0, np.ones(5, "float16"), np.ones(5, "float16"))
        os.environ["STANDIN_BISHENG_FAILS"] = "no such register"

        def attempt():
            try:
                jitblas.axpy_ex(2.0, x, y)
            except jitblas.CompileError as error:
                return error
            raise AssertionError("no error")

        errors = [attempt() for _ in range(3)]
        for error in errors:
            assert "no such register" in str(error) and error.returncode == 1, error
            assert error.key == jitblas.specialize("axpy_ex:n=5").key
            text = error.dump()
            assert "bisheng: error: no such register" in text and "--npu-arch=dav-3510" in text
            assert "axpy_ex_contiguous<<<" in text and "    1  #include <stdint.h>" in text
        assert (y == 1).all()
        print("remembered")
        del os.environ["STANDIN_BISHENG_FAILS"]
        assert "no such register" in str(attempt())
        jitblas.reload()
        assert (jitblas.axpy_ex(2.0, x, y) == [1, 3, 5, 7, 9]).all()
    """
    settings = {"JITBLAS_CACHE_DIR": empty_store, "STANDIN_BISHENG_LOG": str(compiler_log)}
    scenario(AXPY + code.replace("\n        ", "\n"), **settings)
    assert len(runs(compiler_log)) == 3  # fp16, the failure, and once more after reload()
    assert len(entries(empty_store)) == 2
    assert not list(Path(empty_store, "v1").glob("build-*"))
