"""Progress through a curriculum."""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import Console
from stable_baselines3.common.callbacks import BaseCallback

from echelon_env.config.curriculum import Move, Progress, ProgressState
from echelon_env.config.opponent import SELF
from echelon_env.config.schema import ConfigError, quantity
from echelon_train.config.train import TrainConfig
from echelon_train.runs.callbacks.results import finished_battles


@dataclass(frozen=True)
class CurriculumState:
    """Where a run is in its curriculum; the first stage without one."""

    stage: int = 0
    moves: int = quantity(0, "changes of the stage")
    move: Move | None = None
    """A change that is decided."""
    progress: ProgressState | None = None


class CurriculumCallback(BaseCallback):  # type: ignore[misc]
    """Counts the battles of the current stage, decides on changes, and logs them; without a curriculum it does nothing.

    `advance` carries out a decided change between two rollouts. Battles that end between the decision and the change do
    not count. `console` gets a line about every change.
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

    @property
    def state(self) -> CurriculumState:
        """The stage and its progress, with a decided change."""
        progress = None if self._progress is None else self._progress.state
        return CurriculumState(self._stage, self.moves, self._move, progress)

    def restore(self, state: CurriculumState) -> None:
        """Continue from a state of the same run. Raises `ConfigError`, with nothing changed, for another one."""
        curriculum = self._run.curriculum
        progress = None if curriculum is None else Progress(curriculum, state.progress)
        last = 0 if curriculum is None else len(curriculum.scenarios) - 1
        goal = state.stage if state.move is None else state.move.stage
        if state.stage > last or goal != (0 if progress is None else progress.stage):
            raise ConfigError(
                f"curriculum: expected a stage up to {last} and a move to that of the progress, got {state}"
            )
        self._stage, self.moves, self._move, self._progress = state.stage, state.moves, state.move, progress
        self.config = self._run.stage(state.stage)

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
