"""The command line with an empty store, or with one that a demo has filled."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command_line import Finished, Runner, run


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A cache folder that is not there yet."""
    return tmp_path / "cache"


@pytest.fixture
def command(cache: Path) -> Runner:
    """command("show", "axpy_ex:n=1", JITBLAS_MODE="load"): run it with an empty store."""
    return lambda *arguments, **settings: run(arguments, cache, **settings)


@pytest.fixture
def no_programs(tmp_path: Path) -> str:
    """A PATH on which nothing is found."""
    folder = tmp_path / "no-programs"
    folder.mkdir()
    return str(folder)


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Finished]:
    """A cache folder that a first demo has filled, and that demo; tests must not change the folder."""
    folder = tmp_path_factory.mktemp("demo") / "cache"
    return folder, run(("demo", "-n", "4099"), folder)


@pytest.fixture
def filled(demo: tuple[Path, Finished]) -> Runner:
    """Like `command`, with the store that the demo filled."""
    return lambda *arguments, **settings: run(arguments, demo[0], **settings)
