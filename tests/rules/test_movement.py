"""Walking, climbing, jumping and standing on each other."""

import math

import pytest

from echelon_env.config.catalog import HEAVY, LIGHT, MEDIUM, SCOUT
from rules.arena import HEIGHT, SIZE, Arena

DT = 0.05
EAST, NORTH, WEST = 0, 90, 180


def walker(facing=EAST, **overrides):
    return Arena({"medium": (30, 30, facing)}, {"light": (10, 10), "scout": (50, 50)}, **overrides)


def test_turning_left_is_counter_clockwise_at_the_turn_rate():
    arena = walker()
    arena.order("medium", turn=1)
    arena.run(10)
    assert arena["medium"].yaw == pytest.approx(10 * DT * MEDIUM.turn_rate)
    arena.order("medium", turn=-0.5)
    arena.run(20)
    assert arena["medium"].yaw == pytest.approx(0.0, abs=1e-12)


def test_yaw_stays_between_minus_pi_and_pi():
    arena = walker(179)
    arena.order("medium", turn=1)
    arena.run()
    assert arena["medium"].yaw == pytest.approx(math.radians(179) + DT * MEDIUM.turn_rate - 2 * math.pi)


@pytest.mark.parametrize(("facing", "dx", "dy"), [(EAST, 1, 0), (NORTH, 0, 1), (WEST, -1, 0)])
def test_throttle_leads_forward_at_top_speed(facing, dx, dy):
    arena = walker(facing)
    arena.order("medium", throttle=1)
    arena.run(4)
    step = 4 * DT * MEDIUM.top_speed
    assert (arena["medium"].x, arena["medium"].y) == pytest.approx((30 + dx * step, 30 + dy * step))


def test_strafe_leads_to_the_left_and_both_together_are_no_faster():
    arena = walker()
    arena.order("medium", strafe=1)
    arena.run()
    assert (arena["medium"].x, arena["medium"].y) == pytest.approx((30, 30 + DT * MEDIUM.top_speed))
    arena.order("medium", throttle=1, strafe=1)
    arena.run()
    assert arena["medium"].speed == pytest.approx(MEDIUM.top_speed)
    assert arena["medium"].vx == pytest.approx(arena["medium"].vy)


def test_a_wall_stops_at_its_face_and_one_slides_along_it():
    arena = walker()
    arena.fill("concrete", x=(33, 34), y=(0, SIZE), z=(0, 5))
    arena.order("medium", throttle=1, strafe=1)
    arena.run(40)
    medium = arena["medium"]
    assert medium.x == 33 - MEDIUM.length / 2
    assert medium.vx == 0.0  # the velocity on record is what it moved by
    assert medium.y == pytest.approx(30 + 40 * DT * MEDIUM.top_speed * math.sqrt(0.5))


@pytest.mark.parametrize(("height", "climbed"), [(1, True), (2, False)])
def test_mechs_step_up_one_metre_and_not_two(height, climbed):
    arena = walker()
    arena.fill("concrete", x=(33, 40), y=(20, 40), z=(0, height))
    arena.order("medium", throttle=1)
    arena.run(20)
    assert arena["medium"].z == (height if climbed else 0.0)
    assert (arena["medium"].x > 33) == climbed


def test_no_step_under_a_ceiling_nor_in_the_air():
    arena = walker()
    arena.fill("concrete", x=(33, 40), y=(20, 40), z=(0, 1))
    arena.fill("concrete", x=(27, 31), y=(20, 40), z=(3, 4))  # above its head where it stands
    arena.fill("concrete", x=(31, 33), y=(20, 40), z=(3, 4))
    arena.order("medium", throttle=1)
    arena.run(20)
    assert arena["medium"].x == 33 - MEDIUM.length / 2
    arena = Arena({"light": (30, 30)}, {"scout": (5, 5)}, physics={"gravity": 0.0})
    arena.fill("concrete", x=(32, 40), y=(20, 40), z=(0, 1))
    arena.put("light", 30, 30, z=0.5)
    arena.order("light", throttle=1)
    arena.run(20)
    assert arena["light"].x == 32 - LIGHT.length / 2


def test_mechs_stop_at_each_others_boxes_and_at_the_maps_edge():
    arena = walker()
    arena.put("scout", 33, 30)
    arena.order("medium", throttle=1)
    arena.run(20)
    assert arena["medium"].x == pytest.approx(33 - SCOUT.length / 2 - MEDIUM.length / 2)
    arena.order("light", throttle=-1)
    arena.run(60)
    assert arena["light"].x == LIGHT.length / 2


def test_dead_mechs_do_not_block_movement():
    arena = walker()
    arena.put("scout", 33, 30)
    arena["scout"].alive = 0
    arena.order("medium", throttle=1)
    arena.run(40)
    assert arena["medium"].x > 33


def test_jets_lift_against_gravity_with_damping():
    """(18 - 9.81) x 0.05 m/s, kept to 98 %, in the first tick."""
    arena = walker()
    arena.order("scout", jet=1)
    arena.run()
    assert arena["scout"].vz == pytest.approx((SCOUT.jet_acceleration - 9.81) * DT * 0.98)
    assert arena["scout"].z == pytest.approx(arena["scout"].vz * DT)
    assert not arena["scout"].on_ground


@pytest.mark.parametrize(("name", "boosted"), [("scout", 1), ("medium", 0)])
def test_jets_add_their_boost_to_the_top_speed_of_mechs_that_have_them(name, boosted):
    arena = walker()
    arena.order(name, throttle=1, jet=0.5)
    arena.run()
    top_speed = {"scout": SCOUT, "medium": MEDIUM}[name].top_speed
    assert arena[name].speed == pytest.approx(top_speed * (1 + boosted * 0.5 * arena.config.physics.jet_boost))


def test_a_jumping_mech_falls_and_stands():
    arena = walker()
    arena.put("scout", 50, 50, z=3.0)
    arena.run(40)
    assert arena["scout"].z == 0.0
    assert arena["scout"].vz == 0.0
    assert arena["scout"].on_ground


def test_a_jump_ends_under_solid_voxels_and_at_the_maps_height():
    for ceiling in (6, HEIGHT):
        arena = walker()
        if ceiling < HEIGHT:
            arena.fill("concrete", x=(45, 55), y=(45, 55), z=(ceiling, ceiling + 1))
        arena.order("scout", jet=1)
        arena.run(50 if ceiling < HEIGHT else 120)
        assert arena["scout"].z <= ceiling - SCOUT.height + 1e-6
        assert arena["scout"].z == pytest.approx(ceiling - SCOUT.height)
        assert arena["scout"].vz == 0.0


def test_a_mech_stands_on_another_and_falls_when_that_dies():
    arena = Arena({"heavy": (30, 30)}, {"scout": (30, 30), "light": (5, 5)})
    arena.put("scout", 30, 30, z=6.0)
    arena.run(40)
    assert arena["scout"].z == pytest.approx(HEAVY.height)
    assert arena["scout"].on_ground
    arena["heavy"].alive = 0
    arena.run(40)
    assert arena["scout"].z == 0.0
