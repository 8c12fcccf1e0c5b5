"""Ablations: players without something that they could observe, do or use."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from echelon_env.config.battle import BattleConfig
from echelon_env.config.catalog import MOUNTS, MechClass
from echelon_env.config.opponent import HandicapConfig
from echelon_env.config.schema import ConfigError, nearest_name
from echelon_env.engine.boundary import read_actions
from echelon_env.evaluate.players import BattleNoise, Handicapped, Player
from echelon_env.layout.actions import ACTION_DIM, BLOCKS, TARGET_CHOICES, Action
from echelon_env.layout.observations import CLASS_NAMES, OBSERVATION_DIM, STREAMS, Contact, Feature, Self, class_columns
from echelon_env.opponents import Policy
from echelon_env.opponents.policy import close_policy

__all__ = ["GROUPS", "Ablation", "ablate", "ablations", "named_ablations"]

GROUPS = ("observation", "action", "weapon", "class", "time")
"""What ablations take away, in the order of a card."""

TOGETHER = "+"
"""Joins the names of ablations that are made together."""

_TARGETS = slice(Action.TARGET_0, Action.TARGET_0 + TARGET_CHOICES)
_EVERY_ENTRY = tuple(range(ACTION_DIM))
_FIRE = tuple(range(Action.PRIMARY, Action.PRIMARY + len(MOUNTS)))
_CONDITION = (Self.ARMOUR, Self.LEGS, Self.STABILITY, Self.FALLEN, Self.SUPPRESSED, Self.HEAT, Self.SHUTDOWN)
_PLACE = (Self.HEIGHT, Self.POSITION_X, Self.POSITION_Y, Self.HEADING_COS, Self.HEADING_SIN)
_MOTION = (Self.VELOCITY_FORWARD, Self.VELOCITY_LEFT, Self.VELOCITY_UP, Self.ON_GROUND)
_WARNINGS = (Self.JAMMED, Self.SENSOR_QUALITY, Self.PAINTED, Self.MISSILE)
_UNHARMED = (Self.ARMOUR, Self.LEGS, Self.STABILITY, Self.ON_GROUND)


@dataclass(frozen=True)
class Ablation:
    """What a player has to do without."""

    name: str  # of what is taken away, such as "jets"
    group: str  # one of `GROUPS`
    hidden: tuple[int, ...] = ()  # entries of the observation whose values it does not get
    off: tuple[tuple[str, tuple[int, ...]], ...] = ()  # mech class -> entries of its actions that are made 0
    at_nearest: bool = False  # whether its target is always the nearest contact that it could choose
    forgets: bool = False  # whether its policy is reset before every decision
    delay: float = 0.0  # s that its actions are late

    def __add__(self, other: Ablation) -> Ablation:
        """Both at once, in the group of the first."""
        return Ablation(
            f"{self.name}{TOGETHER}{other.name}",
            self.group,
            self.hidden + other.hidden,
            self.off + other.off,
            self.at_nearest or other.at_nearest,
            self.forgets or other.forgets,
            self.delay + other.delay,
        )


def ablations(config: BattleConfig) -> tuple[Ablation, ...]:
    """The ablations of a battle: of what its mechs can observe, do and carry, in the order of `GROUPS`.

    Classes that have no column in the observation, see `CLASS_NAMES`, are not ablated.
    """
    carried = {name for roster in config.rosters for name in roster}
    classes = [each for each in config.mech_classes if each.name in carried and each.name in CLASS_NAMES]
    groups = (
        _observations(config),
        _actions(config, classes),
        _weapons(config, classes),
        _classes(classes),
        _times(config),
    )
    return tuple(each for group in groups for each in group)


def named_ablations(config: BattleConfig, names: Sequence[str] | None = None) -> tuple[Ablation, ...]:
    """The ablations of a battle with these names, such as ``"jets"`` or ``"jets+smoke"`` for both at once; or all.

    Raises ConfigError for a name of none, with the nearest one.
    """
    every = {each.name: each for each in ablations(config)}
    found = []
    for name in dict.fromkeys(names or every):
        parts = name.split(TOGETHER)
        for part in parts:
            if part not in every:
                raise ConfigError(f"nothing to ablate is called {part!r}{nearest_name(part, every)}")
        first, *others = (every[part] for part in parts)
        found.append(sum(others, first))
    return tuple(found)


def ablate(player: Player, ablation: Ablation) -> Player:
    """The player without something, named ``PLAYER without NAME``. A handicap of the player stays as it is."""
    make = player.make
    if isinstance(make, Handicapped):
        make = dataclasses.replace(make, make=_Ablating(make.make, ablation, player.name))
    else:
        make = _Ablating(make, ablation, player.name)
    if ablation.delay:
        make = Handicapped(make, HandicapConfig(reaction_delay=ablation.delay), 0)
    return dataclasses.replace(player, name=f"{player.name} without {ablation.name}", make=make)


@dataclass(frozen=True)
class _Ablating:
    """Makes the policies of a player without something."""

    make: Callable[[BattleConfig, BattleNoise], Policy]
    ablation: Ablation
    name: str  # of the player

    def __call__(self, config: BattleConfig, noise: BattleNoise) -> _Ablated:
        policy = self.make(config, noise)
        if isinstance(policy, type) or not isinstance(policy, Policy):
            raise ConfigError(f"player {self.name!r}: expected a policy with reset and act, got {policy!r}")
        return _Ablated(policy, self.ablation, config, self.name)


class _Ablated:
    """A policy whose observations lack entries, and whose actions are partly 0."""

    def __init__(self, policy: Policy, ablation: Ablation, config: BattleConfig, name: str) -> None:
        self._policy, self._name = policy, name
        self._forgets, self._at_nearest = ablation.forgets, ablation.at_nearest
        self._hidden = list(ablation.hidden)
        absent = np.zeros(OBSERVATION_DIM, np.float32)
        absent[list(_own(_UNHARMED))] = 1.0
        absent[list(_own([Self.SENSOR_QUALITY]))] = 1.0 / config.sensors.max_quality
        self._absent = absent[self._hidden]
        self._kept = np.ones((len(CLASS_NAMES), ACTION_DIM), np.float32)
        for mech_class, entries in ablation.off:
            self._kept[CLASS_NAMES.index(mech_class), list(entries)] = 0.0

    def reset(self, mask: NDArray[np.bool_]) -> None:
        self._policy.reset(mask)

    def act(self, observations: NDArray[np.float32]) -> NDArray[np.float32]:
        seen = observations.copy()
        seen[:, self._hidden] = self._absent
        if self._forgets:
            self._policy.reset(np.ones(len(seen), np.bool_))
        given = self._policy.act(seen)
        actions = read_actions(given, (len(seen), ACTION_DIM), f"actions of the player {self._name!r}")
        if self._at_nearest:
            actions[:, _TARGETS] = _nearest_contacts(seen)
        classes = observations[:, class_columns(Self)]
        known = classes.any(axis=1, keepdims=True)
        return np.where(known, actions * self._kept[classes.argmax(axis=1)], actions)

    def close(self) -> None:
        close_policy(self._policy)


def _nearest_contacts(observations: NDArray[np.float32]) -> NDArray[np.bool_]:
    """The nearest contact (R, TARGET_CHOICES) of those that an action can choose; none where there is no contact."""
    contacts, mask = STREAMS["contacts"], STREAMS["contacts_mask"]
    distances = observations[:, contacts.start + Contact.DISTANCE : contacts.stop : contacts.row_width]
    choices = np.where(observations[:, mask.start : mask.stop] > 0, distances, np.inf)[:, :TARGET_CHOICES]
    nearest = np.isfinite(choices) & (np.arange(TARGET_CHOICES) == choices.argmin(axis=1, keepdims=True))
    return np.asarray(nearest, np.bool_)


def _observations(config: BattleConfig) -> Iterator[Ablation]:
    """What observations hold: streams with their masks, and parts of the mech's own stream."""
    contacts, mask = STREAMS["contacts"], STREAMS["contacts_mask"]
    several = max(map(len, config.rosters)) > 1
    others = (*range(contacts.start + contacts.row_width, contacts.stop), *range(mask.start + 1, mask.stop))
    own_message = {*_own_message()}
    messages = tuple(entry for entry in _streams("comm", "comm_mask") if entry not in own_message)
    for name, exists, entries in (
        ("contacts", True, _streams("contacts", "contacts_mask")),
        ("contacts beyond the first", several, others),
        ("squad table", several, _streams("squad", "squad_mask")),
        ("intel", config.abilities.intel, _streams("intel", "intel_mask")),
        ("messages received", several and config.abilities.messages, messages),
        ("map around it", True, _streams("ego_map")),
        ("objective", True, _streams("objective")),
        ("direction of damage", True, _own((Self.HURT_FORWARD, Self.HURT_LEFT))),
        ("own condition", True, _own(_CONDITION)),
        ("own place", True, _own(_PLACE)),
        ("own motion", True, _own(_MOTION)),
        ("warnings", True, _own(_WARNINGS)),
    ):
        if exists:
            yield Ablation(name, "observation", hidden=entries)


