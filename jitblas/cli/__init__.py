"""The command line. Each sub-command is a module of its own, imported only when it is the one asked for.

A sub-command offers `add_arguments(parser)` and `run(arguments) -> int`. Exit codes: 0 fine, 1 something
failed, 2 usage, 130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from jitblas import __version__
from jitblas.errors import CompileError, Error, ProblemSyntaxError

FAILED, USAGE, INTERRUPTED = 1, 2, 130

COMMANDS = {
    "demo": "run every operator on generated data and check the results",
    "doctor": "what is here, what is missing, and how to mend it",
    "show": "what would be built for a problem, and why, without building it",
    "prewarm": "compile kernels ahead of the calls that need them",
    "cache": "look at the artifact store, prune it, and exchange artifacts with others",
    "bench": "measure problems",
}
"""Sub-command -> what it does; the module has the same name."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv` (None: this process's) and return its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        arguments = _parser(words).parse_args(words)
        code = _guarded(arguments.run, arguments)
        _flush()
        return code
    except SystemExit as left:  # argparse: usage errors, --help and --version
        return left.code if isinstance(left.code, int) else USAGE
    except BrokenPipeError:
        # The reader went away. What is still buffered must not raise once more when Python closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except OSError as error:
        print(f"jitblas: {error.strerror or error}{f': {error.filename}' if error.filename else ''}", file=sys.stderr)
        if sys.stdout is not None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED


def argument(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """A type for argparse, which shows the message of one kind of error only; `parse` raises ValueError."""

    def parsed(text: str) -> Any:
        try:
            return parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return parsed


def _parser(words: Sequence[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="jitblas", description="BLAS kernels in Ascend C, compiled at their first call."
    )
    parser.add_argument("--version", action="version", version=f"jitblas {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    chosen = next((word for word in words if not word.startswith("-")), None)
    for name, text in COMMANDS.items():
        command = commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
        if name == chosen:
            module = import_module(f"jitblas.cli.{name}")
            module.add_arguments(command)
            command.set_defaults(run=module.run)
    return parser


def _guarded(run: Callable[[argparse.Namespace], int], arguments: argparse.Namespace) -> int:
    """The sub-command's exit code; what jitblas raises becomes one message on stderr."""
    try:
        return run(arguments)
    except CompileError as error:
        message, code = f"{error}\n{error.dump()}", FAILED
    except ProblemSyntaxError as error:
        message, code = str(error), USAGE
    except Error as error:
        message, code = str(error), FAILED
    _flush()  # so that the message comes after what was printed before it
    print(f"jitblas: {message}", file=sys.stderr)
    return code


def _flush() -> None:
    if sys.stdout is not None:  # it is None where the caller closed it
        sys.stdout.flush()
