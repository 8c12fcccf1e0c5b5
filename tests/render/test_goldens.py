"""Pictures of handmade battles and maps are the golden ones; `python tests/render/test_goldens.py --write` writes them.

Look at the new ones before they are committed: they have a tenth of the width.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from echelon_env.config import catalog
from echelon_env.config.catalog import AIR, CONCRETE, DEBRIS, DIRT, FOLIAGE, GLASS, LAVA, REINFORCED, WATER, WRECK
from echelon_env.engine.state import (
    BLUE,
    DRAW,
    ECCM,
    ECM,
    ELIMINATION,
    HIT,
    IMPACT,
    INTERCEPTION,
    PAINT,
    SHOT,
    ZONE_CONTROL,
    State,
)
from echelon_env.render import render_ansi, render_frame
from echelon_env.render.map_picture import map_picture
from echelon_env.render.map_sheet import contact_sheet
from echelon_env.terrain import Lane, Terrain
from render.battles import CONFIG, handmade
from render.pictures import GOLDENS, add, differs
from support.handmade import fill, flat_map

WEAPONS = {name: CONFIG.catalog.weapon_index(name) for name in
           ("laser", "flamer", "painter", "autocannon", "gauss", "missiles", "smoke")}  # fmt: skip
BEAMS = ("laser", "flamer", "painter")


def weapons() -> State:
    """Beams, shots, projectiles and explosions, the older ones fainter; a paint event has no picture."""
    state = handmade()
    state.battles["tick"] = 100
    for number, name in enumerate(BEAMS):
        for team, x in enumerate((12, 30)):
            shooter = number + 5 * team
            state.mechs["x"][0, shooter], state.mechs["y"][0, shooter] = x, 12 + 4 * number
            hit = {"actor": shooter, "target": 9 - 5 * team, "weapon": WEAPONS[name], "tick": 100 - number}
            add(state, "events", kind=SHOT, x=x, y=12 + 4 * number, **hit)
            add(state, "events", kind=HIT, x=x + 5, y=12 + 4 * number, dx=1, **hit)
    for number, name in enumerate(("autocannon", "gauss", "missiles", "smoke")):
        y = 28 + 3 * number
        add(state, "projectiles", x=8, y=y, vx=25, weapon=WEAPONS[name], owner=number)
        add(state, "projectiles", x=18, y=y, vx=-3, vy=9, vz=22, weapon=WEAPONS[name], owner=5 + number)
        add(state, "events", kind=HIT, actor=2, target=5, weapon=WEAPONS[name], x=28, y=y, dy=1, tick=100)
        for age, x in enumerate((34, 40, 46)):
            add(state, "events", kind=IMPACT, actor=2, weapon=WEAPONS[name], x=x, y=y, tick=100 - 2 * age)
    add(state, "events", kind=INTERCEPTION, actor=4, target=5, weapon=WEAPONS["missiles"], x=40, y=8, tick=100)
    add(state, "events", kind=PAINT, actor=2, target=5, x=46, y=20, tick=100)
    return state


def conditions() -> State:
    """Mechs that are dead, dying, fallen, shut down, hot, damaged, painted, radiating; at the edge and in smoke."""
    state = handmade()
    mechs = state.mechs[0]
    mechs["x"], mechs["y"] = np.tile([6, 16, 26, 36, 48.5], 2), np.repeat([12, 48.25], 5)
    mechs["yaw"] = np.linspace(-np.pi, np.pi, 10)
    mechs["fallen"][[0, 5]], mechs["shutdown"][[1, 6]], mechs["heat"][[1, 2]] = 3, 1, (195, 65)
    mechs["legs"][[2, 7]], mechs["suppressed"][[3, 7]], mechs["armour"][[3, 4]] = 0, 5, (40, 1)
    mechs["alive"][8:], mechs["died"][9] = 0, 1
    mechs["radiates"][[0, 3, 9]] = ECM, ECCM, ECM
    state.paint[0, 1, 4]["ticks"], state.paint[0, 0, 5]["ticks"] = 5, 5
    state.voxels[0, :2, 47:50, 47:50] = WRECK
    for team, x, radius, ticks in ((0, 16, 4, 200), (0, 16, 4, 200), (1, 36, 5, 200), (0, 40, 3, 1)):
        add(state, "clouds", team=team, x=x, y=14, radius=radius, ticks=ticks)
    state.teams["inside"], state.teams["score"], state.teams["mechs_alive"] = (1, 2), (12.5, 9), (5, 3)
    return state


def materials() -> State:
    """Every material; holes and steps in a wall, and a room under a roof."""
    state = handmade()
    voxels = state.voxels[0]
    for number, material in enumerate((FOLIAGE, GLASS, CONCRETE, REINFORCED, WATER, LAVA, DEBRIS, WRECK, DIRT)):
        column, row = divmod(number, 3)
        height = 4 if material in (FOLIAGE, GLASS, CONCRETE, REINFORCED) else 1
        voxels[:height, 14 + 6 * row : 18 + 6 * row, 10 + 12 * column : 16 + 12 * column] = material
    voxels[1:5, 42:46, 6], voxels[0, 42:46, 6], voxels[2:5, 42:46, 8], voxels[1:3, 43, 4] = AIR, DIRT, AIR, AIR
    return state


def over(winner: int, reason: int, inside: tuple[int, int]) -> Callable[[], State]:
    """The end of a battle."""

    def end() -> State:
        state = handmade()
        state.battles["over"], state.battles["winner"], state.battles["reason"] = 1, winner, reason
        state.battles["step_count"], state.teams["score"], state.teams["inside"] = 100, (18.25, 12.3), inside
        return state

    return end


BATTLES = {
    "weapons": weapons,
    "conditions": conditions,
    "materials": materials,
    "won": over(BLUE, ZONE_CONTROL, (1, 0)),
    "drawn": over(DRAW, ELIMINATION, (0, 0)),
}


def landscape() -> Terrain:
    """A map with lanes, spawn places, a tower, a roof, glass and everything that is flat."""
    terrain = flat_map()
    terrain.lanes[22:27, :] = terrain.lanes[8:40, 14:18] = Lane.DIRECT
    terrain.lanes[8:40, 30:34] = Lane.FLANK
    for number, material in enumerate((WATER, LAVA, DEBRIS, DIRT)):
        fill(terrain, material, (34, 40), (4 + 7 * number, 9 + 7 * number))
    fill(terrain, CONCRETE, (4, 8), (34, 38), (0, 10))
    fill(terrain, CONCRETE, (10, 14), (34, 38), (0, 1))
    fill(terrain, REINFORCED, (18, 26), (34, 40), (5, 6))
    fill(terrain, GLASS, (28, 29), (34, 42), (0, 4))
    fill(terrain, FOLIAGE, (40, 44), (38, 44), (0, 3))
    return terrain


MAPS = {
    "above": lambda terrain: map_picture(terrain, 480),
    "sheet": lambda terrain: contact_sheet([terrain] * 2, 2, title="two maps"),
}


@pytest.mark.parametrize("name", BATTLES)
def test_battles(name: str) -> None:
    state = BATTLES[name]()
    before = [array.tobytes() for array in state]
    assert not differs(Image.fromarray(render_frame(CONFIG, state, pixels=500)), name)
    assert [array.tobytes() for array in state] == before


@pytest.mark.parametrize("name", MAPS)
def test_maps(name: str) -> None:
    assert not differs(MAPS[name](landscape()), name)


@pytest.mark.parametrize(("name", "width"), [("conditions", 80), ("materials", 120), ("won", 40)])
def test_texts(name: str, width: int) -> None:
    text, path = render_ansi(CONFIG, BATTLES[name](), width=width), GOLDENS / f"{name}.txt"
    if "--write" in sys.argv:
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def test_all_materials_are_drawn() -> None:
    drawn = set(np.unique(materials().voxels)) | set(np.unique(landscape().voxels))
    assert drawn == set(range(len(catalog.MATERIALS)))


if __name__ == "__main__":
    GOLDENS.mkdir(exist_ok=True)
    for each in BATTLES:
        test_battles(each)
    for each in MAPS:
        test_maps(each)
    for each, columns in (("conditions", 80), ("materials", 120), ("won", 40)):
        test_texts(each, columns)
