"""How functions answer: a status, and the sentence behind the last one that was not zero."""

from __future__ import annotations

import threading

from jitblas.errors import Status, StatusError
from jitblas.handle import Handle

_state = threading.local()


def last_error() -> str:
    """The sentence behind the last non-zero status on this thread; empty if there was none."""
    return getattr(_state, "message", "")


class Refused(Exception):
    def __init__(self, status: Status, message: str) -> None:
        self.status = status
        super().__init__(message)


def answer(function: str, status: Status, message: str) -> Status:
    _state.message = f"{function}: {status.name}: {message}"
    return status


def guarded(function: str, error: Exception) -> Status:
    """The status that an exception means at this level."""
    if isinstance(error, StatusError):
        return answer(function, error.status, error.message)
    if isinstance(error, Refused):
        return answer(function, error.status, str(error))
    if isinstance(error, MemoryError):
        return answer(function, Status.ALLOC_FAILED, "out of memory")
    return answer(function, Status.INTERNAL_ERROR, str(error))


def check_handle(function: str, handle: Handle | None) -> Status | None:
    if handle is None:
        return answer(function, Status.HANDLE_IS_NULLPTR, "handle is null; make one with aclblasCreate()")
    if not isinstance(handle, Handle):
        raise TypeError(f"{function}: handle is a {type(handle).__name__}, no handle")
    if handle.destroyed:
        return answer(function, Status.NOT_INITIALIZED, "the handle was destroyed")
    return None
