"""What scripted players know of the rules: the engine's tables, and values derived from them for each class."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from echelon_env.config.battle import BattleConfig
from echelon_env.config.catalog import MOUNTS
from echelon_env.engine.geometry import TINY
from echelon_env.engine.tables import build_tables
from echelon_env.layout.observations import CLASS_NAMES

UNKNOWN = len(CLASS_NAMES)
"""Row of the classes that the observations' one-hot does not cover."""

HEATING = 0.3  # hit points that the heat of a hit is worth, per heat point

STYLE = np.dtype(
    [
        ("reach", "f8"),  # m, longest range of a weapon with damage, aimed by sight; 0 if there is none
        ("best_range", "f8"),  # m, range of the weapon with most effect per heat, else of the painter
        ("threat", "f8"),  # hit points/s over the time that its heat capacity lasts
        ("order", "i8", (len(MOUNTS),)),  # mounts to fire at enemies, most effect per heat first, then -1
        ("painter", "i8"),  # mount of a weapon that paints, -1 if none
        ("smoke", "i8"),  # mount of a weapon that only makes smoke, -1 if none
    ],
    align=True,
)
"""How a class fights best, derived from its weapons."""


class Knowledge(NamedTuple):
    """Constants that the kernels of scripted players read besides observations."""

    rules: NDArray[Any]  # (1,) RULES of the engine
    classes: NDArray[Any]  # (5,) MECH_CLASS in the order of the one-hot, then the row UNKNOWN
    weapons: NDArray[Any]  # (W,) WEAPON
    styles: NDArray[Any]  # (5,) STYLE of the classes


def make_knowledge(config: BattleConfig) -> Knowledge:
    """The knowledge of players in a battle. All classes without a one-hot share the row of the first one."""
    tables = build_tables(config)
    classes = np.zeros(len(CLASS_NAMES) + 1, tables.classes.dtype)
    classes["weapon"] = -1
    for mech_class in tables.classes[::-1]:
        classes[mech_class["one_hot"] if mech_class["one_hot"] >= 0 else UNKNOWN] = mech_class
    styles = np.array([_style(mech_class, tables.weapons, config.dt) for mech_class in classes], STYLE)
    return Knowledge(tables.rules, classes, tables.weapons, styles)


def _style(mech_class: Any, weapons: NDArray[Any], dt: float) -> tuple[Any, ...]:
    """The STYLE of a class."""
    mounted = [(mount, weapons[w]) for mount, w in enumerate(mech_class["weapon"]) if w >= 0]
    harmful = [(mount, weapon) for mount, weapon in mounted if weapon["damage"] > 0]
    painter = next((mount for mount, weapon in mounted if weapon["paint"] > 0), -1)
    smoke = next((mount for mount, weapon in mounted if _only_smoke(weapon)), -1)
    reach = max((float(weapon["unaided_range"]) for _, weapon in harmful), default=0.0)
    guns = [(mount, weapon) for mount, weapon in mounted if not _only_smoke(weapon)]
    by_efficiency = sorted(guns, key=lambda pair: -_effect(pair[1]) / max(float(pair[1]["heat"]), TINY))
    order = [mount for mount, _ in by_efficiency] + [-1] * (len(MOUNTS) - len(guns))
    if harmful:
        best_range = float(by_efficiency[0][1]["unaided_range"])
    else:
        best_range = float(weapons[mech_class["weapon"][painter]]["range"]) if painter >= 0 else 0.0
    return reach, best_range, _threat(mech_class, [weapon for _, weapon in by_efficiency], dt), order, painter, smoke


def _effect(weapon: Any) -> float:
    """What a hit is worth in hit points."""
    return float(weapon["damage"] + HEATING * weapon["target_heat"])


def _only_smoke(weapon: Any) -> bool:
    """Whether a weapon only makes smoke. One whose shells also do damage counts as a gun."""
    return bool(weapon["smoke_radius"] > 0 and weapon["damage"] <= 0 and weapon["paint"] <= 0)


def _threat(mech_class: Any, weapons: list[Any], dt: float) -> float:
    """Hit points/s of weapons, the most efficient first, over the ten seconds in which the heat is used up."""
    heat, damage = mech_class["heat_dissipation"] + mech_class["heat_capacity"] / 10.0, 0.0
    for weapon in weapons:
        burning = weapon["heat"] / (weapon["cooldown"] * dt)  # heat/s
        rate = min(1.0, heat / max(burning, TINY))
        heat -= rate * burning
        damage += rate * weapon["damage_rate"]
    return float(damage)
