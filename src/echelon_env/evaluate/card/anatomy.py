"""The anatomy of a player's battles: how they end, what does the damage, and what equipment is used."""

from __future__ import annotations

import statistics
from typing import Any

from echelon_env.config.battle import BattleConfig
from echelon_env.engine.state import REASONS, RUNNING
from echelon_env.evaluate.battle_totals import BattleTotals, Sums, add_sums, by_weapon, measures, ratio
from echelon_env.evaluate.matches import Match

__all__ = ["LINES", "anatomy"]

LINES: dict[str, tuple[str, str]] = {
    **{f"ends_by_{name}": (f"battles that end by {name.replace('_', ' ')}", "%") for name in REASONS[RUNNING + 1 :]},
    "seconds": ("length of a battle, median", "s"),
    "first_kill_seconds": ("first kill, mean", "s"),
    "first_kill_wins": ("battles that the team with the first kill wins", "%"),
    "zone_share": ("time in the zone", "%"),
    "jet_share": ("time using jets, of mechs that have them", "%"),
    "vent_share": ("time venting", "%"),
    "ecm_share": ("time radiating ECM, of mechs that carry it", "%"),
    "eccm_share": ("time radiating ECCM, of mechs that carry it", "%"),
    "target_share": ("time with a chosen target", "%"),
    "message_entropy": ("entropy of messages, mean over channels", "nats"),
    "paints": ("enemies painted", "a battle"),
    "smoke": ("smoke shells", "a battle"),
    "falls": ("mechs knocked down", "a battle"),
    "shutdowns": ("mechs overheated", "a battle"),
    "interceptions": ("missiles shot down", "a battle"),
    "terrain_broken": ("terrain broken, m3", "a battle"),
    "untargeted_share": ("shots at no target, of weapons with damage", "%"),
}
"""Key of a line of the anatomy -> what it is, and its unit. ``"%"`` marks a share from 0 to 1; the numbers per battle
are of the player's team, or of both teams if the player plays against itself."""


def anatomy(match: Match, totals: BattleTotals, config: BattleConfig) -> dict[str, Any]:
    """The anatomy of a match's battles as plain values: the `LINES`, and under ``"weapons"`` a table by weapon.

    `totals` are those of the match. Values are None where there is nothing to divide by. A weapon has its ``shots`` a
    battle, and shares from 0 to 1: ``hits`` and ``untargeted`` of its shots, and ``damage`` of the damage of all.
    """
    results, battles = totals.results(), len(match.battles)
    sides = [totals.by_class("own"), *([totals.by_class("enemy")] if match.first == match.second else [])]
    everything = _sum(sides)
    jets = {each.name for each in config.catalog.mech_classes if each.jet_acceleration > 0.0}
    radiating = {each.name for each in config.catalog.mech_classes if each.electronics}
    weapons = by_weapon(everything)
    damaging = {each.name for each in config.catalog.weapons if each.damage > 0.0}
    shots = {key: sum(of[key] for name, of in weapons.items() if name in damaging) for key in ("shots", "untargeted")}
    reasons = [battle.reason for battle in match.battles]
    lines = {f"ends_by_{name}": reasons.count(name) / battles for name in REASONS[RUNNING + 1 :]} | {
        "seconds": statistics.median(battle.seconds for battle in match.battles),
        "first_kill_seconds": ratio(results, "first_kill_seconds", "first_kills"),
        "first_kill_wins": ratio(results, "first_kill_wins", "first_kills"),
        "zone_share": ratio(everything, "zone_seconds", "alive_seconds"),
        "jet_share": ratio(_sum(sides, jets), "jet_seconds", "alive_seconds"),
        "vent_share": ratio(everything, "vent_seconds", "alive_seconds"),
        "ecm_share": ratio(_sum(sides, radiating), "ecm_seconds", "alive_seconds"),
        "eccm_share": ratio(_sum(sides, radiating), "eccm_seconds", "alive_seconds"),
        "target_share": ratio(everything, "target_seconds", "alive_seconds"),
        "message_entropy": measures(everything)["message_entropy"],
        **{name: everything.get(name, 0.0) / battles for name in ("paints", "falls", "shutdowns", "interceptions")},
        "smoke": weapons.get("smoke", {}).get("shots", 0.0) / battles,
        "terrain_broken": everything.get("terrain_broken", 0.0) / battles,
        "untargeted_share": ratio(shots, "untargeted", "shots"),
    }
    all_damage = sum(of["damage"] for of in weapons.values())
    table = {
        name: {
            "shots": of["shots"] / battles,
            "hits": ratio(of, "hits", "shots"),
            "untargeted": ratio(of, "untargeted", "shots"),
            "damage": of["damage"] / all_damage if all_damage else None,
        }
        for name, of in sorted(weapons.items(), key=lambda item: -item[1]["damage"])
    }
    return {**{key: lines[key] for key in LINES}, "weapons": table}


def _sum(sides: list[dict[str, Sums]], classes: set[str] | None = None) -> Sums:
    """The sums over the mechs of all classes or of some."""
    total: Sums = {}
    for side in sides:
        for name, sums in side.items():
            if classes is None or name in classes:
                add_sums(total, sums)
    return total
