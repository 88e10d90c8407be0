"""Other libraries, each doing the same work on the same memory. A peer knows an operator by a method of its name."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import functools
import inspect
import os
import sys
from collections.abc import Iterator
from importlib import import_module, metadata
from importlib.util import find_spec
from typing import Any

import numpy as np

from jitblas.bench.machine import version_of
from jitblas.bench.measure import Call
from jitblas.bench.problems import Array, AxpyData, Data, DotData, FftData, GemmData, SyrkData

OPENBLAS_SPINS = 0.05
"""Seconds: 2^26 cycles."""

LIBGOMP_SPINS = 0.02
"""Seconds."""

LEEWAY = 8
"""Peers are compared for speed: their transforms may be that many times as far off as ours."""

MOST_MEASURED = 1 << 22
"""Points in all up to which FFTW chooses its plan by trying; with more that takes too long."""


class Peer:
    """A library to compare with. Its modules are imported at the first call that needs them."""

    name: str
    packages: tuple[str, ...]
    """What pip would install."""
    spins = 0.0
    """Seconds that its idle threads go on spinning after a call on several threads, rounded up generously."""

    def available(self) -> bool:
        return all(find_spec(package) is not None for package in self.packages)

    def remedy(self) -> str:
        """What to do where it is not available."""
        return f"not installed; pip install {' '.join(self.packages)}"

    def version(self) -> str:
        return ", ".join(f"{package} {version_of(package)}" for package in self.packages)

    def kernels(self) -> str:
        """What it chose for this processor, in its own words."""
        raise NotImplementedError

    @contextlib.contextmanager
    def limited(self, threads: int) -> Iterator[None]:
        """Run on `threads` threads meanwhile."""
        yield

    def call(self, data: Data, threads: int) -> Call | None:
        """The peer's way to do a problem; None if it has none."""
        method = getattr(self, data.problem.op, None)
        call: Call | None = None if method is None else method(data, threads)
        return None if call is None else dataclasses.replace(call, leeway=LEEWAY)


class NumPy(Peer):
    name = "numpy"
    packages = ("numpy",)

    def kernels(self) -> str:
        try:
            found = np.show_config(mode="dicts")["SIMD Extensions"]["found"]
        except (TypeError, KeyError):
            return "unknown"
        return f"ufuncs for {found[-1] if found else 'the baseline'}, bf16 by ml_dtypes {version_of('ml_dtypes')}"

    def axpy_ex(self, data: AxpyData, threads: int) -> Call:
        x, y, alpha = data.x, data.y, data.dtype.type(data.alpha)
        product = np.empty(data.n, data.dtype)  # a temporary per call would measure the allocator

        def call() -> None:
            np.multiply(x, alpha, out=product)
            np.add(y, product, out=y)

        return Call(call, note="one thread: ufuncs have no more" if threads > 1 else "")

    def cdotc(self, data: DotData, threads: int) -> Call:
        return Call(functools.partial(np.vdot, data.x, data.y), spins=OPENBLAS_SPINS if threads > 1 else 0.0)

    @contextlib.contextmanager
    def limited(self, threads: int) -> Iterator[None]:
        if find_spec("threadpoolctl") is None:
            yield  # its BLAS is left out of the comparison then
            return
        with import_module("threadpoolctl").threadpool_limits(threads, user_api="blas"):
            yield

    def sgemm_strided_batched(self, data: GemmData, threads: int) -> Call | None:
        if (data.alpha, data.beta) != (1.0, 0.0) or find_spec("threadpoolctl") is None:
            return None
        function = functools.partial(np.matmul, data.left, data.right, out=data.c)
        return Call(function, spins=OPENBLAS_SPINS if threads > 1 else 0.0, note="one matrix at a time")

    def fft(self, data: FftData, threads: int) -> Call:
        return _module_fft(np.fft, data, "one thread: numpy.fft has no more" if threads > 1 else "")


