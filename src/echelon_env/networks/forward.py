"""The forward pass of a policy as an entry point: from observations to actions.

Each row by itself and in float64: its bits depend neither on other rows nor on the machine, and are closer to the exact
result than those of PyTorch in float32. Random numbers are functions of a row's key and of its decision's number.
`numpy.float64` converts a float32; for Numba `float` does not.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echelon_env.config.battle import BattleConfig
from echelon_env.engine import rng
from echelon_env.engine.geometry import exponential
from echelon_env.engine.kernels import entry_point, integer, kernel
from echelon_env.engine.turns import end_of_turn, first_turn, next_turn
from echelon_env.layout.actions import TARGET_CHOICES
from echelon_env.layout.observations import STREAMS, Self
from echelon_env.layout.parts import ALL_PARTS, CHOICE_STARTS, value_table
from echelon_env.networks.layers import (
    ZERO,
    Workspace,
    allocate_workspace,
    copy,
    encode_map,
    encode_set,
    fuse,
    linear,
    rectify,
    recur,
)
from echelon_env.networks.possible import Condition, action_limits, find_conditions, mask_needs
from echelon_env.networks.weights import TABLES, VECTORS, Network

SAMPLED, DETERMINISTIC = map(integer, range(2))
"""How a network acts: samples of its distribution, or its mode."""

_PARTS = tuple(
    (CHOICE_STARTS[part.name], len(part.values), int(part.entries[0]), len(part.entries)) for part in ALL_PARTS
)
"""Of each part: its first choice among all, its choices, its first entry in an action, its entries."""

_VALUES = tuple(map(tuple, value_table(ALL_PARTS)[1].tolist()))
"""The values of each entry of an action by the choice of its part."""

_TARGETS = CHOICE_STARTS["target"] + 1
_SET_COLUMNS = tuple(
    (STREAMS[name].start, STREAMS[f"{name}_mask"].start, STREAMS[name].rows, STREAMS[name].row_width) for name in TABLES
)
_CONTACTS, _SQUAD, _INTEL, _COMM = ((integer(at), integer(mask), integer(n)) for at, mask, n, _ in _SET_COLUMNS)
_EGO_MAP, _EGO_SIDE = STREAMS["ego_map"].start, integer(STREAMS["ego_map"].shape[0])
_VECTORS = sum(STREAMS[name].row_width for name in VECTORS)  # the first columns


@kernel
def _encode(network: Network, work: Workspace) -> None:
    """The features of the observation."""
    if network.contacts.first.shape[0] == 0:
        fuse(network, work.seen, work)
        return
    copy(work.seen, work.joined[:_VECTORS])
    size = 2 * network.contacts.second.shape[1] + 1
    sets = work.joined[_VECTORS:]
    encode_set(network.contacts, *_CONTACTS, work.contacts, sets[:size], work)
    encode_set(network.squad, *_SQUAD, work.rows, sets[size : 2 * size], work)
    encode_set(network.intel, *_INTEL, work.rows, sets[2 * size : 3 * size], work)
    encode_set(network.comm, *_COMM, work.rows, sets[3 * size : 4 * size], work)
    encode_map(network.ego_map, work.seen[_EGO_MAP:], _EGO_SIDE, sets[4 * size :], work)
    fuse(network, work.joined, work)


@kernel
def _decide(network: Network, work: Workspace, logits: Any) -> None:
    """The logits (CHOICES,) of the distribution, from the features with the LSTM's output."""
    width = integer(network.query.shape[1])
    linear(work.features, network.head, network.head_bias, work.head, work.used)
    rectify(work.head)
    linear(work.head, network.action, network.action_bias, work.output, work.used)
    targets = TARGET_CHOICES if width > 0 else 0
    for i in range(network.action.shape[1]):
        logits[i if i < _TARGETS else i + targets] = work.output[i]
    if width > 0:
        linear(work.head, network.query, network.query_bias, work.query, work.used)
        for row in range(TARGET_CHOICES):
            product = 0.0
            for i in range(width):
                product += work.contacts[row * width + i] * work.query[i]
            logits[_TARGETS + row] = product / math.sqrt(width)


