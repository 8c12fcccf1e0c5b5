"""Train a policy against a scripted opponent."""

from __future__ import annotations

import argparse
from pathlib import Path

from echelon_env.cli.arguments import non_negative, positive
from echelon_train.config import TrainConfig, battle_config
from echelon_train.errors import TrainError

EXPECTED_ERRORS = (TrainError,)

_DEFAULTS = TrainConfig(battle=battle_config("duel"))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    add = parser.add_argument
    add("--scenario", default="duel", help="battle to train on (default: %(default)s)")
    add("--opponent", default=_DEFAULTS.opponent, help="scripted level to train against (default: %(default)s)")
    add("--steps", type=positive, default=_DEFAULTS.steps, help="decisions to train on (default: %(default)s)")
    add("--out", type=Path, required=True, help="new folder for the run")
    add("--seed", type=non_negative, default=_DEFAULTS.seed, help="(default: %(default)s)")
    add("--battles", type=positive, default=_DEFAULTS.battles, help="battles stepped at once (default: %(default)s)")
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
    config = TrainConfig(
        battle=battle_config(args.scenario),
        opponent=args.opponent,
        steps=args.steps,
        seed=args.seed,
        battles=args.battles,
        threads=args.threads,
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
