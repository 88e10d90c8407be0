"""What the documents print as Python runs as it is printed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def code_blocks(document: str) -> str:
    return "\n".join(re.findall(r"^```python\n(.*?)^```", (ROOT / document).read_text(), re.MULTILINE | re.DOTALL))


@pytest.mark.parametrize("document", ["README.md", "docs/tutorial.md"])
def test_the_documents_python_runs_as_printed(document: str, tmp_path: Path) -> None:
    script = tmp_path / "tour.py"
    script.write_text(code_blocks(document))
    finished = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, cwd=tmp_path)
    assert finished.returncode == 0, finished.stderr


def test_the_tour_is_about_twenty_lines_and_prints_what_its_comment_says(tmp_path: Path) -> None:
    tour = code_blocks("README.md")
    assert len(tour.splitlines()) <= 22
    finished = subprocess.run([sys.executable, "-c", tour], capture_output=True, text=True, cwd=tmp_path)
    assert finished.stdout.splitlines()[0] in ("1.0", "1.0000001", "0.99999994", "1.0000002")


def test_links_between_the_documents_lead_somewhere() -> None:
    for document in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for link in re.findall(r"\]\(([^)#:]+)\)", document.read_text()):
            assert (document.parent / link).exists(), f"{document.name} links to {link}"
