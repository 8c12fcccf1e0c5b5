"""The configuration of a battle: frozen dataclasses whose fields carry their unit and range.

`scenario.make_config` builds a `BattleConfig` from a name, a file, a dict and overrides. An invalid value raises
`ConfigError`, which states the expected value, the given one, and the nearest valid name.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Literal, cast

from echelon_env.config.catalog import DEFAULT_CATALOG, MOUNTS, Catalog, MechClass, check_catalog
from echelon_env.config.map import MapConfig, TerrainConfig
from echelon_env.config.schema import ConfigError, build, check_fields, nearest_name, override, quantity, to_plain

PACK = ("heavy", "medium", "medium", "light", "scout")
"""Mech classes of a pack of five, in the order of the spawn places."""


@dataclass(frozen=True, kw_only=True)
class ZoneConfig:
    """The circular zone that teams fight for."""

    min_radius: float = quantity(5.0, "m", 1)  # for up to five mechs per team; times sqrt(n / 5) for n > 5
    max_radius: float = quantity(8.0, "m", 1)  # each map draws a radius in between
    max_feet_height: float = quantity(2.0, "m", 0)  # mechs with higher feet are not in the zone
    score_to_win: float = quantity(18.0, "s", 0.01)  # zone share summed over time with which a team wins
    shown_seconds: float = quantity(0.0, "s", 0, since="0.3")  # from the start, for which mechs observe it; 0: always


@dataclass(frozen=True, kw_only=True)
class PhysicsConfig:
    """Bodies, heat and balance."""

    gravity: float = quantity(9.81, "m/s2", 0, 100)  # downward acceleration
    vertical_damping: float = quantity(0.02, "share per tick", 0, 1)  # share of the vertical speed that drag takes
    jet_heat: float = quantity(20.0, "heat/s")  # at full jet
    jet_boost: float = quantity(1.2, "x", 0, 10)  # added to the top speed at full jet, as a multiple of it
    vent_factor: float = quantity(2.0, "x", 1)  # multiplies heat dissipation
    restart_heat: float = quantity(0.8, "share of capacity", 0, 1)  # a shut-down mech restarts at this heat
    max_heat: float = quantity(1.5, "share of capacity", 1.01, 2)  # upper bound on a mech's heat
    legged_speed: float = quantity(0.4, "x", 0, 1)  # multiplies the top speed of a mech whose legs are destroyed
    max_stability: float = quantity(100.0, "points", 1)  # stability at the start, and its upper bound
    stability_recovery: float = quantity(10.0, "points/s")  # without penalties
    moving_penalty: float = quantity(0.5, "share of the recovery", 0, 1)  # while legged or faster than `moving_speed`
    moving_speed: float = quantity(1.0, "m/s")  # faster mechs have the moving penalty
    suppression_penalty: float = quantity(0.75, "share of the recovery", 0, 1)  # while suppressed
    least_recovery: float = quantity(0.1, "share of the recovery", 0, 1)  # lower bound on the sum of all penalties
    fall_duration: float = quantity(3.0, "s")  # time on the ground after stability reaches 0
    risen_stability: float = quantity(50.0, "points")  # stability after standing up


@dataclass(frozen=True, kw_only=True)
class CombatConfig:
    """Effects of shots, anti-missile systems and wrecks."""

    friendly_fire: bool = True  # splash also hits team-mates and the shooter
    aim_low: float = quantity(0.1, "share of the target's height", 0, 1)  # lowest point that a shot aims at
    aim_high: float = quantity(0.9, "share of the target's height", 0, 1)  # highest point that a shot aims at
    legs_height: float = quantity(0.3, "share of the target's height", 0, 1)  # lower hits are leg hits
    legs_share: float = quantity(0.5, "share", 0, 1)  # share of a leg hit's damage that the body takes
    rear_arc: float = quantity(90.0, "degrees", 0, 360)  # full width; attacks that travel within this arc hit the rear
    rear_damage: float = quantity(1.5, "x", 1)  # multiplies the damage of hits from the rear
    helpless_damage: float = quantity(1.5, "x", 1)  # multiplies the damage of hits on fallen and shut-down mechs
    paint_damage: float = quantity(1.25, "x", 1)  # multiplies the damage of hits on mechs painted by the shooter's pack
    dive_distance: float = quantity(3.0, "m")  # horizontal distance at which cruising missiles start to dive
    anti_missile_range: float = quantity(5.5, "m")  # from the centre of the mech that has the system
    anti_missile_probability: float = quantity(0.6, "probability", 0, 1)  # of destroying the missile
    anti_missile_cooldown: float = quantity(1.0, "s")  # between two shots of a system
    wreck_height: float = quantity(0.5, "share of the mech's height", 0, 1)  # of a hard wreck, rounded to whole metres
    wreck_duration: float = quantity(20.0, "s")  # until a hard wreck becomes debris


@dataclass(frozen=True, kw_only=True)
class SensorConfig:
    """Sight, radar, intel and electronic warfare."""

    radar_range: float = quantity(14.0, "m")  # before the class factor and the sensor quality are applied
    bloom_heat: float = quantity(0.8, "share of capacity", 0)  # hotter mechs are visible through terrain
    jamming: float = quantity(0.85, "sensor quality")  # subtracted by enemy ECM at distance 0
    counter: float = quantity(0.65, "sensor quality")  # added by friendly ECCM at distance 0
    min_quality: float = quantity(0.25, "sensor quality", 0, 100)  # lower bound, and the quality of a shut-down mech
    max_quality: float = quantity(1.5, "sensor quality", 0.01, 100)  # upper bound
    electronics_range: float = quantity(50.0, "m", 0.1)  # distance from which ECM and ECCM have no effect
    ecm_heat: float = quantity(3.0, "heat/s")  # added by active ECM to its carrier
    eccm_heat: float = quantity(2.0, "heat/s")  # added by active ECCM to its carrier
    intel_memory: float = quantity(10.0, "s")  # time for which a pack remembers an enemy that it no longer sees
    link_quality: float = quantity(0.7, "sensor quality", 0)  # minimum for what the pack shares: intel and paint
    terrain_cell: float = quantity(1.5, "m", 0.25, 16)  # distance between the samples of the ego terrain map


@dataclass(frozen=True, kw_only=True)
class AbilityConfig:
    """Abilities of all mechs that can be switched off, for ablations; observations and actions keep their shapes."""

    messages: bool = True  # off: nothing is sent, and the comm table is empty
    target_choice: bool = True  # off: the target is the nearest visible enemy
    display: bool = True  # off: the contact table is sorted by distance
    electronics: bool = True  # off: no mech carries ECM and ECCM
    intel: bool = True  # off: packs remember nothing, and the intel table is empty

    @property
    def blocks_off(self) -> frozenset[str]:
        """Names of the blocks of an action that have no effect."""
        return frozenset(block for block, ability in ABILITY_OF_BLOCK.items() if not getattr(self, ability))


ABILITY_OF_BLOCK = {"target": "target_choice", "electronics": "electronics", "display": "display", "comm": "messages"}
"""Blocks of an action with the abilities that they use."""


def _weight(default: float, unit: str, meaning: str) -> Any:
    """Declare the weight of a reward component. Every weight has one component."""
    metadata = {"unit": unit, "low": -1e6, "high": 1e6, "help": f"weight of {meaning}", "component": True}
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, kw_only=True)
class RewardConfig:
    """Weights of the reward components in the order of summation, and parameters of the components.

    A component consists of a weight here and a function in `engine.reward`. Everything else is derived from this class.
    """

    approach: float = _weight(1.5, "per map size", "approaching the zone")
    zone: float = _weight(0.25, "per second", "holding the zone")
    damage: float = _weight(0.05, "per hit point", "damage")
    kill: float = _weight(10.0, "per kill", "kills")
    assist: float = _weight(5.0, "per assist", "assists")
    death: float = _weight(-1.0, "per death", "deaths")
    outcome: float = _weight(10.0, "per battle", "the battle's outcome")
    overheat: float = _weight(0.0, "per second", "shutdowns by heat")
    contested_kill: float = quantity(2.0, "x")  # multiplies kills and assists of a mech in a contested zone
    contested_death: float = quantity(0.5, "x")  # multiplies deaths in a contested zone
    team_spirit: float = quantity(0.0, "share", 0, 1)  # weight of the team mean in each component
    gamma: float = quantity(0.995, "per decision", 0, 1)  # discount of the approach potential; use the learner's
    approach_kept: float = quantity(0.0, "share", 0, 1)  # share of the potential kept at death and at the end


REWARD_COMPONENTS = tuple(each.name for each in fields(RewardConfig) if each.metadata.get("component"))
"""Names of the reward components, in the order of summation."""


@dataclass(frozen=True, kw_only=True)
class BattleConfig:
    """Everything that defines a battle except its seed. Raises `ConfigError` for invalid values."""

    blue: tuple[str, ...] = PACK * 2  # mech classes of team blue; every five in order form a pack
    red: tuple[str, ...] = PACK * 2  # mech classes of team red
    dt: float = quantity(0.05, "s", 0.001, 0.1)  # length of a physics tick
    decision_repeat: int = quantity(5, "ticks", 1, 100)  # ticks between two decisions of an agent
    max_steps: int = quantity(480, "decisions", 1, 10**6)  # the battle's time limit
    time_limit: Literal["truncate", "terminate"] = "truncate"  # "terminate" makes the time limit part of the task
    observability: Literal["partial", "full"] = "partial"  # "full": mechs see all living mechs
    banned_weapons: tuple[str, ...] = ()  # weapons removed from all mechs; their mounts stay empty
    dead_agents: Literal["terminate", "persist"] = "terminate"  # "persist": dead mechs stay agents to the end
    terrain: TerrainConfig = field(default_factory=TerrainConfig)
    zone: ZoneConfig = field(default_factory=ZoneConfig)
    physics: PhysicsConfig = field(default_factory=PhysicsConfig)
    combat: CombatConfig = field(default_factory=CombatConfig)
    sensors: SensorConfig = field(default_factory=SensorConfig)
    abilities: AbilityConfig = field(default_factory=AbilityConfig, metadata={"since": "0.1"})
    rewards: RewardConfig = field(default_factory=RewardConfig)
    catalog: Catalog = DEFAULT_CATALOG

    def __post_init__(self) -> None:
        check_fields(self, "")
        check_catalog(self.catalog, self.dt, self.physics.jet_boost)
        _check_rosters(self)
        _check_consistency(self)
        _ = self.map_config  # raises if such a map is impossible

    @property
    def rosters(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Mech classes of (blue, red)."""
        return self.blue, self.red

    @property
    def mech_classes(self) -> tuple[MechClass, ...]:
        """The catalogue's mech classes without the banned weapons and the electronics that are switched off."""
        return tuple(
            replace(
                mech_class,
                electronics=mech_class.electronics and self.abilities.electronics,
                **dict.fromkeys(_mounts_of(mech_class, self.banned_weapons), cast("Any", None)),
            )
            for mech_class in self.catalog.mech_classes
        )

    @cached_property
    def map_config(self) -> MapConfig:
        """Everything that defines the battle's maps except their seeds."""
        classes = {mech_class.name: mech_class for mech_class in self.catalog.mech_classes}
        fielded = [classes[name] for name in {*self.blue, *self.red}]
        places = max(len(self.blue), len(self.red))
        zone_scale = math.sqrt(max(1.0, places / 5))
        walkers = {max(mech.length, mech.width) for mech in fielded if mech.jet_acceleration <= self.physics.gravity}
        return MapConfig(
            terrain=self.terrain,
            places=places,
            mech_width=max(max(mech_class.length, mech_class.width) for mech_class in fielded),
            mech_height=max(mech_class.height for mech_class in fielded),
            walker_widths=tuple(sorted(walkers, reverse=True)),
            min_zone_radius=self.zone.min_radius * zone_scale,
            max_zone_radius=self.zone.max_radius * zone_scale,
        )

    @property
    def classes_without_zone(self) -> frozenset[str]:
        """The mech classes of the rosters that do not observe the zone."""
        classes = {each.name for each in self.catalog.mech_classes if not each.observes_zone}
        return frozenset(classes.intersection(self.blue + self.red))

    @property
    def num_mechs(self) -> int:
        """Number of mechs of both teams."""
        return len(self.blue) + len(self.red)

    @property
    def decision_seconds(self) -> float:
        """Seconds of battle time between two decisions."""
        return self.dt * self.decision_repeat

    def ticks(self, seconds: float) -> int:
        """A duration in ticks, rounded, at least 1."""
        return max(1, round(seconds / self.dt))

    def to_dict(self) -> dict[str, Any]:
        """The configuration as nested dicts, lists and plain values that JSON can hold."""
        return cast("dict[str, Any]", to_plain(self))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> BattleConfig:
        """The inverse of `to_dict`; missing keys keep their defaults. Raises `ConfigError`.

        A catalogue whose ``weapons`` or ``mech_classes`` are mappings changes the default catalogue's entries by name.
        """
        catalog = data.get("catalog") if isinstance(data, Mapping) else None
        if isinstance(catalog, Mapping) and any(isinstance(entries, Mapping) for entries in catalog.values()):
            data = {**data, "catalog": override(DEFAULT_CATALOG, catalog, "catalog.")}
        return cast("BattleConfig", build(cls, data, ""))


