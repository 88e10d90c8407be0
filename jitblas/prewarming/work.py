"""From problems to the artifacts they need, each once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from jitblas.hardware import HOST
from jitblas.jit import libraries
from jitblas.jit.artifacts import Recipe
from jitblas.jit.kernels import default_target, resolve_target
from jitblas.jit.specialization import specialize
from jitblas.problem import Problem, expand


class Request(NamedTuple):
    """A problem and what to compile for it; None: whatever holds for all."""

    problem: str
    target: str | None = None
    exact: bool | None = None


class Work(NamedTuple):
    """One artifact to be had, and the request that lays it out again in another process.

    The request is a problem with its target, or the name of a library (:data:`jitblas.jit.libraries.NAMES`).
    """

    request: Request
    recipe: Recipe


def work_for(problems: Iterable[Problem | str | Request], targets: Sequence[str] | None, exact: bool) -> list[Work]:
    """What the problems need, without duplicates; libraries that every kernel needs come first. Braces expand."""
    chosen = [resolve_target(target) for target in targets or ()] or [default_target()]
    work: dict[str, Work] = {}
    for item in problems:
        request = item if isinstance(item, Request) else Request(str(item))
        baked = exact if request.exact is None else request.exact
        for line in expand(request.problem):
            for target in chosen if request.target is None else [resolve_target(request.target)]:
                one = lay_out(Request(line, target, baked))
                work.setdefault(one.recipe.what, one)
    needed = libraries.NAMES if any(one.request.target == HOST for one in work.values()) else ()
    return [*(lay_out(Request(name, HOST, False)) for name in needed), *work.values()]


def lay_out(request: Request) -> Work:
    """The artifact of one request that names its target."""
    if request.problem in libraries.NAMES:
        return Work(request, libraries.recipe_of(request.problem))
    return Work(request, specialize(request.problem, request.target, bool(request.exact)).recipe)
