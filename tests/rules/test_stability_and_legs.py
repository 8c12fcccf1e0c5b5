"""Stability, falls, legs and hits from behind."""

import math

import pytest

from echelon_env.config.catalog import GAUSS, HEAVY, LASER, LIGHT, MEDIUM
from rules.arena import Arena, changed, of_kind

DT = 0.05
EAST, NORTH, WEST = 0, 90, 180


def pair(aim=0.5, **overrides):
    combat = {"aim_low": aim, "aim_high": aim}
    return Arena({"heavy": (20, 30, EAST)}, {"medium": (27, 30, WEST)}, combat=combat, **overrides)


def stability_gained(ticks=10, **conditions):
    """Points that a medium with 40 points regains in some ticks."""
    arena = Arena({"heavy": (5, 5)}, {"medium": (30, 30, EAST)})
    throttle = conditions.pop("throttle", 0.0)
    arena.order("medium", throttle=throttle)
    arena.run(2)
    arena["medium"].stability = 40.0
    for name, value in conditions.items():
        setattr(arena["medium"], name, value)
    arena.run(ticks)
    return arena["medium"].stability - 40.0


def test_stability_recovers_10_a_second_up_to_100():
    assert stability_gained() == pytest.approx(10 * DT * 10)
    assert stability_gained(ticks=200) == 60.0


def test_recovery_halves_above_a_metre_a_second():
    assert stability_gained(throttle=1.0) == pytest.approx(0.5 * 10 * DT * 10)
    assert stability_gained(throttle=0.9 / MEDIUM.top_speed) == pytest.approx(10 * DT * 10)


def test_recovery_halves_while_legged_and_moving_changes_nothing():
    assert stability_gained(legs=0.0) == pytest.approx(0.5 * 10 * DT * 10)
    assert stability_gained(legs=0.0, throttle=1.0) == pytest.approx(0.5 * 10 * DT * 10)


def test_recovery_falls_to_a_quarter_while_suppressed():
    assert stability_gained(suppressed=100) == pytest.approx(0.25 * 10 * DT * 10)


def test_recovery_is_at_least_a_tenth():
    assert stability_gained(suppressed=100, legs=0.0) == pytest.approx(0.1 * 10 * DT * 10)
    assert stability_gained(suppressed=100, throttle=1.0) == pytest.approx(0.1 * 10 * DT * 10)


def knocked_down(arena):
    """Shoot until the medium falls."""
    arena["medium"].stability = 30.0
    arena.order("heavy", tertiary=1)
    while not of_kind(arena.log, "fall"):
        arena.run()
        arena.order("heavy")


def test_a_mech_without_stability_falls_for_three_seconds_and_stands_up_with_50():
    arena = pair()
    knocked_down(arena)
    (fall,) = of_kind(arena.log, "fall")
    assert fall.actor == "medium"
    assert arena["medium"].stability == 0.0
    assert arena.statistics("medium")["falls"] == 1
    arena.run(59)
    assert arena["medium"].fallen == 1
    (rise,) = of_kind(arena.run(), "rise")
    assert rise.actor == "medium"
    assert rise.tick == fall.tick + 60
    assert arena["medium"].stability == 50.0


def test_a_gauss_shell_alone_does_not_fell_a_steady_mech_and_two_do():
    assert 100 - GAUSS.stability > 0 >= 100 - 2 * GAUSS.stability + 10 * GAUSS.cooldown - 20
    arena = pair()
    arena.order("heavy", tertiary=1)
    arena.run(20)
    assert of_kind(arena.log, "hit")
    assert of_kind(arena.log, "fall") == []


def test_a_fallen_mech_loses_no_stability_and_does_not_fall_again():
    arena = pair()
    knocked_down(arena)
    arena["heavy"].cooldown[:] = 0
    arena.order("heavy", tertiary=1)
    arena.run(10)
    assert len(of_kind(arena.log, "hit")) == 2
    assert len(of_kind(arena.log, "fall")) == 1
    assert arena["medium"].stability == 0.0
    assert arena["medium"].armour == MEDIUM.armour - (1 + arena.config.combat.helpless_damage) * GAUSS.damage


@pytest.mark.parametrize("field", ["fallen", "shutdown"])
def test_plating_comes_off_a_hit_before_it_does_more_to_a_helpless_mech(field):
    arena = pair(catalog=changed(medium={"plating": 3.0}))
    arena["medium"].heat = 99.0
    setattr(arena["medium"], field, 30)
    arena.order("heavy", primary=1)
    (hit,) = of_kind(arena.run(), "hit")
    assert hit.amount == arena.config.combat.helpless_damage * (LASER.damage - 3.0)


def test_plating_stops_small_hits_but_not_their_heat():
    arena = pair(0.1, catalog=changed(medium={"plating": LASER.damage + 1.0}))
    arena.order("heavy", primary=1)
    (hit,) = of_kind(arena.run(), "hit")
    medium = arena["medium"]
    assert (hit.amount, medium.armour, medium.legs, medium.heat) == (0, MEDIUM.armour, MEDIUM.legs, LASER.target_heat)


