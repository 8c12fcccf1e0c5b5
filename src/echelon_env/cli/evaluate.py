"""Evaluate policies and scripted players: one against one, all against all, or on a frozen suite."""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from echelon_env.cli import record, submit, tournament
from echelon_env.cli.arguments import CommandParser, parse_settings, positive
from echelon_env.cli.output import command
from echelon_env.cli.tournament import Field, Pairing, even, make_player
from echelon_env.config.schema import ConfigError
from echelon_env.evaluate.battle_totals import BattleTotals
from echelon_env.evaluate.players import ACTION_MODES, Player
from echelon_env.evaluate.seeds import evaluation_seed, read_seeds
from echelon_env.evaluate.stamps import stamp
from echelon_env.evaluate.statistics_file import EvaluationTotals, StatisticsFile, write_statistics
from echelon_env.evaluate.suite import Suite, load_suite
from echelon_env.evaluate.tables import (
    INTERVALS,
    SHARES,
    WIDTH,
    describe_maps,
    format_bad_actions,
    format_report,
    format_share,
    shorten,
)
from echelon_env.evaluate.teams import check_rosters, teams_beside
from echelon_env.storage.atomic import write_bytes

REMOVED_OPTIONS = {"--film"}
_OPPONENT, _ALONE, _TOGETHER = "novice", "duel", "skirmish"
_BATTLES = 200


