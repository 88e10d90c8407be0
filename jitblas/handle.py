"""Handles, streams, events and workspaces: what BLAS and ACL callers hold."""

from __future__ import annotations

import atexit
import functools
import threading
import weakref
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from jitblas.errors import Status, StatusError
from jitblas.hardware import HOST
from jitblas.jit.kernels import default_target, on_reload, resolve_target, runtime_for

if TYPE_CHECKING:
    from jitblas.runtime.protocol import Runtime

WORKSPACE_BYTES = 32 << 20
"""Size of a handle's own workspace when it is first needed."""

WORKSPACE_CAP = 4 << 30
"""Bytes that a handle's own workspace never grows beyond."""


_left_behind: list[tuple[Runtime, int, Any]] = []
"""(runtime, event of ours, what must live until it is reached): work on borrowed streams that nobody here holds now."""


class Unique:
    """Something of this process that a copy or a pickle could only pretend to be."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(f"a {type(self).__name__} cannot be copied or pickled: it stands for something of this process")


class Stream(Unique):
    """An ordered asynchronous queue of launches, copies and events.

    Parameters
    ----------
    target : "host" or "ascend950pr"; None: the default target
    address : of a stream made elsewhere (an aclrtStream), which is then borrowed and never destroyed
    """

    def __init__(self, target: str | None = None, *, address: int | None = None) -> None:
        self.target = default_target() if target is None else resolve_target(target)
        self.runtime: Runtime = runtime_for(self.target)
        self.borrowed = address is not None
        if address is not None:
            self.runtime.check_stream(address)
        self._address: int | None = self.runtime.create_stream() if address is None else address
        self._kept: deque[tuple[int, Any]] = deque()
        self._handles: weakref.WeakSet[Handle] = weakref.WeakSet()
        _streams.add(self)
        _free_at_exit(self.target)

    @property
    def address(self) -> int:
        if self._address is None:
            raise StatusError(Status.INVALID_VALUE, "Stream", "stream", "the stream was destroyed; make another")
        return self._address

    @property
    def destroyed(self) -> bool:
        return self._address is None

    @property
    def _as_parameter_(self) -> int:
        return self.address

    def synchronize(self) -> None:
        """Wait until everything on the stream is done; raises EXECUTION_FAILED for the first kernel that failed."""
        try:
            self.runtime.synchronize_stream(self.address)
        finally:
            self._kept.clear()

    def record(self) -> Event:
        """An event that is reached when all that was submitted so far is done."""
        return Event(self)

    def keep(self, *objects: Any) -> None:
        """Keep objects alive until what is on the stream now is done."""
        submitted, completed = self.runtime.stream_position(self.address)
        while self._kept and self._kept[0][0] <= completed:
            self._kept.popleft()
        if submitted != completed:
            self._kept.append((submitted, objects))
        if _left_behind:
            settle(wait=False)

    def leave(self) -> None:
        """Before a borrowed stream is forgotten: what its work uses stays alive until an event of ours is reached."""
        if self.borrowed and self._kept:
            event = self.runtime.create_event()
            self.runtime.record_event(event, self.address)
            _left_behind.append((self.runtime, event, list(self._kept)))
            self._kept.clear()

    def destroy(self) -> None:
        """Wait for the stream's work and free it. Refused while a handle uses it; a second call does nothing."""
        users = [handle for handle in self._handles if not handle.destroyed]
        if users:
            raise StatusError(
                Status.INVALID_VALUE,
                "Stream",
                "stream",
                f"{len(users)} handle(s) still use this stream; destroy them, or give them another, first",
            )
        self._free()

    def _free(self) -> None:
        if self._address is not None and self.borrowed:
            self.leave()
        address, self._address = self._address, None
        try:
            if address is not None and not self.borrowed:
                self.runtime.destroy_stream(address)
        finally:
            self._kept.clear()

    def __del__(self) -> None:
        try:
            if getattr(self, "_address", None) is not None:
                self._free()
        except Exception:  # interpreter shutdown: the runtime may be gone, and a finaliser cannot report
            pass


