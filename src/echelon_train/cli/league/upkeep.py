"""The commands `echelon league rebuild`, `fsck`, `export` and `import`."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from echelon_train.cli.league.output import Result, plural, wrap
from echelon_train.league.store.fsck import fsck
from echelon_train.league.store.registry import League
from echelon_train.league.store.transfer import export_league, import_league

_DAMAGED = 1  # exit code


def run_rebuild(args: argparse.Namespace) -> Result:
    """Compute all ratings again from the matches, and print how many changed."""
    changed = League.open(args.league).rebuild()
    number = "none has" if not changed else plural(changed, "rating has", "ratings have")
    return Result({"changed": changed}, [f"All ratings are computed again: {number} changed."])


def run_fsck(args: argparse.Namespace) -> Result:
    """Check a league for damage. Returns 1 if it is damaged."""
    findings = fsck(args.league)
    lines = [f"{args.league}: {plural(len(findings), 'finding') if findings else 'nothing is damaged'}"]
    for finding in findings:
        lines += wrap(f"- {finding.subject}: {finding.problem}. To do: {finding.remedy}.")
    return Result({"findings": [asdict(finding) for finding in findings]}, lines, _DAMAGED if findings else 0)


def run_export(args: argparse.Namespace) -> Result:
    """Write a league to one file."""
    league = League.open(args.league)
    export_league(league, args.file)
    size = args.file.stat().st_size
    lines = [f"{args.file}: {len(league.members())} members, {size:,} bytes"]
    return Result({"file": str(args.file), "bytes": size}, lines)


def run_import(args: argparse.Namespace) -> Result:
    """Create a league from an exported one."""
    members = import_league(args.file, args.league).members()
    names = [member.name for member in members]
    return Result({"members": names}, [f"{args.league}: {plural(len(members), 'member')}"])
