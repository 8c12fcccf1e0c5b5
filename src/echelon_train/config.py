"""The configuration of a training run, resolved and written into the run's folder."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from echelon_env import opponents
from echelon_env.config import BattleConfig
from echelon_env.curriculum import Curriculum, CurriculumLike, make_curriculum
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


MOST_MAPS = 20_000
"""Maps that a run can train on; a kept map takes 200 kB of memory."""


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """Everything that a training run is made from. Raises `ConfigError` when a value is impossible."""

    battle: BattleConfig  # with a curriculum, that of its first stage
    curriculum: Curriculum | None = None
    opponent: str = "novice"
    steps: int = quantity(1_000_000, "samples", 1, 10**15)  # decisions of learner mechs
    seed: int = quantity(0, "", 0, 2**32 - 1)  # NumPy's global generator, which SB3 seeds, takes no more
    battles: int = quantity(64, "battles", 1, 10**5)  # stepped at once; with a curriculum, in its first stage
    threads: int = quantity(1, "threads", 1, 1024)  # that step the battles
    maps: int | str = 1500  # to train on, or a directory of their recipes; 0: every battle has a map of its own
    regenerate: int = quantity(1, "battles", 1, 10**6)  # of a place on one map before it changes
    device: str = "auto"
    torch_threads: int = quantity(1, "threads", 1, 1024)  # more than 1 stalls on small matrices and busy machines
    eval_every: int = quantity(200_000, "samples", 0, 10**15)  # 0: never
    eval_battles: int = quantity(50, "battles", 2, 10**6)  # even: every map is played from both sides
    checkpoint_every: int = quantity(200_000, "samples", 0, 10**15)  # 0: only at the end
    network: NetworkConfig = field(default_factory=NetworkConfig)
    ppo: PPOConfig = field(default_factory=PPOConfig)

    def __post_init__(self) -> None:
        check_fields(self, "")
        if self.battle.dead_agents != "persist":
            raise ConfigError("training needs dead_agents = 'persist': a row's episode is the battle")
        if len(self.battle.blue) != len(self.battle.red):
            raise ConfigError(
                f"training needs teams of equal size, got {len(self.battle.blue)} and {len(self.battle.red)}: "
                "the learner plays both"
            )
        if not isinstance(self.maps, str) and not (type(self.maps) is int and 0 <= self.maps <= MOST_MAPS):
            raise ConfigError(f"maps: expected 0 to {MOST_MAPS}, or a directory of recipes, got {self.maps!r}", "maps")
        stages = 1 if self.curriculum is None else len(self.curriculum.scenarios)
        if not isinstance(self.maps, str) and self.maps * stages > MOST_MAPS:
            raise ConfigError(f"maps: expected at most {MOST_MAPS} in all stages, got {stages} x {self.maps}", "maps")
        if isinstance(self.maps, str) and self.curriculum is not None and len(self.curriculum.scenarios) > 1:
            raise ConfigError("maps: the stages of a curriculum have different maps; give a number of them", "maps")
        if self.eval_battles % 2:
            raise ConfigError(f"eval_battles: expected an even number, got {self.eval_battles}", "eval_battles")
        if self.opponent not in opponents.LEVELS:
            raise ConfigError(f"unknown opponent {self.opponent!r}{nearest_name(self.opponent, opponents.LEVELS)}")
        samples = self.battles * len(self.battle.blue) * self.ppo.rollout_steps
        if samples % self.ppo.minibatch == 1:
            raise ConfigError(
                f"ppo.minibatch {self.ppo.minibatch} leaves a minibatch of one of the {samples} samples of a rollout, "
                "whose advantage cannot be normalised"
            )
        if self.curriculum is not None:
            self._check_stages(self.curriculum)

    def stage(self, index: int) -> TrainConfig:
        """The plain run of a stage of the curriculum, with about as many rows as the first stage has."""
        if self.curriculum is None:
            return self
        battle = self.curriculum.scenarios[index].config
        rows = self.battles * len(self.battle.blue)
        battles = max(1, round(rows / len(battle.blue)))
        return dataclasses.replace(self, battle=battle, battles=battles, curriculum=None)

    def to_dict(self) -> dict[str, Any]:
        """The configuration as nested dicts, lists and plain values, fit for JSON."""
        return typing.cast("dict[str, Any]", to_plain(self))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TrainConfig:
        """The inverse of `to_dict`. Raises `ConfigError`."""
        if isinstance(data, Mapping) and data.get("curriculum") is not None:
            data = {**data, "curriculum": build(Curriculum, data["curriculum"], "curriculum.")}
        return typing.cast("TrainConfig", build(cls, data, ""))

    def _check_stages(self, curriculum: Curriculum) -> None:
        if self.battle != curriculum.scenarios[0].config:
            raise ConfigError("battle: with a curriculum it must be that of the first stage")
        for index, scenario in enumerate(curriculum.scenarios):
            try:
                self.stage(index)
            except ConfigError as error:
                raise ConfigError(f"curriculum stage {index} ({scenario.name}): {error}", *error.keys) from None


def battle_config(scenario: ScenarioLike) -> BattleConfig:
    """A battle as training plays it: the dead keep their rows, and the clock is part of the game."""
    return dataclasses.replace(make_config(scenario), dead_agents="persist", time_limit="terminate")


def training_curriculum(curriculum: CurriculumLike, **overrides: Any) -> Curriculum:
    """A curriculum as `make_curriculum` makes it, of battles as training plays them; see `battle_config`."""
    made = make_curriculum(curriculum, **overrides)
    scenarios = [dataclasses.replace(each, config=battle_config(each.config)) for each in made.scenarios]
    return dataclasses.replace(made, scenarios=tuple(scenarios))
