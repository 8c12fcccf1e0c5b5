"""Homing missiles: locks, the path over walls, and anti-missile systems."""

import math

import pytest

from echelon_env.config.battle import PACK
from echelon_env.config.catalog import MISSILES
from rules.arena import HEIGHT, Arena, changed, of_kind

DT = 0.05
EAST, WEST = 0, 180
CRUISE = HEIGHT - 0.5


def battery(target=(50, 30, WEST), wall=True, **overrides):
    """A heavy, its scout, and a scout of the enemy behind a wall."""
    arena = Arena(
        {"heavy": (10, 30, EAST), "blue scout": (10, 50)}, {"red scout": target, "light": (60, 60)}, **overrides
    )
    if wall:
        arena.fill("reinforced", x=(30, 31), y=(10, 50), z=(0, 10))
    return arena


def salvo(arena, seconds=7.0):
    arena.order("heavy", secondary=1)
    arena.run()
    arena.order("heavy")
    arena.run(seconds=seconds)
    return arena.log


def test_a_painted_scout_behind_a_wall_is_hit_by_a_missile_from_40_m():
    arena = battery()
    arena.paint("red scout", by="blue scout")
    (hit,) = of_kind(salvo(arena), "hit")
    assert (hit.actor, hit.target, hit.weapon) == ("heavy", "red scout", "missiles")
    assert hit.amount == MISSILES.damage  # the paint was gone before the missile arrived, 5 s later


def test_without_paint_a_scout_behind_a_wall_is_not_hit():
    arena = battery()
    assert salvo(arena) == []


@pytest.mark.parametrize(("quality", "locked"), [(0.69, False), (0.70, True)])
def test_a_paint_lock_needs_sensor_quality_of_070(quality, locked):
    arena = battery()
    arena.paint("red scout", by="blue scout")
    arena["heavy"].quality = quality
    arena.order("heavy", secondary=1)
    assert bool(of_kind(arena.run(), "shot")) == locked


def test_another_packs_paint_is_no_lock():
    places = {f"{i} {name}": (5 + 4 * i, 5) for i, name in enumerate(PACK)}
    arena = Arena({**places, "other heavy": (10, 30, EAST)}, {"red scout": (40, 30)})
    arena.fill("reinforced", x=(30, 31), y=(10, 50), z=(0, 10))
    arena.paint("red scout", by="4 scout")
    arena.order("other heavy", secondary=1)
    assert arena.run() == []
    arena.paint("red scout", by="other heavy")
    assert of_kind(arena.run(), "shot")


@pytest.mark.parametrize(("distance", "locked"), [(11.9, True), (12.1, False)])
def test_without_paint_it_locks_on_visible_enemies_within_12_m(distance, locked):
    arena = battery(target=(10 + distance, 30, WEST), wall=False)
    arena.order("heavy", secondary=1)
    assert bool(of_kind(arena.run(), "shot")) == locked


def test_without_paint_it_does_not_lock_on_hidden_enemies():
    arena = battery(target=(20, 30, WEST), wall=False)
    arena.fill("reinforced", x=(15, 16), y=(10, 50), z=(0, 10))
    arena.order("heavy", secondary=1)
    assert arena.run() == []


def test_a_paint_lock_needs_no_line_of_sight_and_reaches_50_m_and_no_farther():
    for distance, locked in ((49.9, True), (50.3, False)):
        arena = battery(target=(10 + distance, 30, WEST))
        arena.paint("red scout", by="blue scout")
        arena.order("heavy", secondary=1)
        assert bool(of_kind(arena.run(), "shot")) == locked


def test_paint_is_no_lock_outside_the_arc():
    """The launchers' arc is 180 degrees: a target behind the shooter is outside."""
    arena = battery(target=(5, 30, WEST))
    arena.paint("red scout", by="blue scout")
    arena.order("heavy", secondary=1)
    assert arena.run() == []


def test_smoke_breaks_a_lock_by_sight_but_not_a_paint_lock():
    for painted in (True, False):
        arena = battery(target=(20, 30, WEST), wall=False)
        arena.smoke(15, 30, 1.5)
        if painted:
            arena.paint("red scout", by="blue scout")
        arena.order("heavy", secondary=1)
        assert bool(of_kind(arena.run(), "shot")) == painted


def test_with_line_of_sight_it_homes_directly():
    arena = battery(target=(21, 30, WEST), wall=False)
    arena.order("heavy", secondary=1)
    arena.run()
    missile = arena.projectiles[0]
    assert missile["x"] > 10
    assert missile["z"] < 2.0  # from 2 m down to 0.9 m
    arena.order("heavy")
    arena.run(20)
    (hit,) = of_kind(arena.log, "hit")
    path = math.hypot(11, 2 - 0.9) * (1 - 0.6 / 11)  # to the near face
    assert hit.tick == math.ceil(path / (MISSILES.speed * DT)) - 1


