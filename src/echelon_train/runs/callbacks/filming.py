"""Films of battles during training."""

from __future__ import annotations

from collections.abc import Callable

from stable_baselines3.common.callbacks import BaseCallback

from echelon_train.runs.callbacks.every import Every
from echelon_train.runs.loggers import Film


class FilmCallback(BaseCallback):  # type: ignore[misc]
    """Films a battle at the start, between two iterations every `every` samples, and at the end; logs the film.

    Parameters
    ----------
    every
        Samples between two films.
    film
        Plays and films a battle of the current policy; None if it could not.
    stopping
        Whether the run is stopping; then the film is left to the resumed run.
    """

    def __init__(self, every: int, film: Callable[[], Film | None], stopping: Callable[[], bool]) -> None:
        super().__init__()
        self.every, self._film, self._stopping = Every(every), film, stopping

    def _on_rollout_start(self) -> None:
        if not self.model.stopping and self.every.is_due(self.model.num_timesteps):
            self._record()

    def _on_step(self) -> bool:
        return True

    def _on_training_end(self) -> None:
        if not self._stopping():
            self._record()

    def _record(self) -> None:
        film = self._film()
        if film is not None:
            self.logger.record("battle/film", film, exclude=("stdout", "log", "json", "csv"))
