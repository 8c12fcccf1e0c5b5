"""The catalogue of a battle: mech classes, weapons and materials, each number with its unit.

To change the balance, pass a changed `Catalog` in the battle configuration. Numbers of classes and weapons are defined
here only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from echelon_env.config.flights import FLIGHTS, Flight, FlightRules
from echelon_env.config.schema import ConfigError, measure, nearest_name, quantity
from echelon_env.layout.observations import CONTACT_ROWS

MOUNTS = ("primary", "secondary", "tertiary", "special")
"""Weapon mounts of a mech, in the order in which they fire."""


@dataclass(frozen=True, kw_only=True)
class Material:
    """The material of a voxel. Hazards (speed, heat, damage) act on mechs whose bounding box overlaps the voxel."""

    name: str  # by which it is referred to
    blocks_movement: bool = False  # stops mechs, projectiles and splash
    blocks_sight: bool = False  # stops sight and projectiles
    hit_points: int = quantity(0, "", 0, 60_000)  # 0: cannot be destroyed
    rubble: float = quantity(0.0, "0 to 1", 0, 1)  # probability that a destroyed voxel becomes debris
    speed_factor: float = quantity(1.0, "", 0, 1)  # multiplies a mech's top speed
    heat: float = quantity(0.0, "heat/s", -1e6, 1e6)  # added to a mech; negative values cool it
    damage: float = quantity(0.0, "hit points/s")  # to a mech's body


MATERIALS = (
    Material(name="air"),
    Material(name="dirt"),
    Material(name="concrete", blocks_movement=True, blocks_sight=True, hit_points=20, rubble=0.5),
    Material(name="reinforced", blocks_movement=True, blocks_sight=True, hit_points=1000, rubble=0.5),
    Material(name="glass", blocks_movement=True, hit_points=10),
    Material(name="foliage", blocks_sight=True, hit_points=1),
    Material(name="water", speed_factor=0.6, heat=-30.0),
    Material(name="lava", heat=40.0, damage=5.0),
    Material(name="debris", hit_points=50, heat=20.0, damage=1.25),
    Material(name="wreck", blocks_movement=True, blocks_sight=True, hit_points=200),
)
"""The default materials. A voxel holds the index of its material in this table."""

AIR, DIRT, CONCRETE, REINFORCED, GLASS, FOLIAGE, WATER, LAVA, DEBRIS, WRECK = range(len(MATERIALS))
"""Indices of the materials in `MATERIALS`."""


@dataclass(frozen=True, kw_only=True)
class Weapon:
    """A weapon. Ranges are measured between the centres of the two mechs."""

    name: str  # by which it is referred to
    flight: Flight  # how a shot travels
    range: float = measure("m")  # maximum distance of the target
    damage: float = measure("hit points")  # of a hit
    heat: float = measure("heat points")  # added to the shooter per shot
    cooldown: float = measure("s")  # between shots
    arc: float = measure("degrees", 0, 360)  # full width of the firing arc around the mech's facing
    target_heat: float = quantity(0.0, "heat points")  # added to the target per hit
    stability: float = quantity(0.0, "points")  # stability damage per hit
    speed: float = quantity(0.0, "m/s")  # 0 for hitscan
    splash_radius: float = quantity(0.0, "m")  # 0: no splash
    splash_share: float = quantity(0.0, "0 to 1", 0, 1)  # share of damage and stability damage that splash deals
    suppression: float = quantity(0.0, "s")  # duration for which a hit suppresses its target
    unaided_range: float = quantity(0.0, "m")  # homing: range of a lock by line of sight
    lifetime: float = quantity(0.0, "s")  # homing: flight duration
    paint: float = quantity(0.0, "s")  # duration for which a hit paints its target
    smoke_radius: float = quantity(0.0, "m")  # radius of the cloud at the end of the flight; 0: no cloud
    smoke_duration: float = quantity(0.0, "s")  # of the cloud
    charges: int = quantity(0, "")  # shots per battle; 0: unlimited
    fires_blind: bool = False  # straight and ballistic: fires straight ahead without a valid target

    @property
    def flight_rules(self) -> FlightRules:
        """The rules of the weapon's flight."""
        return FLIGHTS[self.flight]


