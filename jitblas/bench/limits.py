"""What the machine can do at most: arithmetic of one core, and bandwidth from every level of its memory."""

from __future__ import annotations

import ctypes
import functools
import os
import statistics
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from jitblas import config
from jitblas.arrays import aligned_empty
from jitblas.bench.machine import available_memory, caches
from jitblas.jit.artifacts import library_recipe
from jitblas.jit.kernels import load_library

SECONDS = 0.05
"""Length of one measurement."""

REPEATS = 7


def _library() -> Any:
    """The library of probes, an artifact like any other."""
    probes = os.path.join(config.kernels_folder(), "probes")
    recipe = library_recipe("the probes of the machine's limits", os.path.join(probes, "limits.cpp"), (probes,))
    library: Any = load_library(recipe.title, lambda: recipe)[0]
    library.jitblas_limits_fma.argtypes = [ctypes.c_uint64]
    library.jitblas_limits_fma.restype = ctypes.c_float
    library.jitblas_limits_fma_flops.restype = ctypes.c_uint64
    library.jitblas_limits_vector_bytes.restype = ctypes.c_uint64
    pointers = [ctypes.c_void_p] * 3
    library.jitblas_limits_triad.argtypes = [*pointers, ctypes.c_uint64, ctypes.c_uint64]
    library.jitblas_limits_triad.restype = None
    return library


def measure_limits(seconds: float = SECONDS, repeats: int = REPEATS) -> list[dict[str, Any]]:
    """Rows of what, value, unit, note; the best of `repeats`, since a limit is what is possible."""
    library = _library()
    flops = library.jitblas_limits_fma_flops()
    per_round = _best(library.jitblas_limits_fma, seconds, repeats)
    width = library.jitblas_limits_vector_bytes() * 8
    note = f"{width}-bit registers, independent chains"
    rows = [_row("FP32 FMA, one core", flops / per_round / 1e9, "GFLOP/s", note)]
    for name, nbytes in working_sets().items():
        arrays = _three_arrays(nbytes)
        per_pass = _best(functools.partial(_triad, library, arrays), seconds, repeats)
        rows.append(_row(f"triad {name}, one core", _traffic(arrays) / per_pass / 1e9, "GB/s", _size_note(arrays)))
    threads = config.threads()
    if threads > 1:
        shares = [_three_arrays(working_sets()["DRAM"] // threads) for _ in range(threads)]
        rates = [_together(library, shares, per_pass, seconds) for _ in range(repeats)]
        rows.append(_row(f"triad DRAM, {threads} threads", max(rates) / 1e9, "GB/s", f"each {_size_note(shares[0])}"))
    return rows


def working_sets() -> dict[str, int]:
    """Level -> bytes of three arrays that live there: half of a cache, several times the last for DRAM."""
    sizes = caches()
    sets = {f"L{level}": size // 2 for level, size in sizes.items()}
    last = sizes[max(sizes)] if sizes else 32 << 20
    return sets | {"DRAM": min(4 * last, available_memory() // 4)}


def _row(what: str, value: float, unit: str, note: str) -> dict[str, Any]:
    return {"what": what, "value": value, "unit": unit, "note": note}


def _size_note(arrays: list[np.ndarray[Any, Any]]) -> str:
    kib = arrays[0].nbytes / 1024
    return f"3 x {kib:.0f} KiB" if kib < 1024 else f"3 x {kib / 1024:.0f} MiB"


def _traffic(arrays: list[np.ndarray[Any, Any]]) -> int:
    """Bytes of one pass as STREAM counts them: two arrays read, one written."""
    return 3 * int(arrays[0].nbytes)


def _three_arrays(nbytes: int) -> list[np.ndarray[Any, Any]]:
    """Aligned, of whole unrolled steps, and written: pages that nobody wrote are all the same one."""
    count = max(nbytes // 3 // 1024, 1) * 256
    arrays = []
    for value in (0.0, 1.0, 2.0):
        array = aligned_empty((count,), np.dtype(np.float32))
        array[...] = value
        arrays.append(array)
    return arrays


def _triad(library: Any, arrays: list[np.ndarray[Any, Any]], rounds: int) -> None:
    library.jitblas_limits_triad(*(array.ctypes.data for array in arrays), arrays[0].size, rounds)


def _best(run: Callable[[int], object], seconds: float, repeats: int) -> float:
    """Least seconds per round of `run(rounds)`, each run about `seconds` long."""
    rounds, spent = 1, _time(run, 1)
    while spent < seconds / 2 and rounds < 1 << 40:
        rounds *= 2 if spent > seconds / 20 else 8
        spent = _time(run, rounds)
    return min(_time(run, rounds) for _ in range(repeats)) / rounds


def _time(run: Callable[[int], object], rounds: int) -> float:
    start = time.perf_counter()
    run(rounds)
    return time.perf_counter() - start


def _together(library: Any, shares: list[list[np.ndarray[Any, Any]]], per_pass: float, seconds: float) -> float:
    """Bytes per second of all threads at once; ctypes lets go of the interpreter lock during the calls."""
    rounds = max(2, round(seconds * len(shares) / per_pass))
    barrier = threading.Barrier(len(shares))
    times: list[float] = []

    def work(arrays: list[np.ndarray[Any, Any]]) -> None:
        barrier.wait()
        times.append(_time(functools.partial(_triad, library, arrays), rounds))

    threads = [threading.Thread(target=work, args=(arrays,)) for arrays in shares]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(_traffic(arrays) for arrays in shares) * rounds / statistics.mean(times)
