"""Statistics of a player's battles: how they end, what does the damage, and what equipment is used."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from typing import Any

from echelon_env.config.battle import BattleConfig
from echelon_env.engine.state import REASONS, RUNNING
from echelon_env.evaluate.battle_totals import BattleTotals, Sums, by_weapon, measures, ratio, sum_of
from echelon_env.evaluate.matches import Match
from echelon_env.evaluate.tables import percent

__all__ = ["BATTLES", "WEAPONS", "battle_statistics", "format_number"]

BATTLES: Mapping[str, tuple[str, str]] = {
    **{f"ends_by_{name}": (f"battles that end by {name.replace('_', ' ')}", "%") for name in REASONS[RUNNING + 1 :]},
    "seconds": ("length of a battle, median", "s"),
    "first_kill_seconds": ("first kill, mean", "s"),
    "first_kill_wins": ("battles that the team with the first kill wins", "%"),
    "zone_share": ("time in the zone", "%"),
    "jet_share": ("time using jets, of mechs that have them", "%"),
    "vent_share": ("time venting", "%"),
    "ecm_share": ("time radiating ECM, of mechs that carry it", "%"),
    "eccm_share": ("time radiating ECCM, of mechs that carry it", "%"),
    "message_entropy": ("entropy of messages, mean over channels", "nats"),
    "paints": ("enemies painted", "a battle"),
    "smoke": ("smoke shells", "a battle"),
    "falls": ("mechs knocked down", "a battle"),
    "shutdowns": ("mechs overheated", "a battle"),
    "interceptions": ("missiles shot down", "a battle"),
    "terrain_broken": ("terrain broken, m3", "a battle"),
    "untargeted_share": ("shots at no target, of weapons with damage", "%"),
}
"""Key of a number of battles -> what it is, and its unit. ``"%"`` marks a share from 0 to 1. A first kill is a death
of one team's mech, by any cause, in an earlier decision than the other team's first."""

WEAPONS: Mapping[str, tuple[str, str]] = {
    "shots": ("shots a battle", ""),
    "untargeted": ("no target, %", "%"),
    "hits": ("hits, %", "%"),
    "damage": ("of damage, %", "%"),
}
"""Key of a weapon's number -> heading and unit: shots a battle, shares of its shots, and its share of all damage."""


def battle_statistics(match: Match, totals: BattleTotals, config: BattleConfig) -> dict[str, Any]:
    """The statistics of a match's battles: the numbers `BATTLES`, and under ``"weapons"`` by weapon those of `WEAPONS`.

    They are of the first player's team, or of both teams if it plays against itself. `totals` are those of the match.
    Values are None where there is nothing to divide by.
    """
    count = len(match.battles)
    teams = [totals.by_class("own"), *([totals.by_class("enemy")] if match.first == match.second else [])]
    sums = sum_of(each for team in teams for each in team.values())
    weapons = by_weapon(sums)
    damaging = [name for name in weapons if config.catalog.weapons[config.catalog.weapon_index(name)].damage > 0.0]
    smoke = [name for name in weapons if config.catalog.weapons[config.catalog.weapon_index(name)].smoke_radius > 0.0]
    jetting = _of_classes(teams, (each.name for each in config.mech_classes if each.jet_acceleration > 0.0))
    radiating = _of_classes(teams, (each.name for each in config.mech_classes if each.electronics))
    fired = sum_of(weapons[name] for name in damaging)
    reasons = [battle.reason for battle in match.battles]
    numbers: dict[str, float | None] = {
        **{f"ends_by_{name}": reasons.count(name) / count for name in REASONS[RUNNING + 1 :]},
        "seconds": statistics.median(battle.seconds for battle in match.battles),
        **{name: ratio(totals.results(), name, "first_kills") for name in ("first_kill_seconds", "first_kill_wins")},
        **{name: measures(sums)[name] for name in ("zone_share", "vent_share", "message_entropy")},
        "jet_share": measures(jetting)["jet_share"],
        **{name: measures(radiating)[name] for name in ("ecm_share", "eccm_share")},
        **{name: sums.get(name, 0.0) / count for name in _COUNTED},
        "smoke": sum(weapons[name]["shots"] for name in smoke) / count,
        "untargeted_share": ratio(fired, "untargeted", "shots"),
    }
    table = {
        name: {
            "shots": of["shots"] / count,
            **{key: ratio(of, key, "shots") for key in ("untargeted", "hits")},
            "damage": ratio({"damage": of["damage"], "all": fired.get("damage", 0.0)}, "damage", "all"),
        }
        for name, of in sorted(weapons.items(), key=lambda item: -item[1]["damage"])
    }
    return {**{key: numbers[key] for key in BATTLES}, "weapons": table}


_COUNTED = ("paints", "falls", "shutdowns", "interceptions", "terrain_broken")


def _of_classes(teams: list[dict[str, Sums]], names: Iterable[str]) -> Sums:
    """The sums over the mechs of some classes."""
    wanted = {*names}
    return sum_of(sums for team in teams for name, sums in team.items() if name in wanted)


def format_number(value: float | None, unit: str) -> str:
    """A number, such as ``"12.5"``; ``"-"`` for None."""
    return percent(value) if unit == "%" or value is None else f"{value:,.1f}"
