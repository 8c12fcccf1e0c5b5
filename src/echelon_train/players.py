"""Players for evaluation: trained policies and the baselines that they are compared with, all as `opponents.Policy`.

What a player does in a battle depends on that battle alone, never on which others are played beside it: random numbers
belong to a battle, and networks run on blocks of a fixed number of battles, because a matrix product's last bits
depend on the number of its rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from echelon_env import opponents
from echelon_env.actions import ACTION_DIM, ACTION_HIGH, ACTION_LOW
from echelon_env.config import BattleConfig
from echelon_env.opponents import Policy
from echelon_env.schema import ConfigError, nearest_name
from echelon_train.checkpoint import weights_of
from echelon_train.config import NetworkConfig
from echelon_train.device import torch_threads
from echelon_train.policy import BattlePolicy, build_policy

BLOCK = 16
"""Battles in a block that a network runs on at once."""

UNTRAINED, RANDOM = "untrained", "random"
BASELINES = (RANDOM, UNTRAINED, *opponents.LEVELS)
"""Players that need no checkpoint: uniform actions, a network with random weights, the scripted levels."""

Floats = NDArray[np.float32]


class BattleNoise:
    """Random numbers for the rows of battles, each battle with a stream of its own.

    Parameters
    ----------
    seed, first, count, team_size
        The streams are those of battles `first` to `first + count - 1` of the evaluation `seed`.
    """

    def __init__(self, seed: int, first: int, count: int, team_size: int) -> None:
        self._streams = [np.random.default_rng([seed, first + k]) for k in range(count)]
        self._shape = (team_size, ACTION_DIM)

    def normal(self) -> Floats:
        """Standard normal numbers (rows, A) float32."""
        draws: Floats = np.concatenate([stream.standard_normal(self._shape, np.float32) for stream in self._streams])
        return draws

    def uniform(self) -> Floats:
        """Numbers (rows, A) float32, uniform over the actions' range."""
        draws: Floats = np.concatenate([stream.random(self._shape, np.float32) for stream in self._streams])
        return draws * np.float32(ACTION_HIGH - ACTION_LOW) + np.float32(ACTION_LOW)


class RandomPlayer:
    """Uniformly random actions."""

    def __init__(self, noise: BattleNoise) -> None:
        self._noise = noise

    def reset(self, mask: NDArray[np.bool_]) -> None:
        """Nothing is remembered of the rows (R,)."""

    def act(self, observations: Floats) -> Floats:
        """Actions (R, A) float32, whatever the observations (R, D)."""
        return self._noise.uniform()


class NetworkPlayer:
    """A recurrent policy in evaluation and inference mode, on the CPU, on one thread.

    Parameters
    ----------
    policy
        Any `BattlePolicy`; its weights are copied, so that training it further changes nothing here.
    network
        The policy's network configuration.
    team_size
        Rows of a battle.
    noise
        What actions are sampled with; None plays the mode of the action distribution.
    """

    def __init__(
        self, policy: BattlePolicy, network: NetworkConfig, team_size: int, noise: BattleNoise | None = None
    ) -> None:
        self._policy = build_policy(network)
        for name, tensor in weights_of(self._policy).items():
            tensor.copy_(weights_of(policy)[name])
        self._policy.set_training_mode(False)
        self._block_rows = BLOCK * team_size
        self._noise = noise
        self._starts = np.zeros(0, np.bool_)
        self._states: list[tuple[torch.Tensor, torch.Tensor]] = []

    def reset(self, mask: NDArray[np.bool_]) -> None:
        """Forget the rows (R,) where the mask is true."""
        blocks = -(-len(mask) // self._block_rows)
        if len(self._states) != blocks:
            shape = (self._policy.lstm_actor.num_layers, self._block_rows, self._policy.lstm_actor.hidden_size)
            self._states = [(torch.zeros(shape), torch.zeros(shape)) for _ in range(blocks)]
            self._starts = np.zeros(blocks * self._block_rows, np.bool_)
        self._starts[: len(mask)] |= mask

    def act(self, observations: Floats) -> Floats:
        """Actions (R, A) float32 in [-1, 1] for observations (R, D) float32."""
        padded = np.zeros((len(self._starts), observations.shape[1]), np.float32)
        padded[: len(observations)] = observations
        with torch_threads(1), torch.inference_mode():  # one: the bits shall not depend on the machine's cores
            means = np.concatenate([self._block_means(i, padded) for i in range(len(self._states))])
        self._starts[:] = False
        actions: Floats = means[: len(observations)]
        if self._noise is not None:
            actions = actions + self._noise.normal() * self._policy.log_std.detach().exp().numpy()
        clipped: Floats = np.clip(actions, ACTION_LOW, ACTION_HIGH, dtype=np.float32)
        return clipped

    def _block_means(self, index: int, observations: Floats) -> Floats:
        rows = slice(index * self._block_rows, (index + 1) * self._block_rows)
        distribution, self._states[index] = self._policy.get_distribution(
            torch.from_numpy(observations[rows]),
            self._states[index],
            torch.from_numpy(self._starts[rows].astype(np.float32)),
        )
        means: Floats = distribution.mode().numpy()
        return means


@dataclass(frozen=True)
class Contender:
    """A player to be evaluated: what to call it, how it chooses its actions, and how to make it for given battles."""

    name: str
    action_mode: str  # "sampled" or "deterministic" for networks, else "scripted" or "uniform"
    make: Callable[[BattleNoise], Policy]


def network_contender(
    name: str, policy: BattlePolicy, network: NetworkConfig, config: BattleConfig, *, deterministic: bool = False
) -> Contender:
    """A recurrent policy as a contender in battles of `config`, with the weights that it has when it is made.

    It samples its actions, as in training, or plays the distribution's mode if it is to be deterministic.
    """

    def make(noise: BattleNoise) -> Policy:
        return NetworkPlayer(policy, network, len(config.blue), None if deterministic else noise)

    return Contender(name, "deterministic" if deterministic else "sampled", make)


def baseline_contender(name: str, config: BattleConfig, seed: int = 0, *, deterministic: bool = False) -> Contender:
    """One of `BASELINES` as a contender; `seed` draws the untrained network's weights and the scripted levels' choices.

    Raises ConfigError for an unknown name.
    """
    if name not in BASELINES:
        raise ConfigError(f"unknown player {name!r}{nearest_name(name, BASELINES)}")
    if name == RANDOM:
        return Contender(name, "uniform", RandomPlayer)
    if name == UNTRAINED:
        network = NetworkConfig()
        return network_contender(name, build_policy(network, seed), network, config, deterministic=deterministic)
    return Contender(name, "scripted", lambda _: opponents.make(name, seed, config))
