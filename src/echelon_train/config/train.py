"""The configuration of a training run, resolved and written into the run's folder."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from echelon_env import opponents
from echelon_env.config.battle import BattleConfig
from echelon_env.config.curriculum import Curriculum, CurriculumLike, make_curriculum
from echelon_env.config.scenario import ScenarioLike, make_config
from echelon_env.config.schema import ConfigError, build, check_fields, nearest_name, quantity, to_plain
from echelon_train.config.league import LeagueConfig, OpponentMixture
from echelon_train.config.ppo import PPOConfig
from echelon_train.config.schedules import RewardSchedules


@dataclass(frozen=True, kw_only=True)
class NetworkConfig:
    """Shape of the recurrent policy; the same in every scenario."""

    encoder: Literal["sets", "flat"] = field(
        default="sets",
        metadata={"help": "encoder of observations: sets of contacts, mates, ..., or one flat layer"},
    )
    set_width: int = quantity(32, "units", 1, 4096, help="width of the embedding of a contact, a squad-mate, ...")
    map_channels: int = quantity(8, "channels", 1, 1024, help="channels of the convolutions over the maps")
    width: int = quantity(128, "units", 1, 4096, help="width of the fused features and of the LSTM after them")
    head: int = quantity(64, "units", 1, 4096, help="width of the hidden layer in the actor's and the critic's head")
    critic: Literal["shared", "separate", "central"] = field(
        default="shared",
        metadata={
            "help": "shared: the actor's trunk; separate: its own trunk; central: its own trunk and the global state"
        },
    )
    auxiliary: bool = field(
        default=False,
        metadata={"help": "whether the network predicts the next observation, see --ppo.auxiliary-coef"},
    )
    normalize_observations: bool = field(
        default=False, metadata={"help": "scale observations by running moments of the living mechs"}
    )
    initial_std: float = quantity(
        0.6, "before tanh", 1e-3, 10, help="standard deviation of continuous actions at the start"
    )
    min_std: float = quantity(0.05, "before tanh", 1e-3, 10, help="lower bound of that standard deviation")
    max_std: float = quantity(2.0, "before tanh", 1e-3, 10, help="upper bound of that standard deviation")

    def __post_init__(self) -> None:
        check_fields(self, "network.")
        if not self.min_std < self.initial_std < self.max_std:
            raise ConfigError(
                "network.initial_std: expected a number between min_std and max_std, got "
                f"{self.min_std}, {self.initial_std}, {self.max_std}",
                "network.initial_std",
            )


_MIXTURE = "league.mixture."
CHANGEABLE = (
    "steps", "device", "threads", "torch_threads", "maps", "league.path",
    *(f"{_MIXTURE}{each.name}" for each in dataclasses.fields(OpponentMixture)),
)  # fmt: skip
"""Settings that may change when a run is resumed: its end, those of the machine, and the opponents of a main agent.
Of `maps` only the path of a directory may change."""

MAX_MAPS = 20_000
"""Maps that a run can train on; a kept map takes 320 kB of memory."""


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """All settings of a training run. Raises `ConfigError` for an impossible value."""

    battle: BattleConfig  # with a curriculum, that of its first stage
    curriculum: Curriculum | None = None
    opponent: str = field(default="novice", metadata={"help": "scripted level to train against"})
    steps: int = quantity(1_000_000, "samples", 1, 10**15, help="decisions of learner mechs to train on")
    seed: int = quantity(
        0, "", 0, 2**32 - 1, help="seed of the weights, the maps and all random numbers"
    )  # NumPy's global generator, which SB3 seeds, takes no more
    battles: int = quantity(
        64, "battles", 1, 10**5, help="battles stepped at once; a curriculum keeps their product with the team size"
    )
    threads: int = quantity(1, "threads", 1, 1024, help="threads that step the battles")
    maps: int | str = field(
        default=1500,
        metadata={"help": "number of maps to train on, a directory of recipes, or 0: a new map for every battle"},
    )
    regenerate: int = quantity(1, "battles", 1, 10**6, help="battles in a row on one map")
    device: str = field(default="auto", metadata={"help": "device of the network: auto, cpu, cuda or cuda:N"})
    torch_threads: int = quantity(
        1, "threads", 1, 1024, help="threads of the network on the CPU; more than 1 stalls on busy machines"
    )
    deterministic: bool = field(
        default=False, metadata={"help": "the same numbers in every run on CUDA, which is slower"}
    )
    eval_every: int = quantity(200_000, "samples", 0, 10**15, help="samples between two evaluations; 0: none")
    eval_battles: int = quantity(
        50, "battles", 2, 10**6, help="battles of an evaluation, an even number: every map is played from both sides"
    )
    checkpoint_every: int = quantity(
        200_000,
        "samples",
        0,
        10**15,
        help="samples between two checkpoints; 0: only the first, the last and the best",
    )
    network: NetworkConfig = field(default_factory=NetworkConfig)
    ppo: PPOConfig = field(default_factory=PPOConfig)
    reward_schedules: RewardSchedules = field(default_factory=RewardSchedules)
    league: LeagueConfig = field(default_factory=LeagueConfig)

    def __post_init__(self) -> None:
        check_fields(self, "")
        if self.battle.dead_agents != "persist":
            raise ConfigError("training needs dead_agents = 'persist': a row's episode is the battle")
        if len(self.battle.blue) != len(self.battle.red):
            raise ConfigError(
                f"training needs teams of equal size, got {len(self.battle.blue)} and {len(self.battle.red)}: "
                "the learner plays both"
            )
        if not isinstance(self.maps, str) and not (type(self.maps) is int and 0 <= self.maps <= MAX_MAPS):
            raise ConfigError(f"maps: expected 0 to {MAX_MAPS}, or a directory of recipes, got {self.maps!r}", "maps")
        stages = 1 if self.curriculum is None else len(self.curriculum.scenarios)
        if not isinstance(self.maps, str) and self.maps * stages > MAX_MAPS:
            raise ConfigError(f"maps: expected at most {MAX_MAPS} in all stages, got {stages} x {self.maps}", "maps")
        if isinstance(self.maps, str) and self.curriculum is not None and len(self.curriculum.scenarios) > 1:
            raise ConfigError("maps: the stages of a curriculum have different maps; give a number of them", "maps")
        if self.eval_battles % 2:
            raise ConfigError(f"eval_battles: expected an even number, got {self.eval_battles}", "eval_battles")
        if self.opponent not in opponents.LEVELS:
            hint = nearest_name(self.opponent, opponents.LEVELS)
            raise ConfigError(f"unknown opponent {self.opponent!r}{hint}", "opponent")
        if self.ppo.auxiliary_coef and not self.network.auxiliary:
            raise ConfigError("ppo.auxiliary_coef: needs network.auxiliary", "ppo.auxiliary_coef")
        for remaining in (1.0, 0.0):
            try:
                self.reward_schedules.at(self.battle.rewards, remaining)
            except ConfigError as error:
                raise ConfigError(f"reward_schedules: {error}", "reward_schedules") from None
        if self.curriculum is not None:
            self._check_stages(self.curriculum)
        if self.curriculum is not None and self.league.path:
            raise ConfigError("league.path: in a league there is no curriculum", "league.path")

    def stage(self, index: int) -> TrainConfig:
        """The plain run of a stage of the curriculum, with about as many rows as the first stage."""
        if self.curriculum is None:
            return self
        battle = self.curriculum.scenarios[index].config
        rows = self.battles * len(self.battle.blue)
        battles = max(1, round(rows / len(battle.blue)))
        return dataclasses.replace(self, battle=battle, battles=battles, curriculum=None)

    def with_overrides(self, **changes: Any) -> TrainConfig:
        """The configuration of the resumed run: changes of `CHANGEABLE` settings by name, where they are not None.

        Raises `ConfigError` for an impossible value.
        """
        for name in changes:
            if name not in CHANGEABLE:
                raise ConfigError(f"{name}: a resumed run keeps its settings{nearest_name(name, CHANGEABLE)}", name)
        changes = {name: value for name, value in changes.items() if value is not None}
        maps = changes.get("maps")
        if maps is not None and not isinstance(self.maps, str):
            raise ConfigError(f"maps: this run keeps its {self.maps} maps", "maps")
        if maps is not None and not isinstance(maps, str):
            raise ConfigError(f"maps: expected the present path of the directory {self.maps!r}, got {maps!r}", "maps")
        of_league = {name: changes.pop(name) for name in [*changes] if name.startswith("league.")}
        if of_league and not self.league.path:
            raise ConfigError(f"{', '.join(of_league)}: this run is in no league", "league.path")
        mixture = {name.removeprefix(_MIXTURE): value for name, value in of_league.items() if name.startswith(_MIXTURE)}
        league = dataclasses.replace(
            self.league,
            path=of_league.get("league.path", self.league.path),
            mixture=dataclasses.replace(self.league.mixture, **mixture),
        )
        return dataclasses.replace(self, **changes, league=league)

    def to_dict(self) -> dict[str, Any]:
        """The configuration as nested dicts, lists and plain values for JSON."""
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


APPROACH = 5.0
"""Weight of the approach to the zone in training, per map size."""


def battle_config(scenario: ScenarioLike) -> BattleConfig:
    """A battle as training plays it.

    The dead keep their rows, the clock is part of the game, and the approach to the zone is worth something.
    As potential-based shaping it would not be: it changes no policy's worth, so that a critic soon foresees all of it
    and nothing is left to draw a team that has never been in the zone towards it. Here what a mech gains in potential
    is its own, undiscounted, and neither its death nor the end takes it back.
    """
    config = make_config(scenario)
    rewards = dataclasses.replace(config.rewards, gamma=1.0, approach=APPROACH, approach_kept=1.0)
    return dataclasses.replace(config, dead_agents="persist", time_limit="terminate", rewards=rewards)


def training_curriculum(curriculum: CurriculumLike, **overrides: Any) -> Curriculum:
    """A curriculum as `make_curriculum` makes it, of battles as training plays them; see `battle_config`."""
    made = make_curriculum(curriculum, **overrides)
    scenarios = [dataclasses.replace(each, config=battle_config(each.config)) for each in made.scenarios]
    return dataclasses.replace(made, scenarios=tuple(scenarios))
