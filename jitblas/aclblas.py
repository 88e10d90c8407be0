"""The aclblas interface: names, argument order, enumerations and status codes of the C API.

Functions return a :class:`Status` and are asynchronous on the handle's stream. They raise only TypeError, for Python
objects that are neither pointers nor numbers; `jitblas.last_error()` has the sentence behind the last status that was
not zero. A pointer is an address, a ctypes pointer or object, a NumPy array, a DeviceArray, a tensor with data_ptr(),
or None for the null pointer.
"""

from __future__ import annotations

import ctypes
import operator
import sys
import threading
from enum import IntEnum
from typing import Any

import numpy as np

from jitblas.arrays import DTYPE_WORDS, MAX_SIZE, DeviceArray, bounds, torch_fault, word_of
from jitblas.dispatch import prepare_axpy_ex, run_axpy_ex
from jitblas.errors import Status, StatusError
from jitblas.handle import Handle, Stream
from jitblas.operators.axpy_ex import DTYPES


class DataType(IntEnum):
    """aclDataType values that the operators know."""

    ACL_FLOAT = 0
    ACL_FLOAT16 = 1
    ACL_DOUBLE = 11
    ACL_COMPLEX64 = 16
    ACL_COMPLEX128 = 17
    ACL_BF16 = 27


class Operation(IntEnum):
    """aclblasOperation_t."""

    OP_N = 111
    OP_T = 112
    OP_C = 113


class Fill(IntEnum):
    """aclblasFillMode_t."""

    UPPER = 121
    LOWER = 122


ACL_FLOAT, ACL_FLOAT16, ACL_BF16 = DataType.ACL_FLOAT, DataType.ACL_FLOAT16, DataType.ACL_BF16
ACL_DOUBLE, ACL_COMPLEX64, ACL_COMPLEX128 = DataType.ACL_DOUBLE, DataType.ACL_COMPLEX64, DataType.ACL_COMPLEX128
OP_N, OP_T, OP_C = Operation.OP_N, Operation.OP_T, Operation.OP_C
UPPER, LOWER = Fill.UPPER, Fill.LOWER

_AXPY_TYPES = {int(ACL_FLOAT): "fp32", int(ACL_FLOAT16): "fp16", int(ACL_BF16): "bf16"}

_CTYPES_POINTERS: tuple[Any, ...] = (
    ctypes._Pointer, ctypes.c_void_p, ctypes.c_char_p, type(ctypes.byref(ctypes.c_int())),
)  # fmt: skip
"""ctypes objects whose value is an address."""

_CTYPES_DATA: tuple[Any, ...] = (ctypes._SimpleCData, ctypes.Array, ctypes.Structure)
"""ctypes objects that are the memory (pointers are simple data too, and come first)."""

_state = threading.local()


def last_error() -> str:
    """The sentence behind the last non-zero status on this thread; empty if there was none."""
    return getattr(_state, "message", "")


class _Refused(Exception):
    def __init__(self, status: Status, message: str) -> None:
        self.status = status
        super().__init__(message)


def _answer(function: str, status: Status, message: str) -> Status:
    _state.message = f"{function}: {status.name}: {message}"
    return status


def _guarded(function: str, error: Exception) -> Status:
    """The status that an exception means at this level."""
    if isinstance(error, StatusError):
        return _answer(function, error.status, error.message)
    if isinstance(error, _Refused):
        return _answer(function, error.status, str(error))
    if isinstance(error, MemoryError):
        return _answer(function, Status.ALLOC_FAILED, "out of memory")
    return _answer(function, Status.INTERNAL_ERROR, str(error))


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
    refused = _check_handle("aclblasGetStream", handle)
    if refused is not None:
        raise StatusError(refused, "aclblasGetStream", "handle", last_error())
    return handle.stream


