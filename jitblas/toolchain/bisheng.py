"""bisheng, the Ascend C compiler of CANN, for the ascend950pr target."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from jitblas.config import COMPILER_ENVIRONMENT
from jitblas.errors import ArchMismatch
from jitblas.hardware import ASCEND950PR
from jitblas.runtime.device_object import check_device_object
from jitblas.toolchain.base import Toolchain, Unusable, command_words, digest_file, run, succeed
from jitblas.toolchain.gnu import resolved

ASCEND_FLAGS = ("-x", "asc", "-std=c++17", "-O3", "-DNDEBUG", "-DASCENDC_DUMP=0", "-shared", "-fPIC",
                "--npu-arch=dav-3510")  # fmt: skip
"""Flags of every device build. A .cpp without `-x asc` is host code; ASCENDC_DUMP=0 omits kernel printf."""

INSTALL_INFO = "ascend_toolkit_install.info"

PROBE = """\
#include "kernel_operator.h"
extern "C" __global__ __aicore__ void jitblas_probe(GM_ADDR out) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    static_cast<void>(out);
}
extern "C" int launch(uint32_t blocks, void* stream, void* out) {
    jitblas_probe<<<blocks, nullptr, stream>>>(static_cast<uint8_t*>(out));
    return 0;
}
"""

STAGES = ("test", "alpha", "beta", "rc")
"""Kinds of pre-release, earliest first; all of them come before the release."""


class Bisheng:
    """JITBLAS_BISHENG, or bisheng below ASCEND_HOME_PATH, or on PATH."""

    name = "bisheng"
    target = ASCEND950PR

    @property
    def remedy(self) -> str:
        from jitblas.operators import OPERATORS

        needed = ", ".join(f"{name} needs {operator.minimum_cann} or newer" for name, operator in OPERATORS.items())
        return f"install the CANN toolkit ({needed}) and source its set_env.sh, or set JITBLAS_BISHENG"

    def candidates(self) -> Iterable[tuple[str, ...]]:
        if os.environ.get("JITBLAS_BISHENG"):
            yield from resolved(command_words("JITBLAS_BISHENG"))
            return
        for root in _roots():
            for folder in ("bin", "tools/bisheng_compiler/bin", *_below(root, "ccec_compiler/bin")):
                program = root / folder / "bisheng"
                if os.access(program, os.X_OK) and program.is_file():
                    yield (str(program),)
        yield from resolved(["bisheng"])

    def probe(self, driver: tuple[str, ...], workdir: str, cache: str | None = None) -> Toolchain:
        version = succeed([*driver, "--version"], "bisheng --version", cwd=workdir)
        source, output = os.path.join(workdir, "probe.cpp"), os.path.join(workdir, "probe.so")
        with open(source, "w") as file:
            file.write(PROBE)
        succeed([*driver, *ASCEND_FLAGS, source, "-o", output], "compiling a probe kernel", cwd=workdir)
        try:
            check_device_object(output, "vector")
        except (ArchMismatch, OSError) as error:
            raise Unusable(f"the probe kernel is not for this chip: {error}") from None
        programs = _programs(driver)
        info = next((found for program in programs if (found := _info_above(program))), None) or _info()
        depends = [*programs, *([str(info)] if info else [])]
        identity = [
            ("version", _without_places(version)),
            ("programs", ",".join(f"{os.path.basename(path)}={digest_file(path)}" for path in programs)),
            ("cann", _without_places(info.read_text(errors="replace")) if info else "unknown"),
        ]
        identity += [(f"environment {key}", os.environ[key]) for key in COMPILER_ENVIRONMENT if key in os.environ]
        # Whether these work is documented nowhere. They stay out of the flags: their arguments differ from
        # build to build; callers that want them ask the identity.
        for flag in ("-MD", "-ffile-prefix-map"):
            identity.append((flag, "works" if _works(flag, driver, workdir, source) else "does not work"))
        first = next(iter(version.splitlines()), driver[0])
        return Toolchain(self.name, ASCEND950PR, driver, first, ASCEND_FLAGS, tuple(identity), tuple(depends))


def cann_version() -> str | None:
    """The toolkit's version as its installer wrote it, such as "9.0.0-beta.2"; None without a toolkit."""
    info = _info()
    return _version_in(info) if info else None


