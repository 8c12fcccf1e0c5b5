"""PettingZoo's parallel API."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import pettingzoo
from gymnasium.error import ResetNeeded
from gymnasium.spaces import Box, Space
from gymnasium.utils import seeding
from numpy.typing import NDArray

from echelon_env.config.battle import BattleConfig
from echelon_env.config.overrides import Overrides
from echelon_env.config.scenario import ScenarioLike, make_config, title_of
from echelon_env.config.schema import check_seed
from echelon_env.engine.maps import Maps
from echelon_env.engine.state import BLUE
from echelon_env.envs.autoreset import AutoresetBattles, check_battle_options, check_max_cycles
from echelon_env.envs.controlled import ControlledBattles, check_arguments
from echelon_env.envs.infos import INFO_NAMES, Report, agent_infos
from echelon_env.envs.options import with_options
from echelon_env.render.screen import RENDER_MODES, Screen, check_render_mode, render_fps
from echelon_env.spaces.actions import ActionFormat
from echelon_env.spaces.agent import AgentSpaces, check_agents, of_agent, pick
from echelon_env.spaces.describe import ActionDescription, FeatureDescription, describe_action, describe_observation
from echelon_env.spaces.explain import ActionPart, explain_action
from echelon_env.spaces.observations import ObservationFormat

Infos = dict[str, dict[str, Any]]


@with_options
class BattleParallelEnv(pettingzoo.ParallelEnv[str, Any, Any]):  # type: ignore[misc]  # PettingZoo is untyped
    """One battle with every mech as an agent: ``blue_0`` ... ``red_n``, in the order of the rosters.

    With ``dead_agents="terminate"`` (the default) a mech that dies is terminated and leaves `agents`. With
    ``"persist"`` it stays until the battle ends, and observes the objective stream only. `echelon_env.envs.infos` lists
    the infos.

    Rewards: the sum of the components of `RewardConfig`: approaching and holding the zone, damage, kills, assists,
    deaths and the outcome of the battle.

    Episode end: all agents are terminated when a team has held the zone long enough or has lost all mechs. The time
    limit, ``max_steps`` decisions, truncates them, or terminates them with ``time_limit="terminate"``.

    Version history: v0 is the first. The number is raised when the rules, the spaces or the rewards change.

    Parameters
    ----------
    scenario
        A scenario's name or file, a `BattleConfig` or its dict.
    render_mode
        ``"rgb_array"``, ``"ansi"``, ``"human"`` (needs the extra ``render``) or None.
    {options}
    """

    metadata: dict[str, Any] = {  # noqa: RUF012
        "name": "echelon_v0",
        "render_modes": list(RENDER_MODES),
        "render_fps": 4,
        "is_parallelizable": True,
        **INFO_NAMES,
    }
    np_random: np.random.Generator
    """From the first `reset` on, and from its seed: for wrappers that draw numbers, such as SuperSuit's."""

    def __init__(
        self,
        scenario: ScenarioLike = "battle",
        *,
        observation: ObservationFormat = "flat",
        action: ActionFormat = "continuous",
        mask_in_observation: bool = False,
        events: bool = False,
        max_cycles: int | None = None,
        maps: Maps = None,
        regenerate: int = 1,
        render_mode: str | None = None,
        **overrides: Unpack[Overrides],
    ) -> None:
        check_arguments(overrides, BattleParallelEnv)
        self.render_mode = check_render_mode(render_mode)
        self._spaces = AgentSpaces(observation, action, mask_in_observation)
        self._battles = AutoresetBattles(
            ControlledBattles(make_config(scenario, **overrides), control="all", maps=maps),
            max_cycles=max_cycles, regenerate=regenerate, spaces=self._spaces, events=events,
        )  # fmt: skip
        self.engine = self._battles.engine
        """The battle's engine, for tools such as `echelon_env.replays.Recorder`. Only read it."""
        self._absent = self._spaces.zeros
        self.config: BattleConfig = self.engine.config
        self.metadata = {**self.metadata, "name": _name_of(scenario), "render_fps": render_fps(self.config)}
        self._title = title_of(scenario, self.config)
        self.possible_agents = list(self._battles.names)
        self.agents: list[str] = []
        self._row = {agent: row for row, agent in enumerate(self.possible_agents)}
        self.observation_spaces = dict.fromkeys(self.possible_agents, self._spaces.observation_space)
        self.action_spaces = dict.fromkeys(self.possible_agents, self._spaces.action_space)
        low, high = self.engine.global_state_bounds()
        self.state_space = Box(low, high, dtype=np.float32)
        self._screen = Screen(self.engine, self.render_mode)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._title}, {self._spaces.observation}, {self._spaces.action})"

    @property
    def max_cycles(self) -> int | None:
        """Decisions after which all agents are truncated. PettingZoo's tests set it."""
        return self._battles.max_cycles

    @max_cycles.setter
    def max_cycles(self, max_cycles: int | None) -> None:
        self._battles.max_cycles = check_max_cycles(max_cycles)

    def observation_space(self, agent: str) -> Space[Any]:
        """The space of an agent's observations. Raises ValueError for an unknown agent."""
        return of_agent(self.observation_spaces, agent)

    def action_space(self, agent: str) -> Space[Any]:
        """The space of an agent's actions. Raises ValueError for an unknown agent."""
        return of_agent(self.action_spaces, agent)

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict[str, Any], Infos]:
        """Start a battle. A seed determines this battle and the sequence of battles of later resets without a seed.

        ``options={"map_seed": seed}`` chooses the battle's map by its seed (``infos["map_seed"]``), independent of the
        battle's. With a pool of maps it selects one of them.

        Raises ValueError for a seed that is not an integer in [0, 2**64), and for other options. Nothing changes then.
        """
        options = check_battle_options(options)
        if seed is not None:
            seed = check_seed(seed)
        if seed is not None or not self._battles.was_reset:
            self.np_random, _ = seeding.np_random(seed)
        vectors, report = self._battles.reset(seed, self.np_random, options)
        self.agents = self.possible_agents[:]
        self._screen.show()
        infos = agent_infos(report, self._row.values())
        return self._observations(self._row, vectors, report), dict(zip(self._row, infos, strict=True))

    def step(
        self, actions: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, float], dict[str, bool], dict[str, bool], Infos]:
        """Take a decision with one action for every agent in `agents`.

        Raises ResetNeeded before `reset` and after the end of the battle. Raises ValueError for a missing or unknown
        agent, and for an action that is not in the agent's space (numbers out of bounds are allowed).
        """
        if not self.agents:
            raise ResetNeeded("step() needs a battle in progress: call reset() first")
        return self._take(self._read_actions(actions))

    def _take(
        self, actions: NDArray[np.float32]
    ) -> tuple[dict[str, Any], dict[str, float], dict[str, bool], dict[str, bool], Infos]:
        """Take a decision with the action vectors (1, M, A) of all mechs. The engine ignores those of dead ones."""
        present = {agent: self._row[agent] for agent in self.agents}
        vectors, rewards, terminated, truncated, report, _ = self._battles.step(actions)
        reward_of, terminated_of, truncated_of = rewards[0].tolist(), terminated[0].tolist(), truncated[0].tolist()
        terminations, truncations = dict.fromkeys(present, False), dict.fromkeys(present, False)
        if True in terminated_of or True in truncated_of:
            for agent, row in present.items():
                terminations[agent], truncations[agent] = terminated_of[row], truncated_of[row]
            self.agents = [agent for agent in present if not (terminations[agent] or truncations[agent])]
        if self.render_mode == "human":
            self._screen.show()
        return (
            self._observations(present, vectors, report),
            {agent: reward_of[row] for agent, row in present.items()},
            terminations,
            truncations,
            dict(zip(present, agent_infos(report, present.values()), strict=True)),
        )

    def state(self, team: int = BLUE) -> NDArray[np.float32]:
        """The global state (S,) float32: all mechs, visible or not, those of `team` (0 blue, 1 red) first.

        The layout is `echelon_env.layout.observations.state_streams`, see docs/reference/observations.md.

        Raises ResetNeeded before the first `reset`, ValueError for another team.
        """
        state: NDArray[np.float32] = self._battles.global_state(team)[0]
        return state

    def action_masks(self) -> dict[str, NDArray[np.bool_]]:
        """For each agent in `agents` the mask (K,) bool of its action; of the multi-discrete one if it has none."""
        masks = self._battles.action_masks()[0].astype(np.bool_)
        return {agent: masks[self._row[agent]] for agent in self.agents}

    def explain_action(self, agent: str, action: Any) -> list[ActionPart]:
        """Explain what each part of an action would do now, or why it would be refused. Changes nothing.

        Raises ValueError for an unknown agent or an action that is not in its space. Raises ResetNeeded before `reset`.
        """
        row = of_agent(self._row, agent)
        self._battles.check_reset("explain_action()")
        vector = self._spaces.read(action, what=f"action of {agent!r}")
        return explain_action(self.engine, 0, row, vector, self.possible_agents)

    def describe_observation(self, agent: str) -> tuple[FeatureDescription, ...]:
        """Describe every entry of an agent's flat observation. Raises ValueError for an unknown agent."""
        mech_class = self._battles.mech_classes[of_agent(self._row, agent)]
        return describe_observation(mech_class, self.engine.config.abilities)

    def describe_action(self, agent: str) -> tuple[ActionDescription, ...]:
        """Describe every entry of an agent's action vector. Raises ValueError for an unknown agent."""
        mech_class = self._battles.mech_classes[of_agent(self._row, agent)]
        return describe_action(mech_class, self.engine.config.abilities)

    def render(self) -> Any:
        """Render the battle: (H, W, 3) uint8 for ``"rgb_array"``, text for ``"ansi"``, else None."""
        return self._screen.render()

    def close(self) -> None:
        """Close the window, if there is one."""
        self._screen.close()
        self._battles.close()

    def _read_actions(self, actions: Mapping[str, Any]) -> NDArray[np.float32]:
        """Action vectors (1, M, A) of all mechs."""
        if not isinstance(actions, (dict, Mapping)) or [*actions] != self.agents:
            check_agents(actions, self.agents)
            if missing := [agent for agent in self.agents if agent not in actions]:
                raise ValueError(f"actions: expected one for each of {self.agents}, got none for {missing}")
        padded = [actions.get(agent, self._absent) for agent in self.possible_agents]
        return self._spaces.read_all(padded, self.possible_agents)[None]

    def _observations(self, rows: dict[str, int], vectors: NDArray[np.float32], report: Report) -> dict[str, Any]:
        masks = None if report.masks is None else pick(report.masks, 0)
        observations = self._spaces.observe(vectors[0], masks)
        if isinstance(observations, np.ndarray):
            if len(rows) == len(observations):
                return dict(zip(rows, observations, strict=True))  # faster than an index for each
            return {agent: observations[row] for agent, row in rows.items()}
        return {agent: pick(observations, row) for agent, row in rows.items()}


def _name_of(scenario: ScenarioLike) -> str:
    """``echelon_duel_open_v0``; without the scenario for a configuration, which has no name."""
    name = f"_{Path(scenario).stem}" if isinstance(scenario, (str, os.PathLike)) else ""
    return f"echelon{name.replace('-', '_')}_v0"


class Arguments(Overrides, total=False):
    """The keyword arguments of `BattleParallelEnv`."""

    observation: ObservationFormat
    action: ActionFormat
    mask_in_observation: bool
    events: bool
    max_cycles: int | None
    maps: Maps
    regenerate: int
    render_mode: str | None


def parallel_env(scenario: ScenarioLike = "battle", **kwargs: Unpack[Arguments]) -> BattleParallelEnv:
    """Make PettingZoo's parallel environment of a battle. The parameters are those of `BattleParallelEnv`."""
    return BattleParallelEnv(scenario, **kwargs)
