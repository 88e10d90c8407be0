"""`jitblas demo`: every operator once through compile, store, launch, and a check against float64."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from jitblas import config
from jitblas.cli.demonstrations import demonstration
from jitblas.cli.show import stored
from jitblas.errors import CompilerNotFound
from jitblas.handle import Handle
from jitblas.hardware import HOST, TARGETS
from jitblas.jit import artifacts, compiling, kernels
from jitblas.jit.kernels import default_target
from jitblas.jit.specialization import Specialization, specialize
from jitblas.operators import OPERATORS
from jitblas.operators.axpy_ex import DTYPES
from jitblas.problem import Problem

REPEATS = 7
"""Calls whose fastest is the one that rates are computed from."""

INCREMENTS = ((1, 1), (2, -3))
LINES = (
    "csyrk:n=12,k=12",
    "csyrk:n=300,k=200,alpha=0.75-0.5j,beta=0.5j",
    "sgemm_strided_batched:NN,m=8,n=8,k=8,batch=1000",
    "sgemm_strided_batched:NT,m=256,n=256,k=256,batch=4",
    "sgemm_strided_batched:TN,m=100,n=90,k=80,batch=10,alpha=0.75,beta=0.5",
)
"""One for each kernel on matrices."""

TRANSFORMS = ("fft:n=16,batch=10000,dtype=c64", "fft:n=1024,batch=100,dtype=c64,dir=inverse", "fft:n=65536,dtype=c64")
DOUBLE = "fft:n=65536"
"""On the host, which has FP64."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--target", choices=TARGETS, help="default: the target that calls would use")
    parser.add_argument("-n", type=_size, default=1_000_003, help="elements of a vector (default: %(default)s)")


def _size(text: str) -> int:
    number = float(text)
    if not 1 <= number <= 1e9 or number != int(number):
        raise argparse.ArgumentTypeError(f"{text}: a whole number from 1 to 1e9 is accepted")
    return int(number)


def run(arguments: argparse.Namespace) -> int:
    compiling.announce = True
    target = arguments.target or default_target()
    print(f"target {target} · {_compiler(target)} · {config.threads()} threads · store {artifacts.store().root}")
    with Handle(target) as handle:
        print(f"\n{HEADING}")
        good = True
        for problem in _problems(arguments.n, target):
            row = _row(problem, handle)
            good = good and row.ok
            print(row, flush=True)
    print("\nall results agree with NumPy" if good else "\nRESULTS ARE WRONG where ok says NO")
    return 0 if good else 1


def _compiler(target: str) -> str:
    try:
        return artifacts.find_toolchain(target).version
    except CompilerNotFound:
        return "no compiler (the store must have every kernel)"


HEADING = (
    f"{'operator':<21} {'of':<21} {'1st call ms':>12} {'from':<8} "
    f"{'2nd call ms':>12} {'from':<8} {'rate':>12} {'max error':>9}  ok"
)


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    problem: Problem
    first_ms: float
    first_from: str
    second_ms: float
    second_from: str
    rate: str
    error: float
    ok: bool

    def __str__(self) -> str:
        return (
            f"{self.problem.op:<21} {_sizes(self.problem):<21} "
            f"{self.first_ms:>12.2f} {self.first_from:<8} {self.second_ms:>12.2f} {self.second_from:<8} "
            f"{self.rate:>12} {self.error:>9.1e}  {'yes' if self.ok else 'NO'}"
        )


def _sizes(problem: Problem) -> str:
    value = dict(problem.values)
    if problem.op == "sgemm_strided_batched":
        return f"{value['trans']} {value['m']}x{value['n']}x{value['k']} {value['batch']:>4}"
    if problem.op == "csyrk":
        return f"{value['form']} {value['n']}x{value['k']}"
    if problem.op == "fft":
        return f"{value['dtype']:<5} {value['n']:<8} {value['batch']:>6}"
    inc = f"{value['incx']},{value['incy']}"
    return f"{value.get('dtype', 'c64'):<5} {inc:<5} {value['n']:>9}"


def _problems(n: int, target: str) -> Iterator[Problem]:
    for incx, incy in INCREMENTS:
        for dtype in DTYPES:
            yield Problem.parse(f"axpy_ex:n={n},dtype={dtype},incx={incx},incy={incy},alpha=0.75")
    yield Problem.parse(f"cdotc:n={n}")
    yield from map(Problem.parse, (*LINES, *TRANSFORMS, *((DOUBLE,) if target == HOST else ())))


def _row(problem: Problem, handle: Handle) -> Row:
    """Two timed calls on the same data, both checked, then more for the rate."""
    chosen = specialize(problem, handle.target, profile=handle.runtime.profile())
    times, sources, errors, good = [], [], [], True
    for _ in range(2):
        shown = demonstration(problem, handle)
        sources.append(_source(chosen))
        times.append(_timed(shown.call) * 1e3)
        error, ok = shown.error()
        errors.append(error)
        good = good and ok
    best = min(_timed(shown.call) for _ in range(REPEATS))
    operator: Any = OPERATORS[problem.op]
    rate = f"{operator.bytes_moved(problem) / best / 1e9:.1f} GB/s"
    if hasattr(operator, "flops"):
        rate = f"{operator.flops(problem) / best / 1e9:.1f} Gflop/s"
    return Row(problem, times[0], sources[0], times[1], sources[1], rate, max(errors), good)


def _source(chosen: Specialization) -> str:
    """Where a call would have its kernel from."""
    if chosen in kernels._kernels:
        return "memory"
    return "disk" if stored(chosen) else "compiler"


def _timed(call: Callable[[], Any]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started
