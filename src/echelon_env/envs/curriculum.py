"""Environments that follow a curriculum, for Gymnasium's single-agent and PettingZoo's parallel API."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

import gymnasium
import numpy as np
import pettingzoo
from gymnasium.spaces import Space
from numpy.typing import NDArray

from echelon_env.config.battle import BattleConfig
from echelon_env.config.curriculum import CurriculumLike, Progress, make_curriculum
from echelon_env.config.opponent import Opponents
from echelon_env.config.schema import ConfigError, check_seed
from echelon_env.engine.state import BLUE, RED
from echelon_env.envs.autoreset import check_battle_options
from echelon_env.envs.controlled import check_arguments
from echelon_env.envs.parallel import BattleParallelEnv, Infos
from echelon_env.envs.single import BattleEnv
from echelon_env.spaces.agent import of_agent

_Env = TypeVar("_Env", BattleEnv, BattleParallelEnv)


class _CurriculumStages(Generic[_Env]):
    """One environment for each stage. Other attributes are those of the current battle's environment."""

    def __init__(self, curriculum: CurriculumLike, make: Callable[[BattleConfig, Opponents | None], _Env]) -> None:
        self.progress = Progress(make_curriculum(curriculum))
        """The learner's progress in the curriculum."""
        self.stages: list[_Env] = []
        """The environment of each stage."""
        named = self.progress.curriculum.opponents
        for stage, scenario in enumerate(self.progress.curriculum.scenarios):
            try:
                self.stages.append(make(scenario.config, named[stage] if named else None))
            except ConfigError as error:
                raise ConfigError(f"stage {stage} ({scenario.name}): {error}", *error.keys) from None
        self._stage = 0  # of the current battle
        self._seed: int | None = None
        self._unseeded: set[int] = set()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(stage {self._stage} of {len(self.stages)}: {self.env!r})"

    @property
    def env(self) -> _Env:
        """The environment of the current battle."""
        return self.stages[self._stage]

    def __getattr__(self, name: str) -> Any:
        """An attribute of the current battle's environment."""
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        return getattr(self.stages[self._stage], name)

    def render(self) -> Any:
        """Render the current battle."""
        return self.env.render()

    def close(self) -> None:
        """Close the windows of all stages."""
        for env in self.stages:
            env.close()

    @property
    def _stage_info(self) -> dict[str, Any]:
        """Infos about the stage of the current battle."""
        return {"stage": self._stage, "scenario": self.progress.curriculum.scenarios[self._stage].name}

    def _enter_stage(self, seed: int | None) -> int | None:
        """Switch to the current stage of `progress`. Returns the seed for the reset of its environment, or None."""
        if seed is not None or self._seed is None:
            self._seed = int(np.random.default_rng().integers(2**63)) if seed is None else check_seed(seed)
            self._unseeded = set(range(len(self.stages)))
        if self._stage != self.progress.stage:
            self.env.close()
            self._stage = self.progress.stage
        if self._stage not in self._unseeded:
            return None
        self._unseeded.remove(self._stage)
        return self._seed


