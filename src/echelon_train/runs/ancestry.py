"""The policy that a run starts from, and the runs before it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from echelon_train.checkpoints.checkpoint import WEIGHTS_FILE, load_checkpoint
from echelon_train.config.train import NetworkConfig, TrainConfig
from echelon_train.errors import CheckpointError, TrainError
from echelon_train.league.store.policies import find_policy, origin
from echelon_train.policy import BattlePolicy
from echelon_train.runs.folder import RUN_FILE, read_ancestry


@dataclass(frozen=True)
class Start:
    """What a run starts from: by default random weights."""

    policy: BattlePolicy | None = None  # on the CPU
    ancestry: tuple[Mapping[str, Any], ...] = ()
    """The policy's checkpoint and those before it, the newest first: ``init`` as given, ``checkpoint`` (the folder),
    ``steps`` (samples that the policy trained on in its own run) and ``weights_sha256``."""


def load_start(config: TrainConfig) -> Start:
    """Load the checkpoint of `TrainConfig.init`, if there is one.

    Its critic may be of another kind than the run's: the weights that both have are taken over, the others are random.

    Raises CheckpointError, with the reason, for one that is missing, damaged or of another version, and for a network
    whose other weights have other shapes than the run's.
    """
    if not config.init:
        return Start()
    try:
        folder = find_policy(config.init).resolve()
        checkpoint = load_checkpoint(folder)
        earlier = _earlier_ancestry(folder)
    except TrainError as error:
        raise CheckpointError(f"init: {error}") from error
    _check_network(checkpoint.network, config)
    fact = {
        "init": config.init,
        "checkpoint": str(folder),
        "steps": checkpoint.steps,
        "weights_sha256": _weights_sha256(folder),
    }
    return Start(checkpoint.policy, (fact, *earlier))


def _earlier_ancestry(folder: Path) -> list[Mapping[str, Any]]:
    """The ancestry of the run that wrote a checkpoint; empty if that run is gone, or has other weights there by now."""
    written = origin(folder)
    run = written.parent.parent
    if not (run / RUN_FILE).is_file() or not (written / WEIGHTS_FILE).is_file():
        return []
    return read_ancestry(run) if _weights_sha256(written) == _weights_sha256(folder) else []


def _weights_sha256(folder: Path) -> str:
    return hashlib.sha256((folder / WEIGHTS_FILE).read_bytes()).hexdigest()


def _check_network(network: NetworkConfig, config: TrainConfig) -> None:
    theirs, ours = network.shape(), config.network.shape()
    changed = [name for name in ours if theirs[name] != ours[name] and name != "critic"]
    if changed:
        found = ", ".join(f"network.{name} {_plain(theirs[name])} instead of {_plain(ours[name])}" for name in changed)
        options = " ".join(f"--network.{name.replace('_', '-')} {_plain(theirs[name])}" for name in changed)
        raise CheckpointError(f"init: {config.init} has another network than this run: {found}; use {options}")


def _plain(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
