"""`jitblas cache prune|clear`: taking entries out of the store."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from jitblas import config
from jitblas.cli import USAGE, argument
from jitblas.errors import CacheError
from jitblas.report import opened_store
from jitblas.store import eviction
from jitblas.units import parse_duration, parse_size, size_text

if TYPE_CHECKING:
    from jitblas.cli.cache import Add


def add_actions(add: Add) -> None:
    pruned = add("prune", "delete entries by age or last use, or until the store is small enough", _prune)
    pruned.add_argument(
        "--max-size",
        type=argument(parse_size),
        metavar="SIZE",
        help="the longest unused go until this is kept, e.g. 500M",
    )
    pruned.add_argument(
        "--older-than", type=argument(parse_duration), metavar="AGE", help="compiled longer ago than this, e.g. 30d"
    )
    pruned.add_argument(
        "--unused-for", type=argument(parse_duration), metavar="AGE", help="last used longer ago than this, e.g. 4w"
    )
    pruned.add_argument("--dry-run", action="store_true", help="only tell what would go")
    add("clear", "delete every entry of the store", _clear)


def _prune(arguments: argparse.Namespace) -> int:
    limits = (arguments.max_size, arguments.older_than, arguments.unused_for)
    most = arguments.max_size if any(limit is not None for limit in limits) else config.cache_max_size()
    if most is None and arguments.older_than is None and arguments.unused_for is None:
        print("jitblas: nothing says what to prune: give --max-size, --older-than or --unused-for", file=sys.stderr)
        return USAGE
    store = opened_store()
    if store is None:
        print(f"nothing to prune: there is no store in {config.cache_folder()}")
        return 0
    gone = eviction.prune(
        store,
        most_bytes=most,
        older_than=arguments.older_than,
        unused_for=arguments.unused_for,
        pretend=arguments.dry_run,
    )
    for item in gone:
        print(
            f"{item.key.what[:12]}/{item.key.how[:8]} {size_text(item.nbytes):>8}  {item.meta.get('title', 'damaged')}"
        )
    how = "would be deleted" if arguments.dry_run else "deleted"
    print(f"{len(gone)} entries, {size_text(sum(item.nbytes for item in gone))}, {how}")
    return 0


def _clear(_: argparse.Namespace) -> int:
    store = opened_store()
    if store is None:
        print(f"nothing to clear: there is no store in {config.cache_folder()}")
        return 0
    nbytes = sum(item.nbytes for item in eviction.kept(store))
    try:
        count = store.clear()
    except OSError as error:
        raise CacheError(f"the store {store.root} was cleared in part only: {error}") from None
    print(f"{count} entries, {size_text(nbytes)}, deleted from {store.root}")
    return 0
