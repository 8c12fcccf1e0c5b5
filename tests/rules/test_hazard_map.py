"""The ego map: obstacles, and where the terrain burns or cools."""

import numpy as np
import pytest

from echelon_env.layout.observations import EGO_SIDE, EgoCell
from rules.arena import Arena, changed

EAST, NORTH = 0, 90
MIDDLE = EGO_SIDE // 2
LAVA, DEBRIS, WATER = 1.0, 0.5, -1.0  # 40 and 20 of 40 heat/s, -30 of -30


def stand(z=0.0, facing=EAST, name="medium", **overrides):
    """A mech in the middle of the map, on a block of concrete if it stands higher."""
    arena = Arena({name: (32.2, 32.2, facing)}, {"scout": (60, 60)}, **overrides)
    if z:
        arena.fill("concrete", x=(28, 37), y=(28, 37), z=(0, int(z)))
        arena.put(name, 32.2, 32.2, facing, z)
        arena[name].on_ground = 1
    return arena


def seen(arena, forward, left=0):
    """The hazard and the height of the terrain at a number of samples of 1.5 m ahead and to the left."""
    arena.run()
    cell = arena.observed(arena.names[0], "ego_map")[MIDDLE + forward, MIDDLE + left]
    return float(cell[EgoCell.HAZARD])


def pave(arena, *materials):
    """Fill the columns two samples to the east with materials from the ground up."""
    for z, material in enumerate(materials):
        arena.fill(material, x=(34, 37), y=(31, 34), z=(z, z + 1))


def test_the_map_turns_with_the_mech():
    arena = stand(facing=NORTH)
    pave(arena, "lava")
    assert seen(arena, 0, -2) == LAVA  # to the right
    assert seen(arena, 2) == 0


@pytest.mark.parametrize(
    ("materials", "harm"),
    [
        (("lava",), LAVA),
        (("debris",), DEBRIS),
        (("water",), WATER),
        (("dirt",), 0.0),
        (("water", "lava"), LAVA),  # the worst of a column counts
        (("lava", "debris"), LAVA),
        (("debris", "water"), DEBRIS),  # cooling counts only without heat
        (("air", "water"), WATER),
        (("concrete", "lava"), LAVA),  # on a step of 1 m
        (("concrete", "concrete", "lava"), LAVA),  # too high for ground, but before the chest
        (("air", "air", "lava"), LAVA),
        (("air", "air", "air", "lava"), 0.0),  # overhead
    ],
)
def test_the_worst_from_the_ground_to_the_top_of_the_mech_counts(materials, harm):
    arena = stand()
    pave(arena, *materials)
    assert seen(arena, 2) == harm
    assert seen(arena, 3, 2) == 0


def test_a_tall_mech_walks_into_what_a_small_one_walks_under():
    for name, harm in (("heavy", LAVA), ("medium", 0.0)):
        arena = stand(name=name)
        pave(arena, "air", "air", "air", "lava")
        assert seen(arena, 2) == harm


def test_hazards_under_the_ground_are_hidden():
    arena = stand(z=2)
    pave(arena, "lava", "concrete")
    assert seen(arena, 2) == 0
    pave(arena, "lava", "air")  # now it is in a hole
    assert seen(arena, 2) == LAVA


def test_a_hazardous_ground_is_no_hazard_to_walk_on():
    """Hot concrete burns a mech inside it, not one on top of it; concrete too high to be ground is an obstacle."""
    arena = stand(catalog=changed(concrete={"heat": 20.0}))
    pave(arena, "concrete")
    assert seen(arena, 2) == 0
    pave(arena, "concrete", "concrete")
    assert seen(arena, 2) == pytest.approx(0.5)


def test_hazards_below_are_seen_from_above():
    arena = stand(z=2)
    arena.fill("lava", x=(38, 41), y=(31, 34), z=(0, 1))
    assert seen(arena, 4) == LAVA


def test_a_material_that_damages_more_than_it_heats():
    """The flames do 8 of at most 10 hit points per second, and 10 of at most 40 heat per second."""
    materials = {"lava": {"damage": 10.0}, "debris": {"damage": 8.0, "heat": 10.0}}
    arena = stand(catalog=changed(**materials))
    pave(arena, "debris")
    assert seen(arena, 2) == pytest.approx(0.8)


def test_a_ground_that_burns_and_cools_counts_as_burning():
    arena = stand(catalog=changed(water={"damage": 1.25}))
    pave(arena, "water")
    assert seen(arena, 2) == pytest.approx(0.25)


def test_the_strongest_cooling_counts_without_heat():
    arena = stand(catalog=changed(foliage={"heat": -15.0}))
    pave(arena, "foliage", "water")
    assert seen(arena, 2) == WATER
    pave(arena, "foliage", "air")
    assert seen(arena, 2) == pytest.approx(-0.5)


def test_the_map_shows_the_current_terrain():
    arena = stand()
    pave(arena, "lava")
    assert seen(arena, 2) == LAVA
    pave(arena, "air")
    assert seen(arena, 2) == 0


def test_beyond_the_map_there_is_an_obstacle_and_no_hazard():
    arena = stand()
    arena.fill("lava", z=(0, 1))
    arena.put("medium", 1.5, 1.5, EAST)
    arena.run()
    cells = arena.observed("medium", "ego_map")
    assert (cells[0, 0] == [1, 0]).all()
    assert cells[MIDDLE, MIDDLE, EgoCell.HAZARD] == LAVA
    assert np.isin(cells[..., EgoCell.HAZARD], (0, LAVA)).all()


@pytest.mark.parametrize(
    ("materials", "height"),
    [
        ((), 0.0),
        (("concrete",), 1.0),
        (("concrete",) * 3, 3.0),
        (("concrete",) * 6, 4.0),  # clipped at the tallest class's height
        (("air", "air", "air", "concrete"), 0.0),  # a medium is 3 m high: it walks under
        (("air", "air", "concrete"), 3.0),
        (("air", "air", "concrete", "concrete"), 4.0),  # what stands on what is in the way
        (("concrete", "air", "air", "air", "concrete"), 1.0),
        (("air", "foliage", "water"), 0.0),
    ],
)
def test_terrain_in_the_way_is_an_obstacle_and_a_roof_is_not(materials, height):
    arena = stand()
    pave(arena, *materials)
    arena.run()
    cells = arena.observed("medium", "ego_map")
    assert cells[MIDDLE + 2, MIDDLE, EgoCell.OBSTACLE] * 4.0 == pytest.approx(height)  # in the tallest class's height


def test_obstacle_heights_are_relative_to_the_feet():
    arena = stand(z=5.0)
    pave(arena, *["concrete"] * 6)
    arena.run()
    cells = arena.observed("medium", "ego_map")
    assert cells[MIDDLE + 2, MIDDLE, EgoCell.OBSTACLE] * 4.0 == pytest.approx(1.0)
    assert cells[MIDDLE + 5, MIDDLE, EgoCell.OBSTACLE] == -1.0  # clipped
