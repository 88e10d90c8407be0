"""From problems to the artifacts they need, each once."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from jitblas.hardware import HOST
from jitblas.jit.kernels import HOST_LIBRARIES, default_target, resolve_target
from jitblas.jit.specialization import specialize
from jitblas.problem import Problem

if TYPE_CHECKING:
    from jitblas.jit.artifacts import Recipe


class Request(NamedTuple):
    """A problem and what to compile for it; None: whatever holds for all."""

    problem: str
    target: str | None = None
    exact: bool | None = None


class Work(NamedTuple):
    """One artifact to be had. It can be laid out again in another process from its `request`.

    Attributes
    ----------
    request : a problem with its target, or the name of a library of :data:`HOST_LIBRARIES`
    """

    request: Request
    title: str
    what: str
    make_recipe: Callable[[], Recipe]


def work_for(problems: Iterable[Problem | str | Request], targets: Sequence[str] | None, exact: bool) -> list[Work]:
    """What the problems need, without duplicates; libraries that every kernel needs come first."""
    chosen = [resolve_target(target) for target in targets or ()] or [default_target()]
    work: dict[str, Work] = {}
    for item in problems:
        request = item if isinstance(item, Request) else Request(str(item))
        for target in chosen if request.target is None else [resolve_target(request.target)]:
            baked = exact if request.exact is None else request.exact
            one = lay_out(Request(request.problem, target, baked))
            work.setdefault(one.what, one)
    needed = HOST_LIBRARIES if any(one.request.target == HOST for one in work.values()) else ()
    return [*(lay_out(Request(name, HOST)) for name in needed), *work.values()]


def lay_out(request: Request) -> Work:
    """The artifact of one request that names its target."""
    if request.problem in HOST_LIBRARIES:
        recipe = HOST_LIBRARIES[request.problem]()
        return Work(request, recipe.title, recipe.what, HOST_LIBRARIES[request.problem])
    chosen = specialize(request.problem, request.target, bool(request.exact))
    recipe = chosen.recipe
    return Work(request, recipe.title, recipe.what, functools.partial(getattr, chosen, "recipe"))
