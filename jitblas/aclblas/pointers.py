"""Pointer arguments: where an operand is, how far it reaches, what can be known of it, and scalars behind pointers."""

from __future__ import annotations

import ctypes
import sys
from operator import index
from typing import Any

import numpy as np

from jitblas.aclblas.enums import OP_C, OP_N, OP_T
from jitblas.aclblas.status import Refused
from jitblas.arrays import DTYPE_WORDS, ITEM_BYTES, MAX_SIZE, DeviceArray, bounds, torch_fault, word_of
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


def trans_letter(name: str, value: Any) -> str:
    """N or T of an operation; OP_C is T where nothing is conjugated."""
    number = index(value)
    if number not in (OP_N, OP_T, OP_C):
        accepted = "OP_N (111), OP_T (112) and OP_C (113)"
        raise Refused(Status.INVALID_VALUE, f"{name} is {number}; accepted are {accepted}")
    return "N" if number == OP_N else "T"


def leading_dimension(name: str, value: Any, rows: int) -> int:
    ld = integer(name, value, -MAX_SIZE - 1, MAX_SIZE)
    if ld < max(1, rows):
        raise Refused(Status.INVALID_VALUE, f"{name} is {ld}; at least {max(1, rows)} is needed")
    return ld


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
            raise Refused(Status.INVALID_VALUE, f"{name} is an array of {array.dtype}; {word} is needed")
        if output and not array.flags.writeable:
            raise Refused(Status.INVALID_VALUE, f"{name} is read-only and would be written")
    elif isinstance(array, DeviceArray):
        if array.target != handle.target:
            raise Refused(Status.INVALID_VALUE, f"{name} is on {array.target}, the handle on {handle.target}")
        if array.dtype != word:
            raise Refused(Status.INVALID_VALUE, f"{name} is an array of {array.dtype}; {word} is needed")
    elif (kind := _torch_word(array)) is not None and kind != word:
        raise Refused(Status.INVALID_VALUE, f"{name} is a tensor of {kind}; {word} is needed")
    if end is not None and end - address < needed:
        raise Refused(Status.INVALID_VALUE, f"{name} has {max(end - address, 0)} bytes, {why} need {needed}")


def _torch_word(array: Any) -> str | None:
    """The type of a torch tensor as problem lines call it; None for what is no tensor."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(array, torch.Tensor):
        return None
    name = str(array.dtype).removeprefix("torch.")
    return DTYPE_WORDS.get(name, name)


def read_scalar(name: str, scalar: Any, address: int, handle: Handle, word: str = "fp32") -> tuple[Any, bool]:
    """(value, False) of a host scalar of type `word`, fp32 or c64; (0, True) for one in device memory."""
    dtype = np.dtype(np.float32 if word == "fp32" else np.complex64)
    if isinstance(scalar, DeviceArray):
        if scalar.target != handle.target:
            raise Refused(Status.INVALID_VALUE, f"{name} is on {scalar.target}, the handle on {handle.target}")
        if scalar.dtype != word or scalar.size < 1:
            raise Refused(Status.INVALID_VALUE, f"{name} is {scalar!r}; one {word} element is needed")
        return 0.0, True
    if isinstance(scalar, np.ndarray):
        if scalar.dtype != dtype or scalar.size < 1:
            raise Refused(
                Status.INVALID_VALUE, f"{name} is an array of {scalar.size} {scalar.dtype}; one {dtype} is needed"
            )
    elif (kind := _torch_word(scalar)) is not None and (kind != word or scalar.numel() < 1):
        raise Refused(Status.INVALID_VALUE, f"{name} is a tensor of {scalar.numel()} {kind}; one {word} is needed")
    elif isinstance(scalar, _CTYPES_DATA) and not isinstance(scalar, _CTYPES_POINTERS):
        # A c_float, or an array of them; of a complex number two, or a structure of two.
        of_floats = getattr(scalar, "_type_", None) in ("f", ctypes.c_float) or (
            word == "c64" and [kind for _, kind, *_ in getattr(scalar, "_fields_", ())] == [ctypes.c_float] * 2
        )
        if not of_floats or ctypes.sizeof(scalar) < dtype.itemsize:
            needed = "a c_float" if word == "fp32" else "an array or a structure of two c_float"
            raise Refused(Status.INVALID_VALUE, f"{name} is a {type(scalar).__name__}; {needed} is needed")
    elif handle.runtime.is_device_pointer(address):
        return 0.0, True
    parts = (ctypes.c_float * (dtype.itemsize // 4)).from_address(address)
    return (parts[0] if word == "fp32" else complex(*parts)), False
