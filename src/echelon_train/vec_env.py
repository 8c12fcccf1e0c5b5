"""The stable-baselines3 face of the engine: the learner's mechs of all battles as rows."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv

from echelon_env.config import BattleConfig
from echelon_env.controlled import ControlledBattles
from echelon_env.engine.maps import MOST_MAPS, MapPool, Maps, map_pool
from echelon_env.evaluate import EVALUATION_SEEDS, TRAINING_SEEDS, check_seeds, training_map_seed, training_seed
from echelon_env.schema import ConfigError, check_integer
from echelon_train.policy import action_space, observation_space

Infos = list[dict[str, Any]]


class BattleVecEnv(VecEnv):  # type: ignore[misc]
    """Battles as a vectorised environment: row `battle * n + mech` is a mech of the learner's team.

    A row's episode is the battle: all rows of a battle end together, and the battle begins anew at once. A mech that
    has died keeps its row, observing its objective alone, until then. Which team the learner has is drawn for every
    battle. At a battle's end a row's info holds `terminal_observation`, `TimeLimit.truncated`, `outcome` (1 win,
    0 draw, -1 loss), `is_success`, and `episode` with the unscaled return `r`, the length `l` in decisions and the time
    `t` in seconds since the environment was made.

    Parameters
    ----------
    config
        The battle; it must have ``dead_agents="persist"`` and teams of equal size.
    num_battles
        Battles that are stepped at once.
    opponent
        Level of the scripted opponent.
    seed
        Seed of everything that is drawn, in `TRAINING_SEEDS`.
    num_threads
        Threads that step the battles.
    maps
        The battles' maps: how many, which then follow from `seed`; a directory of recipes; or a `MapPool`. None: every
        battle has a map of its own.
    regenerate
        Every how many battles a place's map changes.
    reward_scale
        Factor on the rewards that the learner is given.

    Raises
    ------
    ConfigError
        If the configuration does not fit, the opponent is unknown, or a map is kept for evaluation.
    ValueError
        For a seed that is not one of training.
    """

    def __init__(
        self,
        config: BattleConfig,
        num_battles: int,
        *,
        opponent: str = "novice",
        seed: int = 0,
        num_threads: int = 1,
        maps: Maps = None,
        regenerate: int = 1,
        reward_scale: float = 1.0,
    ) -> None:
        if config.dead_agents != "persist":
            raise ConfigError("BattleVecEnv needs dead_agents = 'persist': a row's episode is the battle")
        if len(config.blue) != len(config.red):
            raise ConfigError("BattleVecEnv needs teams of equal size: the learner plays both")
        check_integer("num_battles", num_battles)
        check_seeds([seed], TRAINING_SEEDS)
        self.render_mode = None
        self.num_battles = num_battles
        self.team_size = len(config.blue)
        self.reward_scale = reward_scale
        self._regenerate = check_integer("regenerate", regenerate)
        super().__init__(num_battles * self.team_size, observation_space(), action_space())
        self.battles = ControlledBattles(
            config,
            num_battles,
            control="team",
            opponent=opponent,
            num_threads=num_threads,
            maps=training_pool(maps, config, seed),
            seed=seed,
        )
        self._run_seed = seed
        self._episodes = np.zeros(num_battles, np.int64)
        self._seeds_of_battles, self._map_seeds = np.zeros((2, num_battles), np.uint64)
        self._sides = np.zeros(num_battles, np.int8)
        self._returns = np.zeros(self.num_envs)
        self._lengths = np.zeros(num_battles, np.int64)
        self._started = time.perf_counter()
        self._actions: NDArray[np.float32] = np.zeros((self.num_envs, *self.action_space.shape), np.float32)

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Begin the stream of battles of another run seed at the next reset; None keeps the present one.

        Raises ValueError for a seed that is not in `TRAINING_SEEDS`.
        """
        if seed is not None:
            check_seeds([seed], TRAINING_SEEDS)
            self._run_seed = seed
            self._episodes[:] = 0
        return [self._run_seed] * self.num_envs

    def reset(self) -> NDArray[np.float32]:
        """Begin new battles everywhere. Returns observations (rows, D) float32."""
        self._begin(np.ones(self.num_battles, np.bool_))
        return self._rows(self._observations)

    def step_async(self, actions: NDArray[np.float32]) -> None:
        """Take the actions (rows, A) of the next step."""
        self._actions = actions

    def step_wait(self) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.bool_], Infos]:
        """Step all battles; those that end begin anew. Returns fresh arrays (rows, ...) and the rows' infos."""
        actions = self._actions.reshape(self.num_battles, self.team_size, -1)
        observations, rewards, _, truncated = self.battles.step(actions)
        row_rewards = self._rows(rewards)
        self._returns += row_rewards
        self._lengths += 1
        over = self.battles.battle_over.copy()
        infos: Infos = [{} for _ in range(self.num_envs)]
        if over.any():
            self._report_ends(over, observations, truncated, infos)
            self._begin(over)
        else:
            self._observations = observations
        return self._rows(self._observations), row_rewards * self.reward_scale, np.repeat(over, self.team_size), infos

    def close(self) -> None:
        """Stop the engine's threads."""
        self.battles.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """The environment's attribute, once per row asked for. Raises AttributeError."""
        return [getattr(self, attr_name) for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Set an attribute of the environment; rows share it, so it can only be set for all of them."""
        self._check_all_rows(indices, "set an attribute")
        setattr(self, attr_name, value)

    def env_method(self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any) -> list[Any]:
        """Call a method of the environment once; every row gets its result."""
        self._check_all_rows(indices, "call a method")
        return [getattr(self, method_name)(*method_args, **method_kwargs)] * self.num_envs

    def env_is_wrapped(self, wrapper_class: type[Any], indices: Any = None) -> list[bool]:
        """No row is wrapped, but rows report their episodes themselves as SB3's `Monitor` would."""
        return [wrapper_class.__name__ == "Monitor" for _ in self._get_indices(indices)]

    def _begin(self, mask: NDArray[np.bool_]) -> None:
        """Begin the next battle of the masked places: its seed and the learner's side follow from the run's seed."""
        for place in np.flatnonzero(mask).tolist():
            episode = int(self._episodes[place])
            seed = training_seed(self._run_seed, place, episode)
            self._map_seeds[place] = training_seed(self._run_seed, place, episode - episode % self._regenerate)
            self._seeds_of_battles[place] = seed
            self._sides[place] = learner_side(seed)
        check_seeds(self._seeds_of_battles.tolist(), TRAINING_SEEDS)
        self._observations = self.battles.reset(self._seeds_of_battles, mask, self._sides, self._map_seeds)
        self._episodes[mask] += 1
        self._lengths[mask] = 0
        self._returns[np.repeat(mask, self.team_size)] = 0.0

    def _report_ends(
        self, over: NDArray[np.bool_], observations: NDArray[np.float32], truncated: NDArray[np.bool_], infos: Infos
    ) -> None:
        now = round(time.perf_counter() - self._started, 6)
        for battle in np.flatnonzero(over).tolist():
            outcome = int(self.battles.learner_won[battle])
            for mech in range(self.team_size):
                row = battle * self.team_size + mech
                infos[row] = {
                    "terminal_observation": observations[battle, mech].copy(),
                    "TimeLimit.truncated": bool(truncated[battle, mech]),
                    "outcome": outcome,
                    "is_success": outcome > 0,
                    "episode": {"r": float(self._returns[row]), "l": int(self._lengths[battle]), "t": now},
                }

    def _rows(self, array: NDArray[np.float32]) -> NDArray[np.float32]:
        """A copy of an array (battles, mechs, ...) as (rows, ...)."""
        return array.reshape(self.num_envs, *array.shape[2:]).copy()

    def _check_all_rows(self, indices: Any, what: str) -> None:
        if set(self._get_indices(indices)) != set(range(self.num_envs)):
            raise ValueError(f"rows share one environment: cannot {what} for some of them only")


def training_pool(maps: Maps, config: BattleConfig, seed: int) -> MapPool | None:
    """The pool of maps that battles of training have, none of them kept for evaluation; None for maps of their own.

    Parameters
    ----------
    maps
        How many maps, a directory of recipes, a `MapPool`, or None.
    config
        The battle that the maps are for.
    seed
        The run's seed, which a number of maps follows from.

    Raises
    ------
    ConfigError
        For maps that are none or do not fit the battle, and for one of `EVALUATION_SEEDS` among their seeds.
    """
    if isinstance(maps, (int, np.integer)):
        count = check_integer("maps", maps)
        if count > MOST_MAPS:
            raise ConfigError(f"maps: expected 1 to {MOST_MAPS} maps, got {count}", "maps")
        return MapPool(config, [training_map_seed(seed, number) for number in range(count)])
    pool = map_pool(maps, config)
    kept = [] if pool is None else [each for each in pool.seeds if each in EVALUATION_SEEDS]
    if kept:
        raise ConfigError(f"maps: seed {kept[0]} in {maps!r} is kept for evaluation", "maps")
    return pool


def learner_side(seed: int) -> int:
    """The learner's team, 0 or 1, in the training battle of a seed: a bit of a hash of the seed."""
    return training_seed(seed, 0, 0) & 1
