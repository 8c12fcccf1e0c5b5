"""Progress through a curriculum."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from stable_baselines3.common.callbacks import BaseCallback

from echelon_env.config.curriculum import Move, Progress
from echelon_env.config.opponent import SELF
from echelon_env.config.schema import ConfigError
from echelon_train.config.train import TrainConfig
from echelon_train.runs.callbacks.statistics import finished_battles


class CurriculumCallback(BaseCallback):  # type: ignore[misc]
    """Counts the battles of the current stage, decides on changes, and logs them; without a curriculum it does nothing.

    `advance` carries out a decided change between two rollouts. Battles that end between the decision and the change do
    not count.

    Parameters
    ----------
    config
        The run.
    console
        Where to report a change.
    """

    def __init__(self, config: TrainConfig, console: Console) -> None:
        super().__init__()
        self._run = config
        self._console = console
        self._progress = Progress(config.curriculum) if config.curriculum else None
        self._stage = 0
        self._move: Move | None = None
        self.config = config.stage(0)
        """The plain run of the current stage."""
        self.moves = 0
        """Changes of the stage so far."""

    def advance(self) -> bool:
        """Enter another stage if that is decided. Returns whether the stage has changed."""
        if self._run.curriculum is None or self._move is None:
            return False
        names = [scenario.name for scenario in self._run.curriculum.scenarios]
        self._console.print(
            f"Curriculum: {names[self._stage]} -> {names[self._move.stage]} "
            f"at {self.model.num_timesteps:,} decisions, after {self._move.battles:,} battles, "
            f"{self._move.win_rate:.0%} of the last {self._run.curriculum.window} won",
            markup=False,  # a file's name may hold brackets
        )
        self._stage = self._move.stage
        self._move = None
        self.config = self._run.stage(self._stage)
        self.moves += 1
        return True

    def state_dict(self) -> dict[str, Any]:
        """The stage and its progress, with a decided change, as plain values for JSON."""
        return {
            "stage": self._stage,
            "moves": self.moves,
            "move": None if self._move is None else dataclasses.asdict(self._move),
            "progress": None if self._progress is None else self._progress.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a `state_dict` of the same run.

        Raises `ConfigError`, with nothing changed, for an invalid one.
        """
        if not isinstance(state, Mapping) or state.keys() != self.state_dict().keys():
            raise ConfigError(f"curriculum: expected a mapping with the keys {list(self.state_dict())}, got {state!r}")
        stage, moves, progress = state["stage"], state["moves"], None
        last = 0 if self._run.curriculum is None else len(self._run.curriculum.scenarios) - 1
        if type(stage) is not int or not 0 <= stage <= last:
            raise ConfigError(f"curriculum: stage: expected an integer from 0 to {last}, got {stage!r}")
        if type(moves) is not int or moves < stage or (moves - stage) % 2:
            raise ConfigError(f"curriculum: moves: expected a number that leads to stage {stage}, got {moves!r}")
        if self._run.curriculum is not None:
            progress = Progress(self._run.curriculum)
            progress.load_state_dict(state["progress"])
        elif state["progress"] is not None:
            raise ConfigError(f"curriculum: progress: expected None in a run without one, got {state['progress']!r}")
        move = _read_move(state["move"], stage, progress)
        self._stage, self.moves, self._move, self._progress = stage, moves, move, progress
        self.config = self._run.stage(stage)

    def _on_step(self) -> bool:
        if self._progress is not None:
            pure = {each.name for each in self.config.opponent.members} == {SELF}  # else those do not count
            for infos in finished_battles(self.training_env, self.locals["infos"]):
                if self._move is None and (pure or infos[0].get("opponent") != SELF):
                    self._move = self._progress.record(infos[0]["outcome"] > 0)
        return True

    def _on_rollout_end(self) -> None:
        if self._run.curriculum is None or self._progress is None:
            return
        win_rate = self._progress.win_rate if self._move is None else self._move.win_rate
        name = self._run.curriculum.scenarios[self._stage].name
        self.logger.record("curriculum/stage", self._stage)
        self.logger.record("curriculum/scenario", name, exclude="tensorboard")
        self.logger.record("curriculum/battles", (self._move or self._progress).battles)
        if win_rate is not None:
            self.logger.record("curriculum/win_rate", win_rate)


def _read_move(state: Any, stage: int, progress: Progress | None) -> Move | None:
    """The move of a `state_dict`, from a stage to that of the progress. Raises `ConfigError`."""
    goal = 0 if progress is None else progress.stage
    if state is None:
        if goal != stage:
            raise ConfigError(f"curriculum: progress: expected stage {stage}, got {goal} without a move to it")
        return None
    keys = {field.name for field in dataclasses.fields(Move)}
    if not isinstance(state, Mapping) or state.keys() != keys or abs(goal - stage) != 1 or state["stage"] != goal:
        raise ConfigError(f"curriculum: move: expected None or a move from stage {stage} to {goal}, got {state!r}")
    win_rate, battles = state["win_rate"], state["battles"]
    if type(win_rate) is not float or not 0.0 <= win_rate <= 1.0 or type(battles) is not int or battles < 1:
        raise ConfigError(f"curriculum: move: expected a win rate from 0 to 1 and battles from 1, got {state!r}")
    return Move(goal, win_rate, battles)
