"""What users feel besides kernels: imports, first calls, compiles, and the way in of a tiny call."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from jitblas.bench.problems import parse_lines
from jitblas.bench.session import Row, Session, choose_peers, protocol_for
from jitblas.bench.tables import Cells, time_text

ONE_CALL = Path(__file__).resolve().parent / "one_call.py"
TINY = "axpy_ex:n=8,alpha=0.75"


def process_costs(runs: int = 20, compiles: int = 5) -> list[dict[str, Any]]:
    """Rows of what, median seconds, extremes, number of runs; every run is a new process."""
    with tempfile.TemporaryDirectory(prefix="jitblas-bench-") as folder:
        full = {"JITBLAS_CACHE_DIR": f"{folder}/full"}
        _told("call", full)  # fills it

        def empty(what: str, run: int) -> float:
            return _told(what, {"JITBLAS_CACHE_DIR": f"{folder}/{what}-{run}"})

        return [
            _cost("import jitblas, over bare python -c pass", _import_costs(runs), "whole processes, alternately"),
            _cost("first call of a process, full store", _each(runs, lambda run: _told("call", full)), _AFTER),
            _cost(
                "first call of a process, empty store", _each(compiles, lambda run: empty("call", run)), _AFTER_EMPTY
            ),
            _cost("compile of one class kernel", _each(compiles, lambda run: empty("compile", run)), _COMPILE),
        ]


_AFTER = "after import numpy, jitblas"
_AFTER_EMPTY = f"{_AFTER}; finds the compiler, compiles runtime and kernel"
_COMPILE = "the compiler is known; an empty store"


def tiny_calls(repeats: int = 20) -> list[Row]:
    """Every way in at n = 8, next to SciPy's saxpy where it is installed."""
    peers, _ = choose_peers(["scipy"])
    with protocol_for(repeats, cold=False) as protocol:
        return list(Session(exact=True, peers=peers, threads=(1,), protocol=protocol).rows(parse_lines([TINY])))


def cost_cells(costs: list[dict[str, Any]]) -> Cells:
    lines = [
        [cost["what"], time_text(cost["seconds"]), f"{time_text(cost['least'])} to {time_text(cost['most'])}",
         str(len(cost["runs"])), cost["note"]]
        for cost in costs
    ]  # fmt: skip
    return [["what", "median", "from", "runs", "note"], *lines]


def _cost(what: str, runs: list[float], note: str) -> dict[str, Any]:
    return {
        "what": what, "seconds": statistics.median(runs), "least": min(runs), "most": max(runs), "runs": runs,
        "note": note,
    }  # fmt: skip


def _each(runs: int, measure: Callable[[int], float]) -> list[float]:
    return [measure(run) for run in range(runs)]


def _import_costs(runs: int) -> list[float]:
    """Pairs of neighbours in time: with the import, without."""
    for code in ("import jitblas", "pass"):
        _process(code)  # byte-compiles and warms the page cache
    return [_process("import jitblas") - _process("pass") for _ in range(runs)]


def _process(code: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - start


def _told(what: str, settings: Mapping[str, str]) -> float:
    """What one_call.py says, on this CPU under the default mode."""
    # Bytecode caches as an installed package has them, whatever this shell says.
    unwanted = ("JITBLAS_MODE", "PYTHONDONTWRITEBYTECODE")
    environment = {name: value for name, value in os.environ.items() if name not in unwanted}
    command = [sys.executable, str(ONE_CALL), what]
    finished = subprocess.run(
        command,
        env=environment | {"JITBLAS_TARGET": "host"} | dict(settings),
        check=True,
        capture_output=True,
        text=True,
    )
    return float(finished.stdout)
