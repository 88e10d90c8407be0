"""`jitblas prewarm`: where problems come from, what is told on a terminal, in a log and as JSON, and exit codes."""

from __future__ import annotations

import json
import os
import pty
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command_line import Runner, environment

TWO = ("axpy_ex:n={9,99}", "fft:n=16,dtype=c64")


def test_prewarm_then_check(command: Runner, cache: Path) -> None:
    finished = command("prewarm", "--check", *TWO)
    assert finished.returncode == 1 and finished.stdout.count("\nmissing: ") == 5
    assert "(axpy_ex:n=9), key " in finished.stdout and "\n5 missing; " in finished.stdout
    assert not list(cache.rglob("kernel.so"))
    finished = command("prewarm", *TWO, "-j", "2")
    assert (finished.returncode, finished.stderr) == (0, "")
    lines = finished.stdout.splitlines()
    assert [line.split("]")[0] for line in lines[:5]] == [f"[{number}/5" for number in range(1, 6)]
    assert lines[5].startswith("5 compiled; ")
    finished = command("prewarm", "--check", *TWO)
    assert finished.returncode == 0 and "5 stored; " in finished.stdout
    finished = command("prewarm", "--check", "--exact", *TWO, JITBLAS_MODE="load", PATH="")
    assert finished.returncode == 1 and "(axpy_ex:n=9, exact), key " in finished.stdout


def test_json_is_all_there_is_on_stdout(command: Runner) -> None:
    finished = command("prewarm", "--json", TWO[1])
    report = json.loads(finished.stdout)
    assert finished.returncode == 0 and report["ok"] and not report["interrupted"]
    assert [kernel["status"] for kernel in report["kernels"]] == ["compiled"] * 4
    assert {"title", "problem", "target", "exact", "key", "seconds", "nbytes", "message"} <= set(report["kernels"][0])


def test_problems_come_from_the_command_line_manifests_and_records(command: Runner, tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text('problems = ["fft:n=16,dtype=c64"]  # a comment\n')
    (tmp_path / "b.toml").write_text('exact = true\nproblems = ["axpy_ex:n=9"]\n')
    (tmp_path / "record").write_text('{"problem": "cdotc:n=9", "target": "host", "exact": false}\n')
    manifests = ("--manifest", str(tmp_path / "a.toml"), "--manifest", str(tmp_path / "b.toml"))
    finished = command(
        "prewarm", "--check", "--json", "axpy_ex:n=9", *manifests, "--from-record", str(tmp_path / "record")
    )
    found = [(kernel["problem"], kernel["exact"]) for kernel in json.loads(finished.stdout)["kernels"]]
    assert found[3:] == [
        ("axpy_ex:n=9", False),
        ("fft:n=16,dtype=c64", False),
        ("axpy_ex:n=9", True),
        ("cdotc:n=9", False),
    ]


def test_a_failure_shows_the_compiler_s_words_at_the_end_and_the_rest_is_done(command: Runner, compiler: Any) -> None:
    compiler.fail_on("axpy")
    finished = command("prewarm", *TWO, **compiler.setting)
    assert finished.returncode == 1 and finished.stderr == ""
    end = finished.stdout[finished.stdout.index("\nfailed: ") :]
    assert (
        "axpy_ex:n=9\n" in end
        and "error: no axpy today" in end
        and end.endswith("4 compiled, 1 failed; " + end.rpartition("; ")[2])
    )


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        ((), 2, "nothing to prewarm: give problems, --manifest FILE or --from-record FILE"),
        (("nonsense:n=1",), 2, "nonsense"),
        (("axpy_ex:n={1..",), 2, "brace"),
        (("axpy_ex:n=9", "--manifest", "/nowhere.toml"), 1, "/nowhere.toml cannot be read"),
        (("axpy_ex:n=9", "-j", "9" * 5000), 2, "a number from 1 to 4096"),
        (("axpy_ex:n={1e16..1e16:+1}",), 2, "too small a step"),
        (("axpy_ex:n={1..1e300:*1.0000001}",), 2, "has more than"),
        (("axpy_ex:n={1..99999:+1},incx={1..99999:+1}",), 2, "make more than"),
        (("axpy_ex:n=9", "--key", "x"), 1, "give the remote store, too"),
        (("axpy_ex:n=9", "--check", "--scheduler", "x"), 1, "neither uploads nor compiles"),
        (("axpy_ex:n=9", "-j", "0"), 2, "a number from 1 to 4096"),
        (("axpy_ex:n=9", "--target", "tpu"), 2, "tpu"),
        (("axpy_ex:n=9", "--store", "file:///tmp/x"), 1, "nobody accepts what is not signed"),
        (("axpy_ex:n=9", "--store", "file:///tmp/x", "--key", "/nowhere"), 1, "/nowhere cannot be read"),
        (("axpy_ex:n=9,dtype=fp64",), 2, "fp64"),
        (("fft:n=12,dtype=c64",), 1, "powers of two"),
    ],
)  # fmt: skip
def test_wrong_usage_compiles_nothing(
    command: Runner, cache: Path, words: tuple[str, ...], code: int, told: str
) -> None:
    finished = command("prewarm", *words)
    assert finished.returncode == code and told in finished.stderr, finished
    assert not list(cache.rglob("kernel.so"))


