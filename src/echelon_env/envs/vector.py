"""Gymnasium's vector API: many battles with one agent each, on one engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from echelon_env.config.battle import BattleConfig
from echelon_env.config.overrides import Overrides
from echelon_env.config.scenario import ScenarioLike, title_of
from echelon_env.config.schema import check_integer
from echelon_env.engine.maps import Maps
from echelon_env.engine.state import BLUE
from echelon_env.envs.autoreset import AutoresetBattles, final_infos
from echelon_env.envs.infos import INFO_NAMES, batch_infos
from echelon_env.envs.options import with_options
from echelon_env.envs.single import SingleControl, agents_of, make_battles
from echelon_env.opponents import PolicyLike
from echelon_env.render.screen import RENDER_MODES, Screen, check_render_mode, render_fps
from echelon_env.spaces.actions import ActionFormat
from echelon_env.spaces.agent import AgentSpaces
from echelon_env.spaces.observations import ObservationFormat

Step = tuple[Any, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]


@with_options
class BattleVectorEnv(VectorEnv[Any, Any, NDArray[Any]]):
    """`num_envs` battles on one engine: a batch of `BattleEnv` for `gymnasium.make_vec`.

    Infos are arrays with masks, see `echelon_env.envs.infos`. ``infos["action_mask"]`` has an entry for each
    sub-environment, in the format of the mask of ``single_action_space.sample``.

    Parameters
    ----------
    scenario, control, opponent, teammate, pilot, side, render_mode
        As in `BattleEnv`.
    num_envs
        Number of battles.
    num_threads
        Threads that share a step.
    autoreset_mode
        What happens to a sub-environment after the end of its episode. `NEXT_STEP` (default): its next step ignores
        the action, which must still be in the space, starts a new battle and returns the first observation with
        reward 0. `SAME_STEP`: the new battle starts in the same step; the last observation and info are in
        ``infos["final_obs"]`` and ``infos["final_info"]``. `DISABLED`: stepping raises ResetNeeded until
        ``reset(options={"reset_mask": mask})``.
    {options}
    """

    def __init__(
        self,
        scenario: ScenarioLike = "battle",
        num_envs: int = 1,
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
        num_threads: int = 1,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        render_mode: str | None = None,
        **overrides: Unpack[Overrides],
    ) -> None:
        self.render_mode = check_render_mode(render_mode)
        self.num_envs = check_integer("num_envs", num_envs)
        battles = make_battles(
            BattleVectorEnv, scenario, self.num_envs, control, overrides,
            opponent=opponent, teammate=teammate, pilot=pilot, side=side, maps=maps, num_threads=num_threads,
        )  # fmt: skip
        self._spaces = AgentSpaces(observation, action, mask_in_observation, agents_of(battles))
        self._battles = AutoresetBattles(
            battles, autoreset_mode,
            max_cycles=max_cycles, regenerate=regenerate, spaces=self._spaces, events=events,
        )  # fmt: skip
        self.engine = battles.engine
        """The battles' engine, for tools such as `echelon_env.replays.Recorder`. Only read it."""
        self._mechs = battles.num_controlled
        self._title = f"{title_of(scenario, battles.config)}, {num_envs} battles, {control}"
        self.config: BattleConfig = battles.config
        self.metadata = {
            "render_modes": list(RENDER_MODES), "render_fps": render_fps(self.config),
            "autoreset_mode": self._battles.mode, **INFO_NAMES,
        }  # fmt: skip
        self.single_observation_space = self._spaces.observation_space
        self.single_action_space = self._spaces.action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._screen = Screen(self.engine, self.render_mode)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._title}, {self._spaces.observation}, {self._spaces.action})"

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start battles: all, or those of ``options["reset_mask"]`` (num_envs,) bool.

        ``options["map_seed"]``, an integer or (num_envs,) of them, chooses their maps by seed. With a pool of maps it
        selects among them.

        An integer seeds sub-environment i with seed + i. A sequence has one seed for each sub-environment, or None to
        continue the sequence of its last seed.

        Raises ValueError for an invalid option or seed, with nothing changed. Raises ResetNeeded if the first reset is
        partial.
        """
        vectors, report = self._battles.reset(seed, self.np_random, options)
        if isinstance(seed, (int, np.integer)):
            self._np_random, self._np_random_seed = seeding.np_random(int(seed))
        self._screen.show()
        return self._spaces.observe(vectors, report.masks), batch_infos(report, single_agent=True)

    def step(self, actions: Any) -> Step:
        """Take a decision in every battle.

        Raises ResetNeeded before `reset`, and without autoreset if a battle is over. Raises ValueError for actions that
        are not in the space (numbers out of bounds are allowed).
        """
        vectors = self._spaces.read(actions, self.num_envs, "actions").reshape(self.num_envs, self._mechs, -1)
        step = self._battles.step(vectors)
        infos = batch_infos(step.report, single_agent=True)
        if step.final is not None:
            final = step.final
            infos |= final_infos(self._spaces.observe(final.observations, final.report.masks), final, single_agent=True)
        if self.render_mode == "human":
            self._screen.show()
        return (
            self._spaces.observe(step.observations, step.report.masks),
            step.rewards[:, 0].astype(np.float64),
            step.terminated[:, 0],
            step.truncated[:, 0],
            infos,
        )

    def action_masks(self) -> NDArray[np.bool_]:
        """Masks (num_envs, n * K) bool, mech by mech; of the multi-discrete actions if the format has none."""
        return self._battles.action_masks()[:, 0].astype(np.bool_)

    def render(self) -> Any:
        """Render all battles: a tuple of (H, W, 3) uint8 or of texts; None without a render mode."""
        return self._screen.render_all()

    def close_extras(self, **kwargs: Any) -> None:
        """Stop the threads of the engine and of policies that were given by name."""
        self._screen.close()
        self._battles.close()
