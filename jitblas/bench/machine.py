"""What a figure depends on besides the code: processor, caches, versions, environment. Imports nothing heavy."""

from __future__ import annotations

import datetime
import functools
import os
import platform
import shlex
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

OVERRIDES = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
"""Variables that make OpenBLAS run another kernel than the machine's own."""

_PREFIXES = ("JITBLAS_", "OPENBLAS_", "OMP_", "GOMP_", "KMP_", "MKL_", "NPY_", "ATEN_")


def restart_without_overrides() -> None:
    """Start this command afresh if the environment handicaps a peer; returns only if it does not."""
    found = [name for name in OVERRIDES if name in os.environ]
    if not found:
        return
    print(
        f"jitblas: {' and '.join(found)} would make OpenBLAS run another kernel than this machine's own: starting "
        f"again without",
        file=sys.stderr,
        flush=True,
    )
    environment = {name: value for name, value in os.environ.items() if name not in OVERRIDES}
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)


@functools.cache
def caches() -> dict[int, int]:
    """Level -> bytes of the data caches that the first processor of ours sees; empty where nobody says."""
    sizes: dict[int, int] = {}
    processor = min(os.sched_getaffinity(0))
    for index in Path(f"/sys/devices/system/cpu/cpu{processor}/cache").glob("index*"):
        try:
            kind, level, size = ((index / name).read_text().strip() for name in ("type", "level", "size"))
        except OSError:
            continue
        if kind != "Instruction":
            sizes[int(level)] = int(size.rstrip("KMG")) << {"K": 10, "M": 20, "G": 30}.get(size[-1], 0)
    return dict(sorted(sizes.items()))


def cpu_model() -> str:
    """The processor's name, or at least its kind."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    for line in lines:
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.processor() or platform.machine()


def available_memory() -> int:
    """Bytes that can be had without swapping."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) << 10
    except OSError:
        pass
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


def version_of(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def facts() -> dict[str, Any]:
    """Everything that is needed to measure the same again, as JSON holds it."""
    from jitblas import __version__, config
    from jitblas.hardware import HOST
    from jitblas.jit.artifacts import find_toolchain

    compiler = find_toolchain(HOST)
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "command": shlex.join(sys.orig_argv),
        "machine": {
            "cpu": cpu_model(),
            "architecture": platform.machine(),
            "system": platform.platform(),
            "processors": os.cpu_count(),
            "processors_allowed": len(os.sched_getaffinity(0)),
            "caches": {f"L{level}": size for level, size in caches().items()},
            "load": os.getloadavg()[0],
        },
        "versions": {
            "python": platform.python_version(),
            "jitblas": __version__,
            "numpy": version_of("numpy"),
            "ml_dtypes": version_of("ml_dtypes"),
        },
        "compiler": {"name": compiler.name, "version": compiler.version, "flags": list(compiler.flags)},
        "threads": config.threads(),
        "environment": _environment(os.environ),
    }


def _environment(variables: Mapping[str, str]) -> dict[str, str | None]:
    """Variables that change what libraries do; the overrides always, None where they are unset."""
    chosen: dict[str, str | None] = dict.fromkeys(OVERRIDES)
    return chosen | {name: value for name, value in sorted(variables.items()) if name.startswith(_PREFIXES)}
