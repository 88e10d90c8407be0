"""Draws Csyrk's growth with n and k, ours and the peers', from the JSON of `jitblas bench --json`.

jitblas bench $(grep -v '#' bench/more/csyrk_growth.txt) --threads 1 --json growth.json
python bench/plot.py growth.json docs/csyrk.svg
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot

from jitblas.problem import Problem

N_OF_SECOND = 1024


def main() -> int:
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    rows = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))["rows"]
    mpl.rcParams["svg.hashsalt"] = "jitblas"  # the same picture gives the same file
    figure, (square, deep) = pyplot.subplots(1, 2, figsize=(10, 4), sharey=True)
    for axes, label, place in (
        (square, "n = k", lambda n, k: n if n == k else None),
        (deep, f"k, n = {N_OF_SECOND}", lambda n, k: k if n == N_OF_SECOND else None),
    ):
        for name, points in sorted(_curves(rows, place).items()):
            axes.plot(*zip(*sorted(points.items()), strict=True), marker=".", label=name)
        axes.set_xscale("log", base=2)
        axes.set_xlabel(label)
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
    square.set_ylabel("Gflop/s, counted as 4 n (n + 1) k")
    square.legend()
    figure.tight_layout()
    figure.savefig(sys.argv[2], metadata={"Date": None})
    return 0


def _curves(rows: list[dict[str, Any]], place: Any) -> dict[str, dict[int, float]]:
    """Name -> {where on the axis: Gflop/s}; the peers' from rows with either algorithm."""
    curves: dict[str, dict[int, float]] = {}
    for row in rows:
        values = dict(Problem.parse(row["problem"]).values)
        at = place(values["n"], values["k"])
        if at is None or row["level"] != "plan" or row["kernel"] != "class" or row["error"] is not None:
            continue
        curves.setdefault(f"jitblas {values['algorithm']}", {})[at] = row["ours_rate"]
        curves.setdefault(row["peer"], {})[at] = row["peer_rate"]
    return curves


if __name__ == "__main__":
    sys.exit(main())