class SciPy(Peer):
    name = "scipy"
    packages = ("scipy", "threadpoolctl")
    spins = OPENBLAS_SPINS

    def kernels(self) -> str:
        import_module("scipy.linalg.blas")
        libraries = import_module("threadpoolctl").threadpool_info()
        found = [library for library in libraries if library["user_api"] == "blas"]
        own = [library for library in found if "scipy" in library["filepath"].rpartition("/")[0]] or found
        names = ("internal_api", "version", "architecture")
        return ", ".join(" ".join(str(library[name]) for name in names if library.get(name)) for library in own)

    @contextlib.contextmanager
    def limited(self, threads: int) -> Iterator[None]:
        import_module("scipy.linalg.blas")
        with import_module("threadpoolctl").threadpool_limits(threads, user_api="blas"):
            yield

    def axpy_ex(self, data: AxpyData, threads: int) -> Call | None:
        if data.problem.value("dtype") != "fp32":
            return None
        saxpy = import_module("scipy.linalg.blas").saxpy
        incx, incy = data.problem.value("incx"), data.problem.value("incy")
        # y is overwritten: the wrapper copies nothing that has the right type already.
        function = functools.partial(saxpy, data.x_memory, data.y_memory, data.n, data.alpha, 0, incx, 0, incy)
        return Call(function, spins=self.spins if threads > 1 else 0.0)

    def cdotc(self, data: DotData, threads: int) -> Call:
        function = import_module("scipy.linalg.blas").cdotc
        incx, incy = data.problem.value("incx"), data.problem.value("incy")
        call = functools.partial(function, data.x_memory, data.y_memory, data.n, 0, incx, 0, incy)
        return Call(call, spins=self.spins if threads > 1 else 0.0)

    def csyrk(self, data: SyrkData, threads: int) -> Call:
        function = import_module("scipy.linalg.blas").csyrk
        # c is overwritten: the wrapper copies nothing that is column-major already.
        call = functools.partial(
            function, data.alpha, data.fortran_a, data.beta, data.fortran_c, int(data.trans), int(data.lower), 1
        )
        return Call(call, spins=self.spins if threads > 1 else 0.0)

    def fft(self, data: FftData, threads: int) -> Call:
        note = "one thread: scipy.fft divides batches only" if threads > 1 and data.x.ndim == 1 else ""
        return _module_fft(import_module("scipy.fft"), data, note, workers=threads)


class Fftw(Peer):
    name = "fftw"
    packages = ("pyfftw",)
    spins = LIBGOMP_SPINS

    def kernels(self) -> str:
        # The package's public version leaves out which instructions it was built for.
        return str(getattr(_pyfftw(), "_fftw_version_dict", {}).get("64", "unknown"))

    def fft(self, data: FftData, threads: int) -> Call:
        flag = "FFTW_MEASURE" if data.x.size <= MOST_MEASURED else "FFTW_ESTIMATE"
        x, out, scale = data.x, data.out, data.scale
        before = x.copy()  # trying plans out overwrites both arrays
        direction = "FFTW_FORWARD" if data.function == "fft" else "FFTW_BACKWARD"
        plan = _pyfftw().FFTW(x, out, direction=direction, flags=(flag,), threads=threads)
        x[...] = before
        spins = self.spins if threads > 1 else 0.0
        if scale == 1:
            return Call(plan.execute, spins=spins, note=flag)

        def call() -> None:
            plan.execute()
            np.multiply(out, scale, out=out)

        return Call(call, spins=spins, note=f"{flag}; scaled by NumPy afterwards: FFTW does not scale")


class Torch(Peer):
    name = "torch"
    packages = ("torch",)
    spins = LIBGOMP_SPINS

    def kernels(self) -> str:
        return f"CPU capability {import_module('torch').backends.cpu.get_cpu_capability()}"

    @contextlib.contextmanager
    def limited(self, threads: int) -> Iterator[None]:
        torch = import_module("torch")
        before = torch.get_num_threads()
        torch.set_num_threads(threads)
        try:
            yield
        finally:
            torch.set_num_threads(before)

    def axpy_ex(self, data: AxpyData, threads: int) -> Call:
        incx, incy = data.problem.value("incx"), data.problem.value("incy")
        x_memory, note = data.x_memory, ""
        if incx * incy < 0 and data.n > 1:
            # With x turned round beforehand the same pairs meet, in the same memory traffic.
            x_memory = np.ascontiguousarray(x_memory[::-1])
            note = "x reversed beforehand: torch has no negative strides"
        x, y = self._tensor(x_memory, incx), self._tensor(data.y_memory, incy)
        function = functools.partial(y.add_, x, alpha=data.alpha)
        return Call(function, spins=self.spins if threads > 1 else 0.0, note=note, keep=(x_memory,))

    def cdotc(self, data: DotData, threads: int) -> Call | None:
        if data.problem.value("incx") < 0 or data.problem.value("incy") < 0:
            return None
        torch = import_module("torch")
        function = functools.partial(torch.vdot, torch.from_numpy(data.x), torch.from_numpy(data.y))
        return Call(function, spins=self.spins if threads > 1 else 0.0)

    def sgemm_strided_batched(self, data: GemmData, threads: int) -> Call:
        torch = import_module("torch")
        left, right, c = (torch.from_numpy(matrix) for matrix in (data.left, data.right, data.c))
        if (data.alpha, data.beta) == (1.0, 0.0):
            function = functools.partial(torch.bmm, left, right, out=c)
        else:
            function = functools.partial(
                torch.baddbmm, c, left, right, beta=data.beta, alpha=data.alpha, out=c
            )  # fmt: skip
        return Call(function, spins=self.spins if threads > 1 else 0.0)

    def fft(self, data: FftData, threads: int) -> Call:
        torch = import_module("torch")
        x, out = torch.from_numpy(data.x), torch.from_numpy(data.out)
        function = functools.partial(getattr(torch.fft, data.function), x, norm=data.norm, out=out)
        return Call(function, spins=self.spins if threads > 1 else 0.0)

    @staticmethod
    def _tensor(memory: Array, inc: int) -> Any:
        """The vector in the order of its addresses, sharing memory."""
        torch = import_module("torch")
        if memory.dtype.name == "bfloat16":
            return torch.from_numpy(memory.view(np.int16)).view(torch.bfloat16)[:: abs(inc)]
        return torch.from_numpy(memory)[:: abs(inc)]