def settle(wait: bool = True) -> None:
    """Wait for work on borrowed streams that nobody here holds now, and drop what was kept for it.

    Without `wait`: drop what is done.
    """
    for item in list(_left_behind):
        runtime, event, _ = item
        if wait:
            runtime.synchronize_event(event)
        if wait or runtime.event_complete(event):
            _left_behind.remove(item)
            runtime.destroy_event(event)


_streams: weakref.WeakSet[Stream] = weakref.WeakSet()


def _quietly(end: Callable[[], None]) -> None:
    try:
        end()
    except StatusError:
        pass  # at exit nobody is left to hear of a kernel that failed, or that a forked child has no device


@functools.cache
def _free_at_exit(target: str) -> None:
    """Registered after the runtime's own shutdown, hence run before it: thread-locals and globals die too late."""

    def free() -> None:
        handles = [handle for handle in _handles if handle.target == target]
        streams = [stream for stream in _streams if stream.target == target]
        for end in (*(handle.destroy for handle in handles), *(stream._free for stream in streams)):
            _quietly(end)
        _quietly(settle)

    atexit.register(free)


class Event(Unique):
    """A place in a stream, with the time at which it was reached."""

    def __init__(self, stream: Stream) -> None:
        self._runtime = stream.runtime
        self._event: int | None = self._runtime.create_event()
        self._runtime.record_event(self._event, stream.address)

    @property
    def complete(self) -> bool:
        return self._runtime.event_complete(self._address())

    def synchronize(self) -> None:
        """Wait until the event is reached."""
        self._runtime.synchronize_event(self._address())

    def elapsed_ms(self, start: Event) -> float:
        """Milliseconds from `start` to this event; both must have been reached."""
        return self._runtime.elapsed_ms(start._address(), self._address())

    def _address(self) -> int:
        if self._event is None:
            raise StatusError(Status.INVALID_VALUE, "Event", "event", "the event was destroyed")
        return self._event

    def destroy(self) -> None:
        if self._event is not None:
            event, self._event = self._event, None
            self._runtime.destroy_event(event)

    def __del__(self) -> None:
        try:
            self.destroy()
        except Exception:  # as in Stream.__del__
            pass


class Workspace(Unique):
    """Scratch memory of a handle: its own, growing on demand up to :data:`WORKSPACE_CAP`, or the user's, as it is.

    Attributes
    ----------
    size : bytes there are now; 0 before the first use of a handle's own workspace
    owned : False for a workspace of the user's

    Parameters
    ----------
    owner : what a workspace of the user's lives in
    moved : called when the address of a workspace of the handle's own is gone
    """

    def __init__(
        self,
        stream: Stream,
        address: int | None = None,
        size: int = 0,
        *,
        owner: Any = None,
        moved: Callable[[], None] | None = None,
    ) -> None:
        self._stream = stream
        self._owner = owner
        self._moved = moved
        self._address = address
        self.size = size
        self.owned = address is None

    def reserve(self, nbytes: int) -> int:
        """Address of at least `nbytes` bytes; ALLOC_FAILED names what is needed and what there is."""
        if nbytes <= self.size and self._address is not None:
            return self._address
        if not self.owned or nbytes > WORKSPACE_CAP:
            limit = f"the cap is {WORKSPACE_CAP}" if self.owned else f"the workspace given has {self.size}"
            raise StatusError(
                Status.ALLOC_FAILED,
                "workspace",
                "workspace",
                f"{nbytes} bytes of workspace are needed, {limit}; give Handle(workspace=...) "
                "as many, or do less in a call",
            )
        self.release()
        size = max(nbytes, WORKSPACE_BYTES)
        self._address = address = self._stream.runtime.allocate(size)
        self.size = size
        return address

    def follow(self, stream: Stream) -> None:
        """Be the workspace of another stream, when what is on this one is done: both would write to it."""
        if self.owned:
            self.release()
        else:
            self._stream.runtime.synchronize_stream(self._stream.address)
        self._stream = stream

    def release(self) -> None:
        """Give a handle's own workspace back, when what is on the stream is done; let the user's go then."""
        if self._owner is not None:
            self._stream.keep(self._owner)
            self._owner = None
        if self.owned and self._address is not None:
            self._stream.runtime.synchronize_stream(self._stream.address)
            self._stream.runtime.release(self._address)
            self._address, self.size = None, 0
            if self._moved is not None:
                self._moved()

    def __del__(self) -> None:
        try:
            self.release()
        except Exception:  # as in Stream.__del__
            pass


