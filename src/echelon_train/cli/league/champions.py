"""Who is a league's champion, and who leaves it."""

from __future__ import annotations

import argparse
import math
from dataclasses import asdict
from typing import Any

from echelon_env.config.schema import ConfigError
from echelon_train.cli.league.fields import choose_battle
from echelon_train.cli.league.output import deliver, plural, working, wrap
from echelon_train.league.playing.jobs import run_job, worker_name
from echelon_train.league.playing.runner import pairing
from echelon_train.league.store.promotion import Decision, promote
from echelon_train.league.store.records import PlayedMatch
from echelon_train.league.store.registry import League
from echelon_train.league.store.retirement import MARGIN, PERIODS, Verdict, retire_weak, retirements


def run_promote(args: argparse.Namespace) -> int:
    """Make a member the champion if it has earned it, and say what was compared. Returns 1 if another one stays it."""
    if not 0 <= args.k < math.inf:
        raise ConfigError(f"--k: expected a number of at least 0, got {args.k}")
    league = League.open(args.league)
    config, scenario = choose_battle(league, args.scenario)

    def play(first: str, second: str) -> PlayedMatch:
        job = pairing(league, first, second, config, scenario, args.maps)
        with working(f"{first} v {second}, the champion"):
            return run_job(league.path, job, worker_name())

    decision = promote(league, args.name, play=play, k=args.k)
    champion = league.champion()
    document = {
        "league": str(args.league),
        "champion": None if champion is None else champion.name,
        **_document(decision),
    }
    lines = wrap(f"{decision.reason}.")
    if decision.promotion is not None:
        lines.append(f"champion: {league.member_policy(decision.candidate)}")
    deliver(args, document, lines)
    return 0 if champion is not None and champion.name == args.name else 1


def run_retire(args: argparse.Namespace) -> int:
    """Take a member out of play, or all that are weak and that nobody needs."""
    options = {"--margin": args.margin, "--periods": args.periods, "--dry-run": args.dry_run or None}
    if args.weak == (args.name is not None):
        raise ConfigError("expected the NAME of a member or --weak")
    for option, value in options.items():
        if value is not None and not args.weak:
            raise ConfigError(f"{option}: goes with --weak")
    league = League.open(args.league)
    if args.name is not None:
        league.retire(args.name)
        deliver(args, {"league": str(args.league), "retired": [args.name]}, [f"{args.name} is retired."])
        return 0
    decide = retirements if args.dry_run else retire_weak
    margin, periods = args.margin or MARGIN, args.periods or PERIODS
    verdicts = decide(league, margin=margin, periods=periods)
    document = {
        "league": str(args.league),
        "retired": [] if args.dry_run else [verdict.member for verdict in verdicts if verdict.retires],
        "weak": [{**asdict(verdict), "retires": verdict.retires} for verdict in verdicts],
    }
    deliver(args, document, _format_verdicts(verdicts, margin, periods, dry_run=args.dry_run))
    return 0


def _document(decision: Decision) -> dict[str, Any]:
    met = decision.validation_score
    return {
        "candidate": decision.candidate,
        "promoted": decision.promotion is not None,
        "reason": decision.reason,
        "k": decision.k,
        "score": decision.score,
        "previous": decision.champion,
        "previous_score": decision.champion_score,
        "validation": None if decision.validation is None else decision.validation.uuid,
        "validation_score": None if met is None else asdict(met),
    }


def _format_verdicts(verdicts: list[Verdict], margin: float, periods: int, *, dry_run: bool) -> list[str]:
    if not verdicts:
        rule = f"more than {margin:g} points behind in each of the last {plural(periods, 'period')}"
        return wrap(f"Nobody is weak, that is, {rule}.")
    lines = []
    for verdict in verdicts:
        behind = f"{verdict.behind:.0f} points behind"
        if verdict.retires:
            lines += wrap(f"{verdict.member} {'would retire' if dry_run else 'is retired'}: {behind}.")
        else:
            needed = ", ".join(verdict.counters)
            lines += wrap(f"{verdict.member} stays, {behind}: one of the few that beat {needed}.")
    return lines
