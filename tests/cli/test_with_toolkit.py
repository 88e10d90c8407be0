"""The command line where a CANN toolkit and a device answer (stand-ins of both)."""

from __future__ import annotations

import json
import shlex

import pytest

from tests.cli.command_line import Runner
from tests.standins.build import Cann


@pytest.fixture
def settings(cann: Cann) -> dict[str, str]:
    return {"ASCEND_HOME_PATH": str(cann.root)}


def test_the_doctor_finds_toolkit_and_device(command: Runner, cann: Cann, settings: dict[str, str]) -> None:
    finished = command("doctor", "--json", **settings)
    found = json.loads(finished.stdout)
    assert finished.returncode == 0
    assert found["default_target"] == "ascend950pr"
    assert found["targets"]["ascend950pr"]["works"]
    assert found["cann"]["library"] == str(cann.library)
    assert found["operators"]["axpy_ex"]["suffices"] is True
    assert not any("ascend950pr" in item["what"] for item in found["advice"])


def test_the_demo_runs_on_the_device(command: Runner, settings: dict[str, str]) -> None:
    finished = command("demo", "-n", "1000", **settings)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert finished.stdout.startswith("target ascend950pr · ")
    assert finished.stdout.count("yes\n") == 15
    assert finished.stderr.count(" for ascend950pr with bisheng in ") == 15


def test_the_command_is_bishengs_own(command: Runner, cann: Cann, settings: dict[str, str]) -> None:
    finished = command("show", "axpy_ex:n=1", "--command", "--target", "ascend950pr", **settings)
    assert (finished.returncode, finished.stderr) == (0, "")
    argv = shlex.split(finished.stdout)
    assert argv[0] == str(cann.bisheng)
    assert "/?" not in finished.stdout