class CurriculumEnv(_CurriculumStages[BattleEnv], gymnasium.Env[Any, Any]):
    """`BattleEnv` in the current stage of a curriculum. `reset` switches the scenario when the stage has changed.

    `progress` records the episodes that `step` completes: as won if the info's ``outcome`` is 1, else as not won. Not
    won includes draws, and the death of a pilot while the battle is not over. An episode that `reset` abandons, for
    example after a TimeLimit wrapper, is not recorded. Infos hold ``stage`` (index) and ``scenario`` (name) of the
    current battle.

    All other attributes and methods of `BattleEnv`, such as `config`, `action_masks`, `explain_action` and
    `describe_observation`, are those of the current battle.

    Seeds work as in `BattleEnv`. After a reset with a seed, the battles of a stage are those of its `BattleEnv` after a
    reset with that seed, independent of the battles in other stages. A seed does not change `progress`.

    For many battles at once create many environments, each with its own progress:
    ``gymnasium.vector.AsyncVectorEnv([lambda: CurriculumEnv(["duel-open", "duel"]) for _ in range(8)])``, or
    ``SyncVectorEnv``.

    Parameters
    ----------
    curriculum
        A `Curriculum`, its dict or a sequence of scenarios; `make_curriculum` sets the rule, and the opponents of the
        stages, if they differ.
    render_mode
        As in `BattleEnv`.
    **kwargs
        Further arguments of `BattleEnv`, for every stage.

    Raises
    ------
    ConfigError
        For invalid arguments, and for ``control="team"`` if the team size differs between stages.
    """

    metadata: dict[str, Any] = BattleEnv.metadata

    def __init__(self, curriculum: CurriculumLike, *, render_mode: str | None = None, **kwargs: Any) -> None:
        check_arguments(kwargs, CurriculumEnv, BattleEnv)

        def make(config: BattleConfig, opponent: Opponents | None) -> BattleEnv:
            own = kwargs if opponent is None else {**kwargs, "opponent": opponent}
            return BattleEnv(config, render_mode=render_mode, **own)

        super().__init__(curriculum, make)
        self.render_mode = render_mode
        self.observation_space, self.action_space = self.env.observation_space, self.env.action_space
        for stage, env in enumerate(self.stages):
            if env.action_space != self.action_space:
                raise ConfigError(
                    f"stage {stage}: control 'team' needs teams of one size in all stages, got one of "
                    f"{len(env.mechs)} after one of {len(self.env.mechs)}"
                )

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start a battle of the current stage. A seed determines the sequence of battles in every stage."""
        if seed is not None:
            seed = check_seed(seed)
        super().reset(seed=seed)
        options = check_battle_options(options)
        stage_seed = self._enter_stage(seed)
        observation, info = self.env.reset(seed=stage_seed, options=options)
        return observation, info | self._stage_info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take a decision, as in `BattleEnv`."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        if terminated or truncated:
            self.progress.record(info["outcome"] == 1)
        return observation, reward, terminated, truncated, info | self._stage_info


class CurriculumParallelEnv(
    _CurriculumStages[BattleParallelEnv],
    pettingzoo.ParallelEnv[str, Any, Any],  # type: ignore[misc]  # PettingZoo is untyped
):
    """`BattleParallelEnv` in the current stage of a curriculum. `reset` switches the scenario when the stage changed.

    `possible_agents` are the agents of all stages, `agents` those of the current battle. `progress` records an episode
    when its last agent has left: as won if `side` won by the infos' ``outcome``, else as not won, also if `max_cycles`
    truncated it. Seeds, and ``stage`` and ``scenario`` in the agents' infos, work as in `CurriculumEnv`.

    All other attributes and methods of `BattleParallelEnv`, such as `state_space`, `action_masks`, `explain_action` and
    `describe_observation`, are those of the current battle. The length of the global state depends on the number of
    mechs. So a centralised critic needs stages with equal roster sizes.

    Parameters
    ----------
    curriculum
        A `Curriculum`, its dict or a sequence of scenarios; `make_curriculum` sets the rule.
    side
        The team whose wins count, 0 blue or 1 red.
    render_mode
        As in `BattleParallelEnv`.
    **kwargs
        Further arguments of `BattleParallelEnv`, for every stage.

    Raises
    ------
    ConfigError
        For invalid arguments.
    """

    metadata: dict[str, Any] = BattleParallelEnv.metadata

    def __init__(
        self, curriculum: CurriculumLike, *, side: int = BLUE, render_mode: str | None = None, **kwargs: Any
    ) -> None:
        if side not in (BLUE, RED):
            raise ConfigError(f"side: expected 0 or 1, got {side!r}")
        check_arguments(kwargs, CurriculumParallelEnv, BattleParallelEnv)

        def make(config: BattleConfig, opponent: Opponents | None) -> BattleParallelEnv:
            if opponent is not None:
                raise ConfigError("all mechs are the caller's here: a curriculum has no opponents", "opponents")
            return BattleParallelEnv(config, render_mode=render_mode, **kwargs)

        super().__init__(curriculum, make)
        self._team = ("blue", "red")[side]
        self.render_mode = render_mode
        rosters = [env.config.rosters for env in self.stages]
        self.possible_agents = [
            f"{team}_{i}" for t, team in enumerate(("blue", "red")) for i in range(max(len(r[t]) for r in rosters))
        ]
        self.observation_spaces: dict[str, Space[Any]] = {}
        self.action_spaces: dict[str, Space[Any]] = {}
        for env in self.stages:
            self.observation_spaces = env.observation_spaces | self.observation_spaces
            self.action_spaces = env.action_spaces | self.action_spaces

    def observation_space(self, agent: str) -> Space[Any]:
        """The space of an agent's observations."""
        return of_agent(self.observation_spaces, agent)

    def action_space(self, agent: str) -> Space[Any]:
        """The space of an agent's actions."""
        return of_agent(self.action_spaces, agent)

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict[str, Any], Infos]:
        """Start a battle of the current stage. A seed determines the sequence of battles in every stage."""
        options = check_battle_options(options)
        stage_seed = self._enter_stage(seed)
        observations, infos = self.env.reset(seed=stage_seed, options=options)
        return observations, {agent: info | self._stage_info for agent, info in infos.items()}

    def step(
        self, actions: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, float], dict[str, bool], dict[str, bool], Infos]:
        """Take a decision, as in `BattleParallelEnv`."""
        observations, rewards, terminations, truncations, infos = self.env.step(actions)
        if not self.agents:
            agent, info = next(iter(infos.items()))
            self.progress.record(info["outcome"] == (1 if agent.startswith(self._team) else -1))
        infos = {agent: info | self._stage_info for agent, info in infos.items()}
        return observations, rewards, terminations, truncations, infos

    def state(self, team: int = BLUE) -> NDArray[np.float32]:
        """The global state of the current battle, as in `BattleParallelEnv`."""
        return self.env.state(team)
