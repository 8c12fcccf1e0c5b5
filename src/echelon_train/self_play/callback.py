"""The callback of stable-baselines3 that adds policies to the opponents."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from gymnasium import spaces
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from sb3_contrib.common.recurrent.policies import RecurrentActorCriticPolicy
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.policies import ActorCriticPolicy, BasePolicy
from stable_baselines3.common.vec_env import VecCheckNan, VecEnv, VecMonitor, VecNormalize

from echelon_env.config.schema import ConfigError, check_integer
from echelon_env.layout.observations import OBSERVATION_DIM
from echelon_train.discrete import DiscreteActions
from echelon_train.opponents.actor import DISTRIBUTIONS, Actor, Choices, Normalization, takes_masks
from echelon_train.opponents.policy_batch import StackedPolicies
from echelon_train.opponents.results import WINDOW, Results
from echelon_train.policy import BattlePolicy
from echelon_train.self_play.files import POOL_FILE, Pool, read_member, read_pool, write_pool
from echelon_train.self_play.past_policies import PastPolicies
from echelon_train.vec_env import BattleVecEnv

_POLICIES = (ActorCriticPolicy, RecurrentActorCriticPolicy, MaskableActorCriticPolicy, BattlePolicy)
_HARMLESS = (VecMonitor, VecCheckNan)  # wrappers that change no observation and no action


class SelfPlayCallback(BaseCallback):  # type: ignore[misc]
    """Trains a model against its own past policies.

    The model is of any on-policy algorithm of stable-baselines3 or sb3-contrib, or `EchelonRecurrentPPO`, on a
    `BattleVecEnv` whose opponent is `opponents`, also under `DiscreteActions`, `VecNormalize`, `VecMonitor` and
    `VecCheckNan`. An `EchelonRecurrentPPO` may have a central critic, whose states its past policies do not need. The
    policy joins the opponents when the training starts, then every `every` steps, between two rollouts or at the end.

    Parameters
    ----------
    opponents
        The environment's opponent.
    every
        Steps (of all rows together) between two policies that join.
    gate
        A policy joins only if the learner has won this share of its last 100 battles since the last one
        joined, a draw counting as half a win; 0: always. It is asked again before the next rollout.
    folder
        Keeps the opponents, for a training that is resumed: with the same folder and a model that was loaded it
        continues with the members and the results in it. None keeps nothing.
    verbose
        1 prints a line for each policy that joins.

    Raises
    ------
    ConfigError
        For a number out of range; at the start of the training for an environment that does not fit, for a model of
        another kind of algorithm, for one with ``use_sde``, and for a policy with a ``predict`` of its own or one that
        `torch.func.vmap` cannot map.
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
        self._recent = Results()  # since the last policy joined

    def _on_training_start(self) -> None:
        env, self._normalizer, choices = _inspect(self.training_env)
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
        _check_policy(self.model.policy, self.model.use_sde)
        self._choices = choices and Choices(
            choices.action_format, choices.masks if takes_masks(self.model.policy) else None
        )
        if not self._opponents.members:
            if self._folder is not None and (self._folder / POOL_FILE).exists():
                self._load(self._folder)
            else:
                _check_mapped(self._member())
                self._join()
        joined = int([*self._opponents.members][-1]) if self._joined is None else self._joined
        self._joined = min(joined, self.num_timesteps)  # the model may count from 0 again

    def _on_step(self) -> bool:
        for info in self.locals["infos"][:: self._team]:
            if "opponent" in info:
                self._opponents.record(info["opponent"], info["outcome"])
                self._recent.add(info["outcome"])
        return True

    def _on_rollout_end(self) -> None:
        chances = self._opponents.win_probabilities
        self.logger.record("self_play/members", len(chances))
        self.logger.record("self_play/lowest_win_rate", min(chances.values()))
        if self._recent.last:
            self.logger.record("self_play/win_rate", self._recent.score)

    def _on_rollout_start(self) -> None:
        self._join_if_due()

    def _on_training_end(self) -> None:
        self._join_if_due()
        self._save()

    def _join_if_due(self) -> None:
        assert self._joined is not None
        if self.num_timesteps >= self._joined + self._every and self._passes():
            self._join()

    def _passes(self) -> bool:
        return self._gate == 0.0 or (self._recent.battles >= WINDOW and self._recent.score >= self._gate)

    def _join(self) -> None:
        """The present policy joins the opponents."""
        first = max((int(name) + 1 for name in self._opponents.members), default=0)
        self._opponents.add({f"{max(first, self.num_timesteps):010}": self._member()})
        self._joined = self.num_timesteps
        if self.verbose and self._recent.last:
            print(f"self-play: {self.num_timesteps:,} steps, a policy joins that won {self._recent.score:.0%}")
        self._recent = Results()
        self._save()

    def _member(self) -> Actor:
        """The present policy, with the present normalisation of the observations."""
        model = self.model
        spaces = model.observation_space, model.action_space
        with torch.random.fork_rng(devices=[]):  # the initial weights are random
            policy = model.policy_class(*spaces, model.lr_schedule, **model.policy_kwargs)
        policy = policy.to(model.device)
        policy.load_state_dict(model.policy.state_dict())
        policy.set_training_mode(False)
        normalization = Normalization(
            np.zeros(OBSERVATION_DIM, np.float32), np.ones(OBSERVATION_DIM, np.float32), np.inf
        )
        if self._normalizer is not None and not isinstance(self._normalizer.obs_rms, dict):  # a central critic's states
            statistics = self._normalizer.obs_rms
            scale = 1.0 / np.sqrt(statistics.var + self._normalizer.epsilon)
            mean = np.asarray(statistics.mean, np.float32)
            normalization = Normalization(mean.copy(), scale.astype(np.float32), float(self._normalizer.clip_obs))
        return Actor(policy, normalization, self._choices)

    def _save(self) -> None:
        if self._folder is not None:
            results = {name: each.last for name, each in self._opponents.results.items()}
            write_pool(self._folder, self._opponents.members, Pool(results, self._recent.last), self._kept)
            self._kept = set(self._opponents.members)

    def _load(self, folder: Path) -> None:
        """Take the members of a folder. Raises CheckpointError, with nothing changed."""
        pool, members = read_pool(folder), {}
        for name in [*pool.results][-self._opponents.size :]:
            members[name] = self._member()
            read_member(folder, name, members[name])
        self._recent = _results(pool.recent)
        self._opponents.add(members, {name: _results(pool.results[name]) for name in members})
        self._kept = set(members)
        self._joined = int(name)


