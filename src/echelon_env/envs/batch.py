"""The multi-agent batch face: many battles with every mech as a row, in plain arrays, for loops of one's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.spaces import Box
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from echelon_env.config.battle import BattleConfig
from echelon_env.config.scenario import ScenarioLike, make_config
from echelon_env.config.schema import check_integer
from echelon_env.engine.maps import Maps
from echelon_env.engine.state import BLUE
from echelon_env.envs.autoreset import AutoresetBattles, final_infos
from echelon_env.envs.controlled import ControlledBattles, check_arguments
from echelon_env.envs.infos import Report, batch_infos
from echelon_env.spaces.actions import ActionFormat
from echelon_env.spaces.agent import Forms
from echelon_env.spaces.observations import ObservationFormat

Step = tuple[Any, NDArray[np.float32], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]


class BattleBatchEnv:
    """B battles on one engine with every mech as an agent: arrays (B, M, ...), battles and mechs in their order.

    Mechs are rows ``blue_0`` ... ``red_n`` (`agents`). ``infos["present"]`` (B, M) says which of them are in their
    battles after a call, as PettingZoo's `agents` does: a row that was not present before a step has no part in it,
    and gets reward 0 and no flags. With ``dead_agents="terminate"`` (the default) a mech that dies is terminated once
    and then absent until the next battle; with ``"persist"`` it stays until the battle ends. What else infos hold:
    `echelon_env.envs.infos`, as arrays with masks.

    A battle's place is done when none of its rows goes on: what then happens is as in Gymnasium's vector environments.

    Parameters
    ----------
    scenario
        A scenario's name or file, a `BattleConfig` or its dict.
    num_envs
        Battles B.
    observation
        ``"flat"``: (B, M, D) float32, see `layout.observations`. ``"dict"``: a dict of its streams, (B, M, ...).
    action
        ``"continuous"``: (B, M, A) float32 in [-1, 1], see `layout.actions`. ``"dict"``: an entry for each of its
        blocks, (B, M, ...). ``"multi_discrete"``: choices (B, M, parts), with masks of what is impossible now.
    mask_in_observation
        Whether observations are dicts of ``"observation"`` and ``"action_mask"``; only with ``"multi_discrete"``.
    events
        Whether infos hold what happened in the last decision.
    max_cycles
        Decisions after which everybody is truncated, whatever the battle's own limit; none by default.
    maps
        None: every battle has a map of its own. Otherwise seeds choose the battles' maps out of a pool, whose maps are
        made once: their number, a directory of recipes, or a `MapPool`.
    regenerate
        Every how many episodes the map changes; between, battles are fought on the same one.
    num_threads
        Threads that share a step.
    autoreset_mode
        What happens to a place that is done. `NEXT_STEP` (default): its next step ignores the actions, which must be
        in the space all the same, begins a new battle and returns its first observations with reward 0. `SAME_STEP`:
        the new battle begins in the same step; the last observations and infos are in ``infos["final_obs"]`` and
        ``infos["final_info"]``. `DISABLED`: it stands still, and stepping raises ResetNeeded, until
        ``reset(options={"reset_mask": mask})``.
    copy
        False: observations are the engine's own buffer or views of it, valid until the next call. True: fresh arrays.
    **overrides
        Fields of the configuration to change.

    Raises
    ------
    ConfigError
        For anything impossible among them.

    Examples
    --------
    >>> envs = BattleBatchEnv("duel", num_envs=4)
    >>> observations, infos = envs.reset(seed=1)
    >>> _, rewards, terminated, truncated, infos = envs.step(np.zeros((4, 2, 27), np.float32))
    >>> rewards.shape, bool(infos["present"].all())
    ((4, 2), True)
    """

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
        copy: bool = True,
        **overrides: Any,
    ) -> None:
        check_arguments(overrides, BattleBatchEnv)
        self.num_envs = check_integer("num_envs", num_envs)
        self._forms = Forms(observation, action, mask_in_observation)
        battles = ControlledBattles(
            make_config(scenario, **overrides), self.num_envs,
            control="all", copy=copy, maps=maps, num_threads=num_threads,
        )  # fmt: skip
        self._battles = AutoresetBattles(
            battles, autoreset_mode,
            max_cycles=max_cycles, regenerate=regenerate, masks=self._forms.masked, events=events,
        )  # fmt: skip
        self.config: BattleConfig = battles.config
        self.autoreset_mode = self._battles.mode
        self.agents = tuple(self._battles.names)
        self.num_mechs = len(self.agents)
        self.single_observation_space = self._forms.observation_space
        self.single_action_space = self._forms.action_space
        low, high = battles.engine.global_state_bounds()
        self.state_space = Box(low, high, dtype=np.float32)
        """Space of a battle's row of `state`."""
        self.observation_space = batch_space(batch_space(self.single_observation_space, self.num_mechs), num_envs)
        self.action_space = batch_space(batch_space(self.single_action_space, self.num_mechs), num_envs)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin battles: all, or those of ``options["reset_mask"]`` (B,) bool.

        An integer seed seeds battle i with seed + i; a sequence names each one's, None continuing its own; without a
        seed battles follow from the last ones given.

        Raises ValueError for a bad mask or seed, with nothing changed, and ResetNeeded if the first reset is partial.
        """
        vectors, report = self._battles.reset(seed, np.random.default_rng(), options)
        return self._observe(vectors, report), batch_infos(report, lone=False)

    def step(self, actions: Any) -> Step:
        """Take a decision in every battle, with an action for every row; those of absent rows are ignored.

        Returns
        -------
        observations, rewards, terminated, truncated, infos
            (B, M, ...), (B, M) float32, (B, M) bool, (B, M) bool, never with `terminated`, and a dict.

        Raises
        ------
        ResetNeeded
            Before `reset`, and without autoreset while a battle is over.
        ValueError
            For actions that are not in the space, save for its bounds.
        """
        vectors = self._forms.read_rows(actions, self.num_envs, self.num_mechs)
        step = self._battles.step(vectors)
        infos = batch_infos(step.report, lone=False)
        if step.final is not None:
            final = step.final
            infos |= final_infos(self._observe(final.observations, final.report), final, lone=False)
        observations = self._observe(step.observations, step.report)
        return observations, step.rewards, step.terminated, step.truncated, infos

    def state(self, team: int = BLUE) -> NDArray[np.float32]:
        """(B, S) float32: all mechs, unfiltered, as `team` (0 blue, 1 red) lists them, itself first.

        The layout is `echelon_env.layout.observations.state_streams`, see docs/observations.md.

        Raises ResetNeeded before the first `reset`, ValueError for another team.
        """
        return self._battles.global_state(team)

    def action_masks(self) -> NDArray[np.bool_]:
        """(B, M, MASK_SIZE) bool: what the rows' multi-discrete actions can do now, part after part."""
        return self._battles.action_masks().astype(np.bool_)

    def close(self) -> None:
        """Stop the engine's threads."""
        self._battles.close()

    def _observe(self, vectors: NDArray[np.float32], report: Report) -> Any:
        return self._forms.observe(vectors, report.masks)
