"""Smoke clouds, which block the sight of the enemies of the team that fired them."""

from __future__ import annotations

from typing import Any

from echelon_env.engine.events import record
from echelon_env.engine.geometry import segment_distance_squared
from echelon_env.engine.kernels import Row, integer, kernel
from echelon_env.engine.state import NO_MECH, SMOKE, State
from echelon_env.engine.tables import Tables


@kernel
def crosses_smoke(
    clouds: Any, count: int, team: int, x0: float, y0: float, z0: float, x1: float, y1: float, z1: float
) -> bool:  # fmt: skip
    """Whether a segment passes within the radius of a cloud of a team, among the first `count` clouds."""
    for c in range(count):
        cloud = clouds[c]
        if cloud.team != team:
            continue
        distance = segment_distance_squared(cloud.x - x0, cloud.y - y0, cloud.z - z0, x1 - x0, y1 - y0, z1 - z0)
        if distance <= cloud.radius**2:
            return True
    return False


@kernel
def release_smoke(tables: Tables, state: State, b: int, projectile: Row, x: float, y: float, z: float) -> None:
    """Add a cloud where a smoke shell's flight ends. Other projectiles leave none."""
    battle, w = state.battles[b], integer(projectile.weapon)
    weapon = tables.weapons[w]
    if weapon.smoke_radius <= 0.0:
        return
    if battle.num_clouds == state.clouds.shape[1]:
        battle.lost_events += 1  # cannot happen in a battle that started with a reset
        return
    cloud = state.clouds[b, battle.num_clouds]
    battle.num_clouds += 1
    cloud.x, cloud.y, cloud.z, cloud.radius, cloud.ticks = x, y, z, weapon.smoke_radius, weapon.smoke_ticks
    cloud.team = state.mechs[b, integer(projectile.owner)].team
    record(state, b, SMOKE, integer(projectile.owner), NO_MECH, w, x, y, z, 0.0, 0.0, 0.0)


@kernel
def age_clouds(state: State, b: int) -> None:
    """One tick of all clouds of a battle. The remaining ones keep their order."""
    battle, clouds = state.battles[b], state.clouds[b]
    kept = 0
    for c in range(battle.num_clouds):
        cloud = clouds[c]
        cloud.ticks -= 1
        if cloud.ticks > 0:
            to = clouds[kept]
            to.x, to.y, to.z, to.radius = cloud.x, cloud.y, cloud.z, cloud.radius
            to.ticks, to.team = cloud.ticks, cloud.team
            kept += 1
    battle.num_clouds = kept
