"""The start of a battle: voxels are packed into columns and blocks, and mechs are placed."""

from __future__ import annotations

from typing import Any

from echelon_env.engine import rng
from echelon_env.engine.geometry import arc_tangent2, cosine_sine, wrap_angle
from echelon_env.engine.kernels import Row, kernel
from echelon_env.engine.reward import potential
from echelon_env.engine.rosters import PACK_SIZE
from echelon_env.engine.state import BLUE, NO_MECH, State
from echelon_env.engine.tables import Tables
from echelon_env.engine.voxels import pack_blocks, pack_columns


@kernel
def _place(tables: Tables, battle: Row, mech: Row, x: float, y: float) -> None:
    """Initialize a mech at its spawn place, facing the zone, or the map's centre if the zone is hidden."""
    rules, mech_class = tables.rules[0], tables.classes[mech.mech_class]
    mech.x, mech.y = x, y
    ahead_x, ahead_y = battle.zone_x, battle.zone_y
    if rules.zone_hidden:
        ahead_x, ahead_y = 0.5 * rules.map_size, 0.5 * rules.map_size
    mech.yaw = wrap_angle(arc_tangent2(ahead_y - y, ahead_x - x))
    mech.facing_x, mech.facing_y = cosine_sine(mech.yaw)
    mech.armour, mech.legs = mech_class.armour, mech_class.legs
    mech.stability, mech.speed_factor = rules.max_stability, 1.0
    for mount in range(mech.charges.shape[0]):
        if mech_class.weapon[mount] >= 0:
            mech.charges[mount] = tables.weapons[mech_class.weapon[mount]].charges
    mech.target = NO_MECH
    mech.alive = mech.on_ground = 1
    mech.potential = potential(rules, battle, mech)


@kernel
def _quarter_turns(half_size: float, x: float, y: float) -> int:
    """Counter-clockwise quarter turns of the map that move the corner nearest to (x, y) to the corner (0, 0)."""
    if x < half_size:
        return 0 if y < half_size else 1
    return 3 if y < half_size else 2


@kernel
def _place_team(tables: Tables, state: State, spawns: Any, classes: Any, b: int, area: int, team: int) -> None:
    """Put a team's mechs on the spawn places of an area."""
    battle, mechs, teams = state.battles[b], state.mechs[b], state.teams[b]
    count = teams[team].mechs_alive
    first = 0 if team == BLUE else teams[BLUE].mechs_alive
    first_pack = 0 if team == BLUE else (teams[BLUE].mechs_alive + PACK_SIZE - 1) // PACK_SIZE
    listed = 0 if area == 0 else teams[1 - team].mechs_alive
    for i in range(count):
        mech = mechs[first + i]
        mech.team, mech.mech_class, mech.pack = team, classes[first + i], first_pack + i // PACK_SIZE
        mech.place = area * spawns.shape[1] + i
        _place(tables, battle, mech, spawns[area, i, 0], spawns[area, i, 1])
        state.order[b, listed + i] = first + i
        teams[team].spawn_x += spawns[area, i, 0] / count
        teams[team].spawn_y += spawns[area, i, 1] / count
    half_size = 0.5 * tables.rules[0].map_size
    teams[team].quarter_turns = _quarter_turns(half_size, teams[team].spawn_x, teams[team].spawn_y)


@kernel
def pack_ground(tables: Tables, state: State, top: int, b: int) -> None:
    """Pack a battle's voxels, air from `top` on, into its columns and blocks, and count the hazards."""
    opaque, solid, hazard = state.opaque[b], state.solid[b], state.hazard[b]
    state.battles[b].num_hazards = pack_columns(tables.materials, state.voxels[b], top, opaque, solid, hazard)
    pack_blocks(opaque, solid, hazard, state.blocks[b])


@kernel
def place_all(tables: Tables, state: State, spawns: Any, classes: Any, top: int, b: int) -> None:
    """Start a battle whose lasting arrays are zeroed and whose voxels, seed, zone and `mechs_alive` are set.

    With `top` 0 all that follows from the map is already set, too: columns, blocks and the number of hazards.
    """
    battle = state.battles[b]
    if top > 0:
        pack_ground(tables, state, top, b)
    battle.first_team = rng.random_below(battle.seed, 0, 0, rng.FIRST_TEAM, 2)
    for area in range(2):
        team = battle.first_team if area == 0 else 1 - battle.first_team
        _place_team(tables, state, spawns, classes, b, area, team)
