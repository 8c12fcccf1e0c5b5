"""The command `echelon league promote`."""

from __future__ import annotations

import argparse
import math
from dataclasses import asdict
from typing import Any

from echelon_env.config.schema import ConfigError
from echelon_train.cli.league.output import Result, show_status, wrap
from echelon_train.league.playing.battle_choice import choose_battle
from echelon_train.league.playing.jobs import run_job
from echelon_train.league.playing.runner import pairing
from echelon_train.league.store.promotion import Decision, promote
from echelon_train.league.store.records import PlayedMatch
from echelon_train.league.store.registry import League


def run_promote(args: argparse.Namespace) -> Result:
    """Make a member the champion if it qualifies, and print the comparison. Returns 1 if it is not the champion."""
    if not 0 <= args.k < math.inf:
        raise ConfigError(f"--k: expected a number of at least 0, got {args.k}")
    league = League.open(args.league)
    config, scenario = choose_battle(league, args.scenario)

    def play(first: str, second: str) -> PlayedMatch:
        job = pairing(league, first, second, config, scenario, args.maps)
        with show_status(f"{first} v {second}, the champion"):
            return run_job(league.path, job)

    decision = promote(league, args.name, play=play, k=args.k)
    champion = league.champion()
    name = None if champion is None else champion.name
    lines = wrap(f"{decision.reason}.")
    if decision.promotion is not None:
        lines.append(f"champion: {league.member_policy(decision.candidate)}")
    return Result({"champion": name, **_document(decision)}, lines, 0 if name == args.name else 1)


def _document(decision: Decision) -> dict[str, Any]:
    interval = decision.validation_score
    return {
        "candidate": decision.candidate,
        "promoted": decision.promotion is not None,
        "reason": decision.reason,
        "k": decision.k,
        "score": decision.score,
        "previous": decision.champion,
        "previous_score": decision.champion_score,
        "validation": None if decision.validation is None else decision.validation.uuid,
        "validation_score": None if interval is None else asdict(interval),
    }
