"""Ratings computed again from the matches, from the command line."""

from __future__ import annotations

import argparse

from echelon_train.cli.league.output import deliver, plural
from echelon_train.league.store.registry import League


def run_rebuild(args: argparse.Namespace) -> int:
    """Compute all ratings again from the matches, and say how many changed."""
    changed = League.open(args.league).rebuild()
    before = "as they were" if not changed else f"{plural(changed, 'of them was', 'of them were')} different before"
    deliver(args, {"league": str(args.league), "changed": changed}, [f"All ratings are computed again: {before}."])
    return 0
