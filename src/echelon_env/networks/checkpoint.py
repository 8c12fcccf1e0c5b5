"""Checkpoints of policies: what their files are, and reading them without PyTorch. Reading cannot run code.

A checkpoint is a folder::

    policy.safetensors     the policy's weights, and the critic's normaliser of returns
    training.safetensors   the rest of the run's state: optimizer, environment, random number generators; its values are
                           JSON in the header, as in the files of `EchelonRecurrentPPO.save`
    checkpoint.json        format, layouts, battle, network, SHA-256 of the files, versions, commit, steps, maps

The checkpoints of a run are ``checkpoints/<steps>``. ``last.json`` names the newest and the one before it,
``best.json`` the one with the best evaluation. Only those of ``last.json`` have a ``training.safetensors``, because
that file is large; the second one is for a run whose newest checkpoint is damaged.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from reprlib import repr as shortened
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy
from numpy.typing import NDArray

from echelon_env.config.battle import BattleConfig
from echelon_env.config.schema import ConfigError, build
from echelon_env.layout.actions import ACTION_HIGH, ACTION_LOW, Action
from echelon_env.layout.observations import STREAMS
from echelon_env.layout.parts import ALL_PARTS
from echelon_env.networks.config import NetworkConfig
from echelon_env.networks.weights import CheckpointError
from echelon_env.storage.reading import parse_json, read_regular_file, version_problem

FORMAT = "echelon-checkpoint"
VERSION = 5
WEIGHTS_FILE = "policy.safetensors"
TRAINING_FILE = "training.safetensors"
JSON_FILE = "checkpoint.json"
RUN_FILE = "run.json"
"""Makes a folder that of a run, also before its first checkpoint."""
SEEDS_FILE = "seeds.json"
"""Makes a folder that of an experiment of several seeds, each with a run."""

LAST_FILE = "last.json"
BEST_FILE = "best.json"
MAX_JSON_BYTES = 1 << 24
MAX_NAME_BYTES = 1 << 16
"""Of ``last.json`` and ``best.json``."""
MAX_WEIGHTS_BYTES = 1 << 30
MAX_TRAINING_BYTES = 1 << 36

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
class StoredPolicy:
    """A policy as it is in a checkpoint's files, and how it was trained."""

    network: NetworkConfig
    battle: BattleConfig
    opponent: str  # the opponent that it trained against
    steps: int  # samples that it was trained on
    trained_maps: frozenset[str] | None  # content hashes of its maps; None: every battle had a new map
    tensors: Mapping[str, NDArray[Any]]  # by the names of PyTorch's modules; all numbers are finite
    weights_sha256: str  # of the file


def observation_layout_hash() -> str:
    """SHA-256 of the observation layout: stream, rows, name, unit and bounds of each feature, in order."""
    return _digest(
        (stream.name, stream.rows, feature.name, feature.unit, feature.low, feature.high)
        for stream in STREAMS.values()
        for feature in stream.features
    )


def action_layout_hash() -> str:
    """SHA-256 of the action layout: name and index of each entry, in order, bounds, and the choices of each part."""
    entries: list[IntEnum] = list(Action)
    parts = [(part.name, part.entries, part.values, part.neutral) for part in ALL_PARTS]
    return _digest([*((entry.name, entry.value) for entry in entries), (ACTION_LOW, ACTION_HIGH), *parts])


def find_checkpoint(path: Path) -> Path:
    """The checkpoint folder that a path refers to: the folder itself, or the last checkpoint of a run.

    ``runs/x/best`` and ``runs/x/last``, also with the suffix ``.json``, are the run's best and last checkpoint. Raises
    CheckpointError if there is none.
    """
    for name in (LAST_FILE, BEST_FILE):
        file = path.absolute().with_name(name)
        if path.name in (name, Path(name).stem) and file.is_file():
            return named_checkpoint(file)
    if (path / JSON_FILE).is_file():
        return path
    if not path.exists():
        raise CheckpointError(f"{path}: no such file or folder")
    if (path / SEEDS_FILE).is_file():
        raise CheckpointError(f"{path}: is an experiment of several seeds; name one of its runs, {path / 'seed-...'}")
    if path.is_file():
        raise CheckpointError(f"{path}: expected the folder of a checkpoint or a run, got a file")
    if not (path / LAST_FILE).is_file():
        raise CheckpointError(f"{path}: neither a checkpoint (no {JSON_FILE}) nor a run with one (no {LAST_FILE})")
    return named_checkpoint(path / LAST_FILE)


