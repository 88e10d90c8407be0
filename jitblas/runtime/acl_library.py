"""Loading libascendcl.so: once per process, every function with its types, and never in a forked child."""

from __future__ import annotations

import ctypes
import os
import platform
import threading
from ctypes import POINTER, byref, c_char_p, c_float, c_int, c_int32, c_int64, c_size_t, c_uint32, c_void_p
from typing import Any

from jitblas.errors import Status, StatusError
from jitblas.hardware import ARCHITECTURE

LIBRARY = "libascendcl.so"
REMEDY = "install the CANN toolkit and the NPU driver and source the toolkit's set_env.sh"

ALREADY_INITIALIZED = 100002
NPU_ARCHITECTURE = 601


class PointerAttributes(ctypes.Structure):
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
    "aclrtPointerGetAttributes": (c_void_p, POINTER(PointerAttributes)),
}
"""Argument types of the functions that return an error code, which is all but the two that return text."""

_TEXTS = ("aclrtGetSocName", "aclGetRecentErrMsg")

_lock = threading.Lock()
_acl: ctypes.CDLL | None = None  # the library, once aclInit has succeeded
_owner: int | None = None  # the process in which it did


def find_library() -> str | None:
    """What to load the ACL runtime by: its path below ASCEND_HOME_PATH, or the name if that can be loaded."""
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
    """Whether a toolkit and a 950 answer, and a sentence on what was found or is missing.

    Costs next to nothing where ASCEND_HOME_PATH is not set; elsewhere it loads and initialises the runtime.
    """
    if not os.environ.get("ASCEND_HOME_PATH"):
        return False, f"ASCEND_HOME_PATH is not set: {REMEDY}"
    try:
        acl = load()
        architectures = [device_info(acl, device, NPU_ARCHITECTURE) for device in range(device_count(acl))]
    except StatusError as error:
        return False, error.message
    if not architectures:
        return (
            False,
            "the CANN runtime answers but shows no device: see npu-smi info and ASCEND_RT_VISIBLE_DEVICES",
        )
    matching = architectures.count(ARCHITECTURE)
    if not matching:
        return (
            False,
            f"{soc_name(acl)}: architecture {architectures[0]}, kernels are for {ARCHITECTURE} (Ascend 950)",
        )
    return (
        True,
        f"{soc_name(acl)}: {matching} of {len(architectures)} devices have architecture {ARCHITECTURE}",
    )


def load() -> ctypes.CDLL:
    """The initialised library: loaded once per process."""
    global _acl, _owner
    refuse_fork()  # before the lock, which another thread may have held at the fork
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
            raise failure(acl, "aclInit", code)
        _acl, _owner = acl, os.getpid()
        return acl


def refuse_fork() -> None:
    """ACL state does not survive a fork; raises in a child of the process that initialised it."""
    if _owner is not None and _owner != os.getpid():
        raise StatusError(
            Status.NOT_INITIALIZED,
            "acl",
            None,
            f"the ACL runtime was initialised in process {_owner} and does not survive a fork; start workers "
            f'with multiprocessing.get_context("spawn"), or fork before the first call',
        )


def failure(acl: ctypes.CDLL, function: str, code: int, status: Status = Status.INTERNAL_ERROR) -> StatusError:
    """The exception for an error code, with ACL's own words."""
    text = acl.aclGetRecentErrMsg()
    detail = text.decode(errors="replace").strip() if text else "the runtime gave no message"
    return StatusError(status, function, None, f"ACL error {code}: {detail}")


def device_count(acl: ctypes.CDLL) -> int:
    count = c_uint32()
    code = acl.aclrtGetDeviceCount(byref(count))
    if code:
        raise failure(acl, "aclrtGetDeviceCount", code)
    return count.value


def device_info(acl: ctypes.CDLL, device: int, attribute: int) -> int:
    value = c_int64()
    code = acl.aclrtGetDeviceInfo(device, attribute, byref(value))
    if code:
        raise failure(acl, "aclrtGetDeviceInfo", code)
    return value.value


def soc_name(acl: ctypes.CDLL) -> str:
    name = acl.aclrtGetSocName()
    return name.decode(errors="replace") if name else "unknown SoC"


def current_device(acl: ctypes.CDLL) -> int | None:
    """This thread's device, None if it has none yet."""
    device = c_int32()
    return device.value if acl.aclrtGetDevice(byref(device)) == 0 else None


def initialized_here() -> bool:
    return _owner == os.getpid()
