"""Rows as tables for people: plain text and Markdown."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from jitblas.bench.session import Row

Cells = list[list[str]]

HEADER = [
    "problem", "level", "kernel", "threads", "jitblas", "rate", "peer", "its time", "its rate", "ratio",
    "half within", "note",
]  # fmt: skip
_LEFT = {"problem", "level", "kernel", "peer", "note", "what"}


def row_cells(rows: Sequence[Row]) -> Cells:
    """A table's cells; the first line is the header."""
    return [HEADER, *(_cells(row) for row in rows)]


def _cells(row: Row) -> list[str]:
    name = [row.problem, row.level, row.kernel, str(row.threads)]
    if row.error is not None:
        return [*name, "", "", row.peer or "", "", "", "", "", f"ERROR: {row.error}"]
    ratios = [f"{row.ratio:.2f}" if row.ratio is not None else ""]
    ratios += [f"{row.quartiles[0]:.2f}-{row.quartiles[1]:.2f}" if row.quartiles is not None else ""]
    return [
        *name, time_text(row.ours_seconds), _rate(row.ours_rate, row.unit), row.peer or "", time_text(row.peer_seconds),
        _rate(row.peer_rate, row.unit), *ratios, row.note,
    ]  # fmt: skip


def limit_cells(limits: Sequence[dict[str, Any]]) -> Cells:
    lines = [[limit["what"], f"{limit['value']:.4g}", limit["unit"], limit["note"]] for limit in limits]
    return [["what", "value", "unit", "note"], *lines]


def time_text(seconds: float | None) -> str:
    """Three digits and a unit.

    >>> time_text(1.5e-6), time_text(0.0234), time_text(2)
    ('1.50 us', '23.4 ms', '2.00 s')
    """
    if seconds is None:
        return ""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= 0.9995 * size:
            return f"{_three_digits(seconds / size)} {unit}"
    return f"{_three_digits(seconds * 1e9)} ns"


def _rate(value: float | None, unit: str) -> str:
    return "" if value is None else f"{_three_digits(value)} {unit}"


def _three_digits(value: float) -> str:
    return f"{value:.{0 if value >= 99.95 else 1 if value >= 9.995 else 2}f}"


def text_table(cells: Cells) -> str:
    """Columns side by side; empty ones are left out, and a first cell that repeats the one above."""
    kept = _without_empty(cells)
    repeats = [False, *(below[0] == above[0] for above, below in itertools.pairwise(kept))]
    kept = [["" if again else line[0], *line[1:]] for again, line in zip(repeats, kept, strict=True)]
    widths = [max(len(line[column]) for line in kept) for column in range(len(kept[0]))]
    place = [str.ljust if name in _LEFT else str.rjust for name in kept[0]]
    return "\n".join(_line(line, widths, place).rstrip() for line in kept)


def _line(line: list[str], widths: list[int], place: Sequence[Callable[[str, int], str]]) -> str:
    return "  ".join(put(cell, width) for cell, width, put in zip(line, widths, place, strict=True))


def markdown_table(cells: Cells) -> str:
    """A table as Markdown has them; empty columns are left out."""
    kept = _without_empty(cells)
    rule = [":--" if name in _LEFT else "--:" for name in kept[0]]
    return "\n".join(f"| {' | '.join(line)} |" for line in [kept[0], rule, *kept[1:]])


def _without_empty(cells: Cells) -> Cells:
    used = [column for column in range(len(cells[0])) if any(line[column] for line in cells[1:]) or len(cells) == 1]
    return [[line[column] for column in used] for line in cells]


def head_text(report: dict[str, Any]) -> str:
    """Whom and what the figures are about, in a few lines."""
    machine, protocol = report["machine"], report["protocol"]
    how = "the same arrays again" if protocol["state"] == "hot" else protocol["eviction"]
    lines = [
        f"{machine['cpu']}, {machine['processors_allowed']} processors, load {machine['load']:.1f}; "
        f"kernels by {report['compiler']['version']}",
        f"{protocol['state']} data ({how}); medians of {protocol['repeats']} turns each, taken alternately; "
        f"ratio: peer's time over ours, above 1 ours is faster",
        *(f"{name}: {peer['version']}; {peer['kernels']}" for name, peer in report["peers"].items()),
        *(f"{name}: {why}" for name, why in report["missing"].items()),
    ]
    return "\n".join(lines)
