"""`jitblas prewarm`: compile many kernels ahead of the calls that need them, or tell which are missing."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from jitblas import config, prewarming
from jitblas.cli import FAILED, INTERRUPTED, USAGE, argument
from jitblas.hardware import TARGETS
from jitblas.prewarming.report import NOT_DONE, STARTED, Outcome, Progress, Report
from jitblas.prewarming.work import Request, work_for
from jitblas.units import duration_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("problems", nargs="*", metavar="PROBLEM", help="such as 'axpy_ex:n=1e6,dtype={fp32,bf16}'")
    parser.add_argument("--manifest", action="append", default=[], metavar="FILE", help="TOML file with problems")
    parser.add_argument(
        "--from-record", action="append", default=[], metavar="FILE", help="problems that a run left (JITBLAS_RECORD)"
    )
    parser.add_argument(
        "--target", action="append", choices=TARGETS, help="of problems that name none; default: the default target"
    )
    parser.add_argument("--exact", action="store_true", help="bake the sizes into the kernels")
    parser.add_argument("-j", "--jobs", type=argument(config.parse_count), metavar="N", help="compiles at a time")
    parser.add_argument("--check", action="store_true", help="compile nothing; exit 1 and list what is missing")
    parser.add_argument("--store", metavar="URL", help="remote store (fsspec) that every kernel is uploaded to")
    parser.add_argument("--key", metavar="FILE", help="secret key that signs what is uploaded")
    parser.add_argument("--scheduler", metavar="ADDRESS", help="Dask scheduler whose workers compile, tcp://...")
    parser.add_argument("--json", action="store_true", help="the report as JSON on stdout, nothing else")


def run(arguments: argparse.Namespace) -> int:
    requests = list(_requests(arguments))
    if not requests:
        print("jitblas: nothing to prewarm: give problems, --manifest FILE or --from-record FILE", file=sys.stderr)
        return USAGE
    work = work_for(requests, arguments.target, arguments.exact)
    with _terminated_is_interrupted(), _shown(arguments, len(work)) as progress:
        report = prewarming.run(
            work,
            jobs=arguments.jobs,
            store=arguments.store,
            key=arguments.key,
            scheduler=arguments.scheduler,
            check=arguments.check,
            progress=progress,
        )
    if arguments.json:
        print(json.dumps(report.as_dict(), indent=1))
    else:
        _conclude(report)
    if report.interrupted:
        return INTERRUPTED
    return 0 if report.ok else FAILED


def _requests(arguments: argparse.Namespace) -> Iterator[Request]:
    yield from map(Request, arguments.problems)
    from jitblas.prewarming.manifest import read_manifest, read_record

    for path in arguments.manifest:
        yield from read_manifest(path)
    for path in arguments.from_record:
        yield from read_record(path)


@contextmanager
def _terminated_is_interrupted() -> Iterator[None]:
    """What ends containers politely ends this as Ctrl-C does: compilers are stopped, what is done is told."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _shown(arguments: argparse.Namespace, count: int) -> Iterator[Progress | None]:
    """What tells of the work as it goes: bars on a terminal, lines elsewhere, nothing beside JSON."""
    if arguments.json:
        yield None
    elif sys.stdout is None or not sys.stdout.isatty():
        yield _print_line
    else:
        with _bars(count) as progress:
            yield progress


def _print_line(outcome: Outcome, done: int, count: int) -> None:
    if outcome.status != STARTED:
        print(f"[{done}/{count}] {_line(outcome)}", flush=True)


def _line(outcome: Outcome) -> str:
    took = f" in {outcome.seconds:.2f} s" if outcome.status == "compiled" else ""
    return f"{outcome.status}{took}: {outcome.title} for {outcome.target}"


@contextmanager
def _bars(count: int) -> Iterator[Progress]:
    """A line for each kernel under way, and one for all: how many, how many a second, how long still."""
    from rich import progress as rich
    from rich.text import Text

    columns = (
        rich.SpinnerColumn(),
        rich.TextColumn("{task.description}", markup=False),
        rich.BarColumn(),
        rich.MofNCompleteColumn(),
        rich.TextColumn("{task.fields[rate]}"),
        rich.TimeElapsedColumn(),
        rich.TextColumn("{task.fields[left]}"),
    )
    with rich.Progress(*columns, transient=True) as bars:
        total = bars.add_task("all kernels", total=count, rate="", left="")
        begun: dict[str, Any] = {}

        def show(outcome: Outcome, done: int, _: int) -> None:
            what = outcome.key.partition("/")[0]
            if outcome.status == STARTED:
                begun[what] = bars.add_task(f"  {outcome.title} for {outcome.target}", total=1, rate="", left="")
                return
            if what in begun:
                bars.remove_task(begun.pop(what))
            bars.console.print(Text(_line(outcome)))
            seconds = bars.tasks[bars.task_ids.index(total)].elapsed or 0.0
            rate = done / seconds if seconds > 0 else 0.0
            left = duration_text((count - done) / rate) if rate > 0 else "?"
            bars.update(total, completed=done, rate=f"{rate:.1f}/s", left=f"{left} left")

        yield show


def _conclude(report: Report) -> None:
    for outcome in report.missing:
        shown = f" ({outcome.problem}{', exact' if outcome.exact else ''})" if outcome.problem else ""
        print(f"missing: {outcome.title} for {outcome.target}{shown}, key {outcome.key}")
    for outcome in report.failed:
        print(f"\nfailed: {outcome.title} for {outcome.target}: {outcome.problem}\n{outcome.message}")
    elsewhere = sum(bool(outcome.message) for outcome in report.of("compiled"))
    if elsewhere:
        print(f"{elsewhere} were compiled for other machines than this one: its own compiler would make others")
    counts = {status: len(report.of(status)) for status in dict.fromkeys(one.status for one in report.outcomes)}
    told = ", ".join(f"{count} {status}" for status, count in counts.items())
    uploaded = sum(outcome.uploaded for outcome in report.outcomes)
    print(f"{told}{f', {uploaded} uploaded' if uploaded else ''}; {duration_text(report.seconds)}")
    if report.interrupted:
        print(f"interrupted: the same command makes the {len(report.of(NOT_DONE))} that are not done")
