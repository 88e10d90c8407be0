"""The host runtime: ctypes over the library that kernels_src/twin/runtime becomes."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import CDLL, c_char_p, c_int, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any

from jitblas.errors import Status, StatusError
from jitblas.hardware import HOST, PROFILES, Profile

ABI_VERSION = 2

WAIT, SMALL, UNBOUND = 1, 2, 4
"""Launch modes, added to a stream's address (kernels_src/twin/detail/abi.h)."""

_FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "jitblas_runtime_table": (c_void_p, []),
    "jitblas_set_threads": (None, [c_uint32]),
    "jitblas_set_binding": (c_int, [c_int]),
    "jitblas_stream_create": (c_void_p, []),
    "jitblas_stream_destroy": (None, [c_void_p]),
    "jitblas_stream_synchronize": (c_int, [c_void_p, c_char_p, c_size_t]),
    "jitblas_stream_position": (None, [c_void_p, c_void_p]),
    "jitblas_copy_async": (c_int, [c_void_p, c_void_p, c_void_p, c_size_t]),
    "jitblas_set_async": (c_int, [c_void_p, c_void_p, c_int, c_size_t]),
    "jitblas_event_create": (c_void_p, []),
    "jitblas_event_destroy": (None, [c_void_p]),
    "jitblas_event_record": (c_int, [c_void_p, c_void_p]),
    "jitblas_event_query": (c_int, [c_void_p]),
    "jitblas_event_synchronize": (None, [c_void_p]),
    "jitblas_event_time": (c_int64, [c_void_p]),
    "jitblas_allocate": (c_void_p, [c_size_t]),
    "jitblas_release": (None, [c_void_p]),
    "jitblas_shutdown": (None, []),
}


class HostRuntime:
    """Device memory is aligned host memory, and kernels may be given any host address."""

    target = HOST
    shares_host_memory = True

    def __init__(self, library: CDLL, threads: int) -> None:
        for name, (restype, argtypes) in _FUNCTIONS.items():
            function = getattr(library, name)
            function.restype, function.argtypes = restype, argtypes
        self._library: Any = library
        self._position = self._library.jitblas_stream_position
        self._table: int = library.jitblas_runtime_table()
        library.jitblas_set_threads(threads)
        self._threads = threads
        self._blocks: dict[int, int] = {}  # address -> bytes of what allocate() gave out
        self._starts: list[int] = []
        self.stream_idle = ctypes.cast(library.jitblas_stream_idle, c_void_p).value or 0
        """Address of the C function that tells whether a stream has nothing to do."""
        self._streams: set[int] = set()
        # Reentrant: a garbage collection inside the lock may finalise memory, which takes it, too.
        self._lock = threading.RLock()
        # Held across a fork, so that a child finds it free and the tables whole.
        os.register_at_fork(
            before=self._lock.acquire, after_in_parent=self._lock.release, after_in_child=self._lock.release
        )

    def profile(self) -> Profile:
        return PROFILES[HOST]._replace(cores_at_once=self._threads)

    def create_stream(self) -> int:
        stream = self._address(self._library.jitblas_stream_create(), "a stream")
        self._streams.add(stream)
        return stream

    def check_stream(self, address: int) -> None:
        if address not in self._streams:
            raise StatusError(
                Status.INVALID_VALUE,
                "host runtime",
                "stream",
                f"{address:#x} is not the address of a stream of this runtime; make one with jitblas.Stream('host')",
            )

    def destroy_stream(self, stream: int) -> None:
        self._streams.discard(stream)
        self._library.jitblas_stream_destroy(stream)

    def synchronize_stream(self, stream: int) -> None:
        message = ctypes.create_string_buffer(640)
        status = self._library.jitblas_stream_synchronize(stream, message, len(message))
        if status != 0:
            raise StatusError(Status(status), "synchronize", None, message.value.decode(errors="replace"))

    def stream_position(self, stream: int) -> tuple[int, int]:
        position = (c_uint64 * 2)()
        self._position(stream, ctypes.addressof(position))
        return position[0], position[1]

    def launch_stream(self, stream: int, *, wait: bool, small: bool, overlapping: bool) -> int:
        return stream | (WAIT if wait else SMALL if small else 0) | (UNBOUND if overlapping else 0)

    def create_event(self) -> int:
        return self._address(self._library.jitblas_event_create(), "an event")

    def destroy_event(self, event: int) -> None:
        self._library.jitblas_event_destroy(event)

    def record_event(self, event: int, stream: int) -> None:
        self._check(self._library.jitblas_event_record(event, stream), "recording an event")

    def event_complete(self, event: int) -> bool:
        return bool(self._library.jitblas_event_query(event))

    def synchronize_event(self, event: int) -> None:
        self._library.jitblas_event_synchronize(event)

    def elapsed_ms(self, start: int, end: int) -> float:
        times: list[int] = [self._library.jitblas_event_time(event) for event in (start, end)]
        if min(times) < 0:
            raise StatusError(
                Status.INVALID_VALUE, "elapsed_ms", None, "both events must have been recorded and reached: synchronize"
            )
        return (times[1] - times[0]) / 1e6

    def allocate(self, nbytes: int) -> int:
        address = self._address(self._library.jitblas_allocate(nbytes), f"{nbytes} bytes")
        from bisect import insort

        with self._lock:
            self._blocks[address] = max(nbytes, 1)
            insort(self._starts, address)
        return address

    def release(self, address: int) -> None:
        with self._lock:
            del self._blocks[address]
            self._starts.remove(address)
        self._library.jitblas_release(address)

    def is_device_pointer(self, address: int) -> bool:
        from bisect import bisect_right

        with self._lock:
            index = bisect_right(self._starts, address) - 1
            return index >= 0 and address < self._starts[index] + self._blocks[self._starts[index]]

    def copy_async(self, destination: int, source: int, nbytes: int, kind: str, stream: int) -> None:
        self._check(self._library.jitblas_copy_async(stream, destination, source, nbytes), "a copy")

    def set_async(self, destination: int, byte: int, nbytes: int, stream: int) -> None:
        self._check(self._library.jitblas_set_async(stream, destination, byte, nbytes), "a memory set")

    def bind(self, library: Any) -> None:
        library.jitblas_bind.argtypes, library.jitblas_bind.restype = [c_void_p], c_uint32
        version = library.jitblas_bind(self._table)
        if version != ABI_VERSION:
            raise StatusError(
                Status.INTERNAL_ERROR, "load", None, f"kernel for runtime version {version}, this is {ABI_VERSION}"
            )

    @contextmanager
    def binding(self, allowed: bool) -> Iterator[None]:
        """Whether tensors may point at global memory instead of copies of it, for all launches made meanwhile.

        Results are the same bit for bit; the tests compare.
        """
        before = self._library.jitblas_set_binding(int(allowed))
        try:
            yield
        finally:
            self._library.jitblas_set_binding(before)

    def set_threads(self, threads: int) -> None:
        """Let this many threads share a launch's blocks, the launching one included."""
        self._library.jitblas_set_threads(threads)
        self._threads = threads

    def shutdown(self) -> None:
        self._library.jitblas_shutdown()

    @staticmethod
    def _address(address: int | None, what: str) -> int:
        if not address:
            raise StatusError(Status.ALLOC_FAILED, "host runtime", None, f"no memory for {what}")
        return address

    @staticmethod
    def _check(status: int, what: str) -> None:
        if status != 0:
            raise StatusError(Status(status), "host runtime", None, f"{what} was refused")
