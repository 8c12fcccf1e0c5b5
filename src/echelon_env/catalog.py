"""What a battle is made of: mech classes, weapons and materials, each number with its unit.

The defaults are the game's. A user who wants another balance passes a changed `Catalog` in the battle configuration;
nothing else in the package holds a number of a class or a weapon.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

MOUNTS = ("primary", "secondary", "tertiary")
"""Weapon mounts of a mech, in the order in which they fire."""

Flight = Literal["hitscan", "straight"]


@dataclass(frozen=True, kw_only=True)
class Material:
    """What a voxel is made of."""

    name: str
    blocks_movement: bool
    blocks_sight: bool


MATERIALS = (
    Material(name="air", blocks_movement=False, blocks_sight=False),
    Material(name="dirt", blocks_movement=False, blocks_sight=False),
    Material(name="concrete", blocks_movement=True, blocks_sight=True),
    Material(name="reinforced", blocks_movement=True, blocks_sight=True),
    Material(name="glass", blocks_movement=True, blocks_sight=False),
    Material(name="foliage", blocks_movement=False, blocks_sight=True),
)
"""Materials; a voxel holds its material's index in this table."""

AIR, DIRT, CONCRETE, REINFORCED, GLASS, FOLIAGE = range(len(MATERIALS))


@dataclass(frozen=True, kw_only=True)
class Weapon:
    """A weapon. Ranges are measured between the centres of the two mechs."""

    name: str
    flight: Flight
    range: float  # m
    damage: float  # hit points
    heat: float  # heat points added to the shooter by a shot
    target_heat: float  # heat points added to the target by a hit
    cooldown: float  # s between shots
    arc: float  # degrees, the full width of the firing arc around the mech's facing
    speed: float  # m/s, 0 for hitscan


@dataclass(frozen=True, kw_only=True)
class MechClass:
    """A class of mechs: its body, its heat and what it carries."""

    name: str
    length: float  # m along x
    width: float  # m along y
    height: float  # m along z
    top_speed: float  # m/s
    turn_rate: float  # rad/s
    jet_acceleration: float  # m/s2, 0 without jump jets
    armour: float  # hit points
    heat_capacity: float  # heat points
    heat_dissipation: float  # heat points/s
    tonnage: float  # t
    primary: str | None  # name of the weapon on the mount
    secondary: str | None
    tertiary: str | None
    contact_slots: int  # rows of the contact table that the sensor suite fills
    sensor_range_factor: float  # multiplies the radar range


@dataclass(frozen=True, kw_only=True)
class Catalog:
    """The mech classes and weapons that a battle may use."""

    weapons: tuple[Weapon, ...]
    mech_classes: tuple[MechClass, ...]

    def weapon_index(self, name: str | None) -> int:
        """Index of a weapon in `weapons`, or -1 for an empty mount. Raises KeyError for an unknown name."""
        if name is None:
            return -1
        return _index([weapon.name for weapon in self.weapons], name)

    def class_index(self, name: str) -> int:
        """Index of a class in `mech_classes`. Raises KeyError for an unknown name."""
        return _index([mech_class.name for mech_class in self.mech_classes], name)


def _index(names: list[str], name: str) -> int:
    if name not in names:
        raise KeyError(name)
    return names.index(name)


LASER = Weapon(
    name="laser",
    flight="hitscan",
    range=8.0,
    damage=14.0,
    heat=22.0,
    target_heat=6.0,
    cooldown=0.6,
    arc=120.0,
    speed=0.0,
)
AUTOCANNON = Weapon(
    name="autocannon",
    flight="straight",
    range=12.0,
    damage=8.0,
    heat=6.0,
    target_heat=0.0,
    cooldown=0.2,
    arc=90.0,
    speed=25.0,
)

SCOUT = MechClass(
    name="scout",
    length=1.2,
    width=1.2,
    height=1.8,
    top_speed=7.0,
    turn_rate=1.8,
    jet_acceleration=18.0,
    armour=60.0,
    heat_capacity=75.0,
    heat_dissipation=13.0,
    tonnage=20.0,
    primary=None,
    secondary=None,
    tertiary=None,
    contact_slots=12,
    sensor_range_factor=1.5,
)
LIGHT = MechClass(
    name="light",
    length=1.5,
    width=1.5,
    height=2.0,
    top_speed=6.8,
    turn_rate=1.5,
    jet_acceleration=16.0,
    armour=80.0,
    heat_capacity=80.0,
    heat_dissipation=12.0,
    tonnage=35.0,
    primary=None,
    secondary="laser",
    tertiary=None,
    contact_slots=8,
    sensor_range_factor=1.2,
)
MEDIUM = MechClass(
    name="medium",
    length=2.5,
    width=2.5,
    height=3.0,
    top_speed=5.5,
    turn_rate=1.0,
    jet_acceleration=0.0,
    armour=150.0,
    heat_capacity=100.0,
    heat_dissipation=11.0,
    tonnage=55.0,
    primary="laser",
    secondary=None,
    tertiary="autocannon",
    contact_slots=6,
    sensor_range_factor=1.0,
)
HEAVY = MechClass(
    name="heavy",
    length=3.5,
    width=3.5,
    height=4.0,
    top_speed=2.5,
    turn_rate=0.6,
    jet_acceleration=0.0,
    armour=200.0,
    heat_capacity=130.0,
    heat_dissipation=10.0,
    tonnage=85.0,
    primary="laser",
    secondary=None,
    tertiary=None,
    contact_slots=5,
    sensor_range_factor=0.8,
)

DEFAULT_CATALOG = Catalog(weapons=(LASER, AUTOCANNON), mech_classes=(SCOUT, LIGHT, MEDIUM, HEAVY))
"""The game's catalogue."""
