"""Who compiles: finding the compiler of a target and remembering what was found.

Probing starts processes and hashes binaries of tens of megabytes, so answers are kept as JSON files, named by what they
depend on; a process with a warm store starts no process to learn its compiler.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict

from jitblas.errors import CompilerNotFound
from jitblas.targets import ASCEND950PR
from jitblas.toolchain.base import COMPILER_ENVIRONMENT, Compiler, Toolchain, Unusable

MEMO_VERSION = 1


def compilers(target: str) -> Sequence[Compiler]:
    """The kinds of compiler for a target, preferred first."""
    if target == ASCEND950PR:
        from jitblas.toolchain.bisheng import Bisheng

        return (Bisheng(),)
    from jitblas.toolchain.gnu import Gnu
    from jitblas.toolchain.zig import Zig

    return (Gnu(),) if os.environ.get("JITBLAS_CXX") else (Gnu(), Zig())


def find(target: str, memo_folder: str | None, cpu: str) -> Toolchain:
    """The first compiler for `target` whose probe succeeds.

    Parameters
    ----------
    memo_folder : where answers are kept; None: ask anew
    cpu : fingerprint of this CPU's features, since -march=native depends on it

    Raises
    ------
    CompilerNotFound
        With every candidate tried and why it does not count.
    """
    tried: list[tuple[str, str]] = []
    kinds = compilers(target)
    for compiler in kinds:
        found = False
        for driver in dict.fromkeys(compiler.candidates()):
            found = True
            answer = _remembered(compiler, driver, memo_folder, cpu)
            if isinstance(answer, Toolchain):
                return answer
            tried.append((" ".join(driver), answer))
        if not found:
            tried.append((compiler.name, "not found"))
    raise CompilerNotFound(target, tried, "; or ".join(compiler.remedy for compiler in kinds))


def _remembered(compiler: Compiler, driver: tuple[str, ...], folder: str | None, cpu: str) -> Toolchain | str:
    """The toolchain, or why the candidate does not count."""
    if folder is None:
        return _probe(compiler, driver)
    environment = [f"{name}={os.environ.get(name)}" for name in (*COMPILER_ENVIRONMENT, "JITBLAS_MARCH", "PATH")]
    fields = [str(MEMO_VERSION), compiler.name, cpu, *driver, *environment, *_stats(_files(driver))]
    path = os.path.join(folder, hashlib.sha256("\0".join(fields).encode()).hexdigest() + ".json")
    try:
        with open(path, encoding="utf-8") as file:
            memo = json.load(file)
        if memo["stats"] == _stats(memo["depends"]):
            return str(memo["unusable"]) if "unusable" in memo else _from_json(memo["toolchain"])
    except (OSError, ValueError, KeyError, TypeError):
        pass  # no memo, or one that cannot be trusted: ask the compiler
    answer = _probe(compiler, driver)
    depends = list(answer.depends) if isinstance(answer, Toolchain) else _files(driver)
    memo = {"depends": depends, "stats": _stats(depends)}
    memo |= {"toolchain": asdict(answer)} if isinstance(answer, Toolchain) else {"unusable": answer}
    _write(path, json.dumps(memo))
    return answer


def _probe(compiler: Compiler, driver: tuple[str, ...]) -> Toolchain | str:
    with tempfile.TemporaryDirectory(prefix="jitblas-probe-") as workdir:
        try:
            return compiler.probe(driver, workdir)
        except Unusable as reason:
            return str(reason)
        except OSError as error:
            return f"cannot be started: {error}"


def _files(driver: Iterable[str]) -> list[str]:
    return [word for word in driver if os.path.isabs(word)]


def _stats(paths: Iterable[str]) -> list[str]:
    answers = []
    for path in paths:
        try:
            found = os.stat(path)
            answers.append(f"{found.st_dev}:{found.st_ino}:{found.st_size}:{found.st_mtime_ns}")
        except OSError as error:
            answers.append(f"errno {error.errno}")
    return answers


def _from_json(data: dict[str, object]) -> Toolchain:
    def tupled(value: object) -> object:
        return tuple(tupled(item) for item in value) if isinstance(value, list) else value

    return Toolchain(**{name: tupled(value) for name, value in data.items()})  # type: ignore[arg-type]


def _write(path: str, text: str) -> None:
    """Best effort: a memo that cannot be kept costs time, nothing else."""
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=os.path.dirname(path))
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(temporary, path)
    except OSError:
        pass
