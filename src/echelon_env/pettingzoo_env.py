"""PettingZoo's faces: the parallel environment, and the agent-environment cycle by PettingZoo's own conversion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pettingzoo
from gymnasium.error import ResetNeeded
from gymnasium.spaces import Box
from numpy.typing import NDArray
from pettingzoo.utils import parallel_to_aec, wrappers

from echelon_env.actions import ACTION_DIM, ACTION_HIGH, ACTION_LOW
from echelon_env.config import REWARD_COMPONENTS
from echelon_env.engine.core import BattleEngine, read_actions
from echelon_env.engine.maps import Maps, map_seed
from echelon_env.engine.rng import episode_seed
from echelon_env.engine.state import DRAW, REASONS
from echelon_env.observations import observation_bounds
from echelon_env.render.screen import RENDER_FPS, RENDER_MODES, Screen, check_render_mode
from echelon_env.scenario import ScenarioLike
from echelon_env.schema import check_integer, check_seed

Floats = NDArray[np.float32]


class BattleParallelEnv(pettingzoo.ParallelEnv[str, Floats, Floats]):  # type: ignore[misc]  # PettingZoo is untyped
    """One battle with every mech as an agent: ``blue_0`` ... ``red_n``, in the order of the rosters.

    Observations: (D,) float32, see `echelon_env.observations`; actions: (A,) float32 in [-1, 1], see
    `echelon_env.actions`. With ``dead_agents="terminate"`` (the default) a mech that dies is terminated and leaves
    `agents`; with ``"persist"`` it stays, observing zeros, until the battle ends. An agent's info holds
    ``bad_actions`` (non-finite entries, played as 0), ``alive``, ``reward_components``, after `reset` ``map_seed``
    (that the map was made from) and, once the battle is over, ``outcome`` (1 win, 0 draw, -1 loss) and ``reason``.

    Parameters
    ----------
    scenario
        A scenario's name or file, a `BattleConfig` or its dict.
    max_cycles
        Decisions after which everybody is truncated, whatever the battle's own limit; none by default.
    maps
        None: every battle has a map of its own. Otherwise seeds choose the battles' maps out of a pool, whose maps are
        made once: their number, a directory of recipes, or a `MapPool`.
    regenerate
        Every how many episodes the map changes; between, battles are fought on the same one.
    render_mode
        ``"rgb_array"``, ``"ansi"``, ``"human"`` (needs the extra ``render``) or None.
    **overrides
        Fields of the configuration to change.

    Raises
    ------
    ConfigError
        For anything impossible among them.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012
        "name": "echelon_v0",
        "render_modes": list(RENDER_MODES),
        "render_fps": RENDER_FPS,
        "is_parallelizable": True,
    }

    def __init__(
        self,
        scenario: ScenarioLike = "battle",
        *,
        max_cycles: int | None = None,
        maps: Maps = None,
        regenerate: int = 1,
        render_mode: str | None = None,
        **overrides: Any,
    ) -> None:
        self.render_mode = check_render_mode(render_mode)
        self.max_cycles = None if max_cycles is None else check_integer("max_cycles", max_cycles)
        self._engine = BattleEngine(scenario, 1, maps=maps, **overrides)
        self._regenerate = check_integer("regenerate", regenerate)
        self.config = self._engine.config
        self.possible_agents = [f"blue_{i}" for i in range(len(self.config.blue))]
        self.possible_agents += [f"red_{i}" for i in range(len(self.config.red))]
        self.agents: list[str] = []
        self._row = {agent: row for row, agent in enumerate(self.possible_agents)}
        low, high = observation_bounds()
        self.observation_spaces = {agent: Box(low, high, dtype=np.float32) for agent in self.possible_agents}
        self.action_spaces = {
            agent: Box(ACTION_LOW, ACTION_HIGH, (ACTION_DIM,), np.float32) for agent in self.possible_agents
        }
        self._seed: int | None = None
        self._episode = 0
        self._cycles = 0
        self._actions = np.zeros((1, len(self.possible_agents), ACTION_DIM), np.float32)
        self._screen = Screen(self._engine, self.render_mode)

    def observation_space(self, agent: str) -> Box:
        """The space of an agent's observations."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> Box:
        """The space of an agent's actions."""
        return self.action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Floats], dict[str, dict[str, Any]]]:
        """Begin a battle. A seed names the battle; without one, battles follow from the last seed given."""
        if seed is not None or self._seed is None:
            self._seed = int(np.random.default_rng().integers(2**63)) if seed is None else check_seed(seed)
            self._episode = 0
        else:
            self._episode += 1
        observations = self._engine.reset(
            [episode_seed(self._seed, self._episode)],
            map_seeds=[map_seed(self._seed, self._episode, self._regenerate)],
        )[0].copy()
        self.agents = self.possible_agents[:]
        self._cycles = 0
        self._screen.show()
        return {agent: observations[self._row[agent]] for agent in self.agents}, self._infos(False)

    def step(
        self, actions: Mapping[str, Floats]
    ) -> tuple[
        dict[str, Floats], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]
    ]:  # fmt: skip
        """Take a decision with one action for every agent in `agents`.

        Raises ResetNeeded before `reset` and after the end, ValueError for a missing or unknown agent (naming it) and
        for an action of a wrong shape.
        """
        if not self.agents:
            raise ResetNeeded("step() needs a battle in progress: call reset() first")
        self._fill_actions(actions)
        engine = self._engine
        observations, rewards, terminated, truncated = engine.step(self._actions)
        self._cycles += 1
        observations = observations[0].copy()
        terminations = dict(zip(self.possible_agents, terminated[0].tolist(), strict=True))
        truncations = dict(zip(self.possible_agents, truncated[0].tolist(), strict=True))
        if self._cycles == self.max_cycles:
            truncations = {agent: not terminations[agent] for agent in self.agents}
        reward_list = rewards[0].tolist()
        present, row = self.agents, self._row
        infos = self._infos(True)
        self.agents = [agent for agent in present if not (terminations[agent] or truncations[agent])]
        self._screen.show()
        return (
            {agent: observations[row[agent]] for agent in present},
            {agent: reward_list[row[agent]] for agent in present},
            {agent: terminations[agent] for agent in present},
            {agent: truncations[agent] for agent in present},
            infos,
        )

    def render(self) -> Any:
        """The picture of the battle: (H, W, 3) uint8 for ``"rgb_array"``, text for ``"ansi"``, else None."""
        return self._screen.render()

    def close(self) -> None:
        """Close the window, if there is one."""
        self._screen.close()
        self._engine.close()

    def _fill_actions(self, actions: Mapping[str, Floats]) -> None:
        missing = [agent for agent in self.agents if agent not in actions]
        if missing:
            raise ValueError(f"actions: expected one for each of {self.agents}, got none for {missing}")
        unknown = [agent for agent in actions if agent not in self.agents]
        if unknown:
            raise ValueError(f"actions: expected agents among {self.agents}, got {unknown}")
        checked = {agent: read_actions(actions[agent], (ACTION_DIM,), f"action of {agent!r}") for agent in self.agents}
        self._actions[:] = 0.0
        for agent, action in checked.items():
            self._actions[0, self._row[agent]] = action

    def _infos(self, stepped: bool) -> dict[str, dict[str, Any]]:
        engine = self._engine
        components = engine.reward_components[0].tolist()
        alive, bad = engine.alive[0].tolist(), engine.bad_actions[0].tolist()
        infos: dict[str, dict[str, Any]] = {}
        for agent in self.agents:
            row = self._row[agent]
            infos[agent] = {
                "bad_actions": bad[row] if stepped else 0,
                "alive": alive[row],
                "reward_components": dict(zip(REWARD_COMPONENTS, components[row], strict=True)),
            }
            if not stepped:
                infos[agent]["map_seed"] = engine.state.battles["map_seed"][0]
        if engine.battle_over[0]:
            winner, reason = int(engine.winner[0]), REASONS[engine.reason[0]]
            for agent, info in infos.items():
                own_team = 0 if self._row[agent] < len(self.config.blue) else 1
                info["outcome"] = 0 if winner == DRAW else (1 if winner == own_team else -1)
                info["reason"] = reason
        return infos


def parallel_env(scenario: ScenarioLike = "battle", **kwargs: Any) -> BattleParallelEnv:
    """PettingZoo's parallel environment of a battle; the parameters are those of `BattleParallelEnv`."""
    return BattleParallelEnv(scenario, **kwargs)


def env(scenario: ScenarioLike = "battle", **kwargs: Any) -> Any:
    """PettingZoo's agent-environment cycle of a battle, converted from `parallel_env` and order-enforcing."""
    return wrappers.OrderEnforcingWrapper(parallel_to_aec(parallel_env(scenario, **kwargs)))
