"""Action formats, their conversion to action vectors, and masks of impossible choices.

One table, `BLOCKS`, follows `actions.Action`; spaces, readers, masks and descriptions follow from it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Space
from numpy.typing import ArrayLike, NDArray

from echelon_env.config.catalog import MOUNTS
from echelon_env.config.schema import ConfigError, nearest_name
from echelon_env.engine.core import BattleEngine, read_actions
from echelon_env.engine.state import NO_MECH
from echelon_env.layout.actions import ACTION_DIM, ACTION_HIGH, ACTION_LOW, TARGET_CHOICES, Action

ActionFormat = Literal["continuous", "dict", "multi_discrete"]
"""``"continuous"``: the canonical vector. ``"dict"``: an entry for each block. ``"multi_discrete"``: choices only."""

LEVELS = 5
"""Choices of a continuous entry in the multi-discrete format."""


@dataclass(frozen=True)
class Block:
    """Entries of the action vector that are one entry of the dict format."""

    name: str
    first: Action
    last: Action
    kind: Literal["numbers", "switches", "choice"]
    optional: bool = False
    """Whether choosing none of the entries is possible, too."""

    @property
    def entries(self) -> tuple[Action, ...]:
        """The block's entries."""
        return tuple(Action)[self.first : self.last + 1]

    @property
    def part(self) -> slice:
        """The block's part of the action vector."""
        return slice(self.first, self.last + 1)

    @property
    def choices(self) -> int:
        """Choices of a block of the kind ``"choice"``."""
        return len(self.entries) + self.optional


BLOCKS = (
    Block("motion", Action.THROTTLE, Action.TURN, "numbers"),
    Block("triggers", Action.PRIMARY, Action.VENT, "switches"),
    Block("target", Action.TARGET_0, Action.TARGET_4, "choice", optional=True),
    Block("electronics", Action.ECM, Action.ECCM, "choice", optional=True),
    Block("display", Action.DISPLAY_NEAREST, Action.DISPLAY_DAMAGED, "choice"),
    Block("comm", Action.COMM_0, Action.COMM_7, "numbers"),
)
"""The entries of the dict format, in the order of the action vector."""


@dataclass(frozen=True)
class Part:
    """A part of the multi-discrete format: a choice among rows of values."""

    name: str
    entries: tuple[Action, ...]
    values: tuple[tuple[float, ...], ...]
    """For each choice the values of the entries."""
    neutral: int
    """The choice that does nothing."""


def _parts(block: Block) -> list[Part]:
    """The multi-discrete parts of a block; messages have none."""
    if block.name == "comm":
        return []
    if block.kind == "choice":
        none = [(0.0,) * len(block.entries)] if block.optional else []
        rows = [tuple(float(entry == chosen) for entry in block.entries) for chosen in block.entries]
        return [Part(block.name, block.entries, (*none, *rows), 0)]
    parts = []
    for entry in block.entries:
        low = 0.0 if entry is Action.JET or block.kind == "switches" else ACTION_LOW
        levels = np.linspace(low, ACTION_HIGH, 2 if block.kind == "switches" else LEVELS).tolist()
        parts.append(Part(entry.name.lower(), (entry,), tuple((level,) for level in levels), levels.index(0.0)))
    return parts


PARTS = tuple(part for block in BLOCKS for part in _parts(block))
"""The parts of the multi-discrete format, in order."""

MULTI_DISCRETE_SIZES = tuple(len(part.values) for part in PARTS)
"""Choices of each part."""

MASK_SIZE = sum(MULTI_DISCRETE_SIZES)
"""Entries of one mech's mask: the parts' choices one after the other."""

NEUTRAL_CHOICES = tuple(part.neutral for part in PARTS)
"""The multi-discrete action that does nothing."""

_STOPS = list(accumulate(MULTI_DISCRETE_SIZES))

