"""Finding bisheng, probing it, and what its command line is; the compiler is a stand-in (tests/standins)."""

from __future__ import annotations

import os
import platform
import re
import shutil
import stat
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

from jitblas.errors import CompilerNotFound
from jitblas.operators import OPERATORS
from jitblas.toolchain import find
from jitblas.toolchain.base import Unusable
from jitblas.toolchain.bisheng import Bisheng, cann_version, version_at_least
from tests.standins.build import Cann

FLAGS = (
    *("-x", "asc", "-std=c++17", "-O3", "-DNDEBUG", "-DASCENDC_DUMP=0", "-shared", "-fPIC"),
    "--npu-arch=dav-3510",
)
OWN = f"{platform.machine()}-linux"


@pytest.fixture(autouse=True)
def nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("ASCEND_", "JITBLAS_", "STANDIN_")):
            monkeypatch.delenv(name)


@pytest.fixture
def installed(cann: Cann, monkeypatch: pytest.MonkeyPatch) -> Cann:
    monkeypatch.setenv("ASCEND_HOME_PATH", str(cann.root))
    return cann


def program(path: Path, text: str = "exit 0") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def probe(path: Path, workdir: Path) -> dict[str, str]:
    return dict(Bisheng().probe((str(path),), str(workdir)).identity)


# ---- candidates


def test_without_a_toolkit_there_is_no_candidate() -> None:
    assert shutil.which("bisheng") is None, "these tests expect a machine without CANN"
    assert list(Bisheng().candidates()) == []
    with pytest.raises(CompilerNotFound, match=r"(?s)not found.*set_env\.sh.*JITBLAS_BISHENG"):
        find("ascend950pr", None, None, "")


@pytest.mark.parametrize("name", OPERATORS)
def test_without_a_toolkit_the_error_says_which_one_each_operator_needs(name: str) -> None:
    with pytest.raises(CompilerNotFound, match=re.escape(f"{name} needs {OPERATORS[name].minimum_cann} or newer")):
        find("ascend950pr", None, None, "")


