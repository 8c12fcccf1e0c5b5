"""Gymnasium's single-agent API: one mech (pilot) or one team as the agent, against policies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Unpack

import gymnasium
import numpy as np
from gymnasium.spaces import Box
from numpy.typing import NDArray

from echelon_env.config.battle import BattleConfig
from echelon_env.config.overrides import Overrides
from echelon_env.config.scenario import ScenarioLike, make_config, title_of
from echelon_env.config.schema import ConfigError, check_seed, nearest_name
from echelon_env.engine.maps import Maps
from echelon_env.engine.state import BLUE
from echelon_env.envs.autoreset import AutoresetBattles, check_battle_options
from echelon_env.envs.controlled import ControlledBattles, check_arguments
from echelon_env.envs.infos import INFO_NAMES, agent_infos
from echelon_env.envs.options import with_options
from echelon_env.opponents import PolicyLike
from echelon_env.render.screen import RENDER_MODES, Screen, check_render_mode, render_fps
from echelon_env.spaces.actions import ActionFormat
from echelon_env.spaces.agent import AgentSpaces, pick
from echelon_env.spaces.describe import ActionDescription, FeatureDescription, describe_action, describe_observation
from echelon_env.spaces.explain import ActionPart, explain_action
from echelon_env.spaces.observations import ObservationFormat

SingleControl = Literal["pilot", "team"]


def make_battles(
    env_class: Callable[..., Any],
    scenario: ScenarioLike,
    num_battles: int,
    control: SingleControl,
    overrides: Overrides,
    **kwargs: Any,
) -> ControlledBattles:
    """Make battles with one agent each. Dead mechs of a team stay in its observation until the battle ends.

    Raises `ConfigError` for a control other than ``"pilot"`` or ``"team"``, for overrides that are neither parameters
    of `env_class` nor keys of the configuration, and for the reasons of `ControlledBattles`.
    """
    check_arguments(overrides, env_class)
    if control not in ("pilot", "team"):
        raise ConfigError(f"unknown control {control!r}{nearest_name(str(control), ('pilot', 'team'))}")
    if control == "team" and overrides.setdefault("dead_agents", "persist") != "persist":
        raise ConfigError("control 'team' needs dead_agents 'persist': the episode continues when a mech dies")
    return ControlledBattles(make_config(scenario, **overrides), num_battles, control=control, **kwargs)


def agents_of(battles: ControlledBattles) -> int | None:
    """The parameter `mechs` of `AgentSpaces`: None for a pilot, n for a team of n mechs."""
    return battles.num_controlled if battles.control == "team" else None


@with_options
class BattleEnv(gymnasium.Env[Any, Any]):
    """One battle with one agent; policies control the other mechs.

    The agent is one mech (a pilot) or a team of n mechs. The observation and action vectors of a team are concatenated,
    (n * D,) and (n * A,). Its dict formats have a leading axis n. Its reward is the sum of the reward components'
    means over the team. `echelon_env.envs.infos` lists the infos.

    Rewards: the sum of the components of `RewardConfig`: approaching and holding the zone, damage, kills, assists,
    deaths and the outcome of the battle.

    Episode end: it terminates when a team has held the zone long enough or has lost all mechs, and when the pilot dies
    unless ``dead_agents="persist"``. The time limit, ``max_steps`` decisions, truncates it, or terminates it with
    ``time_limit="terminate"``.

    Version history: v0 is the first. The number is raised when the rules, the spaces or the rewards change.

    Parameters
    ----------
    scenario
        A scenario's name or file, a `BattleConfig` or its dict.
    control
        ``"pilot"``: one mech. Its death terminates the episode unless ``dead_agents="persist"``. ``"team"``: all mechs
        of a team as one agent, always with ``dead_agents="persist"``.
    opponent, teammate
        An opponent's name, such as a scripted level, weights of several (one is drawn for each battle, see
        `opponents.make`), an object with ``reset(mask)`` and ``act(observations)`` (see `opponents.Policy`), or a
        function from observations (R, D) of R mechs to actions (R, A).
    pilot
        Index of the pilot's mech in its team's roster.
    side
        The agent's team, 0 blue or 1 red.
    render_mode
        ``"rgb_array"``, ``"ansi"``, ``"human"`` (needs the extra ``render``) or None.
    {options}
    """

    metadata: dict[str, Any] = {"render_modes": list(RENDER_MODES), "render_fps": 4, **INFO_NAMES}  # noqa: RUF012

    def __init__(
        self,
        scenario: ScenarioLike = "battle",
        *,
        control: SingleControl = "pilot",
        opponent: PolicyLike = "novice",
        teammate: PolicyLike = "novice",
        pilot: int = 0,
        side: int = BLUE,
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
        self.render_mode = check_render_mode(render_mode)
        battles = make_battles(
            BattleEnv, scenario, 1, control, overrides,
            opponent=opponent, teammate=teammate, pilot=pilot, side=side, maps=maps,
        )  # fmt: skip
        self._spaces = AgentSpaces(observation, action, mask_in_observation, agents_of(battles))
        self._battles = AutoresetBattles(
            battles, max_cycles=max_cycles, regenerate=regenerate, spaces=self._spaces, events=events
        )
        self.engine = battles.engine
        """The battle's engine, for tools such as `echelon_env.replays.Recorder`. Only read it."""
        self._title = f"{title_of(scenario, battles.config)}, {control}"
        self._own = battles.rows[0].tolist()
        self.mechs = tuple(self._battles.names[row] for row in self._own)
        self.config: BattleConfig = battles.config
        self.metadata = {**self.metadata, "render_fps": render_fps(self.config)}
        self.observation_space, self.action_space = self._spaces.observation_space, self._spaces.action_space
        low, high = self.engine.global_state_bounds()
        self.state_space = Box(low, high, dtype=np.float32)
        self._screen = Screen(self.engine, self.render_mode)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._title}, {self._spaces.observation}, {self._spaces.action})"

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start a battle. A seed determines this battle and the sequence of battles of later resets without a seed.

        ``options={"map_seed": seed}`` chooses the battle's map by its seed (``infos["map_seed"]``), independent of the
        battle's. With a pool of maps it selects one of them.

        Raises ValueError for a seed that is not an integer in [0, 2**64), and for other options. Nothing changes then.
        """
        options = check_battle_options(options)
        if seed is not None:
            seed = check_seed(seed)
        super().reset(seed=seed)
        vectors, report = self._battles.reset(seed, self.np_random, options)
        self._screen.show()
        observations = self._spaces.observe(vectors, report.masks)
        return pick(observations, 0), agent_infos(report, [0], single_agent=True)[0]

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take a decision.

        Raises ResetNeeded before `reset` and after the end of the episode. Raises ValueError for an action that is not
        in the space (numbers out of bounds are allowed).
        """
        vectors = self._spaces.read(action).reshape(1, len(self._own), -1)
        step = self._battles.step(vectors)
        if self.render_mode == "human":
            self._screen.show()
        return (
            pick(self._spaces.observe(step.observations, step.report.masks), 0),
            float(step.rewards[0, 0]),
            bool(step.terminated[0, 0]),
            bool(step.truncated[0, 0]),
            agent_infos(step.report, [0], single_agent=True)[0],
        )

    def state(self) -> NDArray[np.float32]:
        """The global state (S,) float32: all mechs, visible or not, those of the agent's team first.

        The layout is `echelon_env.layout.observations.state_streams`. Raises ResetNeeded before the first `reset`.
        """
        state: NDArray[np.float32] = self._battles.global_state(int(self._battles.battles.side[0]))[0]
        return state

    def action_masks(self) -> NDArray[np.bool_]:
        """The mask (n * K,) bool of the action, mech by mech; of the multi-discrete one if the format has none."""
        return np.asarray(self._battles.action_masks()[0, 0], np.bool_)

    def explain_action(self, action: Any, mech: int = 0) -> list[ActionPart]:
        """Explain what each part of an action would do now, or why it would be refused. Changes nothing.

        `mech` is an index into `mechs`, the names of the agent's mechs.

        Raises ValueError for an unknown mech or an action that is not in the space. Raises
        `gymnasium.error.ResetNeeded` before `reset`.
        """
        row = self._row_of(mech)
        self._battles.check_reset("explain_action()")
        vectors = self._spaces.read(action).reshape(len(self._own), -1)
        return explain_action(self.engine, 0, row, vectors[mech], self._battles.names)

    def describe_observation(self, mech: int = 0) -> tuple[FeatureDescription, ...]:
        """Describe every entry of the flat observation of an agent's mech. Raises ValueError for an unknown mech."""
        mech_class = self._battles.mech_classes[self._row_of(mech)]
        return describe_observation(mech_class, self.engine.config.abilities)

    def describe_action(self, mech: int = 0) -> tuple[ActionDescription, ...]:
        """Describe every entry of the action vector of an agent's mech. Raises ValueError for an unknown mech."""
        mech_class = self._battles.mech_classes[self._row_of(mech)]
        return describe_action(mech_class, self.engine.config.abilities)

    def render(self) -> Any:
        """Render the battle: (H, W, 3) uint8 for ``"rgb_array"``, text for ``"ansi"``, else None."""
        return self._screen.render()

    def close(self) -> None:
        """Close the window, if there is one."""
        self._screen.close()
        self._battles.close()

    def _row_of(self, mech: int) -> int:
        is_index = isinstance(mech, (int, np.integer)) and not isinstance(mech, (bool, np.bool_))
        if not is_index or not 0 <= mech < len(self._own):
            raise ValueError(f"mech: expected 0 to {len(self._own) - 1}, an index of {self.mechs}, got {mech!r}")
        row: int = self._own[mech]
        return row
