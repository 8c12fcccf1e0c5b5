"""Play a round robin of the champion, all scripted levels, the random player and the idle player."""

from __future__ import annotations

import argparse
import itertools

from echelon_env.cli import tournament
from echelon_env.cli.films import add_replays, read_replays, write_replays
from echelon_env.evaluate.players import BASELINES, baseline
from echelon_env.evaluate.suite import load_suite

SUITE = "echelon-eval-v2"
"""The suite whose scenarios and maps the ladder uses."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    add = parser.add_argument
    add("--scenario", nargs="+", metavar="NAME", help=f"scenarios of the suite {SUITE} (default: all)")
    add(
        "--battles",
        type=tournament.even,
        default=200,
        metavar="N",
        help="battles per pairing and scenario, on the first maps of the suite (default: %(default)s)",
    )
    tournament.add_arguments(parser)
    add_replays(parser)


def run(args: argparse.Namespace) -> int:
    """Play the matches and print the report."""
    count, replays = read_replays(args)
    tournament.check_outputs({}, {"--out": args.out, "--replays": replays})
    suite = load_suite(SUITE)
    fields = tournament.suite_fields(suite, args.scenario, args.battles)
    players = [baseline(name) for name in reversed(BASELINES)]  # the strongest first
    pairings = [*itertools.combinations(players, 2)]
    matches = tournament.play_and_report(pairings, players, fields, suite, 0, args)
    if replays:
        tournament.say(args, write_replays(replays, count, matches, pairings, fields))
    return 0
