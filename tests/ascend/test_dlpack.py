"""Objects with `__dlpack__` in Ascend device memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

EXPORTER = """
class Exported:
    '''A vector in device memory as another library would export it.'''

    def __init__(self, array, stride=1, kind=12, code=2, bits=32):
        length = (array.size + abs(stride) - 1) // abs(stride)
        self.array, self.kind = array, kind
        self.numbers = (ctypes.c_int64 * 2)(length, stride)
        class Tensor(ctypes.Structure):
            _fields_ = [("data", ctypes.c_void_p), ("kind", ctypes.c_int32), ("id", ctypes.c_int32),
                        ("dimensions", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                        ("lanes", ctypes.c_uint16), ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p),
                        ("offset", ctypes.c_uint64)]
        shape = ctypes.addressof(self.numbers)
        self.tensor = Tensor(array.address, kind, 0, 1, code, bits, 1, shape, shape + 8 if stride != 1 else None, 0)

    def __dlpack_device__(self):
        return self.kind, 0

    def __dlpack__(self, *, stream=None):
        assert stream == -1
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.tensor), b"dltensor", None)
"""


@pytest.mark.parametrize("kind", [12, 15])
def test_a_dlpack_vector_on_the_device_is_used_where_it_is(scenario: Callable[..., Any], kind: int) -> None:
    scenario(
        EXPORTER
        + f"""
x = jitblas.array(np.arange(10, dtype="float32"))
y = jitblas.zeros(10)
jitblas.axpy_ex(2.0, Exported(x, kind={kind}), Exported(y, kind={kind}))
assert (y.numpy() == 2 * np.arange(10)).all()
jitblas.axpy_ex(1.0, Exported(x, 3, {kind}), Exported(y[:4], kind={kind}))
jitblas.Handle().synchronize()
assert (y.numpy()[:4] == 2 * np.arange(4) + np.arange(10)[::3]).all()
"""
    )


def test_what_does_not_fit_is_refused(scenario: Callable[..., Any]) -> None:
    scenario(
        EXPORTER
        + """
x, y = jitblas.zeros(4), jitblas.zeros(4)
with jitblas.Handle("host") as host:
    try:
        jitblas.axpy_ex(1.0, Exported(x), np.zeros(4, "float32"), handle=host)
    except jitblas.StatusError as error:
        assert "Ascend device" in error.message
    else:
        raise AssertionError
try:
    jitblas.axpy_ex(1.0, Exported(x, code=0), Exported(y))
except jitblas.StatusError as error:
    assert error.status == Status.NOT_SUPPORTED and "DLPack code 0" in error.message
else:
    raise AssertionError
"""
    )
