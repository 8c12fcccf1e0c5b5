"""The zone's score. `engine/test_outcome_oracle.py` tests the ends of battles."""

import pytest

from echelon_env.engine.state import BLUE
from rules.arena import Arena

DT = 0.05


def contest(blue=(30, 30), red=(60, 60), **overrides):
    """A medium, and two scouts of the enemy, about a zone of 5 m around (30, 30)."""
    arena = Arena({"medium": blue}, {"scout": red, "second scout": (60, 50)}, **overrides)
    battle = arena.state.battles[0]
    battle["zone_x"], battle["zone_y"], battle["zone_radius"] = 30.0, 30.0, 5.0
    return arena


def scores(arena):
    return arena.state.teams["score"][0].tolist()


@pytest.mark.parametrize(("x", "inside"), [(35.0, True), (35.01, False)])
def test_only_mechs_with_their_centre_in_the_circle_score(x, inside):
    arena = contest((x, 30))
    arena.run(10)
    assert scores(arena) == pytest.approx([10 * DT if inside else 0.0, 0.0])


@pytest.mark.parametrize(("z", "inside"), [(1.9, True), (2.0, False)])
def test_a_mech_high_above_the_ground_is_not_inside(z, inside):
    arena = contest(physics={"gravity": 0.0})
    arena.put("medium", 30, 30, z=z)
    arena.run()
    assert bool(scores(arena)[BLUE]) == inside


def test_in_a_contested_zone_the_larger_number_of_mechs_has_its_lead_and_equal_numbers_have_nothing():
    arena = contest(red=(33, 30))
    arena.run()
    assert scores(arena) == [0.0, 0.0]
    arena.put("second scout", 30, 33)
    arena.run()
    assert scores(arena) == pytest.approx([0.0, DT * (2 - 1) / (2 + 1)])


@pytest.mark.parametrize("condition", [{"alive": 0}, {"fallen": 60}])
def test_dead_and_fallen_mechs_hold_no_zone(condition):
    arena = contest(red=(33, 30))
    for name, value in condition.items():
        setattr(arena["scout"], name, value)
    arena.run()
    assert scores(arena) == pytest.approx([DT, 0.0])
