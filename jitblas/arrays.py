"""Arrays of every kind seen as vectors in memory, and arrays in device memory."""

from __future__ import annotations

import math
import sys
import weakref
from operator import index
from typing import Any, NamedTuple

import numpy as np

from jitblas.errors import Status, StatusError
from jitblas.handle import Stream, Unique, default_handle, settle
from jitblas.hardware import ASCEND950PR, CACHE_LINE, COPY_UNIT, HOST
from jitblas.jit.kernels import default_target, resolve_target, runtime_for
from jitblas.operators.base import round_up

MAX_SIZE = 2**31 - 1
"""Most elements per dimension: the C interface counts in int."""

DTYPE_WORDS = {
    "float32": "fp32", "float16": "fp16", "bfloat16": "bf16", "complex64": "c64", "complex128": "c128",
    "float64": "fp64", "uint8": "u8",
}  # fmt: skip
"""NumPy's and torch's names -> the words of problem lines."""

ITEM_BYTES = {"fp32": 4, "fp16": 2, "bf16": 2, "c64": 8, "c128": 16, "fp64": 8, "u8": 1}
"""Word -> bytes of an element."""

_NUMPY = {word: name for name, word in DTYPE_WORDS.items()}

_words: dict[np.dtype[Any], str] = {}


def word_of(dtype: np.dtype[Any]) -> str:
    """The word of a NumPy type in native byte order; its name if problem lines have none (dtype.name takes 3 us)."""
    word = _words.get(dtype)
    if word is None:
        word = _words[dtype] = (
            DTYPE_WORDS.get(dtype.name, dtype.name) if dtype.isnative else f"byte-swapped {dtype.name}"
        )
    return word


class Vector:
    """A 1-D array as BLAS sees it.

    Attributes
    ----------
    address : of the lowest element in memory
    n, inc : elements, and elements between them (negative: element 0 is the highest)
    dtype : word of problem lines, "fp32" ...
    owner : whose memory it is
    device : in device memory (on the host: a DeviceArray)
    """

    __slots__ = ("address", "device", "dtype", "inc", "itemsize", "n", "owner")

    def __init__(self, address: int, n: int, inc: int, dtype: str, itemsize: int, owner: Any, device: bool) -> None:
        self.address = address
        self.n = n
        self.inc = inc
        self.dtype = dtype
        self.itemsize = itemsize
        self.owner = owner
        self.device = device

    @property
    def span(self) -> tuple[int, int]:
        """First byte and one past the last."""
        return self.address, self.address + ((self.n - 1) * abs(self.inc) + 1) * self.itemsize


READ_ONLY = "the array is read-only and would be written"


class Operand(NamedTuple):
    """An array of any kind as memory: what the checks of vectors and matrices begin with.

    Attributes
    ----------
    address : of element 0
    strides : in bytes
    dtype : word of problem lines, or the name of a type that they do not have
    owner : whose memory it is
    device : in device memory (on the host: a DeviceArray)
    """

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int
    dtype: str
    owner: Any
    device: bool


def as_operand(array: Any, operator: str, name: str, target: str, *, output: bool = False) -> Operand:
    """The memory of an array, without copying.

    Accepted are NumPy arrays of any strides, torch tensors, DeviceArrays, and objects with `__array_interface__` or
    `__dlpack__`. What cannot be viewed raises StatusError (INVALID_VALUE, NOT_SUPPORTED) or TypeError.
    """
    device = False
    if isinstance(array, np.ndarray):
        if type(array) is not np.ndarray and isinstance(array, np.ma.MaskedArray):
            raise invalid(operator, name, "a mask would be ignored; give the array's .data, or .filled(...)")
        view = array
    elif isinstance(array, DeviceArray):
        if array.target != target:
            raise invalid(operator, name, f"the array is on {array.target}, the handle on {target}")
        view, device = array.view, True
    elif (torch := sys.modules.get("torch")) is not None and isinstance(array, torch.Tensor):
        return _torch_operand(array, operator, name, target, output)
    elif hasattr(array, "__dlpack__") and _is_on_ascend(array):
        return _dlpack_operand(array, operator, name, target)
    else:
        view = _foreign_view(array, operator, name)
    address, read_only = view.__array_interface__["data"]
    if output and read_only:
        raise invalid(operator, name, READ_ONLY)
    word = array.dtype if device else word_of(view.dtype)
    return Operand(address, view.shape, view.strides, view.itemsize, word, array, device)


