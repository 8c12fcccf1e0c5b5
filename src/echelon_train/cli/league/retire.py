"""The command `echelon league retire`."""

from __future__ import annotations

import argparse

from echelon_train.cli.league.output import print_result
from echelon_train.league.store.registry import League


def run_retire(args: argparse.Namespace) -> int:
    """Retire a member."""
    League.open(args.league).retire(args.name)
    print_result(args, {"league": str(args.league), "retired": [args.name]}, [f"{args.name} is retired."])
    return 0
