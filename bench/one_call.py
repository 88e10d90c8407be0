"""What a new process pays, told in seconds on stdout; run by costs.py, one process per figure.

    python one_call.py call      the first axpy_ex of a process that has imported numpy and jitblas
    python one_call.py compile   one kernel of a class, by a compiler that is known already

Imports nothing that jitblas would otherwise have to import during the call.
"""

import sys
import time

import numpy

import jitblas


def first_call() -> float:
    x, y = numpy.ones(8, numpy.float32), numpy.ones(8, numpy.float32)
    start = time.perf_counter()
    jitblas.axpy_ex(0.75, x, y)
    spent = time.perf_counter() - start
    if y[7] != 1.75:
        raise SystemExit(f"wrong result: {y[7]}")
    return spent


def compile_one() -> float:
    from jitblas.jit import artifacts

    recipe = jitblas.specialize("axpy_ex:n=8", "host").recipe
    recipe.key()  # finds the compiler
    start = time.perf_counter()
    artifacts.obtain(recipe)
    return time.perf_counter() - start


if __name__ == "__main__":
    print({"call": first_call, "compile": compile_one}[sys.argv[1]]())
