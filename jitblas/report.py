"""What jitblas finds on this machine: one dict, which `show_config()` and `jitblas doctor` print.

Looking changes nothing but the store's notes about compilers, and what is broken is reported, not raised.
"""

from __future__ import annotations

import functools
import os
import platform
import shutil
import sys
from collections.abc import Callable
from importlib import metadata
from typing import Any, Literal, TypeVar, overload

from jitblas import __version__, config, toolchain
from jitblas.errors import CacheError, Error
from jitblas.hardware import ASCEND950PR, HOST, TARGETS
from jitblas.jit import cpu, libraries
from jitblas.jit.kernels import default_target
from jitblas.operators import OPERATORS
from jitblas.report_text import render
from jitblas.runtime import acl
from jitblas.store.entry import folder_bytes, folder_of
from jitblas.store.folders import refusal, root_of
from jitblas.store.store import Store
from jitblas.toolchain.base import Toolchain
from jitblas.toolchain.bisheng import cann_version, version_at_least

Found = dict[str, Any]
Answer = TypeVar("Answer")

NEEDED = ("numpy", "diskcache", "filelock", "platformdirs")
PACKAGES = (*NEEDED, "ml_dtypes", "ziglang")


@overload
def show_config(mode: Literal["print"] = "print") -> None: ...
@overload
def show_config(mode: Literal["dict"]) -> Found: ...
def show_config(mode: str = "print") -> Found | None:
    """Versions, compilers, CANN, devices, store and settings, as jitblas finds them.

    Parameters
    ----------
    mode : "print" writes text to stdout; "dict" returns a dict that JSON can hold
    """
    if mode not in ("print", "dict"):
        raise ValueError(f"mode={mode!r}: accepted are 'print' and 'dict'")
    found = collect()
    if mode == "dict":
        return found
    print("\n".join(render(found)))
    return None


def collect() -> Found:
    """Everything that `show_config` and the doctor tell. `errors` lists settings that cannot be used."""
    errors: list[str] = []
    nowhere: Found = {"path": None, "usable": False, "problem": "no folder for it is known"}
    store = _ask(errors, store_facts, nowhere)
    compilers = _compilers(errors, store["usable"])
    cann = _cann(errors)
    found: Found = {
        "jitblas": {"version": __version__, "folder": os.path.dirname(__file__)},
        "python": {"version": platform.python_version(), "executable": sys.executable},
        "machine": f"{platform.system()} {platform.machine()}",
        "packages": {name: _package_version(name) for name in PACKAGES},
        "kernels": _ask(errors, config.kernels_folder, None),
        "compilers": compilers,
        "cann": cann,
        "operators": _operators(cann["version"]),
        "targets": _targets(compilers, cann, store["usable"]),
        "default_target": _ask(errors, default_target, None),
        "store": store,
        "fleet": _fleet(errors),
        "threads": _ask(errors, config.threads, None),
        "settings": _settings(),
    }
    checks = (
        config.mode, config.twin_build, config.extra_flags, config.lock_timeout, config.remote_timeout,
        config.cache_max_size, config.jobs,
    )  # fmt: skip
    for check in checks:
        _ask(errors, check, None)
    return found | {"errors": list(dict.fromkeys(errors))}


def _ask(errors: list[str], question: Callable[[], Answer], otherwise: Answer) -> Answer:
    """The answer, or `otherwise` and a line in `errors`."""
    try:
        return question()
    except (Error, ValueError, OSError) as error:
        errors.append(str(error))
        return otherwise


def _package_version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _compilers(errors: list[str], store_usable: bool) -> list[Found]:
    """One row per candidate of every target: `counts` is True, False, or None if it was not asked."""
    rows: list[Found] = []
    for target in TARGETS:
        rows += _ask(errors, functools.partial(_tried, target, store_usable), [])
    return rows


def _tried(target: str, store_usable: bool) -> list[Found]:
    root = root_of(config.cache_folder()) if store_usable else None
    memos = os.path.join(root, "toolchains") if root is not None and config.mode() != "off" else None
    cache = os.path.join(root, "compiler-cache") if root is not None else None
    answers = toolchain.survey(target, memos, cache, cpu.fingerprint())
    rows: list[Found] = []
    seen: set[str] = set()
    for compiler in toolchain.compilers(target):
        drivers = list(dict.fromkeys(compiler.candidates()))
        for driver in drivers or [(_looked_for(compiler.name),)]:
            row = {"target": target, "command": " ".join(driver)}
            if compiler.name == "zig" and drivers and any(other["counts"] for other in rows):
                # Its first run takes most of a minute, here for nothing.
                rows.append(row | {"counts": None, "detail": "found; not asked, since another one counts"})
                continue
            _, answer = next(answers)
            program = os.path.realpath(driver[0])
            if len(driver) > 1 or program not in seen:  # c++ is most often a link to g++
                rows.append(row | _verdict(answer))
            seen.add(program)
        if compiler.name == "gnu" and drivers and not os.environ.get("JITBLAS_CXX"):
            absent = (name for name in ("g++", "clang++") if shutil.which(name) is None)
            rows += ({"target": target, "command": name, **_verdict("not found")} for name in absent)
    return rows


