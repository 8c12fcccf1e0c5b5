"""The static picture of a map seen from above."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from echelon_env.config.catalog import AIR, MATERIALS
from echelon_env.render.canvas import OVERSAMPLING
from echelon_env.render.palette import BEDROCK, STYLE_BY_MATERIAL, TEXTURE_CELLS, TEXTURE_METRES

SHADOW_DROP = 2  # m, descent of a sunbeam from the north-west per diagonal voxel
SHADOW = 0.66  # multiplies the colour in shadow
FILLS = np.array([material.blocks_movement or material.blocks_sight for material in MATERIALS])
"""Whether a material fills its voxel; others are flat."""
PLAIN, LIT, DIM, ACCENT = range(4)
"""Appearance of a pixel: the voxel's colour, lighter, darker, or the accent of its texture."""
FACTORS = (1.0, 1.3, 0.62)  # multiply the colour for PLAIN, LIT and DIM
TEXTURE_SYMBOLS = ".+-*"  # symbols of the four, in this order
HOLLOW = len(MATERIALS)  # texture of columns with a gap below a solid voxel
HOLLOW_TEXTURE = ("**..**..", "*..**..*", "..**..**", ".**..**.") * 2
HOLLOW_ACCENT = 0.25  # multiplies the colour


def terrain_layer(voxels: NDArray[np.uint8], pixels: int) -> Image.Image:
    """Draw `voxels` (Z, Y, X) as an RGB picture with north on top, for the canvas of a frame `pixels` wide.

    Pictures are cached by the content of the voxels, so changed maps are redrawn without invalidation. Hashing a map is
    far cheaper than drawing it. The map is drawn in frame pixels, not canvas pixels: its edges are parallel to the
    axes, and oversampling would take most of a frame's time after every destroyed voxel.
    """
    layer = _cached_layer(voxels.tobytes(), voxels.shape, pixels)
    return layer.resize((pixels * OVERSAMPLING,) * 2, Image.Resampling.NEAREST)


@lru_cache(maxsize=4)
def _cached_layer(content: bytes, shape: tuple[int, ...], pixels: int) -> Image.Image:
    voxels = np.frombuffer(content, np.uint8).reshape(shape)
    colours, accents, relief, texture = _surface(voxels)
    light = np.where(_shadowed(relief, shape[0]), SHADOW, 1.0)[..., None]
    shades = np.stack([*(colours * factor for factor in FACTORS), accents]) * light
    size = relief.shape[0]
    nearest = (np.arange(pixels) * size) // pixels
    rows, columns = nearest[::-1, None], nearest[None, :]
    looks = _looks(relief.astype(np.uint8)[rows, columns], texture.astype(np.uint8)[rows, columns], size)
    cells = (looks * size + rows) * size + columns
    return Image.fromarray(np.clip(shades, 0, 255).astype(np.uint8).reshape(-1, 3).take(cells, axis=0))


def _surface(
    voxels: NDArray[np.uint8],
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """The surface seen from above: colours and accents (Y, X, 3) 0..255, heights in metres and textures (Y, X).

    Higher voxels are lighter.
    """
    colour = np.array([style.colour for style in STYLE_BY_MATERIAL], np.float64)
    accent = np.array([style.accent for style in STYLE_BY_MATERIAL], np.float64)
    opacity = np.array([style.opacity for style in STYLE_BY_MATERIAL])
    solid = np.array([material.blocks_movement for material in MATERIALS])
    colours = np.broadcast_to(np.array(BEDROCK, np.float64), (*voxels.shape[1:], 3)).copy()
    relief, texture = np.zeros((2, *voxels.shape[1:]), np.int64)
    gap, hollow = np.zeros((2, *voxels.shape[1:]), np.bool_)
    for z, layer in enumerate(voxels):
        lightness = np.where(FILLS, 0.72 + 0.6 * (z + 1) / len(voxels), 1.0)
        colours += ((colour * lightness[:, None])[layer] - colours) * opacity[layer][..., None]
        relief[FILLS[layer]] = z + 1
        filled = layer != AIR
        texture[filled] = layer[filled]
        hollow |= solid[layer] & gap
        gap |= ~solid[layer]
    accents = np.where(hollow[..., None], colours * HOLLOW_ACCENT, accent[texture])
    return colours, accents, relief, np.where(hollow, HOLLOW, texture)


def _shadowed(relief: NDArray[np.int64], height: int) -> NDArray[np.bool_]:
    """Mask (Y, X) of the columns in the shadow of higher ones to the north-west."""
    shadow = np.zeros(relief.shape, np.bool_)
    for step in range(1, min(height // SHADOW_DROP + 1, relief.shape[0])):
        shadow[:-step, step:] |= relief[step:, :-step] > relief[:-step, step:] + SHADOW_DROP * step
    return shadow


def _looks(relief: NDArray[np.uint8], texture: NDArray[np.uint8], size: int) -> NDArray[np.intp]:
    """PLAIN, LIT, DIM or ACCENT for each pixel of a picture, north on top, of a map with edges of `size` metres.

    `relief` and `texture` are the heights and textures of the pixels. Edges are LIT or DIM where heights differ.
    """
    pixels = len(relief)
    place = np.arange(pixels) * size * TEXTURE_CELLS // (pixels * TEXTURE_METRES) % TEXTURE_CELLS
    tile = texture.astype(np.intp) * TEXTURE_CELLS**2 + place[:, None] * TEXTURE_CELLS + place[None, :]
    looks = _tiles().take(tile)
    width = max(1, round(pixels / 1600))
    looks[width:, width:][relief[width:, width:] > relief[:-width, :-width]] = LIT
    looks[:-width, :-width][relief[width:, width:] < relief[:-width, :-width]] = DIM
    return looks


@lru_cache(maxsize=1)
def _tiles() -> NDArray[np.intp]:
    """The appearance of each cell of each texture, flat. The last texture is `HOLLOW_TEXTURE`."""
    textures = [*(style.texture for style in STYLE_BY_MATERIAL), HOLLOW_TEXTURE]
    return np.array([TEXTURE_SYMBOLS.index(symbol) for rows in textures for row in rows for symbol in row])
