"""Effects of the ground on mechs, and the wrecks of mechs."""

import math

import pytest

from echelon_env.config.catalog import HEAVY, LASER, MATERIALS, MEDIUM, SCOUT
from rules.arena import Arena, changed, code_of, of_kind

DT = 0.05
EAST, WEST = 0, 180
DEBRIS = MATERIALS[code_of("debris")]


def bather(*pools, **overrides):
    """A medium in the middle of pools of these materials, side by side under its box; another mech far away."""
    arena = Arena({"medium": (30, 30, EAST)}, {"heavy": (5, 5), "scout": (60, 60)}, **overrides)
    for i, material in enumerate(pools):
        arena.fill(material, x=(29 + i, 30 + i), y=(20, 40), z=(0, 1))
    arena["medium"].heat = 50.0
    return arena


@pytest.mark.parametrize(
    ("material", "heat", "damage"), [("water", -30.0, 0.0), ("lava", 40.0, 5.0), ("debris", 20.0, 1.25)]
)
def test_hazards_heat_or_cool_and_burn_the_body_alone_by_the_second(material, heat, damage):
    arena = bather(material)
    log = arena.run(4)
    assert arena["medium"].heat == pytest.approx(50.0 + 4 * DT * (heat - MEDIUM.heat_dissipation))
    assert arena["medium"].armour == pytest.approx(MEDIUM.armour - 4 * DT * damage)
    assert arena["medium"].legs == MEDIUM.legs
    burns = of_kind(log, "hazard", target="medium", actor=None)
    assert [event.amount for event in burns] == pytest.approx([damage * DT] * (4 if damage else 0))


def test_water_slows_to_three_fifths():
    arena = bather("water")
    arena.order("medium", strafe=1)
    arena.run()
    assert arena["medium"].speed == pytest.approx(0.6 * MEDIUM.top_speed)


def test_a_material_counts_once_for_any_number_of_voxels():
    arena = bather("lava", "lava", "lava")
    arena.fill("lava", x=(28, 33), y=(28, 33), z=(0, 3))
    arena.run()
    assert arena["medium"].armour == pytest.approx(MEDIUM.armour - DT * 5.0)


def test_different_materials_add_up_and_their_speed_factors_multiply():
    slow = (*MATERIALS[: code_of("debris")], *(type(DEBRIS)(**{**vars(DEBRIS), "speed_factor": 0.5}),), MATERIALS[-1])
    catalog = changed()
    catalog = type(catalog)(weapons=catalog.weapons, mech_classes=catalog.mech_classes, materials=slow)
    arena = bather("water", "debris", catalog=catalog)
    arena.fill("lava", x=(31, 32), y=(20, 40), z=(0, 1))
    arena.order("medium", strafe=1)
    arena.run()
    assert arena["medium"].speed == pytest.approx(0.6 * 0.5 * MEDIUM.top_speed)
    assert arena["medium"].armour == pytest.approx(MEDIUM.armour - DT * (5.0 + 1.25))
    assert arena["medium"].heat == pytest.approx(50.0 + DT * (40.0 + 20.0 - 30.0 - MEDIUM.heat_dissipation))


def test_water_cools_a_mech_to_0_at_least():
    """First the cooling, not below 0; then the heating."""
    arena = bather("water", "lava")
    arena["medium"].heat = 0.5
    arena.run()
    assert arena["medium"].heat == pytest.approx(40.0 * DT)


def test_touching_a_hazard_is_not_standing_in_it():
    arena = bather()
    arena.fill("lava", x=(30, 31), y=(20, 40), z=(0, 1))
    arena.put("medium", 31 + MEDIUM.length / 2, 30)
    arena.run()
    assert arena.log == []
    arena.put("medium", 31 + MEDIUM.length / 2 - 0.01, 30)
    assert of_kind(arena.run(), "hazard")


def test_a_hazard_above_the_head_does_nothing():
    arena = bather()
    arena.fill("lava", x=(28, 33), y=(28, 33), z=(3, 6))
    arena.run()
    assert arena.log == []


