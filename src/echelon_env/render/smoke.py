"""Draws smoke clouds on a map."""

from __future__ import annotations

import math

from PIL import Image, ImageChops

from echelon_env.config.battle import BattleConfig
from echelon_env.engine.state import State
from echelon_env.render.canvas import Canvas, soft_disc
from echelon_env.render.palette import RGB

SMOKE: tuple[RGB, RGB] = ((142, 168, 206), (200, 157, 145))  # by team: grey with 30 % of its colour
PUFFS = 6
BETWEEN = 0.8  # relative opacity of a cloud between its puffs
FADING = 1.5  # s, duration of the fading at the end of a cloud
THIN = 0.45  # relative opacity at the end


def smoke_masks(canvas: Canvas, config: BattleConfig, state: State, battle: int) -> list[Image.Image]:
    """Opacity (0..255) of each team's smoke at each canvas pixel: the maximum over its clouds.

    A cloud is a disc with more opaque puffs in it.
    """
    masks = [Image.new("L", canvas.image.size) for _ in SMOKE]
    for cloud in state.clouds[battle, : state.battles[battle]["num_clouds"]]:
        mask = masks[cloud["team"]]
        left = min(1.0, float(cloud["ticks"]) * config.dt / FADING)
        level = 255 * (THIN + (1 - THIN) * left)
        place = canvas.at(cloud["x"], cloud["y"])
        radius = cloud["radius"] * canvas.scale
        _thicken(mask, place, radius, round(BETWEEN * level))
        for puff in range(PUFFS):
            turn = math.tau * puff / PUFFS
            middle = place[0] + 0.5 * radius * math.cos(turn), place[1] + 0.5 * radius * math.sin(turn)
            _thicken(mask, middle, 0.42 * radius, round(level))
    return masks


def _thicken(mask: Image.Image, centre: tuple[float, float], radius: float, level: int) -> None:
    disc = soft_disc(max(1, round(2 * radius))).point([value * level // 255 for value in range(256)])
    left, top = round(centre[0] - radius), round(centre[1] - radius)
    below = mask.crop((left, top, left + disc.width, top + disc.height))
    mask.paste(ImageChops.lighter(below, disc), (left, top))


def draw_smoke(canvas: Canvas, masks: list[Image.Image], opacity: int) -> None:
    """Draw each team's smoke with its opacity of `masks`, scaled to at most `opacity` (0..255)."""
    for colour, mask in zip(SMOKE, masks, strict=True):
        box = mask.getbbox()
        if box is not None:
            canvas.image.paste(colour, box, mask.crop(box).point([value * opacity // 255 for value in range(256)]))
