"""Make a table of methods from their submissions, and verify these by replaying their proofs."""

from __future__ import annotations

import argparse
import json
import secrets
from dataclasses import replace
from pathlib import Path

from echelon_env.cli.arguments import positive
from echelon_env.cli.output import show_status
from echelon_env.cli.tournament import check_different, check_outputs
from echelon_env.config.schema import ConfigError
from echelon_env.evaluate.submission import Draw, Submission, SubmissionError, read_submission, verify_submission
from echelon_env.evaluate.suite import SUITES, load_suite
from echelon_env.storage.atomic import write_bytes

REFUSED = 1
"""Exit code if a file is not valid, fails to verify, or is a copy of another one."""


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
        help="replay the battles of all submissions first; those that fail are not ranked, and the exit code is 1",
    )
    add(
        "--battles",
        type=positive,
        metavar="N",
        help="with --verify: replay N drawn battles of each scenario and submission (default: all that were not lost)",
    )
    add(
        "--nonce",
        metavar="TEXT",
        help="with --battles: of the draw, unknown to the submitters (default: a random one, which is printed)",
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
    from echelon_env.evaluate.leaderboard import (
        INCOMPLETE,
        check_scenarios,
        format_leaderboard,
        leaderboard_markdown,
        make_leaderboard,
    )

    check_outputs({"--out": args.out}, {})
    check_different(args.scenario or [])
    for file in args.files:
        if args.files.count(file) > 1:
            raise ConfigError(f"{file} is named twice")
    draw = _read_draw(args)
    suite = load_suite(args.suite) if args.suite else None
    check_scenarios(args.scenario or [], map(load_suite, SUITES) if suite is None else [suite])
    submissions: dict[str, Submission] = {}
    invalid: dict[str, str] = {}
    failures: dict[str, tuple[str, ...]] = {}
    for file in args.files:
        try:
            submission = read_submission(file, suite=suite)
        except OSError as error:
            invalid[file] = error.strerror or str(error)
            continue
        except SubmissionError as error:
            invalid[file] = str(error).removeprefix(f"{file}: ")
            continue
        if args.verify:
            failures[file] = _verify(file, submission, draw, args.threads)
        submissions[file] = replace(submission, proofs={})  # which may be large
    document = make_leaderboard(
        submissions,
        scenarios=args.scenario,
        failures=failures if args.verify else None,
        draw=draw,
        invalid=invalid,
    )
    print(json.dumps(document, allow_nan=False) if args.json else format_leaderboard(document))
    if args.out:
        write_bytes(args.out, leaderboard_markdown(document).encode())
    parts = [document, *document["boards"]]
    return REFUSED if any(each["why"] != INCOMPLETE for part in parts for each in part["not_ranked"]) else 0


def _read_draw(args: argparse.Namespace) -> Draw | None:
    """The draw of the options, None for all battles. Raises ConfigError."""
    for option, value, needed, given in (
        ("--battles", args.battles, "--verify", args.verify),
        ("--nonce", args.nonce, "--battles N", args.battles),
    ):
        if value is not None and not given:
            raise ConfigError(f"{option}: takes {needed}, too")
    if args.battles is None:
        return None
    try:
        return Draw(args.battles, secrets.token_hex(16) if args.nonce is None else args.nonce)
    except ConfigError as error:
        raise ConfigError(f"--{error}") from None  # it begins with the field


def _verify(file: str, submission: Submission, draw: Draw | None, num_threads: int) -> tuple[str, ...]:
    """Sentences about failures."""
    show_status(f"verifying {file}")
    try:
        return verify_submission(submission, draw, num_threads=num_threads)
    except SubmissionError as error:
        return (str(error),)
    finally:
        show_status("")
