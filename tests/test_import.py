"""What an import, and a call that finds everything in the store, may cost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jitblas

WATCH = """
import os, sys
seen = []
def watch(event, arguments):
    if event in ("subprocess.Popen", "os.fork", "os.posix_spawn", "os.exec", "os.system", "_thread.start_new_thread",
                 "socket.__new__", "os.mkdir", "os.rename", "os.remove", "os.chmod", "ctypes.dlopen"):
        seen.append((event, arguments))
    elif event == "open":
        path, mode, flags = arguments
        written = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_TRUNC)
        if written or "jitblas-store" in str(path):
            seen.append((event, path))
sys.addaudithook(watch)
before = set(sys.modules)
"""
LATE = ("numpy", "diskcache", "filelock", "platformdirs", "ctypes", "subprocess", "sqlite3", "json", "hashlib")


def test_importing_starts_nothing_writes_nothing_and_imports_nothing_heavy(python: Any, tmp_path: Path) -> None:
    answer = python(
        WATCH + f"import jitblas; print(seen, [name for name in {LATE!r} if name in set(sys.modules) - before])",
        JITBLAS_CACHE_DIR=tmp_path / "jitblas-store",
        PYTHONDONTWRITEBYTECODE="1",
    )
    assert answer.stdout == "[] []\n"
    assert not (tmp_path / "jitblas-store").exists()


def test_importing_reads_no_setting(python: Any) -> None:
    code = "import jitblas; print(jitblas.__version__, jitblas.Status.INVALID_VALUE, jitblas.Error.__name__)"
    answer = python(code, JITBLAS_MODE="nonsense", JITBLAS_TARGET="nonsense", JITBLAS_THREADS="nonsense", HOME=None)
    assert answer.stdout.split()[0] == jitblas.__version__


def test_every_public_name_resolves_and_is_listed() -> None:
    assert len(jitblas.__all__) == len(set(jitblas.__all__))
    for name in jitblas.__all__:
        assert getattr(jitblas, name) is not None
        assert name in dir(jitblas)


def test_star_import_and_unknown_names(python: Any) -> None:
    code = """
from jitblas import *
import jitblas
assert axpy_ex is jitblas.axpy_ex and aclblas.aclblasAxpyEx
try:
    jitblas.no_such_name
except AttributeError as error:
    print(error)
try:
    from jitblas import neither
except ImportError as error:
    print(type(error).__name__)
"""
    assert python(code).stdout == "module 'jitblas' has no attribute 'no_such_name'\nImportError\n"


def test_a_warm_hit_imports_neither_diskcache_nor_filelock(python: Any, compute: str, full_store: Path) -> None:
    late = {"diskcache", "filelock", "sqlite3", "platformdirs"}
    code = compute + f"import sys; print(sorted(set(sys.modules) & {late!r}))"
    answer = python(code, JITBLAS_CACHE_DIR=full_store)
    assert (answer.stdout, answer.stderr) == ("right\n[]\n", "")


def test_the_package_says_that_it_is_typed() -> None:
    assert jitblas.__file__ is not None
    assert (Path(jitblas.__file__).parent / "py.typed").is_file()
