"""Bursts: splash, shielding and destroyed voxels."""

import math

import pytest

from echelon_env.config.catalog import GAUSS, HEAVY, LIGHT, MEDIUM, MISSILES, SCOUT
from rules.arena import Arena, changed, of_kind

EAST, WEST = 0, 180


def around(spot, **overrides):
    """A gauss gun that shoots at a medium 12 m away, with a light of the same team at `spot`."""
    return Arena({"heavy": (20, 30, EAST)}, {"medium": (32, 30, WEST), "light": spot}, **overrides)


def shoot(arena, name="heavy", trigger="tertiary", ticks=30, **order):
    arena.order(name, **{trigger: 1}, **order)
    arena.run()
    arena.order(name)
    arena.run(ticks - 1)
    return arena.log


def splashes(log):
    return {e.target: e.amount for e in of_kind(log, "splash")}


@pytest.mark.parametrize(("gap", "splashed"), [(1.45, True), (1.55, False)])
def test_splash_reaches_boxes_within_its_radius(gap, splashed):
    """The shell bursts at the medium's near face; the light's nearest face is `gap` away from that point."""
    burst = (32 - MEDIUM.length / 2, 30)
    arena = around((burst[0] - 0.1, 30 + gap + 0.75, WEST))
    log = shoot(arena, target="medium")
    assert of_kind(log, "hit")[0].place[:2] == pytest.approx(burst)
    assert ("light" in splashes(log)) == splashed


def test_splash_takes_half_the_damage_and_half_the_stability():
    arena = around((31, 32.1, WEST))
    arena.order("heavy", tertiary=1, target="medium")
    while not of_kind(arena.log, "splash"):
        arena.run()
        arena.order("heavy")
    assert splashes(arena.log) == {"light": 0.5 * GAUSS.damage}
    assert arena["light"].armour == LIGHT.armour - 0.5 * GAUSS.damage
    assert arena["light"].stability == 100.0 - 30.0


def test_the_mech_that_is_hit_gets_no_splash():
    log = shoot(around((60, 60)), target="medium")
    assert splashes(log) == {}
    assert of_kind(log, "hit")[0].amount == GAUSS.damage


def test_splash_ignores_rear_armour_and_legs():
    """The light has its back to the burst, which is at its feet."""
    arena = around((31, 32.1, 90), combat={"aim_low": 0.1, "aim_high": 0.1})
    log = shoot(arena, target="medium")
    assert splashes(log) == {"light": 25.0}
    assert arena["light"].legs == LIGHT.legs


def test_plating_comes_off_splash_which_is_more_on_painted_and_helpless_enemies():
    arena = around((31, 32.1, WEST), catalog=changed(light={"plating": 5.0}))
    arena.paint("light", by="heavy")
    arena["light"].fallen = 60
    factor = arena.config.combat.paint_damage * arena.config.combat.helpless_damage
    assert splashes(shoot(arena, target="medium")) == {"light": pytest.approx(factor * (25.0 - 5.0))}


@pytest.mark.parametrize("friendly_fire", [True, False])
def test_splash_hits_team_mates_and_the_shooter_unless_friendly_fire_is_off(friendly_fire):
    arena = Arena(
        {"heavy": (20, 30, EAST), "scout": (22.5, 32.0)},
        {"medium": (23.1, 30, WEST)},
        combat={"friendly_fire": friendly_fire},
    )
    arena.paint("scout", by="medium")  # the enemy's paint is nothing to a friend's splash
    log = shoot(arena)
    assert splashes(log) == ({"heavy": 25.0, "scout": 25.0} if friendly_fire else {})
    assert arena.statistics("heavy")["friendly_damage"] == (50.0 if friendly_fire else 0.0)
    assert arena.statistics("heavy")["damage_dealt"] == 50.0


def test_what_blocks_movement_shields_from_splash():
    """A pillar stands between the burst and the light's centre; foliage does not shield."""
    for material, shielded in (("reinforced", True), ("glass", True), ("foliage", False), ("debris", False)):
        arena = around((30.7, 32.2, WEST))
        arena.fill(material, x=(30, 31), y=(31, 32), z=(0, 4))
        # The shell itself passes beside it, at y = 30.
        log = shoot(arena, target="medium")
        assert of_kind(log, "hit")
        assert ("light" in splashes(log)) != shielded


