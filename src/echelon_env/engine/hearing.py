"""What mechs hear of their enemies."""

from __future__ import annotations

import math

from echelon_env.engine.geometry import log1p
from echelon_env.engine.kernels import Row, kernel
from echelon_env.engine.tables import Tables

AHEAD, LEFT, BEHIND, RIGHT = range(4)


@kernel
def quadrant(mech: Row, dx: float, dy: float) -> int:
    """The quadrant around a mech in which a planar vector lies."""
    forward = dx * mech.facing_x + dy * mech.facing_y
    left = dy * mech.facing_x - dx * mech.facing_y
    if forward >= abs(left):
        return AHEAD
    if -forward >= abs(left):
        return BEHIND
    return LEFT if left > 0.0 else RIGHT


@kernel
def hear(tables: Tables, mech: Row, other: Row, away: float, in_sight: bool) -> None:
    """Add the noise of an enemy, whose squared distance is `away` m2, to the sounds that a mech hears."""
    rules = tables.rules[0]
    if mech.shutdown or away > rules.hearing_range**2:
        return
    speed = math.sqrt(other.vx**2 + other.vy**2)
    noise = speed * tables.classes[other.mech_class].noise / (1.0 + away)
    if not in_sight:
        noise *= rules.muffled
    mech.sounds[quadrant(mech, other.x - mech.x, other.y - mech.y)] += noise


@kernel
def scale_sounds(rules: Row, mech: Row) -> None:
    """Scale the sums of noise logarithmically, as shares of the loudest possible noise."""
    for i in range(mech.sounds.shape[0]):
        if mech.sounds[i] > 0.0:
            mech.sounds[i] = log1p(mech.sounds[i]) / rules.sound_scale
