"""Saving and loading checkpoints of policies; `echelon_env.networks.checkpoint` describes the files."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
import torch

from echelon_env.config.battle import BattleConfig
from echelon_env.config.schema import to_plain
from echelon_env.networks.checkpoint import (
    FORMAT,
    JSON_FILE,
    LAST_FILE,
    MAX_JSON_BYTES,
    MAX_TRAINING_BYTES,
    MAX_WEIGHTS_BYTES,
    TRAINING_FILE,
    VERSION,
    WEIGHTS_FILE,
    action_layout_hash,
    errors_in,
    find_checkpoint,
    named_checkpoint,
    observation_layout_hash,
    parse_object,
    read_checked,
    read_checkpoint,
    read_document,
)
from echelon_env.networks.config import NetworkConfig
from echelon_env.networks.weights import CheckpointError, load_network
from echelon_env.storage.atomic import free_path, new_folder, write_bytes, write_json
from echelon_train.checkpoints.provenance import git_commit, package_versions
from echelon_train.policy import BattlePolicy, build_policy
from echelon_train.ppo.normalize import ReturnNormalizer
from echelon_train.tensor_files import check_finite, check_shapes, model_bytes, parse_model
from echelon_train.tensor_files import weights_of as weights_of

_NORMALIZER = "return_normalizer."
_OWN = re.compile(r"\d{10,}")  # `checkpoint_name`
_INCOMPLETE = re.compile(rf"\.{_OWN.pattern}\..{{8}}")  # of `new_folder`


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
            state = model_bytes(training.tensors, json.dumps(dict(training.values), allow_nan=False))
            write_bytes(temporary / TRAINING_FILE, state)
            document["training"] = {"sha256": hashlib.sha256(state).hexdigest(), "bytes": len(state)}
        write_json(temporary / JSON_FILE, document)
        limits = {WEIGHTS_FILE: MAX_WEIGHTS_BYTES, TRAINING_FILE: MAX_TRAINING_BYTES, JSON_FILE: MAX_JSON_BYTES}
        for name in (file.name for file in temporary.iterdir()):
            limit = limits[name]
            if (temporary / name).stat().st_size > limit:
                raise CheckpointError(f"{name}: would be larger than the {limit} bytes that can be loaded")


def save_in_run(run: Path, checkpoint: Checkpoint, training: TrainingState | None = None) -> Path:
    """Write a checkpoint of a run and make it the run's last. Returns its folder.

    If the run's last checkpoint has the same number of steps, it is kept. Otherwise the training state of the one
    before it is deleted afterwards, and what a killed process has left. What else has the new checkpoint's name gets
    another one; no other file is touched. Raises like `save_checkpoint`.
    """
    folder = run / "checkpoints" / checkpoint_name(checkpoint.steps)
    last = _named(run)
    if last[:1] == [folder]:
        return folder
    if (
        folder / JSON_FILE
    ).is_file():  # the run was killed before it wrote last.json; it may have continued differently
        shutil.rmtree(folder)
    elif folder.exists() or folder.is_symlink():
        folder.rename(free_path(folder.with_name(f"{folder.name}.foreign")))
    save_checkpoint(folder, checkpoint, training)
    name_last(run, folder, *last[:1])
    for each in last[1:]:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):  # its folder is the user's to move
            (each / TRAINING_FILE).unlink()
    for entry in folder.parent.iterdir():
        if _INCOMPLETE.fullmatch(entry.name) and entry.is_dir() and not entry.is_symlink():  # the run was killed
            shutil.rmtree(entry)
    return folder


def name_last(run: Path, last: Path, before: Path | None = None) -> bool:
    """Name a run's last checkpoint, and the one to resume from if it is damaged. Returns whether it was not the last.

    Raises OSError.
    """
    if _named(run)[:1] == [last]:
        return False
    write_json(run / LAST_FILE, {"checkpoint": last.name, "before": None if before is None else before.name})
    return True


def checkpoints_to_resume(run: Path) -> list[Path]:
    """The checkpoints to resume a run from, the first that is whole; a run that was killed before its first restarts.

    They are those that ``last.json`` names, or if that file is missing or damaged the run's folders with a training
    state, the newest first.
    """
    if last := _named(run):
        return last
    files = (run / "checkpoints").glob(f"*/{JSON_FILE}")
    folders = [file.parent for file in files if _OWN.fullmatch(file.parent.name)]
    if not (run / LAST_FILE).exists() and all(folder.name == checkpoint_name(0) for folder in folders):
        return []  # it was killed before it named its first checkpoint, with the initial weights
    states = [folder for folder in folders if (folder / TRAINING_FILE).exists()]
    return sorted(states or folders, key=lambda folder: int(folder.name), reverse=True)


def _named(run: Path) -> list[Path]:
    """The checkpoints that ``last.json`` names; empty if the file is missing or damaged."""
    found = []
    with contextlib.suppress(CheckpointError):
        for key in ("checkpoint", "before"):
            found.append(named_checkpoint(run / LAST_FILE, key))
    return found


def newest_policy(run: Path) -> Path | None:
    """The newest checkpoint of a run whose policy can be loaded; None if there is none."""
    folders = (folder for folder in (run / "checkpoints").glob("*") if _OWN.fullmatch(folder.name))
    for folder in sorted(folders, key=lambda folder: int(folder.name), reverse=True):
        with contextlib.suppress(CheckpointError):
            load_checkpoint(folder)
            return folder
    return None


def checkpoint_name(steps: int) -> str:
    """The name of the folder of a run's checkpoint."""
    return f"{steps:010d}"