def as_vector(array: Any, operator: str, name: str, target: str, *, output: bool = False) -> Vector:
    """The vector that a 1-D array is, without copying; see :func:`as_operand`."""
    if type(array) is np.ndarray:  # the same in short, for the kind that calls are made with most often
        address, read_only = array.__array_interface__["data"]
        if output and read_only:
            raise invalid(operator, name, READ_ONLY)
        shape, strides, itemsize, dtype = array.shape, array.strides, array.itemsize, word_of(array.dtype)
        owner, device = array, False
    else:
        address, shape, strides, itemsize, dtype, owner, device = as_operand(
            array, operator, name, target, output=output
        )  # fmt: skip
    if len(shape) != 1:
        raise invalid(operator, name, f"a 1-D array is needed, this one has shape {shape}")
    n, stride = shape[0], strides[0]
    if n > MAX_SIZE:
        raise invalid(operator, name, f"{n} elements; at most {MAX_SIZE} are accepted")
    if n != 0:
        check_alignment(address, dtype, itemsize, operator, name)
    if n <= 1:
        return Vector(address, n, 1, dtype, itemsize, owner, device)
    inc = elements_apart(stride, itemsize, operator, name)
    if output and inc == 0:
        raise invalid(operator, name, "its stride is 0: all elements are one place in memory, and it would be written")
    if abs(inc) > MAX_SIZE:
        raise invalid(operator, name, f"{inc} elements from one to the next; at most {MAX_SIZE} are accepted")
    return Vector(address + (n - 1) * stride if inc < 0 else address, n, inc, dtype, itemsize, owner, device)


def check_alignment(address: int, dtype: str, itemsize: int, operator: str, name: str) -> None:
    """Numbers lie at multiples of their size, complex ones of that of their parts."""
    unit = itemsize // 2 if dtype == "c64" else itemsize
    if address % unit:
        raise invalid(operator, name, f"its address is no multiple of {unit}; give a copy")


def elements_apart(stride: int, itemsize: int, operator: str, name: str) -> int:
    """A stride in elements."""
    if stride % itemsize:
        raise invalid(
            operator, name, f"its stride of {stride} bytes is no multiple of its item size, {itemsize}; give a copy"
        )
    return stride // itemsize


def torch_fault(tensor: Any) -> str | None:
    """Why a torch tensor's memory does not hold its elements as they are, or None."""
    if str(tensor.layout) != "torch.strided":
        return f"its layout is {tensor.layout}; give .to_dense()"
    if tensor.is_neg() or tensor.is_conj():
        return "it is a lazy negative or conjugate; give .resolve_neg().resolve_conj()"
    if tensor.numel() > 0 and tensor.data_ptr() == 0:
        return "it has no memory"
    return None


def _torch_operand(tensor: Any, operator: str, name: str, target: str, output: bool) -> Operand:
    place = {"cpu": HOST, "npu": ASCEND950PR}.get(tensor.device.type)
    if place is None or (place == ASCEND950PR and target == HOST):
        raise invalid(operator, name, f"the tensor is on {tensor.device}, the handle on {target}")
    fault = torch_fault(tensor)
    if fault is not None:
        raise invalid(operator, name, fault)
    word = str(tensor.dtype).removeprefix("torch.")
    word = DTYPE_WORDS.get(word, word)
    if output and tensor.requires_grad:
        raise invalid(operator, name, "the tensor requires grad and would be written in place; give y.detach()")
    size = tensor.element_size()
    strides = tuple(stride * size for stride in tensor.stride())
    return Operand(tensor.data_ptr(), tuple(tensor.shape), strides, size, word, tensor, place != HOST)


def _is_on_ascend(array: Any) -> bool:
    from jitblas.dlpack import is_on_ascend

    return is_on_ascend(array)


def _dlpack_operand(array: Any, operator: str, name: str, target: str) -> Operand:
    if target != ASCEND950PR:
        raise invalid(operator, name, f"the array is on an Ascend device, the handle on {target}")
    from jitblas.dlpack import device_tensor

    found = device_tensor(array)
    strides = tuple(stride * found.itemsize for stride in found.strides)
    return Operand(found.address, found.shape, strides, found.itemsize, found.dtype, found.capsule, True)


def bounds(view: np.ndarray[Any, Any]) -> tuple[int, int]:
    """First byte and one past the last of an array's elements."""
    return span(int(view.__array_interface__["data"][0]), view.shape, view.strides, view.itemsize)


