"""The global state of battles, unfiltered, for centralised training."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from echelon_env.engine.state import ECCM, ECM, State
from echelon_env.engine.tables import Tables
from echelon_env.layout.observations import CLASS_NAMES, Clock, Stream, Unit, class_columns

Floats = NDArray[np.float64]


def write_global_state(
    tables: Tables, state: State, team: NDArray[np.int64], blue_mechs: int, streams: dict[str, Stream]
) -> NDArray[np.float32]:
    """The global states (B, S) float32 of battles, for the teams (B,).

    A team's own mechs come first, on the map rotated to its spawn.
    """
    vectors = np.zeros((len(state.battles), max(stream.stop for stream in streams.values())))
    battles = np.arange(len(vectors))
    own, enemy = state.teams[battles, team], state.teams[battles, 1 - team]
    vectors[:, streams["clock"].part] = _clock(tables, state, own, enemy)
    mechs = np.arange(state.mechs.shape[1])
    order = np.stack([mechs, np.roll(mechs, -blue_mechs)])[team]
    units = _units(tables, state, own["quarter_turns"])
    vectors[:, streams["units"].part] = units[battles[:, None], order].reshape(len(vectors), -1)
    vectors[:, streams["battle_map"].part] = state.battle_maps[battles, team]
    return vectors.astype(np.float32)


def _turned(x: Any, y: Any, quarter_turns: NDArray[np.integer]) -> tuple[Floats, Floats]:
    """Planar vectors (B, ...), rotated counter-clockwise by each battle's number of quarter turns."""
    cos, sin = np.array([1.0, 0.0, -1.0, 0.0])[quarter_turns], np.array([0.0, 1.0, 0.0, -1.0])[quarter_turns]
    return x * cos - y * sin, x * sin + y * cos


def _clock(tables: Tables, state: State, own: NDArray[Any], enemy: NDArray[Any]) -> Floats:
    rules, battles = tables.rules[0], state.battles
    half = 0.5 * rules["map_size"]
    clock = np.zeros((len(battles), len(Clock)))
    clock[:, Clock.TIME_LEFT] = np.maximum(0.0, 1.0 - battles["step_count"] / rules["max_steps"])
    clock[:, Clock.ZONE_X], clock[:, Clock.ZONE_Y] = _turned(
        battles["zone_x"] / half - 1.0, battles["zone_y"] / half - 1.0, own["quarter_turns"]
    )
    clock[:, Clock.ZONE_RADIUS] = battles["zone_radius"] / rules["zone_scale"]
    clock[:, Clock.OWN_SHARE], clock[:, Clock.ENEMY_SHARE] = own["share"], enemy["share"]
    clock[:, Clock.OWN_SCORE] = np.minimum(1.0, own["score"] / rules["score_to_win"])
    clock[:, Clock.ENEMY_SCORE] = np.minimum(1.0, enemy["score"] / rules["score_to_win"])
    return clock


def _units(tables: Tables, state: State, quarter_turns: NDArray[np.int32]) -> Floats:
    """The mechs' rows (B, M, U) in the engine's order, on maps rotated by the same number of quarter turns."""
    rules, mechs, battles = tables.rules[0], state.mechs, state.battles
    classes = {
        name: tables.classes[name][mechs["mech_class"]] for name in ("armour", "legs", "heat_capacity", "one_hot")
    }
    turns = np.broadcast_to(quarter_turns[:, None], mechs.shape)
    half, speed = 0.5 * rules["map_size"], rules["speed_scale"]
    rows = np.zeros((*mechs.shape, len(Unit)))
    rows[..., Unit.ALIVE] = 1.0
    rows[..., Unit.POSITION_X], rows[..., Unit.POSITION_Y] = _turned(
        mechs["x"] / half - 1, mechs["y"] / half - 1, turns
    )
    rows[..., Unit.HEIGHT] = mechs["z"] / rules["map_height"]
    rows[..., Unit.HEADING_COS], rows[..., Unit.HEADING_SIN] = _turned(mechs["facing_x"], mechs["facing_y"], turns)
    rows[..., Unit.VELOCITY_X], rows[..., Unit.VELOCITY_Y] = _turned(mechs["vx"] / speed, mechs["vy"] / speed, turns)
    rows[..., Unit.VELOCITY_UP] = mechs["vz"] / speed
    rows[..., Unit.ARMOUR] = mechs["armour"] / classes["armour"]
    rows[..., Unit.LEGS] = mechs["legs"] / classes["legs"]
    rows[..., Unit.STABILITY] = mechs["stability"] / rules["max_stability"]
    rows[..., Unit.HEAT] = mechs["heat"] / classes["heat_capacity"]
    rows[..., Unit.SHUTDOWN] = mechs["shutdown"]
    rows[..., Unit.FALLEN] = mechs["fallen"] / rules["fall_ticks"]
    rows[..., Unit.SUPPRESSED] = mechs["suppressed"] > 0
    rows[..., Unit.ON_GROUND] = mechs["on_ground"]
    _write_weapons(tables, state, rows)
    radiates = np.where(mechs["shutdown"], 0, mechs["radiates"])
    rows[..., Unit.ECM], rows[..., Unit.ECCM] = radiates == ECM, radiates == ECCM
    rows[..., Unit.SENSOR_QUALITY] = mechs["quality"] / rules["max_quality"]
    rows[..., Unit.PAINTED] = (state.paint["ticks"] > 0).any(axis=1)
    distance = np.hypot(mechs["x"] - battles["zone_x"][:, None], mechs["y"] - battles["zone_y"][:, None])
    inside = (distance <= battles["zone_radius"][:, None]) & (mechs["z"] < rules["zone_max_feet"])
    rows[..., Unit.IN_ZONE] = inside
    rows[..., class_columns(Unit)] = classes["one_hot"][..., None] == np.arange(len(CLASS_NAMES))
    low, high = np.array([unit.low for unit in Unit]), np.array([unit.high for unit in Unit])
    return np.where(mechs["alive"][..., None], np.clip(rows, low, high), 0.0)


def _write_weapons(tables: Tables, state: State, rows: Floats) -> None:
    """Write the state of the mechs' weapons and the missiles that home on them into their rows (B, M, U)."""
    mechs, weapon = state.mechs, tables.classes["weapon"][state.mechs["mech_class"]]
    cooldowns = np.append(tables.weapons["cooldown"], 1)[weapon]  # an empty mount's index is -1
    limited = np.append(tables.weapons["charges"], 0)[weapon] > 0
    rows[..., Unit.COOLDOWN_PRIMARY : Unit.COOLDOWN_SPECIAL + 1] = mechs["cooldown"] / cooldowns
    rows[..., Unit.HAS_PRIMARY : Unit.HAS_SPECIAL + 1] = (weapon >= 0) & (~limited | (mechs["charges"] > 0))
    rows[..., Unit.ANTI_MISSILE] = mechs["anti_missile_cooldown"] / tables.rules[0]["anti_missile_cooldown"]
    flying = np.arange(state.projectiles.shape[1]) < state.battles["num_projectiles"][:, None]
    homing = flying & (np.append(tables.weapons["guided"], 0)[state.projectiles["weapon"]] > 0)
    battle, shot = np.nonzero(homing)
    rows[battle, state.projectiles["target"][battle, shot], Unit.MISSILE] = 1.0