MASK_SLICES = {
    part.name: slice(stop - size, stop) for part, size, stop in zip(PARTS, MULTI_DISCRETE_SIZES, _STOPS, strict=True)
}
"""Each part's slice of the mask, by name."""


def _value_table() -> tuple[NDArray[np.intp], NDArray[np.float32]]:
    """Per entry of the vector: the part that sets it (ACTION_DIM,), and its value for each choice of that part."""
    part_of = np.zeros(ACTION_DIM, np.intp)
    values = np.zeros((ACTION_DIM, max(MULTI_DISCRETE_SIZES)), np.float32)
    for number, part in enumerate(PARTS):
        for column, entry in enumerate(part.entries):
            part_of[entry] = number
            values[entry, : len(part.values)] = [row[column] for row in part.values]
    return part_of, values


_PART_OF, _VALUES = _value_table()
_ENTRIES = np.arange(ACTION_DIM)


def check_action_format(action_format: object) -> None:
    """Raise `ConfigError` if there is no such action format."""
    if action_format not in get_args(ActionFormat):
        raise ConfigError(f"unknown action {action_format!r}{nearest_name(str(action_format), get_args(ActionFormat))}")


def action_space(action_format: ActionFormat, mechs: int | None = None) -> Space[Any]:
    """The space of one agent's actions.

    Parameters
    ----------
    action_format
        ``"continuous"``: a Box of (A,) float32 in [-1, 1]. ``"dict"``: a Dict of `BLOCKS`, numbers as Box, switches as
        MultiBinary, a choice as Discrete. ``"multi_discrete"``: a MultiDiscrete of `PARTS`.
    mechs
        None for one mech. For a team of n mechs as one agent: concatenated vectors, (n * A,) and (n * parts,), and a
        leading axis in every entry of the dict format.

    Raises
    ------
    ConfigError
        If there is no such format.
    """
    check_action_format(action_format)
    if action_format == "continuous":
        return Box(ACTION_LOW, ACTION_HIGH, ((mechs or 1) * ACTION_DIM,), np.float32)
    if action_format == "multi_discrete":
        return MultiDiscrete(np.array(MULTI_DISCRETE_SIZES * (mechs or 1)))
    return Dict(OrderedDict((block.name, _block_space(block, mechs)) for block in BLOCKS))


def _block_space(block: Block, mechs: int | None) -> Space[Any]:
    shape = (len(block.entries),) if mechs is None else (mechs, len(block.entries))
    if block.kind == "numbers":
        return Box(ACTION_LOW, ACTION_HIGH, shape, np.float32)
    if block.kind == "switches":
        return MultiBinary(len(block.entries) if mechs is None else shape)
    return Discrete(block.choices) if mechs is None else MultiDiscrete(np.full(mechs, block.choices))


def read_action(
    action_format: ActionFormat, action: Any, mechs: int | None = None, batch: int | None = None, what: str = "action"
) -> NDArray[np.float32]:
    """Convert actions of a format to action vectors.

    Parameters
    ----------
    action_format, mechs
        As in `action_space`.
    action
        An element of that space, or a batch of them with a leading axis in every array; only read. Numbers may be out
        of bounds or not finite: the engine clips the former, and zeroes and counts the latter.
    batch
        Number of agents in the batch; None for one agent without a leading axis.
    what
        Name of the action in errors.

    Returns
    -------
    numpy.ndarray
        ([batch,] [mechs,] A) float32, read-only, perhaps a view of `action`.

    Raises
    ------
    ValueError
        For a wrong shape or dtype, a choice out of range, or missing or unknown entries of the dict format, with the
        expected and the actual value.
    """
    agents = () if batch is None else (batch,)
    rows = agents if mechs is None else (*agents, mechs)
    if action_format == "continuous":
        numbers = read_actions(_as_array(action, what), (*agents, (mechs or 1) * ACTION_DIM), what)
        return _read_only(numbers.reshape(*rows, ACTION_DIM))
    check_action_format(action_format)
    if action_format == "dict":
        return _read_only(_read_blocks(action, rows, what))
    sizes = np.array(MULTI_DISCRETE_SIZES * (mechs or 1))
    choices = _read_choices(action, (*agents, len(sizes)), sizes, what).reshape(*rows, len(PARTS))
    return _read_only(_VALUES[_ENTRIES, choices[..., _PART_OF]])