def _results(last: Sequence[int]) -> Results:
    return Results(len(last), tuple(last)[-WINDOW:])


def _check_policy(policy: BasePolicy, use_sde: bool) -> None:
    """Raise ConfigError for a policy that cannot play as a past policy."""
    if use_sde:
        raise ConfigError("SelfPlayCallback: past policies cannot sample with use_sde = True (gSDE)")
    for method in ("predict", "_predict"):
        if all(getattr(type(policy), method) is not getattr(each, method) for each in _POLICIES):
            raise ConfigError(
                f"SelfPlayCallback: expected a policy whose actions are drawn from its get_distribution, "
                f"got {type(policy).__name__}, which has a {method} of its own"
            )
    if not isinstance(policy, BattlePolicy) and isinstance(policy.observation_space, spaces.Dict):
        raise ConfigError(
            "SelfPlayCallback: expected a policy that acts without the states of a central critic, such as that of "
            f"EchelonRecurrentPPO, got {type(policy).__name__}: opponents have observations alone"
        )
    if not isinstance(policy.action_dist, DISTRIBUTIONS):
        raise ConfigError(
            f"SelfPlayCallback: expected Gaussian or categorical actions, got {type(policy.action_dist).__name__}"
        )


def _check_mapped(actor: Actor) -> None:
    """Raise ConfigError for a policy that cannot act in a batch of others."""
    stacked = StackedPolicies(actor, actor.policy.device)
    stacked.allocate(1)
    observations = torch.zeros(1, 1, OBSERVATION_DIM, device=stacked.device)
    state = observations.new_zeros(1, 1, actor.units)
    masks = None
    if actor.choices is not None and actor.choices.masks is not None:
        masks = observations.new_ones(1, 1, actor.noise, dtype=torch.bool)
    try:
        stacked.act(observations, (state, state), observations.new_zeros(1, 1, actor.noise), masks)
    except RuntimeError as error:
        raise ConfigError(f"SelfPlayCallback: expected a policy that torch.func.vmap can map: {error}") from error


def _inspect(env: VecEnv) -> tuple[BattleVecEnv, VecNormalize | None, DiscreteActions | None]:
    """The battles under an environment's wrappers, and its normaliser and its choices. Raises ConfigError."""
    normalizer = choices = None
    while not isinstance(env, BattleVecEnv):
        if isinstance(env, VecNormalize):
            normalizer = env if env.norm_obs else normalizer
        elif isinstance(env, DiscreteActions):
            choices = env
        elif not isinstance(env, _HARMLESS):
            raise ConfigError(
                "SelfPlayCallback: expected a BattleVecEnv, in DiscreteActions and VecNormalize at most, "
                f"got {type(env)}"
            )
        env = env.venv
    if env.self_play:
        raise ConfigError(
            "SelfPlayCallback: expected a BattleVecEnv with self_play = 0: the opponents are past policies"
        )
    return env, normalizer, choices