def test_a_kill_by_a_hazard_earns_no_credit():
    arena = bather("lava")
    arena["medium"].armour = 0.1
    arena.run()
    assert of_kind(arena.log, "death")[0].actor == "medium"
    assert sum(arena.statistics(name)["kills"] for name in arena.names) == 0
    assert arena.statistics("medium")["damage_taken"] == pytest.approx(0.1)
    assert arena.statistics("medium")["deaths"] == 1


def test_a_kill_is_shared_with_a_hazard_by_hit_points():
    """A laser's hit points and lava's 0.25 arrive together: each gets its part of the kill."""
    arena = Arena({"medium": (20, 30, EAST)}, {"scout": (26, 30, WEST), "light": (60, 60)})
    arena.fill("lava", x=(25, 27), y=(25, 35), z=(0, 1))
    arena["scout"].armour = 2.0
    arena.order("medium", primary=1)
    arena.run()
    assert arena.statistics("medium")["kills"] == pytest.approx(LASER.damage / (LASER.damage + 0.25))
    assert arena.statistics("medium")["damage_dealt"] == pytest.approx(2.0 * LASER.damage / (LASER.damage + 0.25))
    assert arena.statistics("scout")["damage_taken"] == pytest.approx(2.0)


def dying(name, place=(30.0, 30.0), wreck=1.0, **overrides):
    """A mech with one hit point left, targeted by a laser; its class leaves a hard wreck with this probability."""
    catalog = changed(**{name.split()[-1]: {"wreck_probability": wreck}})
    arena = Arena(
        {"blue medium": (place[0] - 6, place[1], EAST)},
        {name: (*place, WEST), "light": (60, 60)},
        catalog=catalog,
        **overrides,
    )
    arena[name].armour = 1.0
    arena.order("blue medium", primary=1, target=name)
    return arena


def wreckage(arena, material):
    """Voxels (x, y, z) of a material."""
    z, y, x = (arena.state.voxels[0] == code_of(material)).nonzero()
    return set(zip(x.tolist(), y.tolist(), z.tolist(), strict=True))


def test_a_heavy_leaves_a_hard_wreck_of_half_its_height_in_the_columns_that_it_covers_wholly():
    """3.5 m around (30, 30) cover the columns from 28.25 to 31.75: wholly 29 and 30 (to 31), along both axes."""
    arena = dying("heavy")
    (death,) = of_kind(arena.run(), "death")
    assert death.actor == "heavy"
    assert wreckage(arena, "wreck") == {(x, y, z) for x in (29, 30) for y in (29, 30) for z in (0, 1)}
    assert wreckage(arena, "debris") == set()
    assert HEAVY.height / 2 == 2


def test_a_footprint_without_a_whole_column_leaves_the_wreck_in_the_column_of_its_centre():
    """A scout of 1.2 m around 30 reaches from 29.4 to 30.6: it covers no column, its centre is in that from 30."""
    arena = dying("scout")
    arena.run()
    assert wreckage(arena, "wreck") == {(30, 30, 0)}  # half of 1.8 m, rounded down, but at least 1 m
    assert math.floor(SCOUT.height / 2) == 0


def test_a_footprint_leaves_the_wreck_in_the_columns_that_it_covers_wholly():
    arena = dying("scout", (30.5, 30.45))
    arena.run()
    assert wreckage(arena, "wreck") == {(30, 30, 0)}


def test_without_a_hard_wreck_a_mech_leaves_a_metre_of_debris():
    arena = dying("heavy", wreck=0.0)
    arena.run()
    assert wreckage(arena, "debris") == {(x, y, 0) for x in (29, 30) for y in (29, 30)}
    assert wreckage(arena, "wreck") == set()


def test_hard_wrecks_have_the_probability_of_the_class():
    """Of 200 heavies 180 leave one, within four standard errors of sqrt(200 x 0.9 x 0.1) = 4.2."""
    arena = dying("heavy", wreck=0.9)
    hard = 0
    for _ in range(200):
        arena.fill("air")
        heavy, medium = arena["heavy"], arena["blue medium"]
        heavy.alive, heavy.armour = 1, 1.0
        medium.cooldown[:] = 0
        medium.heat = 0.0
        arena.state.battles["over"] = 0
        arena.state.teams["mechs_alive"][0, 1] = 2
        arena.run()
        hard += arena.count("wreck") > 0
    assert abs(hard - 180) < 4 * 4.2


