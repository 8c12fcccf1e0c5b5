"""The commands `echelon league export` and `echelon league import`."""

from __future__ import annotations

import argparse

from echelon_train.cli.league.output import plural, print_result
from echelon_train.league.store.registry import League
from echelon_train.league.store.transfer import export_league, import_league


def run_export(args: argparse.Namespace) -> int:
    """Write a league to one file."""
    league = League.open(args.league)
    export_league(league, args.file)
    size = args.file.stat().st_size
    document = {"league": str(args.league), "file": str(args.file), "bytes": size}
    print_result(args, document, [f"{args.file}: {len(league.members())} members, {size:,} bytes"])
    return 0


def run_import(args: argparse.Namespace) -> int:
    """Create a league from an exported one."""
    members = import_league(args.file, args.league).members()
    document = {"league": str(args.league), "members": [member.name for member in members]}
    print_result(args, document, [f"{args.league}: {plural(len(members), 'member')}"])
    return 0
