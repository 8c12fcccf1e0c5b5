"""Gymnasium's vector face: many battles with one agent each, on one engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from echelon_env.actions import ACTION_DIM
from echelon_env.config import REWARD_COMPONENTS
from echelon_env.controlled import Control
from echelon_env.engine.maps import Maps, map_seed
from echelon_env.engine.rng import episode_seed
from echelon_env.engine.state import BLUE, REASONS
from echelon_env.opponents import Policy
from echelon_env.render.screen import RENDER_FPS, RENDER_MODES, Screen, check_render_mode
from echelon_env.scenario import ScenarioLike
from echelon_env.schema import ConfigError, check_integer, check_seed, nearest_name
from echelon_env.single_env import make_battles, make_spaces

Floats = NDArray[np.float32]
Step = tuple[Floats, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]


class BattleVectorEnv(VectorEnv[Floats, Floats, NDArray[Any]]):
    """`num_envs` battles on one engine; the environment `BattleEnv`, batched, for `gymnasium.make_vec`.

    Parameters are those of `BattleEnv`, and

    num_envs
        Battles.
    num_threads
        Threads that share a step.
    autoreset_mode
        What happens to a sub-environment after its episode's end. `NEXT_STEP` (default): its next step ignores the
        action, begins a new battle and returns its first observation with reward 0. `SAME_STEP`: the new battle begins
        in the same step; the last observation and info are in ``infos["final_obs"]`` and ``infos["final_info"]``.
        `DISABLED`: it stands still, and stepping it raises ResetNeeded, until ``reset(options={"reset_mask": mask})``.
    """

    def __init__(
        self,
        scenario: ScenarioLike = "battle",
        num_envs: int = 1,
        *,
        control: Control = "pilot",
        opponent: str | Policy = "novice",
        teammate: str | Policy = "novice",
        pilot: int = 0,
        side: int = BLUE,
        maps: Maps = None,
        regenerate: int = 1,
        num_threads: int = 1,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        render_mode: str | None = None,
        **overrides: Any,
    ) -> None:
        self.render_mode = check_render_mode(render_mode)
        self._mode = _check_autoreset_mode(autoreset_mode)
        num_envs = check_integer("num_envs", num_envs)
        self._battles = make_battles(
            scenario, num_envs, control, opponent=opponent, teammate=teammate, pilot=pilot, side=side,
            maps=maps, num_threads=num_threads, **overrides,
        )  # fmt: skip
        self._regenerate = check_integer("regenerate", regenerate)
        self.config = self._battles.config
        self.num_envs = num_envs
        self.metadata = {
            "render_modes": list(RENDER_MODES), "render_fps": RENDER_FPS, "autoreset_mode": self._mode,
        }  # fmt: skip
        self.single_observation_space, self.single_action_space = make_spaces(self._battles.num_controlled)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._seeds: list[int] | None = None
        self._episodes = np.zeros(num_envs, np.int64)
        self._done = np.ones(num_envs, np.bool_)
        self._screen = Screen(self._battles.engine, self.render_mode)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Floats, dict[str, Any]]:
        """Begin battles: all, or those of ``options["reset_mask"]`` (num_envs,) bool.

        An integer seed seeds sub-environment i with seed + i; a sequence names each one's, None continuing its own.
        """
        mask = _check_mask((options or {}).get("reset_mask"), self.num_envs)
        if self._seeds is None and not mask.all():
            raise ResetNeeded("reset_mask: the first reset must begin every battle")
        self._plan_seeds(seed, mask)
        observations = self._begin(mask)
        self._screen.show()
        return observations, self._infos(mask, np.zeros(self.num_envs, np.bool_))

    def step(self, actions: Floats) -> Step:
        """Take a decision in every battle. Raises ResetNeeded before `reset`, ValueError for a wrong shape."""
        if self._seeds is None:
            raise ResetNeeded("step() before reset()")
        if np.shape(actions) != self.action_space.shape:
            raise ValueError(f"actions: expected shape {self.action_space.shape}, got {np.shape(actions)}")
        if self._mode == AutoresetMode.DISABLED and self._done.any():
            over = np.flatnonzero(self._done).tolist()
            raise ResetNeeded(f"sub-environments {over} are over: reset(options={{'reset_mask': mask}}) first")
        shaped = np.reshape(actions, (self.num_envs, -1, ACTION_DIM))
        restarting = self._done.copy()
        rows, row_rewards, row_terminated, row_truncated = self._battles.step(shaped)
        observations = rows.reshape(self.num_envs, -1)
        rewards = np.where(restarting, 0.0, row_rewards.mean(axis=1)).astype(np.float64)
        terminated = row_terminated.any(axis=1) & ~restarting
        truncated = row_truncated.any(axis=1) & ~restarting
        self._done = terminated | truncated
        if restarting.any():
            self._episodes[restarting] += 1
            observations = self._begin(restarting)
        infos = self._infos(np.ones(self.num_envs, np.bool_), self._done)
        if self._mode == AutoresetMode.SAME_STEP and self._done.any():
            observations, infos = self._restart_now(observations, infos)
        self._screen.show()
        return observations, rewards, terminated, truncated, infos

    def render(self) -> Any:
        """The picture of every battle, a tuple of (H, W, 3) uint8 or of texts; None without a render mode."""
        return self._screen.render_all()

    def close_extras(self, **kwargs: Any) -> None:
        """Stop the engine's threads."""
        self._screen.close()
        self._battles.close()

    def _begin(self, mask: NDArray[np.bool_]) -> Floats:
        assert self._seeds is not None
        places = list(zip(self._seeds, self._episodes.tolist(), strict=True))
        seeds = [episode_seed(seed, k) for seed, k in places]
        map_seeds = [map_seed(seed, k, self._regenerate) for seed, k in places]
        observations = self._battles.reset(seeds, mask, map_seeds=map_seeds)
        self._done[mask] = False
        return observations.reshape(self.num_envs, -1)

    def _restart_now(self, observations: Floats, infos: dict[str, Any]) -> tuple[Floats, dict[str, Any]]:
        """Begin new battles where episodes ended, keeping the last observations and infos."""
        ended = self._done.copy()
        final = np.full(self.num_envs, None, object)
        for b in np.flatnonzero(ended):
            final[b] = observations[b].copy()
        self._episodes[ended] += 1
        fresh = self._begin(ended)
        restarted = self._infos(np.ones(self.num_envs, np.bool_), np.zeros(self.num_envs, np.bool_))
        restarted |= {"final_obs": final, "_final_obs": ended, "final_info": infos, "_final_info": ended}
        return fresh, restarted

    def _plan_seeds(self, seed: int | Sequence[int | None] | None, mask: NDArray[np.bool_]) -> None:
        """Decide each chosen battle's seed and episode number. Raises ValueError, with nothing changed."""
        if seed is None:
            wanted: list[int | None] = [None] * self.num_envs
        elif isinstance(seed, (Sequence, np.ndarray)) and not isinstance(seed, str):
            wanted = [None if one is None else check_seed(one) for one in seed]
        else:
            wanted = [check_seed(check_seed(seed) + i) for i in range(self.num_envs)]
            self._np_random, self._np_random_seed = seeding.np_random(int(seed))
        if len(wanted) != self.num_envs:
            raise ValueError(f"seed: expected {self.num_envs} seeds, got {len(wanted)}")
        begun = self._seeds is not None
        seeds = self._seeds or [int(s) for s in self.np_random.integers(2**63, size=self.num_envs)]
        for b in np.flatnonzero(mask):
            value = wanted[b]
            if value is not None:
                seeds[b], self._episodes[b] = value, 0
            elif begun:
                self._episodes[b] += 1
        self._seeds = seeds

    def _infos(self, valid: NDArray[np.bool_], ended: NDArray[np.bool_]) -> dict[str, Any]:
        battles = self._battles
        over = ended & battles.battle_over
        return {
            "bad_actions": np.where(valid, battles.bad_actions.sum(axis=1), 0),
            "_bad_actions": valid,
            "alive": battles.alive.sum(axis=1),
            "_alive": valid,
            "reward_components": dict(zip(REWARD_COMPONENTS, battles.reward_components.mean(axis=1).T, strict=True)),
            "_reward_components": valid,
            "map_seed": battles.engine.state.battles["map_seed"].copy(),
            "_map_seed": valid,
            "outcome": np.where(over, battles.learner_won, 0),
            "_outcome": over,
            "reason": np.array(
                [REASONS[r] if o else None for r, o in zip(battles.engine.reason, over, strict=True)], object
            ),
            "_reason": over,
        }


def _check_autoreset_mode(mode: AutoresetMode | str) -> AutoresetMode:
    by_name = {m.name: m for m in AutoresetMode} | {m.value: m for m in AutoresetMode}
    if isinstance(mode, AutoresetMode):
        return mode
    if mode not in by_name:
        raise ConfigError(f"unknown autoreset_mode {mode!r}{nearest_name(str(mode), [m.name for m in AutoresetMode])}")
    return by_name[mode]


def _check_mask(mask: Any, count: int) -> NDArray[np.bool_]:
    if mask is None:
        return np.ones(count, np.bool_)
    array = np.asarray(mask)
    if array.shape != (count,) or array.dtype != np.bool_ or not array.any():
        raise ValueError(f"reset_mask: expected ({count},) booleans, at least one true, got {mask!r}")
    return array