def test_a_fallen_mech_neither_turns_nor_walks_nor_jumps_nor_fires():
    arena = Arena({"heavy": (5, 5)}, {"light": (30, 30, EAST), "scout": (60, 5)})
    arena["light"].fallen = 30
    arena.put("heavy", 33, 30, WEST)
    arena.order("light", throttle=1, strafe=1, turn=1, jet=1, primary=1, secondary=1)
    arena.run(10)
    light = arena["light"]
    assert (light.x, light.y, light.z, light.yaw) == (30, 30, 0, 0)
    assert light.heat == 0.0
    assert arena.log == []


def test_a_fallen_mech_vents_and_radiates():
    arena = Arena({"heavy": (5, 5)}, {"scout": (30, 30)})
    scout = arena["scout"]
    scout.fallen, scout.heat = 100, 70.0
    arena.order("scout", vent=1, ecm=1)
    arena.run()
    assert scout.heat == pytest.approx(70.0 - 2 * 13.0 * DT + 3.0 * DT)
    assert arena["heavy"].jam > 0


def test_a_mech_that_falls_in_the_air_comes_down():
    arena = Arena({"heavy": (5, 5)}, {"light": (30, 30)})
    arena.put("light", 30, 30, z=5.0)
    arena["light"].fallen = 60
    arena.run(40)
    assert arena["light"].z == 0.0


@pytest.mark.parametrize(("aim", "legs_lost", "body_lost"), [(0.29, 1.0, 0.5), (0.31, 0.0, 1.0)])
def test_a_hit_below_30_percent_takes_it_all_from_the_legs_and_half_from_the_body(aim, legs_lost, body_lost):
    arena = pair(aim)
    arena.order("heavy", primary=1)
    (hit,) = of_kind(arena.run(), "hit")
    assert MEDIUM.legs - arena["medium"].legs == legs_lost * LASER.damage
    assert MEDIUM.armour - arena["medium"].armour == hit.amount == body_lost * LASER.damage


def test_a_shell_hits_the_legs_by_the_height_at_which_it_enters():
    """Level at 1 m of the heavy's 4 m: below 30 % of its height, regardless of the aim."""
    arena = Arena({"light": (20, 30, EAST)}, {"heavy": (27, 30, WEST)})
    arena.missile("light", "heavy", 24, 30, 1.0, weapon="missiles")
    arena.projectiles["aim"] = 0.25
    arena.run(5)
    assert of_kind(arena.log, "hit")[0].place[2] == pytest.approx(1.0)
    assert arena["heavy"].legs == HEAVY.legs - 40.0
    assert arena["heavy"].armour == HEAVY.armour - 20.0


def test_a_mech_without_legs_stays_legged_for_the_rest_of_the_battle():
    arena = pair(0.1)
    arena["medium"].legs = 10.0
    arena.order("heavy", primary=1)
    (legged,) = of_kind(arena.run(13), "legged")
    assert legged.actor == "medium"
    assert arena["medium"].legs == 0.0
    assert len(of_kind(arena.log, "hit")) == 2  # the second one legs no mech again


def test_a_legged_mech_walks_at_two_fifths():
    arena = Arena({"heavy": (5, 5)}, {"medium": (30, 30, EAST)})
    arena["medium"].legs = 0.0
    arena.order("medium", throttle=1)
    arena.run()
    assert arena["medium"].speed == pytest.approx(0.4 * MEDIUM.top_speed)


@pytest.mark.parametrize(
    ("facing", "factor"), [(EAST, 1.5), (44, 1.5), (-44, 1.5), (46, 1.0), (NORTH, 1.0), (WEST, 1.0)]
)
def test_hits_from_behind_do_half_as_much_again(facing, factor):
    """From behind: the hit travels within 45 degrees of the target's facing."""
    arena = pair()
    arena.put("medium", 27, 30, facing)
    arena.order("heavy", primary=1)
    assert of_kind(arena.run(), "hit")[0].amount == pytest.approx(factor * LASER.damage)


def test_rear_paint_and_legs_multiply():
    arena = pair(0.1)
    arena.put("medium", 27, 30, EAST)
    arena.paint("medium", by="heavy")
    arena.order("heavy", primary=1)
    (hit,) = of_kind(arena.run(), "hit")
    damage = LASER.damage * arena.config.combat.paint_damage * 1.5
    assert hit.amount == pytest.approx(damage * 0.5)
    assert arena["medium"].legs == pytest.approx(MEDIUM.legs - damage)


def test_a_hit_from_straight_above_is_not_from_behind():
    arena = Arena({"light": (27, 30, EAST)}, {"medium": (27, 30, EAST)})
    arena.put("light", 27, 30, EAST, z=MEDIUM.height)
    arena["light"].on_ground = 1
    arena.order("light", secondary=1)
    (hit,) = of_kind(arena.run(), "hit")
    assert hit.amount == LASER.damage
    assert hit.direction == (0.0, 0.0)


def test_a_shells_direction_in_the_plane_decides_what_is_the_rear():
    """A missile dives on the back of a light that faces away from it."""
    arena = Arena({"heavy": (5, 30)}, {"light": (30, 30, EAST)})
    arena.missile("heavy", "light", 27, 30, 4)
    (hit,) = of_kind(arena.run(10), "hit")
    assert hit.direction == pytest.approx((1.0, 0.0))
    assert hit.amount == 60.0
    assert arena["light"].armour == LIGHT.armour - 60.0
    assert math.hypot(*hit.direction) == pytest.approx(1.0)
