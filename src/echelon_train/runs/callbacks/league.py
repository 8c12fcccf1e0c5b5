"""Training in a league: results against opponents, stages and snapshots."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from stable_baselines3.common.callbacks import BaseCallback

from echelon_train.config.league import LeagueConfig
from echelon_train.config.train import TrainConfig
from echelon_train.league.learner import KNOWN, LeagueLearner
from echelon_train.league.store.registry import League
from echelon_train.opponents.pool import OpponentPool
from echelon_train.ppo import distributed
from echelon_train.runs.ancestry import load_start
from echelon_train.runs.callbacks.results import finished_battles
from echelon_train.tensor_files import weights_of


class LeagueCallback(BaseCallback):  # type: ignore[misc]
    """Updates a run's `LeagueLearner`, and adds its snapshots to the league.

    Before every rollout it reads the league's members again. `save` saves the run, given the samples that it has
    trained on, and returns the checkpoint's folder; `began` is called at the beginning of a stage. Raises LeagueError
    if the run's path holds no league.
    """

    def __init__(
        self,
        config: TrainConfig,
        device: str,
        save: Callable[[int], Path],
        began: Callable[[], object],
        console: Console,
    ) -> None:
        super().__init__()
        self._config = config
        self._save, self._began, self._console = save, began, console
        settings = config.league
        league = League.open(Path(settings.path))
        self.learner = LeagueLearner(league, settings)
        victim = self.learner.next_victim()
        if victim is not None:
            load_start(dataclasses.replace(config, init=str(league.member_policy(victim)), league=LeagueConfig()))
        self.pool = OpponentPool(
            config.battle,
            self.learner.draw,
            self.learner.load,
            known=KNOWN,
            seed=distributed.rank_seed(config.seed),
            device=device,
            cache=settings.cache,
            num_threads=config.threads,
            recorded=False if config.compile == "off" else None,
        )
        """The policies of the other team."""

    def refresh(self) -> None:
        """Read the league's members again."""
        self.learner.refresh(self.pool.state.results)

    def finish(self, checkpoint: Path) -> None:
        """Add the run's last checkpoint to the league if it ends a stage, or is a main agent's last."""
        steps = self.model.num_timesteps
        trained = steps > self.learner.state.since and self._config.league.role == "main"
        if trained or self.learner.stage_left(steps) == 0.0:
            self._publish(checkpoint)

    def _on_training_start(self) -> None:
        if self.model.num_timesteps == 0:
            self._begin_stage()

    def _on_rollout_start(self) -> None:
        steps = self.model.num_timesteps
        if self.learner.stage_left(steps) == 0.0:
            self._publish(self._save(steps))
            self._begin_stage()
        self.refresh()

    def _on_step(self) -> bool:
        for infos in finished_battles(self.training_env, self.locals["infos"]):
            if infos[0]["opponent"] in self.learner.draw():  # others have retired, or are an exploiter's last victim
                self.pool.record(infos[0]["opponent"], infos[0]["outcome"])
        return True

    def _on_rollout_end(self) -> None:
        found = {"opponents": float(len(set(self.pool.names))), **self.learner.metrics(self.pool.state.results)}
        found["stage_left"] = self.learner.stage_left(self.model.num_timesteps)
        for name, value in found.items():
            self.logger.record(f"league/{name}", value)

    def _publish(self, checkpoint: Path) -> None:
        name = distributed.broadcast_object(lambda: self.learner.publish(checkpoint))
        self._console.print(f"League: added {name!r} at {self.model.num_timesteps:,} decisions", markup=False)

    def _begin_stage(self) -> None:
        victim = distributed.broadcast_object(self.learner.next_victim)
        start = self.learner.begin_stage(self.model.num_timesteps, victim)
        if start is not None:
            self._console.print(f"League: against {victim!r}, from its weights", markup=False)
            self.pool.forget()
            self.model.reinitialize(weights_of(start))
            self.model.policy.set_battle(self._config.battle)
        self._began()
