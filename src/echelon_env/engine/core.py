"""`BattleEngine`: B battles stepped at once; the one mutable class of the simulation."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from copy import copy
from itertools import pairwise
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from echelon_env.config.battle import BattleConfig, RewardConfig
from echelon_env.config.overrides import Overrides
from echelon_env.config.scenario import ScenarioLike, make_config, title_of
from echelon_env.config.schema import check_integer
from echelon_env.engine.allocation import allocate, allocate_outputs
from echelon_env.engine.boundary import ObservationRows, check_mask, check_seeds, read_actions
from echelon_env.engine.global_state import read_rows, room_for, write_global_states
from echelon_env.engine.maps import Maps, map_pool
from echelon_env.engine.observer import EngineObserver
from echelon_env.engine.possibilities import Possibilities, allocate_possibilities, find_possibilities
from echelon_env.engine.results import BattleResults
from echelon_env.engine.starting import BattleStarter
from echelon_env.engine.state import BLUE, SCRATCH
from echelon_env.engine.state_values import check_values
from echelon_env.engine.tables import Tables, build_tables
from echelon_env.engine.tick import DECIDE, OBSERVE, PERCEIVE, step_range
from echelon_env.engine.workers import Workers
from echelon_env.layout.actions import ACTION_DIM
from echelon_env.layout.observations import OBSERVATION_DIM, state_streams, stream_bounds
from echelon_env.terrain import Terrain, generate


class NotResetError(RuntimeError):
    """Raised for a step of battles that have never been reset."""


class BattleEngine(BattleResults):
    """B battles of one configuration, stepped together on plain arrays.

    Mechs are rows: team blue's first, then red's, in roster order. A finished battle does not change (zero rewards, no
    flags, unchanged observations) until it is reset. The same seed and actions give the same bytes for any number of
    battles, position in the batch and number of threads. A forked process may use its copy. If another thread was
    stepping at that moment, the copy's battles are in the middle of a decision: reset them.

    Parameters
    ----------
    scenario
        A scenario's name or file, a `BattleConfig` or its dict.
    num_battles
        Battles B in the batch.
    num_threads
        Threads that share the battles of a step.
    maps
        None: each battle has a new map, generated from its map seed (see `reset`). Otherwise the map seed selects a map
        of a pool: a number of maps, a directory of recipes, or a `MapPool`. A pool generates each map once.
    **overrides
        Fields of the configuration to change, as in `make_config`.

    Raises
    ------
    ConfigError
        If the configuration is invalid, or `num_battles` or `num_threads` is not an integer of at least 1.

    Examples
    --------
    >>> engine = BattleEngine("skirmish", num_battles=4)
    >>> engine.reset([1, 2, 3, 4]).shape
    (4, 10, 902)
    >>> actions = np.zeros((4, engine.num_mechs, engine.action_dim), np.float32)
    >>> observations, rewards, terminated, truncated = engine.step(actions)
    >>> rewards.shape, bool(terminated.any())
    ((4, 10), False)
    """

    def __init__(
        self,
        scenario: ScenarioLike = "battle",
        num_battles: int = 1,
        num_threads: int = 1,
        *,
        maps: Maps = None,
        **overrides: Unpack[Overrides],
    ) -> None:
        self.config: BattleConfig = make_config(scenario, **overrides)
        self._title = title_of(scenario, self.config)
        self.num_battles = check_integer("num_battles", num_battles)
        self.num_threads = check_integer("num_threads", num_threads)
        self.num_mechs = self.config.num_mechs
        self.action_dim = ACTION_DIM
        self.observation_dim = OBSERVATION_DIM
        self.tables: Tables = build_tables(self.config)
        self.state = allocate(self.config, self.num_battles)
        self.out = allocate_outputs(self.num_battles, self.num_mechs)
        self.observation_rows = ObservationRows(self.num_battles, self.num_mechs)
        """Where the observations are written."""
        self.actions = np.zeros((self.num_battles, self.num_mechs, ACTION_DIM), np.float32)
        """(B, M, A) float32: the actions that `advance` plays, which it cleans in place."""
        self._started = np.zeros(self.num_battles, np.bool_)
        self._all_started = False
        self.maps = map_pool(maps, self.config)
        self._starter = BattleStarter(self.config, self.state, self.maps)
        self._workers, self._turn = Workers(self.num_threads), np.zeros(1, np.int64)
        self.observers: list[EngineObserver] = []
        """Called after every change. Copies and pickles have none."""
        self._bind_kernels()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._title}, {self.num_battles} battles)"

    def reset(
        self, seeds: ArrayLike, mask: ArrayLike | None = None, map_seeds: ArrayLike | None = None
    ) -> NDArray[np.float32]:
        """Start new battles.

        Parameters
        ----------
        seeds
            (B,) integers in [0, 2**64): the battles' seeds. Entries of battles that are not reset are ignored.
        mask
            (B,) booleans: the battles to reset; default all.
        map_seeds
            (B,) integers in [0, 2**64): the seeds of the battles' maps; default `seeds`. With a pool they select its
            maps. ``state.battles["map_seed"]`` holds the seed that each map was generated from.

        Returns
        -------
        numpy.ndarray
            (B, M, D) float32: the observations of all battles, in the engine's own buffer, valid until the next call.

        Raises
        ------
        ValueError
            If a shape is wrong or a seed is not an integer in range. `RecipeError` if a map of a pool does not match
            its recipe. Nothing is reset then.
        """
        self.start(seeds, mask, map_seeds)
        return self.observations

    def start(
        self,
        seeds: ArrayLike,
        mask: ArrayLike | None = None,
        map_seeds: ArrayLike | None = None,
        places: NDArray[np.int64] | None = None,
    ) -> None:
        """Start new battles as `reset` does. The results are in `observation_rows`.

        `places` (B, M) int64 are the mechs' new rows there, which differ in the battles that start only.
        """
        battles = [*range(self.num_battles)] if mask is None else check_mask(mask, self.num_battles)
        seed_of = check_seeds(seeds, self.num_battles, battles)
        map_seed_of = seed_of if map_seeds is None else check_seeds(map_seeds, self.num_battles, battles)
        terrains: dict[int, Terrain] = {}
        self._workers.for_all(self._starter.find_map, [(b, map_seed_of[b], terrains) for b in battles])
        renewed = self.observation_rows.renew()
        if places is not None:
            self.observation_rows.set_places(places)
        if renewed and len(battles) < self.num_battles:
            others = self._started.copy()
            others[battles] = False
            self._observe(others)
        self._workers.for_all(self._reset_battle, [(b, seed_of[b], terrains[b]) for b in battles])
        self._started[battles] = True
        self._all_started = bool(self._started.all())
        for observer in tuple(self.observers):
            observer.on_reset(battles)

    def step(
        self, actions: ArrayLike
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.bool_], NDArray[np.bool_]]:
        """Run one decision in every battle that is not over.

        Parameters
        ----------
        actions
            (B, M, A) floats, see `layout.actions`; the array is only read. Entries are clipped to [-1, 1]. Non-finite
            ones become 0 and are counted in `bad_actions`. Rows of dead mechs have no other effect.

        Returns
        -------
        observations, rewards, terminated, truncated
            (B, M, D) float32, (B, M) float32, (B, M) bool, (B, M) bool: the engine's own buffers, valid until the next
            call. The flags are set in the step in which a mech's episode ends, never both.

        Raises
        ------
        ValueError
            If the shape is wrong or the entries are not numbers.
        NotResetError
            If a battle has never been reset.
        """
        array = read_actions(actions, self.actions.shape, "actions (battles, mechs, action)")
        np.copyto(self.actions, array)
        self.advance()
        return self.observations, self.out.rewards, self.out.terminated, self.out.truncated

    def advance(self) -> None:
        """Run one decision with the actions in `actions`. Raises NotResetError as `step`.

        The results are in `out` and `observation_rows`.
        """
        if not self._all_started:
            missing = np.flatnonzero(~self._started).tolist()
            raise NotResetError(f"step() before reset(): battles {missing} have not been reset")
        rows, battles, threads = self.observation_rows, self.num_battles, min(self.num_threads, self.num_battles)
        if rows.given:
            rows.renew()
        if threads == 1:
            rows.write(0, battles, 0, DECIDE)
        else:  # threads take several battles at once, an eighth of their shares or less
            self._turn[0] = 0
            self._workers.for_all(rows.write, [(0, battles, max(1, battles // (8 * threads)), DECIDE)] * threads)
        for observer in tuple(self.observers):
            observer.on_step(self.actions)

    @property
    def was_reset(self) -> NDArray[np.bool_]:
        """(B,) bool: whether each battle has ever been reset."""
        return self._started.copy()

    @property
    def observations(self) -> NDArray[np.float32]:
        """(B, M, D) float32: the current observations, which the next call may overwrite.

        Environments return parts of this array: what their callers change shows here until the next call.
        """
        return self.observation_rows.by_mech()

    def set_rewards(self, rewards: RewardConfig) -> None:
        """Change the reward weights of later decisions; battles in progress continue.

        Raises ValueError for another discount, because the approach potentials of battles in progress depend on it, and
        `ConfigError` for invalid weights. Nothing is changed then.
        """
        config = dataclasses.replace(self.config, rewards=rewards)
        if rewards.gamma != self.config.rewards.gamma:
            raise ValueError(
                f"rewards: gamma: expected {self.config.rewards.gamma}, which cannot change, got {rewards.gamma}"
            )
        self.config, self.tables = config, build_tables(config)
        self._bind_kernels()
        for observer in tuple(self.observers):
            observer.on_change()

    def global_state(
        self, team: ArrayLike = BLUE, *, battles: ArrayLike | None = None, mechs: int | None = None
    ) -> NDArray[np.float32]:
        """The battles' global states, unfiltered, for centralised training.

        Parameters
        ----------
        team
            0 or 1, or (R,) of them: the team whose mechs come first and to whose spawn the map is rotated, so that one
            critic can serve both teams.
        battles
            (R,) integers: numbers of battles; default all.
        mechs
            Mechs that the state has room for, an even number: the enemies begin in the middle, and rows without a mech
            are 0. By default there is a row for each mech, and the enemies follow the own team.

        Returns
        -------
        numpy.ndarray
            (R, S) float32, see `echelon_env.layout.observations.state_streams`; a new array.

        Raises
        ------
        ValueError
            If a team is neither 0 nor 1, a shape is wrong, a battle does not exist, or `mechs` is odd or less than
            twice the larger team.
        """
        chosen, teams = read_rows(team, battles, self.num_battles)
        room = room_for(mechs, self.config)
        states = np.zeros((len(chosen), state_streams(room)["units"].stop), np.float32)
        enemies_at = 0 if mechs is None else room // 2
        ends = np.linspace(0, len(chosen), self.num_threads + 1).astype(int).tolist()
        parts = [(chosen, teams, states, enemies_at, *part) for part in pairwise(ends)]
        self._workers.for_all(self._write_global_states, parts)
        return states

    def global_state_bounds(self, mechs: int | None = None) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Lowest and highest value of every entry of the global state, each (S,) float32.

        `mechs` is as for `global_state`.
        """
        return stream_bounds(state_streams(room_for(mechs, self.config)))

    def possibilities(self) -> Possibilities:
        """What the mechs may be able to do in the coming decision; new arrays."""
        can = allocate_possibilities(self.num_battles, self.num_mechs)
        self._find_possibilities(can, 0, self.num_battles)
        return can

    def terrain(self, battle: int = 0) -> Terrain:
        """The initial map of a battle.

        Raises IndexError if there is no such battle and `NotResetError` if it has never been reset.
        """
        if not 0 <= battle < self.num_battles:
            raise IndexError(f"battle: expected 0 to {self.num_battles - 1}, got {battle}")
        if not self._started[battle]:
            raise NotResetError(f"terrain() before reset(): battle {battle} has not been reset")
        seed, terrain = int(self.state.battles["map_seed"][battle]), self._starter.terrains[battle]
        return terrain if terrain is not None and terrain.seed == seed else generate(self.config, seed)

    def snapshot(self) -> dict[str, NDArray[Any]]:
        """Copies of all arrays that later steps depend on, by name; the argument of `restore`."""
        return {name: array.copy() for name, array in self._lasting_arrays().items()}

    def restore(self, snapshot: Mapping[str, NDArray[Any]]) -> None:
        """Restore a snapshot of an engine with the same configuration and batch size.

        Raises ValueError, with nothing changed, if an array is missing, has another shape or dtype, or holds values
        that no battle can have.
        """
        arrays = self._lasting_arrays()
        for name, array in arrays.items():
            if name not in snapshot:
                raise ValueError(f"snapshot: array {name!r} is missing")
            kept = snapshot[name]
            if kept.shape != array.shape or kept.dtype != array.dtype:
                raise ValueError(
                    f"snapshot: array {name!r}: expected {array.shape} {array.dtype}, got {kept.shape} {kept.dtype}"
                )
        check_values(self.config, self.tables, {name: snapshot[name] for name in arrays})
        for name, array in arrays.items():
            np.copyto(array, snapshot[name])
        self._workers.for_all(self._starter.pack, [(b,) for b in range(self.num_battles)])
        self.state.used["heights"], self.state.used["events"] = 2**32 - 1, self.state.events.shape[1]
        self._all_started = bool(self._started.all())
        self.observe()
        for observer in tuple(self.observers):
            observer.on_change()

    def observe(self) -> None:
        """Write the present observations of all battles again; those of battles that were never reset are zeros."""
        self.observation_rows.renew()
        self._observe(self._started)

    def _observe(self, battles: NDArray[np.bool_]) -> None:
        """Write the present observations of some battles (B,), and zeros for those that were never reset."""
        self.observation_rows.array[self.observation_rows.places[~self._started]] = 0.0
        numbers = np.flatnonzero(battles).tolist()
        self._workers.for_all(self.observation_rows.write, [(b, b + 1, 0, OBSERVE) for b in numbers])

    def _lasting_arrays(self) -> dict[str, NDArray[Any]]:
        arrays = {**self.state._asdict(), **self.out._asdict(), "started": self._started}
        return {name: array for name, array in arrays.items() if name not in SCRATCH}

    def close(self) -> None:
        """Stop the threads. Later calls run in the caller's thread."""
        self._workers.close()

    def __getstate__(self) -> dict[str, Any]:
        # a shallow copy gets its own threads and observations, too
        own = {"_workers": Workers(self.num_threads), "_starter": copy(self._starter), "observers": []}
        own |= {"observation_rows": copy(self.observation_rows), "_turn": np.zeros(1, np.int64)}
        return self.__dict__ | own

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= state
        self._bind_kernels()

    def _reset_battle(self, b: int, seed: int, terrain: Terrain) -> None:
        self._starter.start(b, seed, terrain)
        self.observation_rows.write(b, b + 1, 0, PERCEIVE)

    def _bind_kernels(self) -> None:
        """Bind the kernels to the arrays."""
        self._starter.bind(self.tables, self.state, self.out)
        self._write_global_states = write_global_states.bind(self.tables, self.state)
        self._find_possibilities = find_possibilities.bind(self.tables, self.state)
        bound = self.tables, self.state, self.actions, self.out, self._turn, self.observation_rows.places
        self.observation_rows.bind(lambda array: step_range.bind(*bound, array).call)