def test_a_hard_wreck_softens_to_debris_after_20_seconds():
    arena = dying("heavy")
    arena.run()
    arena.order("blue medium")
    arena.run(399)
    assert len(wreckage(arena, "wreck")) == 8
    arena.run()
    assert wreckage(arena, "wreck") == set()
    assert len(wreckage(arena, "debris")) == 8


def test_a_wreck_blocks_sight_and_movement_at_once():
    arena = dying("heavy", sensors={"radar_range": 0.0})
    arena.put("light", 36, 30)
    arena.run()
    # The line between the centres of the medium (1.5 m) and the light (1 m) leads through the wreck.
    assert not arena.sees("blue medium", "light")
    arena.order("blue medium", throttle=1)
    arena.run(30)
    assert arena["blue medium"].x == pytest.approx(29 - MEDIUM.length / 2)


def test_the_wreck_of_a_mech_on_a_roof_lies_on_the_roof():
    """It lies on the highest surface at or below the feet in each column: beside the roof's edge it lies below."""
    arena = dying("heavy")
    arena.fill("concrete", x=(30, 34), y=(20, 40), z=(0, 5))
    arena.put("heavy", 30, 30, WEST, z=5.0)
    arena["heavy"].on_ground = 1
    arena.put("blue medium", 26.5, 30)
    arena.run()
    assert of_kind(arena.log, "death")
    on_roof = {(30, y, z) for y in (29, 30) for z in (5, 6)}
    below = {(29, y, z) for y in (29, 30) for z in (0, 1)}
    assert wreckage(arena, "wreck") == on_roof | below


def test_a_mech_that_dies_in_the_air_leaves_its_wreck_on_the_ground():
    arena = dying("scout", physics={"gravity": 0.0})
    arena.put("scout", 30, 30, WEST, z=3.0)
    arena.run()
    assert wreckage(arena, "wreck") == {(30, 30, 0)}


@pytest.mark.parametrize(
    ("material", "replaced"),
    [("dirt", True), ("foliage", True), ("debris", True), ("water", False), ("lava", False)],
)
def test_wrecks_replace_air_dirt_foliage_and_debris_only(material, replaced):
    arena = dying("scout")
    arena.fill(material, x=(30, 31), y=(30, 31), z=(0, 1))
    arena.run()
    assert arena.material(30, 30, 0) == ("wreck" if replaced else material)


def test_a_wreck_never_overlaps_a_living_mech():
    """A light stands on the heavy that dies; and a scout's feet are where the fourth column's wreck would be."""
    arena = dying("heavy")
    arena.put("light", 30, 30, z=HEAVY.height)
    arena.run()
    assert of_kind(arena.log, "death")
    assert len(wreckage(arena, "wreck")) == 8  # the light is 4 m up
    arena = dying("heavy")
    arena.put("light", 31, 31.2)  # overlaps the heavy's box, which no battle brings about: only its wreck matters
    arena.run()
    assert wreckage(arena, "wreck") == {(29, 29, 0), (29, 29, 1), (30, 29, 0), (30, 29, 1), (29, 30, 0), (29, 30, 1)}


def test_hard_wrecks_can_be_shot_away():
    """200 hit points: a gauss gun of 200 breaks the voxel that it strikes."""
    catalog = changed(gauss={"damage": 200.0, "splash_radius": 0.0})
    arena = Arena({"heavy": (20, 30.5, EAST)}, {"scout": (60, 60)}, catalog=catalog)
    arena.fill("wreck", x=(26, 27), y=(25, 36), z=(0, 3))
    arena.order("heavy", tertiary=1)
    arena.run(10)
    assert of_kind(arena.log, "impact")[0].amount == 1
    assert arena.count("wreck") == 33 - 1


def test_destroyed_parts_of_a_wreck_do_not_return_when_it_softens():
    arena = dying("heavy")
    arena.run()
    arena.fill("air", x=(29, 30), y=(29, 30), z=(0, 2))
    arena["heavy"].wreck_ticks = 1
    arena.run()
    assert len(wreckage(arena, "debris")) == 6
    assert arena.count("wreck") == 0