def _actions(config: BattleConfig, classes: Sequence[MechClass]) -> Iterator[Ablation]:
    """What a mech does beside walking, turning and firing."""
    jetting = [each for each in classes if each.jet_acceleration > 0.0]
    radiating = [each for each in classes if each.electronics]
    several = max(map(len, config.rosters)) > 1
    blocks = {block.name: () if block.name in config.abilities.blocks_off else block.entries for block in BLOCKS}
    for name, actors, entries in (
        ("strafing", classes, (Action.STRAFE,)),
        ("jets", jetting, (Action.JET,)),
        ("venting", classes, (Action.VENT,)),
        ("electronics", radiating, blocks["electronics"]),
        ("ECM", radiating, blocks["electronics"][:1]),
        ("ECCM", radiating, blocks["electronics"][1:]),
        ("display choice", classes, blocks["display"]),
        ("messages sent", classes if several else [], blocks["comm"]),
    ):
        if actors and entries:
            yield Ablation(name, "action", off=tuple((each.name, tuple(map(int, entries))) for each in actors))
    if blocks["target"] and several:
        yield Ablation("target choice", "action", at_nearest=True)


def _weapons(config: BattleConfig, classes: Sequence[MechClass]) -> Iterator[Ablation]:
    """Every weapon, on all mechs that carry it."""
    for weapon in config.catalog.weapons:
        mounts = {
            each.name: tuple(_FIRE[place] for place, mount in enumerate(MOUNTS) if getattr(each, mount) == weapon.name)
            for each in classes
        }
        off = tuple((name, entries) for name, entries in mounts.items() if entries)
        if off:
            yield Ablation(weapon.name, "weapon", off=off)


def _classes(classes: Sequence[MechClass]) -> Iterator[Ablation]:
    """The fire of every class, and all that it does: its mechs stay where they start."""
    for each in classes:
        yield Ablation(f"{each.name} fire", "class", off=((each.name, _FIRE),))
    for each in classes if len(classes) > 1 else ():
        yield Ablation(each.name, "class", off=((each.name, _EVERY_ENTRY),))


def _times(config: BattleConfig) -> Iterator[Ablation]:
    """Memory, of which the own message would be a part; and the time of a decision."""
    yield Ablation("memory", "time", hidden=_own_message(), forgets=True)
    yield Ablation("acting at once", "time", delay=config.decision_seconds)


def _own_message() -> tuple[int, ...]:
    comm, mask = STREAMS["comm"], STREAMS["comm_mask"]
    return (*range(comm.start, comm.start + comm.row_width), mask.start)


def _streams(*names: str) -> tuple[int, ...]:
    return tuple(entry for name in names for entry in range(STREAMS[name].start, STREAMS[name].stop))


def _own(features: Iterable[Feature]) -> tuple[int, ...]:
    return tuple(STREAMS["self"].start + feature for feature in features)