class Mkl(Peer):
    name = "mkl"
    packages = ("mkl", "mkl_fft")
    spins = 0.25  # libiomp5: KMP_BLOCKTIME is 200 ms

    def available(self) -> bool:
        return _mkl() is not None

    def kernels(self) -> str:
        text = ctypes.create_string_buffer(256)
        _mkl().mkl_get_version_string(text, len(text))
        return text.value.decode(errors="replace").strip()

    @contextlib.contextmanager
    def limited(self, threads: int) -> Iterator[None]:
        library = _mkl()
        before = library.MKL_Get_Max_Threads()
        library.MKL_Set_Num_Threads(threads)
        try:
            yield
        finally:
            library.MKL_Set_Num_Threads(before)

    def axpy_ex(self, data: AxpyData, threads: int) -> Call | None:
        if data.problem.value("dtype") != "fp32":
            return None
        saxpy = _mkl().cblas_saxpy
        saxpy.restype = None
        arguments = (
            ctypes.c_int(data.n),
            ctypes.c_float(data.alpha),
            ctypes.c_void_p(data.x_memory.ctypes.data),
            ctypes.c_int(data.problem.value("incx")),
            ctypes.c_void_p(data.y_memory.ctypes.data),
            ctypes.c_int(data.problem.value("incy")),
        )
        return Call(functools.partial(saxpy, *arguments), spins=self.spins if threads > 1 else 0.0)

    def cdotc(self, data: DotData, threads: int) -> Call:
        function = _mkl().cblas_cdotc_sub
        function.restype = None
        vectors = (
            (ctypes.c_void_p(memory.ctypes.data), ctypes.c_int(data.problem.value(inc)))
            for memory, inc in ((data.x_memory, "incx"), (data.y_memory, "incy"))
        )
        arguments = [ctypes.c_int(data.n), *(item for vector in vectors for item in vector)]
        call = functools.partial(function, *arguments, ctypes.c_void_p(data.result.ctypes.data))
        return Call(call, spins=self.spins if threads > 1 else 0.0)

    def csyrk(self, data: SyrkData, threads: int) -> Call:
        function = _mkl().cblas_csyrk
        function.restype = None
        column_major, lower, upper, no, yes = 102, 122, 121, 111, 112
        n, k = data.problem.value("n"), data.problem.value("k")
        scalars = [np.array([scalar], np.complex64) for scalar in (data.alpha, data.beta)]
        arguments = (
            column_major, lower if data.lower else upper, yes if data.trans else no, ctypes.c_int(n), ctypes.c_int(k),
            ctypes.c_void_p(scalars[0].ctypes.data), ctypes.c_void_p(data.a.ctypes.data),
            ctypes.c_int(data.fortran_a.shape[0]), ctypes.c_void_p(scalars[1].ctypes.data),
            ctypes.c_void_p(data.c.ctypes.data), ctypes.c_int(n),
        )  # fmt: skip
        call = functools.partial(function, *arguments)
        return Call(call, spins=self.spins if threads > 1 else 0.0, keep=tuple(scalars))

    def sgemm_strided_batched(self, data: GemmData, threads: int) -> Call:
        function = _mkl().cblas_sgemm_batch_strided
        function.restype = None
        row_major, letters = 101, {"N": 111, "T": 112}
        sizes = [data.problem.value(name) for name in ("m", "n", "k")]
        operands = [
            (ctypes.c_void_p(matrix.ctypes.data), ctypes.c_int(matrix.shape[2]), ctypes.c_int(matrix[0].size))
            for matrix in (data.a, data.b, data.c)
        ]
        arguments = (
            row_major, letters[data.trans[0]], letters[data.trans[1]], *map(ctypes.c_int, sizes),
            ctypes.c_float(data.alpha), *operands[0], *operands[1], ctypes.c_float(data.beta), *operands[2],
            ctypes.c_int(len(data.a)),
        )  # fmt: skip
        return Call(functools.partial(function, *arguments), spins=self.spins if threads > 1 else 0.0)

    def fft(self, data: FftData, threads: int) -> Call | None:
        if find_spec("mkl_fft") is None:
            return None
        module = import_module("mkl_fft")
        # It keeps the last length's descriptor, which stays with the number of threads it was made for.
        module.fft(np.zeros(3, data.x.dtype))
        return dataclasses.replace(_module_fft(module, data), spins=self.spins if threads > 1 else 0.0)


