"""Ablations: players without one thing that they could observe, do or use."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from echelon_env.config.battle import BattleConfig
from echelon_env.config.catalog import MOUNTS, MechClass
from echelon_env.evaluate.players import BattleNoise, Player
from echelon_env.layout.actions import ACTION_DIM, BLOCKS, Action
from echelon_env.layout.observations import CLASS_NAMES, STREAMS, Feature, Self, class_columns
from echelon_env.opponents import Handicap, Policy
from echelon_env.opponents.policy import close_policy

__all__ = ["GROUPS", "Ablation", "ablate", "ablations"]

GROUPS = ("observation", "action", "weapon", "class", "time")
"""What ablations take away, in the order of a card."""

_TRIGGERS = slice(Action.PRIMARY, Action.PRIMARY + len(MOUNTS))
_EVERY_ENTRY = tuple(range(ACTION_DIM))
_OWN_CONDITION = (Self.ARMOUR, Self.LEGS, Self.STABILITY, Self.FALLEN, Self.SUPPRESSED, Self.HEAT, Self.SHUTDOWN)
_OWN_PLACE = (Self.HEIGHT, Self.POSITION_X, Self.POSITION_Y, Self.HEADING_COS, Self.HEADING_SIN)
_WARNINGS = (Self.JAMMED, Self.SENSOR_QUALITY, Self.PAINTED, Self.MISSILE)
_SOUNDS = (Self.SOUND_AHEAD, Self.SOUND_LEFT, Self.SOUND_BEHIND, Self.SOUND_RIGHT)


@dataclass(frozen=True)
class Ablation:
    """What a player has to do without."""

    name: str  # of the thing, such as "jets"
    group: str  # one of `GROUPS`
    hidden: tuple[int, ...] = ()  # entries of the observation that it gets as 0
    silent: tuple[tuple[str, tuple[int, ...]], ...] = ()  # mech class -> entries of its actions that are made 0
    forgets: bool = False  # whether its policy is reset before every decision
    delay: float = 0.0  # s that its actions are late


def ablations(config: BattleConfig) -> tuple[Ablation, ...]:
    """The ablations of a battle: of all that its mechs can observe, do and carry, in the order of `GROUPS`.

    Classes that have no column in the observation, see `CLASS_NAMES`, are not ablated.
    """
    carried = {name for roster in config.rosters for name in roster}
    classes = [each for each in config.catalog.mech_classes if each.name in carried and each.name in CLASS_NAMES]
    return (
        *_observations(config),
        *_actions(config, classes),
        *_weapons(config, classes),
        *_classes(classes),
        *_times(config),
    )


def ablate(player: Player, ablation: Ablation) -> Player:
    """The player without the thing, named ``PLAYER without THING``."""

    def make(config: BattleConfig, noise: BattleNoise) -> Policy:
        policy: Policy = _Ablated(player.make(config, noise), ablation)
        return Handicap(policy, config, reaction_delay=ablation.delay) if ablation.delay else policy

    return dataclasses.replace(player, name=f"{player.name} without {ablation.name}", make=make)


class _Ablated:
    """A policy whose observations lack entries, and whose actions are partly 0."""

    def __init__(self, policy: Policy, ablation: Ablation) -> None:
        self._policy, self._ablation = policy, ablation
        self._hidden = list(ablation.hidden)
        self._kept = np.ones((len(CLASS_NAMES), ACTION_DIM), np.float32)
        for name, entries in ablation.silent:
            self._kept[CLASS_NAMES.index(name), list(entries)] = 0.0

    def reset(self, mask: NDArray[np.bool_]) -> None:
        self._policy.reset(mask)

    def act(self, observations: NDArray[np.float32]) -> NDArray[np.float32]:
        classes = observations[:, class_columns(Self)]
        seen = observations
        if self._hidden:
            seen = observations.copy()
            seen[:, self._hidden] = 0.0
        if self._ablation.forgets:
            self._policy.reset(np.ones(len(seen), np.bool_))
        actions = np.asarray(self._policy.act(seen), np.float32)
        if not self._ablation.silent:
            return actions
        known = classes.any(axis=1, keepdims=True)
        return np.where(known, actions * self._kept[classes.argmax(axis=1)], actions)

    def close(self) -> None:
        close_policy(self._policy)


def _observations(config: BattleConfig) -> Iterable[Ablation]:
    """What observations hold: streams with their masks, and parts of the mech's own stream."""
    contacts, mask = STREAMS["contacts"], STREAMS["contacts_mask"]
    others = (*range(contacts.start + contacts.row_width, contacts.stop), *range(mask.start + 1, mask.stop))
    largest = max(map(len, config.rosters))
    hidden: dict[str, tuple[int, ...]] = {
        "contacts": _streams("contacts", "contacts_mask"),
        "contacts beyond the first": others,
        "squad table": _streams("squad", "squad_mask") if largest > 1 else (),
        "intel": _streams("intel", "intel_mask"),
        "messages received": _streams("comm", "comm_mask") if largest > 1 else (),
        "map around it": _streams("ego_map"),
        "battlefield map": _streams("battle_map"),
        "objective": _streams("objective"),
        "sound": _own(_SOUNDS),
        "direction of damage": _own((Self.HURT_FORWARD, Self.HURT_LEFT)),
        "own condition": _own(_OWN_CONDITION),
        "own place": _own(_OWN_PLACE),
        "warnings": _own(_WARNINGS),
    }
    return [Ablation(name, "observation", entries) for name, entries in hidden.items() if entries]


