"""What is to be prewarmed, as files: manifests that people write, and records that runs leave.

# kernels of the pipeline                     a manifest is TOML
targets = ["host"]                            for what follows; without it, those of the command line
exact = false
problems = [
    "axpy_ex:n=1e6,dtype=bf16",               # one problem per line
    "fft:n=65536,batch=8,dtype=c64",
]

[[kernels]]                                   more problems, for which something else holds
exact = true
targets = ["host", "ascend950pr"]
problems = ["csyrk:LN,n=512,k=64"]
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from jitblas.errors import Error, ProblemSyntaxError
from jitblas.hardware import TARGETS
from jitblas.jit import record
from jitblas.prewarming.work import Request
from jitblas.problem import Problem, expand

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

NAMES = ("targets", "exact", "problems")
GROUPS = "kernels"


def read_manifest(path: str | os.PathLike[str]) -> list[Request]:
    """The requests of a manifest.

    Raises
    ------
    Error
        It cannot be read, is no TOML, or holds something else than a manifest does; the message says where.
    ProblemSyntaxError
        A problem in it is none.
    """
    text = _read(path, "manifest")
    try:
        content = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise Error(f"the manifest {path} is no TOML: {error}") from None
    groups = content.pop(GROUPS, [])
    if not isinstance(groups, list) or not all(isinstance(group, dict) for group in groups):
        raise Error(f"the manifest {path}: '{GROUPS}' is a list of tables, each begun by [[{GROUPS}]]")
    if not content and not groups:
        raise Error(f"the manifest {path} holds no problems; accepted are {', '.join(NAMES)} and [[{GROUPS}]] tables")
    shared = {name: value for name, value in content.items() if name != "problems"}
    found = list(_requests(path, content))
    for group in groups:
        found += _requests(path, {**shared, **group})
    return found


def _requests(path: str | os.PathLike[str], group: Mapping[str, Any]) -> Iterator[Request]:
    unknown = sorted(set(group) - set(NAMES))
    if unknown:
        raise Error(f"the manifest {path}: {unknown[0]!r} is unknown; accepted are {', '.join(NAMES)} and [[{GROUPS}]]")
    problems, targets, exact = group.get("problems", []), group.get("targets"), group.get("exact")
    if not isinstance(problems, list) or not all(isinstance(problem, str) for problem in problems):
        raise Error(f"the manifest {path}: 'problems' is a list of problem lines")
    if targets is not None and (not isinstance(targets, list) or not set(map(str, targets)) <= set(TARGETS)):
        raise Error(f"the manifest {path}: targets = {targets!r}; accepted is a list of {', '.join(TARGETS)}")
    if exact is not None and not isinstance(exact, bool):
        raise Error(f"the manifest {path}: exact = {exact!r}; accepted are true and false")
    for problem in problems:
        _check(f"the manifest {path}", problem)
        yield from (Request(problem, target, exact) for target in targets or [None])


def _check(where: str, problem: str) -> None:
    try:
        for line in expand(problem):
            Problem.parse(line)
    except ProblemSyntaxError as error:
        raise ProblemSyntaxError(f"{where}: {error}") from None


def read_record(path: str | os.PathLike[str]) -> list[Request]:
    """The requests of a record (JITBLAS_RECORD); lines that were torn are left out.

    Raises
    ------
    Error
        It cannot be read, or has no line of a record.
    """
    found = [Request(*item) for item in record.read(_read(path, "record"))]
    for request in found:
        _check(f"the record {path}", request.problem)
        if request.target not in TARGETS:
            raise Error(f"the record {path}: target {request.target!r}; accepted are {', '.join(TARGETS)}")
    if not found:
        raise Error(f"the record {path} has no problems; run a program with JITBLAS_RECORD={path} first")
    return found


def _read(path: str | os.PathLike[str], what: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise Error(f"the {what} {path} cannot be read: {error}") from None
