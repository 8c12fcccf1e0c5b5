"""An engine's state as plain arrays for files. A map is stored as its seed and the bytes that have changed."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echelon_env.config.battle import BattleConfig, RewardConfig
from echelon_env.engine.core import BattleEngine, NotResetError
from echelon_env.engine.maps import MapPool, difference
from echelon_env.engine.state_values import check_values
from echelon_env.storage.arrays import Arrays, Kind, as_bytes, bytes_kind, check_arrays, check_same, from_bytes
from echelon_env.storage.reading import parse_json
from echelon_env.terrain import RecipeError, Terrain, generate

_SPARSE = ("voxels", "voxel_damage", "events")
"""Arrays of which only the bytes are stored that differ from the map, or from 0."""

_CONSTANT = ("started",)
"""Arrays that are the same in every saved state."""

_REWARDS = tuple(field.name for field in dataclasses.fields(RewardConfig))


def engine_arrays(engine: BattleEngine) -> Arrays:
    """Everything that later steps of an engine's battles depend on; the argument of `restore_engine`.

    The current reward weights and the content hashes of the maps that its pool has generated are part of it.

    Raises `NotResetError` if a battle has never been reset.
    """
    snapshot = engine.snapshot()
    if not snapshot["started"].all():
        raise NotResetError("the state of battles that have never been reset cannot be saved")
    terrains = [engine.terrain(b) for b in range(engine.num_battles)]
    arrays = _identity(engine, snapshot)
    arrays["reward_weights"] = np.array([getattr(engine.config.rewards, name) for name in _REWARDS])
    arrays["map_hashes"] = _digests([terrain.content_hash for terrain in terrains])
    made = {} if engine.maps is None else engine.maps.made
    arrays["made_seeds"], arrays["made_hashes"] = np.array([*made], np.uint64), _digests([*made.values()])
    for name, array in snapshot.items():
        if name in _SPARSE:
            data = array.reshape(-1).view(np.uint8)
            if name == "voxels":
                changed = data != np.concatenate([terrain.voxels.ravel() for terrain in terrains])
            else:
                changed = data
            arrays[f"{name}_at"] = np.flatnonzero(changed).astype(np.int64)
            arrays[f"{name}_bytes"] = data[arrays[f"{name}_at"]]
        elif name not in _CONSTANT:
            arrays[name] = as_bytes(array)
    return arrays


def restore_engine(engine: BattleEngine, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Restore the `engine_arrays` of an engine with the same configuration, maps and batch size.

    Raises ValueError, with nothing changed, for arrays of another engine or of none: for a configuration that differs
    in more than the reward weights (`ConfigError`), another pool, maps that are generated differently here
    (`RecipeError`), and values that no battle can have.
    """
    snapshot = engine.snapshot()
    _check(engine, snapshot, arrays)
    rewards = RewardConfig(**dict(zip(_REWARDS, arrays["reward_weights"].tolist(), strict=True)))
    dataclasses.replace(engine.config, rewards=rewards)  # raises if they are invalid
    check_same("the battles", "rewards.gamma", engine.config.rewards.gamma, rewards.gamma)
    for name, array in snapshot.items():
        if name not in (*_SPARSE, *_CONSTANT):
            snapshot[name] = from_bytes(arrays[name], array)
    hashes = [digest.tobytes().hex() for digest in arrays["map_hashes"]]
    terrains = _make_maps(engine, snapshot["battles"]["map_seed"].tolist(), hashes)
    for name in _SPARSE:
        data = np.zeros(snapshot[name].nbytes, np.uint8)
        if name == "voxels":
            data[:] = np.concatenate([terrain.voxels.ravel() for terrain in terrains])
        data[arrays[f"{name}_at"]] = arrays[f"{name}_bytes"]
        snapshot[name] = from_bytes(data.reshape(engine.num_battles, -1), snapshot[name])
    snapshot["started"][:] = True
    check_values(engine.config, engine.tables, snapshot)
    if engine.maps is not None:
        made = [digest.tobytes().hex() for digest in arrays["made_hashes"]]
        engine.maps.recall(dict(zip(arrays["made_seeds"].tolist(), made, strict=True)))
    engine.set_rewards(rewards)
    engine.restore(snapshot)


def _identity(engine: BattleEngine, snapshot: Mapping[str, NDArray[Any]]) -> Arrays:
    """What must be equal where a state is restored: the configuration, the maps, and the arrays' layout."""
    layout = [(name, array.shape, array.dtype.descr) for name, array in snapshot.items()]
    return {
        "config": np.frombuffer(_config_text(engine.config).encode(), np.uint8),
        "pool_seeds": np.array([] if engine.maps is None else engine.maps.seeds, np.uint64),
        "layout": np.frombuffer(hashlib.sha256(repr(layout).encode()).digest(), np.uint8),
    }