def _read_only(array: NDArray[np.float32]) -> NDArray[np.float32]:
    view = array.view()
    view.flags.writeable = False
    return view


def _as_array(value: ArrayLike, what: str) -> NDArray[Any]:
    try:
        return np.asarray(value)
    except ValueError as error:
        raise ValueError(f"{what}: expected an array of numbers, got {value!r}") from error


def _read_choices(value: ArrayLike, shape: tuple[int, ...], sizes: NDArray[Any] | int, what: str) -> NDArray[Any]:
    """Choices as an integer array, checked to be in [0, sizes)."""
    choices = _as_array(value, what)
    if choices.shape != shape:
        raise ValueError(f"{what}: expected shape {shape}, got {choices.shape}")
    if choices.dtype.kind not in "iub":
        raise ValueError(f"{what}: expected integers, got dtype {choices.dtype}")
    choices = choices.astype(np.int64, copy=False)
    wrong = (choices < 0) | (choices >= sizes)
    if wrong.any():
        place = tuple(np.argwhere(wrong)[0].tolist())
        size = int(np.broadcast_to(sizes, shape)[place])
        where = f" at {list(place)}" if place else ""
        raise ValueError(f"{what}: expected 0 to {size - 1}{where}, got {int(choices[place])}")
    return choices


def _read_blocks(action: Any, rows: tuple[int, ...], what: str) -> NDArray[np.float32]:
    """Vectors (*rows, A) of an action in the dict format."""
    names = [block.name for block in BLOCKS]
    if not isinstance(action, Mapping):
        raise ValueError(f"{what}: expected a mapping with the keys {names}, got {type(action).__name__}")
    if set(action) != set(names):
        raise ValueError(f"{what}: expected the keys {names}, got {list(action)}")
    vectors = np.zeros((*rows, ACTION_DIM), np.float32)
    for block in BLOCKS:
        value, width, name = action[block.name], len(block.entries), f"{what}[{block.name!r}]"
        if block.kind == "numbers":
            vectors[..., block.part] = read_actions(_as_array(value, name), (*rows, width), name)
        elif block.kind == "switches":
            vectors[..., block.part] = _read_choices(value, (*rows, width), 2, name)
        else:
            choices = _read_choices(value, rows, block.choices, name)
            one_hot = np.eye(block.choices, width, -int(block.optional), np.float32)
            vectors[..., block.part] = one_hot[choices]
    return vectors


class Possibilities(NamedTuple):
    """What mechs may be able to do in the coming decision. False only where it is certain that they cannot."""

    present: NDArray[np.bool_]  # (B, M) alive, in a battle that is not over
    awake: NDArray[np.bool_]  # (B, M) present, and not shut down for the whole decision
    able: NDArray[np.bool_]  # (B, M) awake, and not fallen for the whole decision
    walks: NDArray[np.bool_]  # (B, M) has legs that move it
    turns: NDArray[np.bool_]  # (B, M) can turn at all
    jets: NDArray[np.bool_]  # (B, M) has jump jets
    electronics: NDArray[np.bool_]  # (B, M) carries ECM and ECCM
    mounted: NDArray[np.bool_]  # (B, M, mounts) has a weapon there
    loaded: NDArray[np.bool_]  # (B, M, mounts) has charges left or needs none
    ready: NDArray[np.bool_]  # (B, M, mounts) will have cooled down
    contacts: NDArray[np.bool_]  # (B, M, TARGET_CHOICES) the contact row is filled

    @property
    def fires(self) -> NDArray[np.bool_]:
        """(B, M, mounts): may fire."""
        return self.able[..., None] & self.mounted & self.loaded & self.ready


