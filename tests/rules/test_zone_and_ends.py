"""The zone's score and the ends of a battle."""

import pytest

from echelon_env.config.catalog import MEDIUM, SCOUT
from echelon_env.engine.state import BLUE, DRAW, REASONS
from rules.arena import Arena

DT = 0.05


def contest(blue=(30, 30), red=(60, 60), **overrides):
    """A medium and a scout about a zone of 5 m around (30, 30)."""
    arena = Arena({"medium": blue}, {"scout": red}, **overrides)
    battle = arena.state.battles[0]
    battle["zone_x"], battle["zone_y"], battle["zone_radius"] = 30.0, 30.0, 5.0
    return arena


def scores(arena):
    return arena.state.teams["score"][0].tolist()


def end(arena):
    return REASONS[arena.engine.reason[0]], int(arena.engine.winner[0])


@pytest.mark.parametrize(("x", "inside"), [(35.0, True), (35.01, False)])
def test_who_has_its_centre_in_the_circle_scores_alone(x, inside):
    arena = contest((x, 30))
    arena.run(10)
    assert scores(arena) == pytest.approx([10 * DT if inside else 0.0, 0.0])


@pytest.mark.parametrize(("z", "inside"), [(1.9, True), (2.0, False)])
def test_who_is_high_up_is_not_inside(z, inside):
    arena = contest(physics={"gravity": 0.0})
    arena.put("medium", 30, 30, z=z)
    arena.run()
    assert bool(scores(arena)[BLUE]) == inside


def test_a_contested_zone_pays_a_quarter_and_the_heavier_more():
    """55 t against 20 t: 1/4 + 3/4 x 35 / 75 for blue, 1/4 for red."""
    arena = contest(red=(33, 30))
    arena.run()
    share = (MEDIUM.tonnage - SCOUT.tonnage) / (MEDIUM.tonnage + SCOUT.tonnage)
    assert scores(arena) == pytest.approx([(0.25 + 0.75 * share) * DT, 0.25 * DT])


def test_the_dead_hold_no_zone():
    arena = contest(red=(33, 30))
    arena["scout"].alive = 0
    arena.run()
    assert scores(arena) == pytest.approx([DT, 0.0])


def test_a_zone_held_long_enough_wins():
    arena = contest(zone={"score_to_win": 0.49})
    arena.run(9)
    assert not arena.engine.battle_over[0]
    arena.run()
    assert end(arena) == ("zone_control", BLUE)
    assert arena.engine.out.terminated.all()


def test_of_two_who_reach_the_score_in_a_decision_the_higher_wins_and_a_tie_is_a_draw():
    for lead, winner in ((0.01, BLUE), (0.0, DRAW)):
        arena = contest((60, 5), (60, 60), zone={"score_to_win": 0.5})
        arena.state.teams["score"][0] = 0.6 + lead, 0.6
        arena.run()
        assert end(arena) == ("zone_control", winner)


def test_a_team_without_living_mechs_has_lost():
    arena = contest((30, 30, 0), (34, 30, 180))
    arena["scout"].armour = 1.0
    arena.order("medium", primary=1)
    arena.run()
    assert end(arena) == ("elimination", BLUE)


@pytest.mark.parametrize(
    ("blue_score", "armour", "winner"), [(1.0, 10.0, BLUE), (0.0, 150.0, DRAW), (0.0, 149.0, 1 - BLUE)]
)
def test_at_the_time_limit_the_score_decides_and_then_the_share_of_armour(blue_score, armour, winner):
    arena = contest((60, 5), (60, 60), max_steps=3)
    arena.state.teams["score"][0, BLUE] = blue_score
    arena["medium"].armour = armour
    arena.run(3)
    assert end(arena) == ("time_limit", winner)
    assert arena.engine.out.truncated.all()
