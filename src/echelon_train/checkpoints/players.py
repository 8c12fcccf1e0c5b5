"""Trained policies as players for evaluation.

A player's actions in a battle must not depend on the other battles of the batch, not even in the last bit. The last
bits of a matrix product depend on the number of rows and, for some sizes, on a row's position. So networks run on
blocks of a fixed number of battles, and a battle's seed determines its position in a block.
"""

from __future__ import annotations

import copy
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
from echelon_env.evaluate import BASELINES, ActionMode, BattleNoise, Player
from echelon_env.evaluate.players import check_action_mode
from echelon_env.layout.actions import ACTION_DIM
from echelon_env.layout.observations import OBSERVATION_DIM
from echelon_train.checkpoints.checkpoint import WEIGHTS_FILE, find_checkpoint, load_checkpoint
from echelon_train.config.train import NetworkConfig
from echelon_train.errors import CheckpointError
from echelon_train.policy import BattlePolicy, build_policy
from echelon_train.policy.encoders import SetEncoder
from echelon_train.policy.raw_actions import RAW_DIM, environment_actions
from echelon_train.tensor_files import weights_of
from echelon_train.threads import torch_threads

BLOCK = 16
"""Battles in a block."""

UNTRAINED = "untrained"

Floats = NDArray[np.float32]


class NetworkPlayer:
    """A player with a recurrent policy, which runs in inference mode on one CPU thread.

    Parameters
    ----------
    policy
        A policy in evaluation mode on the CPU; it is not modified.
    noise
        The battles, and the noise that actions are sampled with.
    action_mode
        How it acts.
    """

    def __init__(self, policy: BattlePolicy, noise: BattleNoise, *, action_mode: ActionMode = "sampled") -> None:
        self._policy = policy
        self._noise = noise
        self._action_mode = action_mode
        self._rows = _rows_in_blocks(noise)
        block_rows = BLOCK * noise.team_size
        blocks = int(self._rows.max()) // block_rows + 1
        self._observations = torch.zeros(blocks, block_rows, OBSERVATION_DIM)
        self._draws = torch.zeros(blocks, block_rows, ACTION_DIM)
        self._starts = torch.zeros(blocks, block_rows)
        shape = (policy.lstm_actor.num_layers, block_rows, policy.lstm_actor.hidden_size)
        self._states = [(torch.zeros(shape), torch.zeros(shape)) for _ in range(blocks)]

    def reset(self, mask: NDArray[np.bool_]) -> None:
        """Reset the recurrent states of the rows in `mask` (R,). Raises ValueError for another number of rows."""
        if mask.shape != self._rows.shape:
            raise ValueError(f"mask: expected shape {self._rows.shape}, got {mask.shape}")
        self._starts.view(-1).numpy()[self._rows[mask]] = 1.0

    def act(self, observations: Floats) -> Floats:
        """Actions (R, A) float32 in [-1, 1] for observations (R, D) float32."""
        self._observations.view(-1, OBSERVATION_DIM).numpy()[self._rows] = observations
        if self._action_mode != "deterministic":
            self._draws.view(-1, ACTION_DIM).numpy()[self._rows] = self._noise.normal()
        with torch_threads(1), torch.inference_mode():  # one thread: results must not depend on the number of cores
            raw = torch.cat([self._act_in_block(block) for block in range(len(self._states))])
            actions: Floats = environment_actions(raw).numpy()[self._rows]
        self._starts.zero_()
        return actions

    def _act_in_block(self, block: int) -> torch.Tensor:
        distribution, self._states[block] = self._policy.get_distribution(
            self._observations[block], self._states[block], self._starts[block]
        )
        if self._action_mode == "deterministic":
            return distribution.mode()
        act = distribution.mixed if self._action_mode == "mixed" else distribution.sample
        return act(self._draws[block, :, :RAW_DIM])


def _rows_in_blocks(noise: BattleNoise) -> NDArray[np.intp]:
    """(R,): indices of the battles' rows in the concatenated blocks."""
    filled: Counter[int] = Counter()
    first_rows = []
    for seed in noise.seeds:
        place = seed % BLOCK
        first_rows.append((filled[place] * BLOCK + place) * noise.team_size)
        filled[place] += 1
    rows: NDArray[np.intp] = (np.array(first_rows, np.intp)[:, None] + np.arange(noise.team_size)).ravel()
    return rows


@dataclass(frozen=True)
class _PlayerFactory:
    """Creates players of a policy. Factories with equal weights are equal, even if the policy was loaded twice.

    The actions that a player rules out are those of its own battle, whichever one the policy was trained in.
    """

    policy: BattlePolicy = field(compare=False)
    weights_sha256: str  # of all parameters and buffers
    action_mode: ActionMode

    def __call__(self, config: BattleConfig, noise: BattleNoise) -> NetworkPlayer:
        policy = copy.deepcopy(self.policy)  # others may play it in another battle meanwhile
        policy.set_battle(config)
        return NetworkPlayer(policy, noise, action_mode=self.action_mode)


def network_player(
    name: str,
    policy: BattlePolicy,
    network: NetworkConfig,
    *,
    action_mode: ActionMode = "sampled",
    battle: BattleConfig | None = None,
    trained_maps: frozenset[str] | None = None,
    identity: Mapping[str, str | int] | None = None,
) -> Player:
    """A player with a copy of a policy's current weights.

    Parameters
    ----------
    name
        The player's name.
    policy
        Any `BattlePolicy`; it may be in training.
    network
        Its network configuration.
    action_mode
        How it acts; in training it samples.
    battle
        The battle that it was trained on, if any.
    trained_maps
        Content hashes of the maps that it was trained on, if known.
    identity
        Distinguishes players of the same name, see `Player.identity`.

    Raises
    ------
    ConfigError
        For an unknown action mode.
    """
    check_action_mode(action_mode)
    frozen = build_policy(network)
    current = weights_of(policy)
    for weight, tensor in weights_of(frozen).items():
        tensor.copy_(current[weight])
    frozen.set_training_mode(False)
    for module in frozen.modules():
        if isinstance(module, SetEncoder):
            module.dense = True  # sparse encoding would depend on the other battles in the block
    weights = {weight: tensor.contiguous() for weight, tensor in weights_of(frozen).items()}
    digest = hashlib.sha256(safetensors.torch.save(weights)).hexdigest()
    return Player(
        name,
        action_mode,
        _PlayerFactory(frozen, digest, action_mode),
        battle,
        trained_maps,
        identity or {},
    )


def untrained_player(seed: int = 0, *, action_mode: ActionMode = "sampled") -> Player:
    """A player with random weights, which the seed determines."""
    network = NetworkConfig()
    return network_player(UNTRAINED, build_policy(network, seed), network, action_mode=action_mode)


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
    checkpoint = load_checkpoint(folder)
    weights = hashlib.sha256((folder / WEIGHTS_FILE).read_bytes()).hexdigest()
    return network_player(
        name,
        checkpoint.policy,
        checkpoint.network,
        action_mode=action_mode,
        battle=checkpoint.battle,
        trained_maps=checkpoint.trained_maps,
        identity={"checkpoint": folder.resolve().name, "steps": checkpoint.steps, "weights_sha256": weights},
    )
