"""Checkpoints: weights as safetensors files, and a JSON file with their checksums. Loading them cannot run code.

A checkpoint is a folder, written atomically::

    policy.safetensors     the policy's weights and normalisers
    training.safetensors   the rest of the run's state: optimizer, environment, random number generators
    checkpoint.json        format, layouts, battle, network, SHA-256 of the files, versions, commit, steps, maps

The checkpoints of a run are ``checkpoints/<steps>``. ``last.json`` names the newest, ``best.json`` the one with the
best evaluation. Only the newest has a ``training.safetensors``, because that file is large.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
import torch

from echelon_env.config.battle import BattleConfig
from echelon_env.config.schema import ConfigError, build, to_plain
from echelon_env.storage.atomic import free_path, new_folder, write_bytes, write_json
from echelon_train.checkpoints.provenance import (
    action_layout_hash,
    git_commit,
    observation_layout_hash,
    package_versions,
)
from echelon_train.config.train import NetworkConfig
from echelon_train.errors import CheckpointError
from echelon_train.policy import BattlePolicy, build_policy
from echelon_train.ppo.normalize import ReturnNormalizer
from echelon_train.tensor_files import check_finite, check_shapes, parse_tensors, read_file
from echelon_train.tensor_files import weights_of as weights_of

FORMAT = "echelon-checkpoint"
VERSION = 3
WEIGHTS_FILE = "policy.safetensors"
TRAINING_FILE = "training.safetensors"
JSON_FILE = "checkpoint.json"
LAST_FILE = "last.json"
BEST_FILE = "best.json"
MAX_JSON_BYTES = 1 << 26
MAX_WEIGHTS_BYTES = 1 << 30
MAX_TRAINING_BYTES = 1 << 36

_NORMALIZER = "return_normalizer."
_OWN = re.compile(r"\d{10,}")  # `checkpoint_name`
_INCOMPLETE = re.compile(rf"\.{_OWN.pattern}\..{{8}}")  # of `new_folder`

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
    "training": (dict, type(None)),
    "packages": dict,
    "git_commit": (str, type(None)),
}


@dataclass(frozen=True)
class Checkpoint:
    """A policy, and how it was trained."""

    policy: BattlePolicy  # on the CPU
    network: NetworkConfig
    battle: BattleConfig
    opponent: str  # the opponent that it trained against
    steps: int  # samples that it was trained on
    trained_maps: frozenset[str] | None = None  # content hashes of its maps; None: every battle had a new map


@dataclass(frozen=True)
class TrainingState:
    """The state of a run except the policy, for resuming it."""

    tensors: Mapping[str, torch.Tensor]
    values: Mapping[str, Any]  # JSON values


def save_checkpoint(folder: Path, checkpoint: Checkpoint, training: TrainingState | None = None) -> None:
    """Write a checkpoint to a new folder, atomically. Without a training state a run cannot resume from it.

    Raises OSError if it cannot be written or exists already, and CheckpointError for weights that are not finite and
    for files too large to be loaded again.
    """
    weights = {name: tensor.cpu().contiguous() for name, tensor in weights_of(checkpoint.policy).items()}
    check_finite(weights)
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
        "training": None,
        "packages": package_versions(),
        "git_commit": git_commit(),
    }
    with new_folder(folder) as temporary:
        write_bytes(temporary / WEIGHTS_FILE, data)
        if training is not None:
            state = safetensors.torch.save(dict(training.tensors))
            write_bytes(temporary / TRAINING_FILE, state)
            checksum = {"sha256": hashlib.sha256(state).hexdigest(), "bytes": len(state)}
            document["training"] = {**checksum, "values": dict(training.values)}
        write_json(temporary / JSON_FILE, document)
        limits = {WEIGHTS_FILE: MAX_WEIGHTS_BYTES, TRAINING_FILE: MAX_TRAINING_BYTES, JSON_FILE: MAX_JSON_BYTES}
        for name in (file.name for file in temporary.iterdir()):
            limit = limits[name]
            if (temporary / name).stat().st_size > limit:
                raise CheckpointError(f"{name}: would be larger than the {limit} bytes that can be loaded")


def save_in_run(run: Path, checkpoint: Checkpoint, training: TrainingState | None = None) -> Path:
    """Write a checkpoint of a run and make it the run's last. Returns its folder.

    If the run's last checkpoint has the same number of steps, it is kept. Otherwise its training state is deleted
    afterwards, and what a killed process has left. What else has the new checkpoint's name gets another one; no other
    file is touched. Raises like `save_checkpoint`, and CheckpointError for a damaged ``last.json``.
    """
    folder = run / "checkpoints" / checkpoint_name(checkpoint.steps)
    last = _named_checkpoint(run / LAST_FILE) if (run / LAST_FILE).exists() else None
    if last == folder:
        return folder
    if (
        folder / JSON_FILE
    ).is_file():  # the run was killed before it wrote last.json; it may have continued differently
        shutil.rmtree(folder)
    elif folder.exists() or folder.is_symlink():
        folder.rename(free_path(folder.with_name(f"{folder.name}.foreign")))
    save_checkpoint(folder, checkpoint, training)
    write_json(run / LAST_FILE, {"checkpoint": folder.name})
    if last:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):  # its folder is the user's to move
            (last / TRAINING_FILE).unlink()
    for entry in folder.parent.iterdir():
        if _INCOMPLETE.fullmatch(entry.name) and entry.is_dir() and not entry.is_symlink():  # the run was killed
            shutil.rmtree(entry)
    return folder


def has_checkpoint(run: Path) -> bool:
    """Whether a run has a checkpoint to resume from; a run that was killed before its first one restarts."""
    later = (each for each in (run / "checkpoints").glob(f"*/{JSON_FILE}") if _OWN.fullmatch(each.parent.name))
    return (run / LAST_FILE).exists() or any(each.parent != first_checkpoint(run) for each in later)


def checkpoint_name(steps: int) -> str:
    """The name of the folder of a run's checkpoint."""
    return f"{steps:010d}"


