"""The ACL runtime of CANN by ctypes: one device of the 950 family.

Importing this module loads nothing: the library comes with the first :class:`AclRuntime` or
:func:`availability`.
"""

from __future__ import annotations

import ctypes
import threading
from ctypes import byref, c_float, c_int, c_void_p
from typing import Any

from jitblas.errors import ArchMismatch, Status, StatusError
from jitblas.hardware import ARCHITECTURE, ASCEND950PR, PROFILES, Profile
from jitblas.runtime import acl_library as library
from jitblas.runtime.acl_library import availability, find_library

__all__ = ["AclRuntime", "availability", "find_library"]

MALLOC_HUGE_FIRST = 0
EVENT_TIME_LINE = 8
STREAM_COMPLETE = 0
EVENT_COMPLETE = 1
LOCATION_DEVICE = 1
CUBE_CORES, VECTOR_CORES = 102, 201
COPY_KINDS = {"to_device": 1, "to_host": 2, "on_device": 3}


class AclRuntime:
    """Implements :class:`jitblas.runtime.Runtime` on one device.

    The device is the calling thread's current one (torch_npu may have chosen it), else the first 950.
    """

    target = ASCEND950PR
    shares_host_memory = False

    def __init__(self) -> None:
        self._acl = acl = library.load()
        self._thread = threading.local()
        self._positions: dict[int, list[int]] = {}  # stream -> [commands submitted, commands known to be complete]
        self._streams: set[int] = set()
        # Reentrant: a garbage collection inside the lock may finalise streams and memory, which take it, too.
        self._lock = threading.RLock()
        count = library.device_count(acl)
        current = library.current_device(acl)
        devices = range(count) if current is None else (current,)
        found = [(device, library.device_info(acl, device, library.NPU_ARCHITECTURE)) for device in devices]
        fitting = [device for device, architecture in found if architecture == ARCHITECTURE]
        if not fitting:
            seen = ", ".join(f"device {device} has architecture {architecture}" for device, architecture in found)
            raise ArchMismatch(f"kernels are for architecture {ARCHITECTURE}; {seen or 'there is no device'}", "acl")
        self.device = fitting[0]
        self.soc_name = library.soc_name(acl)

    def profile(self) -> Profile:
        cube, vector = (library.device_info(self._ready(), self.device, kind) for kind in (CUBE_CORES, VECTOR_CORES))
        return PROFILES[ASCEND950PR]._replace(cube_cores=cube, cores_at_once=cube, vector_cores=vector)

    def create_stream(self) -> int:
        stream = c_void_p()
        self._call("aclrtCreateStream", byref(stream))
        with self._lock:
            self._streams.add(stream.value or 0)
            # The library may hand out an address again.
            self._positions.pop(stream.value or 0, None)
        return stream.value or 0

    def check_stream(self, address: int) -> None:
        """ACL cannot tell; 0 is its default stream."""

    def destroy_stream(self, stream: int) -> None:
        # ACL wants an idle stream here; one whose work failed is destroyed all the same.
        try:
            self.synchronize_stream(stream)
        finally:
            self._call("aclrtDestroyStream", stream)
            with self._lock:
                self._streams.discard(stream)
                self._positions.pop(stream, None)

    def synchronize_stream(self, stream: int) -> None:
        submitted = self._submitted(stream)
        self._call("aclrtSynchronizeStream", stream, status=Status.EXECUTION_FAILED)
        self._completed(stream, submitted)

    def stream_position(self, stream: int) -> tuple[int, int]:
        """ACL has no counters: what is complete is known whenever the whole stream is idle.

        To be asked by the thread that launches: :meth:`launch_stream` counts a launch just before it is made.
        """
        submitted = self._submitted(stream)
        status = c_int(-1)
        # A query that fails says nothing about the work: what is not known to be complete stays alive.
        if self._ready().aclrtStreamQuery(stream, byref(status)) == 0 and status.value == STREAM_COMPLETE:
            self._completed(stream, submitted)
        with self._lock:
            submitted, completed = self._positions.get(stream, (0, 0))
        return submitted, completed

    def launch_stream(self, stream: int, *, wait: bool, small: bool, overlapping: bool) -> int:
        self._ready()  # kernels are launched on this thread's current device
        self._submit(stream)
        return stream

    def create_event(self) -> int:
        event = c_void_p()
        self._call("aclrtCreateEventWithFlag", byref(event), EVENT_TIME_LINE)
        return event.value or 0

    def destroy_event(self, event: int) -> None:
        self._call("aclrtDestroyEvent", event)

    def record_event(self, event: int, stream: int) -> None:
        self._call("aclrtRecordEvent", event, stream)

    def event_complete(self, event: int) -> bool:
        status = c_int(-1)
        self._call("aclrtQueryEventStatus", event, byref(status))
        return status.value == EVENT_COMPLETE

    def synchronize_event(self, event: int) -> None:
        self._call("aclrtSynchronizeEvent", event, status=Status.EXECUTION_FAILED)

    def elapsed_ms(self, start: int, end: int) -> float:
        milliseconds = c_float()
        self._call("aclrtEventElapsedTime", byref(milliseconds), start, end)
        return milliseconds.value

    def allocate(self, nbytes: int) -> int:
        address = c_void_p()
        # ACL refuses to allocate nothing.
        self._call("aclrtMalloc", byref(address), max(1, nbytes), MALLOC_HUGE_FIRST, status=Status.ALLOC_FAILED)
        return address.value or 0

    def release(self, address: int) -> None:
        self._call("aclrtFree", address)

    def copy_async(self, destination: int, source: int, nbytes: int, kind: str, stream: int) -> None:
        """Copies from and to ordinary (not page-locked) host memory are complete on return, as ACL has it."""
        if nbytes:
            self._call("aclrtMemcpyAsync", destination, nbytes, source, nbytes, COPY_KINDS[kind], stream)
            self._submit(stream)

    def set_async(self, destination: int, byte: int, nbytes: int, stream: int) -> None:
        if nbytes:
            self._call("aclrtMemsetAsync", destination, nbytes, byte, nbytes, stream)
            self._submit(stream)

    def is_device_pointer(self, address: int) -> bool:
        if not address:
            return False
        attributes = library.PointerAttributes()
        self._call("aclrtPointerGetAttributes", address, byref(attributes))
        return bool(attributes.type == LOCATION_DEVICE)

    def bind(self, library: Any) -> None:
        """Nothing to do: kernel libraries are linked to the ACL runtime."""

    def shutdown(self) -> None:
        """Wait for our streams. aclFinalize is not ours to call: others here may use the runtime."""
        if not library.initialized_here():
            return
        for stream in tuple(self._streams):
            try:
                self.synchronize_stream(stream)
            except StatusError:
                pass  # at exit nobody is left to hear of it

    def _call(self, function: str, *arguments: Any, status: Status = Status.INTERNAL_ERROR) -> None:
        acl = self._ready()
        code = getattr(acl, function)(*arguments)
        if code:
            raise library.failure(acl, function, code, status)

    def _ready(self) -> ctypes.CDLL:
        """The library, with our device current on this thread."""
        library.refuse_fork()
        if not getattr(self._thread, "ready", False):
            if library.current_device(self._acl) != self.device:
                code = self._acl.aclrtSetDevice(self.device)
                if code:
                    raise library.failure(self._acl, "aclrtSetDevice", code)
            self._thread.ready = True
        return self._acl

    def _submit(self, stream: int) -> None:
        with self._lock:
            self._positions.setdefault(stream, [0, 0])[0] += 1

    def _submitted(self, stream: int) -> int:
        with self._lock:
            return self._positions.get(stream, (0, 0))[0]

    def _completed(self, stream: int, commands: int) -> None:
        with self._lock:
            position = self._positions.get(stream)
            if position is not None:
                position[1] = max(position[1], commands)
