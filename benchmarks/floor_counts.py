"""How much of what a decision needs, counted from the states before and after each of its ticks."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.floor_kernels import NUM_MOUNTS, controls, still_blocks, walk
from echelon_env import BattleEngine
from echelon_env.engine._jit import entry_point, integer
from echelon_env.engine.geometry import CONTACT_TOLERANCE
from echelon_env.engine.state import EVENT_KINDS, State
from echelon_env.engine.tables import Tables
from echelon_env.layout.observations import EGO_SIDE, OBSERVATION_DIM, STREAMS

FEATURE_BYTES = 4


@entry_point
def count_shots(tables: Any, before: Any, state: Any, looked: Any, counts: Any) -> None:
    """Ready mounts, enemies in their range, and lines of sight with the columns they cross: each pair looked at once.

    `before` are the mechs before the tick, `state` is after it; `looked` (B, M, M) is 0. A mount looks at the target
    that the action chose, and where that is no valid one at the enemies in its range and arc, nearest first.
    """
    size = integer(tables.rules[0].map_size)
    for b in range(before.shape[0]):
        mechs = state.mechs[b]
        for m in range(before.shape[1]):
            mech, was = mechs[m], before[b, m]
            if not controls(was) or mech.vent:
                continue
            one = tables.classes[mech.mech_class]
            z = mech.z + 0.5 * one.height
            for mount in range(NUM_MOUNTS):
                if one.weapon[mount] < 0 or not mech.trigger[mount] or was.cooldown[mount] > 1:
                    continue
                weapon = tables.weapons[one.weapon[mount]]
                if weapon.charges > 0 and was.charges[mount] == 0:
                    continue
                counts[0] += 1
                chosen, nearer = integer(mech.target), -1.0
                while True:  # the chosen target, then ever farther ones
                    best, least = -1, weapon.range * weapon.range
                    for o in range(before.shape[1]):
                        other = mechs[o]
                        if other.team == mech.team or not before[b, o].alive or (chosen >= 0 and o != chosen):
                            continue
                        dx, dy = other.x - mech.x, other.y - mech.y
                        dz = other.z + 0.5 * tables.classes[other.mech_class].height - z
                        plane = dx * dx + dy * dy
                        away = plane + dz * dz
                        if away <= least and (chosen >= 0 or away > nearer):
                            counts[1] += 1 if nearer < 0.0 else 0
                            if dx * mech.facing_x + dy * mech.facing_y >= weapon.arc_cos * math.sqrt(plane):
                                best, least = o, away
                    if best < 0 and chosen >= 0:
                        chosen = -1
                        continue
                    if best < 0 or (weapon.guided and state.paint[b, mech.pack, best].ticks > 0):
                        break
                    other = mechs[best]
                    high = other.z + 0.5 * tables.classes[other.mech_class].height
                    blocker, seen = walk(state.columns[b], size, True, mech.x, mech.y, z, other.x, other.y, high)
                    if not looked[b, m, best]:
                        looked[b, m, best] = looked[b, best, m] = 1
                        counts[2], counts[3] = counts[2] + 1, counts[3] + seen
                    if blocker < 0:
                        break
                    chosen, nearer = -1, least if chosen < 0 else -1.0


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
                at, _ = walk(
                    before.columns[b], size, True, once.x, once.y, once.z + half, twice.x, twice.y, twice.z + up
                )
                if at >= 0:
                    counts[1] += 1
                    if still_blocks(state.columns[b], size, at, x0, y0, z0, x1, y1, two.z + up):
                        counts[2] += 1
                        continue
                _, seen = walk(state.columns[b], size, True, x0, y0, z0, x1, y1, two.z + up)
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
    counts["near pairs"] += int(near.sum()) // 2
    counts["draws of the order"] += int(touching.sum()) * (near.shape[1] - 1)
    counts["ticks"] += int(alive.any(axis=1).sum())
    counts["ticks in which mechs can touch"] += int(touching.sum())


def count_shooting(tables: Tables, before: State, after: State, counts: Counter[str]) -> None:
    """Shots, flights, events and the voxels that bursts reach, of one tick."""
    found = np.zeros(4, np.int64)
    count_shots(tables, before.mechs, flatten(after), np.zeros_like(after.visible), found)
    counts["ready mounts"] += int(found[0])
    counts["targets in range"] += int(found[1])
    counts["lines of fire"] += int(found[2])
    counts["columns of fire"] += int(found[3])
    running = before.battles["over"] == 0
    counts["projectile-ticks"] += int(before.battles["num_projectiles"][running].sum())
    for b in np.flatnonzero(running):
        events = after.events[b, : after.battles["num_events"][b]]
        counts["events"] += len(events)
        shots = tables.weapons[events["weapon"][events["kind"] == EVENT_KINDS.index("shot")]]
        counts["shots"] += len(shots)
        counts["projectile-ticks"] += int((shots["speed"] > 0.0).sum())
        for burst in events[events["kind"] == EVENT_KINDS.index("impact")]:
            radius = tables.weapons[burst["weapon"]]["splash_radius"]
            counts["voxels of bursts"] += int((2 * radius + 1) ** 2 * (radius + min(radius, burst["z"])))


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
    counts["mechs alive after"] += int(alive.sum())
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
    counts["mechs that moved or turned"] += int(moved.sum())
