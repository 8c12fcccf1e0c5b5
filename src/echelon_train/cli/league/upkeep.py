"""Looking after a league: ratings anew, damage, a copy in one file."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from echelon_train.cli.league.output import deliver, plural, wrap
from echelon_train.league.store.fsck import fsck
from echelon_train.league.store.registry import League
from echelon_train.league.store.transfer import export_league, import_league

_DAMAGED = 1  # exit code


def run_rebuild(args: argparse.Namespace) -> int:
    """Make all ratings anew from the matches, and say how many were others before."""
    changed = League.open(args.league).rebuild()
    before = "as they were" if not changed else f"{plural(changed, 'of them was', 'of them were')} different before"
    deliver(args, {"league": str(args.league), "changed": changed}, [f"All ratings are made anew: {before}."])
    return 0


def run_fsck(args: argparse.Namespace) -> int:
    """Look for damage. Returns 1 if there is some."""
    findings = fsck(args.league)
    lines = [f"{args.league}: {plural(len(findings), 'finding') if findings else 'nothing is damaged'}"]
    for finding in findings:
        lines += wrap(f"- {finding.subject}: {finding.problem}. To do: {finding.remedy}.")
    deliver(args, {"league": str(args.league), "findings": [asdict(finding) for finding in findings]}, lines)
    return _DAMAGED if findings else 0


def run_export(args: argparse.Namespace) -> int:
    """Write a league into one file."""
    league = League.open(args.league)
    export_league(league, args.file)
    size = args.file.stat().st_size
    document = {"league": str(args.league), "file": str(args.file), "bytes": size}
    deliver(args, document, [f"{args.file}: {len(league.members())} members, {size:,} bytes"])
    return 0


def run_import(args: argparse.Namespace) -> int:
    """Make a league from an exported one."""
    members = import_league(args.file, args.league).members()
    document = {"league": str(args.league), "members": [member.name for member in members]}
    deliver(args, document, [f"{args.league}: {plural(len(members), 'member')}"])
    return 0
