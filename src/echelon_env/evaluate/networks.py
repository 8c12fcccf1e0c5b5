"""Trained policies as players. They need no PyTorch: a kernel computes the forward pass, see `echelon_env.networks`."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echelon_env.config.battle import BattleConfig
from echelon_env.engine.workers import SharedKernel
from echelon_env.evaluate.players import ACTION_MODES, BASELINES, ActionMode, BattleNoise, Player, check_action_mode
from echelon_env.layout.actions import ACTION_DIM
from echelon_env.layout.parts import CHOICES
from echelon_env.networks.checkpoint import errors_in, find_checkpoint, read_checkpoint
from echelon_env.networks.config import NetworkConfig
from echelon_env.networks.forward import act_by_network, prepare_network
from echelon_env.networks.weights import CheckpointError, Network, load_network
from echelon_env.opponents.policy import check_observations

UNTRAINED = "untrained"
"""Name of a player with random weights, which the trainer adds."""

WAKE = 2
"""Rows that take as long as waking a thread does."""

Floats = NDArray[np.float32]


class NetworkPolicy:
    """A recurrent policy in battles. The actions of a mech depend on its own observations and its battle's seed only.

    The actions that the battles' configuration rules out are ruled out, whatever the policy was trained in.
    """

    def __init__(
        self, network: Network, config: BattleConfig, noise: BattleNoise, *, action_mode: ActionMode = "sampled"
    ) -> None:
        mode = ACTION_MODES.index(check_action_mode(action_mode))

        def bind(turn: NDArray[np.int64]) -> Callable[..., None]:
            return act_by_network.bind(*prepare_network(network, config), mode, turn)

        self._act = SharedKernel(bind, noise.num_threads, WAKE)
        self._noise = noise
        rows = len(noise.seeds) * noise.team_size
        self._begins = np.ones(rows, np.bool_)
        self._memories = np.zeros((rows, 2, network.gain.size))
        self._keys, self._numbers = np.zeros(rows, np.uint64), np.zeros(rows, np.int64)
        self.logits = np.zeros((rows, CHOICES), np.float32)
        """Logits (R, CHOICES) of the last actions' distributions, see `act_by_network`."""
        self.possible = np.zeros((rows, CHOICES), np.bool_)
        """What was possible, (R, CHOICES), see `mask_needs`."""

    def reset(self, mask: NDArray[np.bool_]) -> None:
        """Reset the memories of the rows in `mask` (R,). Raises ValueError for another number of rows."""
        if mask.shape != self._begins.shape:
            raise ValueError(f"mask: expected shape {self._begins.shape}, got {mask.shape}")
        self._begins |= mask

    def act(self, observations: Floats) -> Floats:
        """Actions (R, A) float32 in [-1, 1] for observations (R, D) float32. Raises ValueError for another shape."""
        check_observations(observations, len(self._keys))
        if self._begins.any():
            self._begin()
        rows = np.array(observations, np.float32, order="C")
        actions = np.zeros((len(self._keys), ACTION_DIM), np.float32)
        self._act(rows, self._memories, self._keys, self._numbers, actions, self.logits, self.possible)
        return actions

    def close(self) -> None:
        """Stop the threads. Later calls run in the caller's thread."""
        self._act.close()

    def _begin(self) -> None:
        """Clear the memories of the rows whose battle begins, and draw new keys for them."""
        team = self._noise.team_size
        for stream, first in zip(self._noise.streams, range(0, len(self._keys), team), strict=True):
            begins = self._begins[first : first + team]
            if begins.any():
                keys = stream.integers(0, 2**64, team, np.uint64)
                self._keys[first : first + team][begins] = keys[begins]
        self._memories[self._begins] = 0.0
        self._numbers[self._begins] = 0
        self._begins[:] = False


@dataclass(frozen=True)
class PolicyFactory:
    """Makes policies of one network. Factories with equal weights are equal, even if they were loaded twice."""

    network: Network = field(compare=False)
    weights_sha256: str  # of all that `network` holds
    action_mode: ActionMode

    def __call__(self, config: BattleConfig, noise: BattleNoise) -> NetworkPolicy:
        """A policy for the noise's battles."""
        return NetworkPolicy(self.network, config, noise, action_mode=self.action_mode)


def _switches(network: NetworkConfig) -> dict[str, str]:
    """The settings of a policy that its weights do not show, where they are not the usual ones: "true" or "false"."""
    usual = NetworkConfig()
    names = ("memory", "communicate")
    settings = {name: getattr(network, name) for name in names}
    return {name: str(each).lower() for name, each in settings.items() if each != getattr(usual, name)}


def network_player(
    name: str,
    config: NetworkConfig,
    tensors: Mapping[str, NDArray[Any]],
    *,
    action_mode: ActionMode = "sampled",
    battle: BattleConfig | None = None,
    trained_maps: frozenset[str] | None = None,
    identity: Mapping[str, str | int] | None = None,
) -> Player:
    """A player with a network's weights: tensors by the names of PyTorch's modules, which are copied.

    The other arguments are those of `Player`. Raises CheckpointError if a tensor is missing, or has another shape or
    dtype, and ConfigError for an unknown action mode.
    """
    check_action_mode(action_mode)
    network = load_network(config, tensors)
    digest = hashlib.sha256()
    for value in _leaves(network):
        digest.update(np.asarray(value).tobytes())
    factory = PolicyFactory(network, digest.hexdigest(), action_mode)
    return Player(name, action_mode, factory, battle, trained_maps, identity or {})


def _leaves(values: Any) -> Iterator[Any]:
    """The arrays and numbers in tuples."""
    for value in values:
        yield from _leaves(value) if isinstance(value, tuple) else (value,)


def checkpoint_player(path: str | Path, *, name: str | None = None, action_mode: ActionMode = "sampled") -> Player:
    """A player with the policy of a checkpoint.

    `path` is the folder of a checkpoint or of a run, for its last checkpoint, or ``runs/x/best`` for its best one. The
    player's name is `name`, by default the path as given. Its identity has the name of the checkpoint's folder
    ("checkpoint"), "steps", and the SHA-256 of the weights' file ("weights_sha256").

    Raises CheckpointError, with the reason, for a missing or damaged checkpoint, and for a name that is that of
    another player. Pass a folder with such a name as ``"./novice"``, not as a `Path`, which drops the dot.
    """
    name = os.fspath(path) if name is None else name
    if name in (*BASELINES, UNTRAINED):
        raise CheckpointError(f"{name}: is the name of another player; for the folder write './{name}'")
    folder = find_checkpoint(Path(path))
    stored = read_checkpoint(folder)
    with errors_in(folder):
        return network_player(
            name,
            stored.network,
            stored.tensors,
            action_mode=action_mode,
            battle=stored.battle,
            trained_maps=stored.trained_maps,
            identity={
                "checkpoint": folder.resolve().name,
                "steps": stored.steps,
                "weights_sha256": stored.weights_sha256,
                **_switches(stored.network),
            },
        )
