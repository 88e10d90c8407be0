"""`jitblas show`: what would be built, on both targets, and that nothing is."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

import jitblas
from jitblas import cli
from tests.cli.command_line import Runner

PROBLEM = "axpy_ex:n=1e6,dtype=bf16"


def entries(cache: Path) -> list[Path]:
    return list(cache.glob("v1/*/*/*/meta.json"))


def test_the_summary_says_path_reason_tiling_and_key(command: Runner, cache: Path) -> None:
    finished = command("show", "axpy_ex:n=1e6,incx=2,incy=-3", "--target", "host")
    assert (finished.returncode, finished.stderr) == (0, "")
    lines = dict(line.split(None, 1) for line in finished.stdout.splitlines())
    assert lines["problem"] == "axpy_ex:n=1000000,incx=2,incy=-3"
    assert lines["path"].startswith("strided (axpy_ex/strided.asc), because incx=2, incy=-3")
    assert "Element=float" in lines["constants"]
    assert "n=1000000" in lines["tiling"]
    assert lines["store"].startswith("not there")
    what, _, how = lines["key"].partition("/")
    assert len(what) == len(how) == 64
    assert entries(cache) == []


def test_what_the_demo_compiled_is_found_in_the_store(filled: Runner, demo: tuple[Path, object]) -> None:
    finished = filled("show", "axpy_ex:n=12345")
    assert f"store      {demo[0]}" in finished.stdout


def test_exact_bakes_the_sizes(command: Runner) -> None:
    finished = command("show", "axpy_ex:n=1000,incx=2", "--exact")
    assert "baked      n=1000, incx=2, incy=1\n" in finished.stdout
    tiling = finished.stdout.partition("tiling")[2].splitlines()[0]
    assert "n=" not in tiling and "per_block=" in tiling
    source = command("show", "axpy_ex:n=1000,incx=2", "--exact", "--source").stdout
    assert "static constexpr uint64_t n = 1000;" in source


def test_the_source_for_the_chip_needs_no_toolkit(command: Runner, no_programs: str) -> None:
    finished = command("show", PROBLEM, "--source", "--target", "ascend950pr", PATH=no_programs)
    assert (finished.returncode, finished.stderr) == (0, "")
    assert "using Element = bfloat16_t;" in finished.stdout
    assert "<<<" in finished.stdout  # launches as the chip's compiler takes them


def test_the_source_for_the_host_has_its_launches_rewritten(command: Runner) -> None:
    source = command("show", PROBLEM, "--source", "--target", "host").stdout
    assert source.rstrip("\n") == jitblas.specialize(PROBLEM, "host").source.rstrip("\n")
    assert "<<<" not in source


def test_the_tiling_for_the_chip_needs_no_toolkit(command: Runner) -> None:
    finished = command("show", "axpy_ex:n=1e6", "--tiling", "--target", "ascend950pr")
    assert (finished.returncode, finished.stderr) == (0, "")
    lines = [line.split() for line in finished.stdout.splitlines()]
    assert lines[0] == ["blocks", "56"]
    assert ["uint64_t", "n", "1000000", "run", "time"] in lines


def test_a_host_build_can_be_tiled_like_the_chip(command: Runner) -> None:
    chip = ("--target", "host", "--profile", "ascend950pr")
    assert command("show", "axpy_ex:n=1e6", "--tiling", *chip).stdout.startswith("blocks 56\n")
    assert "tiled for ascend950pr" in command("show", "axpy_ex:n=1e6", *chip).stdout


def test_the_command_for_the_chip_is_shown_without_bisheng(command: Runner, no_programs: str) -> None:
    finished = command("show", PROBLEM, "--command", "--target", "ascend950pr", PATH=no_programs)
    assert finished.returncode == 0
    argv = shlex.split(finished.stdout)
    assert argv[0] == "bisheng"
    assert {"-x", "asc", "--npu-arch=dav-3510", "-shared"} <= set(argv)
    assert argv[-3:] == ["kernel.cpp", "-o", "kernel.so"]
    assert "bisheng was not found" in finished.stderr


def test_the_command_for_the_host_is_the_one_that_compiles(filled: Runner) -> None:
    finished = filled("show", "axpy_ex:n=5", "--command", "--target", "host")
    assert (finished.returncode, finished.stderr) == (0, "")
    what = finished.stdout.partition('JITBLAS_KEY="')[2].partition("/")[0]
    stored = filled("cache", "show", what).stdout
    assert f"command    {finished.stdout.strip()}" in stored


def test_the_command_for_the_host_is_shown_without_a_compiler(command: Runner, no_programs: str) -> None:
    finished = command("show", PROBLEM, "--command", PATH=no_programs, JITBLAS_CXX="no-such-compiler")
    assert finished.returncode == 0
    argv = shlex.split(finished.stdout)
    assert argv[0] == "g++"
    assert "-ffp-contract=off" in argv
    assert "g++ was not found" in finished.stderr


def test_without_a_compiler_the_summary_says_so(command: Runner, no_programs: str, cache: Path) -> None:
    finished = command("show", PROBLEM, "--target", "ascend950pr", PATH=no_programs)
    assert (finished.returncode, finished.stderr) == (0, "")
    assert "/? (no compiler for ascend950pr was found" in finished.stdout
    assert entries(cache) == []


@pytest.mark.parametrize("more", [[], ["--exact"], ["--tiling"], ["--source", "--exact"], ["--command"]])
def test_an_empty_problem_launches_nothing(
    more: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, cache: Path
) -> None:
    monkeypatch.setenv("JITBLAS_CACHE_DIR", str(cache))
    assert cli.main(["show", "axpy_ex:n=0", "--target", "ascend950pr", *more]) == 0
    if not more or "--tiling" in more:
        assert "nothing to compute" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("nonsense:", "unknown operator 'nonsense'"),
        ("", "unknown operator ''"),
        ("axpy_ex:n=1e6,dtype=int8", "dtype=int8: accepted are fp32, fp16, bf16"),
        ("axpy_ex:n=1.5", "n=1.5: a whole number is needed"),
        ("axpy_ex:n=-1", "n=-1: at least 0 is needed"),
        ("axpy_ex:n=nan", "n=nan"),
        ("axpy_ex:n=1,n=2", "n is given twice"),
        ("axpy_ex:m=1", "unknown name 'm'"),
        ("axpy_ex:LT,n=1", "unknown name 'LT'"),
        ("axpy_ex", "n= is missing"),
    ],
)
def test_a_problem_that_cannot_be_read_is_wrong_usage(text: str, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["show", text]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("jitblas: ") and told in printed.err


@pytest.mark.parametrize("more", [["--target", "abacus"], ["--profile", "abacus"], ["--source", "--tiling"]])
def test_wrong_options_are_wrong_usage(more: list[str]) -> None:
    assert cli.main(["show", PROBLEM, *more]) == 2


def test_a_wrong_target_in_the_environment_is_one_error(command: Runner) -> None:
    finished = command("show", PROBLEM, JITBLAS_TARGET="abacus")
    assert finished.returncode == 1
    assert finished.stderr == "jitblas: JITBLAS_TARGET=abacus: accepted are ascend950pr, host\n"
