"""Projectiles in flight: straight, ballistic, through team-mates, into walls, out of the map."""

import math

import pytest

from echelon_env.config.catalog import AUTOCANNON, GAUSS, HEAVY, MEDIUM, SCOUT
from rules.arena import HEIGHT, Arena, changed, of_kind

DT = 0.05
EAST, NORTH, WEST = 0, 90, 180
BLIND = {"fires_blind": True}


def gunner(target=(29.5, 30, WEST), **overrides):
    """A medium with its autocannon that faces another medium."""
    return Arena({"blue medium": (20, 30, EAST)}, {"red medium": target}, **overrides)


def fire_once(arena, name="blue medium", **order):
    arena.order(name, tertiary=1, **order)
    arena.run()
    arena.order(name)
    arena.run(19)
    return arena.log


def test_a_straight_shot_flies_at_its_speed_from_the_tick_it_is_fired_in():
    """From the centre to the face of a medium 9.5 m away are 8.25 m, at 1.25 m a tick: it arrives in the 7th tick."""
    arena = gunner()
    (hit,) = of_kind(fire_once(arena), "hit")
    path = 9.5 - MEDIUM.length / 2
    assert hit.tick == math.ceil(path / (AUTOCANNON.speed * DT)) - 1 == 6
    assert hit.place == pytest.approx((29.5 - MEDIUM.length / 2, 30, MEDIUM.height / 2))
    assert hit.direction == (1.0, 0.0)
    assert hit.weapon == "autocannon"


def test_a_straight_shot_flies_no_farther_than_its_range():
    """Without a target it flies straight ahead: 18 m reach the face of a medium at 19.2 m, not at 19.3 m."""
    for distance, reached in ((19.2, True), (19.3, False)):
        arena = gunner(target=(20 + distance, 30, WEST), catalog=changed(autocannon=BLIND))
        log = fire_once(arena)
        assert of_kind(log, "shot")[0].target is None
        assert bool(of_kind(log, "hit")) == reached
        assert len(arena.projectiles) == 0


def test_a_shot_that_ends_at_its_range_does_not_burst():
    arena = gunner(target=(50, 50), catalog=changed(autocannon=BLIND))
    assert [e.kind for e in fire_once(arena)] == ["shot"]


def test_a_straight_shot_aims_up_and_down():
    arena = gunner(target=(26, 30, WEST), physics={"gravity": 0.0})
    arena.put("red medium", 26, 30, WEST, z=4.0)
    (hit,) = of_kind(fire_once(arena), "hit")
    # On the line between the centres, at the near face.
    share = (6 - MEDIUM.length / 2) / 6
    assert hit.place[2] == pytest.approx(MEDIUM.height / 2 + share * 4.0)


def test_the_first_enemy_on_the_path_is_hit_even_if_another_is_the_target():
    arena = Arena({"medium": (20, 30, EAST)}, {"scout": (25, 30), "light": (29, 30)})
    (shot, hit) = fire_once(arena, "medium", target="light")
    assert (shot.target, hit.target) == ("light", "scout")


def test_shots_pass_through_friends():
    arena = Arena({"medium": (20, 30, EAST), "heavy": (24.5, 30)}, {"light": (29, 30, WEST)})
    (hit,) = of_kind(fire_once(arena, "medium"), "hit")
    assert hit.target == "light"
    assert arena["heavy"].armour == HEAVY.armour


@pytest.mark.parametrize("material", ["concrete", "reinforced", "glass", "foliage", "wreck"])
def test_what_blocks_movement_or_sight_stops_a_shell(material):
    arena = gunner(target=(50, 50), catalog=changed(autocannon=BLIND))
    arena.fill(material, x=(25, 26), y=(25, 35), z=(0, 5))
    (impact,) = of_kind(fire_once(arena), "impact")
    assert impact.actor == "blue medium"
    assert impact.target is None
    assert impact.place == pytest.approx((25 - 0.05, 30, 1.5))


@pytest.mark.parametrize("material", ["dirt", "water", "lava", "debris"])
def test_passable_materials_let_shells_pass(material):
    arena = gunner()
    arena.fill(material, x=(25, 26), y=(25, 35), z=(0, 5))
    assert of_kind(fire_once(arena), "hit")


def test_a_mech_in_foliage_fires_out_of_it():
    arena = gunner()
    arena.fill("foliage", x=(20, 21), y=(30, 31), z=(1, 2))
    assert of_kind(fire_once(arena), "hit")


def test_a_shot_that_leaves_the_map_is_gone_without_a_burst():
    arena = Arena({"heavy": (5, 30, WEST)}, {"light": (50, 50)})
    assert [e.kind for e in fire_once(arena, "heavy")] == ["shot"]
    assert len(arena.projectiles) == 0


def test_projectiles_of_a_dead_mech_continue():
    arena = Arena({"medium": (20, 30, EAST), "scout": (5, 5)}, {"light": (29, 30, WEST)})
    arena.order("medium", tertiary=1)
    arena.run(2)
    arena["medium"].alive = 0
    log = arena.run(10)
    (hit,) = of_kind(log, "hit")
    assert (hit.actor, hit.target) == ("medium", "light")
    assert arena.statistics("medium")["damage_dealt"] == AUTOCANNON.damage


