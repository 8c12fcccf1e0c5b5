"""Environments that follow a curriculum: Gymnasium's single agent and PettingZoo's parallel face."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

import gymnasium
import numpy as np
import pettingzoo
from gymnasium.spaces import Box, Space
from numpy.typing import NDArray

from echelon_env.config.battle import BattleConfig
from echelon_env.config.curriculum import CurriculumLike, Progress, make_curriculum
from echelon_env.config.schema import ConfigError, check_seed
from echelon_env.engine.state import BLUE, RED
from echelon_env.envs.controlled import check_arguments
from echelon_env.envs.parallel import BattleParallelEnv, Infos
from echelon_env.envs.single import BattleEnv
from echelon_env.spaces.describe import ActionDescription, FeatureDescription
from echelon_env.spaces.explain import ActionPart

_Env = TypeVar("_Env", BattleEnv, BattleParallelEnv)


class _Stages(Generic[_Env]):
    """An environment for each stage, and which of them is played."""

    def __init__(self, curriculum: CurriculumLike, make: Callable[[BattleConfig], _Env]) -> None:
        self.progress = Progress(make_curriculum(curriculum))
        self.envs: list[_Env] = []
        for stage, scenario in enumerate(self.progress.curriculum.scenarios):
            try:
                self.envs.append(make(scenario.config))
            except ConfigError as error:
                raise ConfigError(f"stage {stage} ({scenario.name}): {error}", *error.keys) from None
        self._playing = 0
        self._seed: int | None = None
        self._unseeded: set[int] = set()

    @property
    def env(self) -> _Env:
        """The environment of the battle in play."""
        return self.envs[self._playing]

    @property
    def info(self) -> dict[str, Any]:
        """What an environment's info says about the stage of the battle in play."""
        return {"stage": self._playing, "scenario": self.progress.curriculum.scenarios[self._playing].name}

    def enter(self, seed: int | None) -> int | None:
        """Enter the stage that the progress has come to; returns the seed that its environment is to be reset with."""
        if seed is not None or self._seed is None:
            self._seed = int(np.random.default_rng().integers(2**63)) if seed is None else check_seed(seed)
            self._unseeded = set(range(len(self.envs)))
        if self._playing != self.progress.stage:
            self.env.close()
            self._playing = self.progress.stage
        if self._playing not in self._unseeded:
            return None
        self._unseeded.remove(self._playing)
        return self._seed

    def close(self) -> None:
        """Close all stages' windows."""
        for env in self.envs:
            env.close()


class CurriculumEnv(gymnasium.Env[Any, Any]):
    """`BattleEnv` in the present stage of a curriculum: the scenario changes at `reset`, by the curriculum's rule.

    `progress` counts the episodes that `step` has brought to an end: as won if the info's ``outcome`` is 1, else as not
    won. That holds for the battle's own clock, which decides by score, and for a pilot's death, after which the battle
    goes on without it. An episode that is abandoned by `reset`, as a TimeLimit wrapper's are, counts for nothing. The
    infos of `reset` and of an episode's last step hold ``stage`` (index) and ``scenario`` (name) of the battle in play.

    Seeds work as in `BattleEnv`: after a reset with a seed a stage's battles are those of its `BattleEnv` after a reset
    with that seed, whatever was played in other stages between. `progress` stays as it is.

    For many battles at once, make many of these, each with its own progress:
    ``gymnasium.vector.AsyncVectorEnv([lambda: CurriculumEnv(["duel-open", "duel"]) for _ in range(8)])``, or
    ``SyncVectorEnv``.

    Parameters
    ----------
    curriculum
        A `Curriculum`, its dict or a sequence of scenarios; `make_curriculum` sets the rule.
    render_mode
        As in `BattleEnv`.
    **kwargs
        Further arguments of `BattleEnv`, for every stage.

    Raises
    ------
    ConfigError
        For anything impossible, and for ``control="team"`` with teams whose size changes from stage to stage.
    """

    metadata: dict[str, Any] = BattleEnv.metadata

    def __init__(self, curriculum: CurriculumLike, *, render_mode: str | None = None, **kwargs: Any) -> None:
        check_arguments(kwargs, CurriculumEnv, BattleEnv)
        self._stages = _Stages(curriculum, lambda config: BattleEnv(config, render_mode=render_mode, **kwargs))
        self.render_mode = render_mode
        self.observation_space, self.action_space = self._env.observation_space, self._env.action_space
        for stage, env in enumerate(self._stages.envs):
            if env.action_space != self.action_space:
                raise ConfigError(
                    f"stage {stage}: control 'team' needs teams of one size in all stages, got one of "
                    f"{len(env.mechs)} after one of {len(self._env.mechs)}"
                )

    @property
    def progress(self) -> Progress:
        """Where the learner stands."""
        return self._stages.progress

    @property
    def config(self) -> BattleConfig:
        """The configuration of the battle in play."""
        return self._env.config

    @property
    def _env(self) -> BattleEnv:
        return self._stages.env

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin a battle of the present stage. A seed names every stage's first battle; the others follow from it."""
        if seed is not None:
            seed = check_seed(seed)
        super().reset(seed=seed)
        stage_seed = self._stages.enter(seed)
        observation, info = self._env.reset(seed=stage_seed, options=options)
        return observation, info | self._stages.info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take a decision, as in `BattleEnv`."""
        observation, reward, terminated, truncated, info = self._env.step(action)
        if terminated or truncated:
            self.progress.record(info.get("outcome") == 1)
            info |= self._stages.info
        return observation, reward, terminated, truncated, info

    def action_masks(self) -> NDArray[np.bool_]:
        """What the multi-discrete action can do now, as in `BattleEnv`."""
        return self._env.action_masks()

    def explain_action(self, action: Any, mech: int = 0) -> list[ActionPart]:
        """What each part of an action would do now, as in `BattleEnv`."""
        return self._env.explain_action(action, mech)

    def describe_observation(self, mech: int = 0) -> tuple[FeatureDescription, ...]:
        """What every entry of a mech's flat observation is in the battle in play, as in `BattleEnv`."""
        return self._env.describe_observation(mech)

    def describe_action(self, mech: int = 0) -> tuple[ActionDescription, ...]:
        """What every entry of a mech's action vector is in the battle in play, as in `BattleEnv`."""
        return self._env.describe_action(mech)

    def render(self) -> Any:
        """The picture of the battle in play, as in `BattleEnv`."""
        return self._env.render()

    def close(self) -> None:
        """Close the window, if there is one."""
        self._stages.close()


