"""News for the index, one short write each: opening a database where kernels are built and used would take longer than
using them, and could wait for a lock.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterable, Iterator
from typing import Any

JOURNAL = "journal.jsonl"


def append(root: str, news: Iterable[tuple[str, dict[str, Any]]]) -> None:
    """Add lines of (key, facts); whatever goes wrong is lost without harm."""
    lines = "".join(json.dumps([key, facts]) + "\n" for key, facts in news)
    try:
        descriptor = os.open(os.path.join(root, JOURNAL), os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError:
        return
    try:
        os.write(descriptor, lines.encode())
    except OSError:
        pass
    finally:
        os.close(descriptor)


def is_number(value: Any) -> bool:
    """Whether it is a number that a time, a size or a count can be."""
    return type(value) in (int, float) and 0 <= value < 1e15


def take(root: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Remove the journal and give its lines; lines that are none of ours are dropped."""
    journal = os.path.join(root, JOURNAL)
    taken = f"{journal}.{os.getpid()}.{threading.get_ident()}"
    try:
        if not os.path.isfile(journal):
            return
        os.rename(journal, taken)
        with open(taken, encoding="utf-8", errors="replace") as file:
            text = file.read()
        os.unlink(taken)
    except OSError:
        return
    for line in text.splitlines():
        try:
            key, facts = json.loads(line)
        except (ValueError, TypeError, RecursionError):
            continue
        numbers = isinstance(facts, dict) and all(map(is_number, facts.values()))
        if isinstance(key, str) and numbers and ("built" in facts) == ("bytes" in facts):
            yield key, facts
