"""Animated GIFs of battles."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from echelon_env.storage import atomic

MAX_FPS = 50
"""Viewers slow down frames that are shorter than 0.02 s."""

PALETTE_COLOURS = 255  # one less than a GIF allows: Pillow uses the last one for unchanged pixels
PALETTE_FRAMES = 8  # number of evenly spaced frames that the palette is made from


def save_gif(frames: Sequence[NDArray[np.uint8]], path: str | os.PathLike[str], fps: float = 8) -> None:
    """Write frames, each (H, W, 3) uint8, as an endlessly looping GIF. The file is written atomically.

    All frames share one palette. Only changes between frames are stored. Consecutive equal frames become one frame
    with a longer duration. Durations are whole hundredths of a second, rounded such that the total duration is right.

    Raises ValueError for no frames, frames of a wrong shape or of different shapes, `fps` not in (0, 50], or a frame
    that lasts longer than a GIF can say, 655 s. Raises OSError with the path if the file cannot be written.
    """
    _check(frames, fps)
    palette = _palette(frames)
    images = [Image.fromarray(frame).quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    ends = [round(100 * number / fps) for number in range(len(frames) + 1)]
    durations = [10 * (end - start) for start, end in pairwise(ends)]
    film = io.BytesIO()
    try:
        images[0].save(film, "GIF", save_all=True, append_images=images[1:], duration=durations, loop=0, disposal=1)
    except OverflowError:
        raise ValueError(f"fps: expected frames of at most 655 s, equal ones together, got more with {fps}") from None
    atomic.write_bytes(Path(path), film.getvalue())


def _check(frames: Sequence[NDArray[np.uint8]], fps: float) -> None:
    if not 0 < fps <= MAX_FPS:
        raise ValueError(f"fps: expected more than 0 and at most {MAX_FPS}, got {fps}")
    if len(frames) == 0:
        raise ValueError("frames: expected at least one, got none")
    for number, frame in enumerate(frames):
        if frame.dtype != np.uint8 or frame.ndim != 3 or frame.shape[2] != 3 or frame.shape != frames[0].shape:
            raise ValueError(
                f"frames: expected (H, W, 3) uint8, all of one shape, got {frame.shape} {frame.dtype} at index {number}"
            )


def _palette(frames: Sequence[NDArray[np.uint8]]) -> Image.Image:
    """Make a palette from some of the frames. An octree keeps the colours of thin beams, too."""
    chosen = np.linspace(0, len(frames) - 1, min(PALETTE_FRAMES, len(frames))).astype(int)
    together = Image.fromarray(np.concatenate([frames[number] for number in chosen]))
    return together.quantize(PALETTE_COLOURS, Image.Quantize.FASTOCTREE)
