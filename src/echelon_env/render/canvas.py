"""Drawing on a map in metres."""

from __future__ import annotations

from functools import lru_cache

from PIL import Image, ImageDraw, ImageFont

from echelon_env.render.palette import RGB

OVERSAMPLING = 2
"""Pixels of the canvas per pixel of the frame and axis; shrinking smooths the edges."""

DARK: RGB = (18, 18, 20)
LIGHT: RGB = (245, 245, 240)


@lru_cache(maxsize=16)
def font(height: int) -> ImageFont.FreeTypeFont:
    """The font that comes with Pillow, `height` pixels high."""
    loaded = ImageFont.load_default(height)
    if not isinstance(loaded, ImageFont.FreeTypeFont):
        raise RuntimeError("pictures of battles need a Pillow built with FreeType")
    return loaded


class Canvas:
    """A square picture of a map in canvas pixels; `pixel` of them, along an axis, make a pixel of the frame."""

    def __init__(self, image: Image.Image, map_size: int) -> None:
        self.image = image
        self.pixel = OVERSAMPLING
        self.scale = image.width / map_size  # canvas pixels per metre
        self.draw = ImageDraw.Draw(image, "RGBA")

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Canvas pixel of a place in metres; y grows to the top."""
        return x * self.scale, self.image.height - y * self.scale

    def line(self, start: tuple[float, float], end: tuple[float, float], colour: RGB, width: float, alpha: int) -> None:
        """A line between two canvas pixels, `width` frame pixels wide."""
        self.draw.line([start, end], fill=(*colour, alpha), width=max(1, round(width * self.pixel)))

    def length(self, metres: float, at_least: float) -> float:
        """Canvas pixels of a length in metres, but no less than `at_least` frame pixels."""
        return max(metres * self.scale, at_least * self.pixel)

    def disc(self, centre: tuple[float, float], radius: float, colour: RGB, alpha: int) -> None:
        """A disc about a canvas pixel, `radius` canvas pixels large."""
        x, y = centre
        self.draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=(*colour, alpha))
