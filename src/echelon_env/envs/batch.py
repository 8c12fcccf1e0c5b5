"""The batched multi-agent API: many battles as plain arrays with a row for every mech, for custom training loops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np
from gymnasium.spaces import Box
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from echelon_env.config.battle import BattleConfig
from echelon_env.config.overrides import Overrides
from echelon_env.config.scenario import ScenarioLike, make_config, title_of
from echelon_env.config.schema import check_integer
from echelon_env.engine.maps import Maps
from echelon_env.engine.state import BLUE
from echelon_env.envs.autoreset import AutoresetBattles, final_infos
from echelon_env.envs.controlled import ControlledBattles, check_arguments
from echelon_env.envs.infos import INFO_NAMES, batch_infos
from echelon_env.envs.options import with_options
from echelon_env.spaces.actions import ActionFormat
from echelon_env.spaces.agent import AgentSpaces
from echelon_env.spaces.observations import ObservationFormat

Step = tuple[Any, NDArray[np.float32], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]


@with_options
class BattleBatchEnv:
    """B battles on one engine with every mech as an agent: arrays (B, M, ...).

    Rows are the mechs ``blue_0`` ... ``red_n`` (`agents`). ``infos["present"]`` (B, M) marks the agents that remain in
    their battles after a call, like PettingZoo's `agents`. A step ignores the actions of absent rows. It returns
    reward 0 and no flags for them. With ``dead_agents="terminate"`` (the default) a mech that dies is terminated once
    and then absent until the next battle; with ``"persist"`` it stays until the battle ends. The other infos are arrays
    with masks, see `echelon_env.envs.infos`.

    A sub-environment is done when none of its rows is present. The autoreset modes are those of Gymnasium's vector
    environments.

    Observations and actions have leading axes (B, M) in every array.

    Parameters
    ----------
    scenario
        A scenario's name or file, a `BattleConfig` or its dict.
    num_envs, num_threads, autoreset_mode
        As in `BattleVectorEnv`.
    {options}

    Examples
    --------
    >>> envs = BattleBatchEnv("duel", num_envs=4)
    >>> observations, infos = envs.reset(seed=1)
    >>> _, rewards, terminated, truncated, infos = envs.step(np.zeros((4, 2, 27), np.float32))
    >>> rewards.shape, bool(infos["present"].all())
    ((4, 2), True)
    """

    metadata: dict[str, Any] = {**INFO_NAMES}  # noqa: RUF012

    def __init__(
        self,
        scenario: ScenarioLike = "battle",
        num_envs: int = 1,
        *,
        observation: ObservationFormat = "flat",
        action: ActionFormat = "continuous",
        mask_in_observation: bool = False,
        events: bool = False,
        max_cycles: int | None = None,
        maps: Maps = None,
        regenerate: int = 1,
        num_threads: int = 1,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        **overrides: Unpack[Overrides],
    ) -> None:
        check_arguments(overrides, BattleBatchEnv)
        self.num_envs = check_integer("num_envs", num_envs)
        self._spaces = AgentSpaces(observation, action, mask_in_observation)
        battles = ControlledBattles(
            make_config(scenario, **overrides), self.num_envs,
            control="all", maps=maps, num_threads=num_threads,
        )  # fmt: skip
        self._battles = AutoresetBattles(
            battles, autoreset_mode,
            max_cycles=max_cycles, regenerate=regenerate, spaces=self._spaces, events=events,
        )  # fmt: skip
        self.engine = battles.engine
        """The battles' engine, for tools such as `echelon_env.replays.Recorder`. Only read it."""
        self.config: BattleConfig = battles.config
        self._title = f"{title_of(scenario, self.config)}, {num_envs} battles"
        self.autoreset_mode = self._battles.mode
        self.agents = tuple(self._battles.names)
        self.num_mechs = len(self.agents)
        self.single_observation_space = self._spaces.observation_space
        self.single_action_space = self._spaces.action_space
        low, high = self.engine.global_state_bounds()
        self.state_space = Box(low, high, dtype=np.float32)
        """Space of a battle's row of `state`."""
        self.observation_space = batch_space(batch_space(self.single_observation_space, self.num_mechs), num_envs)
        self.action_space = batch_space(batch_space(self.single_action_space, self.num_mechs), num_envs)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._title}, {self._spaces.observation}, {self._spaces.action})"

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start battles: all, or those of ``options["reset_mask"]`` (B,) bool.

        ``options["map_seed"]``, an integer or (B,) of them, chooses their maps by seed. With a pool of maps it selects
        among them.

        An integer seeds battle i with seed + i. A sequence has one seed for each battle, or None to continue the
        sequence of its last seed. Without a seed all continue.

        Raises ValueError for an invalid option or seed, with nothing changed. Raises ResetNeeded if the first reset is
        partial.
        """
        vectors, report = self._battles.reset(seed, np.random.default_rng(), options)
        return self._spaces.observe(vectors, report.masks), batch_infos(report, single_agent=False)

    def step(self, actions: Any) -> Step:
        """Take a decision in every battle, with an action for every row; those of absent rows are ignored.

        Returns
        -------
        observations, rewards, terminated, truncated, infos
            (B, M, ...); (B, M) float32; (B, M) bool; (B, M) bool, never together with `terminated`; a dict.

        Raises
        ------
        ResetNeeded
            Before `reset`, and without autoreset if a battle is over.
        ValueError
            For actions that are not in the space. Numbers out of bounds are allowed.
        """
        vectors = self._spaces.read_rows(actions, self.num_envs, self.num_mechs)
        step = self._battles.step(vectors)
        infos = batch_infos(step.report, single_agent=False)
        if step.final is not None:
            final = step.final
            last = self._spaces.observe(final.observations, final.report.masks)
            infos |= final_infos(last, final, single_agent=False)
        observations = self._spaces.observe(step.observations, step.report.masks)
        return observations, step.rewards, step.terminated, step.truncated, infos

    def state(self, team: int = BLUE) -> NDArray[np.float32]:
        """The global states (B, S) float32: all mechs, visible or not, those of `team` (0 blue, 1 red) first.

        The layout is `echelon_env.layout.observations.state_streams`, see docs/reference/observations.md.

        Raises ResetNeeded before the first `reset`, ValueError for another team.
        """
        return self._battles.global_state(team)

    def action_masks(self) -> NDArray[np.bool_]:
        """Masks (B, M, K) bool of the actions; of the multi-discrete ones if the format has none."""
        return self._battles.action_masks().astype(np.bool_)

    def close(self) -> None:
        """Stop the threads of the engine and of policies that were given by name."""
        self._battles.close()