def test_splash_comes_from_the_side_of_the_wall_that_was_struck():
    """A shell at a wall of 1 m splashes the shooter's scout in front of it, and not the enemy's behind it."""
    arena = Arena({"heavy": (20, 30, EAST), "near scout": (29.3, 31.3)}, {"far scout": (31.7, 30.0)})
    arena.fill("reinforced", x=(30, 31), y=(20, 40), z=(0, 6))
    log = shoot(arena)
    (impact,) = of_kind(log, "impact")
    assert impact.place[0] == pytest.approx(30 - 0.05, abs=1e-3)  # 0.05 m along its falling path
    assert set(splashes(log)) == {"near scout"}


def test_dead_mechs_get_no_splash():
    arena = around((31, 32.1, WEST))
    arena["light"].alive = 0
    assert splashes(shoot(arena, target="medium")) == {}


def test_a_missile_splashes_its_neighbours():
    arena = Arena({"heavy": (20, 30, EAST)}, {"medium": (30, 30, WEST), "scout": (29, 33)})
    log = shoot(arena, trigger="secondary", target="medium")
    assert of_kind(log, "hit")[0].target == "medium"
    assert splashes(log) == {"scout": MISSILES.splash_share * MISSILES.damage}


def test_splash_travels_from_the_burst():
    """Its direction, which victims observe, points from the burst to the victim's centre."""
    log = shoot(around((31, 32.1, WEST)), target="medium")
    (splash,) = of_kind(log, "splash")
    dx, dy = 31 - (32 - MEDIUM.length / 2), 2.1
    assert splash.direction == pytest.approx((dx / math.hypot(dx, dy), dy / math.hypot(dx, dy)))


def walled(material, **overrides):
    """A heavy that shoots level at a wall of a material, 1 m thick, 6 m away."""
    arena = Arena({"heavy": (20, 30.5, EAST)}, {"scout": (60, 60)}, **overrides)
    arena.fill(material, x=(26, 27), y=(25, 36), z=(0, 6))
    return arena


def test_the_voxel_that_is_struck_takes_the_damage_and_those_around_it_their_share():
    arena = walled("reinforced")
    (impact,) = of_kind(shoot(arena), "impact")
    assert impact.amount == 0
    x, y, z = impact.place
    lost = arena.state.voxel_damage[0]
    for iz in range(6):
        for iy in range(25, 36):
            struck = (iy, iz) == (math.floor(y), math.floor(z))
            near = math.dist((26.5, iy + 0.5, iz + 0.5), (x, y, z)) <= GAUSS.splash_radius
            assert lost[iz, iy, 26] == (50 if struck else 25 if near else 0)
    assert (lost > 0).sum() > 3


def test_a_voxel_that_has_lost_all_its_hit_points_is_a_hole_at_once():
    """Concrete has 20: the second shell of 13 breaks it, and a mech that looks through sees it in that decision."""
    arena = walled("concrete", catalog=changed(gauss={"damage": 13.0, "cooldown": 0.05, "splash_radius": 0.0}))
    arena.put("scout", 30, 30.5, z=1.1)  # its centre as high as the heavy's: the line runs along y = 30.5, z = 2
    before = arena.count("concrete")
    log = shoot(arena)
    assert arena.count("concrete") == before
    assert of_kind(log, "impact")[0].amount == 0
    impact = of_kind(shoot(arena), "impact")[-1]
    assert impact.amount == 1
    assert arena.count("concrete") == before - 1
    assert arena.material(26, 30, math.floor(impact.place[2])) in ("air", "debris")


def test_a_hole_opens_the_line_of_sight_in_the_same_tick():
    """The line between the two centres leads through the one voxel of foliage that the shell burns."""
    arena = Arena({"medium": (20, 30.5, EAST)}, {"scout": (31.5, 30.5, WEST)}, sensors={"radar_range": 0.0},
                  catalog=changed(autocannon={"fires_blind": True}))  # fmt: skip
    arena.fill("foliage", x=(26, 27), y=(25, 36), z=(0, 6))
    arena.order("medium", tertiary=1)
    arena.run()
    arena.order("medium")
    while not of_kind(arena.log, "impact"):
        assert not arena.sees("medium", "scout")
        arena.run()
    assert arena.sees("medium", "scout")
    assert of_kind(arena.log, "impact")[0].amount == 1
    assert arena.material(26, 30, 1) == "air"


