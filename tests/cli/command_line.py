"""Running the command line in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import jitblas

Finished = subprocess.CompletedProcess[str]
Runner = Callable[..., Finished]

CHECKOUT = Path(jitblas.__file__).resolve().parent.parent
SURROUNDINGS = ("CXX", "ASCEND_HOME_PATH")
"""Variables of this machine that would change answers, besides those that begin with JITBLAS_."""


def environment(cache: Path, **settings: str) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("JITBLAS_") and name not in SURROUNDINGS
    }
    return {**kept, "PYTHONPATH": str(CHECKOUT), "JITBLAS_CACHE_DIR": str(cache), **settings}


def run(arguments: tuple[str, ...], cache: Path, **settings: str) -> Finished:
    return subprocess.run(
        [sys.executable, "-m", "jitblas", *arguments],
        env=environment(cache, **settings),
        capture_output=True,
        text=True,
        timeout=100,
    )
