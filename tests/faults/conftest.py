"""Folders that must be empty in the end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def temporary(tmp_path: Path) -> Iterator[Path]:
    """A TMPDIR in which nothing may be left."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    yield folder
    assert list(folder.iterdir()) == []
