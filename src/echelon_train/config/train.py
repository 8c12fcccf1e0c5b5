"""The complete configuration of a training run, which is also written to the run's folder."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from echelon_env.config.battle import BattleConfig
from echelon_env.config.curriculum import Curriculum, make_curriculum
from echelon_env.config.opponent import CHAMPION, SELF, HandicapConfig, Opponent, Opponents
from echelon_env.config.scenario import Scenario, ScenarioLike, make_config
from echelon_env.config.schema import ConfigError, build, check_fields, nearest_name, quantity, to_plain
from echelon_env.config.skill import LEVELS
from echelon_env.evaluate.seeds import evaluation_seed, validation_seed
from echelon_env.networks.config import NetworkConfig
from echelon_train.config.eval_seeds import EvalSeeds
from echelon_train.config.league import LeagueConfig
from echelon_train.config.ppo import CompileMode, PPOConfig
from echelon_train.config.schedules import RewardSchedules

CHANGEABLE = (
    "steps", "max_minutes", "max_cpu_minutes", "max_battles", "device", "threads", "torch_threads", "compile", "maps",
    "league.path",
)  # fmt: skip
"""Settings that may change when a run is resumed: its length, and settings of the machine.
Of `maps` only the path of a directory may change."""

MAX_MAPS = 20_000
"""Maximum number of training maps; a map takes 325 kB of memory."""


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """All settings of a training run. Raises `ConfigError` for invalid values."""

    battle: BattleConfig  # with a curriculum the battle of its first stage
    curriculum: Curriculum | None = None  # stages of scenarios in place of one battle
    extra_scenarios: tuple[Scenario, ...] = ()  # of the other processes: those of a file's scenario after the first
    opponent: Opponents = field(
        default=Opponents.parse("novice"),
        metadata={"help": "opponent, or a TOML table of opponents and weights (docs/guide/opponents.md)"},
    )
    opponent_win_rate: float = quantity(
        0.5, "win rate", 0.05, 0.95, help="win rate that the handicap `auto` of an opponent holds"
    )
    eval_opponent: Opponents | None = field(
        default=None,
        metadata={
            "help": "opponent of the evaluations, or a TOML table of opponents and weights; by default the only "
            "opponent, or the strongest of several"
        },
    )
    side: Literal["blue", "red", "both"] = field(
        default="both", metadata={"help": "the learner's team; both: drawn for every battle, of equal rosters"}
    )
    init: str = field(default="", metadata={"help": "run, checkpoint, LEAGUE/MEMBER or champion to start from"})
    teacher: Opponent | None = field(
        default=None,
        metadata={"help": "level, champion or policy:PATH whose actions are imitated, see --ppo.kickstart-coef"},
    )
    steps: int = quantity(1_000_000, "decisions", 1, 10**15, help="decisions of the learner's mechs")
    max_minutes: float = quantity(
        0.0,
        "minutes",
        0,
        10**9,
        help="limit of time, of all its parts; 0: none",
    )
    max_cpu_minutes: float = quantity(
        0.0,
        "minutes",
        0,
        10**9,
        help="processor time of all processes after which the run ends; 0: no limit",
    )
    max_battles: int = quantity(
        0,
        "games",
        0,
        10**15,
        help="finished training battles after which the run ends, unless its steps are done before; 0: no limit",
    )
    seed: int = quantity(
        0, "", 0, 2**32 - 1, help="seed of all random numbers"
    )  # the largest seed of NumPy's global generator, which SB3 seeds
    battles: int = quantity(
        64, "battles", 1, 10**5, help="battles stepped in parallel; other scenarios of a run keep battles x team size"
    )
    processes: int = quantity(
        1, "processes", 1, 1024, help="processes on this machine that train together, each with --battles of its own"
    )
    threads: int = quantity(
        1, "threads", 1, 1024, help="threads of the battles, scripted opponents and a scripted teacher"
    )
    maps: int | str = field(
        default=1500,
        metadata={
            "low": 0,
            "high": MAX_MAPS,
            "help": "number of training maps, a directory of recipes, or 0: a new map for every battle",
        },
    )
    regenerate: int = quantity(1, "battles", 1, 10**6, help="successive battles on one map")
    device: str = field(default="auto", metadata={"help": "auto, cpu, cuda or cuda:N"})
    torch_threads: int = quantity(
        1, "threads", 1, 1024, help="threads of torch on the CPU; more than 1 is slow on busy machines"
    )
    compile: CompileMode = field(
        default="auto",
        metadata={"help": "CUDA graphs of a network on a GPU: auto, off or graphs (docs/guide/gpu.md)"},
    )
    deterministic: bool = field(default=False, metadata={"help": "reproducible results on CUDA, at lower speed"})
    eval_every: int = quantity(200_000, "decisions", 0, 10**15, help="decisions between two evaluations; 0: none")
    eval_battles: int = quantity(
        50, "battles", 2, 10**6, help="battles of an evaluation, even: each map is played from both sides"
    )
    eval_seeds: EvalSeeds | None = field(
        default=None,
        metadata={"help": "text file of the seeds of the evaluations' maps, in place of --eval-battles"},
    )
    film_every: int = quantity(
        0, "decisions", 0, 10**15, help="decisions between two films of a battle of the policy; 0: none"
    )
    checkpoint_every: int = quantity(
        200_000, "decisions", 0, 10**15, help="decisions between two checkpoints; 0: only the first, last and best"
    )
    network: NetworkConfig = field(default_factory=NetworkConfig)
    ppo: PPOConfig = field(default_factory=PPOConfig)
    reward_schedules: RewardSchedules = field(default_factory=RewardSchedules)
    league: LeagueConfig = field(default_factory=LeagueConfig)

    def __post_init__(self) -> None:
        object.__setattr__(self, "opponent", Opponents.parse(self.opponent))  # Python code may give a text or a dict
        if self.eval_opponent is not None:
            evaluated = Opponents.parse(self.eval_opponent, "eval_opponent").check_playable("eval_opponent")
            object.__setattr__(self, "eval_opponent", evaluated)
        if self.eval_seeds is not None:
            object.__setattr__(self, "eval_seeds", EvalSeeds.parse(self.eval_seeds, "eval_seeds"))
        if self.teacher is not None:
            teacher = Opponent.parse(self.teacher, "teacher").check_playable("teacher")
            if teacher.trained and teacher.handicap != HandicapConfig():
                raise ConfigError(f"teacher: a policy teaches without a handicap, got {teacher}", "teacher")
            object.__setattr__(self, "teacher", teacher)
        check_fields(self, "")
        if self.battle.dead_agents != "persist":
            raise ConfigError("training needs dead_agents = 'persist': a row's episode is the battle")
        if self.side == "both" and len(self.battle.blue) != len(self.battle.red):
            raise ConfigError(
                f"side: teams of {len(self.battle.blue)} and {len(self.battle.red)} mechs need a learner with one "
                "side: expected 'blue' or 'red'",
                "side",
            )
        if self.side != "both" and self.league.path:
            raise ConfigError("side: in a league the learner plays both teams", "side")
        if self.league.path and self.league.role == "exploiter":
            self._check_exploiter()
        stages = 1 if self.curriculum is None else len(self.curriculum.scenarios)
        if not isinstance(self.maps, str) and self.maps * stages > MAX_MAPS:
            raise ConfigError(f"maps: expected at most {MAX_MAPS} in all stages, got {stages} x {self.maps}", "maps")
        if isinstance(self.maps, str) and self.curriculum is not None and len(self.curriculum.scenarios) > 1:
            raise ConfigError("maps: the stages of a curriculum have different maps; expected a number of maps", "maps")
        if self.eval_battles % 2:
            raise ConfigError(f"eval_battles: expected an even number, got {self.eval_battles}", "eval_battles")
        if self.evaluation_battles < 2 * len(self.evaluation_opponents.members):
            key = "eval_battles" if self.eval_seeds is None else "eval_seeds"
            raise ConfigError(
                f"{key}: expected two battles for each of {len(self.evaluation_opponents.members)} opponents, got "
                f"{self.evaluation_battles}",
                key,
                "eval_opponent",
            )
        if (self.teacher is not None) != (max(self.ppo.kickstart_coef.start, self.ppo.kickstart_coef.end) > 0.0):
            raise ConfigError("teacher: expected one exactly if ppo.kickstart_coef is above 0", "teacher")
        if self.compile == "graphs" and self.ppo.accumulate > 1:
            raise ConfigError(
                f"ppo.accumulate: expected 1 with compile = graphs, got {self.ppo.accumulate}",
                "ppo.accumulate",
                "compile",
            )
        for remaining in (1.0, 0.0):
            try:
                dataclasses.replace(self.battle, rewards=self.reward_schedules.at(self.battle.rewards, remaining))
            except ConfigError as error:
                raise ConfigError(f"reward_schedules: {error}", "reward_schedules") from None
        if self.curriculum is not None:
            self._check_stages(self.curriculum)
        if self.curriculum is not None and self.league.path:
            raise ConfigError("league.path: a run in a league cannot have a curriculum", "league.path")
        if self.extra_scenarios:
            self._check_extra()

    def _check_exploiter(self) -> None:
        if self.init:
            raise ConfigError("init: an exploiter starts from the weights of a main agent", "init")
        warmup = self.ppo.critic_warmup * self.ppo.n_steps * self.rows * self.processes
        if self.league.stage <= warmup:
            raise ConfigError(
                f"league.stage: expected more than the {warmup:,} decisions in which only an exploiter's critic learns "
                f"(ppo.critic_warmup), got {self.league.stage:,}",
                "league.stage",
                "ppo.critic_warmup",
            )

    def stage(self, index: int) -> TrainConfig:
        """The configuration of one stage of the curriculum, with about as many rows as the first stage."""
        if self.curriculum is None:
            return self
        opponent = self.curriculum.opponents[index] if self.curriculum.opponents else self.opponent
        stage = dataclasses.replace(self, opponent=opponent, curriculum=None)
        return stage._in_battle(self.curriculum.scenarios[index].config)

    def of_process(self, rank: int) -> TrainConfig:
        """The configuration of a process: the scenarios take turns, and all processes have about as many rows."""
        battles = [self.battle, *(scenario.config for scenario in self.extra_scenarios)]
        if len(battles) == 1:
            return self
        return dataclasses.replace(self, extra_scenarios=())._in_battle(battles[rank % len(battles)])

    def plain_runs(self) -> list[TrainConfig]:
        """The configurations of all stages of the curriculum, or of a process in each of the scenarios."""
        if self.curriculum is not None:
            return [self.stage(index) for index in range(len(self.curriculum.scenarios))]
        return [self.of_process(rank) for rank in range(1 + len(self.extra_scenarios))]

    def _in_battle(self, battle: BattleConfig) -> TrainConfig:
        """The same run in another battle, with about as many rows."""
        team_size = len(battle.red if self.side == "red" else battle.blue)
        battles = max(1, round(self.battles * self.team_size / team_size))
        return dataclasses.replace(self, battle=battle, battles=battles)

    @property
    def team_size(self) -> int:
        """Mechs of the learner's team."""
        return len(self.battle.red if self.side == "red" else self.battle.blue)

    @property
    def enemy_size(self) -> int:
        """Mechs of the opponent's team."""
        return self.battle.num_mechs - self.team_size

    @property
    def self_play_battles(self) -> int:
        """Battles in which the learner plays both teams: the share of ``self`` in `opponent`, or of the league.

        There are none if the learner has one side. If other opponents have a share, at least one battle is theirs.
        """
        if self.side != "both":
            return 0
        if self.league.path:
            share = self.league.self_play if self.league.role == "main" else 0.0
        else:
            weights = dict(zip(self.opponent.names, self.opponent.weights, strict=True))
            share = weights.get(SELF, 0.0) / sum(weights.values())
        return self.battles if share == 1.0 else min(round(share * self.battles), self.battles - 1)

    @property
    def drawn_opponents(self) -> Opponents:
        """The opponents of the battles in which the learner has one team."""
        others = dict(zip(self.opponent.names, self.opponent.weights, strict=True))
        others.pop(SELF, None)
        return Opponents.parse(others) if others and self.self_play_battles else self.opponent

    @property
    def rows(self) -> int:
        """Mechs that the learner controls in all battles."""
        return (self.battles + self.self_play_battles) * self.team_size

    @property
    def evaluation_battles(self) -> int:
        """Battles of an evaluation: two on each map of `eval_seeds`, or `eval_battles`."""
        return self.eval_battles if self.eval_seeds is None else 2 * len(self.eval_seeds.seeds)

    @property
    def evaluation_maps(self) -> tuple[int, ...]:
        """Seeds of the maps of the evaluations during the run: `eval_seeds`, or from a hash of the run's seed."""
        if self.eval_seeds is not None:
            return self.eval_seeds.seeds
        seed = validation_seed(self.seed)
        return tuple(evaluation_seed(seed, index) for index in range(self.eval_battles // 2))

    @property
    def evaluation_opponents(self) -> Opponents:
        """The opponents of the evaluations: `eval_opponent`, or one that follows from `opponent`.

        That is a single one, without a handicap that changes; else the champion or the strongest level that is named,
        without its handicap, and ``expert`` where none is. Its win rate has a plain meaning, and does not depend on
        the weights.
        """
        if self.eval_opponent is not None:
            return self.eval_opponent
        single = self.opponent.single
        if single is not None and single.name != SELF:
            return Opponents.parse(Opponent(single.name) if single.auto or single.schedule else single)
        named = [each.name for each in self.opponent.members]
        return Opponents.parse(next((level for level in [CHAMPION, *[*LEVELS][::-1]] if level in named), "expert"))

    def with_overrides(self, **changes: Any) -> TrainConfig:
        """The configuration of a resumed run. `changes` are values of `CHANGEABLE` settings; None changes nothing.

        Raises `ConfigError` for other settings and invalid values.
        """
        for name in changes:
            if name not in CHANGEABLE:
                raise ConfigError(f"{name}: cannot change in a resumed run{nearest_name(name, CHANGEABLE)}", name)
        changes = {name: value for name, value in changes.items() if value is not None}
        maps = changes.get("maps")
        if maps is not None and not isinstance(self.maps, str):
            raise ConfigError(f"maps: cannot change, as the run has {self.maps} maps", "maps")
        if maps is not None and not isinstance(maps, str):
            raise ConfigError(f"maps: expected the new path of the directory {self.maps!r}, got {maps!r}", "maps")
        path = changes.pop("league.path", None)
        if path is not None and not self.league.path:
            raise ConfigError("league.path: this run is not in a league", "league.path")
        league = self.league if path is None else dataclasses.replace(self.league, path=path)
        return dataclasses.replace(self, **changes, league=league)

    def to_dict(self) -> dict[str, Any]:
        """The configuration as nested dicts, lists and values for JSON."""
        return typing.cast("dict[str, Any]", to_plain(self))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TrainConfig:
        """The inverse of `to_dict`. Raises `ConfigError`."""
        if isinstance(data, Mapping) and data.get("curriculum") is not None:
            data = {**data, "curriculum": build(Curriculum, data["curriculum"], "curriculum.")}
        return typing.cast("TrainConfig", build(cls, data, ""))

    def _check_extra(self) -> None:
        """Check that there is a process for every scenario."""
        count = 1 + len(self.extra_scenarios)
        if self.curriculum is not None:
            raise ConfigError("scenario, curriculum: expected one of them", "scenario", "curriculum")
        if self.processes < count:
            raise ConfigError(
                f"processes: expected at least {count}, one for every scenario, got {self.processes}",
                "processes",
                "scenario",
            )
        if isinstance(self.maps, str):
            raise ConfigError("maps: several scenarios have different maps; expected a number of maps", "maps")
        for rank in range(1, count):
            scenario = self.extra_scenarios[rank - 1]
            if any(each.name == scenario.name and each != scenario for each in self.extra_scenarios):
                raise ConfigError(f"scenario: {scenario.name} is the name of two scenarios", "scenario")
            if scenario.config.abilities != self.battle.abilities:
                raise ConfigError(f"scenario: {scenario.name} has other abilities than the first scenario", "scenario")
            try:
                self.of_process(rank)
            except ConfigError as error:
                raise ConfigError(f"scenario {scenario.name}: {error}", *error.keys) from None
        rows = [run.rows for run in self.plain_runs()]
        samples = min(self.ppo.batch_size, min(rows) * self.ppo.n_steps)  # of a minibatch
        chunks = min(rows) * self.ppo.n_steps // self.ppo.chunk
        if max(rows) * self.ppo.n_steps > samples * chunks:  # all processes have as many minibatches
            raise ConfigError(
                f"battles: expected more, got {self.battles}: the processes have from {min(rows)} to {max(rows)} mechs",
                "battles",
            )

    def _check_stages(self, curriculum: Curriculum) -> None:
        if self.battle != curriculum.scenarios[0].config:
            raise ConfigError("battle: expected the battle of the curriculum's first stage")
        for index, scenario in enumerate(curriculum.scenarios):
            try:
                self.stage(index)
            except ConfigError as error:
                raise ConfigError(f"curriculum stage {index} ({scenario.name}): {error}", *error.keys) from None


APPROACH = 5.0
"""Weight in training of the reward for approaching the zone, per map size."""


def battle_config(scenario: ScenarioLike) -> BattleConfig:
    """The battle of a scenario with the settings of training.

    Dead mechs keep their rows, the time limit terminates the battle, and approaching the zone is rewarded.

    The approach reward is deliberately not potential-based shaping. Such shaping does not change the order of policies,
    and a critic soon predicts all of it; nothing would then draw a team that has never been in the zone towards it.
    Here a mech keeps its undiscounted gain in potential. Neither its death nor the end of the battle takes it back.
    """
    config = make_config(scenario)
    rewards = dataclasses.replace(config.rewards, gamma=1.0, approach=APPROACH, approach_kept=1.0)
    return dataclasses.replace(config, dead_agents="persist", time_limit="terminate", rewards=rewards)


def training_curriculum(scenarios: Sequence[ScenarioLike], **rule: Any) -> Curriculum:
    """Like `make_curriculum`, but the stages have the settings of training, see `battle_config`."""
    made = make_curriculum(scenarios, **rule)
    stages = (dataclasses.replace(each, config=battle_config(each.config)) for each in made.scenarios)
    return dataclasses.replace(made, scenarios=tuple(stages))
