"""The ACL runtime of CANN by ctypes: one device of the 950 family.

Importing this module loads nothing; the library comes with the first :class:`AclRuntime` or :func:`availability`.
"""

from __future__ import annotations

import ctypes
import os
import platform
import threading
from ctypes import POINTER, byref, c_char_p, c_float, c_int, c_int32, c_int64, c_size_t, c_uint32, c_void_p
from dataclasses import replace
from typing import Any

from jitblas.errors import ArchMismatch, Status, StatusError
from jitblas.targets import ARCHITECTURE, ASCEND950PR, PROFILES, Profile

LIBRARY = "libascendcl.so"
REMEDY = "install the CANN toolkit and the NPU driver and source the toolkit's set_env.sh"

ALREADY_INITIALIZED = 100002
MALLOC_HUGE_FIRST = 0
EVENT_TIME_LINE = 8
STREAM_COMPLETE = 0
EVENT_COMPLETE = 1
LOCATION_DEVICE = 1
VECTOR_CORES = 201
NPU_ARCHITECTURE = 601
COPY_KINDS = {"to_device": 1, "to_host": 2, "on_device": 3}


class _PointerAttributes(ctypes.Structure):
    _fields_ = [("id", c_uint32), ("type", c_int), ("pageSize", c_uint32), ("rsv", c_uint32 * 4)]


_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "aclInit": (c_char_p,),
    "aclrtSetDevice": (c_int32,),
    "aclrtGetDevice": (POINTER(c_int32),),
    "aclrtGetDeviceCount": (POINTER(c_uint32),),
    "aclrtGetDeviceInfo": (c_uint32, c_int, POINTER(c_int64)),
    "aclrtCreateStream": (POINTER(c_void_p),),
    "aclrtDestroyStream": (c_void_p,),
    "aclrtSynchronizeStream": (c_void_p,),
    "aclrtStreamQuery": (c_void_p, POINTER(c_int)),
    "aclrtCreateEventWithFlag": (POINTER(c_void_p), c_uint32),
    "aclrtDestroyEvent": (c_void_p,),
    "aclrtRecordEvent": (c_void_p, c_void_p),
    "aclrtQueryEventStatus": (c_void_p, POINTER(c_int)),
    "aclrtSynchronizeEvent": (c_void_p,),
    "aclrtEventElapsedTime": (POINTER(c_float), c_void_p, c_void_p),
    "aclrtMalloc": (POINTER(c_void_p), c_size_t, c_int),
    "aclrtFree": (c_void_p,),
    "aclrtMemcpyAsync": (c_void_p, c_size_t, c_void_p, c_size_t, c_int, c_void_p),
    "aclrtMemsetAsync": (c_void_p, c_size_t, c_int32, c_size_t, c_void_p),
    "aclrtPointerGetAttributes": (c_void_p, POINTER(_PointerAttributes)),
}
"""Argument types of the functions that return an error code, which is all but the two that return text."""

_TEXTS = ("aclrtGetSocName", "aclGetRecentErrMsg")

_lock = threading.Lock()
_acl: ctypes.CDLL | None = None  # the library, once aclInit has succeeded
_owner: int | None = None  # the process in which it did


def find_library() -> str | None:
    """What to load the ACL runtime by: its path below ASCEND_HOME_PATH, or its name if the loader knows that."""
    root = os.environ.get("ASCEND_HOME_PATH")
    if root:
        for folder in ("lib64", os.path.join(f"{platform.machine()}-linux", "lib64")):
            path = os.path.join(os.path.abspath(root), folder, LIBRARY)
            if os.path.exists(path):
                return path
    try:
        ctypes.CDLL(LIBRARY)
    except OSError:
        return None
    return LIBRARY


def availability() -> tuple[bool, str]:
    """Whether a toolkit and a device of the 950 family answer, and a sentence on what was found or is missing.

    Costs next to nothing where ASCEND_HOME_PATH is not set; elsewhere it loads and initialises the runtime.
    """
    if not os.environ.get("ASCEND_HOME_PATH"):
        return False, f"ASCEND_HOME_PATH is not set: {REMEDY}"
    try:
        acl = _load()
        architectures = [_device_info(acl, device, NPU_ARCHITECTURE) for device in range(_device_count(acl))]
    except StatusError as error:
        return False, error.message
    if not architectures:
        return False, "the CANN runtime answers but shows no device: see npu-smi info and ASCEND_RT_VISIBLE_DEVICES"
    matching = architectures.count(ARCHITECTURE)
    if not matching:
        return False, f"{_soc_name(acl)}: architecture {architectures[0]}, kernels are for {ARCHITECTURE} (Ascend 950)"
    return True, f"{_soc_name(acl)}: {matching} of {len(architectures)} devices have architecture {ARCHITECTURE}"


