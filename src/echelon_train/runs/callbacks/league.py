"""Training in a league: results against opponents, snapshots and resets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from stable_baselines3.common.callbacks import BaseCallback
from torch import Tensor

from echelon_env.config.opponent import SELF
from echelon_env.evaluate import training_seed
from echelon_env.networks.checkpoint import find_checkpoint
from echelon_train.checkpoints.checkpoint import first_checkpoint, load_checkpoint
from echelon_train.config.train import TrainConfig
from echelon_train.league.learner import KNOWN, LeagueLearner
from echelon_train.league.store.registry import League
from echelon_train.opponents.pool import OpponentPool
from echelon_train.policy import build_policy
from echelon_train.ppo import distributed
from echelon_train.runs.callbacks.results import finished_battles
from echelon_train.tensor_files import weights_of


class LeagueCallback(BaseCallback):  # type: ignore[misc]
    """Updates a run's `LeagueLearner`, and adds its snapshots to the league.

    Before every rollout it reads the league's members again. `save` saves the run, given the samples that it has
    trained on, and returns the checkpoint's folder. Raises LeagueError if the run's path holds no league.
    """

    def __init__(
        self,
        config: TrainConfig,
        device: str,
        save: Callable[[int], Path],
        out: Path,
        console: Console,
    ) -> None:
        super().__init__()
        self._config = config
        self._save, self._out, self._console = save, out, console
        settings = config.league
        seed = distributed.rank_seed(config.seed)
        self.learner = LeagueLearner(League.open(Path(settings.path)), settings, seed)
        self.pool = OpponentPool(
            config.battle,
            self.learner.draw,
            self.learner.load,
            known=KNOWN,
            win_rate=config.opponent_win_rate,
            seed=seed,
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
        """Add the run's last checkpoint to the league, if a snapshot is due."""
        if self._snapshot_due():
            self.learner.announce(self.model.num_timesteps)
            self._publish(checkpoint)
        elif self.model.num_timesteps < self._config.league.snapshot_every:
            self._console.print(
                "League: no snapshot of this run is in the league: the first needs "
                f"{self._config.league.snapshot_every:,} decisions (--league.snapshot-every)",
                markup=False,
            )

    def _on_rollout_start(self) -> None:
        steps = self.model.num_timesteps
        if self.learner.state.announced is not None:  # by a process that stopped before it published, or just after
            self._publish(find_checkpoint(self._out))
        elif self._snapshot_due():
            self.learner.announce(steps)
            self._publish(self._save(steps))
        self.refresh()

    def _on_step(self) -> bool:
        for infos in finished_battles(self.training_env, self.locals["infos"]):
            if infos[0]["opponent"] != SELF:
                self.pool.record(infos[0]["opponent"], infos[0]["outcome"])
        return True

    def _on_rollout_end(self) -> None:
        results = self.pool.state.results
        found = {"opponents": float(len(set(self.pool.names))), **self.learner.metrics(results)}
        for name, handicap in self.pool.handicaps().items():
            if results[name].last:
                found |= {f"{name}/handicap/{number}": value for number, value in handicap.items()}
        found["since_snapshot"] = self.model.num_timesteps - self.learner.state.since
        for name, value in found.items():
            self.logger.record(f"league/{name}", value)

    def _snapshot_due(self) -> bool:
        """Whether a snapshot is due, in all processes as in the first."""
        steps, results = self.model.num_timesteps, self.pool.state.results
        return distributed.broadcast_object(lambda: self.learner.snapshot_due(steps, results))

    def _publish(self, checkpoint: Path) -> None:
        name = distributed.broadcast_object(lambda: self.learner.publish(checkpoint))
        self.learner.published(name)
        restart = distributed.broadcast_object(self.learner.should_reset)
        self._console.print(
            f"League: added {name!r} at {self.model.num_timesteps:,} decisions{', and restart' if restart else ''}",
            markup=False,
        )
        if restart:
            self.learner.state.last = None
            self.pool.forget()
            self.model.reinitialize(distributed.broadcast_object(self._initial_weights))

    def _initial_weights(self) -> dict[str, Tensor]:
        """The weights to restart from: those of `TrainConfig.init`, as the run has kept them, or new random ones.

        Raises CheckpointError if the run's first checkpoint is missing or damaged.
        """
        if self._config.init:
            return weights_of(load_checkpoint(first_checkpoint(self._out)).policy)
        seed = training_seed(self._config.seed, 0, self.model.num_timesteps)  # others after every restart
        policy = build_policy(self._config.network, seed)
        policy.set_battle(self._config.battle)
        return weights_of(policy)
