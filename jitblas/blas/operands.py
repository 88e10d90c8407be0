"""What calls on arrays share: the handle, scalars from either memory, and copies of operands."""

from __future__ import annotations

from typing import Any

import numpy as np

from jitblas.arrays import AddressHolder, DeviceArray, Vector, empty
from jitblas.errors import Status, StatusError
from jitblas.handle import Handle, default_handle
from jitblas.hardware import COPY_UNIT
from jitblas.operators.base import round_up


def chosen_handle(handle: Handle | None, operator: str) -> Handle:
    """The handle that a call runs on: the one given, or this thread's of the default target."""
    if handle is None:
        handle = default_handle()
    elif not isinstance(handle, Handle):
        raise TypeError(f"{operator}: handle is a {type(handle).__name__}; None and a jitblas.Handle are accepted")
    handle.require()
    return handle


def as_scalar(
    value: Any, operator: str, name: str, handle: Handle, word: str = "fp32"
) -> tuple[Any, DeviceArray | None]:
    """A scalar as a float (c64: as a complex number), or as the DeviceArray of one element that holds it."""
    if type(value) is float and word == "fp32":
        return value, None
    if isinstance(value, DeviceArray):
        if value.size != 1 or value.dtype != word or value.target != handle.target:
            raise StatusError(
                Status.INVALID_VALUE,
                operator,
                name,
                f"{name}: one {word} element on {handle.target} is accepted, this is {value!r}",
            )
        return 0.0, value
    if isinstance(value, np.ndarray) and value.size == 1:
        value = value.reshape(())[()]
    real = word == "fp32"
    try:
        if isinstance(value, (str, bytes, np.ndarray)) or (real and isinstance(value, np.complexfloating)):
            raise TypeError
        return (float(value) if real else complex(value)), None
    except OverflowError:
        raise TypeError(f"{operator}: {name} is {value}, which no floating-point number can hold") from None
    except (TypeError, ValueError, ArithmeticError):
        accepted = "a real number" if real else "a number"
        raise TypeError(
            f"{operator}: {name} is a {type(value).__name__}; {accepted} or a DeviceArray of one element is accepted"
        ) from None


def copied_span(handle: Handle, first: int, last: int, owner: Any) -> tuple[int, Any]:
    """(address, memory) of a copy of the bytes from `first` to `last`, made in stream order.

    The caller keeps the memory until what uses it is done.
    """
    unit = 1 if handle.runtime.shares_host_memory else COPY_UNIT
    start, end = first // unit * unit, round_up(last, unit)
    memory = empty(end - start, "u8", target=handle.target)
    handle.runtime.copy_async(memory.address, start, end - start, "on_device", handle.stream.address)
    handle.stream.keep(memory, owner)
    return memory.address + first - start, memory


def scalar_apart(handle: Handle, scalar: DeviceArray | None, first: int, last: int) -> tuple[int | None, Any]:
    """(address, whose memory it is) of a scalar, or of a copy of it if it lies where results will be written."""
    if scalar is None:
        return None, None
    address = scalar.address
    if first <= address < last:
        return copied_span(handle, address, address + scalar.nbytes, scalar)
    return address, scalar


def copy(handle: Handle, destination: int, source: int, nbytes: int, kind: str) -> None:
    handle.runtime.copy_async(destination, source, nbytes, kind, handle.stream.address)


def address_of(array: np.ndarray[Any, Any]) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def elements(address: int, shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> np.ndarray[Any, Any]:
    """A NumPy view of host memory as unsigned integers; strides in bytes, `address` that of the first element."""
    return np.asarray(AddressHolder(address, shape, np.dtype(f"u{itemsize}"), strides))


def vector_on_device(handle: Handle, vector: Vector) -> Vector:
    """Device memory for a vector's elements, one after the other."""
    memory = empty(vector.n, vector.dtype, target=handle.target)
    return Vector(memory.address, vector.n, 1, vector.dtype, vector.itemsize, memory, True)


def vector_elements(vector: Vector) -> np.ndarray[Any, Any]:
    """A NumPy view of a vector in host memory, in logical order, as unsigned integers of its item size."""
    stride = vector.inc * vector.itemsize
    start = vector.address - (vector.n - 1) * stride if stride < 0 else vector.address
    return elements(start, (vector.n,), (stride,), vector.itemsize)
