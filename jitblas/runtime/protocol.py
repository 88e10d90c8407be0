"""Device memory, streams, events and pointer questions, one implementation per target.

A runtime never knows an operator or a shape. Streams, events and memory are plain integers here (addresses of the
library's own objects); :mod:`jitblas.handle` wraps them for people.
"""

from __future__ import annotations

from typing import Any, Protocol

from jitblas.hardware import Profile


class Runtime(Protocol):
    """What a target can do apart from compiling. Failures raise :class:`jitblas.errors.StatusError`."""

    target: str
    shares_host_memory: bool
    """Kernels may be given the addresses of NumPy arrays."""

    def profile(self) -> Profile:
        """The target's own tiling profile, with the core counts of the device at hand."""

    def create_stream(self) -> int: ...
    def check_stream(self, address: int) -> None:
        """Raise INVALID_VALUE if an address given by the user cannot be a stream, as far as can be told."""

    def destroy_stream(self, stream: int) -> None:
        """Waits for the stream's work, then frees it."""

    def synchronize_stream(self, stream: int) -> None:
        """Wait until the stream is idle; raises EXECUTION_FAILED for the first kernel that failed on it."""

    def stream_position(self, stream: int) -> tuple[int, int]:
        """(commands submitted, commands completed); keeps arrays alive exactly as long as needed."""

    def launch_stream(self, stream: int, *, wait: bool, small: bool, overlapping: bool) -> int:
        """The stream argument of a launch made in this manner.

        `wait`: the caller wants the result at once. `small`: cheaper to run than to hand over. `overlapping`:
        operands overlap in memory. A runtime without such distinctions returns `stream`.
        """

    def create_event(self) -> int: ...
    def destroy_event(self, event: int) -> None: ...
    def record_event(self, event: int, stream: int) -> None: ...
    def event_complete(self, event: int) -> bool: ...
    def synchronize_event(self, event: int) -> None: ...
    def elapsed_ms(self, start: int, end: int) -> float: ...

    def allocate(self, nbytes: int) -> int: ...
    def release(self, address: int) -> None: ...
    def copy_async(self, destination: int, source: int, nbytes: int, kind: str, stream: int) -> None:
        """`kind`: "to_device", "to_host" or "on_device"."""

    def set_async(self, destination: int, byte: int, nbytes: int, stream: int) -> None: ...
    def is_device_pointer(self, address: int) -> bool:
        """Whether the address lies in device memory (on the host: in memory that this runtime allocated)."""

    def bind(self, library: Any) -> None:
        """Introduce a freshly loaded kernel library (ctypes.CDLL) to the runtime."""

    def shutdown(self) -> None:
        """Wait for all streams and end all threads; called once at exit."""
