"""ECM, ECCM and their effect on sensors."""

import math

import pytest

from echelon_env.config.catalog import MEDIUM, SCOUT
from rules.arena import Arena

LEVEL = SCOUT.height / 2 - MEDIUM.height / 2  # between the centres of a medium and a scout on the ground


def field(distance=10.0, **overrides):
    """A medium with its scout, 20 m away, and an enemy scout at a distance."""
    return Arena(
        {"medium": (10, 30), "blue scout": (10, 50)},
        {"red scout": (10 + distance, 30), "heavy": (60, 5)},
        **overrides,
    )


def strength(distance, height=LEVEL):
    return max(0.0, 1.0 - math.hypot(distance, height) / 50.0)


def test_undisturbed_sensors_have_quality_1():
    arena = field()
    arena.run()
    assert all(arena[name].quality == 1.0 for name in arena.names)


@pytest.mark.parametrize("distance", [5, 10, 30, 50.5])
def test_ecm_jams_less_at_larger_distances(distance):
    arena = field(distance)
    arena.order("red scout", ecm=1)
    arena.run()
    assert arena["medium"].jam == pytest.approx(strength(distance))
    assert arena["medium"].quality == pytest.approx(max(0.25, 1.0 - 0.85 * strength(distance)))


def test_ecm_does_not_jam_its_own_team_or_its_source():
    arena = field()
    arena.order("red scout", ecm=1)
    arena.run()
    assert arena["red scout"].quality == arena["heavy"].quality == 1.0


def test_the_nearest_ecm_counts_and_a_second_adds_nothing():
    arena = Arena({"medium": (10, 30)}, {"near scout": (20, 30), "far scout": (40, 30)})
    arena.order("far scout", ecm=1)
    arena.run()
    assert arena["medium"].jam == pytest.approx(strength(30))
    arena.order("near scout", ecm=1)
    arena.run()
    assert arena["medium"].jam == pytest.approx(strength(10))


def test_eccm_of_a_team_mate_improves_sensors():
    arena = field()
    arena.order("blue scout", eccm=1)
    arena.run()
    assert arena["medium"].quality == pytest.approx(1.0 + 0.65 * strength(20))
    assert arena["blue scout"].quality == 1.0  # oneself is not counted
    assert arena["red scout"].quality == 1.0


def test_eccm_counters_ecm():
    arena = field()
    arena.order("red scout", ecm=1)
    arena.order("blue scout", eccm=1)
    arena.run()
    assert arena["medium"].quality == pytest.approx(1.0 - 0.85 * strength(10) + 0.65 * strength(20))


def test_eccm_takes_precedence_over_ecm():
    arena = field()
    arena.order("red scout", ecm=1, eccm=1)
    arena.run()
    assert arena["medium"].jam == 0.0
    assert arena["heavy"].quality > 1.0


def test_quality_stays_between_025_and_15():
    arena = field(0.0)
    arena.put("red scout", 12, 30)
    arena.order("red scout", ecm=1)
    arena.run()
    assert 1.0 - 0.85 * strength(2) < 0.25
    assert arena["medium"].quality == 0.25
    arena.order("red scout")
    arena.put("blue scout", 12, 32)
    arena.order("blue scout", eccm=1)
    arena.run()
    assert 1.0 + 0.65 * strength(math.hypot(2, 2)) > 1.5
    assert arena["medium"].quality == 1.5


def test_only_classes_that_carry_electronics_radiate():
    arena = field()
    arena.order("heavy", ecm=1)
    arena.order("medium", eccm=1)
    arena.run()
    assert arena["medium"].jam == 0.0
    assert arena["blue scout"].quality == 1.0
    assert arena["heavy"].heat == 0.0


def test_dead_mechs_radiate_nothing():
    arena = field()
    arena.order("red scout", ecm=1)
    arena["red scout"].alive = 0
    arena.run()
    assert arena["medium"].jam == 0.0


def test_quality_is_measured_at_the_end_of_a_decision_and_holds_until_the_next():
    """A mech that begins to jam in this decision shortens radar from its end on."""
    arena = field(20.0, decision_repeat=5)
    arena.order("red scout", ecm=1)
    arena["medium"].quality = 1.0
    arena.run()
    assert arena["medium"].quality == pytest.approx(1.0 - 0.85 * strength(20))
    arena.order("red scout")
    arena.run()
    assert arena["medium"].quality == 1.0
