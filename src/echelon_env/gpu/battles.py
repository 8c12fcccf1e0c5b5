"""Batches of battles with tensors: in a device's memory, see `echelon_env.engine.playing`, or on the CPU."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, NoReturn, Protocol

import numpy as np
import torch
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray
from torch import Tensor

from echelon_env.config.battle import BattleConfig
from echelon_env.engine.agents import AGENT, EPISODE, Players, allocate_results
from echelon_env.engine.allocation import allocate, allocate_outputs
from echelon_env.engine.core import BattleEngine
from echelon_env.engine.global_state import room_for
from echelon_env.engine.maps import MapPool
from echelon_env.engine.playing import PARTS, SLOT, START, Cleared, MapBytes, Starts
from echelon_env.engine.possibilities import Possibilities, allocate_possibilities
from echelon_env.engine.starting import battle_of
from echelon_env.engine.state import BATTLE, COUNTERS, SCRATCH
from echelon_env.engine.tables import Tables, build_tables
from echelon_env.engine.tick import DECIDE, pack_terrain
from echelon_env.envs.autoreset import NO_LIMIT, AutoresetBattles, Reset, battle_seeds, read_reset, remaining
from echelon_env.gpu.memory import DeviceMemory, record_fields
from echelon_env.layout.actions import ACTION_DIM
from echelon_env.layout.observations import OBSERVATION_DIM, state_streams

Fields = dict[str, Tensor]
"""Those of AGENT by name, (B, M, ...) each."""


class Final(NamedTuple):
    """What battles were at the end of a step in which the next ones have started."""

    observations: Tensor
    done: Tensor
    """(B,) bool: these battles."""
    agents: Fields


class Outcome(NamedTuple):
    """What a reset or a step returns for B battles with M mechs."""

    observations: Tensor  # (B, M, D) float32
    results: tuple[Tensor, ...]  # rewards (B, M) float32, terminated and truncated (B, M) bool
    agents: Fields
    final: Final | None


ALL = slice(None)


class Batch(Protocol):
    """B battles of which every mech is an agent, on a device. Only `reset` may be called first."""

    def reset(self, seed: Any, options: dict[str, Any] | None) -> Outcome:
        """See `AutoresetBattles.reset`."""

    def step(self, actions: Tensor) -> Outcome:
        """Take a decision with actions (B, M, A) float32."""

    def global_state(self, team: int) -> Tensor:
        """(B, S) float32, see `BattleEngine.global_state`."""

    def possibilities(self) -> Possibilities:
        """What the mechs may be able to do in the coming decision, with tensors."""

    def snapshot(self, chosen: slice = ALL) -> dict[str, NDArray[Any]]:
        """Copies of all arrays on which later steps of some battles depend, by name, see `BattleEngine.snapshot`."""

    def restore(self, snapshot: Mapping[str, NDArray[Any]]) -> Tensor:
        """Restore a snapshot, see `BattleEngine.restore`. Returns the observations.

        Episodes begin with it, without those of mechs that are no agents any more. In the next step battles that are
        over are followed by the next ones.
        """

    def close(self) -> None:
        """Stop threads."""


class HostBattles:
    """Battles on the CPU. Later calls do not change the tensors that a call returns."""

    def __init__(self, battles: AutoresetBattles) -> None:
        self._battles, self._engine = battles, battles.engine
        self.close = battles.close

    def reset(self, seed: Any, options: dict[str, Any] | None) -> Outcome:
        """See `Batch`."""
        observations, report = self._battles.reset(seed, np.random.default_rng(), options)
        nothing = np.zeros(report.agents.shape, np.bool_)
        results = nothing.astype(np.float32), nothing, nothing.copy()
        return Outcome(torch.from_numpy(observations), _tensors(*results), _fields(report.agents), None)

    def step(self, actions: Tensor) -> Outcome:
        """See `Batch`."""
        step = self._battles.step(actions.numpy())
        results, final = _tensors(step.rewards, step.terminated, step.truncated), None
        if self._battles.mode == AutoresetMode.SAME_STEP:
            last = step.final
            observations, done, agents = (
                (step.observations, np.zeros(len(actions), np.bool_), step.report.agents)
                if last is None
                else (last.observations, last.done, last.report.agents)
            )
            final = Final(torch.from_numpy(observations), torch.from_numpy(done.copy()), _fields(agents))
        return Outcome(torch.from_numpy(step.observations), results, _fields(step.report.agents), final)

    def global_state(self, team: int) -> Tensor:
        """See `Batch`."""
        return torch.from_numpy(self._battles.global_state(team))

    def possibilities(self) -> Possibilities:
        """See `Batch`."""
        return Possibilities(*_tensors(*self._engine.possibilities()))  # type: ignore[arg-type]

    def snapshot(self, chosen: slice = ALL) -> dict[str, NDArray[Any]]:
        """See `Batch`."""
        return {name: array[chosen] for name, array in self._engine.snapshot().items()}

    def restore(self, snapshot: Mapping[str, NDArray[Any]]) -> Tensor:
        """See `Batch`."""
        self._engine.restore(snapshot)
        self._battles.resume()
        return torch.from_numpy(self._battles.battles.observations)


class DeviceBattles:
    """Battles in a device's memory. Later calls write into the tensors that a call returns.

    A step neither waits for the device nor needs the host, so CUDA graphs can record it. There is no copy of them but a
    snapshot.

    Parameters
    ----------
    config, count, maps
        The battles, their number and their maps.
    memory
        The device.
    mode, max_cycles, regenerate
        As for `AutoresetBattles`, with autoreset.
    """

    def __init__(
        self,
        config: BattleConfig,
        count: int,
        maps: MapPool,
        memory: DeviceMemory,
        mode: AutoresetMode,
        max_cycles: int | None,
        regenerate: int,
    ) -> None:
        self.config, self.count, self.maps, self._same_step = config, count, maps, mode == AutoresetMode.SAME_STEP
        self._seeds: list[int] | None = None
        self._memory, self._regenerate, mechs = memory, regenerate, config.num_mechs
        tables = build_tables(config)
        self._tables, self._state, self._out = tables, allocate(config, count), allocate_outputs(count, mechs)
        lasting = {**self._state._asdict(), **self._out._asdict()}
        self._arrays = {name: array for name, array in lasting.items() if name not in SCRATCH}
        self._slots, self._episodes = np.zeros(count, SLOT), np.zeros((count, mechs), EPISODE)
        actions, observations = (
            np.zeros((count, mechs, ACTION_DIM), np.float32),
            np.zeros((count * mechs, OBSERVATION_DIM), np.float32),
        )
        agents, results = np.zeros((count, mechs), AGENT), allocate_results(count, mechs)
        for array in (*self._state, *self._out, self._slots, self._episodes, actions, observations, agents, *results):
            memory.zeros(array)
        self._observation_rows = observations
        rows = np.tile(np.arange(mechs), (count, 1))
        players = Players(self._state.statistics.view(COUNTERS), rows, self._episodes, agents)
        maps_there, starts = load_pool(config, tables, maps)
        maps_here = MapBytes(*(_bytes(lasting[name]) for name in MapBytes._fields))
        cleared = Cleared(*(_bytes(lasting[name]) for name in Cleared._fields))
        damage = self._state.voxel_damage.view(np.uint8).reshape(*self._state.voxel_damage.shape[:2], -1)
        self._load = memory.bind(
            "load_maps", count * PARTS, self._state, damage, _bytes(self._state.events), cleared,
            maps_here, maps_there, self._slots, PARTS,
        )  # fmt: skip
        bound = tables, self._state, actions, self._out, np.arange(count * mechs).reshape(count, mechs), observations
        limits = NO_LIMIT if max_cycles is None else max_cycles, regenerate
        self._decide, self._start = (
            memory.bind("play_range", count, *bound, starts, self._slots, players, results, *limits, int(part))
            for part in (DECIDE, START)
        )
        self._observations = memory.tensor(observations).view(count, mechs, -1)
        self._actions, self._done = memory.tensor(actions), memory.tensor(results.done)
        self._results = tuple(memory.tensor(each) for each in (results.rewards, results.terminated, results.truncated))
        self._reports, self._agents = agents, record_fields(memory.bytes_of(agents), agents)
        self._can = allocate_possibilities(count, mechs)
        self._find_possibilities = memory.bind("find_possibilities", count, tables, self._state, self._can)
        self._states = np.zeros((2, count, state_streams(room_for(None, config))["units"].stop), np.float32)
        memory.zeros(self._states)
        self._write_states = tuple(
            memory.bind(
                "write_global_states", count, tables, self._state,
                np.arange(count), np.full(count, team, np.int64), self._states[team], 0,
            )
            for team in range(2)
        )  # fmt: skip

    def reset(self, seed: Any, options: dict[str, Any] | None) -> Outcome:
        """See `Batch`. It waits for the device."""
        slots = self._memory.read(self._slots)
        episodes = slots["episode"] - slots["starts"]
        chosen = read_reset(seed, options, np.random.default_rng(), self._seeds, episodes)
        self._seeds, waiting = chosen.seeds, slots["starts"] & ~chosen.mask  # these start in the next decision
        self._choose(slots, chosen)
        self._load()
        self._start()
        slots["starts"] = waiting
        self._memory.write(self._slots, slots)
        left = torch.from_numpy(~chosen.mask).to(self._memory.device)
        self._agents["outcome"][left] = 0  # as in the reports of `AutoresetBattles`
        return self._outcome()

    def step(self, actions: Tensor) -> Outcome:
        """See `Batch`."""
        self._actions.copy_(actions)
        self._load()
        self._decide()
        if not self._same_step:
            return self._outcome()
        results = tuple(each.clone() for each in self._results)
        agents = record_fields(self._memory.bytes_of(self._reports).clone(), self._reports)
        final = Final(self._observations.clone(), self._done.clone(), agents)
        self._load()
        self._start()
        return Outcome(self._observations, results, self._agents, final)

    def _outcome(self) -> Outcome:
        return Outcome(self._observations, self._results, self._agents, None)

    def _choose(self, slots: NDArray[Any], chosen: Reset) -> None:
        """Let some battles start in the next call, and no others. `slots` are those of now, which change."""
        seeds, map_seeds = battle_seeds(chosen, self._regenerate)
        for b in np.flatnonzero(chosen.mask).tolist():
            number = self.maps.number_of(map_seeds[b])
            slots["seed"][b], slots["episode"][b] = chosen.seeds[b], chosen.episodes[b]
            slots["battle_seed"][b], slots["map"][b] = seeds[b], number
        slots["starts"] = chosen.mask
        self._memory.write(self._slots, slots)

    def possibilities(self) -> Possibilities:
        """See `Batch`."""
        self._find_possibilities()
        return Possibilities(*map(self._memory.tensor, self._can))  # type: ignore[arg-type]

    def global_state(self, team: int) -> Tensor:
        """See `Batch`."""
        states = self._memory.tensor(self._states[team])
        states.zero_()
        self._write_states[team]()
        return states

    def snapshot(self, chosen: slice = ALL) -> dict[str, NDArray[Any]]:
        """See `Batch`."""
        arrays = {name: self._memory.read(array[chosen]) for name, array in self._arrays.items()}
        return arrays | {"started": np.ones(len(arrays["battles"]), np.bool_)}

    def restore(self, snapshot: Mapping[str, NDArray[Any]]) -> Tensor:
        """See `Batch`."""
        engine = BattleEngine(self.config, self.count, maps=self.maps)
        engine.restore(snapshot)
        if not engine.was_reset.all():
            raise ValueError("snapshot: expected battles that have all been reset")
        assert self._seeds is not None
        present = remaining(engine)
        self._episodes[:] = 0
        self._episodes["present"] = present
        kept: tuple[Any, ...] = (*engine.state, *engine.out, engine.observation_rows.array, self._episodes)
        own: tuple[Any, ...] = (*self._state, *self._out, self._observation_rows, self._episodes)
        for array, content in zip(own, kept, strict=True):
            self._memory.write(array, content)
        slots, done = self._memory.read(self._slots), np.logical_not(present.any(axis=1))
        slots["episode"] -= slots["starts"]  # those that were to start
        self._choose(slots, Reset(done, done, self._seeds, slots["episode"] + done, [None] * self.count))
        return self._observations

    def close(self) -> None:
        """See `Batch`: there are no threads."""

    def __reduce__(self) -> NoReturn:
        raise TypeError("battles in a GPU's memory cannot be copied or pickled: use snapshot()")


def load_pool(config: BattleConfig, tables: Tables, pool: MapPool) -> tuple[MapBytes, Starts]:
    """All maps of a pool, with what battles compute from them."""
    state, count = allocate(config, 1), len(pool)
    maps = MapBytes(*(np.zeros((count, getattr(state, name).nbytes), np.uint8) for name in MapBytes._fields))
    classes = [config.catalog.class_index(name) for roster in config.rosters for name in roster]
    spawns = np.zeros((count, 2, max(map(len, config.rosters)), 2))
    starts = Starts(np.zeros(count, BATTLE), spawns, np.array(classes))
    pack = pack_terrain.bind(tables, state)
    for number in range(count):
        terrain = pool[number]
        state.voxels[0], spawns[number] = terrain.voxels, terrain.spawns
        pack(max(1, terrain.top), 0)
        _bytes(starts.battles)[number] = battle_of(terrain, int(state.battles["num_hazards"][0]))
        for name, rows in maps._asdict().items():
            rows[number] = _bytes(getattr(state, name))[0]
    return maps, starts


def _tensors(*arrays: NDArray[Any]) -> tuple[Tensor, ...]:
    return tuple(map(torch.from_numpy, arrays))


def _fields(agents: NDArray[Any]) -> Fields:
    return record_fields(torch.from_numpy(agents.reshape(-1).view(np.uint8)), agents)


def _bytes(array: NDArray[Any]) -> NDArray[np.uint8]:
    """The bytes (B, ...) of an array."""
    return array.view(np.uint8).reshape(len(array), -1)