@pytest.mark.parametrize("folder", ["bin", "tools/bisheng_compiler/bin", f"{OWN}/ccec_compiler/bin"])
@pytest.mark.parametrize("below", ["", "cann", "latest", "ascend-toolkit/latest"])
def test_bisheng_is_found_wherever_toolkits_put_it(
    folder: str, below: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = program(tmp_path / below / folder / "bisheng")
    monkeypatch.setenv("ASCEND_HOME_PATH", str(tmp_path))
    assert list(Bisheng().candidates()) == [(str(found),)]


def test_the_toolkit_comes_before_path(installed: Cann, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = program(tmp_path / "bisheng")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert list(Bisheng().candidates()) == [(str(installed.bisheng),), (str(other),)]


def test_jitblas_bisheng_is_the_only_one_tried_and_may_have_arguments(
    installed: Cann, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrapper = program(tmp_path / "a wrapper", 'exec "$@"')
    monkeypatch.setenv("JITBLAS_BISHENG", f"'{wrapper}' {installed.bisheng}")
    assert list(Bisheng().candidates()) == [(str(wrapper), str(installed.bisheng))]
    toolchain = find("ascend950pr", None, None, "")
    assert toolchain.driver == (str(wrapper), str(installed.bisheng))
    assert set(toolchain.driver) < set(toolchain.depends)


def test_what_cannot_be_executed_is_no_candidate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "bin" / "bisheng").chmod(0o644)
    (tmp_path / OWN / "ccec_compiler" / "bin" / "bisheng").mkdir(parents=True)
    monkeypatch.setenv("ASCEND_HOME_PATH", str(tmp_path))
    assert list(Bisheng().candidates()) == []


# ---- probe


def test_the_command_line_is_the_documented_one(installed: Cann) -> None:
    toolchain = find("ascend950pr", None, None, "")
    argv = toolchain.command("k.cpp", "k.so", include=["/k"], define={"JITBLAS_KEY": '"a/b"'})
    assert argv == [str(installed.bisheng), *FLAGS, '-DJITBLAS_KEY="a/b"', "-I/k", "k.cpp", "-o", "k.so"]
    assert toolchain.version == "BiSheng stand-in clang version 15.0.5"


def test_the_identity_names_compiler_and_toolkit_but_no_folder(installed: Cann, tmp_path: Path) -> None:
    identity = probe(installed.bisheng, tmp_path)
    assert "clang version 15.0.5" in identity["version"]
    assert re.fullmatch(r"bisheng=[0-9a-f]{64}", identity["programs"])
    assert "version=9.1.0" in identity["cann"]
    assert not any(str(installed.root) in value or str(tmp_path) in value for value in identity.values())


def test_a_moved_toolkit_is_the_same_and_another_version_is_not(installed: Cann, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    shutil.copytree(installed.root, moved)
    work = tmp_path / "work"
    work.mkdir()
    before = probe(installed.bisheng, work)
    assert probe(moved / "bin" / "bisheng", work) == before
    info = moved / OWN / "ascend_toolkit_install.info"
    info.write_text(info.read_text().replace("9.1.0", "9.2.0"))
    after = probe(moved / "bin" / "bisheng", work)
    assert {label for label in before if before[label] != after[label]} == {"cann"}


def test_the_install_record_is_among_what_the_probe_depends_on(installed: Cann, tmp_path: Path) -> None:
    toolchain = Bisheng().probe((str(installed.bisheng),), str(tmp_path))
    info = installed.root / OWN / "ascend_toolkit_install.info"
    assert toolchain.depends == (str(installed.bisheng), str(info))


def test_a_compiler_without_an_install_record_counts(
    cann: Cann, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(cann.root / "bin", tmp_path / "t" / "bin")
    shutil.copytree(cann.root / "lib64", tmp_path / "t" / "lib64")
    work = tmp_path / "work"
    work.mkdir()
    assert probe(tmp_path / "t" / "bin" / "bisheng", work)["cann"] == "unknown"


def test_optional_flags_are_probed_and_never_assumed(
    installed: Cann, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = probe(installed.bisheng, tmp_path)
    assert (refused["-MD"], refused["-ffile-prefix-map"]) == ("does not work", "does not work")
    monkeypatch.setenv("STANDIN_BISHENG_ACCEPTS", "-MD -ffile-prefix-map")
    accepted = probe(installed.bisheng, tmp_path)
    assert (accepted["-MD"], accepted["-ffile-prefix-map"]) == ("works", "works")


@pytest.mark.parametrize(
    ("setting", "value", "reason"),
    [
        ("STANDIN_BISHENG_FLAGS", "0x930000", r"910 family, e_flags 0x930000"),
        ("STANDIN_BISHENG_FLAGS", "0", r"no device code"),
        ("STANDIN_BISHENG_FAILS", "licence expired", r"probe kernel fails: bisheng: error: licence expired"),
    ],
)
def test_a_compiler_whose_probe_kernel_is_wrong_does_not_count(
    setting: str, value: str, reason: str, installed: Cann, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(setting, value)
    with pytest.raises(Unusable, match=reason):
        probe(installed.bisheng, tmp_path)


def test_a_program_that_only_looks_like_bisheng_does_not_count(tmp_path: Path) -> None:
    with pytest.raises(Unusable, match=r"--version fails: no such thing"):
        probe(program(tmp_path / "bisheng", "echo no such thing; exit 1"), tmp_path)
    with pytest.raises(Unusable, match=r"the probe kernel is not for this chip"):
        probe(program(tmp_path / "bisheng"), tmp_path)
    broken = program(tmp_path / "bisheng")
    broken.write_bytes(b"\x7fELF not really")
    broken.chmod(broken.stat().st_mode | stat.S_IXUSR)
    with pytest.raises(Unusable, match="cannot be started"):
        probe(broken, tmp_path)


# ---- versions


@pytest.mark.parametrize(
    ("text", "version"),
    [
        (
            "package_name=Ascend-cann-toolkit\nversion=9.0.0-beta.2\ninnerversion=V100\npath=/x\n",
            "9.0.0-beta.2",
        ),
        ("version = [8.3.RC2]\n", "8.3.RC2"),
        ("Version: 9.1.0\n", "9.1.0"),
        ("innerversion=V100R001\n", None),
        ("", None),
    ],
)
@pytest.mark.parametrize("folder", [OWN, "other-linux", ".", "latest/other-linux"])
def test_the_version_is_read_from_the_install_record(
    text: str, version: str | None, folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / folder).mkdir(parents=True, exist_ok=True)
    (tmp_path / folder / "ascend_toolkit_install.info").write_text(text)
    monkeypatch.setenv("ASCEND_HOME_PATH", str(tmp_path))
    assert cann_version() == version


def test_there_is_no_version_without_a_toolkit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cann_version() is None
    monkeypatch.setenv("ASCEND_HOME_PATH", str(tmp_path / "missing"))
    assert cann_version() is None


ORDER = [
    "8.0.T6",
    "8.0.RC3",
    "8.0.0",
    "8.3.RC1",
    "8.3.RC2",
    "8.5.0.alpha001",
    "8.5.0",
    "9.0.0-beta.1",
    "9.0.0-beta.2",
    "9.0.0-beta.10",
    "9.0.0-rc.1",
    "9.0.0",
    "9.0.1",
    "9.1.0-beta",
    "9.1.0",
    "10.0.0",
]


def test_versions_are_ordered() -> None:
    for i, found in enumerate(ORDER):
        for j, needed in enumerate(ORDER):
            assert version_at_least(found, needed) == (i >= j), (found, needed)


def test_version_spellings() -> None:
    assert version_at_least("9.0", "9.0.0") and version_at_least("9.0.0", "9.0")
    assert version_at_least("9.0.0.beta2", "9.0.0-beta.2")
    assert not version_at_least(None, "9.0.0")
    assert not version_at_least("unknown", "9.0.0")
    with pytest.raises(ValueError, match="not a CANN version"):
        version_at_least("9.0.0", "newest")


# ---- the stand-in refuses what the compiler would


KERNEL = """\
#include "kernel_operator.h"
struct Tiling { float alpha; };
extern "C" __global__ __aicore__ void copy(GM_ADDR x, Tiling tiling) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
}
extern "C" int launch(uint32_t blocks, void* stream, void* x, Tiling tiling) {
    copy<<<blocks, nullptr, stream>>>(static_cast<uint8_t*>(x), tiling);
    return 0;
}
"""


def compiled(cann: Cann, folder: Path, text: str, flags: Iterable[str]) -> subprocess.CompletedProcess[str]:
    source = folder / "kernel.cpp"
    source.write_text(text)
    argv = [str(cann.bisheng), *flags, str(source), "-o", str(folder / "kernel.so")]
    return subprocess.run(argv, env=dict(cann.environment), capture_output=True, text=True, timeout=60)


def test_the_stand_in_compiles_a_kernel(cann: Cann, tmp_path: Path) -> None:
    made = compiled(cann, tmp_path, KERNEL, FLAGS)
    assert made.returncode == 0, made.stderr


@pytest.mark.parametrize(
    ("dropped", "added", "message"),
    [
        ("-x asc", "", "needs -x asc"),
        ("--npu-arch=dav-3510", "", "--npu-arch=dav-3510 is missing"),
        ("-fPIC", "", "-shared -fPIC"),
        ("", "-march=native", "unknown argument: '-march=native'"),
        ("", "-MD", "unknown argument: '-MD'"),
        ("--npu-arch=dav-3510", "--npu-arch=dav-9999", "unknown argument"),
    ],
)
def test_the_stand_in_is_strict_about_flags(dropped: str, added: str, message: str, cann: Cann, tmp_path: Path) -> None:
    flags = " ".join(FLAGS).replace(dropped, "").split() + added.split()
    made = compiled(cann, tmp_path, KERNEL, flags)
    assert made.returncode == 1 and message in made.stderr


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('extern "C" int launch', "int launch", "function launch"),
        ("<<<blocks, nullptr, stream>>>", "", "no kernel launch"),
        ("    KERNEL_TASK", "    // KERNEL_TASK", "does not infer the kernel type"),
        ('extern "C" __global__', "__global__", "use of undeclared kernel 'copy'"),
        ("struct Tiling { float alpha; };", "struct Tiling { flat alpha; };", "refuses"),
        ("struct", '#include "common/missing.h"\nstruct', "'common/missing.h' file not found"),
    ],
)
def test_the_stand_in_is_strict_about_sources(old: str, new: str, message: str, cann: Cann, tmp_path: Path) -> None:
    assert old in KERNEL
    made = compiled(cann, tmp_path, KERNEL.replace(old, new), FLAGS)
    assert made.returncode == 1 and message in made.stderr