class Handle(Unique):
    """A stream and a workspace that calls run on; one thread at a time. A context manager.

    Parameters
    ----------
    target : "host" or "ascend950pr"; None: the stream's, or the default target
    stream : a Stream, an address, anything with `.npu_stream` or `._as_parameter_`; None: torch_npu's current stream
        where torch_npu is imported, else a stream of the handle's own
    workspace : a DeviceArray or (address, bytes); None: one of the handle's own, made when first needed

    Attributes
    ----------
    csyrk_algorithm : "4m", "3m" or "auto": the algorithm of Csyrk where a call does not choose one
    """

    def __init__(self, target: str | None = None, stream: Any = None, workspace: Any = None) -> None:
        self.destroyed = False
        self._own_stream = False
        self._csyrk_algorithm = "auto"
        if target is None and isinstance(stream, Stream):
            target = stream.target
        self.target = default_target() if target is None else resolve_target(target)
        self.runtime = runtime_for(self.target)
        self._workspace: Workspace
        self.prepared: dict[Any, Any] = {}
        """Launches and plans ready to go, by everything that distinguishes them (:mod:`jitblas.dispatch`)."""
        self.plans: weakref.WeakSet[Any] = weakref.WeakSet()
        """Plans made for this handle; they hold its stream's address."""
        self.set_stream(stream)
        self.set_workspace(workspace)
        _handles.add(self)

    @property
    def stream(self) -> Stream:
        return self._stream

    @property
    def workspace(self) -> Workspace:
        return self._workspace

    @property
    def csyrk_algorithm(self) -> str:
        return self._csyrk_algorithm

    @csyrk_algorithm.setter
    def csyrk_algorithm(self, algorithm: str) -> None:
        from jitblas.operators.csyrk import ALGORITHMS

        if algorithm not in ALGORITHMS:
            raise ValueError(f"csyrk_algorithm={algorithm!r}: accepted are 'auto', '4m' and '3m'")
        self._csyrk_algorithm = algorithm

    def set_stream(self, stream: Any) -> None:
        """Run later calls on another stream; accepted is what the constructor accepts."""
        made = stream is None
        chosen = self._resolve_stream(stream)
        if chosen.target != self.target:
            raise StatusError(
                Status.INVALID_VALUE,
                "Handle",
                "stream",
                f"the stream is on {chosen.target}, the handle on {self.target}",
            )
        _ = chosen.address  # a destroyed stream raises here, not at the first launch
        previous: Stream | None = getattr(self, "_stream", None)
        if previous is chosen:
            return
        if previous is not None:
            self._workspace.follow(chosen)
            previous._handles.discard(self)
            if self._own_stream:
                previous.destroy()
            else:
                previous.leave()
        self._stream, self._own_stream = chosen, made and not chosen.borrowed
        chosen._handles.add(self)
        self._tell_plans()

    def _resolve_stream(self, stream: Any) -> Stream:
        if stream is None:
            stream = _torch_npu_stream() if self.target != HOST else None
        if stream is None:
            return Stream(self.target)
        if isinstance(stream, Stream):
            return stream
        address = getattr(stream, "npu_stream", None)
        if address is None:
            address = getattr(stream, "_as_parameter_", stream)
        if isinstance(address, bool) or not isinstance(address, int):
            raise TypeError(
                f"stream={stream!r}: accepted are None, a jitblas.Stream, an address, and objects with npu_stream or "
                f"_as_parameter_"
            )
        # A stream of ours by its address is that stream: it then knows that a handle uses it.
        ours = (known for known in _streams if known.target == self.target and not known.borrowed)
        return next((known for known in ours if known._address == address), None) or Stream(
            self.target, address=address
        )

    def set_workspace(self, workspace: Any, owner: Any = None) -> None:
        """Use the user's memory (a DeviceArray or (address, bytes)) from now on; None: one of the handle's own.

        `owner` stays alive as long as work uses the memory, and so does a DeviceArray.
        """
        previous = getattr(self, "_workspace", None)
        if workspace is None:
            chosen = self._own_workspace()
        else:
            address, size = (
                workspace
                if isinstance(workspace, tuple) and len(workspace) == 2
                else (getattr(workspace, "address", None), getattr(workspace, "nbytes", None))
            )
            if not isinstance(address, int) or not isinstance(size, int) or size < 0 or address <= 0:
                raise TypeError("workspace: accepted are None, a DeviceArray and (address, bytes)")
            target = getattr(workspace, "target", self.target)
            if target != self.target:
                raise StatusError(
                    Status.INVALID_VALUE,
                    "Handle",
                    "workspace",
                    f"workspace is on {target}, the handle on {self.target}",
                )
            chosen = Workspace(self._stream, address, size, owner=workspace if owner is None else owner)
        if previous is not None:
            previous.release()
        self._workspace = chosen
        self._tell_plans()

    def _own_workspace(self) -> Workspace:
        handle = weakref.ref(self)

        def moved() -> None:
            this = handle()
            if this is not None:
                this._tell_plans()

        return Workspace(self._stream, moved=moved)

    def synchronize(self) -> None:
        """Wait for everything on the handle's stream; raises EXECUTION_FAILED for the first kernel that failed."""
        self.require()
        self._stream.synchronize()

    def destroy(self) -> None:
        """Wait for the handle's work and free what it owns. A second call does nothing.

        A kernel that failed since the last synchronisation raises here, after everything is freed.
        """
        if self.destroyed:
            return
        try:
            self._stream.synchronize()
        finally:
            self._workspace.release()
            self.destroyed = True
            self.prepared.clear()
            self._tell_plans()
            self._stream._handles.discard(self)
            if self._own_stream:
                self._stream.destroy()

    def _tell_plans(self) -> None:
        for plan in list(self.plans):
            plan.follow_handle()

    def require(self) -> None:
        """Raise NOT_INITIALIZED if the handle was destroyed."""
        if self.destroyed:
            raise StatusError(Status.NOT_INITIALIZED, "Handle", "handle", "the handle was destroyed; make another")

    def __enter__(self) -> Handle:
        self.require()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.destroy()


_handles: weakref.WeakSet[Handle] = weakref.WeakSet()
_defaults = threading.local()


def _forget_prepared() -> None:
    for handle in list(_handles):
        handle.prepared.clear()


on_reload(_forget_prepared)


def default_handle(target: str | None = None) -> Handle:
    """This thread's handle for a target (None: the default target), made at its first use.

    On a device it follows torch_npu's current stream where torch_npu is imported.
    """
    name = default_target() if target is None else target
    handles: dict[str, Handle] | None = getattr(_defaults, "handles", None)
    if handles is None:
        handles = _defaults.handles = {}
    handle = handles.get(name)
    if handle is None or handle.destroyed:
        handle = handles[name] = Handle(name)
    current = _torch_npu_stream() if name != HOST else None
    if current is not None and current.npu_stream != handle.stream.address:
        handle.set_stream(current)
    return handle


def _torch_npu_stream() -> Any:
    import sys

    torch_npu = sys.modules.get("torch_npu")
    return torch_npu.npu.current_stream() if torch_npu is not None else None
