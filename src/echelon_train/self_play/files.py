"""Files of past policies: a list of the members, and the weights of each. Reading executes nothing.

A folder has ``pool.json`` (format, version, members with the learner's last results against them, oldest first) and
``<member>.safetensors``: the policy's weights and the normaliser of its observations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.torch
import torch

from echelon_env.networks.checkpoint import errors_in
from echelon_env.networks.weights import CheckpointError
from echelon_env.storage.atomic import write_bytes, write_json
from echelon_env.storage.reading import parse_json, read_regular_file
from echelon_train.opponents.actor import Actor
from echelon_train.self_play.past_policies import NAME
from echelon_train.tensor_files import check_finite, check_shapes, parse_tensors, part_of, weights_of

POOL_FILE = "pool.json"
FORMAT, VERSION = "echelon-self-play", 1
MAX_WEIGHTS_BYTES = 1 << 30
"""Of a member's file."""
MAX_POOL_BYTES = 1 << 24
"""Of the list of the members."""
MAX_MEMBERS = 10_000
_WEIGHTS, _NORMALISER = "policy.", "observations."


@dataclass(frozen=True)
class Pool:
    """The list of the members."""

    results: Mapping[str, Sequence[int]]
    """The learner's last results against each member, oldest member first: 1 win, 0 draw, -1 loss."""
    recent: Sequence[int]
    """Its results since the last member joined."""


def write_pool(folder: Path, members: Mapping[str, Actor], pool: Pool, kept: Set[str]) -> None:
    """Write the members but those that are `kept` in a folder already, then the list of all, and remove other members.

    Raises OSError.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, member in members.items():
        if name not in kept:
            write_bytes(folder / f"{name}.safetensors", safetensors.torch.save(_tensors(member)))
    document = {"format": FORMAT, "version": VERSION, "members": dict(pool.results), "recent": pool.recent}
    write_json(folder / POOL_FILE, document)
    for file in folder.glob("*.safetensors"):
        if NAME.fullmatch(file.stem) and file.stem not in members:
            file.unlink()


def read_pool(folder: Path) -> Pool:
    """The list of the members in a folder. Raises CheckpointError, with the reason, and OSError."""
    path = folder / POOL_FILE
    try:
        document = parse_json(read_regular_file(path, MAX_POOL_BYTES))
    except ValueError as error:
        raise CheckpointError(f"{path}: not valid JSON: {error}") from None
    if not isinstance(document, dict) or (document.get("format"), document.get("version")) != (FORMAT, VERSION):
        raise CheckpointError(f"{path}: expected the members of a self-play, version {VERSION}")
    members, recent = document.get("members"), document.get("recent")
    if not isinstance(members, dict) or not 1 <= len(members) <= MAX_MEMBERS:
        raise CheckpointError(f"{path}: members: expected 1 to {MAX_MEMBERS:,}")
    if not all(NAME.fullmatch(name) and _are_results(results) for name, results in members.items()):
        raise CheckpointError(f"{path}: members: expected numbers of steps with results of -1, 0 and 1")
    if list(members) != sorted(members, key=int):
        raise CheckpointError(f"{path}: members: expected the oldest first")
    if not isinstance(recent, list) or not _are_results(recent):
        raise CheckpointError(f"{path}: recent: expected results of -1, 0 and 1")
    return Pool(members, recent)


def read_member(folder: Path, name: str, member: Actor) -> None:
    """Read a member's file into a policy of the same shape. Raises CheckpointError, with the reason, and OSError."""
    path = folder / f"{name}.safetensors"
    try:
        tensors = parse_tensors(read_regular_file(path, MAX_WEIGHTS_BYTES), path)
    except CheckpointError:
        raise
    except ValueError as error:
        raise CheckpointError(f"{path}: {error}") from None
    weights, normaliser = part_of(tensors, _WEIGHTS), part_of(tensors, _NORMALISER)
    check_shapes(member.policy, weights, path)
    with errors_in(path):
        check_finite(weights)
    if any(tensor.dtype not in (torch.float32, torch.float64) for tensor in normaliser.values()):
        raise CheckpointError(f"{path}: expected a normaliser of floats")
    arrays = {key: tensor.numpy() for key, tensor in normaliser.items()}
    own = member.normalization
    assert own is not None
    shapes = {"mean": own.mean.shape, "scale": own.scale.shape, "clip": (1,)}
    if {key: array.shape for key, array in arrays.items()} != shapes:
        raise CheckpointError(f"{path}: expected a normaliser of {len(own.mean)} observations")
    if not np.isfinite(arrays["mean"]).all() or not np.isfinite(arrays["scale"]).all() or not arrays["clip"][0] > 0:
        raise CheckpointError(f"{path}: expected a normaliser of finite numbers")
    with torch.no_grad():
        for key, tensor in weights_of(member.policy).items():
            tensor.copy_(weights[key])
    own.mean, own.scale = arrays["mean"].astype(np.float32), arrays["scale"].astype(np.float32)
    own.clip = float(arrays["clip"][0])


def _tensors(member: Actor) -> dict[str, torch.Tensor]:
    own = member.normalization
    assert own is not None
    normaliser = {"mean": own.mean, "scale": own.scale, "clip": np.array([own.clip])}
    tensors = {f"{_NORMALISER}{name}": torch.from_numpy(array) for name, array in normaliser.items()}
    weights = weights_of(member.policy)
    return tensors | {f"{_WEIGHTS}{name}": tensor.cpu().contiguous() for name, tensor in weights.items()}


def _are_results(values: Any) -> bool:
    return isinstance(values, list) and all(type(value) is int and -1 <= value <= 1 for value in values)
