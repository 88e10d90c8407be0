"""Who compiles: finding the compiler of a target and remembering what was found.

Probing starts processes and hashes binaries of tens of megabytes, so answers are kept as JSON files, named by what they
depend on; a process with a warm store starts no process to learn its compiler.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from jitblas.config import COMPILER_ENVIRONMENT
from jitblas.digest import hex_digest
from jitblas.errors import CompilerNotFound
from jitblas.files import write_whole
from jitblas.hardware import ASCEND950PR
from jitblas.toolchain.base import Compiler, Toolchain, Unusable, cannot_start, changes_rounding

MEMO_VERSION = 1


def compilers(target: str) -> Iterator[Compiler]:
    """The kinds of compiler for a target, preferred first, each imported when it is its turn."""
    if target == ASCEND950PR:
        from jitblas.toolchain.bisheng import Bisheng

        yield Bisheng()
        return
    from jitblas.toolchain.gnu import Gnu

    yield Gnu()
    if not os.environ.get("JITBLAS_CXX"):
        from jitblas.toolchain.zig import Zig

        yield Zig()


Alone = Callable[[str], AbstractContextManager[Any]]
"""Keeps other processes from doing something of that name at the same time."""


def survey(
    target: str, memo_folder: str | None, cache: str | None, cpu: str, alone: Alone = nullcontext
) -> Iterator[tuple[str, Toolchain | str]]:
    """Every candidate for `target`, best first, with its toolchain or why it does not count; probed as asked for.

    Parameters
    ----------
    memo_folder : where answers are kept; None: ask anew
    cache : where compilers may keep caches of their own
    cpu : fingerprint of this CPU's features, since -march=native depends on it
    alone : for probing once however many processes ask at the same time
    """
    for compiler in compilers(target):
        drivers = list(dict.fromkeys(compiler.candidates()))
        for driver in drivers:
            yield " ".join(driver), _remembered(compiler, driver, memo_folder, cache, cpu, alone)
        if not drivers:
            yield compiler.name, "not found"


def find(target: str, memo_folder: str | None, cache: str | None, cpu: str, alone: Alone = nullcontext) -> Toolchain:
    """The first compiler of :func:`survey` that counts; CompilerNotFound with every candidate and why it does not."""
    tried: list[tuple[str, str]] = []
    for name, answer in survey(target, memo_folder, cache, cpu, alone):
        if isinstance(answer, Toolchain):
            return answer
        tried.append((name, answer))
    raise CompilerNotFound(target, tried, "; or ".join(compiler.remedy for compiler in compilers(target)))


def _remembered(
    compiler: Compiler, driver: tuple[str, ...], folder: str | None, cache: str | None, cpu: str, alone: Alone
) -> Toolchain | str:
    """The toolchain, or why the candidate does not count."""
    unwanted = [word for word in driver[1:] if changes_rounding(word)]
    if unwanted:
        return f"its command has {unwanted[0]}, which changes rounding"
    if folder is None:
        answer, _ = _probe(compiler, driver, cache)
        return answer
    asked = (*COMPILER_ENVIRONMENT, "JITBLAS_MARCH", "ASCEND_HOME_PATH", "PATH")
    environment = [f"{name}={os.environ.get(name)}" for name in asked]
    # What this package asks a compiler, and the flags that it gives, are part of the answer.
    asking = sorted(entry.path for entry in os.scandir(os.path.dirname(__file__)) if entry.name.endswith(".py"))
    fields = [str(MEMO_VERSION), compiler.name, cpu, *driver, *environment, *_stats(_files(driver)), *_stats(asking)]
    name = hex_digest(os.fsencode("\0".join(fields)))
    path = os.path.join(folder, f"{name}.json")
    known = _read(path)
    if known is not None:
        return known
    with alone(f"probe-{name[:24]}"):
        known = _read(path)  # somebody else asked meanwhile, perhaps
        if known is not None:
            return known
        answer, lasting = _probe(compiler, driver, cache)
        depends = list(answer.depends) if isinstance(answer, Toolchain) else _files(driver)
        verdict = {"toolchain": answer._asdict()} if isinstance(answer, Toolchain) else {"unusable": answer}
        if lasting:
            _write(path, json.dumps({"depends": depends, "stats": _stats(depends), **verdict}))
        return answer


def _read(path: str) -> Toolchain | str | None:
    """What a memo holds; None if there is none, or one that cannot be trusted: then the compiler is asked."""
    try:
        with open(path, encoding="utf-8") as file:
            memo = json.load(file)
        if memo["stats"] == _stats(memo["depends"]):
            return str(memo["unusable"]) if "unusable" in memo else _from_json(memo["toolchain"])
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return None


def _probe(compiler: Compiler, driver: tuple[str, ...], cache: str | None) -> tuple[Toolchain | str, bool]:
    """The toolchain or why the candidate does not count, and whether that holds for the next process, too."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="jitblas-probe-") as workdir:
        try:
            return compiler.probe(driver, workdir, cache), True
        except Unusable as reason:
            return str(reason), not reason.may_pass
        except OSError as error:
            unusable = cannot_start(error)
            return str(unusable), not unusable.may_pass


def _files(driver: Iterable[str]) -> list[str]:
    return [word for word in driver if os.path.isabs(word)]


def _stats(paths: Iterable[str]) -> list[str]:
    answers = []
    for path in paths:
        try:
            found = os.stat(path)
            answers.append(f"{found.st_dev}:{found.st_ino}:{found.st_size}:{found.st_mtime_ns}:{found.st_ctime_ns}")
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
        write_whole(path, text.encode())
    except OSError:
        pass