_HEAT_TOLERANCE = 1e-6
"""Heat points by which a sum over ticks may differ from the product."""


def possibilities(engine: BattleEngine) -> Possibilities:
    """What the mechs of an engine may be able to do in the coming decision."""
    mechs, tables = engine.state.mechs, engine.tables
    rules, classes = tables.rules[0], tables.classes[mechs["mech_class"]]
    ticks = rules["decision_repeat"]
    present = (mechs["alive"] != 0) & (engine.state.battles["over"] == 0)[:, None]
    # An upper bound of the cooling: where a shut-down mech falls and how the terrain changes is not simulated, so
    # every cooling material counts.
    cooling = classes["heat_dissipation"] * rules["vent_factor"] + np.maximum(0.0, -tables.materials["heat"]).sum()
    coolest = mechs["heat"] - ticks * rules["dt"] * cooling
    restarts = coolest <= rules["restart_heat"] * classes["heat_capacity"] + _HEAT_TOLERANCE
    awake = present & ((mechs["shutdown"] == 0) | restarts)
    charges = np.append(tables.weapons["charges"], 0)[classes["weapon"]]
    return Possibilities(
        present=present,
        awake=awake,
        able=awake & (mechs["fallen"] <= ticks),
        walks=(classes["top_speed"] > 0) & ((mechs["legs"] > 0) | (rules["legged_speed"] > 0)),
        turns=classes["turn_rate"] > 0,
        jets=classes["jet_acceleration"] > 0,
        electronics=classes["electronics"] != 0,
        mounted=classes["weapon"] >= 0,
        loaded=(charges == 0) | (mechs["charges"] > 0),
        ready=mechs["cooldown"] <= ticks,
        contacts=mechs["contacts"][..., :TARGET_CHOICES] != NO_MECH,
    )


def action_masks(engine: BattleEngine) -> NDArray[np.int8]:
    """The masks of the multi-discrete format, (B, M, MASK_SIZE) int8, a new array.

    0: the choice certainly has no effect in the coming decision, the same as the part's neutral choice, except that the
    next observation may echo it (`has_target`, `is_target`, `by_...`). 1: it may have an effect, or it is the neutral
    choice, which is always allowed. Dead mechs, and all mechs in a battle that is over, have only the neutral choices.
    """
    can = possibilities(engine)
    fires = can.fires
    allowed = {
        "throttle": can.able & can.walks,
        "strafe": can.able & can.walks,
        "jet": can.able & can.jets,
        "turn": can.able & can.turns,
        **{mount: fires[..., i] for i, mount in enumerate(MOUNTS)},
        "vent": can.present,
        "electronics": can.awake & can.electronics,
        "display": can.awake,
    }
    masks = np.zeros((*can.present.shape, MASK_SIZE), np.int8)
    for part in PARTS:
        mask = masks[..., MASK_SLICES[part.name]]
        if part.name == "target":
            mask[..., 1:] = can.contacts & fires.any(axis=-1, keepdims=True)
        else:
            mask[:] = allowed[part.name][..., None]
        mask[..., part.neutral] = 1
    return masks


def split_mask(mask: NDArray[np.int8]) -> tuple[NDArray[np.int8], ...]:
    """Views of a mask, one for each part, as `gymnasium.spaces.MultiDiscrete.sample` takes them.

    `mask` is (..., MASK_SIZE), or (..., n * MASK_SIZE) for a team of n mechs as one agent, with the parts of the first
    mech before those of the second.
    """
    mechs, rest = divmod(mask.shape[-1], MASK_SIZE)
    if rest or not mechs:
        raise ValueError(f"mask: expected a last axis of a multiple of {MASK_SIZE}, got shape {mask.shape}")
    stops = [mech * MASK_SIZE + stop for mech in range(mechs) for stop in _STOPS]
    return tuple(np.split(mask, stops[:-1], axis=-1))
