"""Draws marks at living mechs: painted, ECM or ECCM, legs destroyed, suppressed."""

from __future__ import annotations

from typing import Any

from echelon_env.config.battle import BattleConfig
from echelon_env.engine.allocation import pack_counts
from echelon_env.engine.state import ECM, SILENT, State
from echelon_env.render.canvas import DARK, LIGHT, Canvas, font
from echelon_env.render.palette import RGB, TEAMS

SUPPRESSED: RGB = (255, 226, 120)
LABEL = 9  # frame pixels, text height of the label of a ring
RING = 2.6  # m
SIGN = 2.5  # frame pixels, half the size of the signs below a box


def draw_marks(canvas: Canvas, config: BattleConfig, state: State, battle: int) -> None:
    """Draw brackets in the painting team's colour, a dashed ring for ECM or ECCM, and small signs below the box."""
    blue_packs = pack_counts(config)[0]
    painted = state.paint[battle]["ticks"] > 0
    for index, mech in enumerate(state.mechs[battle]):
        if not mech["alive"]:
            continue
        mech_class = config.catalog.mech_classes[mech["mech_class"]]
        half = mech_class.length / 2 * canvas.scale, mech_class.width / 2 * canvas.scale
        place = canvas.at(mech["x"], mech["y"])
        if mech["radiates"] != SILENT and not mech["shutdown"]:
            _draw_ring(canvas, place, "ECM" if mech["radiates"] == ECM else "ECCM", TEAMS[mech["team"]].colour)
        for team, packs in enumerate((slice(None, blue_packs), slice(blue_packs, None))):
            if painted[packs, index].any():
                _draw_brackets(canvas, place, half, TEAMS[team].colour)
        _draw_signs(canvas, mech, place, half)


def _draw_ring(canvas: Canvas, place: tuple[float, float], label: str, colour: RGB) -> None:
    """Draw a ring with long dashes for ECM or short ones for ECCM, and its label."""
    radius = canvas.length(RING, 14)
    for width, ink in ((3.0, DARK), (1.5, colour)):
        canvas.dashes(place, radius, ink, 8 if label == "ECM" else 20, width)
    face, where = font(LABEL * canvas.pixel), (place[0], place[1] + radius + 2 * canvas.pixel)
    canvas.draw.text(where, label, font=face, anchor="mt", fill=LIGHT, stroke_width=canvas.pixel, stroke_fill=DARK)


def _draw_brackets(canvas: Canvas, place: tuple[float, float], half: tuple[float, float], colour: RGB) -> None:
    """Draw four corners around the box and its bars."""
    pixel = canvas.pixel
    left, right = place[0] - half[0] - 5 * pixel, place[0] + half[0] + 5 * pixel
    top, bottom = place[1] - half[1] - 10 * pixel, place[1] + half[1] + 5 * pixel
    reach = max(4 * pixel, (right - left) / 4)
    for width, ink in ((4.0, DARK), (2.0, colour)):
        for x, inward in ((left, 1), (right, -1)):
            for y, down in ((top, 1), (bottom, -1)):
                corner = [(x + inward * reach, y), (x, y), (x, y + down * reach)]
                canvas.draw.line(corner, fill=ink, width=round(width * pixel), joint="curve")


def _draw_signs(canvas: Canvas, mech: Any, place: tuple[float, float], half: tuple[float, float]) -> None:
    """Draw signs below the box: a cross (left) for destroyed legs, two chevrons down (right) for suppression."""
    size = SIGN * canvas.pixel
    y = place[1] + half[1] + 2 * size
    if mech["legs"] <= 0:
        for width, ink in ((3.5, DARK), (1.5, LIGHT)):
            canvas.cross((place[0] - half[0] / 2, y), size, ink, width)
    if mech["suppressed"] > 0:
        x = place[0] + half[0] / 2
        for width, ink in ((3.5, DARK), (1.5, SUPPRESSED)):
            for down in (-size, size / 2):
                corner = [(x - size, y + down), (x, y + down + size), (x + size, y + down)]
                canvas.draw.line(corner, fill=ink, width=round(width * canvas.pixel))
