"""What would hang or corrupt the chip is an error of the twin that says where; the process goes on."""

from __future__ import annotations

import re

import numpy as np
import pytest

import jitblas
from jitblas import Status
from tests.kernels.build import SOURCES, UB_BYTES, launch, run, stream

MISUSES = {
    "alloc_too_many": "queue 'input': AllocTensor: all buffers are in use",
    "deque_nothing": "queue 'output': DeQue: the queue is empty",
    "enque_too_many": "queue 'input': EnQue: the queue is full",
    "free_twice": "queue 'input': FreeTensor: the tensor's buffer is not in use",
    "never_initialised": "queue '(not initialised)': AllocTensor",
    "too_many_buffers": "queue 'input': InitBuffer: a queue has at most 16 buffers",
}


def failure(function: str, *arguments: int, blocks: int = 1) -> str:
    """The message of a kernel that must fail, after which the stream is as good as new."""
    with pytest.raises(jitblas.StatusError) as caught:
        run("queues", function, *arguments, blocks=blocks)
    assert caught.value.status == Status.EXECUTION_FAILED
    stream().synchronize()
    test_queues_events_and_barriers_work()
    return caught.value.message


def line_of(text: str) -> int:
    lines = (SOURCES / "queues.asc").read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


def test_queues_events_and_barriers_work() -> None:
    x, y = np.arange(64, dtype="f4"), np.zeros(64, "f4")
    run("queues", "eventful", x, y)
    assert (y == x + 1).all()


def test_a_buffer_in_use_is_never_given_out_again() -> None:
    x, y = np.arange(64, dtype="f4"), np.zeros(64, "f4")
    run("queues", "free_out_of_order", x, y)
    assert (y == x).all()


@pytest.mark.parametrize("misuse", list(MISUSES))
def test_misuse_of_a_queue_fails_the_launch_and_names_the_queue(misuse: str) -> None:
    assert MISUSES[misuse] in failure(misuse)


def test_an_overflow_names_buffer_place_bytes_and_limit() -> None:
    message = failure("overflow", UB_BYTES + 1, 1, 0)
    place = f"queues.asc:{line_of('InitBuffer(scratch')}"
    assert message.startswith(f"kernel Overflow: {place}: InitBuffer(scratch): UB overflow: 1 x {UB_BYTES + 1} bytes")
    assert f"0 of {UB_BYTES} bytes are taken" in message
    third = UB_BYTES // 5 * 2 // 32 * 32  # scratch and one tile fit, the second tile does not
    message = failure("overflow", third, 2, 0)
    assert f"queues.asc:{line_of('InitBuffer(tiles')}: InitBuffer(tiles): UB overflow: 2 x {third} bytes" in message
    assert f"{2 * third} of {UB_BYTES} bytes are taken" in message


def test_ub_may_be_filled_to_the_last_byte() -> None:
    run("queues", "overflow", UB_BYTES // 2, 1, 0)
    run("queues", "overflow", UB_BYTES // 32 // 9 * 32, 8, 0)
    assert re.search(r"UB overflow: 8 x \d+ bytes", failure("overflow", UB_BYTES // 9 // 32 * 32 + 32, 8, 0))


@pytest.mark.parametrize("blocks", [2, 64, 1000])
def test_one_failing_block_fails_the_launch_however_many_run(blocks: int) -> None:
    assert "InitBuffer(scratch)" in failure("overflow", UB_BYTES + 1, 1, blocks - 1, blocks=blocks)


def test_a_queued_failure_surfaces_once_at_the_next_synchronise() -> None:
    made = jitblas.Stream("host")
    x, y = np.arange(64, dtype="f4"), np.zeros(64, "f4")
    assert launch("queues", "deque_nothing", address=made.address) == Status.SUCCESS
    assert launch("queues", "alloc_too_many", address=made.address) == Status.SUCCESS
    assert launch("queues", "eventful", x, y, address=made.address) == Status.SUCCESS
    with pytest.raises(jitblas.StatusError, match="queue 'output': DeQue") as caught:
        made.synchronize()
    assert caught.value.status == Status.EXECUTION_FAILED
    made.synchronize()
    assert (y == x + 1).all()


def test_impossible_launches_are_refused() -> None:
    address = stream().address
    assert launch("queues", "alloc_too_many", address=address, blocks=0) == Status.INVALID_VALUE
    assert launch("queues", "alloc_too_many", address=address, blocks=65536) == Status.INVALID_VALUE
    assert launch("queues", "alloc_too_many", address=0) == Status.INVALID_VALUE
    stream().synchronize()