def aclblasSetWorkspace(handle: Handle | None, ptr: Any, size: int) -> Status:
    """Use `size` bytes at `ptr` as workspace; it is never grown or freed."""

    def use(h: Handle) -> None:
        nbytes = _integer("size", size, 0, 2**63)
        address, end = _locate(ptr, "ptr")
        if address == 0:
            raise _Refused(Status.INVALID_VALUE, "ptr is null")
        if isinstance(ptr, np.ndarray) and not ptr.flags.writeable:
            raise _Refused(Status.INVALID_VALUE, "the array at ptr is read-only, and a workspace is written")
        if end is not None and end - address < nbytes:
            raise _Refused(Status.INVALID_VALUE, f"the array at ptr has {end - address} bytes, size is {nbytes}")
        h.set_workspace((address, nbytes))
        h._workspace_owner = ptr

    return _on_handle("aclblasSetWorkspace", handle, use)


def _on_handle(function: str, handle: Handle | None, action: Any) -> Status:
    refused = _check_handle(function, handle)
    if refused is not None:
        return refused
    try:
        action(handle)
    except TypeError:
        raise
    except Exception as error:
        return _guarded(function, error)
    return Status.SUCCESS


def _check_handle(function: str, handle: Handle | None) -> Status | None:
    if handle is None:
        return _answer(function, Status.HANDLE_IS_NULLPTR, "handle is null; make one with aclblasCreate()")
    if not isinstance(handle, Handle):
        raise TypeError(f"{function}: handle is a {type(handle).__name__}, no handle")
    if handle.destroyed:
        return _answer(function, Status.NOT_INITIALIZED, "the handle was destroyed")
    return None


def aclblasAxpyEx(
    handle: Handle | None,
    n: int,
    alpha: Any,
    alphaType: int,
    x: Any,
    xType: int,
    incx: int,
    y: Any,
    yType: int,
    incy: int,
    executionType: int,
) -> Status:
    """y := alpha * x + y for `n` elements, arithmetic in FP32.

    Element i of x is at `(incx >= 0 ? 0 : (1 - n) * incx) + i * incx` elements from `x`, likewise y. A host alpha is
    read before the call returns, one in device memory in stream order.

    Returns
    -------
    Status, checked in this order: HANDLE_IS_NULLPTR; INVALID_VALUE (n < 0); SUCCESS (n == 0, nothing is looked at);
    NOT_SUPPORTED (alphaType or executionType other than ACL_FLOAT, xType or yType other than ACL_FLOAT, ACL_FLOAT16 and
    ACL_BF16, or xType != yType); INVALID_VALUE (alpha, x or y null; an increment of 0; an array too short).
    """
    function = "aclblasAxpyEx"
    refused = _check_handle(function, handle)
    if refused is not None:
        return refused
    assert handle is not None
    try:
        n = _integer("n", n, 0, MAX_SIZE)
        if n == 0:
            return Status.SUCCESS
        word = _axpy_types(alphaType, xType, yType, executionType)
        (scalar, _), (x_address, x_end), (y_address, y_end) = _locate(alpha, "alpha"), _locate(x, "x"), _locate(y, "y")
        if scalar == 0 or x_address == 0 or y_address == 0:
            null = [name for name, address in (("alpha", scalar), ("x", x_address), ("y", y_address)) if address == 0]
            raise _Refused(Status.INVALID_VALUE, f"{' and '.join(null)} null")
        incx = _integer("incx", incx, -MAX_SIZE, MAX_SIZE)
        incy = _integer("incy", incy, -MAX_SIZE, MAX_SIZE)
        if incx == 0 or incy == 0:
            raise _Refused(Status.INVALID_VALUE, f"incx is {incx}, incy is {incy}; an increment must not be 0")
        _check_vector("x", x, x_address, x_end, n, incx, word, handle)
        _check_vector("y", y, y_address, y_end, n, incy, word, handle, output=True)
        value, device_alpha = _read_scalar(alpha, scalar, handle)
        prepared = prepare_axpy_ex(handle, n, word, incx, incy, device_alpha)
        item = DTYPES[word][1]
        overlapping = (x_address, incx) != (y_address, incy) and (
            x_address < y_address + ((n - 1) * abs(incy) + 1) * item
            and y_address < x_address + ((n - 1) * abs(incx) + 1) * item
        )
        run_axpy_ex(
            handle, prepared, value, scalar if device_alpha else None, x_address, y_address, wait=False,
            overlapping=overlapping,
        )  # fmt: skip
        if device_alpha or not (type(x) is int and type(y) is int):
            handle.stream.keep(x, y, alpha if device_alpha else None)
            for used in (x, y):
                if isinstance(used, DeviceArray):
                    used.used_on(handle.stream)
    except TypeError:
        raise
    except Exception as error:
        return _guarded(function, error)
    return Status.SUCCESS


