"""Scenarios: code that runs in a process of its own, on the stand-in chip, and leaves nothing behind on it."""

from __future__ import annotations

import subprocess
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.standins.build import Cann

PRELUDE = """\
import ctypes, gc, os, sys, threading, time
import ml_dtypes
import numpy as np
import jitblas
from jitblas import Status, StatusError, aclblas
from tests.reference import DTYPES, assert_same_bits, assert_within_gate, axpy, numbers

def refused(status, call, *arguments, **named):
    try:
        call(*arguments, **named)
    except StatusError as error:
        assert error.status is status, error
        return str(error)
    raise AssertionError("no error")

def raw():
    '''The runtime as other users in the process call it.'''
    return ctypes.CDLL(os.environ["ASCEND_HOME_PATH"] + "/lib64/libascendcl.so")

def raw_stream():
    stream = ctypes.c_void_p()
    acl = raw()
    assert acl.aclInit(None) in (0, 100002)  # done before is fine
    assert acl.aclrtSetDevice(0) == 0 and acl.aclrtCreateStream(ctypes.byref(stream)) == 0
    return stream.value

def destroy_raw_stream(address):
    acl = raw()
    assert acl.aclrtSynchronizeStream(ctypes.c_void_p(address)) == 0
    assert acl.aclrtDestroyStream(ctypes.c_void_p(address)) == 0

def mapped(text):
    with open("/proc/self/maps") as file:
        return text in file.read()
"""
CLEAN = "streams: 0\nevents: 0\nallocations: 0\n"

Finished = subprocess.CompletedProcess[str]
Scenario = Callable[..., Finished]


@pytest.fixture(scope="session")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store that scenarios share, so that each kernel is compiled once."""
    return tmp_path_factory.mktemp("kernels")


@pytest.fixture
def scenario(cann: Cann, kernels: Path, tmp_path: Path) -> Scenario:
    """Run code on the stand-in chip; it must succeed.

    `report`: what the stand-in must have seen by the end of the process, None if it was not loaded.
    """

    def run(code: str, *arguments: str, report: str | None = CLEAN, check: bool = True, **settings: str) -> Finished:
        seen = tmp_path / "report"
        seen.unlink(missing_ok=True)
        settings = {"JITBLAS_CACHE_DIR": str(kernels), "STANDIN_REPORT": str(seen), **settings}
        finished = cann.python(PRELUDE + textwrap.dedent(code), *arguments, **settings)
        if check:
            assert finished.returncode == 0, finished.stderr
            assert (seen.read_text() if seen.exists() else None) == report, finished.stderr
        return finished

    return run


@pytest.fixture
def empty_store(tmp_path: Path) -> str:
    """A cache folder that is not there yet."""
    return str(tmp_path / "store")


@pytest.fixture
def compiler_log(tmp_path: Path) -> Path:
    """For STANDIN_BISHENG_LOG: a line for every run of the compiler."""
    path = tmp_path / "bisheng.log"
    path.touch()
    return path


@pytest.fixture
def no_programs(tmp_path: Path) -> str:
    """A PATH on which nothing is found."""
    folder = tmp_path / "no-programs"
    folder.mkdir()
    return str(folder)
