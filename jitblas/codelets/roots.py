"""Roots of unity: the constants of codelets and the tables of twiddles."""

from __future__ import annotations

from typing import Any

import numpy as np

Reals = np.ndarray[Any, np.dtype[Any]]


def unit_roots(numerators: Reals, denominator: int) -> tuple[Reals, Reals]:
    """(cosines, sines) of 2 pi numerators / denominator, each correctly rounded or next to it."""
    eighth, rest = np.divmod(8 * (numerators.astype(np.int64) % denominator), denominator)
    odd = eighth % 2 == 1
    # The angle is eighth / 8 of a turn and `rest`; odd octants are measured back from their end.
    angle = np.where(odd, denominator - rest, rest) * (np.pi / 4 / denominator)
    cosine, sine = np.cos(angle), np.sin(angle)
    halfway = odd & (rest == 0)
    cosine[halfway] = sine[halfway] = np.sqrt(0.5)
    cosines = np.choose(eighth, (cosine, sine, -sine, -cosine, -cosine, -sine, sine, cosine))
    sines = np.choose(eighth, (sine, cosine, cosine, sine, -sine, -cosine, -cosine, -sine))
    return cosines, sines
