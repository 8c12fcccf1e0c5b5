"""The command `echelon league play`: a rating run, or one match."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterator

from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from echelon_env.cli.output import command
from echelon_env.config.schema import ConfigError
from echelon_train.cli.league.output import (
    INTERRUPTED,
    Result,
    describe_match,
    match_document,
    plural,
    rating_document,
    wrap,
)
from echelon_train.console import PrintableConsole
from echelon_train.league.playing.battle_choice import choose_battle
from echelon_train.league.playing.executors import Executor
from echelon_train.league.playing.runner import RatingRun, pairing, play_jobs, rating_run, uncertainty
from echelon_train.league.store.records import PlayedMatch
from echelon_train.league.store.registry import League

_EVERY = 60.0  # s between lines where stderr is no terminal
_SHARE = 20  # times what showing the status takes: pause until the next time
_UNTIL_RD, _MOST_MATCHES = 75.0, 1000


def run_play(args: argparse.Namespace) -> Result:
    """Play, record and rate matches. Returns 130 after Ctrl-C; finished matches are then recorded and rated."""
    _check(args)
    league = League.open(args.league)
    config, scenario = choose_battle(league, args.scenario)
    executor = Executor(args.processes)
    played: list[PlayedMatch] = []
    result: RatingRun | None = None
    interrupted = False
    with contextlib.closing(executor), _progress(league, args) as show:

        def on_match(match: PlayedMatch) -> None:
            played.append(match)
            show(len(played))

        try:
            if args.players:
                first, second = args.players
                play_jobs(league, [pairing(league, first, second, config, scenario, args.maps)], executor, on_match)
            else:
                result = rating_run(
                    league,
                    {scenario: config},
                    target_deviation=args.until_rd or _UNTIL_RD,
                    maps_per_match=args.maps,
                    max_matches=args.max_matches or _MOST_MATCHES,
                    executor=executor,
                    on_match=on_match,
                )
        except KeyboardInterrupt:
            interrupted = True
    league.rate_matches()
    document = {
        "scenario": scenario,
        "matches": [match_document(match) for match in played],
        "interrupted": interrupted,
        "rating_run": None if result is None else dataclasses.asdict(result),
        "ratings": {name: rating_document(rating) for name, rating in league.ratings().items()},
    }
    lines = _format(args, scenario, played, result, interrupted=interrupted)
    return Result(document, lines, INTERRUPTED if interrupted else 0)


def _check(args: argparse.Namespace) -> None:
    """Raise ConfigError for options that exclude each other."""
    if len(args.players) not in (0, 2):
        raise ConfigError(f"expected two players, or none for a rating run, got {', '.join(args.players)}")
    for option, value in (("--until-rd", args.until_rd), ("--max-matches", args.max_matches)):
        if args.players and value is not None:
            raise ConfigError(f"{option}: goes with a rating run, without players")


@contextlib.contextmanager
def _progress(league: League, args: argparse.Namespace) -> Iterator[Callable[[int], None]]:
    """Yields a function that shows the number of finished matches on stderr, each minute if that is no terminal."""
    console = PrintableConsole(stderr=True)
    columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    wanted = args.until_rd or _UNTIL_RD
    active = [member.name for member in league.members() if member.state == "active"]
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(" v ".join(args.players) or "the first match", total=None)
        told, pause = time.monotonic(), 0.0 if console.is_terminal else _EVERY
        deviation = 0.0

        def show(matches: int) -> None:
            nonlocal told, pause, deviation
            began = time.monotonic()
            due = began - told >= pause
            if due:
                deviation = max(uncertainty(league, active).values())
                told = time.monotonic()
                pause = max(pause, _SHARE * (told - began))  # in large leagues the deviations take seconds
            status = f"{plural(matches, 'match', 'matches')}, greatest RD {deviation:.0f}, {wanted:g} wanted"
            progress.update(task, description=status)
            if due and not console.is_terminal:
                console.print(status, markup=False)

        yield show


def _format(
    args: argparse.Namespace, scenario: str, played: list[PlayedMatch], result: RatingRun | None, *, interrupted: bool
) -> list[str]:
    number = plural(len(played), "match", "matches")
    if interrupted:
        return [f"Interrupted after {number}, recorded and rated. Continue with the same command."]
    if result is None:
        lines = [line for match in played for line in describe_match(match)]
    elif result.reached:
        most = f"at most {args.until_rd or _UNTIL_RD:g} points"
        text = f"{number} in {scenario}: all rating deviations are {most}"
        if result.one_sided:
            others = ", ".join(f"{name} ({result.deviations[name]:.0f})" for name in result.one_sided)
            text += f", but for {others}, which further matches would hardly reduce"
        lines = wrap(f"{text}.")
    else:
        uncertain = max(result.deviations, key=lambda name: result.deviations[name])
        lines = wrap(
            f"{number} in {scenario}: the rating of {uncertain} still has a deviation of "
            f"{result.deviations[uncertain]:.0f} points. Continue with the same command."
        )
    return [*lines, f"Standings: {command('league', 'standings', args.league)}"]
