"""The measures of mechs in battles: every statistic's name, unit, chart and meaning, and what counts it.

A measure is the quotient of two sums over battles. Metrics, tables, charts and docs are derived from `MEASURES`.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["MEASURES", "Measure"]


class Measure(NamedTuple):
    """A mean or a rate of mechs."""

    name: str
    label: str
    """Short text for tables and legends."""
    unit: str
    """``"HP"`` are hit points; ``"%"`` marks a share from 0 to 1 that is shown in per cent."""
    chart: str
    """Title of the chart of the metric ``battle/NAME``, which measures with the same title share; empty: no metric."""
    meaning: str
    counted: str = ""
    """Type of the engine's counter of this name; empty: `BattleObserver` measures the sum."""
    of: str = ""
    """The sum, if its name is another."""
    per: str = "mechs"
    """The sum by which it is divided; empty: it is no quotient, see `echelon_env.evaluate.battle_totals.measures`."""
    main: bool = False
    """Whether it is also a metric of each mech class, of each opponent and of evaluations."""

    @property
    def sum(self) -> str:
        """Name of the sum over battles."""
        return self.of or self.name

    @property
    def heading(self) -> str:
        """The label with the unit."""
        return f"{self.label}, {self.unit}" if self.unit else self.label

    @property
    def is_share(self) -> bool:
        """Whether the value is a share from 0 to 1."""
        return self.unit == "%"


_DAMAGE, _KILLS, _SUPPORT = "damage", "kills and deaths", "mishaps and support"
_SHARES, _TIMES = "shares of the time alive", "time alive and shut down"
_USE = "equipment in use, shares of the time alive"
_ALIVE = "alive_seconds"

MEASURES = (
    Measure("return", "return", "", "", "weighted reward", of="reward", main=True),
    Measure("damage_dealt", "damage dealt", "HP", _DAMAGE, "hit points taken from enemies' bodies", "f8", main=True),
    Measure("friendly_damage", "friendly damage", "HP", _DAMAGE, "hit points taken from team-mates and itself", "f8"),
    Measure("damage_taken", "damage taken", "HP", _DAMAGE, "hit points that its body lost", "f8", main=True),
    Measure("kills", "kills", "", _KILLS, "of enemies; shared kills count in parts", "f8", main=True),
    Measure("assists", "assists", "", _KILLS, "kills by pack-mates of mechs that it had painted", "f8"),
    Measure("paints", "paints", "", _SUPPORT, "times that it painted an enemy", "i4"),
    Measure("interceptions", "interceptions", "", _SUPPORT, "missiles shot down", "i4"),
    Measure("falls", "falls", "", _SUPPORT, "times knocked down", "i4"),
    Measure("shutdowns", "overheats", "", _SUPPORT, "times shut down by heat", "i4"),
    Measure("deaths", "deaths", "", _KILLS, "its own", "i4", main=True),
    Measure("bad_actions", "bad actions", "", _SUPPORT, "non-finite entries of its actions", "i4"),
    Measure("accuracy", "accuracy", "%", "accuracy", "direct hits per shot", of="hits", per="shots", main=True),
    Measure("terrain_broken", "terrain broken", "m3", "terrain broken", "by its shots"),
    Measure("alive_seconds", "alive", "s", _TIMES, "in whole decisions that it survived"),
    Measure("shutdown_seconds", "shut down", "s", _TIMES, "by heat"),
    Measure("zone_share", "in zone", "%", _SHARES, "inside the zone", of="zone_seconds", per=_ALIVE, main=True),
    Measure("seeing_share", "sees", "%", _SHARES, "its sensors see an enemy", of="seeing_seconds", per=_ALIVE),
    Measure("sight_share", "in sight", "%", _SHARES, "a clear line to an enemy", of="sight_seconds", per=_ALIVE),
    Measure("seen_share", "seen", "%", _SHARES, "an enemy sees it", of="seen_seconds", per=_ALIVE),
    Measure("jet_share", "jets", "%", _USE, "if it has them", of="jet_seconds", per=_ALIVE),
    Measure("vent_share", "vents", "%", _USE, "it vents heat", of="vent_seconds", per=_ALIVE),
    Measure("ecm_share", "ECM", "%", _USE, "it radiates ECM", of="ecm_seconds", per=_ALIVE),
    Measure("eccm_share", "ECCM", "%", _USE, "it radiates ECCM", of="eccm_seconds", per=_ALIVE),
    Measure(
        "distance", "distance", "m", "distance", "in the plane to the nearest enemy that it sees",
        of="distance_seconds", per="seeing_seconds", main=True,
    ),
    Measure(
        "message_entropy", "message entropy", "nats", "message entropy",
        "of the numbers in the messages sent, mean over the channels", per="",
    ),
)  # fmt: skip
"""All measures, in the order of tables and charts, and of the engine's counters."""
