"""`jitblas doctor`: the report of `jitblas.show_config()`, and what to do about what is missing."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import Any

from jitblas import report, toolchain
from jitblas.hardware import ASCEND950PR, HOST
from jitblas.report_text import render

Advice = dict[str, str]

OPTIONAL = {
    "ml_dtypes": "NumPy arrays of BF16 (jitblas works without)",
}
"""Package that is nice to have -> what for."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout, nothing else")


def run(arguments: argparse.Namespace) -> int:
    """0 if at least one target works and no setting is wrong, else 1."""
    found = report.collect()
    advice = list(advise(found))
    works = any(target["works"] for target in found["targets"].values()) and not found["errors"]
    if arguments.json:
        print(json.dumps({"works": works, **found, "advice": advice}, indent=1))
        return 0 if works else 1
    print("\n".join(render(found)))
    print()
    for item in advice:
        print(f"{item['what']}\n    {item['remedy']}")
    usable = [name for name, target in found["targets"].items() if target["works"]]
    print(f"works: {', '.join(usable)}" if works else "nothing works yet: see above")
    return 0 if works else 1


def advise(found: dict[str, Any]) -> Iterator[Advice]:
    """What is wrong or missing, with what mends it; what stops everything comes first."""
    for error in found["errors"]:
        yield {"what": f"wrong setting: {error}", "remedy": "correct or unset the variable"}
    for name, version in found["packages"].items():
        if version is None and name in report.NEEDED:
            yield {"what": f"the package {name} is missing", "remedy": f"pip install {name}"}
        elif version is None and name in OPTIONAL:
            yield {"what": f"optional: {name}, for {OPTIONAL[name]}", "remedy": f"pip install {name}"}
    if found["kernels"] is None:
        yield {
            "what": "the kernel sources are missing",
            "remedy": "pip install --force-reinstall --no-deps jitblas",
        }
    yield from _about_store(found["store"])
    yield from _about_fleet(found["fleet"])
    if not found["targets"][HOST]["works"]:
        yield {"what": f"target {HOST}: {found['targets'][HOST]['detail']}", "remedy": _remedy(HOST)}
    yield from _about_ascend(found)


def _about_store(store: dict[str, Any]) -> Iterator[Advice]:
    if store["problem"] is None:
        return
    yield {
        "what": f"the store {store['path'] or ''} {store['problem']}; every process compiles anew",
        "remedy": "export JITBLAS_CACHE_DIR=/a/folder/of/your/own",
    }


def _about_fleet(fleet: dict[str, Any]) -> Iterator[Advice]:
    if fleet["remote"] and not fleet["trusted"]:
        yield {
            "what": f"the remote store {fleet['remote']} is not asked: nobody who signs kernels is trusted",
            "remedy": "jitblas cache trust KEY.pub",
        }
    for package in fleet["prebuilt"]:
        if package["problem"] is not None:
            yield {
                "what": f"prebuilt kernels {package['verdict']}",
                "remedy": "build it anew: jitblas cache package, pip wheel",
            }


def _about_ascend(found: dict[str, Any]) -> Iterator[Advice]:
    cann = found["cann"]
    if not any(row["counts"] for row in found["compilers"] if row["target"] == ASCEND950PR):
        yield {"what": f"to compile for {ASCEND950PR}: bisheng is missing", "remedy": _remedy(ASCEND950PR)}
    if not cann["device"]["usable"]:
        what, _, remedy = cann["device"]["detail"].partition(": ")
        yield {
            "what": f"to run on {ASCEND950PR}: {what}",
            "remedy": remedy or "see npu-smi info for what the driver shows",
        }
    for name, facts in found["operators"].items():
        if facts["suffices"] is False:
            needed = f"CANN {facts['minimum_cann']} or newer"
            yield {
                "what": f"{name} on {ASCEND950PR} needs {needed}, this is {cann['version']}",
                "remedy": f"install {needed} and source its set_env.sh",
            }


def _remedy(target: str) -> str:
    return "; or ".join(compiler.remedy for compiler in toolchain.compilers(target))
