"""One store for the whole session, settings of others out of the way, and new processes to run Python in."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parent.parent
if str(PROJECT) not in sys.path:
    sys.path.insert(0, str(PROJECT))  # for `from tests.reference import ...`, however pytest was started

from tests.standins.build import cann  # noqa: E402, F401 - a fixture

# What a run may choose for itself: where the store is, which compiler and instruction set, how many threads.
KEPT = ("JITBLAS_CACHE_DIR", "JITBLAS_CXX", "JITBLAS_MARCH", "JITBLAS_THREADS")

for _name in list(os.environ):
    if (_name.startswith("JITBLAS_") and _name not in KEPT) or _name == "ASCEND_HOME_PATH":
        del os.environ[_name]
_temporary = None
if not os.environ.get("JITBLAS_CACHE_DIR"):
    _temporary = os.environ["JITBLAS_CACHE_DIR"] = tempfile.mkdtemp(prefix="jitblas-tests-")

Python = Callable[..., subprocess.CompletedProcess[str]]


def pytest_unconfigure() -> None:
    if _temporary is not None:
        shutil.rmtree(_temporary, ignore_errors=True)


def environment(**settings: str | Path | None) -> dict[str, str]:
    """This process's environment with some variables set, or (None) unset, and jitblas to be found."""
    changed = {"PYTHONPATH": str(PROJECT), **settings}
    kept = {name: value for name, value in os.environ.items() if name not in changed}
    return kept | {name: str(value) for name, value in changed.items() if value is not None}


@pytest.fixture(scope="session")
def python() -> Python:
    """Runs code in a new Python; its exit status must be 0 unless `check=False`."""

    def run(
        code: str,
        *arguments: str,
        check: bool = True,
        cwd: str | Path | None = None,
        timeout: float = 60,
        **settings: str | Path | None,
    ) -> subprocess.CompletedProcess[str]:
        finished = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            env=environment(**settings),
            cwd=cwd,
            capture_output=True,
            text=True,
            timeout=timeout,
        )
        if check:
            assert finished.returncode == 0, finished.stderr
        return finished

    return run


class CountingCompiler:
    """The machine's C++ compiler behind a script that notes the key of each kernel compiled.

    `before` is shell text that runs before such a compile.
    """

    def __init__(self, folder: Path, before: str = "") -> None:
        compiler = shutil.which("g++") or shutil.which("clang++")
        if compiler is None:
            pytest.skip("no g++ or clang++ to put behind a script")
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "g++"
        self.log = folder / "compiled"
        self.path.write_text(
            "#!/bin/sh\n"
            'for word in "$@"; do case $word in -DJITBLAS_KEY=*)\n'
            f'echo "$word" >>{shlex.quote(str(self.log))}\n{before}\n'
            ";; esac; done\n"
            f'exec {shlex.quote(compiler)} "$@"\n'
        )
        self.path.chmod(0o755)
        self.setting = {"JITBLAS_CXX": shlex.quote(str(self.path))}

    @property
    def compiled(self) -> list[str]:
        """Keys in the order of their compiles."""
        return self.log.read_text().splitlines() if self.log.exists() else []

    def fail_on(self, word: str) -> None:
        """From now on kernels whose source has this word do not compile."""
        check = (
            'for word in "$@"; do case $word in */kernel.cpp)\n'
            f'if grep -qi {word} "$word"; then echo "kernel.cpp:7: error: no {word} today"; exit 1; fi\n'
            ";; esac; done\nexec "
        )
        self.path.write_text(self.path.read_text().replace("exec ", check))

    def forget(self) -> None:
        self.log.unlink(missing_ok=True)


@pytest.fixture
def compiler_in() -> Callable[[Path], CountingCompiler]:
    return CountingCompiler


@pytest.fixture
def compiler(tmp_path: Path) -> CountingCompiler:
    return CountingCompiler(tmp_path / "compiler")


@pytest.fixture
def slow_compiler(tmp_path: Path) -> CountingCompiler:
    """One that waits before each compile while the file `hold` is beside it, and writes its pid into `waiting`."""
    folder = tmp_path / "slow"
    quoted = shlex.quote(str(folder))
    wait = f"while [ -e {quoted}/hold ] && [ $n -lt 600 ]; do sleep 0.05; n=$((n+1)); done"
    return CountingCompiler(folder, f"echo $$ >{quoted}/waiting; n=0; {wait}")


def copy_project(to: Path) -> Path:
    """The package and its kernels in a folder of their own, as a checkout somewhere else."""
    ignored = shutil.ignore_patterns("__pycache__")
    for name in ("jitblas", "kernels_src"):
        shutil.copytree(PROJECT / name, to / name, ignore=ignored)
    shutil.copy2(PROJECT / "pyproject.toml", to)
    return to


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    return copy_project(tmp_path / "a moved checkout")


@pytest.fixture
def kernels(tmp_path: Path) -> Iterator[Path]:
    """A copy of the kernel sources that this process uses for as long as the test runs, to be edited."""
    import jitblas
    from jitblas import config

    folder = tmp_path / "kernels_src"
    shutil.copytree(PROJECT / "kernels_src", folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(config, "kernels_folder", lambda: str(folder))
        jitblas.reload()
        yield folder
    jitblas.reload()


COMPUTE = """
import numpy, jitblas
x, y = numpy.arange(1000, dtype="f4"), numpy.ones(1000, "f4")
print("right" if (jitblas.axpy_ex(2.0, x, y) == 2 * x + 1).all() else "wrong")
"""
"""Needs the host runtime and one kernel."""


@pytest.fixture(scope="session")
def compute() -> str:
    return COMPUTE


@pytest.fixture(scope="session")
def _full_store(python: Python, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("full")
    assert python(COMPUTE, JITBLAS_CACHE_DIR=folder).stdout == "right\n"
    return folder


@pytest.fixture
def full_store(_full_store: Path, tmp_path: Path) -> Path:
    """A cache folder of this test's own with all that COMPUTE needs, compiled by the default compiler."""
    return Path(shutil.copytree(_full_store, tmp_path / "full"))
