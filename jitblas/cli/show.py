"""`jitblas show PROBLEM`: what a problem resolves to and what would be compiled. Builds nothing."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Iterable, Iterator

from jitblas.errors import CompilerNotFound, StatusError
from jitblas.hardware import ASCEND950PR, HOST, PROFILES, TARGETS, Profile
from jitblas.jit import artifacts
from jitblas.jit.artifacts import Recipe
from jitblas.jit.specialization import Specialization, specialize
from jitblas.operators import OPERATORS
from jitblas.operators.base import Constant
from jitblas.problem import Parameter, Problem, Value
from jitblas.store.entry import Key
from jitblas.toolchain.base import Toolchain


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("problem", metavar="PROBLEM", help="such as axpy_ex:n=1e6,dtype=bf16")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--source", action="store_true", help="print the source that would be compiled")
    what.add_argument("--command", action="store_true", help="print the compiler's command line")
    what.add_argument("--tiling", action="store_true", help="print blocks and the numbers of a launch")
    parser.add_argument("--exact", action="store_true", help="bake the sizes into the kernel")
    parser.add_argument("--target", choices=TARGETS, help="default: the target that calls would use")
    parser.add_argument("--profile", choices=tuple(PROFILES), help="tiling profile; default: the target's")


def run(arguments: argparse.Namespace) -> int:
    problem = Problem.parse(arguments.problem)
    chosen = specialize(problem, arguments.target, arguments.exact, profile=arguments.profile)
    launch = OPERATORS[problem.op].tiling(problem, chosen.profile)
    if arguments.source:
        print(chosen.source)
    elif arguments.command:
        print(shlex.join(command(chosen)))
    elif arguments.tiling:
        print("\n".join(_tiling_lines(chosen, launch)))
    else:
        print("\n".join(_summary(problem, chosen, launch)))
    return 0


Launch = tuple[int, dict[str, int | float]]
"""Blocks (0: there is nothing to compute) and tiling values."""


def _summary(problem: Problem, chosen: Specialization, launch: Launch) -> Iterator[str]:
    yield f"problem    {problem}"
    yield f"target     {chosen.target}, tiled for {chosen.profile.name}" + (
        f", twin build {chosen.twin}" if chosen.twin else ""
    )
    yield f"path       {chosen.variant} ({chosen.path.source}), because {reason(problem, chosen.profile)}"
    if limits := OPERATORS[problem.op].limits:
        yield f"limits     {_listed((name, getattr(chosen.profile, name)) for name in limits)}"
    yield f"constants  {_listed(chosen.constants)}"
    if chosen.baked:
        yield f"baked      {_listed(chosen.baked)}"
    if launch[0] == 0:
        yield "launch     none: there is nothing to compute"
    else:
        yield f"blocks     {launch[0]}"
        baked = {name for name, _ in chosen.baked}
        yield f"tiling     {_listed((name, value) for name, value in launch[1].items() if name not in baked)}"
    yield from (f"  {line}" for line in described(problem, chosen.profile))
    if workspace := OPERATORS[problem.op].workspace_bytes(problem, chosen.profile):
        yield f"workspace  {workspace} bytes"
    yield from _whereabouts(chosen)


def described(problem: Problem, profile: Profile) -> list[str]:
    """What the operator itself has to say of how it does a problem, if anything."""
    describe = getattr(OPERATORS[problem.op], "describe", None)
    return [] if describe is None else list(describe(problem, profile))


def _listed(pairs: Iterable[tuple[str, Constant]]) -> str:
    return ", ".join(f"{name}={value}" for name, value in pairs)


def reason(problem: Problem, profile: Profile) -> str:
    """The parameters of the problem that decide between the operator's paths.

    Found by asking the operator: a parameter decides if another value of it leads to another path, in this problem,
    in the one with defaults elsewhere, or in the smallest one.
    """
    operator = OPERATORS[problem.op]
    path = operator.choose(problem, profile).variant.name
    given = dict(problem.values)
    defaults = {item.name: given[item.name] if item.default is None else item.default for item in operator.parameters}
    smallest = {item.name: 1 if item.default is None else item.default for item in operator.parameters}
    deciding: list[str] = []
    others: set[str] = set()
    for item in operator.parameters:
        for base in (given, defaults, smallest):
            seen = set()
            for value in (base[item.name], *_alternatives(item)):
                try:
                    other = operator.choose(Problem.make(problem.op, {**base, item.name: value}), profile)
                except StatusError:
                    continue  # the profile has no path for it
                seen.add(other.variant.name)
            if len(seen) > 1:
                deciding.append(f"{item.name}={given[item.name]}")
                others |= seen - {path}
    if not deciding:
        return "it is the only one"
    return f"{', '.join(dict.fromkeys(deciding))} (others: {', '.join(sorted(others))})"


def _alternatives(parameter: Parameter) -> tuple[Value, ...]:
    """Values that are likely to lead to every path there is."""
    if isinstance(parameter.kind, tuple):
        return parameter.kind
    if parameter.kind in ("float", "complex"):
        return (0.0, 1.0, 2.0)
    return tuple(value for value in (-1, 1, 2, 1 << 26) if parameter.minimum is None or value >= parameter.minimum)


def _whereabouts(chosen: Specialization) -> Iterator[str]:
    """Key and place in the store."""
    try:
        yield f"key        {chosen.key}"
    except CompilerNotFound:
        yield f"key        {chosen.what}/? (no compiler for {chosen.target} was found; see jitblas doctor)"
    place = stored(chosen)
    yield f"store      {place or 'not there: the first call compiles it'}"


def stored(chosen: Specialization) -> str | None:
    """The folder of the artifact that a call would load, None if it would have to compile it."""
    entry = artifacts.look_up(chosen.recipe)
    return None if entry is None else entry.folder


def _tiling_lines(chosen: Specialization, launch: Launch) -> Iterator[str]:
    if launch[0] == 0:
        yield "no launch: there is nothing to compute"
        return
    blocks, values = launch
    baked = {name for name, _ in chosen.baked}
    yield f"blocks {blocks}"
    for item in chosen.path.fields:
        how = "constant" if item.name in baked else "run time"
        yield f"{item.ctype:<9} {item.name:<10} {values[item.name]!s:>20}  {how}"


def command(chosen: Specialization) -> list[str]:
    """The argv that would compile it; without a compiler the one that the preferred compiler would get."""
    recipe = chosen.recipe
    try:
        return recipe.command()
    except CompilerNotFound as error:
        compiler = _absent_compiler(chosen.target)
        print(
            f"jitblas: {compiler.driver[0]} was not found; this is the command with it on PATH. {error}",
            file=sys.stderr,
        )
        return _WithoutCompiler(*recipe).command()


class _WithoutCompiler(Recipe):
    """A recipe as if its compiler were here. How that would identify itself, half of the key, is unknown."""

    def toolchain(self) -> Toolchain:
        return _absent_compiler(self.target)

    def key(self) -> Key:
        return Key(self.what, "?")


def _absent_compiler(target: str) -> Toolchain:
    if target == ASCEND950PR:
        from jitblas.toolchain.bisheng import ASCEND_FLAGS

        return Toolchain("bisheng", ASCEND950PR, ("bisheng",), "", ASCEND_FLAGS, (), ())
    from jitblas.toolchain.gnu import HOST_FLAGS, _march_flags

    march = _march_flags(os.environ.get("JITBLAS_MARCH") or "native")
    return Toolchain("gcc", HOST, ("g++",), "", (*HOST_FLAGS, *march, "-fno-gnu-unique"), (), ())
