"""Specialisations: a problem resolved to one kernel."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from jitblas import config
from jitblas.hardware import CUBE_BUFFERS, HOST, PROFILES, Profile
from jitblas.operators import OPERATORS
from jitblas.operators.base import Constant, Variant
from jitblas.problem import Problem, Value

if TYPE_CHECKING:
    from jitblas.jit.artifacts import Recipe


class Specialization(NamedTuple):
    """One kernel to be: operator, variant, the constants compiled into it, and what it is compiled for.

    Attributes
    ----------
    constants : class constants, then (exact only) the sizes that are baked in
    baked : names of tiling fields that are constants of this kernel
    profile : tiling profile whose numbers the constants come from
    twin : build of the twin ("fast"); empty for the chip
    problem : a problem it serves, for messages; it does not count in comparisons
    """

    op: str
    path: Variant
    constants: tuple[tuple[str, Constant], ...]
    baked: tuple[tuple[str, Value], ...]
    target: str
    profile: Profile
    twin: str
    problem: str

    @property
    def variant(self) -> str:
        return self.path.name

    @property
    def exact(self) -> bool:
        return bool(self.baked)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Specialization) and self[:-1] == other[:-1]

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self[:-1])

    @property
    def what(self) -> str:
        """First half of the key."""
        from jitblas.jit import keys

        return keys.digest(
            [
                ("schema", str(keys.SCHEMA)),
                ("operator", self.op),
                ("variant", self.variant),
                *((f"constant {name}", repr(value)) for name, value in self.constants),
                *((f"baked {name}", repr(value)) for name, value in self.baked),
                *((f"define {name}", value) for name, value in self.defines.items()),
                ("source", self.rendered),
                ("rewriting", keys.module_digest("launch_syntax.py") if self.target == HOST else ""),
                ("sources", keys.tree_digest(self.folders)),
                ("target", self.target),
                ("profile", self.profile.name),
                ("twin", self.twin),
            ]
        )

    @property
    def folders(self) -> tuple[str, ...]:
        """Where its sources are."""
        parts = [self.op, "common", *(["twin"] if self.target == HOST else [])]
        return tuple(os.path.join(config.kernels_folder(), part) for part in parts)

    @property
    def key(self) -> str:
        """`what/how`: the folder of the artifact. Needs a compiler to be found."""
        return str(self.recipe.key())

    @property
    def rendered(self) -> str:
        """The Ascend C of this kernel, the same for every target."""
        from jitblas.jit.render import render

        return render(self.path, self.constants, self.baked, config.kernels_folder())

    @property
    def source(self) -> str:
        """What is compiled: the Ascend C; for the host with launches rewritten."""
        if self.target != HOST:
            return self.rendered
        from jitblas.jit.launch_syntax import rewrite_launches

        return rewrite_launches(self.rendered)

    @property
    def command(self) -> list[str]:
        """The argv that would compile it."""
        return self.recipe.command()

    @property
    def defines(self) -> Mapping[str, str]:
        """Macros of the build, apart from the key."""
        if self.target != HOST:
            return {}
        defines = {"JITBLAS_TWIN": str(config.TWIN_BUILDS[self.twin]), "JITBLAS_UB_BYTES": str(self.profile.ub_bytes)}
        if self.path.any_register_width:
            defines["JITBLAS_REGISTER_BYTES"] = str(self.profile.register_bytes)
        if self.path.kind == "vector":
            return defines
        buffers = {f"JITBLAS_{name.upper()}": str(getattr(self.profile, name)) for name in CUBE_BUFFERS}
        return {**defines, "JITBLAS_CORES": f"JITBLAS_{self.path.kind.upper()}", **buffers}

    @property
    def recipe(self) -> Recipe:
        from jitblas.jit.artifacts import Recipe

        kernels = config.kernels_folder()
        include = [os.path.join(kernels, "twin")] if self.target == HOST else []
        shown = [str(value) for _, value in self.constants if not isinstance(value, tuple)]
        facts = {
            "operator": self.op,
            "variant": self.variant,
            "constants": dict(self.constants),
            "baked": dict(self.baked),
            "profile": self.profile.name,
            "twin": self.twin,
            "problem": self.problem,
        }
        return Recipe(
            title=f"{self.op} {self.variant} ({', '.join(shown)})",
            what=self.what,
            target=self.target,
            source=lambda: self.source,
            include=(*include, kernels),
            defines=tuple(self.defines.items()),
            facts=facts,
            folders=self.folders,
            remake=lambda: self.recipe,
            problem=self.problem,
            exact=self.exact,
            device_kind=None if self.target == HOST else self.path.kind,
        )


def specialize(
    problem: Problem | str,
    target: str | None = None,
    exact: bool = False,
    *,
    profile: str | Profile | None = None,
) -> Specialization:
    """Resolve a problem to a specialisation; nothing is compiled.

    Parameters
    ----------
    problem : a problem or its line, such as "axpy_ex:n=1e6,dtype=bf16"
    target : "ascend950pr" or "host"; None: the default target
    exact : bake every size into the kernel instead of serving the whole shape class
    profile : tiling profile by name; None: the target's own
    """
    from jitblas.jit.kernels import default_target, resolve_target

    if not isinstance(problem, Problem):
        problem = Problem.parse(problem)
    target = default_target() if target is None else resolve_target(target)
    chosen = resolve_profile(profile, target)
    operator = OPERATORS[problem.op]
    choice = operator.choose(problem, chosen)
    sizes = frozenset(item.name for item in choice.variant.fields if item.size)
    baked: tuple[tuple[str, Value], ...] = ()
    if exact:
        _, tiling = operator.tiling(problem, chosen)
        baked = tuple((name, value) for name, value in tiling.items() if name in sizes)
    return Specialization(
        problem.op,
        choice.variant,
        choice.constants,
        baked,
        target,
        chosen,
        config.twin_build() if target == HOST else "",
        str(problem),
    )


def resolve_profile(profile: str | Profile | None, target: str) -> Profile:
    if isinstance(profile, Profile):
        return profile
    name = profile or target
    if name not in PROFILES:
        raise ValueError(f"profile={name!r}: accepted are {', '.join(PROFILES)}")
    return PROFILES[name]
