"""Measurements on pictures, and golden ones."""

import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from echelon_env.engine.state import NO_MECH, State
from echelon_env.render.palette import RGB

GOLDENS = Path(__file__).parent / "goldens"
BLOCK = 10
"""Pixels of a block along an axis. A golden picture has the mean colour of each block."""
TOLERANCE = 8
"""Of the mean colour of a block, 0 to 255: letters differ a little between versions of FreeType."""


def differs(picture: Image.Image, name: str) -> str:
    """What differs from a golden picture; empty if nothing does. With the option --write it is written instead."""
    found, path = picture.convert("RGB").reduce(BLOCK), GOLDENS / f"{name}.png"
    if "--write" in sys.argv:
        found.save(path, optimize=True)
        return ""
    with Image.open(path) as golden:
        if golden.size != found.size:
            return f"{name}: expected {golden.size} blocks, got {found.size}"
        error = np.abs(np.asarray(golden, int) - np.asarray(found, int)).max(axis=-1)
    places = np.argwhere(error > TOLERANCE)[:9].tolist()
    return f"{name}: differs in the blocks (row, column) {places}, at most by {error.max()}" if places else ""


def window(picture: NDArray[np.uint8], x: float, y: float, metres: float) -> NDArray[np.uint8]:
    """The square of the map's picture within `metres` of a place."""
    scale = len(picture) / 50
    row, column, reach = round(len(picture) - y * scale), round(x * scale), max(1, round(metres * scale))
    return picture[max(0, row - reach) : row + reach, max(0, column - reach) : column + reach]


def count(picture: NDArray[np.uint8], colour: RGB, tolerance: int = 12) -> int:
    """Number of pixels with approximately a colour."""
    return int((np.abs(picture.astype(int) - colour).max(axis=-1) <= tolerance).sum())


def add(state: State, what: str, **fields: object) -> None:
    """Add an event, a projectile or a cloud to the first battle."""
    battle = state.battles[0]
    record = getattr(state, what)[0, battle[f"num_{what}"]]
    if what == "events":
        record["target"], record["weapon"] = NO_MECH, -1
    for name, value in fields.items():
        record[name] = value
    battle[f"num_{what}"] += 1
