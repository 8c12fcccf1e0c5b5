"""A handmade battle without an engine: flat ground with one wall."""

from __future__ import annotations

import numpy as np

from echelon_env.config.catalog import CONCRETE, DIRT
from echelon_env.config.scenario import make_config
from echelon_env.engine.allocation import allocate
from echelon_env.engine.state import BLUE, RED, State

SIZE = 50
CONFIG = make_config("skirmish", terrain={"size": SIZE, "height": 8})


def handmade() -> State:
    """Blue in a row in the south-west, red in the north-east, the zone in the middle, a wall in the north-west."""
    state = allocate(CONFIG, 2)
    state.voxels[:, 0] = DIRT
    state.voxels[:, :5, 42:46, 4:10] = CONCRETE
    state.solid[:, 42:46, 4:10] = state.opaque[:, 42:46, 4:10] = 0b11111
    battles = state.battles
    battles["zone_x"], battles["zone_y"], battles["zone_radius"] = SIZE / 2, SIZE / 2, 6.0
    mechs, of_team = state.mechs, len(CONFIG.blue)
    for team, y, yaw in ((BLUE, 6.0, 0.0), (RED, 44.0, -np.pi)):
        rows = mechs[:, team * of_team : (team + 1) * of_team]
        classes = [CONFIG.catalog.class_index(name) for name in CONFIG.rosters[team]]
        rows["team"], rows["mech_class"], rows["alive"] = team, classes, 1
        rows["x"] = np.arange(of_team) * 5 + (6.0 if team == BLUE else 24.0)
        rows["y"], rows["yaw"] = y, yaw
        for field in ("armour", "legs"):
            rows[field] = [getattr(CONFIG.catalog.mech_classes[index], field) for index in classes]
    state.teams["mechs_alive"] = of_team
    return state
