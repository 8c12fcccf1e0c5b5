"""The opponents of a run without a league: win rates, changing handicaps, and the learner as its own opponent."""

from __future__ import annotations

from stable_baselines3.common.callbacks import BaseCallback

from echelon_env.champions import policy_path
from echelon_env.config.opponent import SELF, Opponent
from echelon_train.checkpoints.checkpoint import load_checkpoint
from echelon_train.config.train import TrainConfig
from echelon_train.errors import TrainError
from echelon_train.league.store.policies import find_policy
from echelon_train.opponents.pool import OpponentPool, frozen_copy
from echelon_train.opponents.weighted import WeightedOpponents
from echelon_train.policy import BattlePolicy
from echelon_train.ppo import distributed
from echelon_train.runs.callbacks.results import finished_battles


class OpponentsCallback(BaseCallback):  # type: ignore[misc]
    """Keeps the opponents of the present stage, logs the results against each, and copies the learner's weights.

    Where the learner plays both teams there is no opponent. Elsewhere ``self`` is a copy of the learner, renewed before
    every rollout: with a handicap, or on one side.

    Parameters
    ----------
    device
        Device that policies run on.
    """

    def __init__(self, device: str) -> None:
        super().__init__()
        self._device = device
        self._learner: BattlePolicy | None = None

    def enter(self, config: TrainConfig, moves: int = 0) -> OpponentPool:
        """The opponents of a plain run or a stage, after so many changes of the stage. The counts restart."""
        self._config = config
        seed = distributed.rank_seed(config.seed) + moves * 2**32
        self.opponents = WeightedOpponents(config.drawn_opponents, seed, config.opponent_win_rate)
        self._pool = OpponentPool(
            config.battle,
            self.opponents.draw,
            self._load,
            player=self.opponents.player,
            team_size=config.enemy_size,
            seed=seed,
            device=self._device,
            num_threads=config.threads,
            recorded=False if config.compile == "off" else None,
        )
        for opponent in config.opponent.members:
            path = policy_path(opponent, config.battle)
            if path is not None:
                find_policy(path)  # one that is missing fails here, not in the middle of the run
        return self._pool

    def refresh(self, policy: BattlePolicy) -> None:
        """Copy the policy's weights to the learner as its own opponent, if it is one."""
        config = self._config
        drawn = config.self_play_battles < config.battles
        if drawn and any(each.name == SELF for each in config.drawn_opponents.members):
            self._learner = frozen_copy(policy, self._learner)
            self._pool.refresh(SELF)

    def set_remaining(self, remaining: float) -> None:
        """Set the handicaps that have schedules to a share of the run that is left, also in battles in progress."""
        if self.opponents.set_remaining(remaining):
            self._pool.update_handicaps()

    def _load(self, player: str) -> BattlePolicy:
        path = policy_path(Opponent(player), self._config.battle)
        if path is not None:
            return load_checkpoint(find_policy(path)).policy
        if self._learner is None:
            raise TrainError("the learner's weights have not been copied yet")
        return self._learner

    def _on_rollout_start(self) -> None:
        self.refresh(self.model.policy)

    def _on_step(self) -> bool:
        changed = [
            self.opponents.record(infos[0]["opponent"], infos[0]["outcome"])
            for infos in finished_battles(self.training_env, self.locals["infos"])
            if infos[0]["opponent"] in self.opponents.names
        ]
        if any(changed):
            self._pool.update_handicaps()
        return True

    def _on_rollout_end(self) -> None:
        for name, value in self.opponents.metrics().items():
            self.logger.record(f"opponent/{name}", value)
