"""Make a table of methods from their submissions, and verify these by replaying their proofs."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from echelon_env.cli.arguments import positive
from echelon_env.cli.tournament import check_different, check_new_file, show_status
from echelon_env.config.schema import ConfigError
from echelon_env.evaluate.submission import Submission, SubmissionError, read_submission, verify_submission
from echelon_env.evaluate.suite import load_suite
from echelon_env.storage.atomic import write_bytes

FAILED = 1
"""Exit code if a submission is not verified."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    add = parser.add_argument
    add("files", nargs="+", metavar="FILE", help="submissions of echelon evaluate --submit")
    add("--suite", metavar="FILE", help="JSON file of the submissions' suite, if it is a custom one")
    add(
        "--scenario",
        nargs="+",
        metavar="NAME",
        help="the suite's scenarios that count (default: all; if no submission has all, those that all have)",
    )
    add(
        "--verify",
        action="store_true",
        help="replay the proved battles of all submissions first; the exit code is 1 if one is not verified",
    )
    add("--threads", type=positive, default=1, help="number of threads that step battles (default: %(default)s)")
    add("--json", action="store_true", help="print the leaderboard as JSON")
    add("--out", type=Path, metavar="FILE.md", help="new file for the leaderboard as Markdown")


def run(args: argparse.Namespace) -> int:
    """Read the submissions, verify them if asked to, and print their table."""
    # imports scipy.stats, which is slow
    from echelon_env.evaluate.leaderboard import format_leaderboard, leaderboard_markdown, make_leaderboard

    check_new_file(args.out)
    check_different(args.scenario or [])
    suite = load_suite(args.suite) if args.suite else None
    submissions: dict[str, Submission] = {}
    for file in args.files:
        if file in submissions:
            raise ConfigError(f"{file} is named twice")
        submissions[file] = read_submission(file, suite=suite)
    document = make_leaderboard(submissions, scenarios=args.scenario)
    if args.verify:
        document["verified"] = _verify(submissions, args.threads)
    print(json.dumps(document, allow_nan=False) if args.json else format_leaderboard(document))
    if args.out:
        write_bytes(args.out, leaderboard_markdown(document).encode())
    return FAILED if any(each["failures"] for each in document.get("verified", {}).values()) else 0


def _verify(submissions: Mapping[str, Submission], num_threads: int) -> dict[str, Any]:
    """For each file the number of replayed battles, and sentences about failures."""
    verified: dict[str, Any] = {}
    try:
        for file, submission in submissions.items():
            show_status(f"verifying {file}")
            try:
                failures = list(verify_submission(submission, num_threads=num_threads))
            except SubmissionError as error:
                failures = [str(error)]
            verified[file] = {"battles": len(submission.proofs), "failures": failures}
    finally:
        show_status("")
    return verified