def load_checkpoint(path: str | os.PathLike[str]) -> Checkpoint:
    """Load a checkpoint from its folder, or the last one of a run, and check all of it.

    Raises CheckpointError, with the reason, if it is missing, damaged, of another version or not a checkpoint.
    """
    folder = find_checkpoint(Path(path))
    stored = read_checkpoint(folder)
    with errors_in(folder):
        load_network(stored.network, stored.tensors)  # checks what a player needs
    weights = {name: torch.from_numpy(tensor) for name, tensor in stored.tensors.items()}
    normalized = any(name.startswith(_NORMALIZER) for name in weights)
    check_shapes(_policy_for(stored.network, normalized, "meta"), weights, folder / WEIGHTS_FILE)
    policy = _policy_for(stored.network, normalized, "cpu")
    for name, tensor in weights_of(policy).items():
        tensor.copy_(weights[name])
    policy.set_training_mode(False)
    return Checkpoint(policy, stored.network, stored.battle, stored.opponent, stored.steps, stored.trained_maps)


def load_training_state(path: Path) -> TrainingState:
    """Load the training state of a checkpoint from its folder, or of the last checkpoint of a run.

    Raises CheckpointError, with the reason, if it is missing or damaged.
    """
    folder = find_checkpoint(path)
    training = read_document(folder)["training"]
    if training is None or not (folder / TRAINING_FILE).exists():
        raise CheckpointError(f"{folder}: has only a policy; a run resumes from its last checkpoint")
    kinds = {"sha256": str, "bytes": int}
    if {name: type(value) for name, value in training.items()} != kinds:
        raise CheckpointError(
            f"{folder / JSON_FILE}: key 'training': expected {', '.join(kinds)}, got {list(training)}"
        )
    file = folder / TRAINING_FILE
    tensors, text = parse_model(read_checked(file, training, MAX_TRAINING_BYTES), file)
    return TrainingState(tensors, parse_object(text, file))


def _policy_for(network: NetworkConfig, normalized: bool, device: str) -> BattlePolicy:
    """A policy of a checkpoint's shapes; on the device "meta" it has no memory."""
    with torch.device(device):
        policy = build_policy(network)
        if normalized:
            policy.return_normalizer = ReturnNormalizer()
    return policy
