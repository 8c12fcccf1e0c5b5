"""Descriptions of every entry of an observation and of an action."""

from __future__ import annotations

from dataclasses import dataclass

from echelon_env.config.battle import AbilityConfig
from echelon_env.config.catalog import MOUNTS, MechClass
from echelon_env.layout.actions import ACTION_HIGH, ACTION_LOW, BLOCKS, Action
from echelon_env.layout.observations import STREAMS, Contact, Feature, Objective, Self, Squad, feature_names


@dataclass(frozen=True)
class FeatureDescription:
    """One entry of the flat observation."""

    index: int
    stream: str
    row: int
    """Row of the stream; for a map, the number of the cell in the order of the vector."""
    name: str
    """As in `observations.feature_names`."""
    unit: str
    low: float
    high: float
    meaning: str
    filled: bool
    """False if the class lacks the mount, the electronics or the contact slot, or the ability is off: always 0."""


def describe_observation(
    mech_class: MechClass | None = None, abilities: AbilityConfig | None = None
) -> tuple[FeatureDescription, ...]:
    """Every entry of the flat observation, in order; for a class or abilities, also whether it is ever filled.

    The classes of a battle are `BattleConfig.mech_classes`, which do not have its banned weapons. The battle's
    `BattleConfig.abilities` are by default all on.

    Examples
    --------
    >>> describe_observation()[6].name, describe_observation()[6].unit
    ('self.heat', 'capacity')
    """
    empty = _entries_off(abilities or AbilityConfig()) | (set() if mech_class is None else _empty_entries(mech_class))
    names = feature_names()
    return tuple(
        FeatureDescription(
            index=index,
            stream=stream.name,
            row=row,
            name=names[index],
            unit=feature.unit,
            low=feature.low,
            high=feature.high,
            meaning=feature.meaning,
            filled=index not in empty,
        )
        for stream in STREAMS.values()
        for row in range(stream.rows)
        for feature in stream.features
        for index in [stream.start + row * stream.row_width + feature]
    )


def _empty_entries(mech_class: MechClass) -> set[int]:
    """Indices of the entries that are always 0 for a class."""
    lacks = [
        Self[f"{prefix}_{mount.upper()}"]
        for mount in MOUNTS
        for prefix in ("COOLDOWN", "HAS")
        if getattr(mech_class, mount) is None
    ]
    if not mech_class.electronics:
        lacks += [Self.HAS_ELECTRONICS, Self.ECM, Self.ECCM]
    empty = {STREAMS["self"].start + feature for feature in lacks}
    if not mech_class.observes_zone:
        empty |= {STREAMS["objective"].start + feature for feature in Objective if feature is not Objective.TIME_LEFT}
        for name, feature in (("contacts", Contact.IN_ZONE), ("squad", Squad.IN_ZONE)):
            empty |= set(range(STREAMS[name].start + feature, STREAMS[name].stop, STREAMS[name].row_width))
    for name in ("contacts", "contacts_mask"):
        stream = STREAMS[name]
        empty |= set(range(stream.start + mech_class.contact_slots * stream.row_width, stream.stop))
    return empty


def _entries_off(abilities: AbilityConfig) -> set[int]:
    """Indices of the entries that are always 0 because an ability is off."""
    streams = ["comm", "comm_mask"] * (not abilities.messages) + ["intel", "intel_mask"] * (not abilities.intel)
    off = {index for name in streams for index in range(STREAMS[name].start, STREAMS[name].stop)}
    features: list[tuple[str, Feature]] = []
    if not abilities.display:
        features += [("self", Self.BY_DANGER), ("self", Self.BY_DAMAGE)]
    if not abilities.electronics:
        features += [("self", each) for each in (Self.JAMMED, Self.HAS_ELECTRONICS, Self.ECM, Self.ECCM)]
        features.append(("contacts", Contact.RADIATING))
    for name, feature in features:
        off |= set(range(STREAMS[name].start + feature, STREAMS[name].stop, STREAMS[name].row_width))
    return off


@dataclass(frozen=True)
class ActionDescription:
    """One entry of the action vector."""

    index: int
    block: str
    """Entry of the dict format that it belongs to."""
    name: str
    low: float
    high: float
    meaning: str
    available: bool
    """False if the class lacks the jets, weapon, electronics or slot, or the ability is off: never an effect."""


def describe_action(
    mech_class: MechClass | None = None, abilities: AbilityConfig | None = None
) -> tuple[ActionDescription, ...]:
    """Every entry of the action vector, in order; for a class or abilities, also whether it ever has an effect.

    The classes of a battle are `BattleConfig.mech_classes`, which do not have its banned weapons. The battle's
    `BattleConfig.abilities` are by default all on.

    Examples
    --------
    >>> [entry.name for entry in describe_action() if entry.block == "electronics"]
    ['ecm', 'eccm']
    """
    lacking = set() if mech_class is None else _lacking_entries(mech_class)
    off = (abilities or AbilityConfig()).blocks_off
    return tuple(
        ActionDescription(
            index=entry.value,
            block=block.name,
            name=entry.name.lower(),
            low=ACTION_LOW,
            high=ACTION_HIGH,
            meaning=entry.meaning,
            available=entry not in lacking and block.name not in off,
        )
        for block in BLOCKS
        for entry in block.entries
    )


def _lacking_entries(mech_class: MechClass) -> set[Action]:
    lacking = {Action[mount.upper()] for mount in MOUNTS if getattr(mech_class, mount) is None}
    lacking |= set(tuple(Action)[Action.TARGET_0 + mech_class.contact_slots : Action.TARGET_4 + 1])
    if mech_class.top_speed <= 0:
        lacking |= {Action.THROTTLE, Action.STRAFE}
    if mech_class.jet_acceleration <= 0:
        lacking.add(Action.JET)
    if mech_class.turn_rate <= 0:
        lacking.add(Action.TURN)
    if not mech_class.electronics:
        lacking |= {Action.ECM, Action.ECCM}
    return lacking
