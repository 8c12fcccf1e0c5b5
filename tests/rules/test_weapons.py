"""Firing: valid targets, the cost of a shot, the effects of a hit."""

import math

import numpy as np
import pytest

from echelon_env.config.catalog import AUTOCANNON, FLAMER, GAUSS, HEAVY, LASER, LIGHT, MEDIUM, PAINTER, SCOUT, SMOKE
from rules.arena import Arena, changed, of_kind

DT = 0.05
EAST, WEST = 0, 180


def duel(distance=6.0, **overrides):
    """Two mediums that face each other."""
    return Arena({"blue medium": (20, 30, EAST)}, {"red medium": (20 + distance, 30, WEST)}, **overrides)


def hits(arena, **wanted):
    return of_kind(arena.log, "hit", **wanted)


def test_a_laser_hits_in_the_tick_it_is_fired_and_moves_heat():
    arena = duel()
    arena.order("blue medium", primary=1)
    (shot, hit) = arena.run()
    for event, kind in ((shot, "shot"), (hit, "hit")):
        assert (event.kind, event.tick, event.weapon) == (kind, 0, "laser")
        assert (event.actor, event.target) == ("blue medium", "red medium")
    assert hit.amount == LASER.damage
    assert arena["red medium"].armour == MEDIUM.armour - LASER.damage
    assert arena["red medium"].heat == LASER.target_heat
    assert arena["blue medium"].heat == LASER.heat


def test_a_shot_starts_its_cooldown():
    """A laser cools down for 0.6 s = 12 ticks: it fires in ticks 0, 12 and 24."""
    arena = duel()
    arena.order("blue medium", primary=1)
    arena.run(25)
    assert [e.tick for e in of_kind(arena.log, "shot")] == [0, 12, 24]


def test_every_mount_with_its_trigger_on_fires_in_the_same_tick():
    arena = Arena({"light": (20, 30, EAST)}, {"medium": (24, 30, WEST)})
    arena.order("light", primary=1, secondary=1, tertiary=1, special=1)
    arena.run()
    assert [e.weapon for e in of_kind(arena.log, "shot")] == ["flamer", "laser", "painter", "smoke"]
    assert arena["light"].heat == FLAMER.heat + LASER.heat + PAINTER.heat + SMOKE.heat


def test_mounts_without_a_trigger_or_a_weapon_do_not_fire():
    arena = Arena({"scout": (20, 30, EAST)}, {"medium": (24, 30, WEST)})
    arena.order("scout", primary=-1, secondary=1, tertiary=1)
    assert arena.run(5) == []


def test_a_venting_mech_holds_fire():
    arena = duel()
    arena.order("blue medium", primary=1, vent=1)
    assert arena.run(3) == []
    arena.order("blue medium", primary=1)
    assert of_kind(arena.run(), "hit")


@pytest.mark.parametrize(("distance", "hit"), [(LASER.range, True), (LASER.range + 0.01, False)])
def test_range_is_measured_between_the_centres(distance, hit):
    arena = duel(distance)
    arena.order("blue medium", primary=1)
    assert bool(of_kind(arena.run(), "hit")) == hit


def test_range_is_measured_in_space():
    """A scout 11 m away in the plane and 6 m higher up, between the centres, is farther than 12 m."""
    arena = Arena({"light": (20, 30, EAST)}, {"scout": (31, 30, WEST)}, physics={"gravity": 0.0})
    arena.order("light", secondary=1)
    arena.put("scout", 31, 30, WEST, z=6.0 + LIGHT.height / 2 - SCOUT.height / 2)
    assert math.hypot(11, 6) > LASER.range
    assert arena.run() == []


