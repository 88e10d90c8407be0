"""Regenerates every figure: problem files, costs and limits, as JSON in a folder and as Markdown on stdout.

python bench/run.py [FILE ...] [--out FOLDER] [--repeats N] [--only PARTS] [--cold] [--threads 1,all]
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from jitblas.bench.machine import facts, restart_without_overrides

HERE = Path(__file__).resolve().parent
PARTS = ("limits", "costs", "service", "problems")


def main() -> int:
    restart_without_overrides()
    arguments = _arguments()
    parts = arguments.only.split(",")
    known = facts()
    result: dict[str, Any] = {}
    failed = False
    from jitblas.bench import tables

    if "problems" in parts:
        result, rows = _problems(arguments, known)
        failed = any(row.error is not None for row in rows)
        _section("Problems", tables.head_text(result), tables.row_cells(rows))
    else:
        result = dict(known)
    if "costs" in parts:
        import costs

        found = costs.process_costs()
        calls = costs.tiny_calls(arguments.repeats)
        failed = failed or any(row.error is not None for row in calls)
        result |= {"costs": found, "tiny_calls": [vars(row) for row in calls]}
        _section("What a process pays", "", costs.cost_cells(found))
        _section("A call at n = 8", "", tables.row_cells(calls))
    if "service" in parts:
        import service

        result["service"] = service.service_costs()
        _section("What a service pays", "", service.service_cells(result["service"]))
    if "limits" in parts:
        from jitblas.bench.limits import measure_limits

        result["limits"] = measure_limits()
        _section("What the machine can do", "", tables.limit_cells(result["limits"]))
    arguments.out.mkdir(parents=True, exist_ok=True)
    path = arguments.out / f"{known['date'].replace(':', '')[:17]}.json"
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(f"written: {path}", file=sys.stderr)
    return 1 if failed else 0


def _problems(arguments: argparse.Namespace, known: dict[str, Any]) -> tuple[dict[str, Any], list[Any]]:
    from jitblas.bench.problems import parse_lines, read_file
    from jitblas.bench.session import Session, choose_peers, protocol_for, report
    from jitblas.cli.bench import thread_counts

    threads = thread_counts(arguments.threads)
    if threads is None:
        sys.exit("run.py: --threads takes numbers from 1 and 'all', separated by commas")
    problems = [problem for path in arguments.files for problem in parse_lines(read_file(path))]
    peers, missing = choose_peers(None)
    with protocol_for(arguments.repeats, arguments.cold) as protocol:
        session = Session(exact=True, peers=peers, threads=threads, protocol=protocol)
        rows = list(session.rows(problems, lambda text: print(text, file=sys.stderr)))
    return report(session, known, missing, rows), rows


def _section(title: str, text: str, cells: list[list[str]]) -> None:
    from jitblas.bench import tables

    print(f"### {title}\n")
    if text:
        print("\n".join(f"- {line}" for line in text.splitlines()) + "\n")
    print(tables.markdown_table(cells) + "\n", flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Regenerates every figure in the docs.")
    parser.add_argument("files", nargs="*", type=Path, help="files of problem lines (default: bench/problems/*.txt)")
    parser.add_argument(
        "--out", type=Path, default=HERE / "results", help="folder of the JSON (default: bench/results)"
    )
    parser.add_argument("--only", default=",".join(PARTS), help=f"parts, of {','.join(PARTS)} (default: all)")
    parser.add_argument("--threads", default="1,all", help="numbers of threads, or all (default: 1,all)")
    parser.add_argument("--repeats", type=int, default=20, help="turns of each contestant (default: 20)")
    parser.add_argument("--cold", action="store_true", help="empty the caches before every call")
    arguments = parser.parse_args()
    arguments.files = arguments.files or sorted((HERE / "problems").glob("*.txt"))
    unknown = set(arguments.only.split(",")) - set(PARTS)
    if unknown or arguments.repeats < 1:
        parser.error(f"--only takes {','.join(PARTS)}; --repeats a number from 1")
    return arguments


if __name__ == "__main__":
    sys.exit(main())
