"""Effects of hits and splash. They become pending and are applied when the tick is settled."""

from __future__ import annotations

from echelon_env.engine.events import record
from echelon_env.engine.geometry import clip, unit_in_plane
from echelon_env.engine.kernels import Row, integer, kernel
from echelon_env.engine.raycast import line_is_clear
from echelon_env.engine.state import BODY, HEAT, HIT, LEGS, SPLASH, STABILITY, State
from echelon_env.engine.tables import Tables
from echelon_env.engine.targeting import centre_height, has_paint_lock


@kernel
def damage_against(tables: Tables, state: State, b: int, actor: int, target: int, damage: float) -> float:
    """Hit points of damage to a mech: less its plating, more if it is helpless, or painted for a linked shooter."""
    rules, mech = tables.rules[0], state.mechs[b, target]
    damage = max(0.0, damage - tables.classes[mech.mech_class].plating)
    if mech.shutdown or mech.fallen > 0:
        damage *= rules.helpless_damage
    if state.mechs[b, actor].team != mech.team and has_paint_lock(tables, state, b, actor, target):
        damage *= rules.paint_damage
    return damage


@kernel
def hit(
    tables: Tables, state: State, b: int, actor: int, target: int, w: int, x: float, y: float, z: float,
    dx: float, dy: float,
) -> None:  # fmt: skip
    """A direct hit at (x, y, z) by a weapon that travels along (dx, dy) in the plane."""
    rules, mech, weapon = tables.rules[0], state.mechs[b, target], tables.weapons[w]
    mech_class, pending = tables.classes[mech.mech_class], state.pending[b, target]
    damage = damage_against(tables, state, b, actor, target, weapon.damage)
    dx, dy = unit_in_plane(dx, dy)
    if (dx != 0.0 or dy != 0.0) and dx * mech.facing_x + dy * mech.facing_y >= rules.rear_cos:
        damage *= rules.rear_damage
    if clip((z - mech.z) / mech_class.height, 0.0, 1.0) < rules.legs_height:
        pending[LEGS] += damage
        damage *= rules.legs_share
    pending[BODY] += damage
    pending[HEAT] += weapon.target_heat
    pending[STABILITY] += weapon.stability
    state.hits[b, actor, w] += 1
    record(state, b, HIT, actor, target, w, x, y, z, dx, dy, damage)


@kernel
def _squared_distance_to_box(mech_class: Row, mech: Row, x: float, y: float, z: float) -> float:
    """Squared distance in m2 of a point from the nearest point of a mech's box."""
    dx = max(0.0, abs(x - mech.x) - mech_class.half_length)
    dy = max(0.0, abs(y - mech.y) - mech_class.half_width)
    dz = max(0.0, mech.z - z, z - mech.z - mech_class.height)
    return float(dx * dx + dy * dy + dz * dz)


@kernel
def splash(tables: Tables, state: State, b: int, actor: int, struck: int, w: int, x: float, y: float, z: float) -> None:
    """Add the splash of a burst at (x, y, z) to all mechs in reach without terrain between, except the one struck."""
    rules, weapon, mechs, order = tables.rules[0], tables.weapons[w], state.mechs[b], state.order[b]
    team = mechs[actor].team
    for place in range(order.shape[0]):
        m = integer(order[place])
        mech = mechs[m]
        if m == struck or not mech.alive or (mech.team == team and not rules.friendly_fire):
            continue
        if _squared_distance_to_box(tables.classes[mech.mech_class], mech, x, y, z) > weapon.splash_radius**2:
            continue
        if not line_is_clear(state.solid[b], state.blocks[b], x, y, z, mech.x, mech.y, centre_height(tables, mech)):
            continue
        damage = damage_against(tables, state, b, actor, m, weapon.damage * weapon.splash_share)
        state.pending[b, m, BODY] += damage
        state.pending[b, m, STABILITY] += weapon.stability * weapon.splash_share
        dx, dy = unit_in_plane(mech.x - x, mech.y - y)
        record(state, b, SPLASH, actor, m, w, x, y, z, dx, dy, damage)
