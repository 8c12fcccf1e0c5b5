"""The demonstration: a policy that knows nothing becomes one that wins, in a few minutes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from echelon_env.atomic import write_json
from echelon_train.checkpoint import load_checkpoint
from echelon_train.config import TrainConfig
from echelon_train.evaluation import WIN, Evaluation, evaluate
from echelon_train.film import film_battle
from echelon_train.players import Contender, network_contender
from echelon_train.plots import save_learning_curve
from echelon_train.run_folder import claim_folder, read_metrics
from echelon_train.training import TrainResult, initial_policy, train

EVALUATION_SEED = 1_000_000
"""Seed of the demonstration's two evaluations."""


@dataclass(frozen=True)
class DemoResult:
    """What the demonstration showed, and where it is."""

    before: Evaluation
    after: Evaluation
    training: TrainResult
    curve: Path  # PNG
    film: Path  # GIF
    filmed_battle: int  # number of the battle in the evaluation


def run_demo(config: TrainConfig, out: Path, console: Console, *, max_seconds: float, num_battles: int) -> DemoResult:
    """Evaluate a run's initial policy, train it, and evaluate it again: same opponent, maps and action mode.

    Parameters
    ----------
    config
        The run.
    out
        New folder for the run and the pictures.
    console
        Where to say what goes on.
    max_seconds
        Time that training may take.
    num_battles
        Battles of each evaluation.

    Raises
    ------
    RunFolderError, OSError
        If the folder cannot be used.
    KeyboardInterrupt
        After Ctrl-C during training, once its checkpoint is saved.
    """
    claim_folder(out)

    def judge(contender: Contender, trained_maps: frozenset[str] | None = None) -> Evaluation:
        console.print(f"Evaluating the {contender.name} policy: {num_battles} battles on unseen maps ...")
        return evaluate(
            contender,
            config.opponent,
            config.battle,
            num_battles=num_battles,
            seed=EVALUATION_SEED,
            num_threads=config.threads,
            trained_maps=trained_maps,
        )

    untrained = network_contender("untrained", initial_policy(config), config.network, config.battle)
    before = judge(untrained)
    console.print(f"Training against {config.opponent!r}: {config.steps:,} decisions, at most {max_seconds:.0f} s ...")
    training = train(config, out, console=console, max_seconds=max_seconds)
    console.print(f"Checkpoint: {training.checkpoint}")
    if training.interrupted:
        raise KeyboardInterrupt
    checkpoint = load_checkpoint(training.checkpoint)
    trained = network_contender("trained", checkpoint.policy, config.network, config.battle)
    after = judge(trained, checkpoint.trained_maps)
    write_json(out / "demo.json", {"untrained": before.to_dict(), "trained": after.to_dict()})
    curve, film = out / "learning_curve.png", out / "battle.gif"
    evaluations = [(0, before), (training.steps, after)]
    save_learning_curve(curve, read_metrics(out), evaluations, f"RecurrentPPO against {config.opponent!r}")
    number = after.outcomes.index(WIN) if WIN in after.outcomes else 0
    console.print(f"Filming battle {number} ...")
    film_battle(film, trained, config.opponent, config.battle, seed=EVALUATION_SEED, number=number)
    return DemoResult(before, after, training, curve, film, number)