@dataclass(frozen=True, kw_only=True)
class MechClass:
    """A mech class: body, heat, weapons and equipment."""

    name: str  # by which it is referred to
    length: float = measure("m", 0.1, 16)  # along x
    width: float = measure("m", 0.1, 16)  # along y
    height: float = measure("m", 0.1, 32)  # along z
    top_speed: float = measure("m/s")  # in the plane, in all directions, without jets
    turn_rate: float = measure("rad/s")  # at full turn
    jet_acceleration: float = measure("m/s2")  # 0: no jump jets
    armour: float = measure("hit points", 0.001)  # of the body; at 0 the mech is destroyed
    plating: float = quantity(0.0, "hit points")  # taken off the damage of every hit and splash
    legs: float = measure("hit points", 0.001)  # of the legs; at 0 the mech is legged
    heat_capacity: float = measure("heat points", 0.001)  # the mech shuts down above this heat
    heat_dissipation: float = measure("heat/s", 0.001)  # heat that the mech loses
    wreck_probability: float = measure("0 to 1", 0, 1)  # of leaving a hard wreck instead of debris
    primary: str | None = None  # name of the weapon on the mount
    secondary: str | None = None  # on its mount
    tertiary: str | None = None  # on its mount
    special: str | None = None  # on its mount
    electronics: bool  # carries ECM and ECCM
    anti_missile: bool  # carries an anti-missile system
    contact_slots: int = measure("", 1, CONTACT_ROWS)  # rows of the contact table that the sensor suite can fill
    sensor_range_factor: float = measure("")  # multiplies the radar range
    observes_zone: bool = field(default=True, metadata={"since": "0.3"})  # knows where the zone is, and who is inside


@dataclass(frozen=True, kw_only=True)
class Catalog:
    """The mech classes, weapons and materials of a battle."""

    weapons: tuple[Weapon, ...]
    mech_classes: tuple[MechClass, ...]
    materials: tuple[Material, ...] = MATERIALS  # the names, order and solidity of `MATERIALS`, with any numbers

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


MAX_FLIGHT_TICKS = 10_000
"""Maximum flight time of a projectile; it bounds the number of projectiles in flight."""

MIN_SPEED = 0.1
"""m/s, minimum speed of a projectile."""

MAX_ENTRIES, MAX_NAME = 100, 64  # most mech classes, and weapons, of a catalogue; most characters of a name


def flight_ticks(weapon: Weapon, dt: float) -> int:
    """Maximum flight time of a weapon's projectile in ticks of `dt` seconds."""
    if not weapon.flight_rules.projectile:
        return 0
    if weapon.flight_rules.guided:
        return math.ceil(weapon.lifetime / dt) + 1
    return math.ceil(weapon.range / (weapon.flight_rules.slowest * weapon.speed * dt)) + 1


def check_catalog(catalog: Catalog, dt: float, jet_boost: float) -> None:
    """Raise `ConfigError` for an invalid catalogue, given ticks of `dt` seconds and the speed that full jets add."""
    names = [weapon.name for weapon in catalog.weapons]
    _check_names("mech classes", [mech_class.name for mech_class in catalog.mech_classes])
    _check_names("weapons", names)
    materials, known = [m.name for m in catalog.materials], [m.name for m in MATERIALS]
    if materials != known:
        raise ConfigError(
            f"config key 'catalog.materials': expected the names {known} in this order, got {materials}", "catalog"
        )
    for material, known_material in zip(catalog.materials, MATERIALS, strict=True):
        if material.blocks_movement != known_material.blocks_movement:
            raise ConfigError(
                f"blocks_movement of {material.name!r}: expected {known_material.blocks_movement}, which maps rely on, "
                f"got {material.blocks_movement}",
                "catalog",
            )
    if catalog.materials[AIR] != MATERIALS[AIR]:
        raise ConfigError(
            f"config key 'catalog.materials': expected air without properties, got {catalog.materials[AIR]}", "catalog"
        )
    for mech_class in catalog.mech_classes:
        _check_class(mech_class, names, dt, jet_boost)
    for weapon in catalog.weapons:
        _check_weapon(weapon, dt)


