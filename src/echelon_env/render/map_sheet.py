"""Contact sheets of maps: pictures with captions and a legend."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Literal

import numpy as np
from PIL import Image, ImageDraw

from echelon_env.config.catalog import AIR, CONCRETE, DIRT, MATERIALS, Material
from echelon_env.config.map import TerrainConfig
from echelon_env.render.canvas import LIGHT, OVERSAMPLING, Canvas, font
from echelon_env.render.isometric import BACKDROP, isometric_picture
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

MapView = Literal["above", "isometric"]

MAX_WIDTH = 2400
"""Maximum width of a sheet in pixels."""

MAX_PICTURE: dict[MapView, int] = {"above": 960, "isometric": 1400}  # pixels, maximum width of one picture
GAP = 24  # pixels
TITLE, TEXT, MIN_TEXT = 30, 20, 13  # pixels, text heights
SWATCH = 26  # pixels
MUTED: RGB = (170, 172, 176)

_BAND = np.repeat([[False], [True], [True], [False]], 4, axis=1)  # columns (Y, X) of the lane on a swatch
_DRAW: dict[MapView, Callable[[Terrain, int], Image.Image]] = {"above": map_picture, "isometric": isometric_picture}


def contact_sheet(terrains: Iterable[Terrain], count: int, *, view: MapView, title: str) -> Image.Image:
    """Draw `count` maps in rows, each with its seed, content hash and biomes, with a title and a legend.

    Maps are consumed one by one, so that only one is in memory at a time.
    """
    columns = math.ceil(math.sqrt(count)) if view == "above" else math.isqrt(count)
    width = min(MAX_PICTURE[view], (MAX_WIDTH - GAP) // columns - GAP)
    materials: set[int] = set()
    cells = []
    for terrain in terrains:
        materials.update(np.unique(terrain.voxels).tolist())
        cells.append(_captioned(_DRAW[view](terrain, width), _caption(terrain)))
    rows = [_side_by_side(cells[start : start + columns]) for start in range(0, len(cells), columns)]
    return _page(title, "", rows, _legend(materials, view))


def biome_page(terrain: Terrain, name: str, summary: str) -> Image.Image:
    """Draw a map of one biome from above and isometrically, with the biome's name and summary."""
    above = map_picture(terrain, 860)
    aside = isometric_picture(terrain, MAX_WIDTH - above.width - 3 * GAP)
    row = _side_by_side([_captioned(above, _caption(terrain)), aside])
    legend = _legend(set(np.unique(terrain.voxels).tolist()), "above")
    return _page(name, summary, [row], legend)


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


def _page(title: str, summary: str, rows: list[Image.Image], entries: list[tuple[Image.Image, str]]) -> Image.Image:
    """A page with title, summary, rows of pictures and legend, top to bottom."""
    width = max(row.width for row in rows)
    parts = [_text(title, width, TITLE, LIGHT), *([_text(summary, width, TEXT, MUTED)] if summary else [])]
    parts += [*rows, _flow(entries, width)]
    page = Image.new("RGB", (width + 2 * GAP, sum(part.height + GAP for part in parts) + GAP), BACKDROP)
    top = GAP
    for part in parts:
        page.paste(part, (GAP, top))
        top += part.height + GAP
    return page


def _text(text: str, width: int, height: int, colour: RGB) -> Image.Image:
    """Text, wrapped to lines of at most `width` pixels."""
    face, step = font(height), round(1.35 * height)
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".lstrip()
        if lines[-1] and face.getlength(longer) > width:
            lines.append(word)
        else:
            lines[-1] = longer
    picture = Image.new("RGB", (width, step * len(lines)), BACKDROP)
    ImageDraw.Draw(picture).multiline_text((0, 0), "\n".join(lines), font=face, fill=colour, spacing=step - height)
    return picture


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


def _legend(materials: set[int], view: MapView) -> list[tuple[Image.Image, str]]:
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
    if view == "above":
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
