"""Pictures of generated maps in parallel projection, seen from the south-west and above.

The renderer uses the painter's algorithm: it stamps voxels from the farthest to the nearest, so that the last one on
a pixel is visible. It stamps face numbers first, then colours the faces, and then blends glass over them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from scipy import ndimage

from echelon_env.config.catalog import AIR, FOLIAGE, GLASS, LAVA, MATERIALS
from echelon_env.render.canvas import DARK, LIGHT, Canvas, around, font
from echelon_env.render.map_picture import AREA_NAMES, draw_marks
from echelon_env.render.palette import RGB, STYLE_BY_MATERIAL
from echelon_env.render.terrain_layer import FILLS, SHADOW_DROP, terrain_layer
from echelon_env.terrain import Terrain

BACKDROP: RGB = (24, 26, 31)
TOP, WEST, SOUTH = range(3)
"""The visible faces of a voxel."""

SUNLIT, SHADED = (1.1, 0.84, 0.56), (0.66, 0.56, 0.48)
"""Brightness of the faces. The sun is in the north-west; south faces get light from the sky only."""

LIGHTNESS = 0.78, 1.45  # brightness on the ground and at the map's maximum height
GRAIN = 0.05  # random variation of brightness between voxels, so that neighbours are distinguishable
LEAVES = 0.3  # random variation of brightness between spots on foliage
SPOT = 2  # size of the spots in pixels before downsampling
PANE = (0.42, 0.26, 0.2)  # opacity of the faces of glass
PANE_COLOUR: RGB = (176, 228, 250)
GLOW = 0.6  # brightness of the light around lava
GLOW_REACH = 1.2  # m
PIN = 3  # m, height of the pin heads above the highest voxel
HIDDEN_RING = 90  # opacity (0..255) of the zone's circle where it is hidden
CHUNK = 1 << 22  # number of pixels that are stamped at once

_OPAQUE = FILLS & (np.arange(len(MATERIALS)) != GLASS)
_COLOURS = np.array([style.colour for style in STYLE_BY_MATERIAL], np.float64)

Indices = NDArray[np.intp]


def isometric_picture(terrain: Terrain, pixels: int) -> Image.Image:
    """Draw a map in parallel projection, RGB, `pixels` wide. North is at the upper left, east at the upper right.

    The ground has the marks of `map_picture`. Pins mark the spawn areas and the zone even where voxels hide them.
    """
    view = View.of(terrain.voxels, pixels)
    image = Image.fromarray(_render(terrain, view))
    _draw_pins(image, view, terrain)
    _draw_compass(image, view)
    first = int((np.asarray(image) != BACKDROP).any(axis=(1, 2)).argmax())
    image = image.crop((0, first, *image.size))
    return image.resize((pixels, round(image.height * pixels / image.width)), Image.Resampling.LANCZOS)


@dataclass(frozen=True)
class View:
    """The projection of a map of `size` x `size` x `top` metres to pixels."""

    size: int
    top: int
    scale: int  # pixels, even: half the width and the full height of a voxel's top face

    @classmethod
    def of(cls, voxels: NDArray[np.uint8], pixels: int) -> View:
        """A view of a whole map with its pins, at least `pixels` wide, for downsampling to `pixels`."""
        occupied = np.flatnonzero((voxels != AIR).any(axis=(1, 2)))
        top = int(occupied[-1]) + 1 if len(occupied) else 0
        size = voxels.shape[1]
        return cls(size=size, top=top + PIN, scale=2 * math.ceil(pixels / size / 2))

    @property
    def rise(self) -> int:
        """Pixels per metre of height, for a camera 30 degrees above the horizon."""
        return round(self.scale * math.sqrt(1.5))

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width of the picture in pixels."""
        return (self.size + 2) * self.scale + self.top * self.rise, 2 * self.size * self.scale

    def at(self, x: float, y: float, z: float) -> tuple[float, float]:
        """Column and row of a position in metres."""
        row = (self.size + self.size + 2 - x - y) * self.scale / 2 + (self.top - z) * self.rise
        return (self.size + x - y) * self.scale, row

    def ground(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The ground positions (x, y) in metres at the centres of the pixels (H, W)."""
        rows, columns = self.shape
        both = 2 * self.size + 2 - 2 * (np.arange(rows)[:, None] + 0.5 - self.top * self.rise) / self.scale
        apart = (np.arange(columns) + 0.5) / self.scale - self.size
        return (both + apart) / 2, (both - apart) / 2


@dataclass(frozen=True)
class Voxels:
    """Possibly visible voxels, from the farthest to the nearest, as arrays (N,)."""

    x: Indices
    y: Indices
    z: Indices
    material: Indices

    def __getitem__(self, chosen: Indices) -> Voxels:
        return Voxels(self.x[chosen], self.y[chosen], self.z[chosen], self.material[chosen])


def _render(terrain: Terrain, view: View) -> NDArray[np.uint8]:
    """Render the picture (H, W, 3) without pins."""
    candidates, faces = visible_faces(terrain.voxels, view)
    cubes = _OPAQUE[candidates.material]
    light = _sunlight(_OPAQUE[terrain.voxels])
    number, face = np.divmod(faces, 3)
    picture = _shades(candidates, cubes, light)[number, face]
    material = np.where(faces >= 0, candidates.material[number], AIR)
    _speckle(picture, material == FOLIAGE)
    ground = (faces >= 0) & ~cubes[number] & (candidates.z[number] == 0)
    _lay_ground(picture, ground, terrain, view, light[0])
    picture[faces < 0] = BACKDROP
    _lay_glass(picture, faces, view, candidates, terrain.voxels)
    _add_glow(picture, material == LAVA, view)
    return np.clip(picture, 0, 255).astype(np.uint8)


def visible_faces(voxels: NDArray[np.uint8], view: View) -> tuple[Voxels, NDArray[np.int32]]:
    """The visible face at every pixel (H, W), without glass: 3 x index in the returned voxels + face, or -1.

    Flat materials and bare ground have a `TOP` face only, on the voxel's floor.
    """
    candidates = _candidates(voxels)
    cubes = _OPAQUE[candidates.material]
    tiles = ~cubes & ((candidates.material != GLASS) | (candidates.z == 0))
    faces = _stamp(view, candidates, tiles, (TOP,), lift=0)
    np.maximum(faces, _stamp(view, candidates, cubes, (TOP, WEST, SOUTH), lift=1), out=faces)
    return candidates, faces


def _candidates(voxels: NDArray[np.uint8]) -> Voxels:
    """Possibly visible voxels: those with a free face towards the viewer, and all bare ground."""
    opaque = _OPAQUE[voxels]
    free = np.ones(voxels.shape, np.bool_)
    free[:-1, 1:, 1:] = ~(opaque[1:, 1:, 1:] & opaque[:-1, :-1, 1:] & opaque[:-1, 1:, :-1])
    wanted = voxels != AIR
    wanted[0] = True
    z, y, x = np.nonzero(wanted & free)
    order = np.lexsort((z, -(x + y)))
    x, y, z = x[order], y[order], z[order]
    return Voxels(x, y, z, voxels[z, y, x].astype(np.intp))


def _sprite(view: View, faces: tuple[int, ...], lift: int) -> tuple[Indices, Indices, Indices]:
    """Rows, columns and faces of the pixels of a voxel, relative to the pixel of its nearest lower corner.

    The top face is `lift` metres above that corner.
    """
    scale, rise = view.scale, view.rise
    column = np.arange(-scale, scale)
    half = (np.minimum(column + scale, scale - 1 - column) + 1) // 2  # pixels of the top face above its centre
    rows, columns, kinds = [], [], []
    for face in faces:
        side = np.ones(len(column), np.bool_) if face == TOP else (column < 0) == (face == WEST)
        first = -scale // 2 - half if face == TOP else -scale // 2 + half
        count = 2 * half if face == TOP else np.full(len(column), rise)
        for c in np.flatnonzero(side & (count > 0)):
            rows.append(np.arange(first[c], first[c] + count[c]) - lift * rise)
            columns.append(np.full(count[c], column[c]))
            kinds.append(np.full(count[c], face))
    return np.concatenate(rows), np.concatenate(columns), np.concatenate(kinds)


def _pixels(view: View, voxels: Voxels, sprite: tuple[Indices, Indices, Indices]) -> Indices:
    """Flat pixel indices (N, K) of the voxels' sprites."""
    column = (view.size + voxels.x - voxels.y) * view.scale
    row = (2 * view.size + 2 - voxels.x - voxels.y) * view.scale // 2 + (view.top - voxels.z) * view.rise
    width = view.shape[1]
    pixels: Indices = (row * width + column)[:, None] + (sprite[0] * width + sprite[1])
    return pixels


def _stamp(
    view: View, voxels: Voxels, chosen: NDArray[np.bool_], faces: tuple[int, ...], lift: int
) -> NDArray[np.int32]:
    """The visible faces (H, W) of the chosen voxels: 3 x the voxel's index + the face, or -1."""
    sprite = _sprite(view, faces, lift)
    seen = np.full(view.shape, -1, np.int32)
    numbers = np.flatnonzero(chosen)
    chunk = max(1, CHUNK // len(sprite[0]))
    for start in range(0, len(numbers), chunk):
        some = numbers[start : start + chunk]
        # NumPy assigns in order: the last of several values for a pixel is kept
        seen.reshape(-1)[_pixels(view, voxels[some], sprite)] = 3 * some[:, None] + sprite[2]
    return seen


def _sunlight(opaque: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Mask (Z + 1, Y, X) of the cells in sunlight. The last layer is above the map."""
    light = np.ones((len(opaque) + 1, *opaque.shape[1:]), np.bool_)
    for z in range(len(opaque) - 1, -1, -1):
        above = light[z + 1] & ~opaque[z + 1] if z + 1 < len(opaque) else light[z + 1]
        if z % SHADOW_DROP:
            light[z] = above
        else:
            light[z, :-1, 1:] = above[1:, :-1]
    return light


def _shades(voxels: Voxels, cubes: NDArray[np.bool_], light: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Colours (N, 3 faces, 3) of voxels."""
    x, y, z = voxels.x, voxels.y, voxels.z
    lit = np.stack((light[z + cubes, y, x], light[z, y, x - 1] | (x == 0), light[z, y - 1, x] | (y == 0)), axis=1)
    darkest, lightest = LIGHTNESS
    height = darkest + (lightest - darkest) * (z + 1) / (len(light) - 1)
    grain = 1 + GRAIN * (2 * np.random.default_rng(0).random(len(z)) - 1)
    brightness = np.where(lit, SUNLIT, SHADED) * np.where(cubes, height * grain, 1.0)[:, None]
    shades: NDArray[np.float32] = (_COLOURS[voxels.material][:, None] * brightness[..., None]).astype(np.float32)
    return shades


def _speckle(picture: NDArray[np.float32], foliage: NDArray[np.bool_]) -> None:
    """Draw spots of leaves on the picture (H, W, 3) where `foliage` (H, W) is visible."""
    spots = np.random.default_rng(1).random([-(-length // SPOT) for length in foliage.shape])
    spots = spots.repeat(SPOT, axis=0).repeat(SPOT, axis=1)[: foliage.shape[0], : foliage.shape[1]]
    picture[foliage] *= (1 + LEAVES * (2 * spots[foliage] - 1))[:, None]


def _lay_ground(
    picture: NDArray[np.float32], where: NDArray[np.bool_], terrain: Terrain, view: View, lit: NDArray[np.bool_]
) -> None:
    """Draw flat materials and the map's marks on the picture (H, W, 3) where the ground is visible (H, W).

    `lit` (Y, X) marks the columns in sunlight.
    """
    flat = np.where(FILLS[terrain.voxels[:1]], AIR, terrain.voxels[:1]).astype(np.uint8)
    canvas = Canvas(terrain_layer(flat, view.size * view.scale // 2), view.size)
    draw_marks(canvas, terrain)
    texture = np.asarray(canvas.image.convert("RGB"), np.float32)
    x, y = (place[where].clip(0, view.size - 1e-6) for place in view.ground())
    shade = np.where(lit | (flat[0] == LAVA), SUNLIT[TOP], SHADED[TOP]).astype(np.float32)[y.astype(int), x.astype(int)]
    rows, columns = len(texture) - 1 - (y * canvas.scale).astype(int), (x * canvas.scale).astype(int)
    picture[where] = texture[rows, columns] * shade[:, None]


def _lay_glass(
    picture: NDArray[np.float32], faces: NDArray[np.int32], view: View, voxels: Voxels, codes: NDArray[np.uint8]
) -> None:
    """Blend glass faces over the picture (H, W, 3) where they are nearer than the visible `faces` (H, W)."""
    shown = np.zeros(faces.size)  # logarithm of the transmitted share of the background
    filled = FILLS[codes]
    for face, (dz, dy, dx) in ((TOP, (1, 0, 0)), (WEST, (0, 0, -1)), (SOUTH, (0, -1, 0))):
        z, y, x = voxels.z + dz, voxels.y + dy, voxels.x + dx
        outside = (z >= len(codes)) | (y < 0) | (x < 0)
        covered = ~outside & filled[z % len(codes), y, x]
        numbers = np.flatnonzero((voxels.material == GLASS) & ~covered)
        pixels = _pixels(view, voxels[numbers], _sprite(view, (face,), lift=1))
        nearest = 3 * numbers[:, None] + 2 >= faces.reshape(-1)[pixels]
        shown += np.bincount(pixels[nearest], minlength=len(shown)) * math.log(1 - PANE[face])
    share = np.exp(shown).reshape(*faces.shape, 1).astype(np.float32)
    picture *= share
    picture += (1 - share) * np.array(PANE_COLOUR, np.float32)


def _add_glow(picture: NDArray[np.float32], lava: NDArray[np.bool_], view: View) -> None:
    """Add the glow of lava to the picture (H, W, 3)."""
    if lava.any():
        halo = ndimage.gaussian_filter(lava.astype(np.float32), GLOW_REACH * view.scale)
        picture += GLOW * halo[..., None] * np.array(STYLE_BY_MATERIAL[LAVA].accent, np.float32)


def _draw_pins(image: Image.Image, view: View, terrain: Terrain) -> None:
    """Draw a pin with a letter on each spawn area, a pin with a ring on the zone, and the zone's circle over walls."""
    draw = ImageDraw.Draw(image, "RGBA")
    pixel = max(1, view.shape[1] // 1200)
    radius = view.shape[1] // 70
    column, row = view.at(terrain.zone_x, terrain.zone_y, 0)
    across = math.sqrt(2) * terrain.zone_radius * view.scale
    draw.ellipse(
        (column - across, row - across / 2, column + across, row + across / 2),
        outline=(*LIGHT, HIDDEN_RING),
        width=3 * pixel,
    )
    places = [*terrain.spawns.mean(axis=1), (terrain.zone_x, terrain.zone_y)]
    for (x, y), letter in zip(places, (*AREA_NAMES, ""), strict=True):
        foot, (column, row) = view.at(x, y, 0), view.at(x, y, view.top)
        row += radius
        for width, ink in ((4 * pixel, DARK), (2 * pixel, LIGHT)):
            draw.line([foot, (column, row)], fill=ink, width=width)
        draw.ellipse(around((column, row), radius), fill=DARK, outline=LIGHT, width=2 * pixel if letter else 5 * pixel)
        draw.text((column, row), letter, font=font(round(1.4 * radius)), anchor="mm", fill=LIGHT)


def _draw_compass(image: Image.Image, view: View) -> None:
    """Draw arrows to the north and to the east in the lower left corner."""
    draw = ImageDraw.Draw(image)
    reach = view.shape[1] / 28
    column, row = 1.6 * reach, image.height - reach
    for sideways, letter in ((-1, "N"), (1, "E")):
        end = column + sideways * reach, row - reach / 2
        draw.line([(column, row), end], fill=LIGHT, width=max(2, round(reach / 14)))
        beyond = column + sideways * 1.35 * reach, row - 0.7 * reach
        draw.text(beyond, letter, font=font(round(reach / 1.7)), anchor="mm", fill=LIGHT)
