"""Checkpoints: weights as safetensors and a JSON that pins them; nothing on the load path can run code.

A checkpoint is a folder with two files, written whole or not at all::

    policy.safetensors   the policy's weights
    checkpoint.json      format, layouts, battle, network, SHA-256 of the weights, versions, commit, steps, maps

A run keeps its checkpoints under ``checkpoints/<steps>`` and names the newest in ``last.json``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch

from echelon_env.atomic import new_folder, write_bytes, write_json
from echelon_env.config import BattleConfig
from echelon_env.schema import ConfigError, build, to_plain
from echelon_train.config import NetworkConfig
from echelon_train.errors import CheckpointError
from echelon_train.policy import BattlePolicy, build_policy
from echelon_train.provenance import action_layout_hash, git_commit, observation_layout_hash, package_versions

FORMAT = "echelon-checkpoint"
VERSION = 2
WEIGHTS_FILE = "policy.safetensors"
JSON_FILE = "checkpoint.json"
LAST_FILE = "last.json"
MAX_JSON_BYTES = 1 << 21
MAX_WEIGHTS_BYTES = 1 << 30

_KEYS: dict[str, type | tuple[type, ...]] = {
    "format": str,
    "version": int,
    "observation_layout": str,
    "action_layout": str,
    "battle": dict,
    "network": dict,
    "weights_sha256": str,
    "weights_bytes": int,
    "steps": int,
    "opponent": str,
    "trained_maps": (list, type(None)),
    "packages": dict,
    "git_commit": (str, type(None)),
}


@dataclass(frozen=True)
class Checkpoint:
    """A policy and what it was made for."""

    policy: BattlePolicy  # on the CPU
    network: NetworkConfig
    battle: BattleConfig
    opponent: str  # that it trained against
    steps: int  # samples that it trained on
    trained_maps: frozenset[str] | None = None  # content hashes of those maps; None: every battle had a map of its own


def save_checkpoint(folder: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint into a new folder, atomically.

    Raises OSError if it cannot be written or exists already, and CheckpointError for weights that are not finite.
    """
    weights = {name: tensor.cpu().contiguous() for name, tensor in weights_of(checkpoint.policy).items()}
    _check_finite(weights)
    data = safetensors.torch.save(weights)
    document = {
        "format": FORMAT,
        "version": VERSION,
        "observation_layout": observation_layout_hash(),
        "action_layout": action_layout_hash(),
        "battle": checkpoint.battle.to_dict(),
        "network": to_plain(checkpoint.network),
        "weights_sha256": hashlib.sha256(data).hexdigest(),
        "weights_bytes": len(data),
        "steps": checkpoint.steps,
        "opponent": checkpoint.opponent,
        "trained_maps": None if checkpoint.trained_maps is None else sorted(checkpoint.trained_maps),
        "packages": package_versions(),
        "git_commit": git_commit(),
    }
    with new_folder(folder) as temporary:
        write_bytes(temporary / WEIGHTS_FILE, data)
        write_json(temporary / JSON_FILE, document)


def save_in_run(run: Path, checkpoint: Checkpoint) -> Path:
    """Write a checkpoint of a run and make it the run's last. Returns its folder; one that exists is kept."""
    folder = run / "checkpoints" / f"{checkpoint.steps:010d}"
    if not folder.exists():
        save_checkpoint(folder, checkpoint)
    write_json(run / LAST_FILE, {"checkpoint": folder.name})
    return folder


def find_checkpoint(path: Path) -> Path:
    """The checkpoint folder that a path means: itself, or the last of a run. Raises CheckpointError."""
    if (path / JSON_FILE).is_file():
        return path
    if not path.exists():
        raise CheckpointError(f"{path}: no such file or folder")
    if not (path / LAST_FILE).is_file():
        raise CheckpointError(f"{path}: neither a checkpoint (no {JSON_FILE}) nor a run that has one (no {LAST_FILE})")
    name = _read_json(path / LAST_FILE).get("checkpoint")
    if not isinstance(name, str) or Path(name).name != name or name in ("", ".", ".."):
        raise CheckpointError(f"{path / LAST_FILE}: expected the name of a checkpoint, got {name!r}")
    return path / "checkpoints" / name