def add_arguments(parser: CommandParser) -> None:
    """Declare the command's options."""
    parser.usage = "echelon evaluate PLAYER [PLAYER ...] [options]"
    rare = parser.add_full_help("")
    add = parser.add_argument
    add(
        "players",
        nargs="+",
        metavar="PLAYER",
        help=f"run, checkpoint, LEAGUE/MEMBER, {', '.join(tournament.player_names())}, or with a handicap "
        "LEVEL@HANDICAP and policy:PATH@HANDICAP, or A+B, a team; several play each other",
    )
    add("--opponent", nargs="+", metavar="PLAYER", help=f"opponents of a single player (default: {_OPPONENT})")
    add("--partners", nargs="+", metavar="PLAYER", help="team-mates in turn: the player drives half of a team's mechs")
    add("--suite", help="name or JSON file of a frozen suite, which has its own opponents and maps")
    add(
        "--scenario",
        nargs="+",
        metavar="NAME",
        help=f"scenarios to play (default: the training scenario; else {_ALONE}, or {_TOGETHER} for several players)",
    )
    add(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="change the scenarios: any key of a battle, such as abilities.messages=false",
    )
    add(
        "--battles",
        type=even,
        metavar="N",
        help=f"battles per pairing and scenario (default: {_BATTLES}, or the suite's)",
    )
    add("--seed", type=tournament.seed, help="seed of the maps and of the players (default: 0)")
    seeds = add(
        "--eval-seeds",
        metavar="FILE",
        help="text file of the maps' seeds, one on each line, in place of --battles: every map is played twice",
    )
    add(
        "--actions",
        choices=ACTION_MODES,
        default=ACTION_MODES[0],
        help="how networks act: samples of their distribution, or its mode (default: %(default)s)",
    )
    add("--threads", type=positive, default=1, help="number of threads of battles and players (default: %(default)s)")
    add("--out", type=Path, metavar="FILE", help="new file (JSON) for the report")
    add("--json", action="store_true", help="print the report as JSON")
    record.add_arguments(parser)
    statistics = add(
        "--statistics",
        type=Path,
        metavar="FILE",
        help="new file (JSON) for statistics of a single player's battles by opponent and mech class, with heat maps",
    )
    rare += seeds, statistics, *submit.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Play the matches and print the report."""
    from echelon_env.evaluate.report import make_report  # imports scipy.stats, which is slow

    _check(args)
    submit.check(args)
    count, replays = record.read(args)
    files = {"--statistics": args.statistics, "--submit": args.submit, "--out": args.out}
    tournament.check_outputs(files, {"--replays": replays})
    seed = args.seed or 0

    @functools.cache  # a player in several places is the same one
    def player_of(name: str) -> Player:
        return make_player(name, seed, action_mode=args.actions)

    players = [player_of(name) for name in args.players]
    method = submit.read_method(args, players[0]) if args.submit else None
    partners = [player_of(name) for name in args.partners or []]
    names = [player.name for player in (*players, *partners)]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"{name} is named twice; to play it against itself use --opponent")
    suite = load_suite(args.suite) if args.suite else None
    opponents = [player_of(name) for name in args.opponent or [_OPPONENT]]
    pairings, fields = _plan(args, players, partners, opponents, suite, seed)
    for field, player in itertools.product(fields, itertools.chain.from_iterable(pairings)):
        try:
            check_rosters(player, field.config)
        except ConfigError as error:
            raise ConfigError(f"{field.name}: {error}; choose with --scenario") from None
    totals = {field.name: BattleTotals() for field in fields} if args.statistics else {}
    matches = tournament.play_all(pairings, fields, args.threads, totals)
    configs = {field.name: field.config for field in fields}
    document = make_report(
        matches,
        suite=suite,
        stamp={**stamp(), "seed": seed},
        players=teams_beside(players[0], partners) if partners else players,
        configs=configs,
        partners=partners,
    )
    seeds = f"seed {seed}" if args.eval_seeds is None else f"own maps, seed {seed}"
    _show(
        args,
        document,
        format_match(document, seeds) if suite is None and len(matches) == 1 else format_report(document),
    )
    if args.statistics:
        steps = int(players[0].identity.get("steps", 0))
        evaluations = tuple(EvaluationTotals(steps, name, each) for name, each in totals.items())
        write_statistics(args.statistics, StatisticsFile(names[0], steps, evaluations=evaluations))
        _say(args, [f"Statistics: {args.statistics}"])
    if method is not None and suite is not None:
        _say(args, [submit.write(args, matches, players[0], suite, method)])
    if replays:
        _say(args, record.write(replays, count, matches, pairings, fields))
    return 0


def _show(args: argparse.Namespace, document: Mapping[str, Any], text: str) -> None:
    """Print a report as text or JSON, and write it to ``--out`` if given. Raises OSError."""
    for line in format_bad_actions(document):
        print(f"echelon: {line}", file=sys.stderr)
    plain = json.dumps(document, allow_nan=False)
    try:  # print first, as the disk may be full; write in any case, as the pipe may be closed
        print(plain if args.json else text, flush=True)
    finally:
        if args.out:
            write_bytes(args.out, f"{plain}\n".encode())
    if args.out:
        _say(args, [f"Report: {args.out}"])


def _say(args: argparse.Namespace, lines: Sequence[str]) -> None:
    """Print lines about what was written after the report, unless that is JSON."""
    if not args.json:
        print("", *lines, sep="\n")


def format_match(report: Mapping[str, Any], seeds: str) -> str:
    """A short text report of a single match, for its first player; `seeds` describes those that were given."""
    (match,), player = report["matches"], report["players"][0]
    battles = len(match["battles"]["outcome"])
    rest = f" ({match['action_modes'][0]} actions) against {shorten(match['second'], 24)}, {battles} battles, {seeds}"
    rows = (f"{name:<7}{format_share(match[name]):>20}" for name in SHARES)
    return "\n".join(
        [
            f"{shorten(match['first'], max(8, WIDTH - len(rest)))}{rest}",
            f"in {shorten(match['scenario'], WIDTH - 3)}",
            describe_maps(player["maps"], player["maps_trained_on"], player["trained_maps"]),
            f"{'':<7}{'%':>5} {report['confidence']:.0%} interval",
            *rows,
            INTERVALS,
            *format_bad_actions(report),
        ]
    )


def _check(args: argparse.Namespace) -> None:
    """Raise `ConfigError` for options that exclude each other."""
    for name in args.players:
        if args.players.count(name) > 1:
            again = command("evaluate", name, "--opponent", name)
            raise ConfigError(f"{name} is named twice; to play it against itself: {again}")
    for option, named in (("--opponent", args.opponent), ("--partners", args.partners)):
        for name in named or []:
            if named.count(name) > 1:
                raise ConfigError(f"{option}: {name} is named twice")
    several, own_seeds = len(args.players) > 1, args.eval_seeds is not None
    for wrong, message in (
        (args.opponent and args.suite, "--opponent: not allowed with --suite, which has its own opponents"),
        (args.opponent and several, "--opponent: takes one player; several players play each other"),
        (args.statistics and several, "--statistics: takes one player"),
        (args.partners and several, "--partners: takes one player"),
        (args.partners and args.statistics, "--statistics: not allowed with --partners"),
        (args.partners and args.submit, "--submit: not allowed with --partners"),
        (own_seeds and args.suite, "--eval-seeds: not allowed with --suite, which has its own maps"),
        (own_seeds and args.battles, "--eval-seeds: not allowed with --battles, which follows from the seeds"),
        (args.set and args.suite, "--set: not allowed with --suite, whose battles are frozen"),
        (args.seed is not None and args.suite, "--seed: not allowed with --suite, which has its own seeds"),
    ):
        if wrong:
            raise ConfigError(message)


def _plan(
    args: argparse.Namespace,
    players: Sequence[Player],
    partners: Sequence[Player],
    opponents: Sequence[Player],
    suite: Suite | None,
    seed: int,
) -> tuple[list[Pairing], list[Field]]:
    """The pairings to play, and the scenarios with their maps."""
    single = [*players, *partners]
    if partners:
        players = teams_beside(players[0], partners)
    if suite is not None:
        opponents = [make_player(name, seed) for name in suite.opponents]
        for player, opponent in itertools.product(players, opponents):
            if player.name == opponent.name and player.action_mode != opponent.action_mode:
                raise ConfigError(
                    f"--actions: with {args.actions} actions {player.name} is another player than the suite's opponent "
                    "of this name; use --opponent or --scenario without --suite"
                )
        pairings = _against(players, opponents, of_itself=bool(partners))
        if args.submit:  # also a scripted level against itself, so that all submissions have the same opponents
            pairings = [(players[0], opponent) for opponent in opponents]
        return pairings, tournament.suite_fields(suite, args.scenario, args.battles)
    if len(players) > 1 and not partners:
        return [*itertools.combinations(players, 2)], _fields(args, players, _TOGETHER, seed)
    trained = single if any(player.battle is not None for player in single) else opponents
    default = _TOGETHER if partners else _ALONE
    return _against(players, opponents, of_itself=True), _fields(args, trained, default, seed)


def _against(players: Sequence[Player], opponents: Sequence[Player], *, of_itself: bool) -> list[Pairing]:
    """Pair every player with every opponent: each pair once, pairs of a player with itself only if asked for."""
    pairings: dict[frozenset[str], Pairing] = {}
    for player, opponent in itertools.product(players, opponents):
        if of_itself or player.name != opponent.name:
            pairings.setdefault(frozenset((player.name, opponent.name)), (player, opponent))
    return [*pairings.values()]


def _fields(args: argparse.Namespace, players: Sequence[Player], default: str, seed: int) -> list[Field]:
    """The scenarios given by ``--scenario``, else the training scenario of the players, else the default."""
    if args.eval_seeds is not None:
        seeds = read_seeds(args.eval_seeds)
    else:
        seeds = tuple(evaluation_seed(seed, index) for index in range((args.battles or _BATTLES) // 2))
    return tournament.make_fields(args.scenario, players, default, parse_settings(args.set), seeds)
