"""Handles, streams and workspaces."""

from __future__ import annotations

from typing import Any

import numpy as np

from jitblas.aclblas.pointers import integer, locate
from jitblas.aclblas.status import Refused, check_handle, guarded, last_error
from jitblas.arrays import DeviceArray
from jitblas.errors import Status, StatusError
from jitblas.handle import Handle, Stream


def aclblasCreate() -> Handle:
    """A handle of the default target."""
    return Handle()


def aclblasDestroy(handle: Handle | None) -> Status:
    """Wait for the handle's work and free it."""
    return _on_handle("aclblasDestroy", handle, lambda h: h.destroy())


def aclblasSetStream(handle: Handle | None, stream: Any) -> Status:
    """Run later calls on another stream: a Stream, an address, or what jitblas.Handle accepts."""
    return _on_handle("aclblasSetStream", handle, lambda h: h.set_stream(stream))


def aclblasGetStream(handle: Handle) -> Stream:
    """The stream that the handle's calls run on; StatusError for a handle that is null or was destroyed."""
    refused = check_handle("aclblasGetStream", handle)
    if refused is not None:
        raise StatusError(refused, "aclblasGetStream", "handle", last_error())
    return handle.stream


def aclblasSetWorkspace(handle: Handle | None, ptr: Any, size: int) -> Status:
    """Use `size` bytes at `ptr` as workspace; it is never grown or freed."""

    def use(h: Handle) -> None:
        nbytes = integer("size", size, 0, 2**63)
        address, end = locate(ptr, "ptr")
        if address == 0:
            raise Refused(Status.INVALID_VALUE, "ptr is null")
        if isinstance(ptr, np.ndarray) and not h.runtime.shares_host_memory:
            raise Refused(Status.INVALID_VALUE, f"ptr is a NumPy array in host memory, the handle is on {h.target}")
        if isinstance(ptr, DeviceArray) and ptr.target != h.target:
            raise Refused(Status.INVALID_VALUE, f"ptr is on {ptr.target}, the handle on {h.target}")
        if isinstance(ptr, np.ndarray) and not ptr.flags.writeable:
            raise Refused(Status.INVALID_VALUE, "the array at ptr is read-only, and a workspace is written")
        if end is not None and end - address < nbytes:
            raise Refused(Status.INVALID_VALUE, f"the array at ptr has {end - address} bytes, size is {nbytes}")
        h.set_workspace((address, nbytes), owner=ptr)

    return _on_handle("aclblasSetWorkspace", handle, use)


def _on_handle(function: str, handle: Handle | None, action: Any) -> Status:
    refused = check_handle(function, handle)
    if refused is not None:
        return refused
    try:
        action(handle)
    except TypeError:
        raise
    except Exception as error:
        return guarded(function, error)
    return Status.SUCCESS
