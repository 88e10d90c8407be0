"""Memory between pages that cannot be touched: a read or write beyond an operand kills the process."""

from __future__ import annotations

import ctypes
import mmap
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

_PAGE = mmap.PAGESIZE
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_NO_ACCESS = 0


class Fences:
    """`count` elements that end where a page without access begins (`at_end`), or begin where one ends."""

    def __init__(self, count: int, dtype: str, *, at_end: bool) -> None:
        size = count * np.dtype(dtype).itemsize
        inside = max(1, -(-size // _PAGE)) * _PAGE
        self._memory = mmap.mmap(-1, inside + 2 * _PAGE)
        self._start = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        offset = _PAGE + (inside - size if at_end else 0)
        self.array: Array = np.frombuffer(self._memory, dtype, count, offset)
        for fence in (self._start, self._start + _PAGE + inside):
            if _libc.mprotect(fence, _PAGE, _NO_ACCESS) != 0:
                raise OSError(ctypes.get_errno(), "mprotect")
