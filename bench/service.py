"""What deployments feel: prewarming, crowds of cold processes, and what a kernel takes on disk."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

Cells = list[list[str]]

PROBLEMS = (
    "axpy_ex:n=9,dtype={fp32,fp16,bf16},scalar={host,device}",
    "axpy_ex:n=9,dtype={fp32,fp16,bf16},incx=2",
    "sgemm_strided_batched:{NN,NT,TN,TT},m=300,n=300,k=300",
    "csyrk:{LN,LT},n=500,k=100",
    "fft:n={1..4096:*2},dtype={c64,c128}",
)
"""The kernels that are prewarmed: of every operator, most of them small."""

HERD = """
import numpy, jitblas
assert jitblas.axpy_ex(2.0, numpy.ones(9, "f4"), numpy.ones(9, "f4"))[0] == 3
"""

IN_MEMORY = """
import timeit
from jitblas.jit.kernels import load
from jitblas import specialize
chosen = specialize("axpy_ex:n=9")
load(chosen)
print(min(timeit.repeat(lambda: load(chosen), number=20000, repeat=5)) / 20000)
"""


def service_costs(runs: int = 3) -> dict[str, Any]:
    """Seconds and counts; every measurement has a store of its own."""
    with tempfile.TemporaryDirectory(prefix="jitblas-service-") as name:
        folder = Path(name)
        prewarmed = {jobs: [_prewarm(folder / f"{jobs}-{run}", jobs) for run in range(runs)] for jobs in (1, 2)}
        kernels = prewarmed[1][0]["kernels"]
        size, inodes = _on_disk(folder / "1-0" / "v1")
        return {
            "in_memory_hit": float(_python(IN_MEMORY, {"JITBLAS_CACHE_DIR": str(folder / "1-0")})),
            "kernels": kernels,
            "prewarm": {
                jobs: kernels / statistics.median(one["seconds"] for one in found) for jobs, found in prewarmed.items()
            },
            "herds": [_herd(folder, count) for count in (1, 8, 64)],
            "bytes_per_kernel": size / kernels,
            "inodes_per_kernel": inodes / kernels,
        }


def _environment(settings: dict[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("JITBLAS_")}
    return {**kept, "PYTHONPATH": str(Path(__file__).resolve().parent.parent), **settings}


def _python(code: str, settings: dict[str, str]) -> str:
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env=_environment(settings), check=True, capture_output=True, text=True).stdout


def _prewarm(store: Path, jobs: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "jitblas", "prewarm", "--json", "-j", str(jobs), *PROBLEMS]
    environment = _environment({"JITBLAS_CACHE_DIR": str(store)})
    finished = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    report = json.loads(finished.stdout)
    assert report["ok"]
    return {"seconds": report["seconds"], "kernels": len(report["kernels"])}


def _herd(folder: Path, count: int) -> dict[str, Any]:
    """So many processes at once, an empty store, two kernels: starts of the compiler, seconds until all are done."""
    log = folder / f"spawns-{count}"
    compiler = folder / f"g++-{count}"
    real = shlex.quote(shutil.which("g++") or shutil.which("clang++") or "c++")
    compiler.write_text(f'#!/bin/sh\necho >>{shlex.quote(str(log))}\nexec {real} "$@"\n')
    compiler.chmod(0o755)
    settings = {"JITBLAS_CACHE_DIR": str(folder / f"herd-{count}"), "JITBLAS_CXX": shlex.quote(str(compiler))}
    started = time.perf_counter()
    command = [sys.executable, "-c", HERD]
    herd = [subprocess.Popen(command, env=_environment(settings), stderr=subprocess.DEVNULL) for _ in range(count)]
    failed = sum(process.wait() != 0 for process in herd)
    return {
        "processes": count,
        "seconds": time.perf_counter() - started,
        "spawns": len(log.read_text().splitlines()),
        "failed": failed,
    }


def _on_disk(root: Path) -> tuple[int, int]:
    """Bytes of the files and number of inodes of a store, index and memos included."""
    every = list(root.rglob("*"))
    return sum(path.stat().st_size for path in every if path.is_file()), len(every) + 1


def service_cells(found: dict[str, Any]) -> Cells:
    rates = ", ".join(f"{rate:.1f}" for rate in found["prewarm"].values())
    lines = [
        ["hit in memory", f"{found['in_memory_hit'] * 1e9:.0f} ns"],
        [f"prewarm of {found['kernels']} kernels, 1 and 2 jobs", f"{rates} kernels/s"],
        *(
            [f"{herd['processes']} cold processes", f"{herd['spawns']} compilers started, {herd['seconds']:.2f} s"]
            for herd in found["herds"]
        ),
        ["a kernel on disk, with all that the store keeps", f"{found['bytes_per_kernel'] / 1024:.0f} KiB, "
         f"{found['inodes_per_kernel']:.1f} inodes"],
    ]  # fmt: skip
    return [["what a service pays", ""], *lines]