@pytest.mark.parametrize(("bearing", "hit"), [(59, True), (61, False), (-59, True), (-61, False), (180, False)])
def test_a_target_must_lie_in_the_firing_arc(bearing, hit):
    """A laser's arc is 120 degrees wide: 60 to each side of the facing."""
    arena = duel()
    x, y = 20 + 6 * math.cos(math.radians(bearing)), 30 + 6 * math.sin(math.radians(bearing))
    arena.put("red medium", x, y)
    arena.order("blue medium", primary=1)
    assert bool(of_kind(arena.run(), "hit")) == hit


def test_the_arc_turns_with_the_mech():
    arena = duel()
    arena.put("blue medium", 20, 30, 90)
    arena.order("blue medium", primary=1)
    assert arena.run() == []
    arena.put("red medium", 20, 36, -90)
    assert of_kind(arena.run(), "hit")


def test_a_target_straight_above_is_in_every_arc():
    arena = Arena({"heavy": (20, 30, EAST)}, {"scout": (20, 30, WEST)})
    arena.put("scout", 20, 30, WEST, z=HEAVY.height)
    arena["scout"].on_ground = 1
    arena.order("heavy", primary=1)
    assert of_kind(arena.run(), "hit", target="scout")


@pytest.mark.parametrize("material", ["concrete", "reinforced", "foliage", "wreck"])
def test_what_blocks_sight_blocks_the_laser(material):
    arena = duel()
    arena.fill(material, x=(23, 24), y=(25, 35), z=(0, 5))
    arena.order("blue medium", primary=1)
    assert arena.run() == []


@pytest.mark.parametrize("material", ["air", "dirt", "glass", "water", "lava", "debris"])
def test_the_laser_goes_through_what_does_not_block_sight(material):
    arena = duel()
    arena.fill(material, x=(23, 24), y=(25, 35), z=(0, 5))
    arena.order("blue medium", primary=1)
    assert of_kind(arena.run(), "hit")
    assert arena.count(material) > 0


def test_line_of_sight_joins_the_centres_over_a_wall_or_not():
    """The line between two mediums' centres, 1.5 m high, passes over a wall of 1 m but not over one of 3 m."""
    for height, seen in ((1, True), (3, False)):
        arena = duel()
        arena.fill("concrete", x=(23, 24), y=(25, 35), z=(0, height))
        arena.order("blue medium", primary=1)
        assert bool(of_kind(arena.run(), "hit")) == seen


def test_the_voxels_that_hold_the_two_ends_do_not_block():
    """Both mechs stand in foliage of one voxel around their centres."""
    arena = duel()
    arena.fill("foliage", x=(20, 21), y=(30, 31), z=(1, 2))
    arena.fill("foliage", x=(26, 27), y=(30, 31), z=(1, 2))
    arena.order("blue medium", primary=1)
    assert of_kind(arena.run(), "hit")


def test_smoke_between_blocks_the_laser():
    arena = duel()
    arena.smoke(23, 30, 1.5)
    arena.order("blue medium", primary=1)
    assert arena.run() == []


def two_targets(near=(24, 30), far=(26, 30), **overrides):
    return Arena({"medium": (20, 30, EAST)}, {"near scout": near, "far scout": far}, **overrides)


def test_the_chosen_target_is_taken_although_another_is_nearer():
    arena = two_targets()
    arena.order("medium", primary=1, target="far scout")
    assert of_kind(arena.run(), "shot")[0].target == "far scout"


def test_weapons_fire_at_no_other_mech_while_the_target_is_invalid():
    arena = two_targets(far=(40, 30))
    arena.order("medium", primary=1, target="far scout")
    assert arena.run() == []
    assert arena.target("medium") == "far scout"
    arena.put("far scout", 26, 30)
    assert of_kind(arena.run(), "shot")[0].target == "far scout"


def test_a_target_is_kept_until_another_is_chosen():
    arena = two_targets()
    arena.run()
    assert arena.target("medium") == "near scout"
    arena.order("medium", target="far scout")
    arena.run()
    arena.order("medium", primary=1, target=None)
    assert [e.target for e in of_kind(arena.run(13), "shot")] == ["far scout"] * 2
    arena.order("medium", target="near scout")
    arena.run()
    assert arena.target("medium") == "near scout"