class CurriculumParallelEnv(pettingzoo.ParallelEnv[str, Any, Any]):  # type: ignore[misc]  # PettingZoo is untyped
    """`BattleParallelEnv` in the present stage of a curriculum: the scenario changes at `reset`, by the rule.

    `possible_agents` are those of all stages, `agents` those of the battle in play. An episode counts when its last
    agent has left: as won if the info's ``outcome`` says that `side` won, else as not won, so also when `max_cycles`
    truncates it. Seeds, and ``stage`` and ``scenario`` in the agents' infos, are as in `CurriculumEnv`.

    `state_space`, `state` and the descriptions are those of the battle in play. A state has a part for every mech, so
    its length changes from stage to stage where the rosters do: a centralised critic needs stages of one size.

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
        For anything impossible among them.
    """

    metadata: dict[str, Any] = BattleParallelEnv.metadata

    def __init__(
        self, curriculum: CurriculumLike, *, side: int = BLUE, render_mode: str | None = None, **kwargs: Any
    ) -> None:
        if side not in (BLUE, RED):
            raise ConfigError(f"side: expected 0 or 1, got {side!r}")
        check_arguments(kwargs, CurriculumParallelEnv, BattleParallelEnv)
        self._team = ("blue", "red")[side]
        self._stages = _Stages(curriculum, lambda config: BattleParallelEnv(config, render_mode=render_mode, **kwargs))
        self.render_mode = render_mode
        rosters = [env.config.rosters for env in self._stages.envs]
        self.possible_agents = [
            f"{team}_{i}" for t, team in enumerate(("blue", "red")) for i in range(max(len(r[t]) for r in rosters))
        ]
        self.observation_spaces: dict[str, Space[Any]] = {}
        self.action_spaces: dict[str, Space[Any]] = {}
        for env in self._stages.envs:
            self.observation_spaces = env.observation_spaces | self.observation_spaces
            self.action_spaces = env.action_spaces | self.action_spaces

    @property
    def progress(self) -> Progress:
        """Where the team stands."""
        return self._stages.progress

    @property
    def config(self) -> BattleConfig:
        """The configuration of the battle in play."""
        return self._stages.env.config

    @property
    def agents(self) -> list[str]:
        """The agents of the battle in play that have not left it."""
        return self._stages.env.agents

    def observation_space(self, agent: str) -> Space[Any]:
        """The space of an agent's observations."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> Space[Any]:
        """The space of an agent's actions."""
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict[str, Any], Infos]:
        """Begin a battle of the present stage. A seed names every stage's first battle; the others follow from it."""
        stage_seed = self._stages.enter(seed)
        observations, infos = self._stages.env.reset(seed=stage_seed, options=options)
        return observations, {agent: info | self._stages.info for agent, info in infos.items()}

    def step(
        self, actions: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, float], dict[str, bool], dict[str, bool], Infos]:
        """Take a decision, as in `BattleParallelEnv`."""
        observations, rewards, terminations, truncations, infos = self._stages.env.step(actions)
        if not self.agents:
            agent, info = next(iter(infos.items()))
            self.progress.record(info.get("outcome") == (1 if agent.startswith(self._team) else -1))
            infos = {agent: info | self._stages.info for agent, info in infos.items()}
        return observations, rewards, terminations, truncations, infos

    @property
    def state_space(self) -> Box:
        """The space of `state` in the battle in play."""
        return self._stages.env.state_space

    def state(self, team: int = BLUE) -> NDArray[np.float32]:
        """All mechs of the battle in play, unfiltered, as in `BattleParallelEnv`."""
        return self._stages.env.state(team)

    def action_masks(self) -> dict[str, NDArray[np.bool_]]:
        """What the agents' multi-discrete actions can do now, as in `BattleParallelEnv`."""
        return self._stages.env.action_masks()

    def explain_action(self, agent: str, action: Any) -> list[ActionPart]:
        """What each part of an action would do now, as in `BattleParallelEnv`."""
        return self._stages.env.explain_action(agent, action)

    def describe_observation(self, agent: str) -> tuple[FeatureDescription, ...]:
        """What every entry of an agent's flat observation is in the battle in play, as in `BattleParallelEnv`."""
        return self._stages.env.describe_observation(agent)

    def describe_action(self, agent: str) -> tuple[ActionDescription, ...]:
        """What every entry of an agent's action vector is in the battle in play, as in `BattleParallelEnv`."""
        return self._stages.env.describe_action(agent)

    def render(self) -> Any:
        """The picture of the battle in play, as in `BattleParallelEnv`."""
        return self._stages.env.render()

    def close(self) -> None:
        """Close the window, if there is one."""
        self._stages.close()