class Libxsmm(Peer):
    name = "libxsmm"
    packages = ()

    def available(self) -> bool:
        return _libxsmm() is not None

    def remedy(self) -> str:
        return "no libxsmm.so is found; build LIBXSMM with STATIC=0 and name its folder in LD_LIBRARY_PATH"

    def version(self) -> str:
        return "LIBXSMM"

    def kernels(self) -> str:
        target = _libxsmm().libxsmm_get_target_arch
        target.restype = ctypes.c_char_p
        return f"generated for {target().decode()}"

    def sgemm_strided_batched(self, data: GemmData, threads: int) -> Call | None:
        m, n, k, batch = (data.problem.value(name) for name in ("m", "n", "k", "batch"))
        # It generates kernels for small sizes and hands others to a BLAS; kernels for A transposed it has none.
        if threads > 1 or data.trans != "NN" or m * n * k >= 64**3 or (data.alpha, data.beta) != (1.0, 0.0):
            return None
        # Column-major: the transposed problem.
        integers = [ctypes.c_int(value) for value in (n, m, k, n, k, n)]
        offsets = [np.arange(batch, dtype=np.int32) * np.int32(size) for size in (k * n, m * k, m * n)]
        scalars = ctypes.c_float(1.0), ctypes.c_float(0.0)
        f32, no = 1, ctypes.c_char(b"N")
        arguments = (
            f32, f32, ctypes.byref(no), ctypes.byref(no), *integers[:3], ctypes.byref(scalars[0]),
            ctypes.c_void_p(data.b.ctypes.data), ctypes.byref(integers[3]), ctypes.c_void_p(data.a.ctypes.data),
            ctypes.byref(integers[4]), ctypes.byref(scalars[1]), ctypes.c_void_p(data.c.ctypes.data),
            ctypes.byref(integers[5]), 0, 4, *(ctypes.c_void_p(offset.ctypes.data) for offset in offsets),
            ctypes.c_int(batch),
        )  # fmt: skip
        function = _libxsmm().libxsmm_gemm_batch
        function.restype = None
        return Call(functools.partial(function, *arguments), keep=(no, *integers, *scalars, *offsets))


def _module_fft(module: Any, data: FftData, note: str = "", **options: Any) -> Call:
    """fft or ifft of a module that goes by NumPy, written to the problem's array if the installed version can."""
    function = getattr(module, data.function)
    if "out" in inspect.signature(function).parameters:
        options["out"] = data.out
    else:
        note = "; ".join(filter(None, (note, "a new array every call")))
    return Call(functools.partial(function, data.x, norm=data.norm, **options), note=note)


@functools.cache
def _pyfftw() -> Any:
    """The module, bound to its own FFTW: MKL has functions of the same names, and once it is used they come first."""
    flags = sys.getdlopenflags()
    sys.setdlopenflags(flags | getattr(os, "RTLD_DEEPBIND", 0))
    try:
        return import_module("pyfftw")
    finally:
        sys.setdlopenflags(flags)


@functools.cache
def _libxsmm() -> Any:
    """The shared library, wherever the loader finds it; None if there is none."""
    try:
        return ctypes.CDLL("libxsmm.so")
    except OSError:
        return None


@functools.cache
def _mkl() -> Any:
    """The library of the wheel `mkl`, which has no module of its own; None if it is not there or does not load."""
    try:
        files = metadata.files("mkl") or []
        path = next(file.locate() for file in files if file.name.startswith("libmkl_rt.so"))
        return ctypes.CDLL(str(path))
    except (metadata.PackageNotFoundError, StopIteration, OSError):
        return None


PEERS: dict[str, Peer] = {peer.name: peer for peer in (NumPy(), SciPy(), Fftw(), Torch(), Mkl(), Libxsmm())}
