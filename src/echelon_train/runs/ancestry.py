"""The policy that a run starts from, and the runs before it."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from echelon_env.champions import champion_of, policy_path
from echelon_env.config.battle import BattleConfig
from echelon_env.config.opponent import CHAMPION, Opponent
from echelon_env.networks.checkpoint import MAX_WEIGHTS_BYTES, WEIGHTS_FILE, read_file
from echelon_env.networks.config import NetworkConfig
from echelon_env.networks.weights import CheckpointError
from echelon_train.checkpoints.checkpoint import Checkpoint, load_checkpoint
from echelon_train.config.train import TrainConfig
from echelon_train.errors import TrainError
from echelon_train.league.store.policies import find_policy, origin
from echelon_train.policy import BattlePolicy
from echelon_train.runs.folder import RUN_FILE, read_record


@dataclass(frozen=True)
class Start:
    """What a run starts from: by default random weights."""

    policy: BattlePolicy | None = None  # on the CPU
    ancestry: tuple[Mapping[str, Any], ...] = ()
    """The policy's checkpoint and those before it, the newest first: ``init`` as given, ``checkpoint`` (the folder),
    ``steps`` (samples that the policy trained on in its own run) and ``weights_sha256``."""
    policies: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The same facts, without ``init``, of the opponents and the teacher that are policies, by their names: those of
    ``policy:PATH``, and ``champion NAME``."""

    def facts(self) -> dict[str, Any]:
        """What a run's folder keeps of it, for JSON."""
        return {"ancestry": [*self.ancestry], "policies": {**self.policies}}


def load_start(config: TrainConfig) -> Start:
    """Load the checkpoint of `TrainConfig.init`, if there is one, and find the policies that the run plays against.

    Its critic may be of another kind than the run's: the weights that both have are taken over, the others are random.

    Raises CheckpointError, with the reason, for a policy that is missing, damaged or of another version, and for a
    network to start from whose other weights have other shapes than the run's.
    """
    policies = named_policies(config)
    if not config.init:
        return Start(policies=policies)
    try:
        champion = policy_path(Opponent(CHAMPION), config.battle) if config.init == CHAMPION else None
        folder = find_policy(champion or config.init).resolve()
        checkpoint = load_checkpoint(folder)
        earlier = _earlier_ancestry(folder)
    except (TrainError, CheckpointError) as error:
        raise CheckpointError(f"init: {error}") from error
    _check_network(checkpoint.network, config)
    return Start(checkpoint.policy, ({"init": config.init, **_facts(folder, checkpoint)}, *earlier), policies)


def named_policies(config: TrainConfig, missing: bool = False) -> dict[str, Mapping[str, Any]]:
    """The facts of the opponents and the teacher that are policies. Raises CheckpointError as `load_start` does.

    If some may be `missing`, they are left out: a resumed run may no longer need those of a curriculum's earlier
    stages, and one that it needs is loaded later.
    """
    found: dict[str, Mapping[str, Any]] = {}
    for role, each, battle in itertools.chain.from_iterable(map(_named_players, config.plain_runs())):
        path = policy_path(each, battle)
        name = f"{CHAMPION} {champion_of(battle)}" if each.name == CHAMPION else each.name
        if path is not None and name not in found:
            try:
                folder = find_policy(path).resolve()
                found[name] = _facts(folder, load_checkpoint(folder))
            except (TrainError, CheckpointError) as error:
                if not missing:
                    raise CheckpointError(f"{role}: {error}") from error
    return found


def _named_players(config: TrainConfig) -> Iterator[tuple[str, Opponent, BattleConfig]]:
    """The opponents and the teacher of a plain run or a stage, each with its role and the battle."""
    for each in (*config.opponent.members, *config.evaluation_opponents.members):
        yield "opponent", each, config.battle
    if config.teacher is not None:
        yield "teacher", config.teacher, config.battle


def _facts(folder: Path, checkpoint: Checkpoint) -> dict[str, Any]:
    return {"checkpoint": str(folder), "steps": checkpoint.steps, "weights_sha256": _weights_sha256(folder)}


def _earlier_ancestry(folder: Path) -> list[Mapping[str, Any]]:
    """The ancestry of the run that wrote a checkpoint; empty if that run is gone, or has other weights there by now."""
    written = origin(folder)
    run = written.parent.parent
    if not (run / RUN_FILE).is_file() or not (written / WEIGHTS_FILE).is_file():
        return []
    return [*read_record(run).ancestry] if _weights_sha256(written) == _weights_sha256(folder) else []


def _weights_sha256(folder: Path) -> str:
    return hashlib.sha256(read_file(folder / WEIGHTS_FILE, MAX_WEIGHTS_BYTES)).hexdigest()


def _check_network(network: NetworkConfig, config: TrainConfig) -> None:
    theirs, ours = network.shape(), config.network.shape()
    changed = [name for name in ours if theirs[name] != ours[name] and name != "critic"]
    if changed:
        found = ", ".join(f"network.{name} {_plain(theirs[name])} instead of {_plain(ours[name])}" for name in changed)
        options = " ".join(f"--network.{name.replace('_', '-')} {_plain(theirs[name])}" for name in changed)
        raise CheckpointError(f"init: {config.init} has another network than this run: {found}; use {options}")


def _plain(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
