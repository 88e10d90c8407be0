"""Settings from the environment, read when used and never at import."""

from __future__ import annotations

import os

from jitblas.errors import CacheError, Error
from jitblas.hardware import TARGETS

MODES = ("on", "load", "off")
TWIN_BUILDS = {"fast": 1}
"""Twin build -> value of JITBLAS_TWIN in kernels. Check (2) and trace (3) builds are foreseen, not built."""


COMPILER_ENVIRONMENT = (
    "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH", "GCC_EXEC_PREFIX", "COMPILER_PATH",
    "GCC_TOOLCHAIN", "SOURCE_DATE_EPOCH", "CCC_OVERRIDE_OPTIONS", "SDKROOT",
)  # fmt: skip
"""Variables that compilers read; their values are part of a toolchain's identity."""

SETTINGS: tuple[tuple[str, str, str], ...] = (
    ("JITBLAS_TARGET", "", "target of handles made without target=: ascend950pr or host"),
    ("JITBLAS_CACHE_DIR", "", "folder of the artifact store"),
    ("JITBLAS_CACHE_PATH", "", "further read-only stores, separated by ':'"),
    ("JITBLAS_CACHE_MAX_SIZE", "", "bytes of kernels that the store may hold, such as 500M; the longest unused go"),
    ("JITBLAS_REMOTE", "", "URL of a remote store (fsspec) that is asked before a kernel is compiled"),
    ("JITBLAS_REMOTE_TIMEOUT", "10", "seconds after which a remote store that does not answer is given up"),
    (
        "JITBLAS_TRUSTED_KEYS",
        "",
        "file of the public keys whose signatures count; default: in the user's configuration",
    ),
    ("JITBLAS_MODE", "on", "on; load: never compile; off: neither read nor write the store"),
    ("JITBLAS_CXX", "", "C++ compiler of the host target, the only one tried"),
    ("JITBLAS_BISHENG", "", "compiler of the ascend950pr target, the only one tried"),
    ("JITBLAS_MARCH", "native", "instruction set of host kernels, as -march= takes it"),
    ("JITBLAS_EXTRA_FLAGS", "", "compiler flags added to every kernel; nothing that relaxes rounding"),
    ("JITBLAS_THREADS", "", "threads that share a launch's blocks on the host; default: what affinity allows"),
    ("JITBLAS_JOBS", "", "compiles at a time of prewarm; default: what processors and memory allow"),
    ("JITBLAS_RECORD", "", "file that collects the problems of a run, for jitblas prewarm --from-record"),
    ("JITBLAS_LOCK_TIMEOUT", "600", "seconds to wait for another process that compiles the same kernel"),
    ("JITBLAS_TWIN", "fast", "build of the host implementation: fast"),
    ("JITBLAS_VERBOSE", "", "1: a line on stderr for every kernel compiled"),
)
"""Environment variables: name, default, what they do and accept."""


def mode() -> str:
    value = os.environ.get("JITBLAS_MODE") or "on"
    if value not in MODES:
        raise Error(f"JITBLAS_MODE={value}: accepted are {', '.join(MODES)}")
    return value


def twin_build() -> str:
    value = os.environ.get("JITBLAS_TWIN") or "fast"
    if value not in TWIN_BUILDS:
        raise Error(f"JITBLAS_TWIN={value}: accepted are {', '.join(TWIN_BUILDS)} (check and trace are not built yet)")
    return value


def forced_target() -> str | None:
    value = os.environ.get("JITBLAS_TARGET") or None
    if value is not None and value not in TARGETS:
        raise Error(f"JITBLAS_TARGET={value}: accepted are {', '.join(TARGETS)}")
    return value


def extra_flags() -> tuple[str, ...]:
    """JITBLAS_EXTRA_FLAGS as words; flags that change rounding are refused."""
    if not os.environ.get("JITBLAS_EXTRA_FLAGS"):
        return ()
    from jitblas.toolchain.base import changes_rounding, command_words

    flags = tuple(command_words("JITBLAS_EXTRA_FLAGS"))
    for flag in flags:
        if changes_rounding(flag):
            raise Error(
                f"JITBLAS_EXTRA_FLAGS contains {flag}, which changes rounding (some such flags do so for the whole "
                f"process); remove it"
            )
    return flags


def threads() -> int:
    """JITBLAS_THREADS, or the processors that affinity and the control group's quota leave us."""
    return _count("JITBLAS_THREADS") or processors()


