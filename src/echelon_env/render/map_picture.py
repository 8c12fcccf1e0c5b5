"""Pictures of generated maps from above, with lanes, zone and spawn places."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy import ndimage

from echelon_env.config.catalog import MATERIALS
from echelon_env.render.canvas import DARK, LIGHT, OVERSAMPLING, Canvas, around, font
from echelon_env.render.palette import RGB
from echelon_env.render.terrain_layer import FILLS, terrain_layer
from echelon_env.terrain import Lane, Terrain
from echelon_env.terrain.statistics import EYE_LEVEL

LANE_COLOURS: dict[Lane, RGB] = {Lane.DIRECT: (255, 205, 60), Lane.FLANK: (226, 140, 255)}
"""Colours of lanes. Nothing else on a map has these colours."""

AREA_NAMES = ("A", "B")
"""Letters of the spawn areas. Which team starts in which area is drawn at random at the start of a battle."""

LANE_TINT = 0.14
BESIDE = 2.5  # m, offset along each axis from a spawn place to a letter beside it
DASH = 9  # frame pixels, dashes of the outlines of flanking lanes
HEIGHT_VEIL = 0.55  # opacity of the white layer at the map's maximum height
_BLOCKS_SIGHT = np.array([material.blocks_sight for material in MATERIALS])

Scalar = TypeVar("Scalar", bound=np.generic)


def map_picture(terrain: Terrain, pixels: int) -> Image.Image:
    """Draw a map from above, RGB, `pixels` wide and high, north on top.

    Higher columns are lighter, and shadows point to the south-east. Columns that block sight at `EYE_LEVEL` have a
    dark outline. Direct lanes have a continuous outline, flanking lanes a dashed one. The zone is a ring. A spawn place
    is a disc in area A and a square in area B.
    """
    canvas = draw_terrain(terrain.voxels, pixels)
    draw_marks(canvas, terrain)
    for letter, places in zip(AREA_NAMES, terrain.spawns, strict=True):
        middle = places.mean(axis=0)
        if np.hypot(*(places - middle).T).min() < BESIDE:  # do not cover a spawn place
            middle += np.where(middle < terrain.config.terrain.size / 2, BESIDE, -BESIDE)
        x, y = (float(metres) for metres in middle)
        place, height = canvas.at(x, y), max(14, pixels // 18) * canvas.pixel
        stroke = 2 * canvas.pixel
        canvas.draw.text(
            place, letter, font=font(height), anchor="mm", fill=LIGHT, stroke_width=stroke, stroke_fill=DARK
        )
    return canvas.image.reduce(OVERSAMPLING)


def draw_terrain(voxels: NDArray[np.uint8], pixels: int) -> Canvas:
    """Draw voxels (Z, Y, X) on a canvas for a picture `pixels` wide, with clearer heights than in battle frames."""
    canvas = Canvas(terrain_layer(voxels, pixels), voxels.shape[1])
    filled = FILLS[voxels]
    heights = np.where(filled.any(axis=0), len(filled) - filled[::-1].argmax(axis=0), 0)
    veil = _to_pixels(heights, canvas.image.width) * (HEIGHT_VEIL / len(filled))
    canvas.image.paste(LIGHT, (0, 0), _mask(veil))
    blocks_sight = _BLOCKS_SIGHT[voxels[int(EYE_LEVEL)]]
    _paint(canvas, _border(_to_pixels(blocks_sight, canvas.image.width), canvas.pixel), DARK, 0.8)
    return canvas


def draw_marks(canvas: Canvas, terrain: Terrain) -> None:
    """Draw lanes, zone and spawn places of a map. Lanes end at the zone's ring."""
    centres = np.arange(terrain.config.terrain.size) + 0.5
    outside = np.hypot((centres - terrain.zone_y)[:, None], centres - terrain.zone_x) > terrain.zone_radius
    for lane in (Lane.FLANK, Lane.DIRECT):
        draw_lane(canvas, (terrain.lanes & lane != 0) & outside, lane)
    draw_zone(canvas, terrain.zone_x, terrain.zone_y, terrain.zone_radius)
    for area, places in enumerate(terrain.spawns):
        for place in places:
            draw_spawn(canvas, float(place[0]), float(place[1]), area)


def draw_lane(canvas: Canvas, columns: NDArray[np.bool_], lane: Lane) -> None:
    """Tint a lane's columns (Y, X) and draw their outline: continuous for direct lanes, dashed for others."""
    inside = _to_pixels(columns, canvas.image.width)
    border = _border(inside, canvas.pixel)
    if lane != Lane.DIRECT:
        rows, across = np.ogrid[: len(border), : len(border)]
        border &= (rows + across) // (DASH * canvas.pixel) % 2 == 0
    _paint(canvas, inside, LANE_COLOURS[lane], LANE_TINT)
    _paint(canvas, border, LANE_COLOURS[lane], 0.9)


def draw_zone(canvas: Canvas, x: float, y: float, radius: float) -> None:
    """Draw a white ring (metres) around lightened ground, with a dark outer edge that is visible on any ground."""
    place, inner = canvas.at(x, y), radius * canvas.scale
    canvas.disc(place, inner, LIGHT, 40)
    for wider, width, ink in ((1, 4, DARK), (0, 2, LIGHT)):
        canvas.draw.ellipse(around(place, inner + wider * canvas.pixel), outline=ink, width=width * canvas.pixel)


def draw_spawn(canvas: Canvas, x: float, y: float, area: int) -> None:
    """Draw a spawn place (metres): a disc in the first area, a square in the second."""
    radius = max(canvas.scale, 2.5 * canvas.pixel)
    for reach, ink in ((radius + canvas.pixel, DARK), (radius, LIGHT)):
        (canvas.draw.rectangle if area else canvas.draw.ellipse)(around(canvas.at(x, y), reach), fill=ink)


def _to_pixels(columns: NDArray[Scalar], pixels: int) -> NDArray[Scalar]:
    """Resize an array of columns (Y, X) to a picture `pixels` wide, north on top."""
    nearest = np.arange(pixels) * len(columns) // pixels
    return columns[nearest[::-1, None], nearest]


def _border(inside: NDArray[np.bool_], width: int) -> NDArray[np.bool_]:
    """The border of the marked pixels, `width` pixels thick, on the inside. The map's edge is no border."""
    border: NDArray[np.bool_] = inside & ~ndimage.minimum_filter(inside, 2 * width + 1, mode="nearest")
    return border


def _paint(canvas: Canvas, where: NDArray[np.bool_], colour: RGB, opacity: float) -> None:
    """Blend a colour over the pixels in `where`."""
    canvas.image.paste(colour, (0, 0), _mask(where * opacity))


def _mask(opacity: NDArray[Any]) -> Image.Image:
    """A Pillow mask from opacities of 0 to 1."""
    return Image.fromarray((255 * opacity).astype(np.uint8))
