"""What every sub-command shares: parsing, exit codes, one message per error."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from jitblas import __version__, cli
from jitblas.errors import CompileError, Error
from tests.cli.command_line import Runner, environment


@pytest.fixture
def probe(monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    """Register a sub-command `probe` that does what it is given."""

    def register(action):  # type: ignore[no-untyped-def]
        module = ModuleType("jitblas.cli.probe")
        module.add_arguments = lambda parser: None  # type: ignore[attr-defined]
        module.run = action  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "jitblas.cli.probe", module)
        monkeypatch.setitem(cli.COMMANDS, "probe", "for the tests")

    return register


def test_version(command: Runner) -> None:
    assert command("--version").stdout == f"jitblas {__version__}\n"


@pytest.mark.parametrize("words", [[], ["nonsense"], ["--nonsense"], ["show"], ["cache"], ["cache", "nonsense"]])
def test_wrong_usage_exits_with_2(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(words) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "usage: jitblas" in printed.err


@pytest.mark.parametrize("words", [["--help"], ["show", "--help"], ["cache", "ls", "--help"]])
def test_help_exits_with_0(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(words) == 0
    assert "usage: jitblas" in capsys.readouterr().out


def test_help_names_every_command_and_imports_none(cache: Path) -> None:
    code = (
        "import sys; from jitblas.cli import main, COMMANDS; main(['--help'])\n"
        "loaded = {f'jitblas.cli.{name}' for name in COMMANDS} | {'numpy', 'diskcache', 'filelock'}\n"
        "sys.exit(sorted(loaded & set(sys.modules)) or None)"
    )
    finished = subprocess.run(
        [sys.executable, "-c", code], env=environment(cache), capture_output=True, text=True, timeout=60
    )
    assert finished.returncode == 0, finished.stderr
    assert all(f"    {name} " in finished.stdout for name in cli.COMMANDS)
    assert not cache.exists()


def test_the_exit_code_is_the_sub_commands_own(probe) -> None:  # type: ignore[no-untyped-def]
    probe(lambda arguments: 7)
    assert cli.main(["probe"]) == 7


def test_an_error_is_one_message_on_stderr(probe, capsys: pytest.CaptureFixture[str]) -> None:  # type: ignore[no-untyped-def]
    def fail(arguments: argparse.Namespace) -> int:
        raise Error("no such luck")

    probe(fail)
    assert cli.main(["probe"]) == 1
    assert capsys.readouterr() == ("", "jitblas: no such luck\n")


def test_a_compile_error_comes_with_output_and_source(probe, capsys: pytest.CaptureFixture[str]) -> None:  # type: ignore[no-untyped-def]
    def fail(arguments: argparse.Namespace) -> int:
        raise CompileError(["g++", "a b.cpp"], 1, "error: expected ';'", "int one\nint two", "key")

    probe(fail)
    assert cli.main(["probe"]) == 1
    printed = capsys.readouterr().err
    assert printed.startswith("jitblas: g++ failed (exit status 1) on kernel key: error: expected ';'\n")
    assert "g++ 'a b.cpp'" in printed
    assert "    2  int two" in printed


def test_an_interruption_is_quiet(probe, capsys: pytest.CaptureFixture[str]) -> None:  # type: ignore[no-untyped-def]
    def interrupted(arguments: argparse.Namespace) -> int:
        raise KeyboardInterrupt

    probe(interrupted)
    assert cli.main(["probe"]) == 130
    assert capsys.readouterr() == ("", "")


def test_a_reader_that_goes_away_is_met_quietly(cache: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "jitblas", "show", "axpy_ex:n=1", "--source"],
        env=environment(cache),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait(60) == 1


def test_a_closed_stdout_does_not_matter(cache: Path) -> None:
    finished = subprocess.run(
        ["/bin/sh", "-c", 'exec "$0" -m jitblas cache path >&-', sys.executable],
        env=environment(cache),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (finished.returncode, finished.stderr) == (0, "")