def named_checkpoint(file: Path, key: str = "checkpoint") -> Path:
    """The checkpoint named in a run's ``last.json`` or ``best.json``. Raises CheckpointError."""
    name = parse_object(read_file(file, MAX_NAME_BYTES), file).get(key)
    if not isinstance(name, str) or Path(name).name != name or name in ("", ".", ".."):
        raise CheckpointError(f"{file}: expected the name of a checkpoint, got {shortened(name)}")
    return file.parent / "checkpoints" / name


def read_checkpoint(path: Path) -> StoredPolicy:
    """Read the policy of a checkpoint from its folder, or of the last one of a run, and check its files.

    The shapes of the tensors are checked by what takes them. Raises CheckpointError, with the reason, if the checkpoint
    is missing, damaged, of another version or not a checkpoint.
    """
    folder = find_checkpoint(path)
    document = read_document(folder)
    checksum = {"sha256": document["weights_sha256"], "bytes": document["weights_bytes"]}
    data = read_checked(folder / WEIGHTS_FILE, checksum, MAX_WEIGHTS_BYTES)
    try:
        tensors = safetensors.numpy.load(data)
    except (safetensors.SafetensorError, ValueError, KeyError) as error:
        raise CheckpointError(f"{folder / WEIGHTS_FILE}: not a valid safetensors file ({error})") from error
    for name, tensor in tensors.items():
        if not np.isfinite(tensor).all():
            raise CheckpointError(f"{folder / WEIGHTS_FILE}: {name!r} holds values that are not finite")
    try:
        battle = BattleConfig.from_dict(document["battle"])
        network: NetworkConfig = build(NetworkConfig, document["network"], "network.")
    except ConfigError as error:
        raise CheckpointError(f"{folder / JSON_FILE}: {error}") from error
    maps = document["trained_maps"]
    trained_maps = None if maps is None else frozenset(str(content_hash) for content_hash in maps)
    steps, opponent = document["steps"], document["opponent"]
    return StoredPolicy(network, battle, opponent, steps, trained_maps, tensors, document["weights_sha256"])


def read_document(folder: Path) -> dict[str, Any]:
    """The contents of a checkpoint's JSON file, with the keys of this version and this release's layouts.

    Raises CheckpointError.
    """
    path = folder / JSON_FILE
    document = parse_object(read_file(path, MAX_JSON_BYTES), path)
    if document.get("format") != FORMAT:
        raise CheckpointError(f"{path}: not an Echelon checkpoint (format {shortened(document.get('format'))})")
    if problem := version_problem(document.get("version"), VERSION):
        raise CheckpointError(f"{path}: {problem}")
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
    return document


@contextlib.contextmanager
def errors_in(path: Path) -> Iterator[None]:
    """Put the name of a file or folder before the errors of the block about what it holds."""
    try:
        yield
    except CheckpointError as error:
        raise CheckpointError(f"{path}: {error}") from None


def read_checked(path: Path, checksum: Mapping[str, Any], limit: int) -> bytes:
    """The bytes of a file, after a check of their number and SHA-256. Raises CheckpointError."""
    data = read_file(path, max(0, min(limit, checksum["bytes"] + 1)))
    if len(data) != checksum["bytes"]:
        raise CheckpointError(
            f"{path}: {len(data)} bytes instead of {shortened(checksum['bytes'])}: truncated or replaced"
        )
    if hashlib.sha256(data).hexdigest() != checksum["sha256"]:
        raise CheckpointError(f"{path}: SHA-256 differs from the one in {JSON_FILE}: damaged or replaced")
    return data


def read_file(path: Path, limit: int) -> bytes:
    """Read a regular file of at most `limit` bytes. Raises CheckpointError, with the reason."""
    try:
        return read_regular_file(path, limit)
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read ({error.strerror or error})") from error
    except ValueError as error:
        raise CheckpointError(f"{path}: {error}") from error


def parse_object(data: bytes | str, path: Path) -> dict[str, Any]:
    """The JSON object in a file of a checkpoint. Raises CheckpointError, with the reason."""
    try:
        document = parse_json(data)
    except ValueError as error:
        raise CheckpointError(f"{path}: no valid JSON ({error})") from error
    if not isinstance(document, dict):
        raise CheckpointError(f"{path}: expected a JSON object, got {type(document).__name__}")
    return document


def _digest(rows: Iterable[tuple[Any, ...]]) -> str:
    return hashlib.sha256(json.dumps(list(rows)).encode()).hexdigest()