def _axpy_types(alpha_type: int, x_type: int, y_type: int, execution_type: int) -> str:
    """The problem word of a supported combination of types."""
    types = [
        (name, operator.index(value))
        for name, value in (
            ("alphaType", alpha_type), ("executionType", execution_type), ("xType", x_type), ("yType", y_type),
        )
    ]  # fmt: skip
    for name, value in types[:2]:
        if value != ACL_FLOAT:
            raise _Refused(Status.NOT_SUPPORTED, f"{name} is {value}; ACL_FLOAT (0) is accepted")
    for name, value in types[2:]:
        if value not in _AXPY_TYPES:
            accepted = "ACL_FLOAT (0), ACL_FLOAT16 (1) and ACL_BF16 (27)"
            raise _Refused(Status.NOT_SUPPORTED, f"{name} is {value}; accepted are {accepted}")
    if types[2][1] != types[3][1]:
        raise _Refused(Status.NOT_SUPPORTED, f"xType is {types[2][1]} and yType is {types[3][1]}; they must be equal")
    return _AXPY_TYPES[types[2][1]]


def _integer(name: str, value: Any, low: int, high: int) -> int:
    """A C int argument; TypeError for what is no whole number."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is a {type(value).__name__}; a whole number is needed") from None
    if not low <= number <= high:
        raise _Refused(Status.INVALID_VALUE, f"{name} is {number}; accepted are {low} to {high}")
    return number


def _locate(pointer: Any, name: str) -> tuple[int, int | None]:
    """(address, one past the last byte) of a pointer argument. No end is known of an address; null is 0.

    The address is that of element 0. TypeError for what is no pointer.
    """
    if type(pointer) is int:
        return _checked_address(pointer, name), None
    if pointer is None:
        return 0, None
    view = pointer.view if isinstance(pointer, DeviceArray) else pointer
    if isinstance(view, np.ndarray):
        start: int = view.__array_interface__["data"][0]
        return start, start + view.nbytes if view.flags.c_contiguous else bounds(view)[1]
    if isinstance(pointer, _CTYPES_POINTERS):
        return ctypes.cast(pointer, ctypes.c_void_p).value or 0, None
    if isinstance(pointer, _CTYPES_DATA):
        start = ctypes.addressof(pointer)
        return start, start + ctypes.sizeof(pointer)
    if (torch := sys.modules.get("torch")) is not None and isinstance(pointer, torch.Tensor):
        fault = torch_fault(pointer)
        if fault is not None:
            raise _Refused(Status.INVALID_VALUE, f"{name}: {fault}")
        start, size = int(pointer.data_ptr()), pointer.element_size()
        steps = [(length - 1) * stride for length, stride in zip(pointer.shape, pointer.stride(), strict=True)]
        return start, start + ((sum(steps) + 1) * size if pointer.numel() else 0)
    if hasattr(pointer, "data_ptr"):
        return int(pointer.data_ptr()), None
    if hasattr(pointer, "__index__") and not isinstance(pointer, bool):
        return _checked_address(operator.index(pointer), name), None
    raise TypeError(
        f"{name} is a {type(pointer).__name__}; accepted are an address, a ctypes pointer, a NumPy array, a "
        f"DeviceArray, a tensor and None"
    )


def _checked_address(number: int, name: str) -> int:
    if not 0 <= number < 2**64:
        raise _Refused(Status.INVALID_VALUE, f"{name} is {number}, which is no address")
    return number


def _check_vector(
    name: str,
    array: Any,
    address: int,
    end: int | None,
    n: int,
    inc: int,
    word: str,
    handle: Handle,
    *,
    output: bool = False,
) -> None:
    """Whatever can be known of an operand: type, memory, extent."""
    if type(array) is int:
        return
    size = DTYPES[word][1]
    if isinstance(array, np.ndarray):
        if not handle.runtime.shares_host_memory:
            raise _Refused(
                Status.INVALID_VALUE, f"{name} is a NumPy array in host memory, the handle is on {handle.target}; copy "
                f"it with jitblas.array(), or call jitblas.axpy_ex, which stages",
            )  # fmt: skip
        if word_of(array.dtype) not in (word, f"uint{8 * size}"):
            raise _Refused(Status.INVALID_VALUE, f"{name} is an array of {array.dtype}, its type argument says {word}")
        if output and not array.flags.writeable:
            raise _Refused(Status.INVALID_VALUE, f"{name} is read-only and would be written")
    elif isinstance(array, DeviceArray):
        if array.target != handle.target:
            raise _Refused(Status.INVALID_VALUE, f"{name} is on {array.target}, the handle on {handle.target}")
        if array.dtype != word:
            raise _Refused(Status.INVALID_VALUE, f"{name} is an array of {array.dtype}, its type argument says {word}")
    elif (kind := _torch_word(array)) is not None and kind != word:
        raise _Refused(Status.INVALID_VALUE, f"{name} is a tensor of {kind}, its type argument says {word}")
    if end is not None:
        needed = ((n - 1) * abs(inc) + 1) * size
        if end - address < needed:
            raise _Refused(
                Status.INVALID_VALUE,
                f"{name} has {max(end - address, 0)} bytes, n = {n} and an increment of {inc} need {needed}",
            )


def _torch_word(array: Any) -> str | None:
    """The type of a torch tensor as problem lines call it; None for what is no tensor."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(array, torch.Tensor):
        return None
    name = str(array.dtype).removeprefix("torch.")
    return DTYPE_WORDS.get(name, name)


