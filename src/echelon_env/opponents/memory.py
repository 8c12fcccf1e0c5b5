"""A scripted player's memory of one mech between decisions, and its plan within a decision."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from echelon_env.engine.state import record_dtype
from echelon_env.layout.observations import CONTACT_ROWS, SQUAD_ROWS

SIDE = 60
"""Columns of 1 m along an edge of the chart; a row's bits fit an int64 with room for shifts."""

HIGHEST, WALL = 6, 7
"""Codes in the chart: the greatest distinguished height in metres, and impassable."""

CHART_PLANES = 7
"""Words per row of the chart: three for the bits of the heights, and one each for burning ground, slow ground, recent
positions of other mechs, and standing mechs."""

WAVES = 192
"""Metres of the longest path that a search finds."""

BODIES = SQUAD_ROWS + CONTACT_ROWS
"""Other mechs in an observation."""

LONGEST_PATH = 32
"""Places of a path among which its first bend is searched."""

MEMORY = record_dtype(
    [
        ("seed", "u8"),  # of this mech's random choices in this battle
        ("clock", "f8"),  # s since the battle began
        ("started", "i1"),  # 0 until the first decision
        # navigation, in metres on the map rotated to the own spawn
        ("chart", "i8", (SIDE, CHART_PLANES)),  # the terrain around, see `chart`
        ("origin_x", "i8"),  # the chart's column of lowest x
        ("origin_y", "i8"),
        ("noted", "f8"),  # clock of the last chart update
        ("noted_x", "f8"),  # position of the last chart update
        ("noted_y", "f8"),
        ("x", "f8"),  # position of the mech
        ("y", "f8"),
        ("moved_x", "f8"),  # since the last decision
        ("moved_y", "f8"),
        ("goal_x", "f8"),  # position of the goal
        ("goal_y", "f8"),
        ("pace_x", "f8"),  # m, intended movement until the next decision
        ("pace_y", "f8"),
        ("stuck", "f8"),  # s of walking without progress
        ("anchor", "f8"),  # clock since when it is near the anchor
        ("anchor_x", "f8"),
        ("anchor_y", "f8"),
        ("has_bend", "i1"),  # 1 while it walks to the next bend of a path
        ("bend_x", "f8"),  # the bend
        ("bend_y", "f8"),
        ("end_x", "f8"),  # the goal at its last large change
        ("end_y", "f8"),
        ("settled", "f8"),  # clock of that change
        ("jump", "f8"),  # m, target height of the jump, 0 without a jump
        ("until", "f8"),  # clock at which the current jump or random walk ends
        ("no_jump_until", "f8"),  # clock until which it does not jump
        ("mates", "f8", (SQUAD_ROWS, 2)),  # positions of the mechs in the squad table
        ("mates_seen", "f8"),  # clock at that time
        ("num_mates", "i8"),
        ("mechs_noted", "f8"),  # clock at which other mechs were last written to the chart
        ("tries", "i8"),  # number of random walks
        ("walking_randomly", "i1"),  # 1 during a random walk
        ("random_x", "f8"),  # its direction
        ("random_y", "f8"),
        ("passing", "f8"),  # clock until which it passes another mech
        ("side", "f8"),  # -1 or 1, the side of the last pass
        # fighting
        ("leaving", "i1"),  # 1 while it retreats: badly damaged, until no enemy is near
        ("yielding", "i1"),  # 1 while it yields to stronger enemies
        ("sidestep", "f8"),  # -1 or 1, the side of sidesteps
        ("sidestep_until", "f8"),  # clock
        ("avoiding_until", "f8"),  # clock until which it does not paint
    ]
)

PLAN = np.dtype(
    [
        ("mech_class", "i8"),  # row of `Knowledge.classes`
        ("target", "i8"),  # contact row, -1 none
        ("goal_forward", "f8"),  # m, goal in the own frame
        ("goal_left", "f8"),
        ("speed", "f8"),  # 0..1 of the top speed
        ("face_forward", "f8"),  # direction to face, any length
        ("face_left", "f8"),
    ],
    align=True,
)


class Scratch(NamedTuple):
    """Buffers of one decision. Their contents are not kept between mechs.

    Each row of columns or places is one int64. Of SIDE + 2 rows the first and the last are empty.
    """

    walls: NDArray[np.int64]  # (SIDE,) columns impassable from the current height
    rough: NDArray[np.int64]  # (SIDE,) those, and burning, slow and occupied ones
    bodies: NDArray[np.int64]  # (SIDE,) columns of other mechs
    others: NDArray[np.float64]  # (BODIES, 5) nearby mechs: relative x, y, contact distance of the
    # centres in m, velocity along x and y in m/s
    planes: NDArray[np.int64]  # (WALL + 1, SIDE + 2) places of at least a height
    enter: NDArray[np.int64]  # (WALL, SIDE + 2) places that moves of a kind can enter
    leave: NDArray[np.int64]  # (WALL, SIDE + 2) and leave
    held: NDArray[np.int64]  # (3, SIDE + 2) none, burning places, burning or slow places
    across: NDArray[np.int64]  # (SIDE + 2,)
    active: NDArray[np.int64]  # (SIDE + 2,)
    blind: NDArray[np.int64]  # (WAVES,) 1 if a wave passed through obstacles
    waves: NDArray[np.int64]  # (WAVES, SIDE + 2) places within this many metres of the goal
    path: NDArray[np.int64]  # (LONGEST_PATH, 2) columns and rows of places


def allocate_scratch() -> Scratch:
    """Zeroed buffers."""
    rows, places = SIDE, SIDE + 2
    return Scratch(
        walls=np.zeros(rows, np.int64),
        rough=np.zeros(rows, np.int64),
        bodies=np.zeros(rows, np.int64),
        others=np.zeros((BODIES, 5)),
        planes=np.zeros((WALL + 1, places), np.int64),
        enter=np.zeros((WALL, places), np.int64),
        leave=np.zeros((WALL, places), np.int64),
        held=np.zeros((3, places), np.int64),
        across=np.zeros(places, np.int64),
        active=np.zeros(places, np.int64),
        blind=np.zeros(WAVES, np.int64),
        waves=np.zeros((WAVES, places), np.int64),
        path=np.zeros((LONGEST_PATH, 2), np.int64),
    )
