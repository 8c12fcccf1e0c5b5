"""Keep a league: members, their matches and ratings, a champion."""

from __future__ import annotations

import argparse
import importlib
import json

from echelon_train.cli.league.arguments import add_arguments
from echelon_train.errors import TrainError

__all__ = ["EXPECTED_ERRORS", "REMOVED_OPTIONS", "add_arguments", "run"]

EXPECTED_ERRORS = (TrainError,)
REMOVED_OPTIONS = {"--ray", "--picture", "--curve-picture", "--nash-picture"}


def run(args: argparse.Namespace) -> int:
    """Run the command that was chosen, and print its result."""
    module = importlib.import_module(f"{__name__}.{args.module}")  # now: most bring packages that take seconds
    document, lines, code = getattr(module, args.function)(args)
    document = {"league": str(args.league), **document}
    print(json.dumps(document, indent=2, allow_nan=False) if args.json else "\n".join(lines), flush=True)
    return int(code)
