"""Smoke: where clouds are, how long, and what they hide."""

import pytest

from echelon_env.config.catalog import MEDIUM, SCOUT, SMOKE
from echelon_env.engine.state import BLUE, RED
from rules.arena import Arena, of_kind

DT = 0.05
EAST, WEST = 0, 180


def smoker(**overrides):
    return Arena({"medium": (20, 30, EAST)}, {"scout": (60, 5)}, **overrides)


def shell(arena):
    arena.order("medium", special=1)
    arena.run()
    arena.order("medium")
    arena.run(39)
    return of_kind(arena.log, "smoke")


def test_a_shell_that_hits_nothing_leaves_its_cloud_at_the_end_of_its_range():
    (smoke,) = shell(smoker())
    assert (smoke.actor, smoke.weapon) == ("medium", "smoke")
    assert smoke.place == pytest.approx((20 + SMOKE.range, 30, MEDIUM.height / 2))


def test_the_cloud_hangs_for_six_seconds():
    arena = smoker()
    arena.order("medium", special=1)
    while not of_kind(arena.log, "smoke"):
        arena.run()
        arena.order("medium")
    assert len(arena.clouds) == 1
    assert arena.clouds[0]["radius"] == 3.0
    arena.run(119)
    assert len(arena.clouds) == 1
    arena.run()
    assert len(arena.clouds) == 0


def test_a_shell_that_strikes_a_wall_leaves_its_cloud_before_it():
    arena = smoker()
    arena.fill("concrete", x=(26, 27), y=(20, 40), z=(0, 6))
    (smoke,) = shell(arena)
    assert smoke.place == pytest.approx((26 - 0.05, 30, 1.5))
    assert len(of_kind(arena.log, "impact")) == 1
    assert not arena.state.voxel_damage.any()


def test_a_shell_that_hits_an_enemy_leaves_its_cloud_there_and_does_no_harm():
    arena = smoker()
    arena.put("scout", 30, 30, WEST)
    (smoke,) = shell(arena)
    assert smoke.place[0] == pytest.approx(30 - 0.6)
    (hit,) = of_kind(arena.log, "hit")
    assert hit.amount == 0.0
    assert arena["scout"].armour == SCOUT.armour
    assert arena.sees("medium", "scout")
    assert not arena.sees("scout", "medium")


def test_a_shell_that_leaves_the_map_leaves_its_cloud_at_the_edge():
    arena = smoker()
    arena.put("medium", 5, 30, WEST)
    (smoke,) = shell(arena)
    assert smoke.place == pytest.approx((0.0, 30, 1.5))
    assert of_kind(arena.log, "impact") == []


def test_there_are_two_charges():
    arena = smoker()
    arena.order("medium", special=1)
    for _ in range(5):
        arena["medium"].cooldown[:] = 0
        arena.run()
    assert len(of_kind(arena.log, "shot")) == SMOKE.charges == 2
    assert arena["medium"].charges[3] == 0


def test_a_shot_costs_heat_and_a_long_cooldown():
    arena = smoker()
    arena.order("medium", special=1)
    arena.run()
    assert arena["medium"].heat == SMOKE.heat
    arena.run(299)
    assert len(of_kind(arena.log, "shot")) == 1
    arena.run()
    assert len(of_kind(arena.log, "shot")) == 2


@pytest.mark.parametrize(("offset", "hidden"), [(3.99, True), (4.0, True), (4.01, False)])
def test_a_line_that_passes_within_the_radius_is_blocked(offset, hidden):
    arena = Arena({"medium": (10, 30, EAST)}, {"other medium": (40, 30, WEST)})
    arena.smoke(25, 30 + offset, 1.5)
    arena.run()
    assert arena.sees("medium", "other medium") != hidden


@pytest.mark.parametrize(("x", "hidden"), [(6.5, True), (5.5, False), (43.5, True), (44.5, False)])
def test_the_ends_of_the_line_count(x, hidden):
    """A mech in the enemy's cloud sees no enemy, and no enemy in it is seen; clouds beyond the ends hide no mech."""
    arena = Arena({"medium": (10, 30, EAST)}, {"other medium": (40, 30, WEST)})
    arena.smoke(x, 30, 1.5)
    arena.run()
    assert arena.sees("medium", "other medium") != hidden


@pytest.mark.parametrize("team", [BLUE, RED])
def test_smoke_blocks_the_sight_and_the_fire_of_the_enemy_only(team):
    """The clouds of both teams block both."""
    names = "medium", "other medium"
    arena = Arena({names[BLUE]: (10, 30, EAST)}, {names[RED]: (20, 30, WEST)})
    arena.smoke(15, 30, 1.5, team=team)
    for name in names:
        arena.order(name, primary=1)
    (shot,) = of_kind(arena.run(), "shot")
    assert shot.actor == names[team]
    assert [arena.sees(*names), arena.sees(*reversed(names))] == [team == BLUE, team == RED]
    arena.smoke(15, 30, 1.5, team=1 - team)
    arena.run()
    assert not arena.sees(*names)
    assert not arena.sees(*reversed(names))


def test_the_distance_is_measured_in_space():
    """A cloud high above the line hides no mech."""
    for z, hidden in ((5.4, True), (5.6, False)):
        arena = Arena({"medium": (10, 30, EAST)}, {"other medium": (40, 30, WEST)})
        arena.smoke(25, 30, z)
        arena.run()
        assert arena.sees("medium", "other medium") != hidden


def test_each_cloud_ends_after_its_own_time():
    arena = Arena({"medium": (10, 30, EAST)}, {"other medium": (40, 30, WEST), "scout": (50, 30)})
    for seconds, x, team in ((1.0, 20, RED), (3.0, 40, BLUE), (2.0, 60, RED)):
        arena.smoke(x, 50, 1.5, seconds=seconds, team=team)
    arena.run(20)
    assert arena.clouds[["x", "team"]].tolist() == [(40, BLUE), (60, RED)]
    arena.run(20)
    assert arena.clouds["x"].tolist() == [40]


def test_smoke_does_not_stop_shells():
    arena = Arena({"heavy": (20, 30, EAST)}, {"scout": (32, 30, WEST)})
    arena.smoke(25, 30, 1.5, radius=1.0)
    arena.order("heavy", tertiary=1)
    arena.run(10)
    assert of_kind(arena.log, "shot")[0].target is None
    assert of_kind(arena.log, "hit")[0].target == "scout"


@pytest.mark.parametrize("array", ["clouds", "projectiles"])
def test_clouds_without_room_are_counted_as_lost(array):
    """This cannot happen in a battle from a reset, only in a state written by hand."""
    arena = Arena({"medium": (20, 20, 0)}, {"scout": (60, 60)})
    rows = getattr(arena.state, array)
    arena.state.battles[f"num_{array}"] = rows.shape[1]
    rows["x"], rows["y"], rows["z"] = 5.0, 5.0, 5.0
    if array == "clouds":
        rows["ticks"] = 1000
    else:
        rows["vx"], rows["reach"], rows["weapon"] = 0.1, 100.0, arena.config.catalog.weapon_index("autocannon")
    arena.order("medium", special=1)
    arena.run()
    arena.order("medium")
    arena.run(seconds=2.0)
    assert arena.state.battles["lost_events"][0] == 1
    assert arena.state.battles[f"num_{array}"][0] == rows.shape[1]
