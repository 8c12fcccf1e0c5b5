"""Keep a league: members, their matches and ratings, a champion."""

from __future__ import annotations

import argparse
import importlib

from echelon_train.cli.league.arguments import add_arguments
from echelon_train.errors import TrainError

__all__ = ["EXPECTED_ERRORS", "add_arguments", "run"]

EXPECTED_ERRORS = (TrainError,)


def run(args: argparse.Namespace) -> int:
    """Run the command that was chosen."""
    module = importlib.import_module(f"{__name__}.{args.module}")  # now: most bring packages that take seconds
    code: int = getattr(module, args.function)(args)
    return code
