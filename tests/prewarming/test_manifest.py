"""What is to be prewarmed: manifests that people write, records that runs leave, and how both become work."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

import jitblas
from jitblas.hardware import HOST, PROFILES
from jitblas.jit import libraries
from jitblas.jit.specialization import specialize
from jitblas.prewarming.manifest import read_manifest, read_record
from jitblas.prewarming.work import Request, lay_out, work_for

MANIFEST = """
# kernels of a pipeline
targets = ["host"]
problems = [
    "axpy_ex:n=1e6,dtype=bf16",  # one per line
    "fft:n={16,4096},dtype=c64",
]

[[kernels]]
exact = true
problems = ["csyrk:LN,n=512,k=64"]

[[kernels]]
exact = false
targets = ["host", "ascend950pr"]
problems = ["cdotc:n=1000"]
"""


def manifest(folder: Path, text: str) -> Path:
    path = folder / "kernels.toml"
    path.write_text(text)
    return path


def test_a_manifest_says_problems_targets_and_exactness_for_all_or_for_a_group(tmp_path: Path) -> None:
    assert read_manifest(manifest(tmp_path, MANIFEST)) == [
        Request("axpy_ex:n=1e6,dtype=bf16", "host", None),
        Request("fft:n={16,4096},dtype=c64", "host", None),
        Request("csyrk:LN,n=512,k=64", "host", True),
        Request("cdotc:n=1000", "host", False),
        Request("cdotc:n=1000", "ascend950pr", False),
    ]


def test_a_manifest_without_targets_leaves_them_to_the_command_line(tmp_path: Path) -> None:
    path = manifest(tmp_path, 'problems = ["cdotc:n=10"]')
    assert read_manifest(path) == [Request("cdotc:n=10", None, None)]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("problems = [", "is no TOML"),
        ('problems = ["axpy_ex:n=1"', "is no TOML"),
        ("", "holds no problems"),
        ('problems = "axpy_ex:n=1"', "'problems' is a list of problem lines"),
        ("problems = [1]", "'problems' is a list of problem lines"),
        ('problem = ["axpy_ex:n=1"]', "'problem' is unknown; accepted are targets, exact, problems"),
        ('problems = ["axpy_ex:n=1"]\ntargets = ["tpu"]', "accepted is a list of ascend950pr, host"),
        ('problems = ["axpy_ex:n=1"]\ntargets = "host"', "accepted is a list of ascend950pr, host"),
        ('problems = ["axpy_ex:n=1"]\nexact = 1', "accepted are true and false"),
        ('kernels = ["axpy_ex:n=1"]', "each begun by [[kernels]]"),
        ('[[kernels]]\nproblems = ["axpy_ex:n=1"]\nspeed = 1', "'speed' is unknown"),
        ('problems = ["axpy_ex:n=1e6,dtype=fp64"]', "dtype=fp64: accepted are"),
        ('problems = ["nonsense"]', "nonsense"),
    ],
)
def test_a_wrong_manifest_is_refused_with_its_name_and_what_is_accepted(tmp_path: Path, text: str, told: str) -> None:
    path = manifest(tmp_path, text)
    with pytest.raises(jitblas.Error) as caught:
        read_manifest(path)
    assert str(path) in str(caught.value) and told in str(caught.value)


@pytest.mark.parametrize("path", ["/nowhere/kernels.toml", "/", "/bin/sh"])
def test_a_manifest_that_cannot_be_read_is_an_error(path: str) -> None:
    for read in (read_manifest, read_record):
        with pytest.raises(jitblas.Error, match=f"{path} cannot be read"):
            read(path)


# ---- Records --------------------------------------------------------------------------------------------------------

RUN = """
import numpy, jitblas
for n in (10, 1000):
    jitblas.axpy_ex(2.0, numpy.ones(n, "f4"), numpy.ones(n, "f4"))
