"""Exports of replays for offline learning."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echelon_env.engine.state import Outputs
from echelon_env.replays.replay import Replay
from echelon_env.storage.atomic import write_bytes


def transitions(replay: Replay) -> dict[str, NDArray[Any]]:
    """Simulate a battle of T decisions and M mechs, and return what its mechs saw, did and got.

    ============== =================== ===========================================================
    observations   (T + 1, M, D) float32 before each decision, and after the last
    actions        (T, M, A) float32     as the engine got them
    rewards        (T, M) float32        with the reward weights of the battle's configuration
    components     (T, M, K) float32     the rewards by `config.REWARD_COMPONENTS`
    terminated     (T, M) bool           whether the mech's episode ended in this decision
    truncated      (T, M) bool           whether the time limit ended it
    alive          (T + 1, M) bool       before each decision, and after the last
    ============== =================== ===========================================================

    Raises ReplayError as `Replay.play`.
    """
    seen: dict[str, list[NDArray[Any]]] = {name: [] for name in (*Outputs._fields, "alive")}
    for engine in replay.play():
        for name, array in engine.out._asdict().items():
            seen[name].append(array[0].copy())
        seen["alive"].append(engine.alive[0])
    at_steps = {name: np.array(arrays) for name, arrays in seen.items()}
    after = {name: at_steps[name][1:] for name in ("rewards", "components", "terminated", "truncated")}
    return at_steps | after | {"actions": replay.actions}


def export_npz(replay: Replay, path: str | os.PathLike[str]) -> None:
    """Write the `transitions` of a replay as a compressed NPZ file, which needs no pickle.

    The entry ``metadata`` is a JSON text with the configuration, seeds, players and versions. Raises OSError, and
    ReplayError as `Replay.play`.
    """
    metadata = {
        "config": replay.config.to_dict(), "seed": replay.seed, "map_seed": replay.map_seed,
        "players": list(replay.players), "stamp": dict(replay.stamp),
    }  # fmt: skip
    buffer = io.BytesIO()
    arrays: dict[str, Any] = transitions(replay)
    np.savez_compressed(buffer, metadata=np.array(json.dumps(metadata)), **arrays)
    write_bytes(Path(path), buffer.getvalue())
