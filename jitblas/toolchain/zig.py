"""The `ziglang` wheel: a C++ compiler for machines that have none."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from jitblas.hardware import HOST
from jitblas.toolchain.base import Toolchain
from jitblas.toolchain.gnu import probe_gnu

CACHE_VARIABLES = ("ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR")


class Zig:
    """`zig c++` from the wheel next to us, with its caches inside ours."""

    name = "zig"
    target = HOST
    remedy = "pip install 'jitblas[compiler]'"

    def candidates(self) -> Iterable[tuple[str, ...]]:
        from importlib.util import find_spec

        spec = find_spec("ziglang")
        for folder in (spec.submodule_search_locations or []) if spec is not None else []:
            program = os.path.join(folder, "zig")
            if os.path.exists(program):
                yield (program, "c++")

    def probe(self, driver: tuple[str, ...], workdir: str, cache: str | None) -> Toolchain:
        # -nostdlib++: kernels and runtime need no C++ library, and building zig's takes a minute at its first use.
        march = (os.environ.get("JITBLAS_MARCH") or "native").replace("-", "_")
        environment = dict.fromkeys(CACHE_VARIABLES, cache) if cache is not None else {}
        base = probe_gnu((*driver, "-nostdlib++"), workdir, march, self.name, environment)
        version = re.search(r"clang version \S+", dict(base.identity)["version"])
        shown = f"zig c++ ({version.group(0) if version else base.version})"
        return base._replace(version=shown, cache_variables=CACHE_VARIABLES)
