"""The opponents of a run without a league: win rates, changing handicaps, and the learner as its own opponent."""

from __future__ import annotations

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback

from echelon_env.champions import policy_path
from echelon_env.config import plugins
from echelon_env.config.opponent import SELF, Opponent
from echelon_env.opponents.by_name import policy_of
from echelon_env.opponents.policy import Policy, check_resumable, close_policy
from echelon_train.checkpoints.checkpoint import load_checkpoint
from echelon_train.config.train import TrainConfig
from echelon_train.errors import TrainError
from echelon_train.league.store.policies import find_policy
from echelon_train.opponents.actor import frozen_copy
from echelon_train.opponents.pool import OpponentPool
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
        drawn = config.drawn_opponents
        weights = dict(zip(drawn.names, drawn.weights, strict=True))
        self.pool = OpponentPool(
            config.battle,
            lambda: weights,
            self._load,
            known=drawn.names,
            win_rate=config.opponent_win_rate,
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
            elif plugins.is_player(opponent.name):
                policy = self._load(opponent.name)
                try:
                    policy.reset(np.ones(1, np.bool_))
                    check_resumable(opponent.name, policy).state_arrays()  # as would one that cannot be saved
                finally:
                    close_policy(policy)
        return self.pool

    def refresh(self, policy: BattlePolicy) -> None:
        """Copy the policy's weights to the learner as its own opponent, if it is one."""
        config = self._config
        drawn = config.self_play_battles < config.battles
        if drawn and any(each.name == SELF for each in config.drawn_opponents.members):
            self._learner = frozen_copy(policy, self._learner)
            self.pool.refresh(SELF)

    def _load(self, player: str) -> BattlePolicy | Policy:
        path = policy_path(Opponent(player), self._config.battle)
        if path is not None:
            return load_checkpoint(find_policy(path)).policy
        if player != SELF:
            config = self._config
            return policy_of(Opponent(player), config.seed, config.battle, config.threads)
        if self._learner is None:
            raise TrainError("the learner's weights have not been copied yet")
        return self._learner

    def _on_rollout_start(self) -> None:
        self.refresh(self.model.policy)

    def _on_step(self) -> bool:
        for infos in finished_battles(self.training_env, self.locals["infos"]):
            if infos[0]["opponent"] in self.pool.state.results:
                self.pool.record(infos[0]["opponent"], infos[0]["outcome"])
        return True

    def _on_rollout_end(self) -> None:
        handicaps = self.pool.handicaps()
        for name, results in self.pool.state.results.items():
            found = {"battles": float(results.battles)}
            if results.last:
                found["win_rate"] = results.win_rate
            found |= {f"handicap/{number}": value for number, value in handicaps.get(name, {}).items()}
            for metric, value in found.items():
                self.logger.record(f"opponent/{name}/{metric}", value)
