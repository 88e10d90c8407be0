"""`jitblas bench`: problems measured next to other libraries."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from jitblas.errors import Error


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "problems", nargs="*", metavar="PROBLEM", help="such as 'axpy_ex:n={1e3..1e7:*10},dtype={fp32,bf16}'"
    )
    parser.add_argument("--exact", action="store_true", help="also kernels with every size baked in")
    parser.add_argument(
        "--against", metavar="NAMES", help="numpy, scipy, torch, mkl, libxsmm; default: all that are installed"
    )
    parser.add_argument("--threads", default="1,all", help="numbers of threads, or all (default: 1,all)")
    parser.add_argument("--repeats", type=int, default=20, metavar="N", help="turns of each (default: 20)")
    parser.add_argument("--cold", action="store_true", help="empty the caches before every call")
    parser.add_argument("--limits", action="store_true", help="what the machine can do at most")
    parser.add_argument("--json", metavar="FILE", help="everything, for machines; -: on stdout, and nothing else there")


def run(arguments: argparse.Namespace) -> int:
    from jitblas.bench.machine import facts, restart_without_overrides

    restart_without_overrides()
    from jitblas.bench import tables
    from jitblas.bench.limits import measure_limits
    from jitblas.bench.problems import parse_lines
    from jitblas.bench.session import Session, choose_peers, protocol_for, report

    problems = parse_lines(arguments.problems)
    threads = thread_counts(arguments.threads)
    names = _names(arguments.against)
    if arguments.repeats < 1 or threads is None or not (problems or arguments.limits):
        print(
            "jitblas: bench needs a PROBLEM or --limits; --repeats and --threads take numbers from 1, --threads also "
            "'all'",
            file=sys.stderr,
        )
        return 2
    if isinstance(names, str):
        print(f"jitblas: {names}", file=sys.stderr)
        return 2
    peers, missing = choose_peers(names)
    known = facts()
    with protocol_for(arguments.repeats, arguments.cold) as protocol:
        session = Session(arguments.exact, peers, threads, protocol)
        rows = list(session.rows(problems, _progress))
    _progress("")
    result = report(session, known, missing, rows)
    limits = measure_limits() if arguments.limits else []
    result["limits"] = limits
    if arguments.json != "-":
        shown = [tables.head_text(result)] if rows else []
        shown += [tables.text_table(tables.row_cells(rows))] if rows else []
        shown += [tables.text_table(tables.limit_cells(limits))] if limits else []
        print("\n\n".join(shown))
    if arguments.json is not None:
        _write(arguments.json, json.dumps(result, indent=1))
    asked_in_vain = names is not None and bool(missing)
    return 1 if asked_in_vain or any(row.error is not None for row in rows) else 0


def _write(path: str, text: str) -> None:
    if path == "-":
        print(text)
        return
    try:
        Path(path).write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise Error(f"--json {path}: {error.strerror}") from None


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


def thread_counts(text: str) -> tuple[int, ...] | None:
    """Numbers of threads, each once; None if the text is not understood."""
    from jitblas import config

    words = [word.strip() for word in text.split(",")]
    if not all(word == "all" or (word.isdecimal() and 1 <= int(word) <= 4096) for word in words):
        return None
    return tuple(dict.fromkeys(config.threads() if word == "all" else int(word) for word in words))


def _names(text: str | None) -> list[str] | str | None:
    """Names of peers; a sentence if one of them is unknown."""
    from jitblas.bench.peers import PEERS

    if text is None:
        return None
    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in PEERS]
    if unknown or not names:
        return f"--against {text}: accepted are {', '.join(PEERS)}"
    return names
