"""Status codes and exceptions: everything jitblas raises derives from :class:`Error`."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum


class Status(IntEnum):
    """Status codes of the aclblas interface (values are those of its C header)."""

    SUCCESS = 0
    NOT_INITIALIZED = 1
    ALLOC_FAILED = 2
    INVALID_VALUE = 3
    MAPPING_ERROR = 4
    EXECUTION_FAILED = 5
    INTERNAL_ERROR = 6
    NOT_SUPPORTED = 7
    ARCH_MISMATCH = 8
    HANDLE_IS_NULLPTR = 9
    INVALID_ENUM = 10
    UNKNOWN = 11


class Error(Exception):
    """Base of every jitblas exception."""


class StatusError(Error):
    """An operation was refused or failed; `status` says how, `argument` names the culprit where there is one."""

    def __init__(self, status: Status, operator: str, argument: str | None, message: str) -> None:
        self.status = status
        self.operator = operator
        self.argument = argument
        self.message = message
        super().__init__(f"{operator}: {status.name}: {message}")


class ArchMismatch(StatusError):
    """A device object was built for another chip; it is never loaded."""

    def __init__(self, message: str, operator: str = "jitblas") -> None:
        super().__init__(Status.ARCH_MISMATCH, operator, None, message)


class ProblemSyntaxError(Error, ValueError):
    """A problem line that cannot be read; the message shows what is accepted."""


class CompilerNotFound(Error):
    """No usable compiler for a target. `tried` lists (candidate, why it does not count)."""

    def __init__(self, target: str, tried: Sequence[tuple[str, str]], remedy: str) -> None:
        self.target = target
        self.tried = tuple(tried)
        lines = [f"no compiler for target {target!r} counts:"]
        lines += [f"  {name}: {reason}" for name, reason in self.tried]
        lines.append(remedy)
        super().__init__("\n".join(lines))


def may_pass(returncode: int | None, output: str) -> bool:
    """Whether a process that failed may succeed another time: it was stopped (None, a signal) or found no room."""
    room = ("No space left on device", "quota exceeded", "annot allocate memory")
    return returncode is None or returncode < 0 or any(text in output for text in room)


class CompileError(Error):
    """The compiler refused a kernel. :meth:`dump` shows its output and the numbered source."""

    store_full = False
    """Whether there was no room in the store when it ended."""

    def __init__(self, command: Sequence[str], returncode: int | None, output: str, source: str, key: str) -> None:
        self.command = tuple(command)
        self.returncode = returncode
        self.output = output
        self.source = source
        self.key = key
        first = next((line for line in output.splitlines() if "error" in line), output.strip()[:200])
        how = "timed out" if returncode is None else f"exit status {returncode}"
        super().__init__(f"{self.command[0]} failed ({how}) on kernel {key}: {first or 'no output'}")

    @property
    def may_pass(self) -> bool:
        """The compiler was stopped or found no room: the same command may succeed later."""
        return may_pass(self.returncode, self.output)

    def again(self) -> CompileError:
        """The same error as a new object, to be raised once more."""
        return CompileError(self.command, self.returncode, self.output, self.source, self.key)

    def dump(self) -> str:
        """The command, the compiler's whole output and the source with line numbers."""
        import shlex

        numbered = [f"{number:5d}  {line}" for number, line in enumerate(self.source.splitlines(), 1)]
        return "\n".join([shlex.join(self.command), self.output.rstrip(), *numbered])


class MissingKernelError(Error):
    """A kernel is not in the store and may not be compiled (JITBLAS_MODE=load).

    `key` is the first half of its key, `prewarm` the command that makes it where compiling is allowed.
    """

    def __init__(self, key: str, problem: str, exact: bool, target: str) -> None:
        import shlex

        self.key = key
        words = ["jitblas", "prewarm", problem or "axpy_ex:n=1", *(["--exact"] if exact else []), "--target", target]
        self.prewarm = shlex.join(words)
        super().__init__(
            f"kernel {key} is not in the store and JITBLAS_MODE=load forbids compiling it; where compiling is allowed "
            f"(JITBLAS_MODE=on, the same cache directory) this makes it: {self.prewarm}"
        )


class CacheError(Error):
    """The artifact store cannot be used as asked."""