def _load() -> ctypes.CDLL:
    """The initialised library: loaded once per process."""
    global _acl, _owner
    _refuse_fork()  # before the lock, which another thread may have held at the fork
    with _lock:
        if _acl is not None:
            return _acl
        path = find_library()
        if path is None:
            raise StatusError(Status.NOT_INITIALIZED, "acl", None, f"{LIBRARY} is not found: {REMEDY}")
        try:
            acl = ctypes.CDLL(path)
            for name, arguments in _SIGNATURES.items():
                function = getattr(acl, name)
                function.argtypes, function.restype = arguments, c_int
            for name in _TEXTS:
                function = getattr(acl, name)
                function.argtypes, function.restype = (), c_char_p
        except (OSError, AttributeError) as error:  # a library it needs, or a function, is missing
            raise StatusError(
                Status.NOT_INITIALIZED, "acl", None, f"{path} cannot be used ({error}): {REMEDY}"
            ) from None
        code = acl.aclInit(None)
        if code not in (0, ALREADY_INITIALIZED):  # others in this process may have been first
            raise _failure(acl, "aclInit", code)
        _acl, _owner = acl, os.getpid()
        return acl


def _refuse_fork() -> None:
    if _owner is not None and _owner != os.getpid():
        raise StatusError(
            Status.NOT_INITIALIZED,
            "acl",
            None,
            f"the ACL runtime was initialised in process {_owner} and does not survive a fork; start workers with "
            f'multiprocessing.get_context("spawn"), or fork before the first call',
        )


def _failure(acl: ctypes.CDLL, function: str, code: int, status: Status = Status.INTERNAL_ERROR) -> StatusError:
    text = acl.aclGetRecentErrMsg()
    detail = text.decode(errors="replace").strip() if text else "the runtime gave no message"
    return StatusError(status, function, None, f"ACL error {code}: {detail}")


def _device_count(acl: ctypes.CDLL) -> int:
    count = c_uint32()
    code = acl.aclrtGetDeviceCount(byref(count))
    if code:
        raise _failure(acl, "aclrtGetDeviceCount", code)
    return count.value


def _device_info(acl: ctypes.CDLL, device: int, attribute: int) -> int:
    value = c_int64()
    code = acl.aclrtGetDeviceInfo(device, attribute, byref(value))
    if code:
        raise _failure(acl, "aclrtGetDeviceInfo", code)
    return value.value


def _soc_name(acl: ctypes.CDLL) -> str:
    name = acl.aclrtGetSocName()
    return name.decode(errors="replace") if name else "unknown SoC"


def _current_device(acl: ctypes.CDLL) -> int | None:
    device = c_int32()
    return device.value if acl.aclrtGetDevice(byref(device)) == 0 else None


class AclRuntime:
    """Implements :class:`jitblas.runtime.Runtime` on one device.

    The device is the calling thread's current one (torch_npu may have chosen it), else the first of the 950 family.
    """

    target = ASCEND950PR
    shares_host_memory = False

    def __init__(self) -> None:
        self._acl = acl = _load()
        self._thread = threading.local()
        self._positions: dict[int, list[int]] = {}  # stream -> [commands submitted, commands known to be complete]
        self._streams: set[int] = set()
        self._lock = threading.Lock()
        count = _device_count(acl)
        current = _current_device(acl)
        devices = range(count) if current is None else (current,)
        found = [(device, _device_info(acl, device, NPU_ARCHITECTURE)) for device in devices]
        fitting = [device for device, architecture in found if architecture == ARCHITECTURE]
        if not fitting:
            seen = ", ".join(f"device {device} has architecture {architecture}" for device, architecture in found)
            raise ArchMismatch(f"kernels are for architecture {ARCHITECTURE}; {seen or 'there is no device'}", "acl")
        self.device = fitting[0]
        self.soc_name = _soc_name(acl)

    def profile(self) -> Profile:
        cores = _device_info(self._ready(), self.device, VECTOR_CORES)
        return replace(PROFILES[ASCEND950PR], vector_cores=cores)

    def create_stream(self) -> int:
        stream = c_void_p()
        self._call("aclrtCreateStream", byref(stream))
        with self._lock:
            self._streams.add(stream.value or 0)
            # The library may hand out an address again.
            self._positions.pop(stream.value or 0, None)
        return stream.value or 0

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
        """ACL has no counters: ours move when the whole stream is idle. A stream is used by one thread at a time."""
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
        self._call(
            "aclrtMalloc", byref(address), max(1, nbytes), MALLOC_HUGE_FIRST, status=Status.ALLOC_FAILED
        )
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
        attributes = _PointerAttributes()
        self._call("aclrtPointerGetAttributes", address, byref(attributes))
        return bool(attributes.type == LOCATION_DEVICE)

    def bind(self, library: Any) -> None:
        """Nothing to do: kernel libraries are linked to the ACL runtime."""

    def shutdown(self) -> None:
        """Wait for our streams. aclFinalize is not ours to call: others in this process may use the runtime."""
        if _owner != os.getpid():
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
            raise _failure(acl, function, code, status)

    def _ready(self) -> ctypes.CDLL:
        """The library, with our device current on this thread."""
        _refuse_fork()
        if not getattr(self._thread, "ready", False):
            if _current_device(self._acl) != self.device:
                code = self._acl.aclrtSetDevice(self.device)
                if code:
                    raise _failure(self._acl, "aclrtSetDevice", code)
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
