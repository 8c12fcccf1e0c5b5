"""The layout of an observation: every feature's stream, name, unit, bounds and meaning.

The flat observation is the concatenation of the streams' rows. Kernels index with the enums of this module, spaces take
their bounds from it, and `describe` reports it. Widths and indices are defined nowhere else.

Positions and velocities are in the mech's own frame: forward and left. Widths are the same for every class and
scenario, so that one policy can play them all. Rows that a class's suite or a roster does not fill are zero and masked.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

CLASS_NAMES = ("scout", "light", "medium", "heavy")
"""Mech classes with a column in rows about mechs. Other classes have zeros in all of these columns."""


class Feature(IntEnum):
    """A feature of a stream's row; its value is its index within the row."""

    meaning: str
    unit: str
    low: float
    high: float

    def __new__(cls, meaning: str, unit: str = "", low: float = -1.0, high: float = 1.0) -> Feature:
        """Number the features in the order in which they are declared."""
        index = len(cls.__members__)
        member = int.__new__(cls, index)
        member._value_ = index
        member.meaning, member.unit, member.low, member.high = meaning, unit, low, high
        return member


def _add_classes(members: MutableMapping[str, Any], meaning: str = "class") -> None:
    """Add a column for each of `CLASS_NAMES` to a table of features: `IS_SCOUT` and so on."""
    for name in CLASS_NAMES:
        members[f"IS_{name.upper()}"] = meaning, "", 0, 1


class Self(Feature):
    """The mech itself."""

    ALIVE = "1 while alive; once dead this stream and all but the objective are 0", "", 0, 1
    ARMOUR = "armour left", "share of full armour", 0, 1
    LEGS = "leg hit points left, 0 is legged", "share of full leg hit points", 0, 1
    STABILITY = "stability left, 0 is fallen", "full stability", 0, 1
    FALLEN = "time until it stands again", "time that a fall takes", 0, 1
    SUPPRESSED = "1 while suppressed", "", 0, 1
    HEAT = "heat, 1 is the shutdown threshold", "capacity", 0, 2
    SHUTDOWN = "1 while shut down by heat", "", 0, 1
    ON_GROUND = "1 while standing", "", 0, 1
    COOLDOWN_PRIMARY = "time until the primary weapon is ready", "cooldowns", 0, 1
    COOLDOWN_SECONDARY = "time until the secondary weapon is ready", "cooldowns", 0, 1
    COOLDOWN_TERTIARY = "time until the tertiary weapon is ready", "cooldowns", 0, 1
    COOLDOWN_SPECIAL = "time until the special weapon is ready", "cooldowns", 0, 1
    HAS_PRIMARY = "1 if a weapon with shots left is on the primary mount", "", 0, 1
    HAS_SECONDARY = "1 if a weapon with shots left is on the secondary mount", "", 0, 1
    HAS_TERTIARY = "1 if a weapon with shots left is on the tertiary mount", "", 0, 1
    HAS_SPECIAL = "1 if a weapon with shots left is on the special mount", "", 0, 1
    VELOCITY_FORWARD = "speed forward, 0 while shut down", "fastest class's top speed"
    VELOCITY_LEFT = "speed to the left, 0 while shut down", "fastest class's top speed"
    VELOCITY_UP = "speed upward, clipped, 0 while shut down", "fastest class's top speed"
    HEIGHT = "height of the feet", "map height", 0, 1
    POSITION_X = "position on the map turned so that the own spawn is at (-1, -1)", "half map size"
    POSITION_Y = "position on the map turned so that the own spawn is at (-1, -1)", "half map size"
    HEADING_COS = "cosine of the facing on the turned map"
    HEADING_SIN = "sine of the facing on the turned map"
    HURT_FORWARD = "where the last decision's damage came from: forward part", "share of full armour"
    HURT_LEFT = "where the last decision's damage came from: left part", "share of full armour"
    SENSOR_QUALITY = "sensor quality", "best quality", 0, 1
    JAMMED = "strength of the enemy's ECM here", "", 0, 1
    CONTACT_SLOTS = "contact rows that its suite can fill", "contact rows", 0, 1
    SENSOR_RANGE = "sensor range factor of its suite, from the catalogue's least to its greatest", "span", 0, 1
    HAS_ELECTRONICS = "1 if it carries ECM and ECCM", "", 0, 1
    ECM = "1 while it radiates ECM", "", 0, 1
    ECCM = "1 while it radiates ECCM", "", 0, 1
    PAINTED = "1 while an enemy pack has it painted", "", 0, 1
    MISSILE = "1 while a missile homes on it", "", 0, 1
    BY_DISTANCE = "1 if the contacts are sorted by distance", "", 0, 1
    BY_DANGER = "1 if the contacts are sorted by danger", "", 0, 1
    BY_DAMAGE = "1 if the contacts are sorted by damage", "", 0, 1
    HAS_TARGET = "1 if it has a target", "", 0, 1
    _add_classes(vars())


