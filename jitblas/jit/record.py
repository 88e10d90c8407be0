"""The problems of a run (JITBLAS_RECORD): a line for each kernel that a process asks for, for prewarm to read.

Lines of JSON, each written at once, so that many processes can share a file and a torn line costs that line only.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jitblas.jit.specialization import Specialization

_failed: set[str] = set()


def add(path: str, specialization: Specialization) -> None:
    """Note a kernel's problem. A record that cannot be written is told once and changes nothing else."""
    line = {"problem": specialization.problem, "target": specialization.target, "exact": specialization.exact}
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK, 0o666)
        try:
            # A line begins by ending the one before, which somebody who was killed may have left open.
            os.write(descriptor, ("\n" + json.dumps(line)).encode())
        finally:
            os.close(descriptor)
    except OSError as error:
        if path not in _failed:
            _failed.add(path)
            print(f"jitblas: JITBLAS_RECORD={path} cannot be written: {error.strerror}", file=sys.stderr)


def read(text: str) -> Iterator[tuple[str, str, bool]]:
    """(problem, target, exact) of each whole line of a record, the first of those that are alike."""
    seen = set()
    for line in text.splitlines():
        try:
            found = json.loads(line)
            item = (str(found["problem"]), str(found["target"]), bool(found["exact"]))
        except (ValueError, KeyError, TypeError, RecursionError):
            continue  # torn by a process that was killed
        if item not in seen:
            seen.add(item)
            yield item