def version_at_least(found: str | None, needed: str) -> bool:
    """Compare CANN versions; a pre-release comes before its release, an unreadable `found` before everything.

    >>> version_at_least("9.0.0", "9.0.0-beta.2"), version_at_least("9.0.0-beta.2", "9.0.0")
    (True, False)
    >>> version_at_least("8.3.RC2", "9.0.0"), version_at_least("9.1.0.alpha003", "9.0.0")
    (False, True)
    """
    have, want = _parsed(found or ""), _parsed(needed)
    if want is None:
        raise ValueError(f"{needed!r} is not a CANN version")
    return have is not None and have >= want


def _parsed(text: str) -> tuple[tuple[int, ...], int, tuple[int, ...]] | None:
    """(release numbers, stage, pre-release numbers), comparable."""
    match = re.fullmatch(r"v?(\d+(?:\.\d+)*)[-.]?(?:(t|alpha|beta|rc)[-.]?(\d+(?:\.\d+)*)?)?", text.strip().lower())
    if match is None:
        return None
    numbers = [int(part) for part in match[1].split(".")]
    while len(numbers) > 1 and numbers[-1] == 0:  # 9.0 is 9.0.0
        numbers.pop()
    stage = STAGES.index("test" if match[2] == "t" else match[2]) if match[2] else len(STAGES)
    return tuple(numbers), stage, tuple(int(part) for part in match[3].split(".")) if match[3] else ()


def _roots() -> Iterator[Path]:
    """ASCEND_HOME_PATH, and where the toolkit is below it if it names the folder that holds the toolkits."""
    home = os.environ.get("ASCEND_HOME_PATH")
    if home:
        root = Path(home).absolute()
        yield from (root, root / "cann", root / "latest", root / "ascend-toolkit" / "latest")


def _below(root: Path, name: str) -> list[str]:
    """`name` in the toolkit's per-architecture folders, this machine's first."""
    own = f"{platform.machine()}-linux"
    try:
        folders = sorted(entry for entry in os.listdir(root) if entry.endswith("-linux") and entry != own)
    except OSError:
        folders = []
    return [os.path.join(folder, name) for folder in (own, *folders)]


def _info() -> Path | None:
    return next((found for root in _roots() if (found := _info_in(root))), None)


def _info_in(root: Path) -> Path | None:
    paths = (root / name for name in (*_below(root, INSTALL_INFO), INSTALL_INFO))
    return next((path for path in paths if path.is_file()), None)


def _info_above(program: str) -> Path | None:
    """The install record of the toolkit that a compiler stands in."""
    return next((found for root in Path(os.path.realpath(program)).parents if (found := _info_in(root))), None)


def _version_in(info: Path) -> str | None:
    try:
        match = re.search(r"^\s*version\s*[=:]\s*\[?([^\s\]]+)", info.read_text(errors="replace"), re.MULTILINE | re.I)
    except OSError:
        return None
    return match[1] if match else None


def _without_places(text: str) -> str:
    """Without the lines that name folders: a toolkit that was moved is the same toolkit."""
    places = re.compile(r"\s*(InstalledDir|Configuration file|path)\s*[:=]", re.IGNORECASE)
    return "\n".join(line for line in text.splitlines() if not places.match(line))


def _programs(driver: tuple[str, ...]) -> tuple[str, ...]:
    """The driver's words that are programs; the paths as given, so that a link set anew is noticed."""
    found = [
        driver[0],
        *(path for word in driver[1:] for path, *_ in (*resolved([word]),) if not word.startswith("-")),
    ]
    return tuple(dict.fromkeys(found))


def _works(flag: str, driver: tuple[str, ...], workdir: str, source: str) -> bool:
    output, listing = os.path.join(workdir, "optional.so"), os.path.join(workdir, "optional.d")
    words = ["-MD", "-MF", listing] if flag == "-MD" else [f"{flag}={workdir}=."]
    if run([*driver, *ASCEND_FLAGS, *words, source, "-o", output], cwd=workdir).returncode != 0:
        return False
    if flag != "-MD":
        return True
    try:
        return "kernel_operator.h" in Path(listing).read_text(errors="replace")
    except OSError:
        return False
