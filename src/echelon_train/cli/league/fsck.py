"""The command `echelon league fsck`."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from echelon_train.cli.league.output import plural, print_result, wrap
from echelon_train.league.store.fsck import fsck

_DAMAGED = 1  # exit code


def run_fsck(args: argparse.Namespace) -> int:
    """Check a league for damage. Returns 1 if it is damaged."""
    findings = fsck(args.league)
    lines = [f"{args.league}: {plural(len(findings), 'finding') if findings else 'nothing is damaged'}"]
    for finding in findings:
        lines += wrap(f"- {finding.subject}: {finding.problem}. To do: {finding.remedy}.")
    print_result(args, {"league": str(args.league), "findings": [asdict(finding) for finding in findings]}, lines)
    return _DAMAGED if findings else 0
