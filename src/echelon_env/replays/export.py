"""Exports of replays for offline learning."""

from __future__ import annotations

import io
import json
import os
import re
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.envs.registration import EnvSpec
from numpy.typing import NDArray

from echelon_env.config.battle import BattleConfig
from echelon_env.engine.state import Outputs
from echelon_env.replays.replay import Replay, ReplayError
from echelon_env.storage.atomic import write_bytes

MAX_EXPORT_BYTES = 1 << 30
"""Of the observations of a battle."""


def transitions(replay: Replay) -> dict[str, NDArray[Any]]:
    """Simulate a battle of T decisions and M mechs, and return what its mechs saw, did and got.

    ============== ===================== ===========================================================
    observations   (T + 1, M, D) float32 before each decision, and after the last
    actions        (T, M, A) float32     as the engine got them
    rewards        (T, M) float32        with the reward weights of the battle's configuration
    components     (T, M, K) float32     the rewards by `config.REWARD_COMPONENTS`
    terminated     (T, M) bool           whether the mech's episode ended in this decision
    truncated      (T, M) bool           whether the time limit ended it
    alive          (T + 1, M) bool       before each decision, and after the last
    ============== ===================== ===========================================================

    Raises ReplayError as `Replay.play`, and for more than `MAX_EXPORT_BYTES` of observations.
    """
    seen: dict[str, NDArray[Any]] = {}
    for decision, engine in enumerate(replay.play()):
        now = engine.out._asdict() | {"observations": engine.observations, "alive": engine.alive}
        if not seen:
            if (needed := (replay.decisions + 1) * engine.observations.nbytes) > MAX_EXPORT_BYTES:
                raise ReplayError(f"observations of {needed:,} bytes, expected at most {MAX_EXPORT_BYTES:,}")
            seen = {name: np.zeros((replay.decisions + 1, *each.shape[1:]), each.dtype) for name, each in now.items()}
        for name, array in now.items():
            seen[name][decision] = array[0]
    after = {name: seen[name][1:] for name in Outputs._fields}
    return seen | after | {"actions": replay.actions}


def export_minari(replays: Sequence[Replay], dataset_id: str, **arguments: Any) -> None:
    """Create a `Minari <https://minari.farama.org>`_ dataset: each mech of each battle is an episode.

    Observations are flat vectors and actions those of the continuous format, as of a Gymnasium environment. An episode
    ends with the mech's death or the battle; one of a replay that was cut short is truncated. Minari keeps its datasets
    in the folder ``MINARI_DATASETS_PATH``.

    The dataset names its environment: ``recover_environment()`` is `BattleEnv` of the battles' configuration, with one
    mech as the agent. It takes other arguments, such as ``recover_environment(opponent="expert", pilot=2)``.

    A name is such as ``"echelon/skirmish/expert-v0"``. The further arguments are those of
    `minari.create_dataset_from_buffers`: ``algorithm_name``, ``author``, ...

    Raises ImportError if Minari is not installed (extra ``minari``), ReplayError for no decisions at all, for several
    configurations, and as `Replay.play`, and ValueError for a name that is malformed, or taken (by Minari).
    """
    check_dataset_name(dataset_id)
    try:
        import minari
        from minari.data_collector import EpisodeBuffer
    except ImportError as error:
        raise ImportError('Minari is not installed: pip install "echelon-env[minari]"') from error
    configs: list[BattleConfig] = []
    for replay in replays:
        if replay.decisions and replay.config not in configs:
            configs.append(replay.config)
    if not configs:
        raise ReplayError("replays: expected at least one with a decision")
    if len(configs) > 1:
        raise ReplayError(f"replays: expected battles of one configuration, its environment, got {len(configs)}")
    episodes = [episode for replay in replays for episode in _episodes(replay)]
    buffers = [EpisodeBuffer(id=number, **episode) for number, episode in enumerate(episodes)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of facts such as an author that are not given
        minari.create_dataset_from_buffers(dataset_id, buffers, env=environment_of(configs[0]), **arguments)


def environment_of(config: BattleConfig) -> EnvSpec:
    """The environment of a mech in a battle, which `gymnasium.make` takes on any machine that has this package."""
    return EnvSpec(
        "echelon/Recorded-v0",
        "echelon_env.envs.single:BattleEnv",
        max_episode_steps=config.max_steps + 1,  # d3rlpy needs a limit; the battle's own comes first
        kwargs={"scenario": config.to_dict()},
    )


def check_dataset_name(dataset_id: str) -> None:
    """Raise ValueError for a name that Minari cannot read again: its folder would make it refuse all other datasets."""
    if not re.fullmatch(r"(?:[A-Za-z0-9_-]+/)*[A-Za-z0-9_-]+-v\d+", dataset_id):
        raise ValueError(f"expected NAME-vN, such as echelon/skirmish/mine-v0, got {dataset_id!r}")


def _episodes(replay: Replay) -> Iterator[dict[str, Any]]:
    """The episode of each mech."""
    if replay.decisions == 0:
        return
    arrays = transitions(replay)
    ended = arrays["terminated"] | arrays["truncated"]
    for mech in range(replay.config.num_mechs):
        over = np.flatnonzero(ended[:, mech])
        steps = int(over[0]) + 1 if over.size else replay.decisions
        truncated = arrays["truncated"][:steps, mech].copy()
        truncated[-1] |= not over.size
        yield {
            "seed": replay.seed % 2**63,
            "observations": arrays["observations"][: steps + 1, mech],
            "actions": np.clip(np.nan_to_num(arrays["actions"][:steps, mech], posinf=0.0, neginf=0.0), -1.0, 1.0),
            "rewards": arrays["rewards"][:steps, mech].tolist(),
            "terminations": arrays["terminated"][:steps, mech].tolist(),
            "truncations": truncated.tolist(),
        }


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