def test_with_line_of_sight_in_unaided_range_it_homes_directly_although_painted():
    arena = battery(target=(21, 30, WEST), wall=False)
    arena.paint("red scout", by="blue scout")
    arena.order("heavy", secondary=1)
    arena.run()
    assert arena.projectiles[0]["x"] > 10


def test_with_a_paint_lock_only_it_climbs_cruises_and_dives():
    arena = battery()
    arena.paint("red scout", by="blue scout")
    arena.order("heavy", secondary=1)
    path = []
    while not of_kind(arena.log, "hit"):
        arena.run()
        arena.order("heavy")
        path += [(p["x"].item(), p["z"].item()) for p in arena.projectiles]
    step = MISSILES.speed * DT
    climb = math.ceil((CRUISE - 2.0) / step)  # from the heavy's centre at 2 m
    assert all(x == 10.0 for x, _ in path[:climb])
    assert path[climb - 1][1] == CRUISE
    # The cruise is level until 3 m from the scout in the plane.
    cruising = [x for x, z in path if z == CRUISE][1:]
    assert cruising == pytest.approx([10 + step * i for i in range(1, len(cruising) + 1)])
    assert 50 - 3 - step <= cruising[-1] <= 50 - 3 + step
    assert all(x >= 50 - 3 - step for x, z in path[climb + len(cruising) :])


def test_it_follows_its_target():
    arena = battery()
    arena.order("red scout", strafe=1)
    arena.paint("red scout", by="blue scout")
    salvo(arena, 2.0)
    arena.order("red scout")
    (hit,) = of_kind(arena.run(seconds=6.0), "hit")
    assert hit.target == "red scout"
    assert abs(hit.place[1] - 30) > 10


def test_its_lifetime_is_eight_seconds():
    """8 s at 12 m/s are a path of 96 m. A missile at its end disappears without a burst."""
    arena = battery(wall=False)
    arena.missile("heavy", "red scout", 10, 10, 10)
    arena.projectiles["reach"] = 1.5 * MISSILES.speed * DT
    log = arena.run(5)
    assert log == []
    assert len(arena.projectiles) == 0
    assert MISSILES.lifetime * MISSILES.speed == 96.0


def test_a_flight_lasts_as_long_as_its_lifetime():
    arena = battery(wall=False)
    arena.missile("heavy", "red scout", 10, 30, 2)
    arena.order("red scout", throttle=-1)
    arena.run()
    assert arena.projectiles["reach"][0] == pytest.approx(96.0 - MISSILES.speed * DT)


def test_it_continues_to_a_dead_targets_position_and_bursts_there():
    arena = battery(wall=False)
    arena.missile("heavy", "red scout", 44, 30, 3)
    arena["red scout"].alive = 0
    (impact,) = of_kind(arena.run(20), "impact")
    assert impact.place == pytest.approx((50, 30, 0.9))
    assert of_kind(arena.log, "hit") == []


def test_it_strikes_an_enemy_on_its_way():
    arena = battery(wall=False)
    arena.put("light", 40, 30)
    arena.missile("heavy", "red scout", 34, 30, 1)
    assert of_kind(arena.run(20), "hit")[0].target == "light"


def test_it_strikes_a_wall_on_its_way():
    arena = battery(target=(21, 30, WEST), wall=False)
    arena.order("heavy", secondary=1)
    arena.run()
    arena.fill("reinforced", x=(15, 16), y=(10, 50), z=(0, 10))
    (impact,) = of_kind(arena.run(20), "impact")
    assert impact.place[0] == pytest.approx(15 - 0.05, abs=0.01)


def defended(probability=1.0, **overrides):
    """A red heavy with its anti-missile system, beside a scout that is the target of a missile."""
    return Arena(
        {"blue heavy": (10, 10)},
        {"red heavy": (40, 30), "red scout": (44, 30), "second heavy": (44, 60)},
        combat={"anti_missile_probability": probability, "friendly_fire": False},
        **overrides,
    )


def test_a_heavy_shoots_down_the_missile_at_its_neighbour():
    arena = defended()
    arena.missile("blue heavy", "red scout", 38, 30, 3)
    (interception,) = arena.run(5)
    assert (interception.kind, interception.actor, interception.target) == ("interception", "red heavy", "blue heavy")
    assert interception.weapon == "missiles"
    assert interception.place == (38, 30, 3)
    assert len(arena.projectiles) == 0
    assert arena.statistics("red heavy")["interceptions"] == 1


