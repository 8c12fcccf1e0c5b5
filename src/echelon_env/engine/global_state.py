"""The global state of battles, unfiltered, for centralised training."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from echelon_env.config.battle import BattleConfig
from echelon_env.config.schema import check_integer
from echelon_env.engine.body import radiation
from echelon_env.engine.geometry import clip
from echelon_env.engine.guidance import is_homed_on
from echelon_env.engine.kernels import entry_point, integer, kernel
from echelon_env.engine.paint import is_painted_by_enemies
from echelon_env.engine.state import BLUE, ECCM, ECM, RED, State
from echelon_env.engine.tables import Tables
from echelon_env.engine.weapons import has_shots
from echelon_env.engine.zone import is_inside
from echelon_env.layout.observations import Clock, Unit, class_columns

UNITS_AT, UNIT_WIDTH = len(Clock), len(Unit)
UNIT_CLASS = class_columns(Unit).start


def read_rows(team: ArrayLike, battles: ArrayLike | None, count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The battles, of `count`, and teams (R,) of `BattleEngine.global_state`, checked. Raises ValueError."""
    chosen = np.arange(count) if battles is None else np.asarray(battles)
    integers = chosen.dtype.kind in "iu" or chosen.size == 0
    if chosen.ndim != 1 or not integers or ((chosen < 0) | (chosen >= count)).any():
        raise ValueError(f"battles: expected numbers from 0 to {count - 1}, got {battles!r}")
    teams = np.asarray(team)
    if not np.isin(teams, (BLUE, RED)).all():
        raise ValueError(f"team: expected 0 (blue) or 1 (red), got {team!r}")
    if teams.shape not in ((), chosen.shape):
        raise ValueError(f"team: expected one, or one per battle {chosen.shape}, got {teams.shape}")
    return np.array(chosen, np.int64), np.full(chosen.shape, teams, np.int64)


def room_for(mechs: int | None, config: BattleConfig) -> int:
    """Mechs that a global state has room for, checked. Raises ValueError."""
    if mechs is None:
        return config.num_mechs
    room = check_integer("mechs", mechs, 2 * max(map(len, config.rosters)))
    if room % 2:
        raise ValueError(f"mechs: expected an even number, got {room}")
    return room


@entry_point
def write_global_states(
    tables: Tables, state: State, battles: Any, teams: Any, states: Any, enemies_at: int, first: int, last: int
) -> None:
    """Write the global states of battles (R,) for teams (R,), from `first` to `last` - 1, into zeros (R, S).

    The enemies' rows begin after the own team's, and not before row `enemies_at`.
    """
    for r in range(first, last):
        b, team, row = integer(battles[r]), integer(teams[r]), states[r]
        mechs = state.mechs[b]
        _write_clock(tables, state, b, team, row)
        own, enemy = 0, 0
        for m in range(mechs.shape[0]):
            enemy += mechs[m].team == team
        enemy = max(enemy, enemies_at)
        for m in range(mechs.shape[0]):
            unit = own
            if mechs[m].team == team:
                own += 1
            else:
                unit = enemy
                enemy += 1
            if mechs[m].alive:
                _write_unit(tables, state, b, m, team, UNITS_AT + unit * UNIT_WIDTH, row)


@kernel
def _turned(x: float, y: float, quarter_turns: int) -> tuple[float, float]:
    """A planar vector, turned counter-clockwise.

    By products, unlike `observe.turn`: the signs of zeros differ, and the stored digests depend on them.
    """
    cos, sin = (1.0, 0.0, -1.0, 0.0)[quarter_turns], (0.0, 1.0, 0.0, -1.0)[quarter_turns]
    return x * cos - y * sin, x * sin + y * cos


