"""Evaluate a run, a checkpoint or a baseline against a scripted opponent."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from echelon_env.cli.arguments import non_negative, positive
from echelon_train.config import battle_config
from echelon_train.errors import TrainError

if TYPE_CHECKING:
    from echelon_env.config import BattleConfig
    from echelon_train.evaluation import Evaluation
    from echelon_train.players import Contender

ENOUGH_MAPS = 1000
"""Maps that a policy must have trained on, for what it does on others to say something about unseen maps."""

EXPECTED_ERRORS = (TrainError,)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    add = parser.add_argument
    add("player", help="run or checkpoint folder, or: random, untrained, trivial, novice")
    add("--opponent", default="novice", help="scripted level to play against (default: %(default)s)")
    add("--battles", type=positive, default=200, help="(default: %(default)s)")
    add("--seed", type=non_negative, default=0, help="of the maps and choices (default: %(default)s)")
    add("--scenario", help="battle to play (default: the one that was trained on, or duel)")
    add("--deterministic", action="store_true", help="play the mode of the action distribution, do not sample it")
    add("--threads", type=positive, default=1, help="that step the battles (default: %(default)s)")
    add("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Evaluate and print the outcome."""
    from echelon_train.evaluation import evaluate

    contender, config, trained_maps = _contender(args.player, args.scenario, args.seed, args.deterministic)
    result = evaluate(
        contender,
        args.opponent,
        config,
        num_battles=args.battles,
        seed=args.seed,
        num_threads=args.threads,
        trained_maps=trained_maps,
    )
    print(json.dumps(result.to_dict()) if args.json else format_evaluation(result))
    return 0


def format_evaluation(result: Evaluation) -> str:
    """An evaluation in a few lines."""
    return "\n".join(
        [
            f"{result.player} ({result.action_mode} actions) against {result.opponent}, "
            f"{len(result.outcomes)} battles, seed {result.seed}",
            describe_maps(result),
            "        share  95 % interval",
            f"win   {result.wins}",
            f"draw  {result.draws}",
            f"loss  {result.losses}",
        ]
    )


def describe_maps(result: Evaluation) -> str:
    """On which maps an evaluation was played, in a line."""
    maps = f"on {result.maps} {'map' if result.maps == 1 else 'maps'}"
    if result.maps_trained_on is None or result.trained_maps is None:
        return maps
    few = "" if result.trained_maps >= ENOUGH_MAPS else ": too few to speak of unseen maps"
    return f"{maps}, {result.maps_trained_on or 'none'} of the {result.trained_maps:,} trained on{few}"


def _contender(
    player: str, scenario: str | None, seed: int, deterministic: bool
) -> tuple[Contender, BattleConfig, frozenset[str] | None]:
    from echelon_train.checkpoint import load_checkpoint
    from echelon_train.players import BASELINES, baseline_contender, network_contender

    if player in BASELINES:
        config = battle_config(scenario or "duel")
        return baseline_contender(player, config, seed, deterministic=deterministic), config, None
    checkpoint = load_checkpoint(Path(player))
    config = battle_config(scenario or checkpoint.battle)
    contender = network_contender(player, checkpoint.policy, checkpoint.network, config, deterministic=deterministic)
    return contender, config, checkpoint.trained_maps
