"""Contact sheets of maps: pictures with captions and a legend."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np
from PIL import Image, ImageDraw

from echelon_env.config.catalog import AIR, CONCRETE, DIRT, MATERIALS, Material
from echelon_env.config.map import TerrainConfig
from echelon_env.render.canvas import LIGHT, OVERSAMPLING, Canvas, font
from echelon_env.render.map_picture import (
    AREA_NAMES,
    draw_lane,
    draw_spawn,
    draw_terrain,
    draw_zone,
    map_picture,
)
from echelon_env.render.palette import RGB
from echelon_env.terrain import Lane, Terrain
from echelon_env.terrain.statistics import EYE_LEVEL

MAX_WIDTH = 2400
"""Maximum width of a sheet in pixels."""

MAX_PICTURE = 960  # pixels, maximum width of one picture
GAP = 24  # pixels
TITLE, TEXT, MIN_TEXT = 30, 20, 13  # pixels, text heights
SWATCH = 26  # pixels
BACKDROP: RGB = (24, 26, 31)
MUTED: RGB = (170, 172, 176)

_BAND = np.repeat([[False], [True], [True], [False]], 4, axis=1)  # columns (Y, X) of the lane on a swatch


def contact_sheet(terrains: Iterable[Terrain], count: int, *, title: str) -> Image.Image:
    """Draw `count` maps in rows, each with its seed, content hash and biomes, with a title and a legend.

    Maps are consumed one by one, so that only one is in memory at a time.
    """
    columns = math.ceil(math.sqrt(count))
    width = min(MAX_PICTURE, (MAX_WIDTH - GAP) // columns - GAP)
    materials: set[int] = set()
    cells = []
    for terrain in terrains:
        materials.update(np.unique(terrain.voxels).tolist())
        cells.append(_captioned(map_picture(terrain, width), _caption(terrain)))
    rows = [_side_by_side(cells[start : start + columns]) for start in range(0, len(cells), columns)]
    return _page(title, rows, _legend(materials))


def _caption(terrain: Terrain) -> list[str]:
    """Caption lines: seed, first digits of the content hash, and the biomes of the quadrants."""
    south_west, south_east, north_west, north_east = terrain.biomes
    identity = f"seed {terrain.seed}   {terrain.content_hash[:8]}"
    if len(set(terrain.biomes)) == 1:
        return [identity, south_west]
    return [identity, f"NW {north_west}   NE {north_east}", f"SW {south_west}   SE {south_east}"]


def _captioned(picture: Image.Image, lines: list[str]) -> Image.Image:
    """A picture with lines of text below it. The first line is the brightest."""
    height = min(TEXT, max(MIN_TEXT, picture.width // 28))
    step = round(1.35 * height)
    cell = Image.new("RGB", (picture.width, picture.height + GAP // 3 + step * len(lines)), BACKDROP)
    cell.paste(picture)
    draw = ImageDraw.Draw(cell)
    for number, line in enumerate(lines):
        place = (0, picture.height + GAP // 3 + step * number)
        draw.text(place, line, font=font(height), fill=MUTED if number else LIGHT)
    return cell


def _side_by_side(pictures: list[Image.Image]) -> Image.Image:
    """Pictures in a row, aligned at the bottom."""
    row = Image.new("RGB", (sum(p.width + GAP for p in pictures) - GAP, max(p.height for p in pictures)), BACKDROP)
    left = 0
    for picture in pictures:
        row.paste(picture, (left, row.height - picture.height))
        left += picture.width + GAP
    return row


def _page(title: str, rows: list[Image.Image], entries: list[tuple[Image.Image, str]]) -> Image.Image:
    """A page with title, rows of pictures and legend, top to bottom."""
    width = max(row.width for row in rows)
    line = Image.new("RGB", (width, round(1.35 * TITLE)), BACKDROP)
    ImageDraw.Draw(line).text((0, 0), title, font=font(TITLE), fill=LIGHT)
    parts = [line, *rows, _flow(entries, width)]
    page = Image.new("RGB", (width + 2 * GAP, sum(part.height + GAP for part in parts) + GAP), BACKDROP)
    top = GAP
    for part in parts:
        page.paste(part, (GAP, top))
        top += part.height + GAP
    return page


def _flow(entries: list[tuple[Image.Image, str]], width: int) -> Image.Image:
    """Swatches with their texts, wrapped to rows of at most `width` pixels."""
    face = font(TEXT)
    places, left, top = [], 0, 0
    for swatch, text in entries:
        taken = swatch.width + GAP // 3 + math.ceil(face.getlength(text)) + GAP
        if left and left + taken - GAP > width:
            left, top = 0, top + SWATCH + GAP // 3
        places.append((left, top))
        left += taken
    picture = Image.new("RGB", (width, top + SWATCH), BACKDROP)
    draw = ImageDraw.Draw(picture)
    for (swatch, text), (x, y) in zip(entries, places, strict=True):
        picture.paste(swatch, (x, y))
        draw.text((x + swatch.width + GAP // 3, y + SWATCH / 2), text, font=face, anchor="lm", fill=MUTED)
    return picture


def _legend(materials: set[int]) -> list[tuple[Image.Image, str]]:
    """Legend entries for the marks and for the materials on the maps."""
    entries = [
        (_swatch([[DIRT]], lambda canvas: draw_spawn(canvas, 2, 2, 0)), f"spawn area {AREA_NAMES[0]}"),
        (_swatch([[DIRT]], lambda canvas: draw_spawn(canvas, 2, 2, 1)), f"spawn area {AREA_NAMES[1]}"),
        (_swatch([[DIRT]], lambda canvas: draw_zone(canvas, 2, 2, 1.5)), "zone"),
        (_swatch([[DIRT]], lambda canvas: draw_lane(canvas, _BAND, Lane.DIRECT)), "direct lane"),
        (_swatch([[DIRT]], lambda canvas: draw_lane(canvas, _BAND, Lane.FLANK)), "flanking lane"),
    ]
    for code in sorted(materials - {AIR}):
        fills = MATERIALS[code].blocks_movement or MATERIALS[code].blocks_sight
        entries.append((_swatch([[code] * (3 if fills else 1)]), _meaning(MATERIALS[code])))
    block = [[AIR], [CONCRETE] * 3, [CONCRETE] * 3, [AIR]]
    entries.append((_swatch(block), f"dark outline: blocks sight {EYE_LEVEL} m above the ground"))
    entries.append((_swatch([[CONCRETE] * metres for metres in (1, 7, 13, 19)]), "lighter: higher"))
    entries.append((_swatch([[AIR, AIR, CONCRETE]]), "hatched: room under a roof"))
    return entries


def _swatch(bands: list[list[int]], mark: Callable[[Canvas], None] | None = None) -> Image.Image:
    """Draw a map of 4 m x 4 m: bands from west to east, each with the material codes of a column from the ground up."""
    voxels = np.zeros((TerrainConfig().height, 4, 4), np.uint8)
    for band, codes in zip(np.array_split(np.arange(4), len(bands)), bands, strict=True):
        voxels[: len(codes), :, band] = np.array(codes)[:, None, None]
    canvas = draw_terrain(voxels, SWATCH)
    if mark is not None:
        mark(canvas)
    return canvas.image.reduce(OVERSAMPLING)


def _meaning(material: Material) -> str:
    """A material's name and its effects on mechs."""
    effects = {
        "solid": material.blocks_movement,
        "blocks sight": material.blocks_sight,
        "see-through": material.blocks_movement and not material.blocks_sight,
        "slows": material.speed_factor < 1,
        "heats": material.heat > 0,
        "cools": material.heat < 0,
        "burns": material.damage > 0,
    }
    words = [effect for effect, applies in effects.items() if applies]
    return f"{material.name}: {', '.join(words) or 'open ground'}"
