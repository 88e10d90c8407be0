"""Wheels of kernels: a project that is written, built by pip, installed, and used without a compiler."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from jitblas import cli
from jitblas.store import prebuilt


@pytest.fixture
def project(full_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("JITBLAS_CACHE_DIR", str(full_store))
    folder = tmp_path / "project"
    assert cli.main(["cache", "package", str(folder), "--name", "my-kernels", "--version", "2.1"]) == 0
    return folder


@pytest.fixture
def site(project: Path, tmp_path: Path) -> Path:
    """A folder of packages with the wheel's contents and what an installer notes of its entry points."""
    folder = tmp_path / "site"
    (project / "my_kernels").rename(folder.mkdir() or folder / "my_kernels")
    noted = folder / "my_kernels-2.1.dist-info"
    noted.mkdir()
    (noted / "METADATA").write_text("Metadata-Version: 2.1\nName: my-kernels\nVersion: 2.1\n")
    (noted / "entry_points.txt").write_text(f"[{prebuilt.GROUP}]\nmy_kernels = my_kernels\n")
    return folder


def without_a_compiler(site: Path, tmp_path: Path, **settings: Any) -> dict[str, Any]:
    import jitblas

    path = f"{site}:{Path(jitblas.__file__).parent.parent}"
    return {"PYTHONPATH": path, "JITBLAS_CACHE_DIR": tmp_path / "new", "JITBLAS_CXX": "/nowhere/g++", **settings}


@pytest.mark.parametrize("mode", ["on", "load"])
def test_prebuilt_kernels_are_used_without_a_compiler(
    python: Any, compute: str, site: Path, tmp_path: Path, mode: str
) -> None:
    answer = python(compute, **without_a_compiler(site, tmp_path, JITBLAS_MODE=mode, PATH="/nowhere"))
    assert (answer.stdout, answer.stderr) == ("right\n", "")
    assert not list((tmp_path / "new").rglob("kernel.so"))


def test_they_are_never_imported(python: Any, compute: str, site: Path, tmp_path: Path) -> None:
    (site / "my_kernels" / "__init__.py").write_text("raise SystemExit('code of a package of kernels ran')")
    assert python(compute, **without_a_compiler(site, tmp_path)).stdout == "right\n"


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        ('{"jitblas": "0.0.9"}', "was built with jitblas 0.0.9, this is "),
        ("{}", "is broken (KeyError: 'jitblas')"),
        ("[", "is broken (JSONDecodeError"),
        (None, "is broken (FileNotFoundError"),
    ],
)
def test_those_of_another_version_and_broken_ones_are_told_once_and_not_used(
    python: Any, compute: str, site: Path, tmp_path: Path, facts: str | None, told: str
) -> None:
    path = site / "my_kernels" / prebuilt.FACTS
    path.unlink() if facts is None else path.write_text(facts)
    answer = python(compute, check=False, **without_a_compiler(site, tmp_path))
    assert answer.returncode == 1 and "CompilerNotFound" in answer.stderr
    lines = [line for line in answer.stderr.splitlines() if line.startswith("jitblas: ")]
    assert (
        len(lines) == 1 and f"prebuilt kernels 'my_kernels' in {site / 'my_kernels'}, not used: it {told}" in lines[0]
    )


def test_an_entry_point_whose_package_is_gone_is_told(python: Any, compute: str, site: Path, tmp_path: Path) -> None:
    (site / "my_kernels").rename(site / "elsewhere")
    answer = python(compute, check=False, **without_a_compiler(site, tmp_path))
    assert "prebuilt kernels 'my_kernels' in ?, not used: it is broken" in answer.stderr


@pytest.mark.parametrize("value", ["gone_package", "my_kernels.sub", "json"])
def test_an_entry_point_that_names_no_package_of_kernels_loads_nothing(
    python: Any, compute: str, site: Path, tmp_path: Path, value: str
) -> None:
    """Neither from the working directory nor by importing what is before a dot."""
    (site / "my_kernels" / "__init__.py").write_text("raise SystemExit('imported')")
    (site / "my_kernels-2.1.dist-info" / "entry_points.txt").write_text(f"[{prebuilt.GROUP}]\nx = {value}\n")
    settings = without_a_compiler(site, tmp_path)
    answer = python(compute, check=False, cwd=site / "my_kernels", **settings)
    assert answer.returncode == 1 and "CompilerNotFound" in answer.stderr and "is broken" in answer.stderr


def test_threads_all_see_what_is_installed(python: Any, site: Path, tmp_path: Path) -> None:
    code = """
import threading, numpy, jitblas
results = []
def work():
    y = numpy.ones(9, "f4")
    jitblas.axpy_ex(2.0, numpy.ones(9, "f4"), y)
    results.append(y[0])
threads = [threading.Thread(target=work) for _ in range(6)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(results == [3.0] * 6)
"""
    assert python(code, **without_a_compiler(site, tmp_path)).stdout == "True\n"


def test_a_damaged_one_is_a_miss(python: Any, compute: str, site: Path, tmp_path: Path) -> None:
    for path in site.rglob("kernel.so"):
        path.write_bytes(path.read_bytes()[:-1])
    answer = python(compute, check=False, **without_a_compiler(site, tmp_path))
    assert answer.returncode == 1 and "CompilerNotFound" in answer.stderr


def test_a_hit_in_the_store_never_asks_what_is_installed(python: Any, compute: str, full_store: Path) -> None:
    code = f"import sys; sys.modules['importlib.metadata'] = None\n{compute}"
    answer = python(code, JITBLAS_CACHE_DIR=full_store)
    assert (answer.stdout, answer.stderr) == ("right\n", "")


def test_the_command_line_tells_of_them(python: Any, site: Path, tmp_path: Path) -> None:
    code = "from jitblas import cli; cli.main(['cache', 'info', '--json'])"
    found = json.loads(python(code, **without_a_compiler(site, tmp_path)).stdout)
    (package,) = found["prebuilt"]
    assert (package["folder"], package["problem"]) == (str(site / "my_kernels"), None)


@pytest.mark.parametrize("name", ["", "-x", "../x", "a b", "x/y", "numpy", "class", "jitblas"])
def test_what_is_no_name_of_a_package_is_refused(
    full_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("JITBLAS_CACHE_DIR", str(full_store))
    assert cli.main(["cache", "package", str(tmp_path / "project"), f"--name={name}"]) == 1
    assert not (tmp_path / "project").exists()


def test_a_folder_that_is_there_is_left_alone(project: Path) -> None:
    before = sorted(path.name for path in project.rglob("*"))
    assert cli.main(["cache", "package", str(project), "--name", "my-kernels"]) == 1
    assert sorted(path.name for path in project.rglob("*")) == before


@pytest.mark.skipif(importlib.util.find_spec("hatchling") is None, reason="hatchling is missing")
def test_pip_makes_a_wheel_of_the_project(project: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-w", str(tmp_path)]
    subprocess.run([*command, str(project)], check=True, capture_output=True, timeout=100)
    (wheel,) = tmp_path.glob("my_kernels-2.1-*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert len([name for name in names if name.endswith("/kernel.so")]) == 2
    assert "my_kernels/prebuilt.json" in names and "my_kernels-2.1.dist-info/entry_points.txt" in names
