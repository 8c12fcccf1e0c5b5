"""The effect of each part of an action, or the reason why the part is refused."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from echelon_env.config.battle import ABILITY_OF_BLOCK
from echelon_env.config.catalog import MOUNTS
from echelon_env.engine.boundary import read_actions
from echelon_env.engine.core import BattleEngine
from echelon_env.engine.possibilities import Possibilities
from echelon_env.engine.state import BY_DAMAGE, BY_DANGER, BY_DISTANCE, ECCM, NO_MECH
from echelon_env.engine.tick import command_and_aim
from echelon_env.layout.actions import ACTION_DIM, COMM_DIM, TARGET_CHOICES, Action

NOTHING = "nothing"

DISPLAYS = {BY_DISTANCE: "distance", BY_DANGER: "danger", BY_DAMAGE: "damage"}


@dataclass(frozen=True)
class ActionPart:
    """A part of an action and its effect.

    >>> print(ActionPart("jet", "jet 1", "nothing", "no jump jets"))
    jet: jet 1 -> refused: no jump jets
    """

    name: str
    """Name of the part, see `explain_action`."""
    requested: str
    effect: str
    """``nothing`` if the part is refused."""
    refused: str | None
    """The reason, or None."""

    def __str__(self) -> str:
        """One line: the part, what it requests, and the effect or the reason why there is none."""
        return f"{self.name}: {self.requested} -> {self.effect if self.refused is None else f'refused: {self.refused}'}"


def explain_action(
    engine: BattleEngine, battle: int, mech: int, vector: ArrayLike, names: Sequence[str]
) -> list[ActionPart]:
    """The effect of each part of an action in the current state; nothing is changed.

    Events within the coming decision (movements, hits) are not predicted: a target named here is the one of a shot now.
    A part is refused at least where the mask of `action_masks` forbids it.

    Parameters
    ----------
    engine, battle, mech
        The mech's row in a battle that has been reset.
    vector
        (A,) floats, its action, see `echelon_env.layout.actions`.
    names
        (M,) names of the battle's mechs, for the texts.

    Returns
    -------
    list of ActionPart
        ``motion``, ``jet``, ``turn``, the mounts by name, ``vent``, ``target``, ``electronics``, ``display`` and
        ``comm``, in this order; then, where there are entries that are not finite, ``entries``.

    Raises
    ------
    IndexError
        If there is no such battle or mech.
    ValueError
        If `vector` or `names` are of another length, or `vector` holds no numbers.
    """
    for what, index, count in (("battle", battle, engine.num_battles), ("mech", mech, engine.num_mechs)):
        if not 0 <= index < count:
            raise IndexError(f"{what}: expected 0 to {count - 1}, got {index}")
    if len(names) != engine.num_mechs:
        raise ValueError(f"names: expected {engine.num_mechs}, got {len(names)}")
    requested = read_actions(vector, (ACTION_DIM,), "action").copy()
    case = _Case(engine, battle, mech, requested, names)
    parts = [_motion(case), _jet(case), _turn(case)]
    parts += [_mount(case, mount) for mount in range(len(MOUNTS))]
    parts += [_vent(case), _target(case), _electronics(case), _display(case), _comm(case)]
    wrong = [entry for entry in Action if not math.isfinite(requested[entry])]
    if wrong:
        parts.append(ActionPart("entries", _values(case, *wrong), "read as 0, counted in bad_actions", "not finite"))
    return parts


class _Case:
    """A mech, an action for it, and the command that the engine reads from the action."""

    def __init__(
        self, engine: BattleEngine, battle: int, mech: int, requested: NDArray[np.float32], names: Sequence[str]
    ) -> None:
        self.requested = requested
        self.read = requested.copy()
        self.targets = np.zeros(len(MOUNTS), np.int64)
        scratch = engine.state._replace(mechs=engine.state.mechs.copy())
        command_and_aim(engine.tables, scratch, battle, mech, self.read, self.targets)
        self.mechs: NDArray[Any] = scratch.mechs[battle]
        self.mech: Any = self.mechs[mech]
        self.row, self.names, self.tables = mech, names, engine.tables
        self.rules: Any = engine.tables.rules[0]
        self.mech_class: Any = engine.tables.classes[self.mech["mech_class"]]
        self.weapons = engine.config.catalog.weapons
        self.over = bool(engine.state.battles["over"][battle])
        self.can = Possibilities(*(array[battle, mech] for array in engine.possibilities()))
        self._off = engine.config.abilities.blocks_off

    def seconds(self, ticks: int) -> str:
        """A number of ticks as text."""
        return f"{ticks * self.rules['dt']:.4g} s"

    def mech_at_distance(self, other: int) -> str:
        """Another mech's name and the distance between the centres as text."""
        ends = self.mech, self.mechs[other]
        a, b = ((end["x"], end["y"], end["z"] + self.tables.classes[end["mech_class"]]["height"] / 2) for end in ends)
        return f"{self.names[other]}, {math.dist(a, b):.1f} m away"

    @property
    def absent(self) -> str | None:
        """Why the mech no longer takes part."""
        if self.can.present:
            return None
        return "the battle is over" if self.over else "dead"

    def switched_off(self, block: str) -> str | None:
        """Why a block of the action has no effect in any battle of this configuration."""
        return f"abilities.{ABILITY_OF_BLOCK[block]} is off in this battle" if block in self._off else None

    @property
    def asleep(self) -> str | None:
        """Why its electronics do not work."""
        return self.absent or (None if self.can.awake else "shut down by heat, for longer than the decision")

    @property
    def helpless(self) -> str | None:
        """Why it cannot be controlled."""
        if self.can.able or self.asleep:
            return self.asleep
        return f"on the ground for {self.seconds(self.mech['fallen'])} yet"

    @property
    def later(self) -> str:
        """What must happen first, as the end of a sentence."""
        if self.mech["shutdown"]:
            return ", if it restarts in time"
        return f", once it stands in {self.seconds(self.mech['fallen'])}" if self.mech["fallen"] else ""