@pytest.mark.parametrize(("distance", "tried"), [(5.5, True), (5.51, False)])
def test_its_system_reaches_five_and_a_half_metres(distance, tried):
    arena = defended()
    arena.missile("blue heavy", "red scout", 40, 30 + distance, 2.0)
    arena["red heavy"].z = 0.0
    assert bool(of_kind(arena.run(), "interception")) == tried


def test_an_attempt_costs_a_cooldown_of_a_second_hit_or_miss():
    for probability in (0.0, 1.0):
        arena = defended(probability)
        arena.missile("blue heavy", "red scout", 38, 30, 3)
        arena.run()
        assert arena["red heavy"].anti_missile_cooldown == 20


def test_a_second_missile_in_that_second_gets_through():
    arena = defended()
    arena.missile("blue heavy", "red scout", 38, 30, 3)
    arena.missile("blue heavy", "red scout", 39, 30, 3)
    arena.run(10)
    assert len(of_kind(arena.log, "interception")) == 1
    assert len(of_kind(arena.log, "hit")) == 1


def test_the_oldest_missile_is_taken_first():
    arena = defended()
    arena.missile("blue heavy", "red scout", 36, 30, 3)
    arena.missile("blue heavy", "red scout", 39, 30, 3)
    (interception,) = of_kind(arena.run(), "interception")
    assert interception.place[0] == 36


def test_the_nearest_ready_system_fires():
    arena = defended()
    arena.put("second heavy", 44, 26.4)
    arena.missile("blue heavy", "red scout", 44, 29, 5)
    assert of_kind(arena.run(), "interception")[0].actor == "second heavy"
    arena.missile("blue heavy", "red scout", 44, 29, 5)
    assert of_kind(arena.run(), "interception")[0].actor == "red heavy"


def test_of_systems_at_equal_distances_the_lower_spawn_place_fires():
    arena = defended()
    arena.put("red heavy", 42, 30)
    arena.put("red scout", 44, 20)
    arena.put("second heavy", 46, 30)
    arena.missile("blue heavy", "red scout", 44, 30, 3)
    lower = min("red heavy", "second heavy", key=lambda name: arena[name].place)
    assert of_kind(arena.run(), "interception")[0].actor == lower


@pytest.mark.parametrize(("field", "tries"), [("shutdown", False), ("fallen", True)])
def test_a_fallen_heavy_defends_and_a_shut_down_one_does_not(field, tries):
    arena = defended()
    arena["red heavy"].heat = 129.0
    setattr(arena["red heavy"], field, 30)
    arena.missile("blue heavy", "red scout", 38, 30, 3)
    assert bool(of_kind(arena.run(), "interception")) == tries


def test_a_system_ignores_its_own_teams_missiles():
    arena = defended()
    arena.missile("red heavy", "blue heavy", 38, 30, 3)
    assert arena.run() == []


def test_a_system_ignores_shells():
    arena = Arena({"medium": (30, 30, EAST)}, {"heavy": (38, 30, WEST)}, combat={"anti_missile_probability": 1.0})
    arena.order("medium", tertiary=1)
    arena.run(10)
    assert of_kind(arena.log, "hit")
    assert of_kind(arena.log, "interception") == []


def test_three_of_five_missiles_are_shot_down():
    """Of 400 attempts 240 succeed, within four standard errors of sqrt(400 x 0.6 x 0.4) = 9.8."""
    arena = Arena({"blue heavy": (10, 10)}, {"red heavy": (40, 30), "red scout": (60, 60)})
    for _ in range(400):
        arena["red heavy"].anti_missile_cooldown = 0
        arena.missile("blue heavy", "red scout", 36, 30, 3)
        arena.run()
        arena.state.battles["num_projectiles"][0] = 0
    assert abs(len(of_kind(arena.log, "interception")) - 240) < 4 * 9.8


def test_a_missile_that_hovers_over_its_target_ends_after_its_lifetime():
    """Without a dive it stays over a slower target, but its lifetime still runs."""
    catalog = changed(missiles={"unaided_range": 0.0, "heat": 0.0, "cooldown": 3.0})
    arena = battery(target=(22, 30, WEST), wall=False, catalog=catalog, combat={"dive_distance": 0.0})
    arena.paint("red scout", by="blue scout")
    arena.state.paint["ticks"] = 10**6
    arena.order("heavy", secondary=1)
    arena.order("red scout", throttle=0.3, turn=1)
    most = 0
    for _ in range(400):
        arena.run()
        most = max(most, len(arena.projectiles))
    assert len(of_kind(arena.log, "shot")) >= 6
    assert 0 < most <= arena.state.projectiles.shape[1]
    assert most == math.ceil(MISSILES.lifetime / 3.0)
