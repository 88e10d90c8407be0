"""The demo: what it prints, where kernels come from, and that its checks find what is wrong."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from jitblas import cli
from jitblas.problem import Problem
from tests.cli.command_line import Finished, Runner, environment

Rows = list[list[str]]


def rows(output: str) -> Rows:
    return [line.split() for line in output.splitlines() if line.startswith("axpy_ex ")]


def others(output: str) -> Rows:
    """Of the other operators."""
    return [line.split() for line in output.splitlines() if line.startswith(("cdotc ", "csyrk ", "sgemm_", "fft "))]


def test_a_first_demo_compiles_every_kernel_and_says_so(demo: tuple[Path, Finished]) -> None:
    cache, first = demo
    assert first.returncode == 0, first.stderr
    heading = first.stdout.splitlines()[0]
    assert heading.startswith("target host · ")
    assert " threads · " in heading and str(cache) in heading
    found = rows(first.stdout)
    assert [row[1:4] for row in found] == [
        [dtype, inc, "4099"] for inc in ("1,1", "2,-3") for dtype in ("fp32", "fp16", "bf16")
    ]
    assert {(row[5], row[7], row[-1]) for row in found} == {("compiler", "memory", "yes")}
    compiled = [line for line in first.stderr.splitlines() if line.startswith("jitblas: compiled ")]
    assert [row[:3] for row in others(first.stdout)] == [
        ["cdotc", "c64", "1,1"],
        ["csyrk", "LN", "12x12"],
        ["csyrk", "LN", "300x200"],
        ["sgemm_strided_batched", "NN", "8x8x8"],
        ["sgemm_strided_batched", "NT", "256x256x256"],
        ["sgemm_strided_batched", "TN", "100x90x80"],
        ["fft", "c64", "16"],
        ["fft", "c64", "1024"],
        ["fft", "c64", "65536"],
        ["fft", "c128", "65536"],
    ]
    assert {row[-1] for row in others(first.stdout)} == {"yes"}
    assert {name for row in others(first.stdout) for name in ("compiler", "disk", "memory") if name in row} == {
        "compiler", "memory",
    }  # fmt: skip
    assert len(compiled) == 6 + 10 + 3  # and the host runtime, the host cube and the launcher
    assert all(" for host with " in line and line.endswith(" s") for line in compiled)


def test_a_second_demo_finds_every_kernel_on_disk(filled: Runner) -> None:
    second = filled("demo", "-n", "257")
    assert (second.returncode, second.stderr) == (0, "")
    assert {row[5] for row in rows(second.stdout)} == {"disk"}
    assert all("disk" in row for row in others(second.stdout))


@pytest.mark.parametrize("ml_dtypes", ["None", "__import__('ml_dtypes')"])
def test_the_demo_needs_no_ml_dtypes(demo: tuple[Path, Finished], ml_dtypes: str) -> None:
    code = (
        f"import sys; sys.modules['ml_dtypes'] = {ml_dtypes}\n"
        "from jitblas.cli import main; sys.exit(main(['demo', '-n', '100']))"
    )
    finished = subprocess.run(
        [sys.executable, "-c", code], env=environment(demo[0]), capture_output=True, text=True, timeout=60
    )
    assert finished.returncode == 0, finished.stderr
    assert len(rows(finished.stdout)) == 6


def test_without_compiler_and_store_the_demo_is_one_error(command: Runner, no_programs: str) -> None:
    finished = command("demo", PATH=no_programs, JITBLAS_CXX="no-such-compiler")
    assert finished.returncode == 1
    assert finished.stderr.startswith("jitblas: no compiler for target 'host' counts:")
    assert "Traceback" not in finished.stderr


@pytest.mark.parametrize("n", ["0", "1.5", "-3", "many", "nan", "1e300"])
def test_a_wrong_size_is_wrong_usage(n: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["demo", "-n", n]) == 2
    assert "-n" in capsys.readouterr().err


def test_a_failed_check_is_exit_code_1(
    demo: tuple[Path, Finished], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from jitblas.cli import demo as module

    row = module.Row(Problem.parse("axpy_ex:n=1"), 1.0, "disk", 1.0, "memory", "1.0 GB/s", 0.5, False)
    monkeypatch.setattr(module, "_row", lambda problem, handle: row)
    assert cli.main(["demo"]) == 1
    assert "NO" in rows(capsys.readouterr().out)[0]


def exact_result(dtype: str, incx: int, incy: int, n: int = 500):  # type: ignore[no-untyped-def]
    """(problem, memory of x, memory of y before, memory of y after) with the correctly rounded result."""
    from jitblas.cli.demonstrations import SEED_X, SEED_Y, _normal, _strided, to_bf16, to_float64

    problem = Problem.parse(f"axpy_ex:n={n},dtype={dtype},incx={incx},incy={incy},alpha=0.75")
    x, y = _strided(_normal(SEED_X, n, dtype), incx), _strided(_normal(SEED_Y, n, dtype), incy)
    exact = 0.75 * to_float64(x)[::incx] + to_float64(y)[::incy]
    after = y.copy()
    after[::incy] = to_bf16(exact.astype(np.float32)) if dtype == "bf16" else exact.astype(y.dtype)
    return problem, x, y, after


CASES = [(dtype, *inc) for dtype in ("fp32", "fp16", "bf16") for inc in ((1, 1), (2, -3))]


@pytest.mark.parametrize(("dtype", "incx", "incy"), CASES)
def test_the_correct_result_passes(dtype: str, incx: int, incy: int) -> None:
    from jitblas.cli.demonstrations import check

    assert check(*exact_result(dtype, incx, incy))[1]


@pytest.mark.parametrize(("dtype", "incx", "incy"), CASES)
def test_one_element_that_was_left_out_fails(dtype: str, incx: int, incy: int) -> None:
    from jitblas.cli.demonstrations import check

    problem, x, before, after = exact_result(dtype, incx, incy)
    after[-1] = before[-1]
    assert not check(problem, x, before, after)[1]


@pytest.mark.parametrize("dtype", ["fp16", "bf16"])
def test_truncation_instead_of_rounding_fails(dtype: str) -> None:
    from jitblas.cli.demonstrations import check, to_float64

    problem, x, before, after = exact_result(dtype, 1, 1)
    exact = problem.value("alpha") * to_float64(x) + to_float64(before)
    bits = after.view(np.uint16)
    bits -= (np.abs(to_float64(after)) > np.abs(exact)).astype(np.uint16)
    assert not check(problem, x, before, after)[1]


def test_a_hole_that_was_written_fails() -> None:
    from jitblas.cli.demonstrations import check

    problem, x, before, after = exact_result("fp32", 1, 2)
    after[1] += 1
    assert not check(problem, x, before, after)[1]


def test_nan_fails() -> None:
    from jitblas.cli.demonstrations import check

    problem, x, before, after = exact_result("fp32", 1, 1)
    after[3] = np.nan
    assert not check(problem, x, before, after)[1]


def test_bf16_bits_are_those_of_ml_dtypes() -> None:
    from jitblas.cli.demonstrations import to_bf16, to_float64

    ml_dtypes = pytest.importorskip("ml_dtypes")
    values = np.random.default_rng(1).standard_normal(10_000).astype(np.float32)
    values[:3] = (1 + 2**-8, 1 + 3 * 2**-8, -0.0)  # ties go to even
    assert np.array_equal(to_bf16(values), values.astype(ml_dtypes.bfloat16).view(np.uint16))
    assert np.array_equal(to_float64(to_bf16(values)), values.astype(ml_dtypes.bfloat16).astype(np.float64))