def _config_text(config: BattleConfig) -> str:
    """A configuration as JSON, without the reward weights, which can change during a battle."""
    return json.dumps(config.to_dict() | {"rewards": {"gamma": config.rewards.gamma}}, sort_keys=True)


def _digests(hashes: list[str]) -> NDArray[np.uint8]:
    """SHA-256 hashes in hexadecimal as (N, 32) uint8."""
    return np.frombuffer(bytes.fromhex("".join(hashes)), np.uint8).reshape(-1, hashlib.sha256().digest_size)


def _check(engine: BattleEngine, snapshot: Mapping[str, NDArray[Any]], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Raise ValueError unless the arrays come from an engine with the same identity."""
    battles = engine.num_battles
    expected: dict[str, Kind] = {
        "config": ((None,), np.uint8),
        "layout": ((hashlib.sha256().digest_size,), np.uint8),
        "pool_seeds": ((None,), np.uint64),
        "reward_weights": ((len(_REWARDS),), np.float64),
        "map_hashes": ((battles, hashlib.sha256().digest_size), np.uint8),
        "made_seeds": ((None,), np.uint64),
        "made_hashes": ((None, hashlib.sha256().digest_size), np.uint8),
    }
    for name, array in snapshot.items():
        if name in _SPARSE:
            expected |= {f"{name}_at": ((None,), np.int64), f"{name}_bytes": ((None,), np.uint8)}
        elif name not in _CONSTANT:
            expected[name] = bytes_kind(array, battles)
    _check_config(engine.config, arrays.get("config"))  # before the shapes, most of which depend on it
    check_arrays("the battles", arrays, expected)
    identity = _identity(engine, snapshot)
    if not np.array_equal(arrays["pool_seeds"], identity["pool_seeds"]):
        raise ValueError(f"state of the battles: expected those of {_pool(engine.maps)}, got those of other maps")
    if not np.array_equal(arrays["layout"], identity["layout"]):
        raise ValueError("state of the battles: another version of echelon-env wrote it, with other arrays")
    for name in _SPARSE:
        at, data = arrays[f"{name}_at"], arrays[f"{name}_bytes"]
        if len(at) != len(data) or (len(at) and not (at.min() >= 0 and at.max() < snapshot[name].nbytes)):
            raise ValueError(
                f"state of the battles: {name}: expected as many places, each from 0 to {snapshot[name].nbytes - 1}, "
                f"as bytes, got {len(at)} and {len(data)}"
            )
    if len(arrays["made_seeds"]) != len(arrays["made_hashes"]):
        raise ValueError(
            f"state of the battles: {len(arrays['made_seeds'])} maps cannot have {len(arrays['made_hashes'])} hashes"
        )


def _check_config(config: BattleConfig, found: Any) -> None:
    expected = _config_text(config)
    text = found.tobytes().decode(errors="replace") if isinstance(found, np.ndarray) else ""
    if text == expected:
        return
    try:
        different = difference(parse_json(expected), parse_json(text))
    except ValueError:
        raise ValueError("state of the battles: 'config': expected a battle's configuration as JSON") from None
    if different:
        raise ValueError(f"state of the battles: it is of another configuration: {different}")
    raise ValueError("state of the battles: 'config': written by another version of echelon-env")


def _pool(maps: MapPool | None) -> str:
    return "battles with a new map each" if maps is None else repr(maps)


def _make_maps(engine: BattleEngine, seeds: list[int], hashes: list[str]) -> list[Terrain]:
    """The battles' maps. Raises ValueError for one that is not in the pool or has another content hash."""
    pool = None if engine.maps is None else set(engine.maps.seeds)
    made: dict[int, Terrain] = {}
    for battle, (seed, content_hash) in enumerate(zip(seeds, hashes, strict=True)):
        if pool is not None and seed not in pool:
            raise ValueError(f"state of the battles: map seed {seed} of battle {battle} is none of {engine.maps!r}")
        if seed not in made:
            made[seed] = generate(
                engine.config, seed
            )  # not through the pool, which would count it as generated even if the state is refused
        try:
            made[seed].check_content(content_hash)
        except RecipeError as error:
            raise RecipeError(f"state of the battles: battle {battle}: {error}") from None
    return [made[seed] for seed in seeds]
