"""The doctor and `jitblas.show_config()`: what they find, what they advise, when they are content."""

from __future__ import annotations

import importlib.util
import json
import os
from pathlib import Path
from typing import Any

import pytest

import jitblas
from jitblas.units import size_text
from tests.cli.command_line import Runner

without_zig = pytest.mark.skipif(
    importlib.util.find_spec("ziglang") is not None, reason="the embedded compiler is here"
)


def test_here_it_finds_a_target_that_works(filled: Runner) -> None:
    finished = filled("doctor")
    assert finished.returncode == 0, finished.stdout
    assert finished.stderr == ""
    assert "works: host" in finished.stdout
    assert "19 entries" in finished.stdout


def test_json_is_all_there_is_on_stdout(filled: Runner, demo: tuple[Path, Any]) -> None:
    found = json.loads(filled("doctor", "--json", JITBLAS_THREADS="3").stdout)
    assert found["works"] and found["targets"]["host"]["works"]
    assert found["threads"] == 3
    assert found["settings"]["JITBLAS_THREADS"]["set"]
    assert not found["settings"]["JITBLAS_MODE"]["set"]
    assert found["store"]["entries"] == 19 and found["store"]["trusted"] and found["store"]["writable"]
    assert found["store"]["path"] == str(demo[0] / "v1")
    assert found["operators"]["axpy_ex"] == {"minimum_cann": "9.0.0-beta.2", "suffices": None}
    assert any(row["counts"] for row in found["compilers"] if row["target"] == "host")
    assert all(item["what"] and item["remedy"] for item in found["advice"])


@without_zig
def test_without_any_compiler_it_still_answers_and_is_not_content(command: Runner, no_programs: str) -> None:
    finished = command("doctor", PATH=no_programs)
    assert finished.returncode == 1
    assert "g++, clang++: not found" in finished.stdout and "zig: not found" in finished.stdout
    assert "apt install g++" in finished.stdout and "pip install 'jitblas[compiler]'" in finished.stdout
    assert "nothing works yet" in finished.stdout
    assert json.loads(command("doctor", "--json", PATH=no_programs).stdout)["works"] is False


@without_zig
def test_stored_kernels_work_without_a_compiler(filled: Runner, no_programs: str) -> None:
    finished = filled("doctor", PATH=no_programs)
    assert finished.returncode == 0
    assert "no compiler counts; runs what the store holds" in finished.stdout


def test_under_mode_load_only_what_is_stored_works(command: Runner, filled: Runner) -> None:
    assert filled("doctor", JITBLAS_MODE="load").returncode == 0
    empty = command("doctor", JITBLAS_MODE="load")
    assert empty.returncode == 1
    assert "JITBLAS_MODE=load: never compiles" in empty.stdout


def test_a_compiler_that_does_not_count_is_told_with_the_reason(command: Runner) -> None:
    finished = command("doctor", JITBLAS_CXX="false")
    assert finished.returncode == 1
    assert "/false: --version fails" in finished.stdout


def test_a_named_compiler_that_is_not_there_is_told(command: Runner) -> None:
    finished = command("doctor", JITBLAS_CXX="no-such-compiler")
    assert finished.returncode == 1
    assert "JITBLAS_CXX=no-such-compiler: not found" in finished.stdout


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("JITBLAS_MODE", "nonsense"),
        ("JITBLAS_THREADS", "many"),
        ("JITBLAS_TARGET", "abacus"),
        ("JITBLAS_TWIN", "trace-me"),
        ("JITBLAS_LOCK_TIMEOUT", "soon"),
        ("JITBLAS_EXTRA_FLAGS", "-ffast-math"),
        ("JITBLAS_EXTRA_FLAGS", '"'),
    ],
)
def test_a_wrong_setting_is_reported_not_raised(command: Runner, name: str, value: str) -> None:
    finished = command("doctor", **{name: value})
    assert finished.returncode == 1
    assert finished.stderr == ""
    assert "wrong setting: " in finished.stdout


def test_a_store_that_others_can_write_is_not_trusted(command: Runner, cache: Path) -> None:
    (cache / "v1").mkdir(parents=True)
    os.chmod(cache / "v1", 0o777)
    finished = command("doctor")
    assert finished.returncode == 0  # kernels are compiled all the same
    assert "can be written by group or others" in finished.stdout
    assert "export JITBLAS_CACHE_DIR=" in finished.stdout


def test_a_store_that_cannot_be_made_is_told(command: Runner, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    finished = command("doctor", JITBLAS_CACHE_DIR=str(tmp_path / "file" / "cache"))
    assert "cannot be written" in finished.stdout
    assert "Traceback" not in finished.stderr


def test_a_toolkit_that_is_too_old_is_told(command: Runner, tmp_path: Path) -> None:
    (tmp_path / "cann").mkdir()
    (tmp_path / "cann" / "ascend_toolkit_install.info").write_text("package_name=toolkit\nversion=8.3.RC1\n")
    finished = command("doctor", "--json", ASCEND_HOME_PATH=str(tmp_path / "cann"))
    found = json.loads(finished.stdout)
    assert found["cann"]["version"] == "8.3.RC1"
    assert found["operators"]["axpy_ex"]["suffices"] is False
    assert any("needs CANN 9.0.0-beta.2" in item["what"] for item in found["advice"])
    assert not found["cann"]["device"]["usable"]


def test_what_is_missing_is_advised_in_order_of_weight() -> None:
    from jitblas.cli.doctor import advise

    found = jitblas.show_config("dict")
    found["packages"] |= {"diskcache": None, "ml_dtypes": None, "ziglang": None}
    found["errors"] = ["JITBLAS_X=1: no"]
    what = [item["what"] for item in advise(found)]
    assert what[0] == "wrong setting: JITBLAS_X=1: no"
    assert what[1] == "the package diskcache is missing"
    assert what[2].startswith("optional: ml_dtypes")
    assert not any("ziglang" in line for line in what)


def test_show_config_prints_what_its_dict_says(capsys: pytest.CaptureFixture[str]) -> None:
    found = jitblas.show_config(mode="dict")
    assert capsys.readouterr().out == ""
    assert json.loads(json.dumps(found)) == found
    assert jitblas.show_config() is None
    printed = capsys.readouterr().out
    assert printed.startswith(f"jitblas {jitblas.__version__} ")
    for name in found["settings"]:
        assert name in printed


def test_show_config_takes_no_other_mode() -> None:
    with pytest.raises(ValueError, match="accepted are 'print' and 'dict'"):
        jitblas.show_config("xml")  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("nbytes", "text"), [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (5 << 20, "5.0 MiB"), (1 << 45, "32768 GiB")]
)
def test_sizes_are_for_people(nbytes: int, text: str) -> None:
    assert size_text(nbytes) == text


def test_a_remote_store_without_trusted_keys_is_advised_about(command: Runner, tmp_path: Path) -> None:
    settings = {"JITBLAS_REMOTE": "s3://kernels/prod", "JITBLAS_TRUSTED_KEYS": str(tmp_path / "trusted")}
    told = command("doctor", **settings).stdout
    assert "remote: s3://kernels/prod" in told
    assert "is not asked: nobody who signs kernels is trusted\n    jitblas cache trust KEY.pub\n" in told
    (tmp_path / "trusted").write_text(f"ed25519 {'A' * 43}= somebody\n")
    told = command("doctor", **settings).stdout
    assert f"trusted keys: 1 in {tmp_path / 'trusted'}" in told and "is not asked" not in told
    (tmp_path / "trusted").write_text("nonsense\n")
    assert "wrong setting: 'nonsense' is no public key" in command("doctor", **settings).stdout
