"""Battles as pictures, seen from above."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from echelon_env.config.battle import BattleConfig
from echelon_env.engine.state import State
from echelon_env.render.canvas import OVERSAMPLING, Canvas
from echelon_env.render.effects import draw_events, draw_zone
from echelon_env.render.header import draw_banner, draw_header, header_height
from echelon_env.render.marks import draw_marks
from echelon_env.render.mechs import draw_bars, draw_dead, draw_living
from echelon_env.render.palette import mech_names
from echelon_env.render.projectiles import draw_projectiles
from echelon_env.render.smoke import draw_smoke, smoke_masks
from echelon_env.render.terrain_layer import terrain_layer

MIN_PIXELS, MAX_PIXELS = 300, 4096
THICK, THIN = 200, 60  # opacity of smoke under and over mechs


def render_frame(config: BattleConfig, state: State, battle: int = 0, pixels: int = 800) -> NDArray[np.uint8]:
    """Render battle number `battle` as (H, W, 3) uint8 with W = `pixels`: a header above the square map.

    North (y) is on top, east (x) on the right. Raises ValueError if `pixels` is not in 300..4096, and IndexError if
    there is no such battle.
    """
    if not MIN_PIXELS <= pixels <= MAX_PIXELS:
        raise ValueError(f"pixels: expected {MIN_PIXELS} to {MAX_PIXELS}, got {pixels}")
    check_battle(state, battle)
    canvas = Canvas(terrain_layer(state.voxels[battle], pixels), config.terrain.size)
    draw_zone(canvas, state.battles[battle], state.teams[battle])
    for mech in state.mechs[battle][state.mechs[battle]["alive"] == 0]:
        draw_dead(canvas, mech)
    mechs = state.mechs[battle]
    rows = np.flatnonzero(mechs["alive"])
    rows = rows[np.argsort(mechs["z"][rows], kind="stable")]
    low_first, names = mechs[rows], mech_names(config)
    smoke = smoke_masks(canvas, config, state, battle)
    draw_smoke(canvas, smoke, THICK)
    draw_living(canvas, config, low_first, [names[row] for row in rows])
    draw_smoke(canvas, smoke, THIN)  # covers mechs inside the smoke slightly
    draw_events(canvas, config, state, battle)
    draw_projectiles(canvas, config, state, battle)
    draw_marks(canvas, config, state, battle)
    draw_bars(canvas, config, low_first)
    top = header_height(pixels)
    frame = Image.new("RGB", (pixels, pixels + top))
    frame.paste(canvas.image.reduce(OVERSAMPLING), (0, top))
    draw_header(frame, config, state, battle)
    if state.battles[battle]["over"]:
        draw_banner(frame, state, battle)
    return np.array(frame)


def check_battle(state: State, battle: int) -> None:
    """Raise IndexError unless `battle` is the number of one of the state's battles."""
    if not 0 <= battle < len(state.battles):
        raise IndexError(f"battle: expected 0 to {len(state.battles) - 1}, got {battle}")
