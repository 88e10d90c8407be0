"""The text of a report (see :mod:`jitblas.report`)."""

from __future__ import annotations

from typing import Any

from jitblas.units import size_text

Found = dict[str, Any]


MARKS = {True: "yes", False: "no", None: "-"}


def render(found: Found) -> list[str]:
    """The report as lines of text."""
    packages = ", ".join(f"{name} {version or 'missing'}" for name, version in found["packages"].items())
    lines = [
        f"jitblas {found['jitblas']['version']} in {found['jitblas']['folder']}",
        f"Python {found['python']['version']} ({found['python']['executable']}) on {found['machine']}",
        f"packages: {packages}",
        f"kernel sources: {found['kernels'] or 'missing'}",
        f"threads: {found['threads'] or 'unknown'}",
        "",
        f"targets (default: {found['default_target'] or 'unknown'})",
    ]
    lines += [f"  {name:<12} {MARKS[facts['works']]:<4} {facts['detail']}" for name, facts in found["targets"].items()]
    lines += ["", "compilers (does it count?)"]
    lines += [
        f"  {row['target']:<12} {MARKS[row['counts']]:<4} {row['command']}: {row['detail']}"
        for row in found["compilers"]
    ]
    return [
        *lines,
        "",
        *_render_cann(found),
        "",
        *_render_store(found["store"]),
        *_render_fleet(found["fleet"]),
        "",
        *_render_settings(found),
    ]


def _render_cann(found: Found) -> list[str]:
    cann = found["cann"]
    lines = [
        f"CANN toolkit {cann['version'] or 'not found'} (ASCEND_HOME_PATH={cann['home'] or ''})",
        f"  runtime library: {cann['library'] or 'not found'}",
        f"  device: {cann['device']['detail']}",
    ]
    for name, facts in found["operators"].items():
        verdict = {True: "found", False: f"this is {cann['version']}", None: "no toolkit"}[facts["suffices"]]
        lines.append(f"  {name} needs CANN {facts['minimum_cann']} or newer: {verdict}")
    return lines


def _render_store(store: Found) -> list[str]:
    if not store["usable"]:
        return [f"store {store['path'] or '(unknown)'} {store['problem']}"]
    if not store["exists"]:
        return [f"store {store['path']}: not there yet, made at the first compile"]
    lines = [f"store {store['path']}: {store['entries']} entries, {size_text(store['bytes'])}, trusted, writable"]
    return lines + [f"  read-only: {folder}" for folder in store["read_only"]]


def _render_fleet(fleet: Found) -> list[str]:
    lines = [f"  remote: {fleet['remote']}"] if fleet["remote"] else []
    lines += [f"  trusted keys: {fleet['trusted']} in {fleet['trusted_keys']}"] if fleet["trusted"] else []
    return lines + [f"  prebuilt: {package['verdict']}" for package in fleet["prebuilt"]]


def _render_settings(found: Found) -> list[str]:
    lines = ["settings (* set in the environment)"]
    for name, facts in found["settings"].items():
        lines.append(f"  {'*' if facts['set'] else ' '} {name}={facts['value']}")
    return lines