@pytest.mark.parametrize("distance", [8, 12, 16, 20])
def test_gauss_is_aimed_with_drop(distance):
    """A falling shell hits the height that it was aimed at, up to its drop on the way through the target."""
    arena = Arena({"heavy": (20, 30, EAST)}, {"scout": (20 + distance, 30, WEST)})
    (hit,) = of_kind(fire_once(arena, "heavy"), "hit")
    assert hit.place[2] == pytest.approx(SCOUT.height / 2, abs=0.2)
    # Forty metres a second: the flight takes as long as the distance asks for, a little more for the arc.
    path = distance - SCOUT.length / 2
    assert hit.tick in (math.ceil(path / (GAUSS.speed * DT)) - 1, math.ceil(path / (GAUSS.speed * DT)))


@pytest.mark.parametrize("strafe", [-1, 1])
@pytest.mark.parametrize(("shooter", "distance"), [("heavy", 16), ("medium", 10)])
def test_shells_lead_a_target_that_keeps_its_velocity(shooter, distance, strafe):
    """A scout that runs across at 7 m/s is 2.8 m farther after 0.4 s of flight: without lead they would miss."""
    arena = Arena({shooter: (20, 30, EAST)}, {"scout": (20 + distance, 30, WEST)})
    arena.order("scout", strafe=strafe)
    arena.run(2)
    y = arena["scout"].y
    (hit,) = of_kind(fire_once(arena, shooter), "hit")
    assert abs(hit.place[1] - y) > 2.0 > SCOUT.width


def test_gauss_reaches_a_target_on_a_roof():
    arena = Arena({"heavy": (20, 30, EAST)}, {"scout": (32.5, 30, WEST)})
    arena.fill("concrete", x=(30, 35), y=(25, 35), z=(0, 6))
    arena.put("scout", 30.7, 30, WEST, z=6.0)
    (hit,) = of_kind(fire_once(arena, "heavy"), "hit")
    assert hit.target == "scout"


def test_a_ballistic_shell_falls():
    """Level and without a target, it falls g t^2 / 2 in t, counted in whole ticks on the parabola's points."""
    arena = Arena({"heavy": (20, 30, EAST)}, {"scout": (60, 60)})
    arena.order("heavy", tertiary=1)
    for ticks in range(1, 6):
        arena.run()
        arena.order("heavy")
        shell = arena.projectiles[0]
        assert shell["x"] == pytest.approx(20 + GAUSS.speed * DT * ticks)
        assert shell["z"] == pytest.approx(HEAVY.height / 2 - 9.81 * (DT * ticks) ** 2 / 2)


def test_a_shell_that_strikes_the_ground_bursts_just_above_it():
    """Fired level from 2 m, a slow shell hits bedrock, which is no voxel and takes no damage."""
    catalog = changed(gauss={"speed": 12.0})
    arena = Arena({"heavy": (20, 30, EAST)}, {"scout": (60, 60)}, catalog=catalog)
    (impact,) = of_kind(fire_once(arena, "heavy"), "impact")
    assert 0.0 <= impact.place[2] <= 0.05
    assert impact.amount == 0
    # It falls 2 m in sqrt(2 x 2 / 9.81) = 0.64 s, and flies 12 m/s x 0.64 s in that time.
    assert impact.place[0] == pytest.approx(20 + 12 * math.sqrt(4 / 9.81), abs=0.2)


def test_a_level_shell_flies_at_most_its_range_along_its_path():
    catalog = changed(gauss={"range": 20.0})
    arena = Arena({"heavy": (20, 30, EAST)}, {"scout": (60, 60)}, catalog=catalog)
    arena.fill("concrete", x=(39, 40), y=(20, 40), z=(0, 8))
    assert of_kind(fire_once(arena, "heavy"), "impact")
    arena = Arena({"heavy": (20, 30, EAST)}, {"scout": (60, 60)}, catalog=catalog)
    arena.fill("concrete", x=(40, 41), y=(20, 40), z=(0, 8))
    assert of_kind(fire_once(arena, "heavy"), "impact") == []


def test_a_shot_along_a_face_hits_the_box():
    """A path exactly along the face of a box hits it; a path a millimetre beside it does not."""
    for y, hit in ((30 + SCOUT.width / 2, True), (30 + SCOUT.width / 2 + 1e-3, False)):
        catalog = changed(autocannon={"arc": 0.0, **BLIND})
        arena = Arena({"medium": (20, y, EAST)}, {"scout": (31, 30)}, catalog=catalog)
        log = fire_once(arena, "medium")
        assert of_kind(log, "shot")[0].target is None
        assert bool(of_kind(log, "hit")) == hit


def test_a_shell_that_leaves_through_the_top_is_gone_without_a_burst():
    arena = Arena({"heavy": (20, 30, EAST)}, {"scout": (25, 30)}, physics={"gravity": 0.0})
    arena.missile("heavy", "scout", 20, 30, HEIGHT - 0.1)
    arena.put("scout", 20, 30, z=HEIGHT + 5)
    assert arena.run(3) == []
    assert len(arena.projectiles) == 0