def on_a_terminal(cache: Path, *words: str) -> str:
    """What a person would see."""
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "jitblas", *words],
        env=environment(cache, TERM="xterm", COLUMNS="120"),
        stdin=follower, stdout=follower, stderr=follower, close_fds=True,
    )  # fmt: skip
    os.close(follower)
    seen, end = b"", time.monotonic() + 60
    while time.monotonic() < end:
        if select.select([leader], [], [], 0.1)[0]:
            try:
                seen += os.read(leader, 65536)
            except OSError:
                break  # closed
    os.close(leader)
    assert process.wait(10) == 0
    return seen.decode()


def test_a_terminal_gets_a_bar_a_rate_and_an_estimate(cache: Path) -> None:
    seen = on_a_terminal(cache, "prewarm", *TWO)
    assert "all kernels" in seen and "5/5" in seen and "/s" in seen and " left" in seen and "\x1b[" in seen
    assert "axpy_ex contiguous" in seen and "5 compiled; " in seen


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"JITBLAS_CACHE_MAX_SIZE": "nonsense"}, "'nonsense' is no size"),
        ({"JITBLAS_JOBS": "many"}, "JITBLAS_JOBS=many: a number from 1 to 4096"),
        ({"JITBLAS_CACHE_DIR": "/etc/hostname"}, "nothing that is compiled now would last"),
    ],
)
def test_a_wrong_setting_is_told_once_before_anything_is_compiled(
    command: Runner, settings: dict[str, str], told: str
) -> None:
    finished = command("prewarm", "axpy_ex:n=9", "cdotc:n=9", **settings)
    assert finished.returncode == 1 and finished.stderr.count(told) == 1 and finished.stdout == ""


def test_what_the_store_did_not_keep_failed(command: Runner) -> None:
    finished = command("prewarm", "axpy_ex:n=9", "cdotc:n=9", JITBLAS_CACHE_MAX_SIZE="1k")
    assert finished.returncode == 1 and "it was not kept: the store has no room for it" in finished.stdout
    assert "4 failed" in finished.stdout


def test_a_store_deleted_or_cleared_meanwhile_is_made_again(cache: Path, slow_compiler: Any) -> None:
    folder = slow_compiler.path.parent
    (folder / "hold").touch()
    process = subprocess.Popen(
        [sys.executable, "-m", "jitblas", "prewarm", "-j", "2", *TWO],
        env=environment(cache, **slow_compiler.setting), stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    end = time.monotonic() + 30
    while not (folder / "waiting").exists() or not (folder / "waiting").read_text():
        assert time.monotonic() < end
        time.sleep(0.02)
    shutil.rmtree(cache)
    (folder / "hold").unlink()
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0, out


def test_the_chip_s_kernels_can_be_prewarmed_too(command: Runner, cann: Any) -> None:
    finished = command(
        "prewarm", "axpy_ex:n=9", "--target", "ascend950pr", "--target", "host", ASCEND_HOME_PATH=str(cann.root)
    )
    assert finished.returncode == 0 and "5 compiled" in finished.stdout
