"""How much of what a decision needs, counted from the states before and after each of its ticks."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.floor_kernels import still_blocks, walk
from echelon_env import BattleEngine
from echelon_env.engine._jit import entry_point, integer
from echelon_env.engine.geometry import CONTACT_TOLERANCE
from echelon_env.engine.state import State
from echelon_env.engine.tables import Tables
from echelon_env.layout.observations import EGO_SIDE, OBSERVATION_DIM, STREAMS

FEATURE_BYTES = 4


@entry_point
def count_lines(tables: Tables, before: Any, state: Any, counts: Any) -> None:
    """Lines between living enemies, those that what blocked them before still blocks, and columns of the others.

    `before` and `state` are the states before and after a decision.
    """
    size = integer(tables.rules[0].map_size)
    for b in range(state.mechs.shape[0]):
        for m in range(state.mechs.shape[1] if not before.battles[b].over else 0):
            one, once = state.mechs[b, m], before.mechs[b, m]
            if one.team != 0 or not one.alive:
                continue
            half = 0.5 * tables.classes[one.mech_class].height
            for o in range(state.mechs.shape[1]):
                two, twice = state.mechs[b, o], before.mechs[b, o]
                if two.team == 0 or not two.alive:
                    continue
                x0, y0, z0, x1, y1 = one.x, one.y, one.z + half, two.x, two.y
                up = 0.5 * tables.classes[two.mech_class].height
                counts[0] += 1
                at, _ = walk(before.columns[b], size, once.x, once.y, once.z + half, twice.x, twice.y, twice.z + up)
                if at >= 0:
                    counts[1] += 1
                    if still_blocks(state.columns[b], size, at, x0, y0, z0, x1, y1, two.z + up):
                        counts[2] += 1
                        continue
                _, seen = walk(state.columns[b], size, x0, y0, z0, x1, y1, two.z + up)
                counts[3] += seen


def flatten(state: State) -> State:
    """The state with its columns as the kernels take them, (B, Y * X)."""
    return state._replace(columns=state.columns.reshape(len(state.columns), -1))


def _cells(centre: NDArray[Any], half: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    return np.floor(centre - half + CONTACT_TOLERANCE), np.floor(centre + half - CONTACT_TOLERANCE)


def count_movement(tables: Tables, before: NDArray[Any], after: NDArray[Any], counts: Counter[str]) -> None:
    """Mech-ticks that live, turn and move, columns of footprints that cover new cells, pairs near enough to touch."""
    alive = before["alive"] == 1
    controlled = alive & (before["shutdown"] == 0) & (before["fallen"] <= 1)
    throttle, strafe = after["throttle"], after["strafe"]
    walking = controlled & ((throttle != 0.0) | (strafe != 0.0))
    aloft = alive & ((after["on_ground"] == 0) | (before["z"] != after["z"]))
    counts["mech-ticks"] += int(alive.sum())
    counts["turns"] += int((controlled & (after["turn"] != 0.0)).sum())
    counts["moves"] += int((walking | aloft).sum())

    classes = tables.classes[before["mech_class"]]
    dt, half = tables.rules[0]["dt"], classes["half_length"]
    reach = classes["top_speed"] * after["speed_factor"] * dt * walking
    c, s = after["facing_x"], after["facing_y"]
    changed, covered = np.floor(before["z"] + CONTACT_TOLERANCE) != np.floor(after["z"] + CONTACT_TOLERANCE), 1.0
    for axis, delta in (("x", throttle * c - strafe * s), ("y", throttle * s + strafe * c)):
        was_low, was_high = _cells(before[axis], half)
        low, high = _cells(np.clip(before[axis] + reach * delta, half, tables.rules[0]["map_size"] - half), half)
        changed = changed | (was_low != low) | (was_high != high)
        covered = covered * (high - low + 1)
    counts["columns under boxes"] += int((covered * (alive & changed)).sum())
    counts["footprint passes"] += int((alive & changed).sum())

    room = half + classes["top_speed"] * dt
    near = alive[:, :, None] & alive[:, None, :]
    for axis in ("x", "y"):
        gap = np.abs(before[axis][:, :, None] - before[axis][:, None, :])
        near &= gap < room[:, :, None] + room[:, None, :]
    near &= ~np.eye(near.shape[1], dtype=bool)
    touching = near.any(axis=(1, 2))
    # each of the two moves along three axes
    counts["boxes compared"] += 3 * int(near.sum())
    counts["draws of the order"] += int(touching.sum()) * (near.shape[1] - 1)
    counts["ticks"] += int(alive.any(axis=1).sum())


def _filled(observations: NDArray[Any], name: str) -> NDArray[np.int64]:
    """(B, M) rows of a stream that are filled."""
    return np.asarray(observations[..., STREAMS[f"{name}_mask"].part].sum(axis=-1), np.int64)


def count_decision(before: State, engine: BattleEngine, seen: NDArray[Any], counts: Counter[str]) -> None:
    """What is needed once a decision; `before` is the state before it, `seen` (B, M, D) what was observed then."""
    state, observations = engine.state, engine.out.observations
    running = (before.battles["over"] == 0)[:, None]
    mechs, was = state.mechs, before.mechs
    alive, dead = (mechs["alive"] == 1) & running, (mechs["alive"] == 0) & running
    teams = [(alive & (mechs["team"] == team)).sum(axis=1) for team in (0, 1)]
    total = teams[0] + teams[1]
    counts["battles"] += int(running.sum())
    counts["mechs"] += int(((was["alive"] == 1) & running).sum())
    counts["boxes compared"] += int((total * (total - 1) // 2).sum())
    counts["pairs of enemies"] += int((teams[0] * teams[1]).sum())
    found = np.zeros(4, np.int64)
    count_lines(engine.tables, flatten(before), flatten(state), found)
    for name, number in zip(
        ("lines of sight", "lines blocked before", "lines still blocked", "columns of sight"),
        found.tolist(),
        strict=True,
    ):
        counts[name] += number
    known = state.sightings["known"] == 1
    packs = np.take_along_axis(known, mechs["pack"][:, :, None].astype(np.intp), axis=1)
    counts["rows sorted"] += int(((state.visible != 0) & alive[:, :, None]).sum() + (packs & alive[:, :, None]).sum())
    counts["sightings"] += int((known & (state.sightings["age"] == 0) & running[:, :, None]).sum())

    counts["own features"] += int(alive.sum()) * STREAMS["self"].row_width
    counts["features of others"] += int(running.sum()) * alive.shape[1] * STREAMS["objective"].row_width
    counts["bytes cleared"] += int((dead & (was["alive"] == 1)).sum()) * OBSERVATION_DIM * FEATURE_BYTES
    for name, kind in (
        ("contacts", "features of others"),
        ("squad", "features of others"),
        ("intel", "features of others"),
        ("comm", "copied features"),
    ):
        filled, width = _filled(observations, name), STREAMS[name].row_width
        counts[kind] += int((filled * alive).sum()) * width
        counts[f"rows of {name}"] += int((filled * alive).sum())
        counts["bytes cleared"] += (
            int((np.maximum(0, _filled(seen, name) - filled) * alive).sum()) * width * FEATURE_BYTES
        )
    moved = alive & np.any([mechs[name] != was[name] for name in ("x", "y", "z", "yaw")], axis=0)
    counts["cells"] += int(moved.sum()) * EGO_SIDE**2
