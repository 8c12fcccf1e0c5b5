"""Action formats and their conversion to action vectors.

Spaces, readers, masks and descriptions follow from the table `BLOCKS`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from itertools import product
from types import MappingProxyType
from typing import Any, Literal, get_args

import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Space
from numpy.typing import ArrayLike, NDArray

from echelon_env.config.schema import ConfigError, nearest_name
from echelon_env.engine.boundary import as_array, read_actions
from echelon_env.layout.actions import ACTION_DIM, ACTION_HIGH, ACTION_LOW, BLOCKS, Action, Block
from echelon_env.layout.parts import PARTS, Part, value_table

ActionFormat = Literal["continuous", "dict", "multi_discrete", "discrete"]
"""``"continuous"``: the canonical vector. ``"dict"``: an entry for each block. ``"multi_discrete"``: a choice for each
part. ``"discrete"``: one choice."""

MULTI_DISCRETE_SIZES = tuple(len(part.values) for part in PARTS)
"""Choices of each part."""

NEUTRAL_CHOICES = tuple(part.neutral for part in PARTS)
"""The multi-discrete action that does nothing."""

_MOVES = {
    "stand": {},
    "forward": {Action.THROTTLE: 1.0},
    "backward": {Action.THROTTLE: -1.0},
    "left": {Action.STRAFE: 1.0},
    "right": {Action.STRAFE: -1.0},
    "forward left": {Action.THROTTLE: 1.0, Action.STRAFE: 1.0},
    "forward right": {Action.THROTTLE: 1.0, Action.STRAFE: -1.0},
    "backward left": {Action.THROTTLE: -1.0, Action.STRAFE: 1.0},
    "backward right": {Action.THROTTLE: -1.0, Action.STRAFE: -1.0},
    "jump forward": {Action.THROTTLE: 1.0, Action.JET: 1.0},
}
_TURNS = {"": {}, "turn left": {Action.TURN: 1.0}, "turn right": {Action.TURN: -1.0}}
_FIRE = {"": {}, "fire": dict.fromkeys((Action.PRIMARY, Action.SECONDARY, Action.TERTIARY), 1.0)}
_OTHERS = {
    "vent": {Action.VENT: 1.0},
    "forward, vent": {Action.THROTTLE: 1.0, Action.VENT: 1.0},
    "backward, vent": {Action.THROTTLE: -1.0, Action.VENT: 1.0},
    "special": {Action.SPECIAL: 1.0},
    "backward, special": {Action.THROTTLE: -1.0, Action.SPECIAL: 1.0},
    "ecm": {Action.ECM: 1.0},
    "eccm": {Action.ECCM: 1.0},
}

DISCRETE_CHOICES: Mapping[str, Mapping[Action, float]] = MappingProxyType(
    {
        ", ".join(filter(None, (move, turn, fire))): {**_MOVES[move], **_TURNS[turn], **_FIRE[fire]}
        for move, turn, fire in product(_MOVES, _TURNS, _FIRE)
    }
    | _OTHERS
)
"""The choices of the discrete format by name, in order, with the entries of the vector that are not 0.

Every combination of ten moves, three turns, and fire with the primary, secondary and tertiary weapon or none; then
venting, the special weapon and electronics. No choice names a target. The first choice does nothing."""

_VECTOR_ENTRIES = tuple(entry for part in PARTS for entry in part.entries)

_CHOICE = Part(
    "choice",
    _VECTOR_ENTRIES,
    tuple(tuple(choice.get(entry, 0.0) for entry in _VECTOR_ENTRIES) for choice in DISCRETE_CHOICES.values()),
    0,
)

CHOICE_PARTS: Mapping[str, tuple[Part, ...]] = MappingProxyType({"multi_discrete": PARTS, "discrete": (_CHOICE,)})
"""The parts of the formats that consist of choices."""


VALUE_TABLES = {name: value_table(parts) for name, parts in CHOICE_PARTS.items()}
"""For each format of choices the parts that set the vector's entries, and the entries' values, see `read_action`."""
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
        MultiBinary, a choice as Discrete. ``"multi_discrete"``: a MultiDiscrete of `PARTS`. ``"discrete"``: a Discrete
        of `DISCRETE_CHOICES`.
    mechs
        None for one mech. For a team of n mechs as one agent: concatenated vectors, (n * A,) and (n * parts,), a
        leading axis in every entry of the dict format, and a MultiDiscrete of n choices.

    Raises
    ------
    ConfigError
        If there is no such format.
    """
    check_action_format(action_format)
    if action_format == "continuous":
        return Box(ACTION_LOW, ACTION_HIGH, ((mechs or 1) * ACTION_DIM,), np.float32)
    if action_format in CHOICE_PARTS:
        sizes = choice_sizes(action_format, mechs)
        return Discrete(sizes[0]) if action_format == "discrete" and mechs is None else MultiDiscrete(np.array(sizes))
    return Dict(OrderedDict((block.name, _block_space(block, mechs)) for block in BLOCKS))


def choice_sizes(action_format: str, mechs: int | None = None) -> tuple[int, ...]:
    """Choices of each part of a format in `CHOICE_PARTS`, mech by mech."""
    return tuple(len(part.values) for part in CHOICE_PARTS[action_format]) * (mechs or 1)


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
        numbers = read_actions(action, (*agents, (mechs or 1) * ACTION_DIM), what)
        return _read_only(numbers.reshape(*rows, ACTION_DIM))
    check_action_format(action_format)
    if action_format == "dict":
        return _read_only(_read_blocks(action, rows, what))
    sizes = np.array(choice_sizes(action_format, mechs))
    shape = agents if action_format == "discrete" and mechs is None else (*agents, len(sizes))
    part_of, values = VALUE_TABLES[action_format]
    choices = _read_choices(action, shape, sizes if shape else sizes[0], what).reshape(*rows, -1)
    return _read_only(values[_ENTRIES, choices[..., part_of]])


def _read_only(array: NDArray[np.float32]) -> NDArray[np.float32]:
    view = array.view()
    view.flags.writeable = False
    return view


def _read_choices(value: ArrayLike, shape: tuple[int, ...], sizes: NDArray[Any] | int, what: str) -> NDArray[Any]:
    """Choices as an integer array, checked to be in [0, sizes)."""
    choices = as_array(value, what)
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
            vectors[..., block.part] = read_actions(value, (*rows, width), name)
        elif block.kind == "switches":
            vectors[..., block.part] = _read_choices(value, (*rows, width), 2, name)
        else:
            choices = _read_choices(value, rows, block.choices, name)
            one_hot = np.eye(block.choices, width, -int(block.optional), np.float32)
            vectors[..., block.part] = one_hot[choices]
    return vectors
