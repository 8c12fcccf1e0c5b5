"""The options of `echelon evaluate` that write a submission."""

from __future__ import annotations

import argparse
import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from echelon_env.cli.arguments import parse_settings
from echelon_env.cli.output import show_status
from echelon_env.config.schema import ConfigError, nearest_name
from echelon_env.evaluate.matches import Match
from echelon_env.evaluate.players import Player
from echelon_env.evaluate.submission import Method, make_submission, write_submission
from echelon_env.evaluate.submission.document import check_player, default_method
from echelon_env.evaluate.suite import Suite

_KEYS = ("authors", "url", "decisions", "cpu_minutes", "hardware", "note")
_NUMBERS = {"decisions": "an integer, such as 1e6", "cpu_minutes": "a number"}


def add_arguments(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """Declare the options, and return them."""
    add = parser.add_argument_group("submission").add_argument
    submit = add(
        "--submit",
        type=Path,
        metavar="FILE",
        help="new file (JSON) with a single player's results on the suite, which others verify by replaying its "
        "battles; a scripted level also plays against itself",
    )
    method = add("--method", metavar="NAME", help="name of the method (default: the last part of the player's)")
    about = add("--about", action="append", default=[], metavar="KEY=VALUE", help=f"of the method: {', '.join(_KEYS)}")
    return [submit, method, about]


def check(args: argparse.Namespace) -> None:
    """Raise ConfigError for options that cannot be fulfilled with any player."""
    if args.submit is None:
        for option, value in (("--method", args.method), ("--about", args.about)):
            if value:
                raise ConfigError(f"{option}: takes --submit FILE, too")
        return
    if not args.suite:
        raise ConfigError("--submit: takes --suite, whose battles everyone plays")
    if len(args.players) > 1:
        raise ConfigError("--submit: takes one player")


def read_method(args: argparse.Namespace, player: Player) -> Method:
    """The method of the options, for the player. Raises ConfigError. Call it before any battle is played."""
    try:
        check_player(player.action_mode, player.identity)
    except ConfigError as error:
        raise ConfigError(f"--submit: {player.name}: {error}") from None
    try:
        known = default_method(player) if args.method is None else default_method(player, args.method)
    except ConfigError as error:
        raise ConfigError(f"--method: {error}") from None
    about: dict[str, Any] = {}
    for key, text in parse_settings(args.about, "--about").items():
        if key == "name":
            raise ConfigError("--about: expected the name in --method NAME, got 'name'")
        if key not in _KEYS:
            raise ConfigError(f"--about: unknown key {key!r}{nearest_name(key, _KEYS)}")
        about[key] = _number(key, text) if key in _NUMBERS else text
    try:
        return dataclasses.replace(known, **about)
    except ConfigError as error:
        raise ConfigError(f"--about: {error}") from None


def write(args: argparse.Namespace, matches: Sequence[Match], player: Player, suite: Suite, method: Method) -> str:
    """Write the submission of a player's matches on the suite. Returns a line about it. Raises OSError."""
    show_status("recording the proofs of the submission")
    try:
        submission = make_submission(matches, player=player, suite=suite, method=method, num_threads=args.threads)
    finally:
        show_status("")
    write_submission(args.submit, submission)
    complete = submission.complete
    part = f"; a part of the suite, complete: {', '.join(complete) or 'no scenario'}"
    whole = len(complete) == len(suite.scenarios)
    return f"Submission: {args.submit} ({len(submission.proofs)} battles proved{'' if whole else part})"


def _number(key: str, text: str) -> Any:
    """A number such as ``1_000_000`` or ``1e6``, an integer where the method has one. Raises ConfigError."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or (key == "decisions" and not value.is_integer()):
        raise ConfigError(f"--about: {key}: expected {_NUMBERS[key]}, got {text!r:.80}")
    return int(value) if key == "decisions" else value
