"""The command `echelon league rebuild`."""

from __future__ import annotations

import argparse

from echelon_train.cli.league.output import plural, print_result
from echelon_train.league.store.registry import League


def run_rebuild(args: argparse.Namespace) -> int:
    """Compute all ratings again from the matches, and print how many changed."""
    changed = League.open(args.league).rebuild()
    number = "none has" if not changed else plural(changed, "rating has", "ratings have")
    lines = [f"All ratings are computed again: {number} changed."]
    print_result(args, {"league": str(args.league), "changed": changed}, lines)
    return 0