class Objective(Feature):
    """The zone and the score."""

    IN_ZONE = "1 while the mech counts as inside the zone", "", 0, 1
    DIRECTION_FORWARD = "direction to the zone's centre, forward part of the unit vector"
    DIRECTION_LEFT = "direction to the zone's centre, left part of the unit vector"
    DISTANCE = "distance to the zone's edge, 0 inside", "map diagonal", 0, 1
    DISTANCE_NEAR = "distance to the zone's centre, clipped", "largest zone radius", 0, 1
    RADIUS = "radius of the zone", "largest zone radius", 0, 1
    OWN_SHARE = "own team's share of the zone in the last decision", "", 0, 1
    ENEMY_SHARE = "enemy's share of the zone in the last decision", "", 0, 1
    OWN_SCORE = "own team's zone score, clipped", "winning score", 0, 1
    ENEMY_SCORE = "enemy's zone score, clipped", "winning score", 0, 1
    TIME_LEFT = "time until the battle's limit", "time limit", 0, 1


class Contact(Feature):
    """A visible enemy."""

    DIRECTION_FORWARD = "direction to it in the plane, forward part of the unit vector"
    DIRECTION_LEFT = "direction to it in the plane, left part of the unit vector"
    DISTANCE = "distance between the centres", "map diagonal", 0, 1
    RANGE = "distance between the centres, clipped", "longest weapon range", 0, 1
    ELEVATION = "its centre's height above the own centre", "map height"
    LINE_OF_SIGHT = "1 if the mech has line of sight to it", "", 0, 1
    VELOCITY_FORWARD = "its velocity minus the own, forward part, clipped", "twice the top speed"
    VELOCITY_LEFT = "its velocity minus the own, left part, clipped", "twice the top speed"
    FACING_FORWARD = "its facing, forward part of the unit vector"
    FACING_LEFT = "its facing, left part of the unit vector"
    ARMOUR = "armour left", "share of its full armour", 0, 1
    HEAT = "heat", "its capacity", 0, 2
    SHUTDOWN = "1 while it is shut down", "", 0, 1
    FALLEN = "1 while it lies on the ground", "", 0, 1
    LEGGED = "1 if its legs are gone", "", 0, 1
    PAINTED = "1 while the own pack has it painted", "", 0, 1
    RADIATING = "1 while it radiates ECM or ECCM", "", 0, 1
    IN_ZONE = "1 while it counts as inside the zone", "", 0, 1
    IS_TARGET = "1 if it is the mech's target", "", 0, 1
    _add_classes(vars())


class Squad(Feature):
    """A living team-mate."""

    DIRECTION_FORWARD = "direction to it in the plane, forward part of the unit vector"
    DIRECTION_LEFT = "direction to it in the plane, left part of the unit vector"
    DISTANCE = "distance between the centres", "map diagonal", 0, 1
    ELEVATION = "its centre's height above the own centre", "map height"
    ARMOUR = "armour left", "share of its full armour", 0, 1
    HEAT = "heat", "its capacity", 0, 2
    SHUTDOWN = "1 while it is shut down", "", 0, 1
    FALLEN = "1 while it lies on the ground", "", 0, 1
    IN_ZONE = "1 while it counts as inside the zone", "", 0, 1
    SAME_PACK = "1 if it belongs to the own pack", "", 0, 1
    _add_classes(vars())


class Intel(Feature):
    """An enemy that is in no contact row but that the pack knows of, as it was when the pack last saw it."""

    DIRECTION_FORWARD = "direction to its last known place, forward part of the unit vector in the plane"
    DIRECTION_LEFT = "direction to its last known place, left part of the unit vector in the plane"
    DISTANCE = "distance between the own centre and its last known one", "map diagonal", 0, 1
    ELEVATION = "its last known centre's height above the own centre", "map height"
    VELOCITY_FORWARD = "its last known velocity, forward part", "fastest class's top speed"
    VELOCITY_LEFT = "its last known velocity, left part", "fastest class's top speed"
    ARMOUR = "armour when last seen", "share of its full armour", 0, 1
    AGE = "time since the pack last saw it", "time that sightings are kept", 0, 1
    PAINTED = "1 while the own pack has it painted", "", 0, 1
    _add_classes(vars())


