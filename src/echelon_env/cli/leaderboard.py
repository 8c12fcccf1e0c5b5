"""Make a table of methods from their submissions, and verify these by replaying their proofs."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path

from echelon_env.cli.arguments import positive
from echelon_env.cli.tournament import check_different, check_new_file, show_status
from echelon_env.config.schema import ConfigError
from echelon_env.evaluate.submission import Submission, SubmissionError, read_submission, verify_submission
from echelon_env.evaluate.submission.document import printable
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
        help="the suite's scenarios that count (default: a section for each set that a submission has completed)",
    )
    add(
        "--verify",
        action="store_true",
        help="replay the proved battles of all submissions first; those that fail are not ranked, and the exit code "
        "is 1",
    )
    add(
        "--threads",
        type=positive,
        default=1,
        help="number of threads of battles and players (default: %(default)s)",
    )
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
            raise ConfigError(f"{printable(file)} is named twice")
        try:
            submissions[file] = read_submission(file, suite=suite)
        except OSError as error:
            raise ConfigError(f"{printable(file)}: {error.strerror or error}") from None
    failures = _verify(submissions, args.threads) if args.verify else None
    document = make_leaderboard(submissions, scenarios=args.scenario, failures=failures)
    print(json.dumps(document, allow_nan=False) if args.json else format_leaderboard(document))
    if args.out:
        write_bytes(args.out, leaderboard_markdown(document).encode())
    return FAILED if any((failures or {}).values()) else 0


def _verify(submissions: Mapping[str, Submission], num_threads: int) -> dict[str, tuple[str, ...]]:
    """For each file sentences about failures."""
    failures: dict[str, tuple[str, ...]] = {}
    try:
        for file, submission in submissions.items():
            show_status(f"verifying {printable(file)}")
            try:
                failures[file] = verify_submission(submission, num_threads=num_threads)
            except SubmissionError as error:
                failures[file] = (str(error),)
    finally:
        show_status("")
    return failures