def _read_scalar(alpha: Any, address: int, handle: Handle) -> tuple[float, bool]:
    """(value, False) of a host scalar, (0, True) for one in device memory."""
    if isinstance(alpha, DeviceArray):
        if alpha.target != handle.target:
            raise _Refused(Status.INVALID_VALUE, f"alpha is on {alpha.target}, the handle on {handle.target}")
        if alpha.dtype != "fp32" or alpha.size < 1:
            raise _Refused(Status.INVALID_VALUE, f"alpha is {alpha!r}; one fp32 element is needed")
        return 0.0, True
    if isinstance(alpha, np.ndarray):
        if alpha.dtype != np.float32 or alpha.size < 1:
            raise _Refused(
                Status.INVALID_VALUE, f"alpha is an array of {alpha.size} {alpha.dtype}; one float32 is needed"
            )
    elif (kind := _torch_word(alpha)) is not None and (kind != "fp32" or alpha.numel() < 1):
        raise _Refused(Status.INVALID_VALUE, f"alpha is a tensor of {alpha.numel()} {kind}; one fp32 is needed")
    elif isinstance(alpha, _CTYPES_DATA) and not isinstance(alpha, _CTYPES_POINTERS):
        if getattr(alpha, "_type_", None) not in ("f", ctypes.c_float):  # a c_float, or an array of them
            raise _Refused(Status.INVALID_VALUE, f"alpha is a {type(alpha).__name__}; a c_float is needed")
    elif handle.runtime.is_device_pointer(address):
        return 0.0, True
    return ctypes.c_float.from_address(address).value, False
