"""Following a curriculum."""

from __future__ import annotations

from rich.console import Console
from stable_baselines3.common.callbacks import BaseCallback

from echelon_env.curriculum import Move, Progress
from echelon_train.callbacks.statistics import finished_battles
from echelon_train.config import TrainConfig


class CurriculumCallback(BaseCallback):  # type: ignore[misc]
    """Counts the battles of a run's present stage, and logs where the run stands; without a curriculum it does nothing.

    A decision to change the stage is carried out by `advance`, between two rollouts; battles that end after it, in the
    stage that is about to be left, count for nothing.

    Parameters
    ----------
    config
        The run.
    console
        Where to tell of a change.
    """

    def __init__(self, config: TrainConfig, console: Console) -> None:
        super().__init__()
        self._run = config
        self._console = console
        self._progress = Progress(config.curriculum) if config.curriculum else None
        self._stage = 0
        self._move: Move | None = None
        self.config = config.stage(0)
        """The plain run of the stage that is played."""
        self.moves = 0
        """Changes of the stage so far."""

    def advance(self) -> bool:
        """Enter another stage if it has been decided. Returns whether the stage has changed."""
        if self._run.curriculum is None or self._move is None:
            return False
        names = [scenario.name for scenario in self._run.curriculum.scenarios]
        self._console.print(
            f"Curriculum: {names[self._stage]} -> {names[self._move.stage]} at {self.num_timesteps:,} decisions, after "
            f"{self._move.battles:,} battles, {self._move.win_rate:.0%} of the last {self._run.curriculum.window} won",
            markup=False,  # a file's name may hold brackets
        )
        self._stage = self._move.stage
        self._move = None
        self.config = self._run.stage(self._stage)
        self.moves += 1
        return True

    def _on_step(self) -> bool:
        if self._progress is not None:
            for infos in finished_battles(self.training_env, self.locals["infos"]):
                if self._move is None:
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
