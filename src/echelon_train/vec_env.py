"""Battles as a stable-baselines3 environment: the learner's mechs of all battles as rows."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv

from echelon_env.config.battle import BattleConfig, RewardConfig
from echelon_env.config.schema import ConfigError, check_integer
from echelon_env.engine.maps import MAX_MAPS, MapPool, Maps, map_pool
from echelon_env.envs.controlled import ControlledBattles
from echelon_env.evaluate import EVALUATION_SEEDS, TRAINING_SEEDS, check_seeds, training_map_seed, training_seed
from echelon_env.layout.observations import state_streams, stream_bounds
from echelon_env.opponents import PolicyLike
from echelon_env.storage.arrays import Arrays, Kind, check_arrays, check_same, named, part_of, without
from echelon_train.policy import action_space, observation_space

Infos = list[dict[str, Any]]
Observations = NDArray[np.float32] | dict[str, NDArray[np.float32]]
"""What rows see: (rows, D); with a central critic a dict of that, ``observation``, and the ``state`` (rows, S)."""


class BattleVecEnv(VecEnv):  # type: ignore[misc]
    """Battles as a vectorised environment: row `battle * n + mech` is a mech of the learner's team.

    A row's episode is the battle: all rows of a battle end together, and the next battle starts at once. A dead mech
    keeps its row until then and observes its objective only. The learner's team is drawn for every battle. At a
    battle's end a row's info holds `terminal_observation`, `TimeLimit.truncated`, `outcome` (1 win, 0 draw, -1 loss),
    `is_success`, and `episode` with the unscaled return `r`, the length `l` in decisions and the time `t` in seconds
    since the environment was made. If the opponent is a player with `names`, one for each battle, the info also holds
    that name as `opponent`.

    Parameters
    ----------
    config
        The battle; it must have ``dead_agents="persist"`` and teams of equal size.
    num_battles
        Battles that are stepped at once.
    opponent
        Who plays the other team: a scripted level, weights of several, or a policy, see `ControlledBattles`.
    seed
        Seed of everything that is drawn, in `TRAINING_SEEDS`.
    num_threads
        Threads that step the battles.
    maps
        The battles' maps: how many, which then follow from `seed`; a directory of recipes; or a `MapPool`. None: every
        battle has a new map.
    regenerate
        Every how many battles a place's map changes.
    central
        Whether rows also see, as a centralised critic does, the whole battle: observations are then a dict with
        ``observation`` and ``state``, the global state as the learner's team sees it.
    state_mechs
        Mechs that the state has room for, an even number: the own team's come first, the enemy's begin in the middle,
        and what is not filled is 0. The battle's own number by default; with that of the largest battle one critic goes
        through a curriculum.

    Raises
    ------
    ConfigError
        If the configuration does not fit, the opponent is unknown, a map is kept for evaluation, or `state_mechs` is
        odd, too small, or given without `central`.
    ValueError
        For a seed that is not one of training.
    """

    def __init__(
        self,
        config: BattleConfig,
        num_battles: int,
        *,
        opponent: PolicyLike = "novice",
        seed: int = 0,
        num_threads: int = 1,
        maps: Maps = None,
        regenerate: int = 1,
        central: bool = False,
        state_mechs: int | None = None,
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
        self._regenerate = check_integer("regenerate", regenerate)
        self._state = StateLayout(config, state_mechs) if central else None
        if state_mechs is not None and not central:
            raise ConfigError("state_mechs: only with central = True is there a state")
        space: spaces.Space[Any] = observation_space()
        if self._state is not None:
            space = spaces.Dict({"observation": space, "state": self._state.space})
        super().__init__(num_battles * self.team_size, space, action_space())
        self.battles = ControlledBattles(
            config,
            num_battles,
            control="team",
            opponent=opponent,
            num_threads=num_threads,
            maps=training_pool(maps, config, seed),
            seed=seed,
        )
        self._opponent = opponent
        self._run_seed = seed
        self._episodes = np.zeros(num_battles, np.int64)
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

    def reset(self) -> Observations:
        """Begin new battles everywhere. Returns `Observations`, float32."""
        return self._see(self._begin(np.ones(self.num_battles, np.bool_)))

    def step_async(self, actions: NDArray[np.float32]) -> None:
        """Take the actions (rows, A) of the next step."""
        self._actions = actions

    def step_wait(self) -> tuple[Observations, NDArray[np.float32], NDArray[np.bool_], Infos]:
        """Step all battles and replace those that end. Returns fresh arrays (rows, ...) and the rows' infos."""
        actions = self._actions.reshape(self.num_battles, self.team_size, -1)
        observations, rewards, _, truncated = self.battles.step(actions)
        seen = self._see(observations)
        row_rewards = self._rows(rewards)
        self._returns += row_rewards
        self._lengths += 1
        over = self.battles.battle_over
        infos: Infos = [{} for _ in range(self.num_envs)]
        if over.any():
            self._report_ends(over, seen, truncated, infos)
            seen = self._see(self._begin(over))
        return seen, row_rewards, np.repeat(over, self.team_size), infos

    def set_rewards(self, rewards: RewardConfig) -> None:
        """Weigh the rewards of later steps in another way; battles in progress, and their returns so far, continue.

        Raises ValueError, with nothing changed, for another discount `gamma`, and `ConfigError` for impossible weights.
        """
        self.battles.set_rewards(rewards)

    def state_arrays(self) -> Arrays:
        """Everything that the future depends on but the learner's actions, as plain arrays by name.

        That is the battles', their opponents' and the stream of battles' state, the reward weights that hold, and the
        content hashes of the maps that the pool has made. Arrays are of numbers or booleans, without records and
        objects, fit for safetensors and `numpy.savez`. Wall-clock time is no part of it.

        Raises `NotResetError` before the first reset, and `ConfigError` for an opponent that is not `Resumable`.
        """
        arrays = {name: getattr(self, f"_{name}").copy() for name in self._stream_kinds()}
        arrays["run"] = np.array([self._run_seed, self._regenerate], np.int64)
        return arrays | named("battles", self.battles.state_arrays())

    def restore_arrays(self, arrays: Mapping[str, NDArray[Any]]) -> Observations:
        """Restore the `state_arrays` of an environment that was made with the same arguments.

        Only `num_threads`, `central` and `state_mechs` may differ. Returns the present `Observations`, as `reset` does.

        Raises ValueError, with nothing changed, where the arrays are not of such an environment, and `ConfigError` for
        an opponent that is not `Resumable`.
        """
        own = without(arrays, "battles")
        check_arrays("the environment", own, {**self._stream_kinds(), "run": ((2,), np.int64)})
        run_seed, regenerate = own["run"].tolist()
        check_same("the environment", "regenerate", self._regenerate, regenerate)
        check_seeds([run_seed], TRAINING_SEEDS)
        if (own["episodes"] < 1).any() or (own["lengths"] < 0).any() or not np.isfinite(own["returns"]).all():
            raise ValueError("state of the environment: expected episodes from 1, lengths from 0 and finite returns")
        observations = self.battles.restore_arrays(part_of(arrays, "battles"))
        self._run_seed = run_seed
        for name in self._stream_kinds():
            setattr(self, f"_{name}", own[name].copy())
        return self._see(observations)

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

    def _begin(self, mask: NDArray[np.bool_]) -> NDArray[np.float32]:
        """Begin the next battle of the masked places: its seed and the learner's side follow from the run's seed.

        Returns the learner's observations of all battles, (B, n, D).
        """
        seeds, map_seeds = np.zeros((2, self.num_battles), np.uint64)
        sides = np.zeros(self.num_battles, np.int8)
        for place in np.flatnonzero(mask).tolist():
            episode = int(self._episodes[place])
            seeds[place] = seed = training_seed(self._run_seed, place, episode)
            map_seeds[place] = training_seed(self._run_seed, place, episode - episode % self._regenerate)
            sides[place] = learner_side(seed)
        observations = self.battles.reset(seeds, mask, sides, map_seeds)
        self._episodes[mask] += 1
        self._lengths[mask] = 0
        self._returns[np.repeat(mask, self.team_size)] = 0.0
        return observations

    def _report_ends(
        self, over: NDArray[np.bool_], seen: Observations, truncated: NDArray[np.bool_], infos: Infos
    ) -> None:
        now = round(time.perf_counter() - self._started, 6)
        names = getattr(self._opponent, "names", None)
        for battle in np.flatnonzero(over).tolist():
            outcome = int(self.battles.learner_outcome[battle])
            for mech in range(self.team_size):
                row = battle * self.team_size + mech
                infos[row] = {
                    "terminal_observation": row_of(seen, row),
                    "TimeLimit.truncated": bool(truncated[battle, mech]),
                    "outcome": outcome,
                    "is_success": outcome > 0,
                    "episode": {"r": float(self._returns[row]), "l": int(self._lengths[battle]), "t": now},
                }
                if names is not None:
                    infos[row]["opponent"] = names[battle]

    def _see(self, observations: NDArray[np.float32]) -> Observations:
        """What the rows see, given the learner's observations (B, n, D)."""
        rows = self._rows(observations)
        if self._state is None:
            return rows
        states = self._state.lay_out(self.battles.global_state())
        return {"observation": rows, "state": np.repeat(states, self.team_size, axis=0)}

    def _rows(self, array: NDArray[np.float32]) -> NDArray[np.float32]:
        """An array (battles, mechs, ...) as (rows, ...)."""
        return array.reshape(self.num_envs, *array.shape[2:])

    def _stream_kinds(self) -> dict[str, Kind]:
        """Shapes and dtypes of what is counted of the stream of battles."""
        return {
            "episodes": ((self.num_battles,), np.int64),
            "lengths": ((self.num_battles,), np.int64),
            "returns": ((self.num_envs,), np.float64),
        }

    def _check_all_rows(self, indices: Any, what: str) -> None:
        if set(self._get_indices(indices)) != set(range(self.num_envs)):
            raise ValueError(f"rows share one environment: cannot {what} for some of them only")


