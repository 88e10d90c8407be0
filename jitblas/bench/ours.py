"""jitblas as a contestant: every way in that a problem can be called through."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jitblas
from jitblas import aclblas
from jitblas.bench.measure import Call
from jitblas.bench.problems import AxpyData, Data, DotData, FftData, GemmData, SyrkData
from jitblas.handle import Handle
from jitblas.plans import Plan

TINY = 64
"""Up to this n the way in takes longer than the kernel, so every way in has a row."""

TINY_FLOPS = 1000
"""The same for products."""

_ACL_TYPES = {"fp32": aclblas.ACL_FLOAT, "fp16": aclblas.ACL_FLOAT16, "bf16": aclblas.ACL_BF16}


@dataclass(frozen=True)
class Entry:
    """One way in.

    Attributes
    ----------
    level : "plan", "array", "aclblas arrays" or "aclblas addresses"
    kernel : "class" or "exact"
    key : of the kernel's artifact
    error : why it cannot be measured; then `call` does nothing
    """

    level: str
    kernel: str
    key: str
    call: Call
    error: str | None = None


def entries(data: Data, handle: Handle, exact: bool) -> list[Entry]:
    """Plans always: what they add to the kernel is least. The other levels where they matter."""
    return list(_WAYS[data.problem.op](data, handle, exact))


def _axpy_ex(data: AxpyData, handle: Handle, exact: bool) -> Iterator[Entry]:
    plans = _plans(data, handle, exact)
    for kernel, plan in plans:
        yield _plan_entry(data, kernel, plan)
    if data.n <= TINY:
        key = plans[0][1].specialization.key
        for level, call in (
            ("array", Call(functools.partial(jitblas.axpy_ex, data.alpha, data.x, data.y, handle=handle))),
            ("aclblas arrays", _aclblas(data, handle, addresses=False)),
            ("aclblas addresses", _aclblas(data, handle, addresses=True)),
        ):
            yield Entry(level, "class", key, call)


def _plans(data: Data, handle: Handle, exact: bool) -> list[tuple[str, Plan]]:
    kinds = (("class", False), ("exact", True)) if exact else (("class", False),)
    return [(kernel, jitblas.plan(data.problem, exact=baked, handle=handle)) for kernel, baked in kinds]


def _plan_entry(data: AxpyData, kernel: str, plan: Plan) -> Entry:
    call = Call(functools.partial(plan, data.alpha, data.x, data.y))
    return Entry("plan", kernel, plan.specialization.key, call)


def _aclblas(data: AxpyData, handle: Handle, *, addresses: bool) -> Call:
    """Asynchronous calls: waiting for the last of them is part of the time."""
    kind = _ACL_TYPES[data.problem.value("dtype")]
    alpha = ctypes.c_float(data.alpha)
    operands: tuple[object, object, object] = (alpha, data.x_memory, data.y_memory)
    if addresses:
        operands = (ctypes.addressof(alpha), data.x_memory.ctypes.data, data.y_memory.ctypes.data)
    scalar, x, y = operands
    incx, incy = data.problem.value("incx"), data.problem.value("incy")
    single = aclblas.ACL_FLOAT
    function = functools.partial(
        aclblas.aclblasAxpyEx, handle, data.n, scalar, single, x, kind, incx, y, kind, incy, single
    )
    return Call(function, finish=handle.synchronize, keep=(alpha,))


def _cdotc(data: DotData, handle: Handle, exact: bool) -> Iterator[Entry]:
    plans = _plans(data, handle, exact)
    for kernel, plan in plans:
        call = Call(functools.partial(plan, data.x, data.y, data.result))
        yield Entry("plan", kernel, plan.specialization.key, call)
    if data.n <= TINY:
        key = plans[0][1].specialization.key
        incx, incy = data.problem.value("incx"), data.problem.value("incy")
        operands = (data.x_memory, incx, data.y_memory, incy, data.result)
        addresses = [item if isinstance(item, int) else item.ctypes.data for item in operands]
        function = functools.partial(aclblas.aclblasCdotc, handle, data.n)
        yield Entry("array", "class", key, Call(functools.partial(jitblas.cdotc, data.x, data.y, handle=handle)))
        for level, what in (("aclblas arrays", operands), ("aclblas addresses", addresses)):
            yield Entry(level, "class", key, Call(functools.partial(function, *what), finish=handle.synchronize))


def _csyrk(data: SyrkData, handle: Handle, exact: bool) -> Iterator[Entry]:
    plans = _plans(data, handle, exact)
    for kernel, plan in plans:
        call = Call(functools.partial(plan, data.a, data.c))
        yield Entry("plan", kernel, plan.specialization.key, call)
    if data.problem.value("n") <= TINY:
        uplo, trans = data.problem.value("form")
        function = functools.partial(
            jitblas.csyrk, data.a, data.c, alpha=data.alpha, beta=data.beta, trans=trans, uplo=uplo, handle=handle
        )
        yield Entry("array", "class", plans[0][1].specialization.key, Call(function))


def _fft(data: FftData, handle: Handle, exact: bool) -> Iterator[Entry]:
    plans = _plans(data, handle, exact=False)  # there is no other: points are always a constant, batches never
    for kernel, plan in plans:
        call = Call(functools.partial(plan, data.x, data.out))
        yield Entry("plan", kernel, plan.specialization.key, call)
    if data.x.size <= TINY:
        function = getattr(jitblas.fft, data.function)
        call = Call(functools.partial(function, data.x, norm=data.norm, out=data.out, handle=handle))
        yield Entry("array", "class", plans[0][1].specialization.key, call)


def _sgemm_strided_batched(data: GemmData, handle: Handle, exact: bool) -> Iterator[Entry]:
    plans = _plans(data, handle, exact)
    for kernel, plan in plans:
        call = Call(functools.partial(plan, data.a, data.b, data.c))
        yield Entry("plan", kernel, plan.specialization.key, call)
    if data.work <= TINY_FLOPS:
        function = functools.partial(
            jitblas.sgemm_strided_batched, data.a, data.b, data.c, alpha=data.alpha, beta=data.beta,
            transa=data.trans[0], transb=data.trans[1], handle=handle,
        )  # fmt: skip
        yield Entry("array", "class", plans[0][1].specialization.key, Call(function))


_WAYS: dict[str, Callable[[Any, Handle, bool], Iterator[Entry]]] = {
    "axpy_ex": _axpy_ex,
    "cdotc": _cdotc,
    "csyrk": _csyrk,
    "fft": _fft,
    "sgemm_strided_batched": _sgemm_strided_batched,
}
"""Operator -> its ways in, given its data."""
