"""Train a policy against a scripted opponent."""

from __future__ import annotations

import argparse
from pathlib import Path

from echelon_env.cli.arguments import non_negative, positive
from echelon_env.curriculum import Curriculum
from echelon_env.schema import ConfigError
from echelon_train.config import TrainConfig, battle_config, training_curriculum
from echelon_train.errors import TrainError

EXPECTED_ERRORS = (TrainError,)

_SCENARIO = "duel"
_DEFAULTS = TrainConfig(battle=battle_config(_SCENARIO))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    add = parser.add_argument
    either = parser.add_mutually_exclusive_group()
    either.add_argument("--scenario", help=f"battle to train on (default: {_SCENARIO})")
    either.add_argument("--curriculum", nargs="+", metavar="NAME", help="scenarios to train on one after the other")
    rule = parser.add_argument_group("when the curriculum moves")
    rule.add_argument("--promote", type=float, help=f"win rate that leads on (default: {Curriculum.promote})")
    rule.add_argument("--demote", type=float, help=f"win rate that leads back (default: {Curriculum.demote})")
    rule.add_argument("--window", type=positive, help=f"battles it is taken over (default: {Curriculum.window})")
    add("--opponent", default=_DEFAULTS.opponent, help="scripted level to train against (default: %(default)s)")
    add("--steps", type=positive, default=_DEFAULTS.steps, help="decisions to train on (default: %(default)s)")
    add("--out", type=Path, required=True, help="new folder for the run")
    add("--seed", type=non_negative, default=_DEFAULTS.seed, help="(default: %(default)s)")
    add(
        "--battles",
        type=positive,
        default=_DEFAULTS.battles,
        help="stepped at once; a curriculum keeps their number times the team size (default: %(default)s)",
    )
    add(
        "--maps",
        default=str(_DEFAULTS.maps),
        help="how many to train on, 0 for a new one in every battle, or a directory of recipes (default: %(default)s)",
    )
    add(
        "--regenerate",
        type=positive,
        default=_DEFAULTS.regenerate,
        metavar="N",
        help="battles in a row on one map (default: %(default)s)",
    )
    add("--threads", type=positive, default=_DEFAULTS.threads, help="that step the battles (default: %(default)s)")
    add("--device", default=_DEFAULTS.device, help="cpu, cuda or auto (default: %(default)s)")
    add(
        "--eval-every",
        type=non_negative,
        default=_DEFAULTS.eval_every,
        help="decisions between evaluations, 0 for none (default: %(default)s)",
    )
    add(
        "--checkpoint-every",
        type=non_negative,
        default=_DEFAULTS.checkpoint_every,
        help="decisions between checkpoints (default: %(default)s)",
    )


def run(args: argparse.Namespace) -> int:
    """Train, and say where the checkpoint is. Returns 130 after Ctrl-C."""
    curriculum = _curriculum(args)
    config = TrainConfig(
        battle=curriculum.scenarios[0].config if curriculum else battle_config(args.scenario or _SCENARIO),
        curriculum=curriculum,
        opponent=args.opponent,
        steps=args.steps,
        seed=args.seed,
        battles=args.battles,
        threads=args.threads,
        regenerate=args.regenerate,
        maps=int(args.maps) if args.maps.isdecimal() else args.maps,
        device=args.device,
        eval_every=args.eval_every,
        checkpoint_every=args.checkpoint_every,
    )
    from echelon_train.training import train

    result = train(config, args.out)
    print(f"{'Interrupted after' if result.interrupted else 'Trained on'} {result.steps:,} decisions.")
    print(f"Checkpoint: {result.checkpoint}")
    print(f"Evaluate:   echelon evaluate {args.out} --opponent {args.opponent}")
    print(f"Curves:     tensorboard --logdir {args.out}")
    return 130 if result.interrupted else 0


def _curriculum(args: argparse.Namespace) -> Curriculum | None:
    rule = {name: getattr(args, name) for name in ("promote", "demote", "window") if getattr(args, name) is not None}
    if args.curriculum:
        return training_curriculum(args.curriculum, **rule)
    if rule:
        raise ConfigError(f"--{next(iter(rule))} needs --curriculum: it says when a curriculum moves")
    return None