@pytest.mark.parametrize(("lost", "instead"), [("hidden", "near scout"), ("dead", "near scout"), ("blind", None)])
def test_a_target_that_the_mech_no_longer_sees_is_replaced_by_the_nearest_that_it_sees(lost, instead):
    arena = two_targets()
    arena.order("medium", target="far scout")
    arena.run()
    arena.order("medium")
    if lost == "hidden":
        arena.smoke(26, 30, 1, radius=0.5)
    elif lost == "dead":
        arena["far scout"].alive = 0
    else:
        arena["medium"].heat, arena["medium"].shutdown = 99.0, 1
    arena.run()
    assert arena.target("medium") == instead


def test_dead_mechs_are_no_targets():
    arena = two_targets()
    arena["near scout"].alive = 0
    arena.order("medium", primary=1, target="near scout")
    assert arena.run() == []


def test_team_mates_are_no_targets():
    arena = Arena({"medium": (20, 30, EAST), "scout": (24, 30)}, {"light": (50, 50)})
    arena.order("medium", primary=1, secondary=1, target="scout")
    assert arena.run(3) == []


@pytest.mark.parametrize(("trigger", "weapon"), [("tertiary", "gauss"), ("special", "smoke")])
def test_guns_fire_level_and_straight_ahead_without_a_target(trigger, weapon):
    arena = Arena({"heavy": (20, 30, 30)}, {"scout": (60, 10)})
    arena.order("heavy", **{trigger: 1})
    (shot,) = arena.run()
    assert (shot.kind, shot.weapon, shot.target) == ("shot", weapon, None)
    flying = arena.projectiles[0]
    assert math.atan2(flying["vy"], flying["vx"]) == pytest.approx(math.radians(30))
    drop = 9.81 * DT if weapon == "gauss" else 0.0
    assert flying["vz"] == pytest.approx(-drop)


def test_weapons_that_do_not_fire_blind_need_a_target():
    arena = Arena({"heavy": (20, 30, EAST), "light": (20, 40, EAST), "medium": (20, 50, EAST)}, {"scout": (60, 10)})
    for name in ("heavy", "light", "medium"):
        arena.order(name, primary=1, secondary=1, tertiary=name != "heavy")
    assert arena.run(3) == []
    assert arena["heavy"].heat == 0.0


def test_shots_leave_from_the_shooters_centre():
    arena = duel()
    arena.order("blue medium", tertiary=1)
    assert of_kind(arena.run(), "shot")[0].place == (20.0, 30.0, MEDIUM.height / 2)


def test_aim_heights_are_drawn_evenly_between_a_tenth_and_nine_tenths():
    catalog = changed(laser={"heat": 0.0, "cooldown": DT, "damage": 0.0})
    arena = duel(catalog=catalog, combat={"aim_low": 0.1, "aim_high": 0.9})
    arena.order("blue medium", primary=1)
    arena.run(400)
    heights = np.array([e.place[2] for e in hits(arena)]) / MEDIUM.height
    assert len(heights) == 400
    assert 0.1 <= heights.min() < 0.13
    assert 0.87 < heights.max() <= 0.9
    # The mean of 400 uniform draws has a standard error of 0.8 / sqrt(12 x 400) = 0.0115.
    assert heights.mean() == pytest.approx(0.5, abs=4 * 0.0115)


def test_each_mount_draws_its_own_aim():
    arena = Arena({"light": (20, 30, EAST)}, {"medium": (23, 30, WEST)}, combat={"aim_low": 0.1, "aim_high": 0.9})
    arena.order("light", primary=1, secondary=1)
    flamer, laser = of_kind(arena.run(), "hit")
    assert flamer.place[2] != laser.place[2]