def _count(name: str) -> int | None:
    text = os.environ.get(name)
    if not text:
        return None
    try:
        return parse_count(text)
    except ValueError as error:
        raise Error(f"{name}={error}") from None


def parse_count(text: str) -> int:
    """A number of threads or processes; ValueError says what is accepted."""
    if not (text.isascii() and text.isdigit() and len(text) <= 4) or not 1 <= int(text) <= 4096:
        raise ValueError(f"{text[:80]}: a number from 1 to 4096 is accepted")
    return int(text)


def processors() -> int:
    """Those that affinity and the control group's quota leave us."""
    allowed = len(os.sched_getaffinity(0))
    quota = _cgroup_quota()
    return max(1, min(allowed, int(quota + 0.999)) if quota else allowed)


def _cgroup_quota() -> float | None:
    """Processors per second of time that the control group grants, None without a limit."""
    try:
        limit, period = _read("/sys/fs/cgroup/cpu.max").split()
        return None if limit == "max" else int(limit) / int(period)
    except (OSError, ValueError):
        pass
    try:
        limit, period = _read("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"), _read("/sys/fs/cgroup/cpu/cpu.cfs_period_us")
        return None if int(limit) <= 0 else int(limit) / int(period)
    except (OSError, ValueError):
        return None


def _read(path: str) -> str:
    with open(path) as file:
        return file.read()


def lock_timeout() -> float:
    return _seconds("JITBLAS_LOCK_TIMEOUT", "600")


def remote_timeout() -> float:
    return _seconds("JITBLAS_REMOTE_TIMEOUT", "10")


def _seconds(name: str, default: str) -> float:
    text = os.environ.get(name) or default
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise Error(f"{name}={text}: seconds are accepted, 0 or more")
    return min(seconds, 1e6)  # more than timers take is as good as for ever


def remote() -> str:
    """URL of the remote store; empty if there is none."""
    return os.environ.get("JITBLAS_REMOTE", "")


def record() -> str:
    """File that collects the problems of a run; empty if none does."""
    return os.environ.get("JITBLAS_RECORD", "")


def cache_max_size() -> int | None:
    """Bytes that the store may hold; None: any number."""
    text = os.environ.get("JITBLAS_CACHE_MAX_SIZE")
    if not text:
        return None
    from jitblas.units import parse_size

    try:
        return parse_size(text)
    except ValueError as error:
        raise Error(f"JITBLAS_CACHE_MAX_SIZE: {error}") from None


def jobs() -> int | None:
    """JITBLAS_JOBS, None if it is not set."""
    return _count("JITBLAS_JOBS")


def trusted_keys_file() -> str:
    """JITBLAS_TRUSTED_KEYS, or a file in the user's configuration folder."""
    named = os.environ.get("JITBLAS_TRUSTED_KEYS")
    if named:
        return os.path.abspath(named)
    from platformdirs import user_config_dir

    try:
        return os.path.join(user_config_dir("jitblas", appauthor=False), "trusted_keys")
    except (OSError, RuntimeError, KeyError) as error:
        raise CacheError(f"no configuration directory can be found ({error}); set JITBLAS_TRUSTED_KEYS") from None


def verbose() -> bool:
    return os.environ.get("JITBLAS_VERBOSE", "") not in ("", "0")


def kernels_folder() -> str:
    """The kernel sources: inside an installed package, beside the package in a source checkout."""
    package = os.path.dirname(os.path.realpath(__file__))
    for parent in (package, os.path.dirname(package)):
        folder = os.path.join(parent, "kernels_src")
        if os.path.isdir(folder):
            return folder
    raise Error(f"the kernel sources are missing: neither {package}/kernels_src nor its neighbour exists; reinstall")


def cache_folder() -> str:
    """Where the store lives: JITBLAS_CACHE_DIR, the checkout's cache/, or the user's cache directory."""
    named = os.environ.get("JITBLAS_CACHE_DIR")
    if named:
        return os.path.abspath(named)
    checkout = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    if os.path.isfile(os.path.join(checkout, "pyproject.toml")) and os.path.isdir(
        os.path.join(checkout, "kernels_src")
    ):
        return os.path.join(checkout, "cache")
    from platformdirs import user_cache_dir

    try:
        return user_cache_dir("jitblas", appauthor=False)
    except (OSError, RuntimeError, KeyError) as error:
        raise CacheError(f"no cache directory can be found ({error}); set JITBLAS_CACHE_DIR") from None


def read_only_folders() -> list[str]:
    return [os.path.abspath(part) for part in os.environ.get("JITBLAS_CACHE_PATH", "").split(":") if part]
