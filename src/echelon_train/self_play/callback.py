"""The callback of stable-baselines3 that adds policies to the opponents."""

from __future__ import annotations

from collections import deque
from pathlib import Path

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.vec_env import VecCheckNan, VecEnv, VecMonitor, VecNormalize

from echelon_env.config.schema import ConfigError, check_integer
from echelon_train.self_play.files import POOL_FILE, read_member, read_pool, write_pool
from echelon_train.self_play.past_policies import PastPolicies, PastPolicy
from echelon_train.vec_env import BattleVecEnv

_HARMLESS = (VecMonitor, VecCheckNan)  # wrappers that change no observation and no action


class SelfPlayCallback(BaseCallback):  # type: ignore[misc]
    """Trains a model against its own past policies.

    The model is of any on-policy algorithm of stable-baselines3 or sb3-contrib, or `EchelonRecurrentPPO`, on a
    `BattleVecEnv` whose opponent is `opponents`, also under `VecNormalize`, `VecMonitor` and `VecCheckNan`. The
    policy joins the opponents when the training starts, then every `every` steps, between two rollouts or at the end.

    Parameters
    ----------
    opponents
        The environment's opponent.
    every
        Steps (of all rows together) between two policies that join.
    gate
        A policy joins only if the learner has won this share of its last `PastPolicies.window` battles since the last
        one joined, a draw counting as half a win; 0: always. It is asked again before the next rollout.
    folder
        Keeps the opponents, for a training that is resumed: with the same folder and a model that was loaded it
        continues with the members and the results in it. None keeps nothing.
    verbose
        1 prints a line for each policy that joins.

    Raises
    ------
    ConfigError
        For a number out of range; at the start of the training for an environment that does not fit, for a model of
        another kind of algorithm, and for one with ``use_sde``.
    CheckpointError
        At the start of the training, for a folder whose files are damaged or of another model.

    Notes
    -----
    Logs ``self_play/members``, ``self_play/win_rate`` (of the battles since the last policy joined) and
    ``self_play/lowest_win_rate`` (the lowest of `PastPolicies.win_probabilities`).
    """

    def __init__(
        self,
        opponents: PastPolicies,
        *,
        every: int = 50_000,
        gate: float = 0.0,
        folder: str | Path | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(verbose)
        self._opponents = opponents
        self._every = check_integer("every", every)
        if isinstance(gate, bool) or not isinstance(gate, (int, float)) or not 0.0 <= gate <= 1.0:
            raise ConfigError(f"gate: expected a share from 0 to 1, got {gate!r}", "gate")
        self._gate = float(gate)
        self._folder = None if folder is None else Path(folder)
        self._joined: int | None = None  # steps at which the last policy joined
        self._kept: set[str] = set()  # the members that the folder has
        self._recent: deque[int] = deque(maxlen=opponents.window)

    def _on_training_start(self) -> None:
        env, self._normalizer = _inspect(self.training_env)
        if env.opponent is not self._opponents:
            raise ConfigError("SelfPlayCallback: expected the opponent of the environment, BattleVecEnv(opponent=...)")
        self._team = env.team_size
        if len(self._opponents.names) != env.num_battles:
            raise ConfigError(
                f"PastPolicies: expected {env.num_battles} teams, got {len(self._opponents.names)}: "
                "it is of another configuration or side than the environment"
            )
        if not isinstance(self.model, OnPolicyAlgorithm):
            raise ConfigError(f"SelfPlayCallback: expected an on-policy model, such as PPO, got {type(self.model)}")
        if self.model.use_sde:
            raise ConfigError("SelfPlayCallback: past policies cannot sample with use_sde = True (gSDE)")
        if not self._opponents.members:
            if self._folder is not None and (self._folder / POOL_FILE).exists():
                self._load(self._folder)
            else:
                self._join()
        joined = int([*self._opponents.members][-1]) if self._joined is None else self._joined
        self._joined = min(joined, self.num_timesteps)  # the model may count from 0 again

    def _on_step(self) -> bool:
        for info in self.locals["infos"][:: self._team]:
            if "opponent" in info:
                self._opponents.note(info["opponent"], info["outcome"])
                self._recent.append(info["outcome"])
        return True

    def _on_rollout_end(self) -> None:
        chances = self._opponents.win_probabilities
        self.logger.record("self_play/members", len(chances))
        self.logger.record("self_play/lowest_win_rate", min(chances.values()))
        if self._recent:
            self.logger.record("self_play/win_rate", self._win_rate())

    def _on_rollout_start(self) -> None:
        self._join_if_due()

    def _on_training_end(self) -> None:
        self._join_if_due()
        self._save()

    def _join_if_due(self) -> None:
        assert self._joined is not None
        if self.num_timesteps >= self._joined + self._every and self._passes():
            self._join()

    def _win_rate(self) -> float:
        return sum(0.5 * (outcome + 1) for outcome in self._recent) / len(self._recent)

    def _passes(self) -> bool:
        full = len(self._recent) == self._recent.maxlen
        return self._gate == 0.0 or (full and self._win_rate() >= self._gate)

    def _join(self) -> None:
        """The present policy joins the opponents."""
        first = max((int(name) + 1 for name in self._opponents.members), default=0)
        self._opponents.add({f"{max(first, self.num_timesteps):010}": self._member()})
        self._joined = self.num_timesteps
        if self.verbose and self._recent:
            print(f"self-play: {self.num_timesteps:,} steps, a policy joins that won {self._win_rate():.0%}")
        self._recent.clear()
        self._save()

    def _member(self) -> PastPolicy:
        """The present policy, with the present normalisation of the observations."""
        model = self.model
        spaces = model.observation_space, model.action_space
        with torch.random.fork_rng(devices=[]):  # the initial weights are random
            policy = model.policy_class(*spaces, model.lr_schedule, use_sde=model.use_sde, **model.policy_kwargs)
        policy = policy.to(model.device)
        policy.load_state_dict(model.policy.state_dict())
        policy.set_training_mode(False)
        width = self.training_env.observation_space.shape[0]
        if self._normalizer is None:
            return PastPolicy(policy, np.zeros(width, np.float32), np.ones(width, np.float32), np.inf)
        statistics = self._normalizer.obs_rms
        scale = 1.0 / np.sqrt(statistics.var + self._normalizer.epsilon)
        mean = np.asarray(statistics.mean, np.float32)
        return PastPolicy(policy, mean.copy(), scale.astype(np.float32), float(self._normalizer.clip_obs))

    def _save(self) -> None:
        if self._folder is not None:
            write_pool(self._folder, self._opponents.members, self._recent, self._kept)
            self._kept = set(self._opponents.members)

    def _load(self, folder: Path) -> None:
        """Take the members of a folder. Raises CheckpointError, with nothing changed."""
        pool, members = read_pool(folder), {}
        for name, results in [*pool.results.items()][-self._opponents.size :]:
            members[name] = self._member()
            read_member(folder, name, members[name])
            members[name].results.extend(results)
        self._recent.extend(pool.recent)
        self._opponents.add(members)
        self._kept = set(members)
        self._joined = int(name)


def _inspect(env: VecEnv) -> tuple[BattleVecEnv, VecNormalize | None]:
    """The battles under an environment's wrappers, and its normaliser of observations. Raises ConfigError."""
    normalizer = None
    while not isinstance(env, BattleVecEnv):
        if isinstance(env, VecNormalize):
            normalizer = env if env.norm_obs else normalizer
        elif not isinstance(env, _HARMLESS):
            raise ConfigError(f"SelfPlayCallback: expected a BattleVecEnv, in VecNormalize at most, got {type(env)}")
        env = env.venv
    if not isinstance(env.observation_space, spaces.Box):
        raise ConfigError("SelfPlayCallback: expected a BattleVecEnv without the states of a central critic")
    if env.self_play:
        raise ConfigError(
            "SelfPlayCallback: expected a BattleVecEnv with self_play = 0: the opponents are past policies"
        )
    return env, normalizer