def span(address: int, shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> tuple[int, int]:
    """First byte and one past the last of elements, strides in bytes, `address` that of element 0."""
    if 0 in shape:
        return address, address
    reach = [(length - 1) * stride for length, stride in zip(shape, strides, strict=True)]
    first = address + sum(min(step, 0) for step in reach)
    return first, address + sum(max(step, 0) for step in reach) + itemsize


def aligned_empty(shape: tuple[int, ...], kind: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """A NumPy array that begins at a cache line."""
    nbytes = math.prod(shape) * kind.itemsize
    memory = np.empty(nbytes + CACHE_LINE, np.uint8)
    start = -int(memory.__array_interface__["data"][0]) % CACHE_LINE
    return memory[start : start + nbytes].view(kind).reshape(shape)


def _foreign_view(array: Any, operator: str, name: str) -> np.ndarray[Any, Any]:
    """A NumPy view of an object that offers its memory."""
    if hasattr(array, "__array_interface__") and not isinstance(array, np.generic):
        try:
            return np.asarray(array)
        except (TypeError, ValueError) as error:
            raise invalid(operator, name, f"its __array_interface__ is none: {error}") from None
    if hasattr(array, "__dlpack__"):
        try:
            return np.from_dlpack(array)
        except (BufferError, RuntimeError, TypeError) as error:
            raise invalid(operator, name, f"its memory cannot be viewed: {error}") from None
    raise TypeError(
        f"{operator}: {name} is a {type(array).__name__}; accepted are NumPy arrays, jitblas.DeviceArray, torch "
        f"tensors and objects with __array_interface__ or __dlpack__"
    )


def invalid(operator: str, name: str, message: str) -> StatusError:
    return StatusError(Status.INVALID_VALUE, operator, name, f"{name}: {message}")


class DeviceArray(Unique):
    """An array in a target's device memory (on the host: aligned memory that kernels run on asynchronously).

    Made by :func:`empty`, :func:`zeros` and :func:`array`. Basic indexing gives views; `.numpy()` waits for the work
    that was launched on the array and copies it out.

    Attributes
    ----------
    dtype : word of problem lines: "fp32", "fp16", "bf16", ...
    address : of element 0
    """

    def __init__(self, memory: _Memory, view: np.ndarray[Any, Any], dtype: str) -> None:
        self._memory = memory
        self.view = view  # addresses and strides only: on a device it must not be read
        self.dtype = dtype

    @property
    def target(self) -> str:
        return self._memory.target

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.view.shape)

    @property
    def size(self) -> int:
        return int(self.view.size)

    @property
    def nbytes(self) -> int:
        return int(self.view.nbytes)

    @property
    def address(self) -> int:
        return int(self.view.__array_interface__["data"][0])

    def __len__(self) -> int:
        return len(self.view)

    def __getitem__(self, index: Any) -> DeviceArray:
        parts = index if isinstance(index, tuple) else (index,)
        numbers = sum(isinstance(part, (int, np.integer)) and not isinstance(part, bool) for part in parts)
        views = sum(part is None or part is Ellipsis or isinstance(part, slice) for part in parts)
        # Checked first: an index that NumPy answers with elements would read device memory here.
        if numbers + views != len(parts) or numbers >= max(self.view.ndim, 1):
            raise TypeError(f"a DeviceArray takes slices, and numbers that leave a dimension; not {index!r}")
        return DeviceArray(self._memory, self.view[index], self.dtype)

    def used_on(self, stream: Stream) -> None:
        """Remember that the array's work is on this stream, too."""
        self._memory.streams.add(stream)

    def numpy(self) -> np.ndarray[Any, Any]:
        """A copy in host memory, taken when the work launched on the array is done."""
        for stream in list(self._memory.streams):
            if not stream.destroyed:  # destroying waits, too
                stream.synchronize()
        self._memory.streams.clear()
        settle()  # work on borrowed streams that were left meanwhile
        first, last = bounds(self.view)
        host = np.empty(last - first, np.uint8)
        stream = default_handle(self.target).stream
        target = host.__array_interface__["data"][0]
        self._memory.runtime.copy_async(target, first, host.nbytes, "to_host", stream.address)
        stream.synchronize()
        whole = np.ndarray(self.shape, self.view.dtype, host, self.address - first, self.view.strides)
        return np.ascontiguousarray(whole)

    def __repr__(self) -> str:
        return f"DeviceArray(shape={self.shape}, dtype={self.dtype!r}, target={self.target!r})"


class _Memory(Unique):
    """One allocation; it lives as long as an array that uses it or a launch that was given it."""

    def __init__(self, target: str, nbytes: int) -> None:
        self.target = target
        self.runtime = runtime_for(target)
        self.nbytes = nbytes
        self.streams: weakref.WeakSet[Stream] = weakref.WeakSet()
        # Whole units of 64 bytes, because copies from device to device move such units.
        self.address = self.runtime.allocate(round_up(max(nbytes, 1), COPY_UNIT))

    def __del__(self) -> None:
        try:
            self.runtime.release(self.address)
        except Exception:  # as in Stream.__del__
            pass


def numpy_dtype(word: str) -> np.dtype[Any]:
    """The NumPy type of a word. BF16 is ml_dtypes' where that is imported, else 16 plain bits."""
    if word == "bf16":
        ml_dtypes = sys.modules.get("ml_dtypes")
        return np.dtype(ml_dtypes.bfloat16 if ml_dtypes is not None else np.uint16)
    return np.dtype(_NUMPY[word])


def _numpy_dtype(dtype: Any) -> tuple[np.dtype[Any], str]:
    """(NumPy type with the right size, word) of what a user may give as dtype."""
    name = dtype if isinstance(dtype, str) else np.dtype(dtype).name
    word = name if name in _NUMPY else DTYPE_WORDS.get(name)
    if word is None:
        raise StatusError(
            Status.NOT_SUPPORTED, "DeviceArray", "dtype", f"dtype={dtype!r}: accepted are {', '.join(_NUMPY)}"
        )
    return numpy_dtype(word), word


def empty(shape: int | tuple[int, ...], dtype: Any = "fp32", *, target: str | None = None) -> DeviceArray:
    """A DeviceArray whose contents are whatever the memory held."""
    target = default_target() if target is None else resolve_target(target)
    kind, word = _numpy_dtype(dtype)
    lengths = shape if isinstance(shape, tuple) else (shape,)
    shape = tuple(index(length) for length in lengths)
    if any(length < 0 for length in shape):
        raise ValueError(f"shape={shape}: lengths are 0 or more")
    nbytes = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
    memory = _Memory(target, nbytes)
    holder = AddressHolder(memory.address, shape, np.dtype(f"V{kind.itemsize}"))
    return DeviceArray(memory, np.asarray(holder).view(kind), word)


def zeros(shape: int | tuple[int, ...], dtype: Any = "fp32", *, target: str | None = None) -> DeviceArray:
    """A DeviceArray of zeros."""
    made = empty(shape, dtype, target=target)
    stream = default_handle(made.target).stream
    stream.runtime.set_async(made.address, 0, made.nbytes, stream.address)
    stream.synchronize()
    return made


def array(values: Any, dtype: Any = None, *, target: str | None = None) -> DeviceArray:
    """A DeviceArray with a copy of `values` (anything NumPy makes an array of).

    `dtype` is a NumPy type or a word of problem lines; uint16 values with dtype "bf16" are taken as bits.
    """
    host = np.asarray(values)
    if dtype is None and host.dtype.name not in DTYPE_WORDS:
        dtype = "fp32" if host.dtype.kind in "iub" else host.dtype
    kind, word = _numpy_dtype(dtype if dtype is not None else host.dtype)
    if word == "bf16" and host.dtype == np.uint16:
        kind = host.dtype  # bits, whether or not ml_dtypes is there
    if host.dtype.kind == "c" and word not in ("c64", "c128"):
        raise TypeError(f"array: the values are complex, {word} is real; give .real or .imag")
    host = np.ascontiguousarray(host.astype(kind, copy=False))
    made = empty(host.shape, word, target=target)
    stream = default_handle(made.target).stream
    stream.runtime.copy_async(
        made.address, host.__array_interface__["data"][0], host.nbytes, "to_device", stream.address
    )
    stream.synchronize()
    return made


class AddressHolder:
    """Lets NumPy compute with addresses and strides of memory that is not NumPy's."""

    def __init__(
        self, address: int, shape: tuple[int, ...], dtype: np.dtype[Any], strides: tuple[int, ...] | None = None
    ) -> None:
        self.__array_interface__ = {
            "data": (address, False), "shape": shape, "typestr": dtype.str, "strides": strides, "version": 3,
        }  # fmt: skip
