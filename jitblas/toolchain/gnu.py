"""g++ and clang++ for the host target."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterable, Mapping

from jitblas.config import COMPILER_ENVIRONMENT
from jitblas.hardware import HOST
from jitblas.toolchain.base import (
    Toolchain,
    Unusable,
    command_words,
    digest_file,
    find_program,
    run,
    succeed,
)

MINIMUM_VERSION = {"gcc": 9, "clang": 12}
"""First versions whose C++17 and GNU vector extensions (__builtin_convertvector) the twin can use."""

PROBE = """\
typedef unsigned short Shorts __attribute__((vector_size(16)));
typedef unsigned int Words __attribute__((vector_size(32)));
template <auto function> static int Call() { return function(); }
static int One() { return 1; }
static thread_local int last = 0;
extern "C" int probe(const Shorts* in, Words* out) {
    if constexpr (sizeof(Words) == 32) { *out = __builtin_convertvector(*in, Words); }
    return last += Call<One>();
}
"""

HOST_FLAGS = (
    "-std=c++17", "-O2", "-ffp-contract=off", "-fno-exceptions", "-fno-rtti", "-fno-math-errno",
    "-fno-trapping-math", "-fvisibility=hidden", "-Wall", "-Wno-unused-function", "-Wno-unknown-pragmas",
    "-Wno-psabi", "-shared", "-fPIC", "-pthread",
)  # fmt: skip
"""Flags of every host build. -ffp-contract=off: the twin says itself where the chip fuses."""


class Gnu:
    """g++, clang++ or whatever JITBLAS_CXX or CXX name, if a probe compiles."""

    name = "gnu"
    target = HOST
    remedy = "install one (Debian: apt install g++) or the embedded one: pip install 'jitblas[compiler]'"

    def candidates(self) -> Iterable[tuple[str, ...]]:
        if os.environ.get("JITBLAS_CXX"):
            yield from resolved(command_words("JITBLAS_CXX"))
            return
        for words in (command_words("CXX"), ["g++"], ["clang++"], ["c++"]):
            yield from resolved(words)

    def probe(self, driver: tuple[str, ...], workdir: str, cache: str | None) -> Toolchain:
        return probe_gnu(driver, workdir, march=os.environ.get("JITBLAS_MARCH") or "native")


def resolved(words: list[str]) -> Iterable[tuple[str, ...]]:
    """A command with its program found on PATH; nothing if there is no such program."""
    program = find_program(words[0]) if words else None
    if program is not None:
        yield (program, *words[1:])


def probe_gnu(
    driver: tuple[str, ...],
    workdir: str,
    march: str,
    name: str | None = None,
    environment: Mapping[str, str] | None = None,
) -> Toolchain:
    """Identify a driver with g++'s command line and compile the probe with the flags that kernels will get."""

    import shlex

    def ask(*arguments: str) -> str:
        what = shlex.join(arguments[-3:])
        return succeed([*driver, *arguments], what, cwd=workdir, environment=environment)

    version = ask("--version")
    first = version.splitlines()[0] if version else ""
    kind = name or ("clang" if "clang" in version else "gcc")
    macros = ask("-dM", "-E", "-x", "c++", os.devnull)
    major = _major(macros, "__GNUC__" if kind == "gcc" else "__clang_major__")
    minimum = MINIMUM_VERSION["gcc" if kind == "gcc" else "clang"]
    if major < minimum:
        raise Unusable(f"{first or driver[0]}: version {major}, at least {minimum} is needed")
    flags = [*HOST_FLAGS, *_march_flags(march)]
    if kind == "gcc":
        flags += ["-fno-gnu-unique", "-Wno-ignored-attributes"]
        if "#define __aarch64__ " in macros:
            flags.append("-fno-schedule-insns")  # before registers are allocated it makes blocks that fill them spill
    source, output = os.path.join(workdir, "probe.cpp"), os.path.join(workdir, "probe.so")
    with open(source, "w") as file:
        file.write(PROBE)
    compiled = run([*driver, *flags, source, "-o", output], cwd=workdir, environment=environment)
    if compiled.returncode != 0:
        raise Unusable(f"a C++17 probe does not compile: {compiled.first_error()}", compiled.may_pass)
    # What the driver runs, and what -march=native means on this machine.
    expansion = run([*driver, *flags, "-###", source, "-o", output], cwd=workdir, environment=environment).output
    enabled = ask(*flags, "-dM", "-E", "-x", "c++", os.devnull)
    programs = _programs(driver, expansion)
    identity = [
        ("version", version),
        ("programs", ",".join(f"{os.path.basename(path)}={digest_file(path)}" for path in programs)),
        ("expansion", _without_paths(expansion)),
        ("instructions", " ".join(sorted(re.findall(r"^#define __([A-Z]\w*?)(?:__)? 1$", enabled, re.MULTILINE)))),
        ("libc", " ".join(platform.libc_ver())),
    ]
    identity += [(f"environment {key}", os.environ[key]) for key in COMPILER_ENVIRONMENT if key in os.environ]
    return Toolchain(kind, HOST, driver, first, tuple(flags), tuple(identity), programs)


def _march_flags(march: str) -> list[str]:
    return ["-mcpu=native"] if march == "native" and platform.machine() == "aarch64" else [f"-march={march}"]


def _major(macros: str, name: str) -> int:
    found = re.search(rf"^#define {name} (\d+)", macros, re.MULTILINE)
    if found is None:
        raise Unusable(f"does not define {name}: neither g++ nor clang++")
    return int(found.group(1))


def _programs(driver: tuple[str, ...], expansion: str) -> tuple[str, ...]:
    """Files that take part in a compile: the driver's words that are files and the programs it starts."""
    started = [words[0] for words in _commands(expansion)]
    names = [word for word in driver if not word.startswith("-")] + started  # `ccache g++` has two of them
    found = [path for name in names if (path := find_program(name)) is not None]
    if driver[0] in found and os.path.realpath(driver[0]) not in found:
        found.append(os.path.realpath(driver[0]))
    return tuple(dict.fromkeys(os.path.abspath(path) for path in found))


def _commands(expansion: str) -> Iterable[list[str]]:
    """The words of the sub-commands that a driver tells; lines that are none, as of paths with line breaks, are not."""
    import shlex

    for line in expansion.splitlines():
        try:
            words = shlex.split(line) if line.startswith(" ") else []
        except ValueError:
            continue
        if words:
            yield words


def _without_paths(expansion: str) -> str:
    """The flags of a driver's sub-commands without names of places and temporary files, which differ between runs."""
    words = [word for command in _commands(expansion) for word in command]
    return " ".join(word for word in words if "/" not in word and "probe" not in word)
