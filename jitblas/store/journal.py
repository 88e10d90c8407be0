"""News for the index, one short write each: opening a database where kernels are built and used would take longer than
using them, and could wait for a lock.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

JOURNAL = "journal.jsonl"


def append(root: Path, news: Iterable[tuple[str, dict[str, Any]]]) -> None:
    """Add lines of (key, facts); whatever goes wrong is lost without harm."""
    lines = "".join(json.dumps([key, facts]) + "\n" for key, facts in news)
    try:
        descriptor = os.open(root / JOURNAL, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError:
        return
    try:
        os.write(descriptor, lines.encode())
    except OSError:
        pass
    finally:
        os.close(descriptor)


def take(root: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Remove the journal and give its lines; lines that are none of ours are dropped."""
    taken = root / f"{JOURNAL}.{os.getpid()}"
    try:
        os.rename(root / JOURNAL, taken)
        text = taken.read_text(encoding="utf-8", errors="replace")
        taken.unlink()
    except OSError:
        return
    for line in text.splitlines():
        try:
            key, facts = json.loads(line)
        except (ValueError, TypeError):
            continue
        numbers = isinstance(facts, dict) and all(
            type(value) in (int, float) and math.isfinite(value) for value in facts.values()
        )
        if isinstance(key, str) and numbers and ("built" in facts) == ("bytes" in facts):
            yield key, facts
