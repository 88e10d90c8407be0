"""`jitblas cache`: the artifact store, for people. Entries are the truth; hit counts come from the index."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from jitblas.cli.cache import exchanging, looking, removing, signing

Action = Callable[[argparse.Namespace], int]
Add = Callable[[str, str, Action], argparse.ArgumentParser]
"""Adds an action: its name, what it does, and the function."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(metavar="ACTION", required=True)

    def add(name: str, text: str, run: Action) -> argparse.ArgumentParser:
        made = actions.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
        made.set_defaults(action=run)
        return made

    for module in (looking, removing, exchanging, signing):
        module.add_actions(add)


def run(arguments: argparse.Namespace) -> int:
    code: int = arguments.action(arguments)
    return code
