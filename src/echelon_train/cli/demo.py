"""Watch a policy learn: evaluate, train, evaluate again, draw the curve, film a battle."""

from __future__ import annotations

import argparse
import shlex
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from echelon_env.cli.arguments import non_negative, positive, positive_number
from echelon_env.cli.output import command
from echelon_env.config.opponent import Opponents
from echelon_env.evaluate.tables import describe_maps, format_share
from echelon_env.storage.atomic import free_path
from echelon_train.config.train import TrainConfig, battle_config
from echelon_train.errors import TrainError

if TYPE_CHECKING:
    from echelon_train.runs.demo import DemoResult

EXPECTED_ERRORS = (TrainError,)

_DEFAULT_OUT = Path("runs/demo")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    add = parser.add_argument
    add("--out", type=Path, help=f"new folder for the run (default: {_DEFAULT_OUT}, or the next free name)")
    add("--max-minutes", type=positive_number, default=4.0, help="time limit of training (default: %(default)s)")
    add("--opponent", default="novice", help="opponent to beat (default: %(default)s)")
    add("--steps", type=positive, default=370_000, help="decisions to train on (default: %(default)s)")
    add("--battles", type=positive, default=200, help="battles per evaluation, an even number (default: %(default)s)")
    add("--seed", type=non_negative, default=0, help="seed of weights and training (default: %(default)s)")


def run(args: argparse.Namespace) -> int:
    """Run the demonstration and print its results."""
    config = TrainConfig(
        battle=battle_config("duel"),
        opponent=Opponents.parse(args.opponent),
        steps=args.steps,
        max_minutes=args.max_minutes,
        seed=args.seed,
        eval_every=0,
    )
    from echelon_train.console import PrintableConsole
    from echelon_train.runs.demo import run_demo

    out = args.out or free_path(_DEFAULT_OUT)
    console = PrintableConsole(highlight=False)
    result = run_demo(config, out, console, num_battles=args.battles)
    print(format_demo(result, out))
    return 0


def format_demo(result: DemoResult, out: Path) -> str:
    """The demonstration's results: both evaluations side by side, the files, and the next commands."""
    before, after = result.before, result.after
    colour = ("blue", "red")[result.filmed.side]
    rows = [
        ("win", before.wins, after.wins),
        ("draw", before.draws, after.draws),
        ("loss", before.losses, after.losses),
    ]
    return "\n".join(
        [
            "",
            f"Duel against '{before.opponents}': {len(before.battles)} battles",
            f"{describe_maps(after.maps, after.maps_trained_on, after.trained_maps)},",
            f"the same maps before and after, {before.matches[0].action_modes[0]} actions, % with 95 % intervals:",
            "",
            f"        {'untrained':<26}  trained on {result.training.steps:,} decisions",
            *(f"{name:<6}  {format_share(asdict(old)):<26}  {format_share(asdict(new))}" for name, old, new in rows),
            "",
            *([f"Learning curve   {result.curve}"] if result.curve else []),
            f"Battle, filmed   {result.film} (the policy is {colour})",
            *([f"In a browser     {result.page}"] if result.page else []),
            f"Checkpoint       {result.training.checkpoint}",
            "",
            "Next:",
            f"  tensorboard --logdir {shlex.quote(str(out))}",
            f"  {command('evaluate', out, '--opponent', 'novice', '--battles', 200, '--seed', 7)}",
            "  echelon imitate skirmish",
            "  echelon train skirmish --init runs/imitate-skirmish",
        ]
    )
