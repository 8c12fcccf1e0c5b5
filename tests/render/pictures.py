"""Measurements on pictures."""

import numpy as np
from numpy.typing import NDArray

from echelon_env.config.battle import BattleConfig
from echelon_env.engine.state import NO_MECH, State
from echelon_env.render import render_frame
from echelon_env.render.header import header_height
from echelon_env.render.palette import RGB

PIXELS = 500


def map_of(config: BattleConfig, state: State, battle: int = 0, pixels: int = PIXELS) -> NDArray[np.uint8]:
    return render_frame(config, state, battle, pixels)[header_height(pixels) :]


def window(picture: NDArray[np.uint8], x: float, y: float, metres: float) -> NDArray[np.uint8]:
    """The square of the map's picture within `metres` of a place."""
    scale = len(picture) / 50
    row, column, reach = round(len(picture) - y * scale), round(x * scale), max(1, round(metres * scale))
    return picture[max(0, row - reach) : row + reach, max(0, column - reach) : column + reach]


def count(picture: NDArray[np.uint8], colour: RGB, tolerance: int = 12) -> int:
    """Number of pixels with approximately a colour."""
    return int((np.abs(picture.astype(int) - colour).max(axis=-1) <= tolerance).sum())


def changes(before: NDArray[np.uint8], after: NDArray[np.uint8]) -> tuple[float, float, float]:
    """Extent of the pixels that differ, in a picture of 50 m: minimum and maximum x, and their share."""
    differ = (before != after).any(axis=-1)
    columns = np.flatnonzero(differ.any(axis=0)) * 50 / len(before)
    return columns.min(), columns.max(), differ.mean()


def add_event(state: State, **fields: object) -> None:
    battle = state.battles[0]
    event = state.events[0, battle["num_events"]]
    event["target"], event["weapon"] = NO_MECH, -1
    for name, value in fields.items():
        event[name] = value
    battle["num_events"] += 1


def add_projectile(state: State, **fields: object) -> None:
    battle = state.battles[0]
    projectile = state.projectiles[0, battle["num_projectiles"]]
    for name, value in fields.items():
        projectile[name] = value
    battle["num_projectiles"] += 1


def add_cloud(state: State, x: float, y: float, *, radius: float = 4.0, ticks: int = 200) -> None:
    battle = state.battles[0]
    cloud = state.clouds[0, battle["num_clouds"]]
    cloud["x"], cloud["y"], cloud["radius"], cloud["ticks"] = x, y, radius, ticks
    battle["num_clouds"] += 1
