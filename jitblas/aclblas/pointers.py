"""Pointer arguments: where an operand is, how far it reaches, what can be known of it, and scalars behind pointers."""

from __future__ import annotations

import ctypes
import sys
from operator import index
from typing import Any

import numpy as np

from jitblas.aclblas.status import Refused
from jitblas.arrays import DTYPE_WORDS, ITEM_BYTES, DeviceArray, bounds, torch_fault, word_of
from jitblas.errors import Status
from jitblas.handle import Handle

_CTYPES_POINTERS: tuple[Any, ...] = (
    ctypes._Pointer, ctypes.c_void_p, ctypes.c_char_p, type(ctypes.byref(ctypes.c_int())),
)  # fmt: skip
"""ctypes objects whose value is an address."""

_CTYPES_DATA: tuple[Any, ...] = (ctypes._SimpleCData, ctypes.Array, ctypes.Structure)
"""ctypes objects that are the memory (pointers are simple data too, and come first)."""


def integer(name: str, value: Any, low: int, high: int) -> int:
    """A C int argument; TypeError for what is no whole number."""
    try:
        number = index(value)
    except TypeError:
        raise TypeError(f"{name} is a {type(value).__name__}; a whole number is needed") from None
    if not low <= number <= high:
        raise Refused(Status.INVALID_VALUE, f"{name} is {number}; accepted are {low} to {high}")
    return number


def locate(pointer: Any, name: str) -> tuple[int, int | None]:
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
            raise Refused(Status.INVALID_VALUE, f"{name}: {fault}")
        start, size = int(pointer.data_ptr()), pointer.element_size()
        steps = [(length - 1) * stride for length, stride in zip(pointer.shape, pointer.stride(), strict=True)]
        return start, start + ((sum(steps) + 1) * size if pointer.numel() else 0)
    if hasattr(pointer, "data_ptr"):
        return int(pointer.data_ptr()), None
    if hasattr(pointer, "__index__") and not isinstance(pointer, bool):
        return _checked_address(index(pointer), name), None
    raise TypeError(
        f"{name} is a {type(pointer).__name__}; accepted are an address, a ctypes pointer, a NumPy array, a "
        f"DeviceArray, a tensor and None"
    )


def _checked_address(number: int, name: str) -> int:
    if not 0 <= number < 2**64:
        raise Refused(Status.INVALID_VALUE, f"{name} is {number}, which is no address")
    return number


def check_operand(
    name: str,
    array: Any,
    address: int,
    end: int | None,
    word: str,
    handle: Handle,
    needed: int,
    why: str,
    *,
    operator: str,
    output: bool = False,
    copied: bool = False,
) -> None:
    """Whatever can be known of an operand: type, memory, extent (`needed` bytes, because of `why`).

    `copied`: it may be in host memory that kernels do not reach.
    """
    if type(array) is int:
        return
    if isinstance(array, np.ndarray):
        if not handle.runtime.shares_host_memory and not copied:
            raise Refused(
                Status.INVALID_VALUE, f"{name} is a NumPy array in host memory, the handle is on {handle.target}; copy "
                f"it with jitblas.array(), or call jitblas.{operator}, which stages",
            )  # fmt: skip
        if word_of(array.dtype) not in (word, f"uint{8 * array.itemsize}") or (array.itemsize != ITEM_BYTES[word]):
            raise Refused(Status.INVALID_VALUE, f"{name} is an array of {array.dtype}, its type argument says {word}")
        if output and not array.flags.writeable:
            raise Refused(Status.INVALID_VALUE, f"{name} is read-only and would be written")
    elif isinstance(array, DeviceArray):
        if array.target != handle.target:
            raise Refused(Status.INVALID_VALUE, f"{name} is on {array.target}, the handle on {handle.target}")
        if array.dtype != word:
            raise Refused(Status.INVALID_VALUE, f"{name} is an array of {array.dtype}, its type argument says {word}")
    elif (kind := _torch_word(array)) is not None and kind != word:
        raise Refused(Status.INVALID_VALUE, f"{name} is a tensor of {kind}, its type argument says {word}")
    if end is not None and end - address < needed:
        raise Refused(Status.INVALID_VALUE, f"{name} has {max(end - address, 0)} bytes, {why} need {needed}")


def _torch_word(array: Any) -> str | None:
    """The type of a torch tensor as problem lines call it; None for what is no tensor."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(array, torch.Tensor):
        return None
    name = str(array.dtype).removeprefix("torch.")
    return DTYPE_WORDS.get(name, name)


def read_scalar(name: str, alpha: Any, address: int, handle: Handle) -> tuple[float, bool]:
    """(value, False) of a host scalar, (0, True) for one in device memory."""
    if isinstance(alpha, DeviceArray):
        if alpha.target != handle.target:
            raise Refused(Status.INVALID_VALUE, f"{name} is on {alpha.target}, the handle on {handle.target}")
        if alpha.dtype != "fp32" or alpha.size < 1:
            raise Refused(Status.INVALID_VALUE, f"{name} is {alpha!r}; one fp32 element is needed")
        return 0.0, True
    if isinstance(alpha, np.ndarray):
        if alpha.dtype != np.float32 or alpha.size < 1:
            raise Refused(
                Status.INVALID_VALUE, f"{name} is an array of {alpha.size} {alpha.dtype}; one float32 is needed"
            )
    elif (kind := _torch_word(alpha)) is not None and (kind != "fp32" or alpha.numel() < 1):
        raise Refused(Status.INVALID_VALUE, f"{name} is a tensor of {alpha.numel()} {kind}; one fp32 is needed")
    elif isinstance(alpha, _CTYPES_DATA) and not isinstance(alpha, _CTYPES_POINTERS):
        if getattr(alpha, "_type_", None) not in ("f", ctypes.c_float):  # a c_float, or an array of them
            raise Refused(Status.INVALID_VALUE, f"{name} is a {type(alpha).__name__}; a c_float is needed")
    elif handle.runtime.is_device_pointer(address):
        return 0.0, True
    return ctypes.c_float.from_address(address).value, False
