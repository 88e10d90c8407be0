"""Sizes and durations as people write and read them."""

from __future__ import annotations

import re

_SIZES = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}


def size_text(nbytes: float) -> str:
    """Bytes for people.

    >>> size_text(512), size_text(123456)
    ('512 B', '121 KiB')
    """
    for unit in ("B", "KiB", "MiB", "GiB"):
        if nbytes < 1024 or unit == "GiB":
            break
        nbytes /= 1024
    return f"{nbytes:.0f} {unit}" if nbytes >= 10 or unit == "B" else f"{nbytes:.1f} {unit}"


def parse_size(text: str) -> int:
    """Bytes that a text means; units are powers of 1024. ValueError says what is accepted.

    >>> parse_size("500M"), parse_size("1.5 GiB"), parse_size("4096")
    (524288000, 1610612736, 4096)
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?", text.strip().lower())
    if found is None:
        raise ValueError(f"{text!r} is no size; accepted are such as 4096, 500M and 1.5G")
    return int(min(float(found[1]) * 1024 ** _SIZES[found[2]], 2.0**62))


def parse_duration(text: str) -> float:
    """Seconds that a text means. ValueError says what is accepted.

    >>> parse_duration("90s"), parse_duration("30d")
    (90.0, 2592000.0)
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhdw])", text.strip().lower())
    if found is None:
        raise ValueError(f"{text!r} is no duration; accepted are such as 90s, 15m, 12h, 30d and 4w")
    return float(found[1]) * _SECONDS[found[2]]


def duration_text(seconds: float) -> str:
    """Seconds for people.

    >>> duration_text(0.25), duration_text(75), duration_text(7300)
    ('0.2 s', '1 min 15 s', '2 h 1 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