def test_the_flamers_heat_shuts_its_target_down():
    arena = Arena({"light": (20, 30, EAST)}, {"medium": (23, 30, WEST)})
    arena["medium"].heat = 95.0
    arena.order("light", primary=1)
    arena.run()
    arena.order("light")
    assert arena["medium"].heat == pytest.approx(95.0 + FLAMER.target_heat - MEDIUM.heat_dissipation * DT)
    assert of_kind(arena.run(), "shutdown", actor="medium")


def test_the_flamers_heat_adds_up():
    arena = Arena({"light": (20, 30, EAST), "second light": (23, 26, 90)}, {"medium": (23, 30, WEST)})
    for name in ("light", "second light"):
        arena.order(name, primary=1)
    arena.run()
    assert arena["medium"].heat == 2 * FLAMER.target_heat
    assert arena["medium"].armour == MEDIUM.armour - 2 * FLAMER.damage


def test_the_autocannon_suppresses_for_its_time():
    """1.2 s = 24 ticks: the tick of the hit and 23 more."""
    arena = duel()
    arena.order("blue medium", tertiary=1)
    while not hits(arena):
        arena.run()
        arena.order("blue medium")
    assert AUTOCANNON.suppression == 1.2
    assert arena["red medium"].suppressed == 24
    arena.run(23)
    assert arena["red medium"].suppressed == 1
    arena.run()
    assert arena["red medium"].suppressed == 0


def test_a_longer_suppression_stays():
    arena = duel()
    arena["red medium"].suppressed = 100
    arena.order("blue medium", tertiary=1)
    ticks = 0
    while not hits(arena):
        arena.run()
        ticks += 1
    assert arena["red medium"].suppressed == 100 - ticks


def test_gauss_takes_stability_from_its_target():
    arena = Arena({"heavy": (20, 30, EAST)}, {"medium": (30, 30, WEST)})
    arena.order("heavy", tertiary=1)
    arena.run(10)
    (hit,) = hits(arena)
    assert hit.amount == GAUSS.damage
    assert arena["medium"].armour == MEDIUM.armour - GAUSS.damage
    recovered = 10.0 * DT * (9 - hit.tick)
    assert arena["medium"].stability == pytest.approx(100.0 - GAUSS.stability + recovered)


def test_shots_and_hits_are_counted_by_weapon():
    arena = duel()
    arena.order("blue medium", primary=1, tertiary=1)
    arena.run(13)
    shots, landed = arena.state.shots[0, 0], arena.state.hits[0, 0]
    index = arena.config.catalog.weapon_index
    assert shots[index("laser")] == landed[index("laser")] == 2
    assert shots[index("autocannon")] == 4
    assert 0 < landed[index("autocannon")] < 4
    assert shots.sum() == 6


@pytest.mark.parametrize("facing", [0.1, 1.0, 37.3, 90.0, 123.4, 179.9, -0.3, -88.8])
def test_an_arc_of_360_degrees_has_no_gap_behind(facing):
    arena = Arena({"medium": (20, 20, facing)}, {"scout": (20, 20)}, catalog=changed(laser={"arc": 360.0}))
    behind = math.radians(facing)
    arena.put("scout", 20 - 5 * math.cos(behind), 20 - 5 * math.sin(behind))
    arena.order("medium", primary=1)
    assert [event.target for event in of_kind(arena.run(), "hit")] == ["scout"]


@pytest.mark.parametrize("speed", [0.5, 2.0, 5.0])
def test_a_shell_too_slow_for_its_range_is_fired_anyway(speed):
    arena = Arena({"heavy": (20, 20, 0)}, {"scout": (35, 20)}, catalog=changed(gauss={"speed": speed}))
    arena.order("heavy", tertiary=1)
    arena.run(40)
    assert len(of_kind(arena.log, "shot")) == 1
    assert all(math.isfinite(part) for event in arena.log for part in event.place)
    assert of_kind(arena.log, "hit") == []
