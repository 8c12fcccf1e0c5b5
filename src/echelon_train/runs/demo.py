"""The demonstration: an untrained policy learns to win within a few minutes."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from echelon_env.engine.kernels import BackendError
from echelon_env.evaluate import Battle, Player, named_player
from echelon_env.replays import export_gif, record_battle, write_page
from echelon_train.checkpoints.checkpoint import load_checkpoint
from echelon_train.checkpoints.players import network_player
from echelon_train.config.train import TrainConfig
from echelon_train.policy import build_policy
from echelon_train.runs.curves import CURVES_FILE
from echelon_train.runs.evaluation import Evaluation, check_battles, evaluate
from echelon_train.runs.folder import claim_folder
from echelon_train.runs.run import TrainResult
from echelon_train.runs.training import train

EVALUATION_SEED = 1_000_000
"""Seed of the demonstration's two evaluations."""


@dataclass(frozen=True)
class DemoResult:
    """The demonstration's results and files."""

    before: Evaluation
    after: Evaluation
    training: TrainResult
    curve: Path | None  # PNG; None if it cannot be drawn
    film: Path  # GIF
    page: Path | None  # HTML; None where there is no WebAssembly module
    filmed: Battle  # of the second evaluation


def run_demo(config: TrainConfig, out: Path, console: Console, *, num_battles: int) -> DemoResult:
    """Evaluate a run's initial policy, train it, and evaluate it again: same opponent, maps and action mode.

    `num_battles` are those of each evaluation, an even number. The run and the pictures are in the new folder `out`.

    Raises ConfigError for an impossible number of battles, RunFolderError and OSError if the folder cannot be used, and
    KeyboardInterrupt after Ctrl-C during training, once its checkpoint is saved.
    """
    check_battles(num_battles, config.evaluation_opponents)
    claim_folder(out)

    def evaluate_policy(player: Player) -> Evaluation:
        console.print(f"Evaluating the {player.name} policy: {num_battles} battles on unseen maps ...")
        return evaluate(
            player,
            config.evaluation_opponents,
            config.battle,
            num_battles=num_battles,
            seed=EVALUATION_SEED,
            num_threads=config.threads,
        )

    before = evaluate_policy(network_player("untrained", build_policy(config.network, config.seed)))
    limit = f", at most {config.max_minutes:g} min" if config.max_minutes else ""
    console.print(f"Training against '{config.opponent}': {config.steps:,} decisions{limit} ...")
    training = train(config, out, console=console)
    console.print(f"Checkpoint: {training.checkpoint}")
    if training.interrupted:
        raise KeyboardInterrupt
    checkpoint = load_checkpoint(training.checkpoint)
    trained = network_player("trained", checkpoint.policy, trained_maps=checkpoint.trained_maps)
    after = evaluate_policy(trained)
    film = out / "battle.gif"
    battles = [(match.second, battle) for match in after.matches for battle in match.battles]
    name, filmed = max(battles, key=lambda each: each[1].outcome)  # the first battle won, if any
    console.print(f"Filming battle {filmed.number} ...")
    opponent = named_player(name, EVALUATION_SEED)
    replay = record_battle(trained, opponent, config.battle, seed=filmed.seed, side=filmed.side)
    export_gif(replay, film)
    curve, page = out / CURVES_FILE, out / "battle.html"
    with contextlib.suppress(BackendError):
        write_page(page, replay)
    return DemoResult(
        before, after, training, curve if curve.exists() else None, film, page if page.exists() else None, filmed
    )
