"""Trained policies as players for evaluation.

What a player does in a battle must depend on that battle alone, never on which others are played beside it. The last
bits of a matrix product depend on the number of its rows and, for some sizes, on a row's place among them. So networks
run on blocks of a fixed number of battles, in which a battle has the place that its seed says.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import safetensors.torch
import torch
from numpy.typing import NDArray

from echelon_env.config.battle import BattleConfig
from echelon_env.evaluate import BASELINES, BattleNoise, Player
from echelon_env.layout.actions import ACTION_DIM
from echelon_env.layout.observations import OBSERVATION_DIM
from echelon_train.checkpoints.checkpoint import WEIGHTS_FILE, find_checkpoint, load_checkpoint
from echelon_train.config.train import NetworkConfig
from echelon_train.errors import CheckpointError
from echelon_train.policy import BattlePolicy, build_policy
from echelon_train.policy.distributions import RAW_DIM, environment_actions
from echelon_train.policy.encoders import SetEncoder
from echelon_train.tensor_files import weights_of
from echelon_train.threads import torch_threads

BLOCK = 16
"""Battles in a block that a network runs on at once."""

UNTRAINED = "untrained"

Floats = NDArray[np.float32]


class NetworkPlayer:
    """A recurrent policy in evaluation and inference mode, on the CPU, on one thread.

    Parameters
    ----------
    policy
        A policy in evaluation mode on the CPU; it is only read.
    noise
        The battles, and what actions are sampled with.
    deterministic
        Whether to play the mode of the action distribution instead.
    """

    def __init__(self, policy: BattlePolicy, noise: BattleNoise, *, deterministic: bool = False) -> None:
        self._policy = policy
        self._noise = None if deterministic else noise
        self._rows = _rows_in_blocks(noise)
        block_rows = BLOCK * noise.team_size
        blocks = int(self._rows.max()) // block_rows + 1
        self._observations = torch.zeros(blocks, block_rows, OBSERVATION_DIM)
        self._draws = torch.zeros(blocks, block_rows, ACTION_DIM)
        self._starts = torch.zeros(blocks, block_rows)
        shape = (policy.lstm_actor.num_layers, block_rows, policy.lstm_actor.hidden_size)
        self._states = [(torch.zeros(shape), torch.zeros(shape)) for _ in range(blocks)]

    def reset(self, mask: NDArray[np.bool_]) -> None:
        """Forget the rows (R,) where the mask is true. Raises ValueError for another number of rows."""
        if mask.shape != self._rows.shape:
            raise ValueError(f"mask: expected shape {self._rows.shape}, got {mask.shape}")
        self._starts.view(-1).numpy()[self._rows[mask]] = 1.0

    def act(self, observations: Floats) -> Floats:
        """Actions (R, A) float32 in [-1, 1] for observations (R, D) float32."""
        self._observations.view(-1, OBSERVATION_DIM).numpy()[self._rows] = observations
        if self._noise is not None:
            self._draws.view(-1, ACTION_DIM).numpy()[self._rows] = self._noise.normal()
        with torch_threads(1), torch.inference_mode():  # one: the bits must not depend on the machine's cores
            raw = torch.cat([self._act_in_block(block) for block in range(len(self._states))])
            actions: Floats = environment_actions(raw).numpy()[self._rows]
        self._starts.zero_()
        return actions

    def _act_in_block(self, block: int) -> torch.Tensor:
        distribution, self._states[block] = self._policy.get_distribution(
            self._observations[block], self._states[block], self._starts[block]
        )
        return distribution.mode() if self._noise is None else distribution.sample(self._draws[block, :, :RAW_DIM])


def _rows_in_blocks(noise: BattleNoise) -> NDArray[np.intp]:
    """Where the rows (R,) of the battles are in the blocks, one after the other."""
    filled: Counter[int] = Counter()
    first_rows = []
    for seed in noise.seeds:
        place = seed % BLOCK
        first_rows.append((filled[place] * BLOCK + place) * noise.team_size)
        filled[place] += 1
    rows: NDArray[np.intp] = (np.array(first_rows, np.intp)[:, None] + np.arange(noise.team_size)).ravel()
    return rows


@dataclass(frozen=True)
class _Network:
    """Makes players of a policy; equal to another that makes the same ones, for one may have been loaded twice."""

    policy: BattlePolicy = field(compare=False)
    weights_sha256: str  # of all that the policy consists of
    deterministic: bool

    def __call__(self, config: BattleConfig, noise: BattleNoise) -> NetworkPlayer:
        return NetworkPlayer(self.policy, noise, deterministic=self.deterministic)


def network_player(
    name: str,
    policy: BattlePolicy,
    network: NetworkConfig,
    *,
    deterministic: bool = False,
    battle: BattleConfig | None = None,
    trained_maps: frozenset[str] | None = None,
    identity: Mapping[str, str | int] | None = None,
) -> Player:
    """A recurrent policy as a player, with a copy of the weights that it has now.

    Parameters
    ----------
    name
        What to call it.
    policy
        Any `BattlePolicy`; it may be in training.
    network
        Its network configuration.
    deterministic
        Whether it plays the mode of the action distribution; otherwise it samples, as in training.
    battle
        What it was trained on, if it was.
    trained_maps
        Content hashes of the maps that it trained on, if they are known.
    identity
        Distinguishes players of the same name, see `Player.identity`.
    """
    frozen = build_policy(network)
    present = weights_of(policy)
    for weight, tensor in weights_of(frozen).items():
        tensor.copy_(present[weight])
    frozen.set_training_mode(False)
    for module in frozen.modules():
        if isinstance(module, SetEncoder):
            module.dense = True  # else a row's place among the filled ones would hang on the battles beside it
    weights = {weight: tensor.contiguous() for weight, tensor in weights_of(frozen).items()}
    digest = hashlib.sha256(safetensors.torch.save(weights)).hexdigest()
    return Player(
        name,
        "deterministic" if deterministic else "sampled",
        _Network(frozen, digest, deterministic),
        battle,
        trained_maps,
        identity or {},
    )


def untrained_player(seed: int = 0, *, deterministic: bool = False) -> Player:
    """A network with random weights, which follow from the seed."""
    network = NetworkConfig()
    return network_player(UNTRAINED, build_policy(network, seed), network, deterministic=deterministic)


def checkpoint_player(path: str | Path, *, deterministic: bool = False) -> Player:
    """The policy of a checkpoint, by its folder; of a run's last one, by the run's; of its best one by ``runs/x/best``.

    It is called what the path is, as typed.

    Its identity is the name of the checkpoint's folder ("checkpoint"), "steps", and the SHA-256 of the file of its
    weights ("weights_sha256").

    Raises CheckpointError, with the reason, for a folder that has none or a damaged one, and for a path that is the
    name of another player; ``"./novice"`` is none, but a `Path` does not keep the dot.
    """
    name = os.fspath(path)
    if name in (*BASELINES, UNTRAINED):
        raise CheckpointError(f"{name}: is the name of another player; for the folder write './{name}'")
    folder = find_checkpoint(Path(path))
    checkpoint = load_checkpoint(folder)
    weights = hashlib.sha256((folder / WEIGHTS_FILE).read_bytes()).hexdigest()
    return network_player(
        name,
        checkpoint.policy,
        checkpoint.network,
        deterministic=deterministic,
        battle=checkpoint.battle,
        trained_maps=checkpoint.trained_maps,
        identity={"checkpoint": folder.resolve().name, "steps": checkpoint.steps, "weights_sha256": weights},
    )
