"""Groups of a cube core and its vector cores: who is who, flags, what goes wrong, and matrices in L1."""

from __future__ import annotations

import numpy as np
import pytest

import jitblas
from jitblas import Status
from tests.kernels.build import run, stream


def test_every_core_of_a_group_knows_its_place() -> None:
    out = np.full((5, 3, 3), -1, np.int64)
    run("groups", "launch_who", out, blocks=5)
    for block in range(5):
        assert out[block].tolist() == [[block, 5, 0], [2 * block, 5, 0], [2 * block + 1, 5, 1]]


@pytest.mark.parametrize("blocks", [1, 2, 40])
def test_cores_of_a_group_wait_for_each_other(blocks: int) -> None:
    rounds = 100
    out = np.zeros((blocks, 3), np.int64)
    run("groups", "launch_ping_pong", out, rounds, blocks=blocks)
    assert (out == [rounds, rounds * (rounds + 1), rounds * (rounds + 1)]).all()


def test_a_wait_that_nobody_ends_fails_the_launch_and_nothing_else() -> None:
    out = np.zeros(4, np.int64)
    with pytest.raises(jitblas.StatusError, match="waits for a flag that none of them sets") as caught:
        run("groups", "launch_deadlock", out, blocks=4)
    assert caught.value.status == Status.EXECUTION_FAILED
    assert out.tolist() == [1, 0, 1, 1]
    again = np.zeros((3, 3), np.int64)
    for _ in range(3):  # the core that was left in the middle of its program starts over
        run("groups", "launch_ping_pong", again, 1, blocks=3)
    assert again[:, 0].tolist() == [1, 1, 1]
    stream().synchronize()


def test_a_flag_set_too_often_is_an_error() -> None:
    with pytest.raises(jitblas.StatusError, match="set 15 times"):
        run("groups", "launch_many_flags")


def test_flags_have_sixteen_numbers() -> None:
    run("groups", "launch_flag_number", 15)
    with pytest.raises(jitblas.StatusError, match="flag 16: flags are numbered 0 to 15"):
        run("groups", "launch_flag_number", 16)


def test_a_buffer_that_does_not_fit_is_named_with_its_size() -> None:
    run("groups", "launch_result_buffer", 256, 256)
    with pytest.raises(jitblas.StatusError, match="L0C overflow: 278528 bytes at 0 do not fit into 262144"):
        run("groups", "launch_result_buffer", 257, 256)


@pytest.mark.parametrize(("rows", "columns"), [(16, 8), (1, 1), (17, 9), (40, 20)])
@pytest.mark.parametrize("zn", [0, 1])
def test_l1_holds_fractals(rows: int, columns: int, zn: int) -> None:
    """Runs of 8 floats along k, 16 of them to a fractal; k filled up with zeros, the rest as it was."""
    matrix = np.arange(1, rows * columns + 1, dtype=np.float32).reshape(rows, columns)
    along, across = (matrix.T, rows) if zn else (matrix, columns)  # (other dimension, k)
    others = along.shape[0]
    padded = -(-others // 16) * 16
    expected = np.full((-(-across // 8), padded, 8), -1, np.float32)
    filled = np.zeros((others, expected.shape[0] * 8), np.float32)
    filled[:, :across] = along
    expected[:, :others] = filled.reshape(others, -1, 8).transpose(1, 0, 2)
    out = np.zeros(expected.size, np.float32)
    run("groups", "launch_fractals", out, matrix, rows, columns, zn, expected.size)
    assert (out == expected.reshape(-1)).all()


@pytest.mark.parametrize(("blocks", "groups"), [(1, 1), (5, 3), (64, 40)])
def test_kernels_of_vector_cores_and_of_groups_stand_in_one_source(blocks: int, groups: int) -> None:
    """Each runs on its own kind of cores, the second after the first."""
    sums, out = np.zeros((groups, 3), np.int64), np.zeros((blocks, 3), np.int64)
    run("two_kinds", "launch_both", sums, out, groups, blocks=blocks)
    assert out.tolist() == [[1 + block, blocks, 0] for block in range(blocks)]
    assert sums.tolist() == [[1 + group, 10 * (1 + group), 10 * (1 + group)] for group in range(groups)]