def _mounts_of(mech_class: MechClass, weapons: tuple[str, ...]) -> list[str]:
    return [mount for mount in MOUNTS if getattr(mech_class, mount) in weapons]


def _check_rosters(config: BattleConfig) -> None:
    classes = [mech_class.name for mech_class in config.catalog.mech_classes]
    for team in ("blue", "red"):
        roster = getattr(config, team)
        if not 1 <= len(roster) <= 64:
            raise ConfigError(f"config key {team!r}: expected 1 to 64 mech classes, got {len(roster)}", team)
        for name in roster:
            if name not in classes:
                hint = nearest_name(name, classes)
                raise ConfigError(f"config key {team!r}: unknown mech class {name!r}{hint}", team)

    weapons = [weapon.name for weapon in config.catalog.weapons]
    for name in config.banned_weapons:
        if name not in weapons:
            raise ConfigError(
                f"config key 'banned_weapons': unknown weapon {name!r}{nearest_name(name, weapons)}", "banned_weapons"
            )


def _check_consistency(config: BattleConfig) -> None:
    terrain = config.terrain
    for part, greater, less in (
        ("zone", "max_radius", "min_radius"),
        ("combat", "aim_high", "aim_low"),
        ("sensors", "max_quality", "min_quality"),
        ("physics", "max_stability", "risen_stability"),
    ):
        section = getattr(config, part)
        high, low = getattr(section, greater), getattr(section, less)
        if high < low:
            names = f"{part}.{greater}", f"{part}.{less}"
            raise ConfigError(f"{names[0]} {high} is less than {names[1]} {low}", *names)
    for mech_class in config.catalog.mech_classes:
        if mech_class.height > terrain.height:
            raise ConfigError(
                f"terrain.height {terrain.height} is less than the height of {mech_class.name!r}", "terrain.height"
            )
