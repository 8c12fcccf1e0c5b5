"""The commands `echelon league rebuild` and `fsck`."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from echelon_train.cli.league.output import Result, plural, wrap
from echelon_train.league.store.fsck import fsck
from echelon_train.league.store.registry import League

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