@kernel
def _choose(logits: Any, possible: Any, first: int, choices: int, share: float) -> Any:
    """The choice of a part at a share in [0, 1) of the probability of the possible ones; -1: the most probable."""
    best, others = integer(-1), 0
    for choice in range(choices):
        if possible[first + choice]:
            others += best >= 0
            if best < 0 or logits[first + choice] > logits[first + best]:
                best = choice
    if share < 0.0 or others == 0:
        return best
    highest, total = np.float64(logits[first + best]), 0.0
    for choice in range(choices):
        if possible[first + choice]:
            total += exponential(np.float64(logits[first + choice]) - highest)
    passed = 0.0
    for choice in range(choices):
        if possible[first + choice]:
            passed += exponential(np.float64(logits[first + choice]) - highest)
            if passed > share * total:
                return choice
    return best


@kernel
def _act(logits: Any, possible: Any, key: Any, number: int, mode: int, action: Any) -> None:
    """Write the action (A,) of a distribution. Parts of which nothing else is possible are neutral."""
    for i in range(len(_PARTS)):
        first, choices, entry, entries = _PARTS[i]
        share = -1.0 if mode == DETERMINISTIC else rng.random_unit(key, number, i, 0)
        choice = _choose(logits, possible, first, choices, share)
        if entries == 1:
            action[entry] = _VALUES[entry][choice]
        elif choice >= choices - entries:
            action[entry + choice - (choices - entries)] = 1.0


@entry_point
def act_by_network(
    network: Network,
    limits: Any,
    work: Workspace,
    mode: int,
    turn: Any,
    observations: Any,
    memories: Any,
    keys: Any,
    numbers: Any,
    actions: Any,
    logits: Any,
    possible: Any,
    at_once: int,
) -> None:
    """Write the actions of R mechs, the logits of their distributions, and what is possible.

    Parameters
    ----------
    network, limits, work
        See `prepare_network`.
    mode
        `SAMPLED` or `DETERMINISTIC`.
    turn, at_once
        How threads share the rows, see `turns`.
    observations
        (R, D) float32.
    memories
        (R, 2, W) float64: the LSTM's hidden and cell state, which are replaced; zeros at the start of a battle.
    keys, numbers
        (R,) uint64 and int64: key of the row's random numbers in this battle, and number of the decision, which is
        increased.
    actions
        (R, A) float32. Those of dead mechs have no effect.
    logits
        (R, CHOICES) float32 of the choices of `ALL_PARTS`. Zeros for dead mechs.
    possible
        (R, CHOICES) bool, see `mask_needs`.
    """
    rows = observations.shape[0]
    at = first_turn(turn, 0, at_once)
    while at < rows:
        for r in range(at, end_of_turn(at, rows, at_once)):
            for i in range(logits.shape[1]):
                logits[r, i] = ZERO
            for i in range(actions.shape[1]):
                actions[r, i] = ZERO
            find_conditions(limits, observations[r], work.conditions)
            for i in range(network.needs.shape[0]):
                possible[r, i] = work.conditions[network.needs[i]]
            if observations[r, Self.ALIVE] > 0.5:
                copy(observations[r], work.seen)
                _encode(network, work)
                recur(network, memories[r], work)
                _decide(network, work, logits[r])
            _act(logits[r], possible[r], keys[r], numbers[r], mode, actions[r])
            numbers[r] += 1
        at = next_turn(turn, rows, at_once)


def prepare_network(network: Network, config: BattleConfig) -> tuple[Network, NDArray[np.float32], Workspace]:
    """The first three arguments of `act_by_network` in the battles of a configuration, for one thread.

    What the configuration rules out is impossible there, whatever the network was trained in.
    """
    never = mask_needs(config.abilities.blocks_off) == Condition.NEVER
    needs = np.where(never, np.int64(Condition.NEVER), network.needs)
    return network._replace(needs=needs), action_limits(config), allocate_workspace(network)