def first_checkpoint(run: Path) -> Path:
    """The folder of a run's first checkpoint, with its initial weights."""
    return run / "checkpoints" / checkpoint_name(0)


def find_checkpoint(path: Path) -> Path:
    """The checkpoint folder that a path refers to: the folder itself, or the last checkpoint of a run.

    ``runs/x/best`` and ``runs/x/last``, also with the suffix ``.json``, are the run's best and last checkpoint. Raises
    CheckpointError if there is none.
    """
    for name in (LAST_FILE, BEST_FILE):
        file = path.absolute().with_name(name)
        if path.name in (name, Path(name).stem) and file.is_file():
            return _named_checkpoint(file)
    if (path / JSON_FILE).is_file():
        return path
    if not path.exists():
        raise CheckpointError(f"{path}: no such file or folder")
    if not (path / LAST_FILE).is_file():
        raise CheckpointError(f"{path}: neither a checkpoint (no {JSON_FILE}) nor a run with one (no {LAST_FILE})")
    return _named_checkpoint(path / LAST_FILE)


def _named_checkpoint(file: Path) -> Path:
    """The checkpoint named in a run's ``last.json`` or ``best.json``."""
    name = _read_json(file).get("checkpoint")
    if not isinstance(name, str) or Path(name).name != name or name in ("", ".", ".."):
        raise CheckpointError(f"{file}: expected the name of a checkpoint, got {name!r}")
    return file.parent / "checkpoints" / name


def load_checkpoint(path: Path) -> Checkpoint:
    """Load a checkpoint from its folder, or the last one of a run, and check all of it.

    Raises CheckpointError, with the reason, if it is missing, damaged, of another version or not a checkpoint.
    """
    folder = find_checkpoint(path)
    document = _read_json(folder / JSON_FILE)
    _check_document(document, folder / JSON_FILE)
    checksum = {"sha256": document["weights_sha256"], "bytes": document["weights_bytes"]}
    weights = _read_tensors(folder / WEIGHTS_FILE, checksum, MAX_WEIGHTS_BYTES)
    try:
        battle = BattleConfig.from_dict(document["battle"])
        network: NetworkConfig = build(NetworkConfig, document["network"], "network.")
    except ConfigError as error:
        raise CheckpointError(f"{folder / JSON_FILE}: {error}") from error
    normalized = any(name.startswith(_NORMALIZER) for name in weights)
    check_shapes(_policy_for(network, normalized, "meta"), weights, folder / WEIGHTS_FILE)
    check_finite(weights)
    policy = _policy_for(network, normalized, "cpu")
    for name, tensor in weights_of(policy).items():
        tensor.copy_(weights[name])
    policy.set_training_mode(False)
    maps = document["trained_maps"]
    trained_maps = None if maps is None else frozenset(str(content_hash) for content_hash in maps)
    return Checkpoint(policy, network, battle, document["opponent"], document["steps"], trained_maps)


def load_training_state(path: Path) -> TrainingState:
    """Load the training state of a checkpoint from its folder, or of the last checkpoint of a run.

    Raises CheckpointError, with the reason, if it is missing or damaged.
    """
    folder = find_checkpoint(path)
    document = _read_json(folder / JSON_FILE)
    _check_document(document, folder / JSON_FILE)
    training = document["training"]
    if training is None or not (folder / TRAINING_FILE).exists():
        raise CheckpointError(f"{folder}: has only a policy; a run resumes from its last checkpoint")
    kinds = {"sha256": str, "bytes": int, "values": dict}
    if {name: type(value) for name, value in training.items()} != kinds:
        raise CheckpointError(
            f"{folder / JSON_FILE}: key 'training': expected {', '.join(kinds)}, got {list(training)}"
        )
    return TrainingState(_read_tensors(folder / TRAINING_FILE, training, MAX_TRAINING_BYTES), training["values"])


def _read_json(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(read_file(path, MAX_JSON_BYTES))
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


def _read_tensors(path: Path, checksum: Mapping[str, Any], limit: int) -> dict[str, torch.Tensor]:
    """Read a file, check its size and SHA-256, then parse the same bytes."""
    data = read_file(path, max(0, min(limit, checksum["bytes"] + 1)))
    if len(data) != checksum["bytes"]:
        raise CheckpointError(f"{path}: {len(data)} bytes instead of {checksum['bytes']}: truncated or replaced")
    if hashlib.sha256(data).hexdigest() != checksum["sha256"]:
        raise CheckpointError(f"{path}: SHA-256 differs from the one in {JSON_FILE}: damaged or replaced")
    return parse_tensors(data, path)


def _policy_for(network: NetworkConfig, normalized: bool, device: str) -> BattlePolicy:
    """A policy of a checkpoint's shapes; on the device "meta" it has no memory."""
    with torch.device(device):
        policy = build_policy(network)
        if normalized:
            policy.return_normalizer = ReturnNormalizer()
    return policy
