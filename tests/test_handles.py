"""Handles: their end, their streams and their workspace."""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitblas
from jitblas import Status
from tests.operands import refused


def test_a_handle_is_a_context_and_ends_once() -> None:
    with jitblas.Handle("host") as handle:
        assert handle.target == "host" and not handle.destroyed
    assert handle.destroyed
    handle.destroy()
    refused(Status.NOT_INITIALIZED, handle.synchronize)
    refused(Status.NOT_INITIALIZED, handle.__enter__)


def test_each_thread_has_one_default_handle() -> None:
    from jitblas.handle import default_handle

    mine = default_handle("host")
    assert default_handle("host") is mine
    others: list[Any] = []
    thread = threading.Thread(target=lambda: others.append(default_handle("host")))
    thread.start()
    thread.join()
    assert others[0] is not mine


def test_a_workspace_is_made_when_needed_grows_and_has_a_cap() -> None:
    with jitblas.Handle("host") as handle:
        assert (handle.workspace.size, handle.workspace.owned) == (0, True)
        address = handle.workspace.reserve(1000)
        assert handle.workspace.size == 32 << 20 and address % 512 == 0
        assert handle.workspace.reserve(32 << 20) == address
        handle.workspace.reserve(33 << 20)
        assert handle.workspace.size >= 33 << 20
        assert str((4 << 30) + 1) in refused(Status.ALLOC_FAILED, lambda: handle.workspace.reserve((4 << 30) + 1))


def test_a_workspace_of_the_user_s_is_never_grown() -> None:
    memory = jitblas.empty(1024, "fp32")
    with jitblas.Handle("host", workspace=memory) as handle:
        assert (handle.workspace.size, handle.workspace.owned) == (4096, False)
        assert handle.workspace.reserve(4096) == memory.address
        assert "4097 bytes" in refused(Status.ALLOC_FAILED, lambda: handle.workspace.reserve(4097))
    assert memory.numpy().size == 1024
    for wrong in (("address", 5), (0, 5), (memory.address, -1)):
        with pytest.raises(TypeError):
            jitblas.Handle("host", workspace=wrong)


@pytest.mark.parametrize("take", [copy.copy, copy.deepcopy, pickle.dumps])
def test_what_stands_for_something_of_this_process_cannot_be_copied(take: Callable[[Any], Any]) -> None:
    with jitblas.Handle("host") as handle:
        things = [handle, handle.stream, handle.stream.record(), handle.workspace, jitblas.zeros(3, target="host")]
        things.append(jitblas.plan("axpy_ex:n=3", handle=handle))
        for thing in things:
            with pytest.raises(TypeError, match="cannot be copied or pickled"):
                take(thing)


def test_a_stream_given_by_its_address_is_not_destroyed_under_its_handle() -> None:
    stream = jitblas.Stream("host")
    handle = jitblas.Handle(stream=stream.address, target="host")
    assert handle.stream is stream
    with pytest.raises(jitblas.StatusError, match="still use this stream"):
        stream.destroy()
    handle.destroy()
    stream.destroy()


def _busy(handle: jitblas.Handle) -> None:
    """Work that keeps a stream busy for some time."""
    a = jitblas.zeros((1500, 1500), "fp32")
    jitblas.sgemm_strided_batched(a, a, jitblas.empty((1500, 1500), "fp32"), handle=handle)


@pytest.mark.parametrize("end", ["another workspace", "no handle"])
def test_a_workspace_lives_as_long_as_work_uses_it(end: str) -> None:
    """Memory of that size is unmapped when it is freed: writing to it would end the process."""
    stream = jitblas.Stream("host")
    handle = jitblas.Handle("host", stream, workspace=jitblas.empty(1 << 26, "u8"))
    x, out = jitblas.array(np.ones(1 << 20, np.complex64)), jitblas.zeros(1, "c64")
    _busy(handle)
    jitblas.cdotc(x, x, out=out, handle=handle)
    if end == "another workspace":
        handle.set_workspace(None)
    else:
        del handle
    stream.synchronize()
    assert out.numpy()[0] == 1 << 20


def test_a_workspace_goes_to_another_stream_when_work_on_the_first_is_done() -> None:
    first, second = jitblas.Stream("host"), jitblas.Stream("host")
    handle = jitblas.Handle("host", first, workspace=jitblas.empty(4096, "u8"))
    x, y = (jitblas.array(np.full(1 << 20, number, np.complex64)) for number in (1, 3))
    results = [jitblas.zeros(1, "c64") for _ in range(2)]
    for _ in range(20):
        handle.set_stream(first)
        jitblas.cdotc(x, x, out=results[0], handle=handle)
        handle.set_stream(second)
        jitblas.cdotc(x, y, out=results[1], handle=handle)
        first.synchronize()
        second.synchronize()
        assert [result.numpy()[0] for result in results] == [1 << 20, 3 << 20]
