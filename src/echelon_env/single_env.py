"""Gymnasium's single-agent face: one pilot, or one team as one agent, against scripted opponents."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.spaces import Box, Space
from numpy.typing import NDArray

from echelon_env.actions import ACTION_DIM, ACTION_HIGH, ACTION_LOW
from echelon_env.config import REWARD_COMPONENTS
from echelon_env.controlled import Control, ControlledBattles
from echelon_env.engine.maps import Maps, map_seed
from echelon_env.engine.rng import episode_seed
from echelon_env.engine.state import BLUE, REASONS
from echelon_env.observations import observation_bounds
from echelon_env.opponents import Policy
from echelon_env.render.screen import RENDER_FPS, RENDER_MODES, Screen, check_render_mode
from echelon_env.scenario import ScenarioLike
from echelon_env.schema import ConfigError, check_integer, check_seed

Floats = NDArray[np.float32]


def make_spaces(mechs: int) -> tuple[Space[Floats], Space[Floats]]:
    """Observation and action space of `mechs` mechs as one agent: their vectors one after the other."""
    low, high = observation_bounds()
    observations: Any = Box(np.tile(low, mechs), np.tile(high, mechs), dtype=np.float32)
    actions: Any = Box(ACTION_LOW, ACTION_HIGH, (mechs * ACTION_DIM,), np.float32)
    return observations, actions


def make_battles(scenario: ScenarioLike, num_battles: int, control: Control, **kwargs: Any) -> ControlledBattles:
    """Battles as single-agent faces need them: a team is one agent, whose dead stay in it until the battle ends."""
    if control == "team" and kwargs.setdefault("dead_agents", "persist") != "persist":
        raise ConfigError("control 'team' needs dead_agents 'persist': the team plays on when a mech dies")
    return ControlledBattles(scenario, num_battles, control=control, **kwargs)


class BattleEnv(gymnasium.Env[Floats, Floats]):
    """One battle with one agent in it, the rest played by policies.

    Observation: (n * D,) float32, see `echelon_env.observations`; action: (n * A,) float32 in [-1, 1], see
    `echelon_env.actions`; n is 1 for a pilot and the team's size for a team, vectors one after the other. The reward is
    the pilot's, or the mean over the team. `info` holds ``bad_actions`` (non-finite entries, played as 0),
    ``alive`` (the agent's living mechs), ``reward_components``, after `reset` ``map_seed`` (that the map was made from)
    and, when the battle is over, ``outcome`` (1 win, 0 draw, -1 loss) and ``reason``.

    Parameters
    ----------
    scenario
        A scenario's name or file, a `BattleConfig` or its dict.
    control
        ``"pilot"``: one mech, whose death terminates (unless ``dead_agents="persist"``); ``"team"``: all mechs of a
        team as one agent, always with ``dead_agents="persist"``.
    opponent, teammate
        A scripted level's name, or an object with ``reset(mask)`` and ``act(observations)``.
    pilot
        Index of the pilot's mech in its team's roster.
    side
        The agent's team, 0 blue or 1 red.
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

    metadata: dict[str, Any] = {"render_modes": list(RENDER_MODES), "render_fps": RENDER_FPS}  # noqa: RUF012

    def __init__(
        self,
        scenario: ScenarioLike = "battle",
        *,
        control: Control = "pilot",
        opponent: str | Policy = "novice",
        teammate: str | Policy = "novice",
        pilot: int = 0,
        side: int = BLUE,
        maps: Maps = None,
        regenerate: int = 1,
        render_mode: str | None = None,
        **overrides: Any,
    ) -> None:
        self.render_mode = check_render_mode(render_mode)
        self._battles = make_battles(
            scenario,
            1,
            control,
            opponent=opponent,
            teammate=teammate,
            pilot=pilot,
            side=side,
            maps=maps,
            **overrides,
        )
        self._regenerate = check_integer("regenerate", regenerate)
        self.config = self._battles.config
        self.observation_space, self.action_space = make_spaces(self._battles.num_controlled)
        self._seed: int | None = None
        self._episode = 0
        self._running = False
        self._screen = Screen(self._battles.engine, self.render_mode)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Floats, dict[str, Any]]:
        """Begin a battle. A seed names the battle; without one, battles follow from the last seed given."""
        if seed is not None:
            seed = check_seed(seed)
        super().reset(seed=seed)
        if seed is not None or self._seed is None:
            self._seed = seed if seed is not None else int(self.np_random.integers(2**63))
            self._episode = 0
        else:
            self._episode += 1
        observations = self._battles.reset(
            [episode_seed(self._seed, self._episode)],
            map_seeds=[map_seed(self._seed, self._episode, self._regenerate)],
        )
        self._running = True
        self._screen.show()
        return observations.reshape(-1), self._info(False)

    def step(self, action: Floats) -> tuple[Floats, float, bool, bool, dict[str, Any]]:
        """Take a decision. Raises ResetNeeded before `reset` and after the end, ValueError for a wrong shape."""
        if not self._running:
            raise ResetNeeded("step() needs a battle in progress: call reset() first")
        if np.shape(action) != self.action_space.shape:
            raise ValueError(f"action: expected shape {self.action_space.shape}, got {np.shape(action)}")
        shaped = np.reshape(action, (1, -1, ACTION_DIM))
        observations, rewards, terminated, truncated = self._battles.step(shaped)
        done = bool(terminated.any()), bool(truncated.any())
        self._running = not any(done)
        self._screen.show()
        return observations.reshape(-1), float(rewards.mean()), *done, self._info(True)

    def render(self) -> Any:
        """The picture of the battle: (H, W, 3) uint8 for ``"rgb_array"``, text for ``"ansi"``, else None."""
        return self._screen.render()

    def close(self) -> None:
        """Close the window, if there is one."""
        self._screen.close()
        self._battles.close()

    def _info(self, stepped: bool) -> dict[str, Any]:
        battles = self._battles
        components = battles.reward_components[0].mean(axis=0)
        info: dict[str, Any] = {
            "bad_actions": int(battles.bad_actions.sum()) if stepped else 0,
            "alive": int(battles.alive.sum()),
            "reward_components": dict(zip(REWARD_COMPONENTS, components.tolist(), strict=True)),
        }
        if not stepped:
            info["map_seed"] = battles.engine.state.battles["map_seed"][0]
        if battles.battle_over[0]:
            info["outcome"] = int(battles.learner_won[0])
            info["reason"] = REASONS[battles.engine.reason[0]]
        return info
