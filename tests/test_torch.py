"""Torch tensors, where torch is installed."""

from __future__ import annotations

import numpy as np
import pytest

import jitblas
from jitblas import Status, aclblas

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_tensors_are_used_where_they_are(dtype: str) -> None:
    x = torch.arange(20).to(getattr(torch, dtype))[::2]
    y = torch.ones(10, dtype=x.dtype)
    assert jitblas.axpy_ex(2.0, x, y) is y
    assert (y == 2 * x + 1).all()


def test_what_memory_does_not_hold_as_it_is_is_refused() -> None:
    lazy = torch.complex(torch.ones(4), torch.full((4,), 3.0)).conj().imag
    for bad in (lazy, torch.ones(4).to_sparse(), torch.ones(4, requires_grad=True)):
        y = torch.ones(4)
        operands = (y, bad) if bad.requires_grad else (bad, y)
        with pytest.raises(jitblas.StatusError) as caught:
            jitblas.axpy_ex(1.0, *operands)
        assert caught.value.status == Status.INVALID_VALUE
        assert (y == 1).all()


def test_the_aclblas_level_compares_types() -> None:
    x, y, alpha = torch.ones(4), torch.ones(4), torch.tensor([2.0])
    with jitblas.Handle("host") as handle:
        bad = {
            0: [torch.tensor([2.0], dtype=torch.float64), torch.tensor(2.0, dtype=torch.float16)],
            1: [x.double(), x.half()],
            2: [y.long()],
        }
        for position, values in bad.items():
            for value in values:
                given = [alpha, x, y]
                given[position] = value
                status = aclblas.aclblasAxpyEx(handle, 4, given[0], 0, given[1], 0, 1, given[2], 0, 1, 0)
                assert status == Status.INVALID_VALUE and "tensor of" in jitblas.last_error()
        assert aclblas.aclblasAxpyEx(handle, 4, alpha, 0, x, 0, 1, y, 0, 1, 0) == Status.SUCCESS
        handle.synchronize()
    assert np.array_equal(y.numpy(), np.full(4, 3, "f4"))