@kernel
def _write_clock(tables: Tables, state: State, b: int, team: int, row: Any) -> None:
    """The battle as a whole, from a team's view."""
    rules, battle = tables.rules[0], state.battles[b]
    own, enemy = state.teams[b, team], state.teams[b, 1 - team]
    half = 0.5 * rules.map_size
    row[Clock.TIME_LEFT] = max(0.0, 1.0 - battle.step_count / rules.max_steps)
    x, y = _turned(battle.zone_x / half - 1.0, battle.zone_y / half - 1.0, own.quarter_turns)
    row[Clock.ZONE_X], row[Clock.ZONE_Y] = x, y
    row[Clock.ZONE_RADIUS] = battle.zone_radius / rules.zone_scale
    row[Clock.OWN_SHARE], row[Clock.ENEMY_SHARE] = own.share, enemy.share
    row[Clock.OWN_SCORE] = min(1.0, own.score / rules.score_to_win)
    row[Clock.ENEMY_SCORE] = min(1.0, enemy.score / rules.score_to_win)


@kernel
def _write_unit(tables: Tables, state: State, b: int, m: int, team: int, at: int, row: Any) -> None:
    """A living mech, from index `at` on, on the map turned for a team."""
    rules, mech = tables.rules[0], state.mechs[b, m]
    mech_class = tables.classes[mech.mech_class]
    turns, half, speed = state.teams[b, team].quarter_turns, 0.5 * rules.map_size, rules.speed_scale
    row[at + Unit.ALIVE] = 1.0
    x, y = _turned(mech.x / half - 1.0, mech.y / half - 1.0, turns)
    row[at + Unit.POSITION_X], row[at + Unit.POSITION_Y] = x, y
    row[at + Unit.HEIGHT] = mech.z / rules.map_height
    x, y = _turned(mech.facing_x, mech.facing_y, turns)
    row[at + Unit.HEADING_COS], row[at + Unit.HEADING_SIN] = clip(x, -1.0, 1.0), clip(y, -1.0, 1.0)
    x, y = _turned(mech.vx / speed, mech.vy / speed, turns)
    row[at + Unit.VELOCITY_X], row[at + Unit.VELOCITY_Y] = clip(x, -1.0, 1.0), clip(y, -1.0, 1.0)
    row[at + Unit.VELOCITY_UP] = clip(mech.vz / speed, -1.0, 1.0)
    row[at + Unit.ARMOUR] = mech.armour / mech_class.armour
    row[at + Unit.LEGS] = mech.legs / mech_class.legs
    row[at + Unit.STABILITY] = mech.stability / rules.max_stability
    row[at + Unit.HEAT] = mech.heat / mech_class.heat_capacity
    row[at + Unit.SHUTDOWN] = mech.shutdown
    row[at + Unit.FALLEN] = mech.fallen / rules.fall_ticks
    row[at + Unit.SUPPRESSED] = mech.suppressed > 0
    row[at + Unit.ON_GROUND] = mech.on_ground
    for mount in range(mech.cooldown.shape[0]):
        weapon = mech_class.weapon[mount]
        if weapon >= 0:
            row[at + Unit.COOLDOWN_PRIMARY + mount] = mech.cooldown[mount] / tables.weapons[weapon].cooldown
            row[at + Unit.HAS_PRIMARY + mount] = has_shots(tables, mech, mount)
    row[at + Unit.ANTI_MISSILE] = mech.anti_missile_cooldown / rules.anti_missile_cooldown
    row[at + Unit.MISSILE] = is_homed_on(tables, state, b, m)
    row[at + Unit.ECM], row[at + Unit.ECCM] = radiation(mech) == ECM, radiation(mech) == ECCM
    row[at + Unit.SENSOR_QUALITY] = mech.quality / rules.max_quality
    row[at + Unit.PAINTED] = is_painted_by_enemies(state, b, m)
    row[at + Unit.IN_ZONE] = is_inside(rules, state.battles[b], mech)
    if mech_class.one_hot >= 0:
        row[at + UNIT_CLASS + mech_class.one_hot] = 1.0