def _values(case: _Case, *entries: Action) -> str:
    return ", ".join(f"{entry.name.lower()} {case.requested[entry]:.4g}" for entry in entries)


def _part(name: str, requested: str, effect: str, refused: str | None) -> ActionPart:
    return ActionPart(name, requested, effect if refused is None else NOTHING, refused)


def _motion(case: _Case) -> ActionPart:
    requested = _values(case, Action.THROTTLE, Action.STRAFE)
    forward, left = float(case.mech["throttle"]), float(case.mech["strafe"])
    if forward == 0.0 and left == 0.0:
        return _part("motion", requested, NOTHING, None)
    ways = ["forward" if forward > 0 else "backward"] * (forward != 0) + ["left" if left > 0 else "right"] * (left != 0)
    speed = case.mech_class["top_speed"] * case.mech["speed_factor"] * math.hypot(forward, left)
    notes = [] if case.mech["speed_factor"] == 1.0 else [f"the ground leaves {case.mech['speed_factor']:.0%}"]
    boost = case.rules["jet_boost"] * case.mech["jet"] if case.can.jets else 0.0
    if boost > 0.0:
        speed *= 1.0 + boost
        notes.append(f"its jets add {boost:.0%}")
    if case.mech["legs"] <= 0:
        speed *= case.rules["legged_speed"]
        notes.append(f"its legs leave {case.rules['legged_speed']:.0%}")
    why = f" ({', '.join(notes)})" if notes else ""
    effect = f"walks {' and '.join(ways)} at {speed:.2f} m/s{why}{case.later}"
    return _part("motion", requested, effect, case.helpless or (None if case.can.walks else "it cannot walk"))


def _jet(case: _Case) -> ActionPart:
    requested, jet = _values(case, Action.JET), float(case.mech["jet"])
    if jet == 0.0:
        return _part("jet", requested, NOTHING, None)
    thrust, heat = case.mech_class["jet_acceleration"] * jet, case.rules["jet_heat"] * jet
    effect = f"thrust of {thrust:.2f} m/s2 against gravity's {case.rules['gravity']:.2f}, {heat:.4g} heat/s{case.later}"
    return _part("jet", requested, effect, case.helpless or (None if case.can.jets else "no jump jets"))


def _turn(case: _Case) -> ActionPart:
    requested, turn = _values(case, Action.TURN), float(case.mech["turn"])
    if turn == 0.0:
        return _part("turn", requested, NOTHING, None)
    way = "counter-clockwise" if turn > 0 else "clockwise"
    effect = f"turns {way} at {abs(turn) * case.mech_class['turn_rate']:.2f} rad/s{case.later}"
    return _part("turn", requested, effect, case.helpless or (None if case.can.turns else "it cannot turn"))