def test_a_hole_lets_mechs_through():
    """Glass has 10 hit points: two autocannon shells, or one gauss shell with its splash, open the way."""
    arena = Arena({"heavy": (20, 30.5, EAST), "scout": (25, 30.5, EAST)}, {"light": (60, 60)})
    arena.fill("glass", x=(26, 27), y=(25, 36), z=(0, 3))
    arena.order("scout", throttle=1)
    arena.run(10)
    assert arena["scout"].x == pytest.approx(26 - SCOUT.length / 2)
    shoot(arena)
    assert arena["scout"].x > 27


def test_destroyed_foliage_leaves_no_debris():
    arena = walled("foliage")
    (impact,) = of_kind(shoot(arena, ticks=10), "impact")[:1]
    assert impact.amount > 3
    assert arena.count("debris") == 0


def test_half_of_the_destroyed_concrete_becomes_debris():
    """Of the 1200 destroyed voxels, 600 become debris, within four standard errors of sqrt(300) = 17."""
    catalog = changed(gauss={"damage": 1000.0, "heat": 0.0, "splash_radius": 6.0, "splash_share": 1.0})
    arena = Arena({"heavy": (20, 30.5, EAST)}, {"scout": (60, 60)}, catalog=catalog, combat={"friendly_fire": False})
    broken = debris = 0
    while broken < 1200:
        arena.fill("air")
        arena.fill("concrete", x=(30, 36), y=(20, 40), z=(0, 12))
        arena["heavy"].cooldown[:] = 0
        shoot(arena, ticks=10)
        broken += 6 * 20 * 12 - arena.count("concrete")
        debris += arena.count("debris")
    assert abs(debris - broken / 2) < 4 * math.sqrt(broken / 4)
    assert sum(e.amount for e in of_kind(arena.log, "impact")) == broken


def test_air_and_dirt_cannot_be_destroyed():
    arena = walled("dirt")
    arena.fill("reinforced", x=(27, 28), y=(25, 36), z=(0, 6))
    shoot(arena)
    assert arena.count("dirt") == 11 * 6


def test_debris_can_be_shot_away():
    """The splash of a shell that bursts on the wall behind damages the debris before it, 25 of its 50 hit points."""
    arena = Arena({"heavy": (20, 30.5, EAST)}, {"scout": (60, 60)}, catalog=changed(gauss={"cooldown": 0.05}))
    arena.fill("reinforced", x=(26, 27), y=(25, 36), z=(0, 6))
    arena.fill("debris", x=(25, 26), y=(30, 31), z=(1, 2))
    shoot(arena)
    assert arena.material(25, 30, 1) == "debris"
    shoot(arena)
    assert arena.material(25, 30, 1) == "air"


def test_the_shares_of_a_voxels_damage_are_rounded_to_whole_hit_points():
    """Half of 25.2 hit points is 12.6: 13 are lost."""
    arena = walled("reinforced", catalog=changed(gauss={"damage": 25.2}))
    shoot(arena)
    assert set(arena.state.voxel_damage[0][arena.state.voxel_damage[0] > 0]) == {25, 13}


def test_hitscan_breaks_nothing():
    arena = Arena({"medium": (20, 30, EAST)}, {"scout": (26, 30)})
    arena.fill("glass", x=(23, 24), y=(25, 35), z=(0, 5))
    arena.order("medium", primary=1)
    arena.run(30)
    assert of_kind(arena.log, "hit")
    assert not arena.state.voxel_damage.any()


def test_burst_of_a_missile_at_the_feet_of_the_dead_splashes_the_living():
    arena = Arena({"heavy": (10, 30)}, {"scout": (50, 30), "medium": (52.5, 30)})
    arena.missile("heavy", "scout", 46, 30, 2)
    arena["scout"].alive = 0
    arena.run(20)
    assert splashes(arena.log) == {"medium": 20.0}
    assert HEAVY.armour == arena["heavy"].armour
