"""The configuration of a training run, resolved and written into the run's folder."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from echelon_env import opponents
from echelon_env.config import BattleConfig
from echelon_env.scenario import ScenarioLike, make_config
from echelon_env.schema import ConfigError, build, check_fields, nearest_name, quantity, to_plain


@dataclass(frozen=True, kw_only=True)
class NetworkConfig:
    """Widths of the recurrent policy."""

    width: int = quantity(128, "units", 1, 4096)  # of the layer that reads the observation and of the LSTM after it
    head: int = quantity(64, "units", 1, 4096)  # of the hidden layer of the actor's and the critic's head
    initial_log_std: float = quantity(-0.5, "log of the standard deviation of an action's entries", -5, 2)

    def __post_init__(self) -> None:
        check_fields(self, "network.")


@dataclass(frozen=True, kw_only=True)
class PPOConfig:
    """Parameters of proximal policy optimisation; the discount is the battle's `RewardConfig.gamma`."""

    rollout_steps: int = quantity(32, "decisions", 2, 10**6)  # of every row between two updates
    minibatch: int = quantity(1024, "samples", 2, 10**7)
    epochs: int = quantity(3, "passes", 1, 100)
    learning_rate: float = quantity(7e-4, "", 0, 1)  # decays linearly to a tenth
    gae_lambda: float = quantity(0.95, "", 0, 1)
    clip_range: float = quantity(0.2, "", 0, 10)
    entropy_weight: float = quantity(0.0, "", 0, 10)
    value_weight: float = quantity(0.5, "", 0, 10)
    max_grad_norm: float = quantity(0.5, "", 1e-9, 1e9)
    reward_scale: float = quantity(0.1, "x", 1e-9, 1e9)  # brings returns near 1, for the value function's sake

    def __post_init__(self) -> None:
        check_fields(self, "ppo.")


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """Everything that a training run is made from. Raises `ConfigError` when a value is impossible."""

    battle: BattleConfig
    opponent: str = "novice"
    steps: int = quantity(1_000_000, "samples", 1, 10**15)  # decisions of learner mechs
    seed: int = quantity(0, "", 0, 2**32 - 1)  # NumPy's global generator, which SB3 seeds, takes no more
    battles: int = quantity(64, "battles", 1, 10**5)  # stepped at once
    threads: int = quantity(1, "threads", 1, 1024)  # that step the battles
    device: str = "auto"
    torch_threads: int = quantity(1, "threads", 1, 1024)  # more than 1 stalls on small matrices and busy machines
    eval_every: int = quantity(200_000, "samples", 0, 10**15)  # 0: never
    eval_battles: int = quantity(50, "battles", 1, 10**6)
    checkpoint_every: int = quantity(200_000, "samples", 0, 10**15)  # 0: only at the end
    network: NetworkConfig = field(default_factory=NetworkConfig)
    ppo: PPOConfig = field(default_factory=PPOConfig)

    def __post_init__(self) -> None:
        check_fields(self, "")
        if self.battle.dead_agents != "persist":
            raise ConfigError("training needs dead_agents = 'persist': a row's episode is the battle")
        if self.opponent not in opponents.LEVELS:
            raise ConfigError(f"unknown opponent {self.opponent!r}{nearest_name(self.opponent, opponents.LEVELS)}")
        samples = self.battles * len(self.battle.blue) * self.ppo.rollout_steps
        if samples % self.ppo.minibatch == 1:
            raise ConfigError(
                f"ppo.minibatch {self.ppo.minibatch} leaves a minibatch of one of the {samples} samples of a rollout, "
                "whose advantage cannot be normalised"
            )

    def to_dict(self) -> dict[str, Any]:
        """The configuration as nested dicts, lists and plain values, fit for JSON."""
        return typing.cast("dict[str, Any]", to_plain(self))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TrainConfig:
        """The inverse of `to_dict`. Raises `ConfigError`."""
        return typing.cast("TrainConfig", build(cls, data, ""))


def battle_config(scenario: ScenarioLike) -> BattleConfig:
    """A battle as training plays it: the dead keep their rows, and the clock is part of the game."""
    return dataclasses.replace(make_config(scenario), dead_agents="persist", time_limit="terminate")