class StateLayout:
    """The global state of a battle with room for further mechs: each team's follow its own.

    Parameters
    ----------
    config
        The battle, of teams of equal size.
    mechs
        Mechs of both teams that there is room for; the battle's by default.

    Raises
    ------
    ConfigError
        If that is no even number, or less than the battle's.
    """

    def __init__(self, config: BattleConfig, mechs: int | None = None) -> None:
        room = config.num_mechs if mechs is None else check_integer("state_mechs", mechs, config.num_mechs)
        if room % 2:
            raise ConfigError(f"state_mechs: expected an even number, got {room}", "state_mechs")
        own, padded = state_streams(config.num_mechs), state_streams(room)
        low, high = stream_bounds(padded)
        self.space = spaces.Box(low, high, dtype=np.float32)
        """Of the padded state, (S,) float32; its streams are `state_streams(mechs)`."""
        places = np.arange(config.num_mechs)
        places[config.num_mechs // 2 :] += (room - config.num_mechs) // 2
        width = own["units"].row_width
        units = padded["units"].start + (places[:, None] * width + np.arange(width)).ravel()
        rest = [np.arange(padded[name].start, padded[name].stop) for name in ("clock", "battle_map")]
        self._columns = np.concatenate([rest[0], units, rest[1]])

    def lay_out(self, states: NDArray[np.float32]) -> NDArray[np.float32]:
        """The battle's states (B, s) as padded ones (B, S)."""
        padded = np.zeros((len(states), *self.space.shape), np.float32)
        padded[:, self._columns] = states
        return padded


def row_of(seen: Observations, row: int) -> Observations:
    """A copy of one row's observation."""
    return {name: part[row].copy() for name, part in seen.items()} if isinstance(seen, dict) else seen[row].copy()


def training_pool(maps: Maps, config: BattleConfig, seed: int) -> MapPool | None:
    """The pool of maps for training, without maps reserved for evaluation; None: a new map for every battle.

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
        if count > MAX_MAPS:
            raise ConfigError(f"maps: expected 1 to {MAX_MAPS} maps, got {count}", "maps")
        return MapPool(config, [training_map_seed(seed, number) for number in range(count)])
    pool = map_pool(maps, config)
    kept = [] if pool is None else [each for each in pool.seeds if each in EVALUATION_SEEDS]
    if kept:
        raise ConfigError(f"maps: seed {kept[0]} in {maps!r} is kept for evaluation", "maps")
    return pool


def learner_side(seed: int) -> int:
    """The learner's team, 0 or 1, in the training battle of a seed: a bit of a hash of the seed."""
    return training_seed(seed, 0, 0) & 1
