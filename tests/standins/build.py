"""Build the stand-ins into a folder laid out like a CANN toolkit, and run Python with it."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

SOURCES = Path(__file__).resolve().parent
PROJECT = SOURCES.parent.parent
VERSION = "9.1.0"
SETTINGS_OF_OTHERS = ("ASCEND_", "JITBLAS_", "STANDIN_", "LD_LIBRARY_PATH")


@dataclass(frozen=True)
class Cann:
    """A toolkit made of stand-ins: its root folder and the environment that leads to it."""

    root: Path
    environment: Mapping[str, str]

    @property
    def library(self) -> Path:
        return self.root / "lib64" / "libascendcl.so"

    @property
    def bisheng(self) -> Path:
        return self.root / "bin" / "bisheng"

    def python(
        self, code: str, *arguments: str, cwd: str | Path = PROJECT, **settings: str
    ) -> subprocess.CompletedProcess[str]:
        """Run Python code in a new process that finds this toolkit; `settings` are further variables."""
        environment = {**self.environment, "PYTHONPATH": str(PROJECT), **settings}
        return subprocess.run(
            [sys.executable, "-c", code, *arguments],
            env=environment,
            cwd=cwd,
            capture_output=True,
            text=True,
            timeout=100,
        )


def build(root: Path, version: str = VERSION) -> Cann:
    """Compile the runtime and the compiler below `root`; skips the test on a machine without a C compiler."""
    cc = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if cc is None:
        pytest.skip("no C compiler to build the stand-ins with")
    info = root / f"{platform.machine()}-linux" / "ascend_toolkit_install.info"
    for folder in (root / "lib64", root / "bin", info.parent):
        folder.mkdir(parents=True, exist_ok=True)
    info.write_text(
        f"package_name=Ascend-cann-toolkit\nversion={version}\narch={platform.machine()}\nos=linux\npath={root}\n"
    )
    library = [
        "-shared",
        "-fPIC",
        "-pthread",
        "-Wl,-soname,libascendcl.so",
        "-o",
        str(root / "lib64/libascendcl.so"),
    ]
    program = [f'-DSTANDIN_SOURCES="{SOURCES}"', f'-DSTANDIN_CC="{cc}"', "-o", str(root / "bin/bisheng")]
    for name, words in (("libascendcl.c", library), ("bisheng.c", program)):
        argv = [cc, "-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", str(SOURCES / name), *words]
        made = subprocess.run(argv, capture_output=True, text=True)
        assert made.returncode == 0, made.stderr
    return Cann(root, environment_with(root))


def environment_with(root: Path | None) -> dict[str, str]:
    """This process's environment with only the given toolkit in it."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(SETTINGS_OF_OTHERS)}
    return kept if root is None else {**kept, "ASCEND_HOME_PATH": str(root)}


@pytest.fixture(scope="session")
def cann(tmp_path_factory: pytest.TempPathFactory) -> Cann:
    """The stand-in toolkit, built once."""
    return build(tmp_path_factory.mktemp("cann"))
