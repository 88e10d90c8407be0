"""DLPack tensors in Ascend device memory, which NumPy cannot view: address, length and stride of a vector."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

ASCEND_KINDS = (12, 15)
"""DLDeviceType values that mean an Ascend device: kDLExtDev, as older exporters say, and kDLAscend's own."""

_WORDS = {(2, 32): "fp32", (2, 16): "fp16", (4, 16): "bf16", (2, 64): "fp64", (5, 64): "c64", (5, 128): "c128"}
"""(DLDataTypeCode, bits) -> word of problem lines."""


class _Tensor(ctypes.Structure):
    """DLTensor, which every DLManagedTensor begins with."""

    _fields_ = [
        ("data", ctypes.c_void_p), ("device_kind", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("dimensions", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]  # fmt: skip


class DeviceTensor(NamedTuple):
    """What a capsule says. `capsule` keeps the memory alive.

    `shape` and `strides` count elements.
    """

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    itemsize: int
    capsule: Any


def is_on_ascend(array: Any) -> bool:
    """Whether an object with `__dlpack__` says that it lies on an Ascend device."""
    device = getattr(array, "__dlpack_device__", None)
    return device is not None and int(device()[0]) in ASCEND_KINDS


def device_tensor(array: Any) -> DeviceTensor:
    """The tensor behind an object that :func:`is_on_ascend`; no synchronisation is asked for (`stream=-1`)."""
    capsule = array.__dlpack__(stream=-1)
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    tensor = _Tensor.from_address(pointer_of(capsule, b"dltensor"))
    shape = tuple(tensor.shape[: tensor.dimensions])
    dense = [1]
    for length in reversed(shape[1:]):
        dense.insert(0, dense[0] * length)
    strides = tuple(tensor.strides[: tensor.dimensions]) if tensor.strides else tuple(dense[: len(shape)])
    word = _WORDS.get((tensor.code, tensor.bits * tensor.lanes), f"DLPack code {tensor.code}, {tensor.bits} bits")
    address = (tensor.data or 0) + tensor.byte_offset
    return DeviceTensor(address, shape, strides, word, tensor.bits * tensor.lanes // 8, capsule)
