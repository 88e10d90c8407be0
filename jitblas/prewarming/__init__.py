"""Prewarming: compile many kernels ahead of the calls that need them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from jitblas import config
from jitblas.errors import CacheError, Error
from jitblas.prewarming.report import Outcome, Progress, Report
from jitblas.prewarming.work import Request, Work, work_for

if TYPE_CHECKING:
    from jitblas.problem import Problem

__all__ = ["Outcome", "Report", "Request", "prewarm", "run"]


def prewarm(
    problems: Iterable[Problem | str | Request],
    *,
    targets: Sequence[str] | None = None,
    exact: bool = False,
    jobs: int | None = None,
    store: str | None = None,
    key: str | os.PathLike[str] | None = None,
    scheduler: str | None = None,
    check: bool = False,
    progress: Progress | None = None,
) -> Report:
    """Put the kernels of problems into the store, so that calls find them there.

    Parameters
    ----------
    problems : problems, their lines (braces expand), or requests as :func:`.manifest.read_manifest` and
        :func:`.manifest.read_record` give them
    targets : of problems that do not name theirs; None: the default target
    exact : for those, bake the sizes into the kernels
    jobs : compiles at a time; None: JITBLAS_JOBS, or what processors and memory allow
    store : URL of a remote store (fsspec) that every kernel is uploaded to, signed
    key : file of the secret key that signs what is uploaded (`jitblas cache keygen` makes one)
    scheduler : address of a Dask scheduler whose workers compile, such as "tcp://head:8786"
    check : only look whether the kernels are there
    progress : called with every :class:`Outcome` as work starts and ends, with the number done and the number of all

    Returns
    -------
    What became of every kernel; failures are in the report and do not stop the others.

    Raises
    ------
    ProblemSyntaxError
        A problem line cannot be read; nothing was compiled.
    ValueError
        An unknown target.
    StatusError
        A problem that no kernel is for, such as complex128 on the chip.
    Error
        JITBLAS_MODE forbids compiling; the store, the remote store or the scheduler cannot be used; arguments that
        have nothing to do with each other.
    KeyboardInterrupt
        After running compilers were stopped; what was done is done.

    Examples
    --------
    >>> import jitblas
    >>> report = jitblas.prewarm(["axpy_ex:n=1000", "fft:n=4096,dtype=c64"])  # doctest: +SKIP
    >>> report.failed  # doctest: +SKIP
    []
    """
    report = run(
        work_for(problems, targets, exact),
        jobs=jobs,
        store=store,
        key=key,
        scheduler=scheduler,
        check=check,
        progress=progress,
    )
    if report.interrupted:
        raise KeyboardInterrupt
    return report


def run(
    work: Sequence[Work],
    *,
    jobs: int | None,
    store: str | None,
    key: str | os.PathLike[str] | None,
    scheduler: str | None,
    check: bool,
    progress: Progress | None,
) -> Report:
    """The same for work that is laid out already; an interrupt ends it early and is told in the report."""
    from jitblas.jit import artifacts
    from jitblas.prewarming import local

    progress = progress or (lambda *_: None)
    if key is not None and store is None:
        raise Error("a key signs what is uploaded: give the remote store, too (--store URL, store=)")
    if check:
        if store is not None or scheduler is not None:
            raise Error("looking (--check, check=) neither uploads nor compiles: leave the store and the scheduler out")
        return local.look(work, progress)
    if config.mode() != "on":
        raise Error(f"JITBLAS_MODE={config.mode()}: prewarm needs JITBLAS_MODE=on, to compile and to keep what it made")
    finish = None
    if store is not None:
        from jitblas.prewarming.upload import Uploader

        finish = Uploader(store, key)
    if artifacts.store().is_temporary:
        raise CacheError("nothing that is compiled now would last: see above; set JITBLAS_CACHE_DIR")
    if scheduler is not None:
        from jitblas.prewarming import cluster

        return cluster.build(work, scheduler, finish, progress)
    return local.build(work, jobs or config.jobs() or local.default_jobs(), finish, progress)
