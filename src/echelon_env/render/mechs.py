"""Draws living and dead mechs on a map."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from PIL import Image, ImageDraw

from echelon_env.config.battle import BattleConfig
from echelon_env.config.catalog import MechClass
from echelon_env.render.canvas import DARK, FIRE, FLASH, LIGHT, Canvas, font
from echelon_env.render.palette import RGB, TEAMS

ARMOUR_COLOUR: RGB = (150, 235, 110)
HEAT_COLOUR: RGB = (255, 176, 0)
SHUTDOWN_DIM = 0.4  # multiplies the team's colour
FALLEN_TILT = math.radians(25)
MIN_LETTER, MIN_NAME = 8, 16  # frame pixels, minimum size of a box with a legible letter, or a name
MIN_BAR = 9  # frame pixels


def draw_dead(canvas: Canvas, mech: Any) -> None:
    """Draw an X in the team's colour at a dead mech, larger in the decision of its death."""
    place = canvas.at(mech["x"], mech["y"])
    reach = canvas.length(0.9, 4.5) if mech["died"] else canvas.length(0.55, 3)
    colour = TEAMS[mech["team"]].colour
    if mech["died"]:
        for ink, size in ((FIRE, 2.9), (FLASH, 2.0)):
            canvas.star(place, size * reach, 10, ink, 170)
    for ink, width, alpha in ((DARK, 5.5, 200), (LIGHT, 3.5, 230), (colour, 2, 255)):
        canvas.cross(place, reach, ink, width, alpha)


def draw_living(canvas: Canvas, config: BattleConfig, mechs: Sequence[Any], names: Sequence[str]) -> None:
    """Draw living mechs with their names. Later ones cover earlier ones, but no wedge covers another mech's box."""
    for mech in mechs:
        _draw_wedge(canvas, mech, config.catalog.mech_classes[mech["mech_class"]])
    for mech, name in zip(mechs, names, strict=True):
        _draw_box(canvas, mech, config.catalog.mech_classes[mech["mech_class"]], name.split()[1])


def _draw_box(canvas: Canvas, mech: Any, mech_class: MechClass, name: str) -> None:
    """Draw the footprint in the team's colour with the mech's name: the letter of its class, and its number.

    A small box has the letter only. A shut-down mech is dark with an edge in the heat colour. The box of a fallen mech
    is tilted, its name rotated.
    """
    px, py = canvas.at(mech["x"], mech["y"])
    half_x, half_y = mech_class.length / 2 * canvas.scale, mech_class.width / 2 * canvas.scale
    tilt = FALLEN_TILT if mech["fallen"] else 0.0
    along, aside = math.cos(tilt), math.sin(tilt)
    colour = TEAMS[mech["team"]].colour
    fill = _dimmed(colour, SHUTDOWN_DIM) if mech["shutdown"] else colour
    for margin, shade in ((2, DARK), (1, _ink(mech)), (0, fill)):
        reach_x, reach_y = half_x + margin * canvas.pixel, half_y + margin * canvas.pixel
        corners = [(reach_x, reach_y), (-reach_x, reach_y), (-reach_x, -reach_y), (reach_x, -reach_y)]
        canvas.draw.polygon([(px + x * along - y * aside, py + x * aside + y * along) for x, y in corners], fill=shade)
    half = min(half_x, half_y)
    whole = 2 * half >= MIN_NAME * canvas.pixel
    if 2 * half >= MIN_LETTER * canvas.pixel:
        text, height = (name, 2.1 * half / len(name)) if whole else (name[0], 1.5 * half)
        _draw_text(canvas, (px, py), text, round(height), _ink(mech), bool(mech["fallen"]))


def _draw_text(canvas: Canvas, place: tuple[float, float], text: str, height: int, ink: RGB, rotated: bool) -> None:
    if not rotated:
        canvas.draw.text(place, text, font=font(height), anchor="mm", fill=ink)
        return
    side = height * len(text)
    mask = Image.new("L", (side, side))
    ImageDraw.Draw(mask).text((side / 2, side / 2), text, font=font(height), anchor="mm", fill=255)
    corner = round(place[0] - side / 2), round(place[1] - side / 2)
    canvas.image.paste(ink, corner, mask.rotate(90 - math.degrees(FALLEN_TILT)))


def _ink(mech: Any) -> RGB:
    return HEAT_COLOUR if mech["shutdown"] else LIGHT


def _dimmed(colour: RGB, factor: float) -> RGB:
    """A colour with every channel multiplied by `factor` <= 1."""
    red, green, blue = colour
    return round(red * factor), round(green * factor), round(blue * factor)


def _draw_wedge(canvas: Canvas, mech: Any, mech_class: MechClass) -> None:
    """Draw a triangle from the centre to beyond the box, in the direction that the mech faces."""
    px, py = canvas.at(mech["x"], mech["y"])
    half = max(mech_class.length, mech_class.width) / 2 * canvas.scale
    length = 2.0 * half + 6 * canvas.pixel
    ahead_x, ahead_y = math.cos(mech["yaw"]), -math.sin(mech["yaw"])
    corners = [
        (px + ahead_x * along - ahead_y * aside, py + ahead_y * along + ahead_x * aside)
        for along, aside in ((length, 0.0), (0.0, half), (0.0, -half))
    ]
    canvas.draw.polygon(corners, fill=_ink(mech), outline=DARK, width=canvas.pixel)


def draw_bars(canvas: Canvas, config: BattleConfig, mechs: Sequence[Any]) -> None:
    """Draw bars above each living mech's box: remaining armour over heat, as shares of the class's values."""
    pixel = canvas.pixel
    for mech in mechs:
        mech_class = config.catalog.mech_classes[mech["mech_class"]]
        px, py = canvas.at(mech["x"], mech["y"])
        half = canvas.length(mech_class.length / 2, MIN_BAR / 2)
        # aligned to frame pixels, because downsampling would blur bars of one pixel
        left = pixel * round((px - half) / pixel)
        top = pixel * max(0, round((py - mech_class.width / 2 * canvas.scale) / pixel) - 7)
        canvas.draw.rectangle((left - pixel, top, left + 2 * half + pixel - 1, top + 5 * pixel - 1), fill=DARK)
        armour, heat = mech["armour"] / mech_class.armour, min(1.0, mech["heat"] / mech_class.heat_capacity)
        for share, colour, upper, lower in ((armour, ARMOUR_COLOUR, 1, 3), (heat, HEAT_COLOUR, 3, 4)):
            if share > 0:
                right = max(left, left + 2 * half * share - 1)
                canvas.draw.rectangle((left, top + upper * pixel, right, top + lower * pixel - 1), fill=colour)
