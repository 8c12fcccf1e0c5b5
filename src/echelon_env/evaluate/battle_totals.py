"""Statistics of battles as sums that add up: by opponent, side and mech class, with heat maps.

Everything is a sum over battles, so that the totals of several runs, periods or players can be merged in any order.
Means and rates are quotients of two sums, see `measures`.

These are the sums over the mechs of a class; a name that is missing counts 0:

- ``mechs``: 1 for every mech and battle
- ``alive_seconds``: s alive, in whole decisions that the mech survived
- ``zone_seconds``: s of these inside the zone
- ``seeing_seconds``: s of these in which its sensors see an enemy
- ``sight_seconds``: s of these with a clear line of sight to an enemy
- ``seen_seconds``: s of these in which an enemy sees it
- ``distance_seconds``: m s: the distance in the plane to the nearest enemy that it sees, over ``seeing_seconds``
- ``shutdown_seconds``: s shut down by heat
- ``jet_seconds``: s of these using jump jets; also ``vent_seconds``, ``ecm_seconds``, ``eccm_seconds``
- ``damage_dealt`` ... ``bad_actions``: the engine's STATISTICS
- ``terrain_broken``: voxels of 1 m3 that its shots destroyed
- ``deaths_shut_down``, ``deaths_fallen``: deaths of mechs that were shut down; that were knocked down
- ``messages``: decisions in which it sent a message to its pack
- ``message/CHANNEL/BIN``: messages with this number in a bin of equal width of [-1, 1], `BINS` bins from 0
- ``shots``, ``hits``: shots and direct hits
- ``weapon/WEAPON/shots``, ``hits``, ``damage``, ``kills``, ``untargeted``: by weapon; damage and kills of enemies,
  shots without a target
- ``taken/CAUSE``, ``death/CAUSE``: hit points lost, and deaths, by cause, see below
- ``reward``, ``reward/COMPONENT``: the weighted reward, in all and by component

Causes are ``weapon/WEAPON`` of an enemy, ``friendly`` (a weapon of a team-mate), ``own`` (its own weapon) and
``hazard`` (lava, debris). A death has the causes of the hit points of its last tick, in proportion. Neither heat nor a
fall kills by itself: `deaths_shut_down` and `deaths_fallen` count the deaths of mechs in these conditions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from echelon_env.engine.state import STATISTIC_NAMES
from echelon_env.layout.actions import COMM_DIM
from echelon_env.layout.measures import MEASURES

__all__ = [
    "BINS",
    "COUNTED",
    "HEAT_CELLS",
    "HEAT_MAPS",
    "OF_WEAPONS",
    "OTHERS",
    "RESULTS",
    "BattleTotals",
    "OpponentTotals",
    "add_sums",
    "by_weapon",
    "count",
    "measures",
    "message_entropies",
    "parts_of",
    "ratio",
    "sum_of",
]

Sums = dict[str, float]
"""Sums by name."""

Side = Literal["own", "enemy"]
SIDES: tuple[Side, Side] = ("own", "enemy")

RESULTS = (
    "battles", "wins", "draws", "losses", "seconds", "own_score", "enemy_score",
    "first_kills", "first_kill_wins", "first_kill_seconds",
)  # fmt: skip
"""Sums over battles: their numbers and results for the own side, s of battle time, s of zone control.

``first_kills`` counts battles in which one team lost its first mech, by any cause, in an earlier decision than the
other, ``first_kill_wins`` those of them that the other team won, ``first_kill_seconds`` is their time until then in s.
"""

OF_WEAPONS = ("shots", "hits", "damage", "kills", "untargeted")
"""The sums by weapon."""

COUNTED = ("mechs", *STATISTIC_NAMES, "shots", "hits")
"""The sums that the engine's state has at the end of a battle, see `count`."""

BINS = 8
"""Bins of the numbers in a message."""

HEAT_CELLS = 32
"""Cells of a heat map along each axis."""

HEAT_MAPS = ("presence", "deaths", "damage_dealt", "damage_taken")
"""Heat maps of a side: s that living mechs spent in a cell, deaths, hit points dealt and hit points lost there."""

HeatMaps = NDArray[np.float64]
"""(2, 4, HEAT_CELLS, HEAT_CELLS): by side (own, enemy), `HEAT_MAPS`, row (y) and column (x).

The map is turned so that the own team's spawn is at the corner (0, 0), also for the enemy's maps.
"""

OTHERS = "(others)"
"""Stands for the opponents that have no sums of their own."""


@dataclass
class OpponentTotals:
    """Sums over the battles against an opponent."""

    results: Sums = field(default_factory=dict)
    """The `RESULTS`."""
    own: dict[str, Sums] = field(default_factory=dict)
    """Sums over the mechs of each class of the own side."""
    enemy: dict[str, Sums] = field(default_factory=dict)
    """Sums over the mechs of each class of the opponent."""

    def side(self, side: Side) -> dict[str, Sums]:
        """The sums of a side by mech class."""
        return self.own if side == "own" else self.enemy

    def add(self, other: OpponentTotals) -> None:
        """Add the sums of other battles."""
        add_sums(self.results, other.results)
        for side in SIDES:
            for name, sums in other.side(side).items():
                add_sums(self.side(side).setdefault(name, {}), sums)