def _actions(config: BattleConfig, classes: Sequence[MechClass]) -> Iterable[Ablation]:
    """What a mech does beside walking, turning and firing."""
    jetting = [each for each in classes if each.jet_acceleration > 0.0]
    radiating = [each for each in classes if each.electronics]
    several = classes if max(map(len, config.rosters)) > 1 else []
    blocks = {block.name: tuple(map(int, block.entries)) for block in BLOCKS}
    for name, actors, entries in (
        ("strafing", classes, (Action.STRAFE,)),
        ("jets", jetting, (Action.JET,)),
        ("venting", classes, (Action.VENT,)),
        ("target choice", classes, blocks["target"]),
        ("electronics", radiating, blocks["electronics"]),
        ("ECM", radiating, (Action.ECM,)),
        ("ECCM", radiating, (Action.ECCM,)),
        ("display choice", classes, blocks["display"]),
        ("messages sent", several, blocks["comm"]),
    ):
        if actors:
            yield Ablation(name, "action", silent=tuple((each.name, tuple(map(int, entries))) for each in actors))


def _weapons(config: BattleConfig, classes: Sequence[MechClass]) -> Iterable[Ablation]:
    """Every weapon, on all mechs that carry it."""
    for weapon in config.catalog.weapons:
        if weapon.name in config.banned_weapons:
            continue
        mounts = {
            each.name: tuple(
                Action.PRIMARY + place for place, mount in enumerate(MOUNTS) if getattr(each, mount) == weapon.name
            )
            for each in classes
        }
        silent = tuple((name, entries) for name, entries in mounts.items() if entries)
        if silent:
            yield Ablation(weapon.name, "weapon", silent=silent)


def _classes(classes: Sequence[MechClass]) -> Iterable[Ablation]:
    """Every class: its fire, and all that it does (it stays where it starts)."""
    triggers = _EVERY_ENTRY[_TRIGGERS]
    for each in classes:
        yield Ablation(f"{each.name}'s fire", "class", silent=((each.name, triggers),))
    for each in classes if len(classes) > 1 else ():
        yield Ablation(f"{each.name}, parked", "class", silent=((each.name, _EVERY_ENTRY),))


def _times(config: BattleConfig) -> Iterable[Ablation]:
    yield Ablation("memory", "time", forgets=True)
    yield Ablation("actions on time", "time", delay=config.decision_seconds)


def _streams(*names: str) -> tuple[int, ...]:
    return tuple(entry for name in names for entry in range(STREAMS[name].start, STREAMS[name].stop))


def _own(features: Iterable[Feature]) -> tuple[int, ...]:
    return tuple(STREAMS["self"].start + feature for feature in features)