def _looked_for(kind: str) -> str:
    """What was looked for in vain."""
    variable = {"gnu": "JITBLAS_CXX", "bisheng": "JITBLAS_BISHENG"}.get(kind, "")
    named = os.environ.get(variable)
    return f"{variable}={named}" if named else {"gnu": "g++, clang++"}.get(kind, kind)


def _verdict(answer: Toolchain | str) -> Found:
    if isinstance(answer, Toolchain):
        return {"counts": True, "kind": answer.name, "detail": answer.version}
    return {"counts": False, "detail": answer}


def _cann(errors: list[str]) -> Found:
    usable, device = _ask(errors, acl.availability, (False, "the runtime cannot be asked"))
    return {
        "home": os.environ.get("ASCEND_HOME_PATH"),
        "version": _ask(errors, cann_version, None),
        "library": _ask(errors, acl.find_library, None),
        "device": {"usable": usable, "detail": device},
    }


def _operators(cann: str | None) -> Found:
    """Operator -> the CANN version it needs, and whether the one found suffices (None: there is none)."""
    return {
        name: {
            "minimum_cann": operator.minimum_cann,
            "suffices": None if cann is None else version_at_least(cann, operator.minimum_cann),
        }
        for name, operator in OPERATORS.items()
    }


def _targets(compilers: list[Found], cann: Found, store_usable: bool) -> Found:
    """Target -> whether kernels can be run on it here, and why."""
    compiling = os.environ.get("JITBLAS_MODE") != "load"
    counting = {row["target"]: row for row in reversed(compilers) if row["counts"] and compiling}
    works: Found = {}
    for target in TARGETS:
        compiler = counting.get(target)
        stored = compiler is None and store_usable and _holds_kernels(target)
        detail = "no compiler counts" if compiling else "JITBLAS_MODE=load: never compiles"
        if compiler is not None:
            detail = f"compiles with {compiler['command']}"
        if stored:
            detail = f"{detail}; runs what the store holds"
        ready = compiler is not None or stored
        if target == ASCEND950PR:
            ready = ready and cann["device"]["usable"]
            detail = f"{detail}; {'a device answers' if cann['device']['usable'] else 'no device answers'}"
        works[target] = {"works": ready, "detail": detail}
    return works


def _holds_kernels(target: str) -> bool:
    """Whether the store has kernels for a target, and the host runtime where they need it."""
    store = opened_store()
    if store is None:
        return False
    if target == HOST:
        return bool(store.candidates(libraries.recipe_of(libraries.RUNTIME).what))
    return any(meta.get("target") == target for _, meta in store.entries())


def _fleet(errors: list[str]) -> Found:
    """Where kernels may come from besides the store, and who is trusted."""
    from jitblas.store import prebuilt, signatures

    path = _ask(errors, config.trusted_keys_file, None)
    nobody: dict[str, str] = {}
    trusted = nobody if path is None else _ask(errors, lambda: signatures.read_trusted(path), nobody)
    return {
        "remote": config.remote() or None,
        "trusted_keys": path,
        "trusted": len(trusted),
        "prebuilt": [package.facts() for package in prebuilt.installed()],
    }


def _settings() -> Found:
    """Environment variable -> its value and whether it is set; unset ones have their default."""
    return {
        name: {
            "value": os.environ.get(name) or default,
            "set": bool(os.environ.get(name)),
            "meaning": meaning,
        }
        for name, default, meaning in config.SETTINGS
    }


def store_facts() -> Found:
    """The store's folder and whether code in it is trusted and more can be put there. Creates nothing."""
    root = root_of(config.cache_folder())
    exists = os.path.lexists(root)
    problem = refusal(root, (os.geteuid(),)) if exists else None
    above = root
    while not os.path.lexists(above):
        above = os.path.dirname(above)
    writable = os.path.isdir(above) and os.access(above, os.W_OK | os.X_OK)
    facts: Found = {
        "path": root,
        "exists": exists,
        "trusted": problem is None,
        "writable": writable,
        "usable": problem is None and writable,
        "problem": problem or (None if writable else f"cannot be written ({above})"),
        "read_only": [root_of(folder) for folder in config.read_only_folders()],
    }
    store = opened_store() if facts["usable"] else None
    sizes = [folder_bytes(folder_of(store.root, key)) for key in store.stored_keys()] if store else []
    return facts | {"entries": len(sizes), "bytes": sum(sizes)}


def opened_store() -> Store | None:
    """The store on disk, whatever JITBLAS_MODE says; None if it was not made yet.

    Raises
    ------
    CacheError
        Its folder is not one that we would run code from.
    """
    folder = config.cache_folder()
    root = root_of(folder)
    if not os.path.lexists(root):
        return None
    reason = refusal(root, (os.geteuid(),))
    if reason is None and not os.access(root, os.W_OK | os.X_OK):
        reason = "cannot be written"
    if reason is not None:
        raise CacheError(f"the store {root} {reason}; set JITBLAS_CACHE_DIR to a folder of your own")
    return Store(folder, config.read_only_folders())
