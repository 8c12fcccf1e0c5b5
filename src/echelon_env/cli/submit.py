"""The options of `echelon evaluate` that write a submission."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from echelon_env.cli.arguments import parse_settings
from echelon_env.cli.tournament import check_new_file, show_status
from echelon_env.config.schema import ConfigError, build
from echelon_env.config.toml_file import parse_value
from echelon_env.evaluate.matches import Match
from echelon_env.evaluate.players import Player
from echelon_env.evaluate.submission import Method, make_submission, write_submission
from echelon_env.evaluate.submission.document import check_text
from echelon_env.evaluate.suite import Suite

_KEYS = "authors, url, decisions and cpu_minutes of the training, hardware, note"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument_group("submission").add_argument
    add(
        "--submit",
        type=Path,
        metavar="FILE",
        help="new file (JSON) with a single player's results on the suite, which others verify by replaying drawn "
        "battles; a scripted level also plays against itself",
    )
    add("--method", metavar="NAME", help="name of the method (default: the player's)")
    add("--about", action="append", default=[], metavar="KEY=VALUE", help=f"about the method: {_KEYS}")
    add("--challenge", default="", metavar="TEXT", help="changes the draw: a text from the person who verifies")


def check(args: argparse.Namespace) -> None:
    """Raise ConfigError or OSError for options that cannot be fulfilled. Call it before any battle is played."""
    if args.submit is None:
        for option, value in (("--method", args.method), ("--about", args.about), ("--challenge", args.challenge)):
            if value:
                raise ConfigError(f"{option}: takes --submit FILE, too")
        return
    if not args.suite:
        raise ConfigError("--submit: takes --suite, whose battles everyone plays")
    if len(args.players) > 1:
        raise ConfigError("--submit: takes one player")
    _method(args, "a method", 0)
    check_text("--challenge", args.challenge)
    check_new_file(args.submit)


def write(args: argparse.Namespace, matches: Sequence[Match], player: Player, suite: Suite) -> str:
    """Write the submission of a player's matches on the suite. Returns a line about it. Raises OSError."""
    show_status("recording the proofs of the submission")
    submission = make_submission(
        matches,
        player=player,
        suite=suite,
        method=_method(args, player.name, int(player.identity.get("steps", 0))),
        challenge=args.challenge,
        num_threads=args.threads,
    )
    show_status("")
    write_submission(args.submit, submission)
    complete = ", ".join(submission.complete) or "no scenario"
    part = f"; a part of the suite, complete: {complete}" if submission.partial else ""
    return f"Submission: {args.submit} ({len(submission.proofs)} battles proved{part})"


def _method(args: argparse.Namespace, name: str, decisions: int) -> Method:
    """The method of the options. Raises ConfigError."""
    about = {key: parse_value(text) for key, text in parse_settings(args.about, "--about").items()}
    method: Method = build(Method, {"name": args.method or name, "decisions": decisions, **about}, "about.")
    return method