def load_checkpoint(path: Path) -> Checkpoint:
    """Read the checkpoint in a folder, or the last one of a run, checking everything.

    Raises CheckpointError, with the reason, if it is missing, foreign, damaged, or made for another version.
    """
    folder = find_checkpoint(path)
    document = _read_json(folder / JSON_FILE)
    _check_document(document, folder / JSON_FILE)
    weights = _read_weights(folder / WEIGHTS_FILE, document)
    try:
        battle = BattleConfig.from_dict(document["battle"])
        network: NetworkConfig = build(NetworkConfig, document["network"], "network.")
    except ConfigError as error:
        raise CheckpointError(f"{folder / JSON_FILE}: {error}") from error
    _check_shapes(network, weights, folder / WEIGHTS_FILE)
    _check_finite(weights)
    policy = build_policy(network)
    for name, tensor in weights_of(policy).items():
        tensor.copy_(weights[name])
    policy.set_training_mode(False)
    maps = document["trained_maps"]
    trained_maps = None if maps is None else frozenset(str(content_hash) for content_hash in maps)
    return Checkpoint(policy, network, battle, document["opponent"], document["steps"], trained_maps)


def weights_of(policy: BattlePolicy) -> dict[str, torch.Tensor]:
    """The policy's parameters and buffers by name, each once although modules share some, without gradients."""
    return {name: tensor.detach() for name, tensor in (*policy.named_parameters(), *policy.named_buffers())}


def _read(path: Path, limit: int) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(limit + 1)
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read ({error.strerror or error})") from error
    if len(data) > limit:
        raise CheckpointError(f"{path}: larger than the {limit} bytes that it may have")
    return data


def _read_json(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(_read(path, MAX_JSON_BYTES))
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path}: no valid JSON ({error})") from error
    if not isinstance(document, dict):
        raise CheckpointError(f"{path}: expected a JSON object, got {type(document).__name__}")
    return document


def _check_document(document: Mapping[str, Any], path: Path) -> None:
    if document.get("format") != FORMAT:
        raise CheckpointError(f"{path}: not an Echelon checkpoint (format {document.get('format')!r})")
    if document.get("version") != VERSION:
        raise CheckpointError(f"{path}: format version {document.get('version')!r}, this release reads {VERSION}")
    for key, kind in _KEYS.items():
        if key not in document:
            raise CheckpointError(f"{path}: key {key!r} is missing")
        if not isinstance(document[key], kind) or isinstance(document[key], bool):
            raise CheckpointError(f"{path}: key {key!r} has the wrong type {type(document[key]).__name__}")
    for key, ours in (("observation_layout", observation_layout_hash()), ("action_layout", action_layout_hash())):
        if document[key] != ours:
            raise CheckpointError(
                f"{path}: {key.replace('_', ' ')} {document[key][:12]} differs from this release's {ours[:12]}"
            )


def _read_weights(path: Path, document: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    """The tensors of a file whose bytes are the ones that the document names: read once, hashed, then parsed."""
    data = _read(path, max(0, min(MAX_WEIGHTS_BYTES, document["weights_bytes"] + 1)))
    if len(data) != document["weights_bytes"]:
        raise CheckpointError(f"{path}: {len(data)} bytes instead of {document['weights_bytes']}: truncated or foreign")
    if hashlib.sha256(data).hexdigest() != document["weights_sha256"]:
        raise CheckpointError(f"{path}: SHA-256 differs from the one in {JSON_FILE}: damaged or exchanged")
    try:
        weights = safetensors.torch.load(data)
    except (safetensors.SafetensorError, ValueError, KeyError) as error:
        raise CheckpointError(f"{path}: no valid safetensors ({error})") from error
    return weights


def _check_finite(weights: Mapping[str, torch.Tensor]) -> None:
    for name, tensor in weights.items():
        if not torch.isfinite(tensor).all():
            raise CheckpointError(f"weights: {name!r} holds values that are not finite")


def _check_shapes(network: NetworkConfig, weights: Mapping[str, torch.Tensor], path: Path) -> None:
    """Compare with a policy that has shapes but no memory, so that a foreign network size costs nothing."""
    with torch.device("meta"):
        expected = weights_of(build_policy(network))
    if weights.keys() != expected.keys():
        names = sorted(weights.keys() ^ expected.keys())
        raise CheckpointError(f"{path}: missing or unknown tensors: {', '.join(names[:4])}")
    for name, tensor in expected.items():
        if weights[name].shape != tensor.shape or weights[name].dtype != tensor.dtype:
            raise CheckpointError(
                f"{path}: {name!r}: expected {tuple(tensor.shape)} {tensor.dtype}, "
                f"got {tuple(weights[name].shape)} {weights[name].dtype}"
            )
