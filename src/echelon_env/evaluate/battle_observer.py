"""Measurements of the battles of an engine, decision by decision."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from echelon_env.config.battle import REWARD_COMPONENTS
from echelon_env.engine.core import BattleEngine
from echelon_env.engine.state import (
    BLUE,
    ECCM,
    ECM,
    EVENT_KINDS,
    FALL,
    HAZARD,
    HIT,
    IMPACT,
    IN_SIGHT,
    RED,
    RESTART,
    RISE,
    SHOT,
    SHUTDOWN,
    SPLASH,
)
from echelon_env.evaluate.battle_record import BattleRecord
from echelon_env.evaluate.battle_totals import (
    BINS,
    COUNTED,
    HEAT_CELLS,
    HEAT_MAPS,
    OF_WEAPONS,
    SIDES,
    count,
)
from echelon_env.layout.actions import COMM_DIM, Action
from echelon_env.layout.measures import MEASURES
from echelon_env.storage.arrays import Arrays, check_arrays

__all__ = ["BattleObserver"]

PRESENCE, DEATHS, DEALT, TAKEN = range(len(HEAT_MAPS))
FRIENDLY, OWN, HAZARDS = range(3)
_OTHER_CAUSES = ("friendly", "own", "hazard")  # of harm, beside the weapons of enemies

_SUMS = dict.fromkeys(name for each in MEASURES for name in (each.per, each.sum))
_TIMES = tuple(
    name.removesuffix("_seconds") for name in _SUMS if name.endswith("_seconds") and name != "shutdown_seconds"
)  # in decisions; the distance in m times decisions
_TALLIES = ("deaths_shut_down", "deaths_fallen", "messages", "terrain_broken")

_MAPS_CELLS = len(HEAT_MAPS) * HEAT_CELLS**2  # of a team's heat maps

_IS_HARMFUL = np.isin(np.arange(len(EVENT_KINDS)), (HIT, SPLASH, HAZARD))


class _Harm(NamedTuple):
    """Events of a decision that took hit points, arrays (events,)."""

    ticks: NDArray[Any]
    amounts: NDArray[Any]  # hit points
    weapons: NDArray[Any]
    causes: NDArray[Any]  # columns of the sums by cause
    dealers: NDArray[Any]  # rows of mechs, battle * M + mech; without meaning for a hazard
    victims: NDArray[Any]


class BattleObserver:
    """Measures the battles of an engine that start from now on, or have started but taken no decision yet.

    It is an `EngineObserver`: it only reads the battles. A battle that is reset before its end, or whose state is
    restored, is not measured. Changed reward weights count from the next decision on. `finished` is battle -> its
    record, of battles that are over: the last one of each battle of the batch. The reader removes it.
    """

    def __init__(self, engine: BattleEngine) -> None:
        self.engine = engine
        self.finished: dict[int, BattleRecord] = {}
        config = engine.config
        self._config = config
        self._weapons = [weapon.name for weapon in config.catalog.weapons]
        self._causes = [*(f"weapon/{name}" for name in self._weapons), *_OTHER_CAUSES]
        self._teams = np.repeat([BLUE, RED], [len(config.blue), len(config.red)])
        self._classes = tuple(name for roster in config.rosters for name in roster)
        classes = [config.catalog.mech_classes[config.catalog.class_index(name)] for name in self._classes]
        self._has_jets = np.tile([each.jet_acceleration > 0.0 for each in classes], engine.num_battles)
        rows = np.arange(engine.num_battles * engine.num_mechs)
        self._first_events = np.arange(engine.num_battles) * engine.state.events.shape[1]
        self._maps = (rows // engine.num_mechs * len(SIDES) + np.tile(self._teams, engine.num_battles)) * _MAPS_CELLS
        self._cells = self._maps  # where each mech (B * M,) is on the first of its team's heat maps
        self._names = self._names_of_sums()
        self._beside_weapons = self._causes_beside_weapons()
        shapes = self._shapes()
        bounds = np.cumsum([math.prod(shape) for shape in shapes.values()])
        self._all = np.zeros(bounds[-1])
        """All sums of the battles in progress, of which the next two have views by name: flat, and in their shapes."""
        self._flat = dict(zip(shapes, np.split(self._all, bounds[:-1]), strict=True))
        self._sums = {name: self._flat[name].reshape(shape) for name, shape in shapes.items()}
        self._measured = engine.was_reset & (engine.state.battles["step_count"] == 0)
        self._read_conditions()
        self._read_zones()
        self._max_feet = float(engine.tables.rules[0]["max_feet_height"])
        engine.observers.append(self)

    def close(self) -> None:
        """Stop measuring. Battles in progress are dropped."""
        if self in self.engine.observers:
            self.engine.observers.remove(self)

    def state_arrays(self) -> Arrays:
        """The sums of the battles in progress, for `restore_arrays`."""
        cells = np.flatnonzero(self._all)  # few, because of the heat maps
        return {"cells": cells, "values": self._all[cells], "measured": self._measured.copy()}

    def restore_arrays(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore `state_arrays`, after the engine's state of the same time has been restored. Raises ValueError."""
        what, measured = "the statistics of battles", ((self.engine.num_battles,), np.bool_)
        check_arrays(
            what, arrays, {"cells": ((None,), np.int64), "values": ((None,), np.float64), "measured": measured}
        )
        cells, values = arrays["cells"], arrays["values"]
        if len(cells) != len(values) or not ((cells >= 0) & (cells < len(self._all))).all():
            raise ValueError(f"state of {what}: expected a value for each of some cells from 0 to {len(self._all) - 1}")
        if not np.isfinite(values).all():
            raise ValueError(f"state of {what}: 'values': expected finite numbers")
        self._all[:] = 0.0
        self._all[cells] = values
        self._measured = arrays["measured"] & self.engine.was_reset
        self._read_conditions()
        self._read_zones()

    def on_reset(self, battles: Sequence[int]) -> None:
        """These battles have started: their sums are 0."""
        for sums in self._sums.values():
            sums[battles] = 0.0
        self._measured[battles] = True
        self._read_conditions()
        self._read_zones()

    def on_change(self) -> None:
        """Battles in progress are not measured if their state has been restored."""
        if self.engine.config is self._config:
            self._measured[:] = False
        self._config = self.engine.config  # another one: only the reward weights have changed

    def on_step(self, actions: NDArray[np.float32]) -> None:
        """Add a decision of all battles. What is added to those that are over is never read."""
        mechs = self.engine.state.mechs
        places = np.array([mechs["x"], mechs["y"]]).reshape(2, -1)
        cells = (places * (HEAT_CELLS / self.engine.config.terrain.size)).astype(np.int64)
        np.minimum(cells, HEAT_CELLS - 1, out=cells)
        self._cells = self._maps + cells[1] * HEAT_CELLS + cells[0]
        self._add_times(mechs, places)
        self._add_sightings(*places)
        self._add_messages(mechs, actions)
        self._sums["rewards"] += self.engine.out.components
        self._add_events()
        self._read_conditions()
        over = self._measured & (self.engine.state.battles["over"] != 0)
        if over.any():
            for battle in np.flatnonzero(over).tolist():
                self.finished[battle] = self._record(battle)
            self._measured &= ~over

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the sums of the battles in progress, by name."""
        engine, weapons, causes = self.engine, len(self._weapons), len(self._causes)
        mechs = engine.num_battles, engine.num_mechs
        return {
            **dict.fromkeys((*_TIMES, "shutdown_ticks", *_TALLIES), mechs),
            "rewards": (*mechs, len(REWARD_COMPONENTS)),
            "bins": (*mechs, COMM_DIM, BINS),
            "damage": (*mechs, weapons),
            "kills": (*mechs, weapons),
            "untargeted": (*mechs, weapons),
            "first_kills": (engine.num_battles, len(SIDES)),
            "taken": (*mechs, causes),
            "deaths": (*mechs, causes),
            "heat": (engine.num_battles, len(SIDES), len(HEAT_MAPS), HEAT_CELLS**2),
        }

    def _read_conditions(self) -> None:
        """Remember which mechs are shut down and fallen, as a death ends both."""
        mechs = self.engine.state.mechs
        self._shut_down, self._fallen = mechs["shutdown"].copy(), mechs["fallen"].copy()

    def _read_zones(self) -> None:
        """Remember the zones: x and y of the centre in m and the squared radius in m2 for every mech, (3, B * M)."""
        battles = self.engine.state.battles
        zones = np.array([battles["zone_x"], battles["zone_y"], battles["zone_radius"] ** 2])
        self._zone = np.repeat(zones, self.engine.num_mechs, axis=1)

    def _add_times(self, mechs: NDArray[Any], places: NDArray[np.float64]) -> None:
        """Times alive, in the zone and using equipment, and the places (2, B * M), x and y, of living mechs."""
        sums, alive = self._flat, mechs["alive"].ravel().view(np.bool_)
        sums["alive"] += alive
        squares = (places - self._zone[:2]) ** 2
        stands = alive & (mechs["fallen"].ravel() == 0)
        inside = (squares[0] + squares[1] <= self._zone[2]) & (mechs["z"].ravel() < self._max_feet)
        sums["zone"] += inside & stands
        running = alive & ~mechs["shutdown"].ravel().view(np.bool_)
        sums["jet"] += running & stands & self._has_jets & (mechs["jet"].ravel() > 0.0)
        sums["vent"] += alive & mechs["vent"].ravel().view(np.bool_)
        radiates = mechs["radiates"].ravel()
        sums["ecm"] += running & (radiates == ECM)
        sums["eccm"] += running & (radiates == ECCM)
        self._sums["shutdown_ticks"] += mechs["shutdown_ticks"]
        self._heat(alive, PRESENCE, 1.0)

    def _add_sightings(self, x: NDArray[np.float64], y: NDArray[np.float64]) -> None:
        """Who sees an enemy, has one in sight and is seen, and the distance to the nearest enemy seen."""
        sums, count = self._flat, self.engine.num_mechs
        visible = self.engine.state.visible.reshape(-1)
        pairs = np.flatnonzero(visible.view(np.bool_))  # in the order of the mechs that see
        if not len(pairs):
            return
        seers = pairs // count
        seen = pairs - (seers - seers // count) * count  # (battle * M + m) * M + o -> battle * M + o
        begins = np.ones(len(seers), np.bool_)
        np.not_equal(seers[1:], seers[:-1], out=begins[1:])
        first = np.flatnonzero(begins)
        dx, dy = x[seers] - x[seen], y[seers] - y[seen]
        seers = seers[first]
        sums["seeing"][seers] += 1.0
        sums["sight"][seers] += np.maximum.reduceat(visible[pairs], first) == IN_SIGHT
        sums["distance"][seers] += np.sqrt(np.minimum.reduceat(dx * dx + dy * dy, first))
        is_seen = np.zeros(len(x), np.bool_)
        is_seen[seen] = True
        sums["seen"] += is_seen

    def _add_messages(self, mechs: NDArray[Any], actions: NDArray[np.float32]) -> None:
        """The messages sent, by channel and bin. Actions in battles that were over are not clean, and not counted."""
        sent = (mechs["transmits"] != 0) & self._measured[:, None]
        self._sums["messages"] += sent
        numbers = actions[..., Action.COMM_0 :]
        if not numbers.any():  # as of players that send none; `_record` counts them in the bin of 0
            return
        chosen = np.minimum((numbers[sent].astype(np.float64) + 1.0) * (BINS / 2), BINS - 1).astype(np.int64)
        cells = np.flatnonzero(sent)[:, None] * (COMM_DIM * BINS) + np.arange(COMM_DIM) * BINS + chosen
        self._flat["bins"][cells.ravel()] += 1.0  # a channel has one number

    def _add_events(self) -> None:
        """Shots without a target, terrain broken, damage by weapon and cause, and deaths."""
        state, count = self.engine.state, self.engine.num_mechs
        counts = state.battles["num_events"]
        ends = np.cumsum(counts)
        places = np.arange(ends[-1]) + np.repeat(self._first_events - (ends - counts), counts)
        every = state.events.reshape(-1)
        self._add_shots(every, places)
        places = places[_IS_HARMFUL[every["kind"][places]] & (every["amount"][places] > 0.0)]
        if not len(places):
            return
        events = every.take(places)
        first = places // state.events.shape[1] * count  # row of the battle's first mech
        actors, targets = events["actor"].astype(np.int64), events["target"].astype(np.int64)
        causes = self._beside_weapons[actors, targets]  # the actor -1 of a hazard is the last row
        harm = _Harm(
            ticks=events["tick"],
            amounts=events["amount"].copy(),
            weapons=events["weapon"].astype(np.int64),
            causes=np.where(causes < 0, events["weapon"], causes),
            dealers=first + actors,
            victims=first + targets,
        )
        self._add_harm(harm)
        died = np.flatnonzero(state.mechs["died"])
        if len(died):
            self._add_deaths(died, harm)

    def _add_shots(self, events: NDArray[Any], places: NDArray[np.int64]) -> None:
        """Shots at no target, and voxels destroyed, by the events at these places."""
        kinds, width, count = events["kind"][places], self.engine.state.events.shape[1], self.engine.num_mechs
        shots = places[(kinds == SHOT) & (events["target"][places] < 0)]
        if len(shots):
            _add(
                self._sums["untargeted"], shots // width * count + events["actor"][shots], events["weapon"][shots], 1.0
            )
        struck = places[(kinds == IMPACT) & (events["amount"][places] > 0.0)]
        if len(struck):
            rows = struck // width * count + events["actor"][struck]
            np.add.at(self._flat["terrain_broken"], rows, events["amount"][struck])

    def _causes_beside_weapons(self) -> NDArray[np.int64]:
        """(M + 1, M) the cause of harm by a mech, with none in the last row, to a mech; -1: the weapon of an enemy."""
        count, weapons = len(self._teams), len(self._weapons)
        causes = np.full((count + 1, count), weapons + HAZARDS)
        causes[:count] = np.where(self._teams[:, None] == self._teams, weapons + FRIENDLY, -1)
        np.fill_diagonal(causes, weapons + OWN)
        return causes

    def _add_harm(self, harm: _Harm) -> None:
        sums, hostile = self._sums, harm.causes < len(self._weapons)
        _add(sums["taken"], harm.victims, harm.causes, harm.amounts)
        self._heat(harm.victims, TAKEN, harm.amounts)
        dealers, amounts = harm.dealers[hostile], harm.amounts[hostile]
        _add(sums["damage"], dealers, harm.weapons[hostile], amounts)
        self._heat(dealers, DEALT, amounts)

    def _add_deaths(self, died: NDArray[np.int64], harm: _Harm) -> None:
        """Deaths of these mechs, with their causes, their places and the conditions of the dead."""
        self._heat(died, DEATHS, 1.0)
        self._add_first_kills(died)
        of_dead = np.flatnonzero(np.isin(harm.victims, died))
        harm = _Harm(*(field[of_dead] for field in harm))
        shares = self._shares_of_deaths(harm)
        _add(self._sums["deaths"], harm.victims, harm.causes, shares)
        hostile = harm.causes < len(self._weapons)
        _add(self._sums["kills"], harm.dealers[hostile], harm.weapons[hostile], shares[hostile])
        state = self.engine.state
        for row in died.tolist():
            battle, mech = divmod(row, self.engine.num_mechs)
            events = state.events[battle, : state.battles["num_events"][battle]]
            kinds = events["kind"][events["actor"] == mech]
            for name, before, begins, ends in (
                ("deaths_shut_down", self._shut_down, SHUTDOWN, RESTART), ("deaths_fallen", self._fallen, FALL, RISE)
            ):  # fmt: skip
                changes = kinds[(kinds == begins) | (kinds == ends)]
                self._sums[name][battle, mech] += changes[-1] == begins if len(changes) else before[battle, mech] > 0

    def _add_first_kills(self, died: NDArray[np.int64]) -> None:
        """The first kills of battles whose first deaths are these mechs', if they are all of one team."""
        battles, mechs = np.divmod(died, self.engine.num_mechs)
        earlier = self._sums["deaths"].sum(axis=(1, 2)) > 0.0
        for battle in np.unique(battles[~earlier[battles]]).tolist():
            teams = np.unique(self._teams[mechs[battles == battle]])
            if len(teams) == 1:
                decisions = self.engine.state.battles["step_count"][battle]
                seconds = decisions * self.engine.config.decision_seconds
                self._sums["first_kills"][battle, 1 - teams[0]] = seconds

    def _shares_of_deaths(self, harm: _Harm) -> NDArray[np.float64]:
        """The share of each event in the death of its victim: 0 before the victim's last tick."""
        last = np.zeros(len(self._maps), np.int64)
        np.maximum.at(last, harm.victims, harm.ticks)  # a dead mech loses no hit points
        amounts = np.where(harm.ticks == last[harm.victims], harm.amounts, 0.0)
        totals = np.zeros(len(self._maps))
        np.add.at(totals, harm.victims, amounts)
        shares: NDArray[np.float64] = amounts / totals[harm.victims]
        return shares

    def _heat(self, rows: NDArray[Any], which: int, amounts: Any) -> None:
        """Add amounts at the places of mechs, given by their rows or a mask, to a heat map of their teams."""
        np.add.at(self._flat["heat"], self._cells[rows] + which * HEAT_CELLS**2, amounts)

    def _record(self, battle: int) -> BattleRecord:
        """The record of a battle that has just ended."""
        config, state = self.engine.config, self.engine.state
        sums = {name: array[battle] for name, array in self._sums.items()}
        shots, hits = state.shots[battle], state.hits[battle]
        sums["bins"][..., BINS // 2] += sums["messages"][:, None] - sums["bins"].sum(axis=-1)  # those of zeros only
        measured = [
            *(sums[name] * config.decision_seconds for name in _TIMES),
            sums["shutdown_ticks"] * config.dt,
            *(sums[name] for name in _TALLIES),
            sums["rewards"].sum(axis=1),
        ]
        counted = count(state.statistics[battle], shots, hits)
        weapons = [shots, hits, *(sums[name] for name in OF_WEAPONS[2:])]
        tables = [sums["rewards"], *weapons, sums["taken"], sums["deaths"]]
        bins = sums["bins"].reshape(len(self._teams), -1)
        heat = sums["heat"].reshape(len(SIDES), len(HEAT_MAPS), HEAT_CELLS, HEAT_CELLS).copy()
        heat[:, PRESENCE] *= config.decision_seconds
        blue, red = state.teams[battle]
        return BattleRecord(
            names=self._names,
            sums=np.concatenate([counted, np.array(measured).T, *tables, bins], axis=1),
            teams=self._teams,
            classes=self._classes,
            heat=heat,
            quarter_turns=(int(blue["quarter_turns"]), int(red["quarter_turns"])),
            map_size=config.terrain.size,
            winner=int(state.battles["winner"][battle]),
            seconds=float(state.battles["step_count"][battle] * config.decision_seconds),
            scores=(float(blue["score"]), float(red["score"])),
            first_kills=tuple(sums["first_kills"].tolist()),
        )

    def _names_of_sums(self) -> tuple[str, ...]:
        """Names of the columns of a record, in the order of `_record`."""
        measured = [*(f"{name}_seconds" for name in (*_TIMES, "shutdown")), *_TALLIES, "reward"]
        weapons = [f"weapon/{weapon}/{name}" for name in OF_WEAPONS for weapon in self._weapons]
        harm = [f"{name}/{cause}" for name in ("taken", "death") for cause in self._causes]
        bins = [f"message/{channel}/{each}" for channel in range(COMM_DIM) for each in range(BINS)]
        rewards = [f"reward/{name}" for name in REWARD_COMPONENTS]
        return (*COUNTED, *measured, *rewards, *weapons, *harm, *bins)


def _add(sums: NDArray[np.float64], rows: NDArray[np.int64], columns: NDArray[np.int64], amounts: Any) -> None:
    """Add amounts to the columns of mechs, given by their rows, in sums (B, M, columns)."""
    np.add.at(sums.reshape(-1), rows * sums.shape[2] + columns, amounts)
