"""What every compiler offers: candidates to try, a probe, and an argv that turns one source file into one .so.

Commands are argv lists, never shell lines. They run with LC_ALL=C, in an empty private directory and in a process group
of their own, so that a timeout ends the whole family.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple, Protocol

from jitblas.errors import may_pass

COMPILE_TIMEOUT = 600.0
"""Seconds. Generous: the first run of zig builds its own C library for most of a minute."""

_FAST_MATH = {
    "-ffast-math", "-Ofast", "-funsafe-math-optimizations", "-ffinite-math-only", "-fassociative-math",
    "-freciprocal-math", "-fno-signed-zeros", "-fno-honor-nans", "-fno-honor-infinities", "-fapprox-func", "-mdaz-ftz",
    "-mrecip", "-fcx-limited-range", "-fsingle-precision-constant", "-menable-unsafe-fp-math",
}  # fmt: skip


def changes_rounding(flag: str) -> bool:
    """Whether a compiler flag changes results, some of them for the whole process that loads what it made.

    Long spellings (--fast-math, --optimize=fast) count, and so do files of flags (@file), which could hold any.
    """
    if flag.startswith("--optimize"):
        flag = "-O" + flag.removeprefix("--optimize").removeprefix("=")
    elif flag.startswith("--"):
        flag = "-f" + flag[2:]
    name, _, value = flag.partition("=")
    return (
        flag in _FAST_MATH
        or name == "-mrecip"
        or flag.startswith("@")
        or (name == "-ffp-contract" and value != "off")
        or (name in ("-ffp-model", "-fp-model") and value not in ("precise", "strict"))
    )


class Unusable(Exception):
    """A candidate compiler does not count; the text says why. `may_pass`: another time it may."""

    def __init__(self, reason: str, may_pass: bool = False) -> None:
        super().__init__(reason)
        self.may_pass = may_pass


class Finished(NamedTuple):
    """A process that ended: exit status (None if it was stopped for taking too long) and its output."""

    returncode: int | None
    output: str

    @property
    def may_pass(self) -> bool:
        """Whether its failure says nothing about the compiler."""
        return may_pass(self.returncode, self.output)

    def first_error(self) -> str:
        """Why it failed, in one line."""
        if self.returncode is None:
            return "timed out"
        lines = [line.strip() for line in self.output.splitlines() if line.strip()]
        return next((line for line in lines if "error" in line), lines[0] if lines else "no output")[:300]


class Toolchain(NamedTuple):
    """A compiler that passed its probe.

    Attributes
    ----------
    name : "gcc", "clang", "zig" or "bisheng"
    target : what it compiles for
    driver : argv prefix
    version : first line of its version text
    flags : compile and link flags, as given on the command line
    identity : labelled facts that make two toolchains different: digests, versions, what -march=native means here
    depends : files whose change invalidates the probe
    suffix : of the source file
    cache_variables : environment variables that tell it where to keep caches of its own
    """

    name: str
    target: str
    driver: tuple[str, ...]
    version: str
    flags: tuple[str, ...]
    identity: tuple[tuple[str, str], ...]
    depends: tuple[str, ...]
    suffix: str = ".cpp"
    cache_variables: tuple[str, ...] = ()

    def environment(self, cache: str | None) -> dict[str, str]:
        """Variables to run it with, so that its own caches lie in `cache` unless the user has a place for them."""
        unset = [name for name in self.cache_variables if name not in os.environ]
        return dict.fromkeys(unset, cache) if cache is not None else {}

    def command(
        self, source: str, output: str, *, include: Sequence[str], define: Mapping[str, str], extra: Sequence[str] = ()
    ) -> list[str]:
        """The argv that compiles `source` into the shared object `output`."""
        defines = [f"-D{name}={value}" for name, value in define.items()]
        includes = [f"-I{path}" for path in include]
        return [*self.driver, *self.flags, *defines, *includes, *extra, source, "-o", output]


def command_words(variable: str) -> list[str]:
    """The words of an environment variable that holds a command or flags; Error if its quotes do not match."""
    text = os.environ.get(variable)
    if not text:
        return []
    import shlex

    from jitblas.errors import Error

    try:
        return shlex.split(text)
    except ValueError as error:
        raise Error(f"{variable}={text}: {error}; words are separated as in a shell") from None


def find_program(name: str) -> str | None:
    """Absolute path of a program on PATH, or of a path that is one (shutil.which, without shutil's imports)."""
    folders = [""] if os.sep in name else os.environ.get("PATH", os.defpath).split(os.pathsep)
    for folder in folders:
        path = os.path.abspath(os.path.join(folder, name))
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None


class Compiler(Protocol):
    """One kind of compiler: where to look for it and how to find out whether it counts."""

    name: str
    target: str

    @property
    def remedy(self) -> str:
        """What to do where none counts."""

    def candidates(self) -> Iterable[tuple[str, ...]]:
        """Argv prefixes to try, best first; the first word is an absolute path of an existing file."""

    def probe(self, driver: tuple[str, ...], workdir: str, cache: str | None) -> Toolchain:
        """Find out everything about a candidate; raises :class:`Unusable`. Starts processes.

        `workdir` is an empty folder that goes away, `cache` one for the compiler's own caches.
        """


def digest_file(path: str) -> str:
    """SHA-256 of a file, which may be a compiler of tens of megabytes."""
    import hashlib

    state = hashlib.sha256()
    with open(path, "rb") as file:
        while data := file.read(1 << 20):
            state.update(data)
    return state.hexdigest()


def run(
    argv: Sequence[str], *, cwd: str, timeout: float = COMPILE_TIMEOUT, environment: Mapping[str, str] | None = None
) -> Finished:
    """Run a compiler; output is stdout and stderr together. OSError if it cannot be started."""
    import subprocess

    process = subprocess.Popen(
        argv,
        cwd=cwd,
        env={**os.environ, "LC_ALL": "C", **(environment or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    _running.add(process.pid)
    if _stopping.is_set():
        _kill_group(process.pid)
    try:
        output, _ = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        _kill_group(process.pid)
        output, _ = process.communicate()
        return Finished(None, output.decode(errors="replace"))
    except BaseException:
        if process.poll() is None:
            _kill_group(process.pid)
            process.wait()
        raise
    finally:
        _running.discard(process.pid)
    return Finished(process.returncode, output.decode(errors="replace"))


_running: set[int] = set()
"""Leaders of the process groups of this process's compilers."""
os.register_at_fork(after_in_child=_running.clear)


_stopping = threading.Event()


def is_stopping() -> bool:
    """Whether nothing is to be compiled now (:func:`stopped`)."""
    return _stopping.is_set()


@contextmanager
def stopped() -> Iterator[None]:
    """Meanwhile, kill the compilers that other threads of this process wait for, and those that they start."""
    _stopping.set()
    try:
        for leader in tuple(_running):
            _kill_group(leader)
        yield
    finally:
        _stopping.clear()


def cannot_start(error: OSError) -> Unusable:
    short_of = (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ENOSPC, errno.EDQUOT, errno.ETXTBSY)
    return Unusable(f"cannot be started: {error}", error.errno in short_of)


def succeed(argv: Sequence[str], what: str, *, cwd: str, environment: Mapping[str, str] | None = None) -> str:
    """The output of a command without which a compiler does not count: :class:`Unusable` says why `what` fails."""
    try:
        finished = run(argv, cwd=cwd, environment=environment)
    except OSError as error:
        raise cannot_start(error) from None
    if finished.returncode != 0:
        raise Unusable(f"{what} fails: {finished.first_error()}", finished.may_pass)
    return finished.output


def _kill_group(leader: int) -> None:
    import signal

    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        pass  # it ended meanwhile
