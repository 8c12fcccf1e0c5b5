"""What a player remembers of one mech between decisions, and what it makes up its mind about within one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from echelon_env.engine.state import record_dtype
from echelon_env.layout.observations import CONTACT_ROWS, SQUAD_ROWS

SIDE = 60
"""Columns of 1 m along an edge of the chart: a row's bits fit a word, with room to shift them."""

HIGHEST, WALL = 6, 7
"""Codes in the chart of the greatest height in metres told apart, and of what proved impassable."""

CHART_PLANES = 7
"""Words of a row of the chart: three for the bits of the heights, and one each for what burns, for what slows, for
where other mechs were a moment ago, and for where they stand."""

WAVES = 192
"""Metres of the longest way that is found."""

BODIES = SQUAD_ROWS + CONTACT_ROWS
"""Other mechs that can be seen."""

LONGEST_WAY = 32
"""Places of a way that are looked at for its first bend."""

MEMORY = record_dtype(
    [
        ("seed", "u8"),  # of this mech's choices in this battle
        ("clock", "f8"),  # s since the battle began
        ("started", "i1"),  # 0 until the first decision
        # navigation, in metres on the map turned to the own spawn
        ("chart", "i8", (SIDE, CHART_PLANES)),  # the terrain around, see `chart`
        ("origin_x", "i8"),  # the chart's column of lowest x
        ("origin_y", "i8"),
        ("noted", "f8"),  # clock at which the chart was last drawn
        ("noted_x", "f8"),  # where
        ("noted_y", "f8"),
        ("x", "f8"),  # where the mech is
        ("y", "f8"),
        ("moved_x", "f8"),  # since the last decision
        ("moved_y", "f8"),
        ("goal_x", "f8"),  # where it wants to go
        ("goal_y", "f8"),
        ("pace_x", "f8"),  # m that it wanted to walk until the next
        ("pace_y", "f8"),
        ("stuck", "f8"),  # s of walking without getting anywhere
        ("anchor", "f8"),  # clock since which it is about the same place
        ("anchor_x", "f8"),
        ("anchor_y", "f8"),
        ("way", "i1"),  # 1 while it walks to the next bend of a way that it found
        ("way_x", "f8"),  # the bend
        ("way_y", "f8"),
        ("end_x", "f8"),  # the goal, as it was when it last moved much
        ("end_y", "f8"),
        ("settled", "f8"),  # clock since which it has not
        ("jump", "f8"),  # m, height that a jump must clear, 0 while there is none
        ("until", "f8"),  # clock at which the present jump or try is given up
        ("earthbound", "f8"),  # clock until which it does not jump
        ("mates", "f8", (SQUAD_ROWS, 2)),  # where the mechs of the squad table were
        ("mates_seen", "f8"),  # clock at that time
        ("num_mates", "i8"),
        ("met", "f8"),  # clock at which other mechs were last entered into the chart
        ("tries", "i8"),  # how often it tried its luck
        ("straying", "i1"),  # 1 while it does
        ("stray_x", "f8"),  # in this direction
        ("stray_y", "f8"),
        ("passing", "f8"),  # clock until which it passes somebody
        ("side", "f8"),  # -1 or 1, the side on which it last passed somebody
        # fighting
        ("leaving", "i1"),  # 1 from when it is badly hurt and enemies are close, until it is safe
        ("yielding", "i1"),  # 1 from when it gives way to stronger enemies near, until they are not
        ("sidestep", "f8"),  # -1 or 1, the side that it steps to
        ("sidestep_until", "f8"),  # clock
        ("lurking_until", "f8"),  # clock until which it does not paint again
    ]
)

PLAN = np.dtype(
    [
        ("mech_class", "i8"),  # row of `Knowledge.classes`
        ("target", "i8"),  # contact row, -1 none
        ("goal_forward", "f8"),  # m, where to go, in the own frame
        ("goal_left", "f8"),
        ("speed", "f8"),  # 0..1 of the top speed
        ("face_forward", "f8"),  # where to look, any length
        ("face_left", "f8"),
    ],
    align=True,
)


class Scratch(NamedTuple):
    """Room to think, whose contents mean nothing from one mech to the next.

    Rows of columns or places have a word (int64) each; where there are SIDE + 2 the first and the last one are empty.
    """

    walls: NDArray[np.int64]  # (SIDE,) columns that cannot be walked into from the present height
    rough: NDArray[np.int64]  # (SIDE,) and those that burn or slow, or where mechs stand
    bodies: NDArray[np.int64]  # (SIDE,) columns where other mechs are
    others: NDArray[np.float64]  # (BODIES, 5) mechs near by: x, y from the own place, m between the
    # centres where they touch, m/s along x and y
    planes: NDArray[np.int64]  # (WALL + 1, SIDE + 2) places of at least a height
    enter: NDArray[np.int64]  # (WALL, SIDE + 2) places that moves of a kind lead to
    leave: NDArray[np.int64]  # (WALL, SIDE + 2) and from
    held: NDArray[np.int64]  # (3, SIDE + 2) none, places that burn, and those that burn or slow
    across: NDArray[np.int64]  # (SIDE + 2,)
    active: NDArray[np.int64]  # (SIDE + 2,)
    blind: NDArray[np.int64]  # (WAVES,) 1 where a wave went through obstacles
    waves: NDArray[np.int64]  # (WAVES, SIDE + 2) places within so many metres of the goal
    way: NDArray[np.int64]  # (LONGEST_WAY, 2) columns and rows of places


def allocate_scratch() -> Scratch:
    """Zeros."""
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
        way=np.zeros((LONGEST_WAY, 2), np.int64),
    )
