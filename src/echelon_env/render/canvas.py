"""A canvas for drawing on a map with coordinates in metres."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from echelon_env.render.palette import RGB

OVERSAMPLING = 2
"""Canvas pixels per frame pixel along an axis; downsampling smooths the edges."""

SOFT_RIM = 0.2
"""Share of a soft disc's radius over which it fades out."""

DARK: RGB = (18, 18, 20)
LIGHT: RGB = (245, 245, 240)
FIRE: RGB = (255, 122, 20)
FLASH: RGB = (255, 226, 120)


@lru_cache(maxsize=16)
def font(height: int) -> ImageFont.FreeTypeFont:
    """Pillow's default font, `height` pixels high."""
    loaded = ImageFont.load_default(height)
    if not isinstance(loaded, ImageFont.FreeTypeFont):
        raise RuntimeError("rendering needs a Pillow that is built with FreeType")
    return loaded


@lru_cache(maxsize=32)
def soft_disc(diameter: int) -> Image.Image:
    """A mask of a disc that fades out at its rim."""
    across = (2 * np.arange(diameter) + 1) / diameter - 1
    distance = np.hypot(across[:, None], across[None, :])
    return Image.fromarray((255 * np.clip((1 - distance) / SOFT_RIM, 0, 1)).astype(np.uint8))


def around(centre: tuple[float, float], radius: float) -> tuple[float, float, float, float]:
    """The square around a place as Pillow takes it: left, top, right, bottom."""
    x, y = centre
    return x - radius, y - radius, x + radius, y + radius


class Canvas:
    """A square picture of a map in canvas pixels. A frame pixel is `pixel` canvas pixels wide."""

    def __init__(self, image: Image.Image, map_size: int) -> None:
        self.image = image
        self.pixel = OVERSAMPLING
        self.scale = image.width / map_size  # canvas pixels per metre
        self.draw = ImageDraw.Draw(image, "RGBA")

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Canvas pixel of a position in metres; y points up."""
        return x * self.scale, self.image.height - y * self.scale

    def line(self, start: tuple[float, float], end: tuple[float, float], colour: RGB, width: float, alpha: int) -> None:
        """Draw a line between two canvas pixels, `width` frame pixels wide."""
        self.draw.line([start, end], fill=(*colour, alpha), width=max(1, round(width * self.pixel)))

    def length(self, metres: float, minimum: float) -> float:
        """A length in metres as canvas pixels, at least `minimum` frame pixels."""
        return max(metres * self.scale, minimum * self.pixel)

    def cross(self, centre: tuple[float, float], reach: float, colour: RGB, width: float, alpha: int = 255) -> None:
        """Draw an X around a canvas pixel, with arms of `reach` canvas pixels along each axis."""
        x, y = centre
        self.line((x - reach, y - reach), (x + reach, y + reach), colour, width, alpha)
        self.line((x - reach, y + reach), (x + reach, y - reach), colour, width, alpha)

    def disc(self, centre: tuple[float, float], radius: float, colour: RGB, alpha: int) -> None:
        """Draw a disc around a canvas pixel, with a radius in canvas pixels."""
        self.draw.ellipse(around(centre, radius), fill=(*colour, alpha))

    def dashes(self, centre: tuple[float, float], radius: float, colour: RGB, count: int, width: float) -> None:
        """Draw a circle of `count` dashes and equally long gaps around a canvas pixel, `width` frame pixels wide."""
        for start in range(count):
            ends = start * 360 / count, (start + 0.5) * 360 / count
            self.draw.arc(around(centre, radius), *ends, fill=colour, width=max(1, round(width * self.pixel)))

    def star(self, centre: tuple[float, float], radius: float, spokes: int, colour: RGB, alpha: int) -> None:
        """Draw a star with `spokes` points around a canvas pixel, with a radius in canvas pixels."""
        x, y = centre
        corners = [
            (x + reach * math.cos(corner * math.pi / spokes), y + reach * math.sin(corner * math.pi / spokes))
            for corner in range(2 * spokes)
            for reach in (radius * (0.4 if corner % 2 else 1.0),)
        ]
        self.draw.polygon(corners, fill=(*colour, alpha))

    def veil(self, centre: tuple[float, float], radius: float, colour: RGB, alpha: int) -> None:
        """Draw a disc like `disc`, with a soft rim."""
        x, y = centre
        mask = soft_disc(max(1, round(2 * radius))).point([level * alpha // 255 for level in range(256)])
        self.image.paste(colour, (round(x - radius), round(y - radius)), mask)