jitblas.plan("cdotc:n=64")
jitblas.csyrk(numpy.ones((4, 4), "c8"))
"""


def test_a_recorded_run_prewarmed_elsewhere_misses_nothing(python: Any, tmp_path: Path) -> None:
    record = tmp_path / "record"
    python(RUN, JITBLAS_RECORD=record)
    python(RUN, JITBLAS_RECORD=record)
    requests = read_record(record)
    assert len(record.read_text().split()) == 6 * 2 * len(requests)  # six words to a line
    assert [(request.problem.partition(":")[0], request.exact) for request in requests] == [
        ("axpy_ex", False),
        ("cdotc", True),
        ("csyrk", False),
    ]
    store = tmp_path / "store"
    python(
        "import sys, jitblas\nfrom jitblas.prewarming.manifest import read_record\n"
        "assert jitblas.prewarm(read_record(sys.argv[1])).ok",
        str(record),
        JITBLAS_CACHE_DIR=store,
    )
    answer = python(RUN, JITBLAS_CACHE_DIR=store, JITBLAS_MODE="load", PATH="/nowhere")
    assert answer.stderr == ""


def test_torn_lines_of_a_record_are_left_out(tmp_path: Path) -> None:
    line = json.dumps({"problem": "cdotc:n=10", "target": "host", "exact": False})
    path = tmp_path / "record"
    path.write_text(f'{line[:20]}\n[1]\n"x"\n{"[" * 100_000}\n{line}\n{line}\n{line[:-3]}')
    assert read_record(path) == [Request("cdotc:n=10", "host", False)]
    for wrong, told in (("tpu", "target 'tpu'; accepted are"), ("host", "nonsense")):
        problem = "cdotc:n=10" if wrong == "tpu" else "nonsense:n=1"
        path.write_text(json.dumps({"problem": problem, "target": wrong, "exact": False}) + "\n")
        with pytest.raises(jitblas.Error) as caught:
            read_record(path)
        assert str(path) in str(caught.value) and told in str(caught.value)
    path.write_text(line[:20])
    with pytest.raises(jitblas.Error, match="has no problems; run a program with JITBLAS_RECORD"):
        read_record(path)


def test_a_torn_line_costs_that_line_only(python: Any, compute: str, tmp_path: Path) -> None:
    path = tmp_path / "record"
    path.write_text('{"problem": "ax')
    python(compute, JITBLAS_RECORD=path)
    assert read_record(path) == [Request("axpy_ex:n=1000", "host", False)]


@pytest.mark.parametrize("kind", ["a pipe", "a folder"])
def test_a_record_that_is_no_file_does_not_hold_a_program_up(
    python: Any, compute: str, tmp_path: Path, kind: str
) -> None:
    path = tmp_path / "record"
    os.mkfifo(path) if kind == "a pipe" else path.mkdir()
    answer = python(compute, JITBLAS_RECORD=path, timeout=20)
    assert answer.stdout == "right\n" and len(answer.stderr.splitlines()) == 1


def test_a_record_that_cannot_be_written_is_told_once_and_changes_nothing(python: Any, compute: str) -> None:
    answer = python(compute + compute, JITBLAS_RECORD="/nowhere/record")
    assert answer.stdout == "right\nright\n"
    assert answer.stderr.splitlines() == [
        "jitblas: JITBLAS_RECORD=/nowhere/record cannot be written: No such file or directory"
    ]


# ---- Work -----------------------------------------------------------------------------------------------------------


def test_problems_of_one_class_are_one_piece_of_work_and_libraries_come_first() -> None:
    work = work_for(["axpy_ex:n=1000", "axpy_ex:n=2000", Request("axpy_ex:n=5", HOST, False)], [HOST], False)
    assert [one.recipe.title for one in work[:-1]] == list(libraries.NAMES)
    assert len(work) == 4 and work[-1].request.problem == "axpy_ex:n=1000"
    assert len(work_for(["axpy_ex:n=1000", "axpy_ex:n=2000"], [HOST], True)) == 5


def test_every_library_can_be_laid_out_by_its_name() -> None:
    for name in libraries.NAMES:
        one = lay_out(Request(name, HOST))
        assert one.recipe.title == name and lay_out(one.request).recipe.what == one.recipe.what


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize(
    "problem",
    [
        "axpy_ex:n=1e6",
        "cdotc:n=1e6",
        "csyrk:LN,n=500,k=3000",
        "csyrk:LN,n=20,k=20",
        "sgemm_strided_batched:NN,m=300,n=300,k=300",
        "sgemm_strided_batched:NN,m=4,n=4,k=4,batch=1000",
        "fft:n=1024,batch=64,dtype=c64",
        "fft:n=2097152,dtype=c64",
    ],
)
def test_a_kernel_does_not_depend_on_how_many_cores_the_machine_has_that_prewarms(problem: str, exact: bool) -> None:
    for target in (HOST, "ascend950pr"):
        keys = {
            specialize(problem, target, exact, profile=PROFILES[target]._replace(cores_at_once=cores)).what
            for cores in (1, 2, 64)
        }
        assert len(keys) == 1