class Comm(Feature):
    """A message sent with the last action: the own one in the first row, then the pack-mates' by roster."""

    MESSAGE_0 = "the message's entries"
    MESSAGE_1 = "message"
    MESSAGE_2 = "message"
    MESSAGE_3 = "message"
    MESSAGE_4 = "message"
    MESSAGE_5 = "message"
    MESSAGE_6 = "message"
    MESSAGE_7 = "message"
    IS_OWN = "1 for the own message", "", 0, 1
    _add_classes(vars(), "class of the sender")


class Mask(Feature):
    """Whether a row is filled."""

    FILLED = "1 if the row of the same number is filled", "", 0, 1


class EgoCell(Feature):
    """A sample of the terrain around the mech."""

    OBSTACLE = "height of the terrain in the way above the feet, clipped; beyond the map 1", "tallest class's height"
    HAZARD = "what lies on the ground there: how much it heats or damages, below 0 how much it cools", "worst material"


class Clock(Feature):
    """The battle as a whole, in the global state."""

    TIME_LEFT = "time until the battle's limit", "time limit", 0, 1
    ZONE_X = "the zone's centre on the turned map", "half map size"
    ZONE_Y = "the zone's centre on the turned map", "half map size"
    ZONE_RADIUS = "radius of the zone", "largest zone radius", 0, 1
    OWN_SHARE = "first team's share of the zone in the last decision", "", 0, 1
    ENEMY_SHARE = "second team's share of the zone in the last decision", "", 0, 1
    OWN_SCORE = "first team's zone score, clipped", "winning score", 0, 1
    ENEMY_SCORE = "second team's zone score, clipped", "winning score", 0, 1


class Unit(Feature):
    """A mech in the global state; one row each, all zeros once dead."""

    ALIVE = "1 while alive", "", 0, 1
    POSITION_X = "position on the turned map", "half map size"
    POSITION_Y = "position on the turned map", "half map size"
    HEIGHT = "height of the feet", "map height", 0, 1
    HEADING_COS = "cosine of the facing on the turned map"
    HEADING_SIN = "sine of the facing on the turned map"
    VELOCITY_X = "velocity on the turned map, clipped", "fastest class's top speed"
    VELOCITY_Y = "velocity on the turned map, clipped", "fastest class's top speed"
    VELOCITY_UP = "speed upward, clipped", "fastest class's top speed"
    ARMOUR = "armour left", "share of full armour", 0, 1
    LEGS = "leg hit points left", "share of full leg hit points", 0, 1
    STABILITY = "stability left", "full stability", 0, 1
    HEAT = "heat, 1 is the shutdown threshold", "capacity", 0, 2
    SHUTDOWN = "1 while shut down by heat", "", 0, 1
    FALLEN = "time until it stands again", "time that a fall takes", 0, 1
    SUPPRESSED = "1 while suppressed", "", 0, 1
    ON_GROUND = "1 while standing", "", 0, 1
    COOLDOWN_PRIMARY = "time until the primary weapon is ready", "cooldowns", 0, 1
    COOLDOWN_SECONDARY = "time until the secondary weapon is ready", "cooldowns", 0, 1
    COOLDOWN_TERTIARY = "time until the tertiary weapon is ready", "cooldowns", 0, 1
    COOLDOWN_SPECIAL = "time until the special weapon is ready", "cooldowns", 0, 1
    HAS_PRIMARY = "1 if a weapon with shots left is on the primary mount", "", 0, 1
    HAS_SECONDARY = "1 if a weapon with shots left is on the secondary mount", "", 0, 1
    HAS_TERTIARY = "1 if a weapon with shots left is on the tertiary mount", "", 0, 1
    HAS_SPECIAL = "1 if a weapon with shots left is on the special mount", "", 0, 1
    ANTI_MISSILE = "time until the anti-missile system is ready", "its cooldown", 0, 1
    MISSILE = "1 while a missile homes on it", "", 0, 1
    ECM = "1 while it radiates ECM", "", 0, 1
    ECCM = "1 while it radiates ECCM", "", 0, 1
    SENSOR_QUALITY = "sensor quality", "best quality", 0, 1
    PAINTED = "1 while an enemy pack has it painted", "", 0, 1
    IN_ZONE = "1 while it counts as inside the zone", "", 0, 1
    _add_classes(vars())