@dataclass
class BattleTotals:
    """Sums over battles, by opponent; and heat maps, by the edge of the map in m."""

    opponents: dict[str, OpponentTotals] = field(default_factory=dict)
    heatmaps: dict[int, HeatMaps] = field(default_factory=dict)

    @property
    def battles(self) -> int:
        """Number of battles."""
        return round(self.results()["battles"])

    def add(self, other: BattleTotals) -> None:
        """Add the sums of other battles."""
        for name, totals in other.opponents.items():
            self.opponents.setdefault(name, OpponentTotals()).add(totals)
        for size, maps in other.heatmaps.items():
            self.heatmaps[size] = self.heatmaps.get(size, 0.0) + maps

    @classmethod
    def merged(cls, parts: Iterable[BattleTotals]) -> BattleTotals:
        """The sums over the battles of all parts; a new object."""
        merged = cls()
        for part in parts:
            merged.add(part)
        return merged

    def fold(self, opponent: str) -> None:
        """Count the battles against an opponent, if there are any, as battles against `OTHERS`."""
        totals = self.opponents.pop(opponent, None)
        if totals is not None:
            self.opponents.setdefault(OTHERS, OpponentTotals()).add(totals)

    def results(self, opponent: str | None = None) -> Sums:
        """The `RESULTS` against an opponent, or against all. Raises KeyError for an unknown one."""
        results = dict.fromkeys(RESULTS, 0.0)
        for totals in self._chosen(opponent):
            add_sums(results, totals.results)
        return results

    def by_class(self, side: Side, opponent: str | None = None) -> dict[str, Sums]:
        """Sums of a side by mech class, in the battles against an opponent or all. Raises KeyError for an unknown."""
        classes: dict[str, Sums] = {}
        for totals in self._chosen(opponent):
            for name, sums in totals.side(side).items():
                add_sums(classes.setdefault(name, {}), sums)
        return classes

    def sums(self, side: Side, opponent: str | None = None) -> Sums:
        """Sums over all mechs of a side. Raises KeyError for an unknown opponent."""
        return sum_of(self.by_class(side, opponent).values())

    def _chosen(self, opponent: str | None) -> Iterable[OpponentTotals]:
        return self.opponents.values() if opponent is None else [self.opponents[opponent]]


def count(statistics: NDArray[Any], shots: NDArray[Any], hits: NDArray[Any]) -> NDArray[np.float64]:
    """The `COUNTED` of mechs in their battles so far, (..., sums), from their arrays (...) and (..., W) of a state."""
    columns = [np.ones(statistics.shape), *(statistics[name] for name in STATISTIC_NAMES)]
    return np.stack([*columns, shots.sum(axis=-1), hits.sum(axis=-1)], axis=-1, dtype=np.float64)


def add_sums(sums: Sums, others: Mapping[str, float]) -> None:
    """Add other sums, name by name."""
    for name, value in others.items():
        sums[name] = sums.get(name, 0.0) + value


def sum_of(parts: Iterable[Mapping[str, float]]) -> Sums:
    """The sums of all parts; a new dict."""
    total: Sums = {}
    for part in parts:
        add_sums(total, part)
    return total


def measures(sums: Mapping[str, float]) -> dict[str, float | None]:
    """The `MEASURES` of mechs by name, from their sums; None where there is nothing to divide by.

    All are quotients of two sums but ``message_entropy``, the mean over the channels of `message_entropies`.
    """
    found = {each.name: ratio(sums, each.sum, each.per) for each in MEASURES}
    entropies = message_entropies(sums)
    return found | {"message_entropy": sum(entropies) / len(entropies) if entropies else None}


def ratio(sums: Mapping[str, float], name: str, per: str) -> float | None:
    """The quotient of two sums; None if the second is 0."""
    divisor = sums.get(per, 0.0)
    return sums.get(name, 0.0) / divisor if divisor else None


def by_weapon(sums: Mapping[str, float]) -> dict[str, Sums]:
    """Weapon -> the sums `OF_WEAPONS` of weapons that were fired or did damage."""
    weapons: dict[str, Sums] = {}
    for key, value in sums.items():
        if key.startswith("weapon/"):
            weapon, _, name = key.removeprefix("weapon/").rpartition("/")
            weapons.setdefault(weapon, dict.fromkeys(OF_WEAPONS, 0.0))[name] = value
    return weapons


def parts_of(sums: Mapping[str, float], name: Literal["taken", "death", "reward"]) -> Sums:
    """The parts of a sum: of ``taken`` and ``death`` by cause, of ``reward`` by component."""
    return {key.removeprefix(f"{name}/"): value for key, value in sums.items() if key.startswith(f"{name}/")}


def message_entropies(sums: Mapping[str, float]) -> list[float]:
    """The entropy of each channel of the messages in nats, (COMM_DIM,); empty if none was sent.

    The estimate is that of the histogram with `BINS` bins over all messages of the sums (maximum likelihood, without a
    correction of its bias): from 0, always the same bin, to ln(BINS) = 2.08.
    """
    if not sums.get("messages", 0.0):
        return []
    entropies = []
    for channel in range(COMM_DIM):
        counts = [sums.get(f"message/{channel}/{each}", 0.0) for each in range(BINS)]
        shares = [count / sum(counts) for count in counts if count > 0.0]
        entropies.append(max(0.0, -sum(share * math.log(share) for share in shares)))
    return entropies