def _mount(case: _Case, mount: int) -> ActionPart:
    name = MOUNTS[mount]
    if not case.mech["trigger"][mount]:
        return _part(name, NOTHING, NOTHING, None)
    if not case.can.mounted[mount]:
        return _part(name, "fire", NOTHING, case.absent or "no weapon on this mount")
    w, cooldown = case.mech_class["weapon"][mount], case.mech["cooldown"][mount]
    weapon, target = case.weapons[w].name, int(case.targets[mount])
    refused = case.helpless
    if refused is None and not case.can.loaded[mount]:
        refused = "out of charges"
    elif refused is None and not case.can.ready[mount]:
        refused = f"cooling down for {case.seconds(cooldown)} yet"
    elif refused is None and case.mech["vent"]:
        refused = "it holds fire while venting"
    elif refused is None and target == NO_MECH and not case.tables.weapons[w]["fires_blind"]:
        refused = "no valid target now"
    aim = "level and straight ahead" if target == NO_MECH else f"at {case.mech_at_distance(target)}"
    wait = f", ready in {case.seconds(cooldown)}" if cooldown > 1 else ""
    return _part(name, f"fire {weapon}", f"fires {weapon} {aim}{wait}{case.later}", refused)


def _vent(case: _Case) -> ActionPart:
    if not case.mech["vent"]:
        return _part("vent", NOTHING, NOTHING, None)
    loss = case.mech_class["heat_dissipation"]
    effect = f"sheds {loss * case.rules['vent_factor']:.4g} heat/s instead of {loss:.4g}, holds fire"
    return _part("vent", "vent", effect, case.absent)


def _target(case: _Case) -> ActionPart:
    preferences = case.read[Action.TARGET_0 : Action.TARGET_0 + TARGET_CHOICES]
    row = int(preferences.argmax())
    if preferences[row] <= 0.0:
        return _part("target", NOTHING, NOTHING, None)
    requested, target = f"contact row {row}", int(case.mech["contacts"][row])
    if case.absent or case.switched_off("target"):
        return _part("target", requested, NOTHING, case.absent or case.switched_off("target"))
    if target == NO_MECH:
        slots = case.mech_class["contact_slots"]
        return _part(
            "target", requested, NOTHING, f"its suite has {slots} rows" if row >= slots else "the row is empty"
        )
    return _part("target", requested, f"targets {case.mech_at_distance(target)}", None)


def _electronics(case: _Case) -> ActionPart:
    emitters = [entry.name for entry in (Action.ECM, Action.ECCM) if case.read[entry] > 0.0]
    if not emitters:
        return _part("electronics", NOTHING, NOTHING, None)
    eccm = case.mech["radiates"] == ECCM
    heat = case.rules["eccm_heat" if eccm else "ecm_heat"]
    what = "ECCM, which overrides ECM" if len(emitters) > 1 else "ECCM" if eccm else "ECM"
    effect = f"radiates {what} ({heat:.4g} heat/s)"
    carried = case.switched_off("electronics") or (None if case.can.electronics else "it carries none")
    refused = case.absent or carried or case.asleep
    return _part("electronics", " and ".join(emitters), effect, refused)


def _display(case: _Case) -> ActionPart:
    wanted = int(case.read[Action.DISPLAY_NEAREST : Action.DISPLAY_DAMAGED + 1].argmax())
    order = DISPLAYS[wanted]
    refused = None if wanted == BY_DISTANCE else case.absent or case.switched_off("display") or case.asleep
    return _part("display", f"sort contacts by {order}", f"sorts the next contact table by {order}", refused)


def _comm(case: _Case) -> ActionPart:
    message = case.read[Action.COMM_0 : Action.COMM_0 + COMM_DIM]
    if not message.any():
        return _part("comm", NOTHING, NOTHING, None)
    mates = (case.mechs["pack"] == case.mech["pack"]) & (case.mechs["alive"] != 0)
    hearers = [case.names[row] for row in np.flatnonzero(mates).tolist() if row != case.row]
    effect = f"heard by {', '.join(hearers)}" if hearers else "not heard: no living pack-mate"
    silent = "shut down: it sends nothing" if case.mech["shutdown"] else None
    refused = case.absent or case.switched_off("comm") or silent
    return _part("comm", f"message {', '.join(f'{number:.3g}' for number in message)}", effect, refused)
