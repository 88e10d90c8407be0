"""What became of every kernel that was to be prewarmed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

STARTED = "started"
DONE = ("compiled", "stored", "downloaded")
FAILED, MISSING, NOT_DONE = "failed", "missing", "not done"


class Outcome(NamedTuple):
    """One kernel, or one library that kernels need.

    Attributes
    ----------
    status : "started" while it is worked on; "compiled", "downloaded", or "stored" (it was there); "failed";
        "missing" when only looking; "not done" after an interrupt
    problem : a problem it serves; "" for libraries
    key : of the entry, or the first half of it while the second is not known
    seconds : of the compile, for "compiled"
    message : why it failed, with the compiler's own words; of a "compiled" one, that it is for other machines
    folder : where the entry is
    """

    status: str
    title: str
    problem: str
    target: str
    exact: bool
    key: str
    seconds: float = 0.0
    nbytes: int = 0
    message: str = ""
    uploaded: bool = False
    folder: str = ""


Progress = Callable[[Outcome, int, int], Any]
"""Called as work starts and ends, with the number done and the number of all."""


class Report(NamedTuple):
    """Outcomes in the order of the work, and how long all of it took."""

    outcomes: tuple[Outcome, ...]
    seconds: float
    interrupted: bool = False

    def of(self, *status: str) -> list[Outcome]:
        """The outcomes with one of these statuses."""
        return [outcome for outcome in self.outcomes if outcome.status in status]

    @property
    def failed(self) -> list[Outcome]:
        return self.of(FAILED)

    @property
    def missing(self) -> list[Outcome]:
        return self.of(MISSING)

    @property
    def ok(self) -> bool:
        """Whether every kernel is in the store now."""
        return len(self.of(*DONE)) == len(self.outcomes)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "ok": self.ok,
            "seconds": round(self.seconds, 3),
            "interrupted": self.interrupted,
            "kernels": [outcome._asdict() for outcome in self.outcomes],
        }