def _check_names(what: str, names: list[str]) -> None:
    odd = [name for name in names if not (0 < len(name) <= MAX_NAME and name.isprintable())]
    for fits, expected, got in (
        (len(names) <= MAX_ENTRIES, f"at most {MAX_ENTRIES} {what}", len(names)),
        (len(set(names)) == len(names), f"{what} of different names", names),
        (not odd, f"{what} with names of 1 to {MAX_NAME} printable characters", odd),
    ):
        if not fits:
            raise ConfigError(f"config key 'catalog': expected {expected}, got {got}", "catalog")


def _check_class(mech_class: MechClass, weapons: list[str], dt: float, jet_boost: float) -> None:
    for mount in MOUNTS:
        weapon = getattr(mech_class, mount)
        if weapon is not None and weapon not in weapons:
            raise ConfigError(
                f"{mount} of {mech_class.name!r}: unknown weapon {weapon!r}{nearest_name(weapon, weapons)}", "catalog"
            )
    step = mech_class.top_speed * dt * (1.0 + jet_boost if mech_class.jet_acceleration > 0.0 else 1.0)
    if step >= 1.0:
        jets = " with its jets" if mech_class.jet_acceleration > 0.0 else ""
        raise ConfigError(f"{mech_class.name!r} moves {step} m per tick{jets}, expected less than 1 m", "catalog")


def _check_weapon(weapon: Weapon, dt: float) -> None:
    if weapon.fires_blind and (weapon.flight_rules.guided or not weapon.flight_rules.projectile):
        raise ConfigError(f"{weapon.name!r}: a {weapon.flight} weapon cannot fire blind, it needs a target", "catalog")
    if not weapon.flight_rules.projectile:
        if weapon.splash_radius > 0 or weapon.smoke_radius > 0:
            raise ConfigError(f"{weapon.name!r}: a {weapon.flight} weapon has neither splash nor smoke", "catalog")
        return
    if weapon.speed < MIN_SPEED:
        raise ConfigError(f"speed of {weapon.name!r}: expected at least {MIN_SPEED} m/s, got {weapon.speed}", "catalog")
    if weapon.flight_rules.guided and weapon.lifetime <= 0:
        raise ConfigError(f"lifetime of {weapon.name!r}: expected more than 0, got {weapon.lifetime}", "catalog")
    if flight_ticks(weapon, dt) > MAX_FLIGHT_TICKS:
        raise ConfigError(
            f"{weapon.name!r} can fly for {flight_ticks(weapon, dt)} ticks of {dt} s, expected at most "
            f"{MAX_FLIGHT_TICKS}: increase its speed, or reduce its range or lifetime",
            "catalog",
        )
    if weapon.smoke_radius > 0 and weapon.smoke_duration <= 0:
        raise ConfigError(
            f"smoke_duration of {weapon.name!r}: expected more than 0, got {weapon.smoke_duration}", "catalog"
        )


