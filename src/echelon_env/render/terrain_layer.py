"""The picture of a map seen from above, without anything that moves."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from echelon_env.catalog import MATERIALS
from echelon_env.render.palette import BEDROCK, STYLE_BY_MATERIAL

SHADOW_DROP = 2  # m that the sunlight, from the north-west, falls per voxel of the diagonal
SHADOW = 0.66  # factor on the colour
PLAIN, LIT, DIM = range(3)
EDGE_FACTORS = (1.0, 1.3, 0.62)  # on the colour, by kind of edge


def terrain_layer(voxels: NDArray[np.uint8], pixels: int) -> Image.Image:
    """A fresh picture, (pixels, pixels) RGB with north on top, of `voxels` (Z, Y, X).

    Layers are cached by the voxels themselves: a map that is reset or loses voxels gets another picture, with nobody to
    tell. Hashing a map costs far less than drawing it.
    """
    return _cached_layer(voxels.tobytes(), voxels.shape, pixels).copy()


@lru_cache(maxsize=4)
def _cached_layer(content: bytes, shape: tuple[int, ...], pixels: int) -> Image.Image:
    voxels = np.frombuffer(content, np.uint8).reshape(shape)
    colours, relief = _surface(voxels)
    colours *= np.where(_shadowed(relief, shape[0]), SHADOW, 1.0)[..., None]
    shades = np.stack([np.clip(colours * factor, 0, 255).astype(np.uint8) for factor in EDGE_FACTORS])
    size = relief.shape[0]
    nearest = (np.arange(pixels) * size) // pixels
    rows, columns = nearest[::-1, None], nearest[None, :]
    edges = _edges(relief.astype(np.uint8)[rows, columns], max(1, pixels // 800))
    return Image.fromarray(shades[edges, rows, columns])


def _surface(voxels: NDArray[np.uint8]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Colours (Y, X, 3) 0..255 and heights (Y, X) in metres of what is seen from above; higher voxels are lighter."""
    colour = np.array([style.colour for style in STYLE_BY_MATERIAL], np.float64)
    opacity = np.array([style.opacity for style in STYLE_BY_MATERIAL])
    has_volume = np.array([material.blocks_movement or material.blocks_sight for material in MATERIALS])
    colours = np.broadcast_to(np.array(BEDROCK, np.float64), (*voxels.shape[1:], 3)).copy()
    relief = np.zeros(voxels.shape[1:], np.int64)
    for z, layer in enumerate(voxels):
        lightness = np.where(has_volume, 0.72 + 0.6 * (z + 1) / len(voxels), 1.0)
        colours += ((colour * lightness[:, None])[layer] - colours) * opacity[layer][..., None]
        relief[has_volume[layer]] = z + 1
    return colours, relief


def _shadowed(relief: NDArray[np.int64], height: int) -> NDArray[np.bool_]:
    """Where (Y, X) something to the north-west keeps the sunlight off."""
    shadow = np.zeros(relief.shape, np.bool_)
    for step in range(1, min(height // SHADOW_DROP + 1, relief.shape[0])):
        shadow[:-step, step:] |= relief[step:, :-step] > relief[:-step, step:] + SHADOW_DROP * step
    return shadow


def _edges(relief: NDArray[np.uint8], width: int) -> NDArray[np.intp]:
    """Index into `EDGE_FACTORS` per pixel of a picture with these heights, north on top: edges where heights drop."""
    edges = np.full(relief.shape, PLAIN)
    edges[width:, width:][relief[width:, width:] > relief[:-width, :-width]] = LIT
    edges[:-width, :-width][relief[width:, width:] < relief[:-width, :-width]] = DIM
    return edges