def class_columns(features: type[Feature]) -> slice:
    """The columns of a row that hold the mech's class as a one-hot, in the order of `CLASS_NAMES`."""
    first = features[f"IS_{CLASS_NAMES[0].upper()}"]
    return slice(int(first), first + len(CLASS_NAMES))


SELF_CLASS, CONTACT_CLASS, SQUAD_CLASS, INTEL_CLASS, COMM_CLASS = (
    class_columns(features).start for features in (Self, Contact, Squad, Intel, Comm)
)
"""Column of the first class in a row of each stream, for kernels."""

CONTACT_ROWS = 12
SQUAD_ROWS = 9
INTEL_ROWS = 8
COMM_ROWS = 5
EGO_SIDE = 11


@dataclass(frozen=True)
class Stream:
    """A table of an observation: `rows` rows of the same features, from index `start` of the flat vector."""

    name: str
    features: type[Feature]
    rows: int
    start: int
    shape: tuple[int, ...]
    """Shape of the stream as a separate array, as in the format ``"dict"``."""

    @property
    def row_width(self) -> int:
        """Features of a row."""
        return len(self.features)

    @property
    def stop(self) -> int:
        """Index in the flat vector after the stream's last feature."""
        return self.start + self.rows * self.row_width

    @property
    def part(self) -> slice:
        """The stream's part of the flat vector."""
        return slice(self.start, self.stop)


def _lay_out(*tables: tuple[str, type[Feature], int]) -> dict[str, Stream]:
    streams: dict[str, Stream] = {}
    start = 0
    for name, features, rows in tables:
        streams[name] = Stream(name, features, rows, start, _shape(name, features, rows))
        start = streams[name].stop
    return streams


def _shape(name: str, features: type[Feature], rows: int) -> tuple[int, ...]:
    """Shape of a stream: a map is a square of cells, a mask or a single row a vector, a table rows of features."""
    if name.endswith("_map"):
        return (math.isqrt(rows), math.isqrt(rows), len(features))
    if features is Mask:
        return (rows,)
    return (rows, len(features)) if rows > 1 else (len(features),)


STREAMS = _lay_out(
    ("self", Self, 1),
    ("objective", Objective, 1),
    ("contacts", Contact, CONTACT_ROWS),
    ("contacts_mask", Mask, CONTACT_ROWS),
    ("squad", Squad, SQUAD_ROWS),
    ("squad_mask", Mask, SQUAD_ROWS),
    ("intel", Intel, INTEL_ROWS),
    ("intel_mask", Mask, INTEL_ROWS),
    ("comm", Comm, COMM_ROWS),
    ("comm_mask", Mask, COMM_ROWS),
    ("ego_map", EgoCell, EGO_SIDE * EGO_SIDE),
)
"""The streams by name, in the order of the flat vector."""

OBSERVATION_DIM = max(stream.stop for stream in STREAMS.values())
"""Length of the flat observation."""


def state_streams(num_mechs: int) -> dict[str, Stream]:
    """The layout of the global state of a battle of `num_mechs` mechs, the first team's mechs first."""
    return _lay_out(("clock", Clock, 1), ("units", Unit, num_mechs))


def stream_bounds(streams: Mapping[str, Stream]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Lowest and highest value of every entry of a layout, each a float32 vector."""
    low = np.concatenate([np.tile([f.low for f in s.features], s.rows) for s in streams.values()])
    high = np.concatenate([np.tile([f.high for f in s.features], s.rows) for s in streams.values()])
    return low.astype(np.float32), high.astype(np.float32)


def observation_bounds() -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Lowest and highest value of every feature of the flat observation, each (OBSERVATION_DIM,) float32."""
    return stream_bounds(STREAMS)


def feature_names() -> list[str]:
    """Name of every entry of the flat observation.

    >>> feature_names()[STREAMS["contacts"].start]
    'contacts.0.direction_forward'
    """
    return [
        f"{stream.name}.{row}.{feature.name.lower()}" if stream.rows > 1 else f"{stream.name}.{feature.name.lower()}"
        for stream in STREAMS.values()
        for row in range(stream.rows)
        for feature in stream.features
    ]