LASER = Weapon(
    name="laser", flight="hitscan", range=12.0, damage=15.0, heat=18.0, target_heat=6.0, cooldown=0.6, arc=120.0
)
FLAMER = Weapon(
    name="flamer", flight="hitscan", range=8.0, damage=6.0, heat=6.0, target_heat=15.0, cooldown=0.15, arc=90.0
)
MISSILES = Weapon(
    name="missiles",
    flight="homing",
    range=50.0,
    unaided_range=12.0,
    lifetime=8.0,
    damage=40.0,
    stability=15.0,
    heat=45.0,
    cooldown=3.0,
    arc=180.0,
    speed=12.0,
    splash_radius=2.5,
    splash_share=0.5,
)
GAUSS = Weapon(
    name="gauss",
    flight="ballistic",
    range=26.0,
    damage=50.0,
    stability=60.0,
    heat=15.0,
    cooldown=4.0,
    arc=60.0,
    speed=40.0,
    splash_radius=1.5,
    splash_share=0.5,
    fires_blind=True,
)
AUTOCANNON = Weapon(
    name="autocannon",
    flight="straight",
    range=18.0,
    damage=6.0,
    stability=7.0,
    heat=5.0,
    cooldown=0.2,
    arc=90.0,
    speed=25.0,
    suppression=1.2,
)
PAINTER = Weapon(name="painter", flight="hitscan", range=14.0, damage=0.0, heat=5.0, cooldown=1.0, arc=60.0, paint=5.0)
SMOKE = Weapon(
    name="smoke",
    flight="straight",
    range=20.0,
    damage=0.0,
    heat=10.0,
    cooldown=15.0,
    arc=180.0,
    speed=15.0,
    smoke_radius=3.0,
    smoke_duration=6.0,
    charges=2,
    fires_blind=True,
)

SCOUT = MechClass(
    name="scout",
    length=1.2,
    width=1.2,
    height=1.8,
    top_speed=7.0,
    turn_rate=1.8,
    jet_acceleration=18.0,
    armour=120.0,
    legs=60.0,
    heat_capacity=75.0,
    heat_dissipation=13.0,
    wreck_probability=0.1,
    primary="painter",
    secondary=None,
    tertiary=None,
    special="smoke",
    electronics=True,
    anti_missile=False,
    contact_slots=12,
    sensor_range_factor=1.5,
)
"""The mech class ``scout``."""
LIGHT = MechClass(
    name="light",
    length=1.5,
    width=1.5,
    height=2.0,
    top_speed=6.8,
    turn_rate=1.5,
    jet_acceleration=16.0,
    armour=160.0,
    legs=80.0,
    heat_capacity=80.0,
    heat_dissipation=12.0,
    wreck_probability=0.3,
    primary="flamer",
    secondary="laser",
    tertiary="painter",
    special="smoke",
    electronics=False,
    anti_missile=False,
    contact_slots=8,
    sensor_range_factor=1.2,
)
"""The mech class ``light``."""
MEDIUM = MechClass(
    name="medium",
    length=2.5,
    width=2.5,
    height=3.0,
    top_speed=5.5,
    turn_rate=1.0,
    jet_acceleration=0.0,
    armour=300.0,
    plating=2.0,
    legs=150.0,
    heat_capacity=100.0,
    heat_dissipation=11.0,
    wreck_probability=0.6,
    primary="laser",
    secondary=None,
    tertiary="autocannon",
    special="smoke",
    electronics=False,
    anti_missile=False,
    contact_slots=6,
    sensor_range_factor=1.0,
)
"""The mech class ``medium``."""
HEAVY = MechClass(
    name="heavy",
    length=3.5,
    width=3.5,
    height=4.0,
    top_speed=2.5,
    turn_rate=0.6,
    jet_acceleration=0.0,
    armour=400.0,
    plating=4.0,
    legs=200.0,
    heat_capacity=130.0,
    heat_dissipation=10.0,
    wreck_probability=0.9,
    primary="laser",
    secondary="missiles",
    tertiary="gauss",
    special="smoke",
    electronics=False,
    anti_missile=True,
    contact_slots=5,
    sensor_range_factor=0.8,
)
"""The mech class ``heavy``."""

DEFAULT_CATALOG = Catalog(
    weapons=(LASER, FLAMER, MISSILES, GAUSS, AUTOCANNON, PAINTER, SMOKE), mech_classes=(SCOUT, LIGHT, MEDIUM, HEAVY)
)
"""The default catalogue."""
