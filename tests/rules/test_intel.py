"""What a pack remembers of its enemies, and which mechs receive it."""

import math

import numpy as np
import pytest

from echelon_env.config.battle import PACK
from echelon_env.config.catalog import HEAVY, MEDIUM, SCOUT
from echelon_env.layout.observations import INTEL_ROWS, Intel
from rules.arena import Arena

EAST, WEST, NORTH = 0, 180, 90
MEMORY = 200  # ticks: 10 s
DIAGONAL = 64 * math.sqrt(2)


def divided(**overrides):
    """A scout that sees a heavy 30 m ahead, and behind a wall a medium that does not."""
    arena = Arena(
        {"scout": (10, 10, EAST), "medium": (10, 50, EAST)}, {"heavy": (40, 10, WEST), "light": (62, 62)}, **overrides
    )
    arena.fill("concrete", y=(30, 31))
    arena.fill("concrete", x=(56, 57))
    return arena


def hide(arena, name):
    """Move a mech where no other sees it."""
    arena.put(name, 60, 20)


def row(arena, name, number=0):
    return arena.observed(name, "intel")[number]


def test_a_pack_mate_receives_what_one_of_the_pack_sees():
    arena = divided()
    arena["heavy"].armour = 0.75 * HEAVY.armour
    arena.run()
    assert arena.contacts("scout") == ["heavy"]
    assert arena.contacts("medium") == []
    assert arena.intel("medium") == ["heavy"]
    dz = HEAVY.height / 2 - MEDIUM.height / 2
    expected = {
        Intel.DIRECTION_FORWARD: 0.6,
        Intel.DIRECTION_LEFT: -0.8,
        Intel.DISTANCE: math.hypot(50, dz) / DIAGONAL,
        Intel.ELEVATION: dz / 20,
        Intel.ARMOUR: 0.75,
        Intel.IS_HEAVY: 1.0,
    }
    np.testing.assert_allclose(row(arena, "medium"), [expected.get(feature, 0.0) for feature in Intel], atol=1e-6)
    assert arena.observed("medium", "intel_mask").tolist() == [1] + [0] * (INTEL_ROWS - 1)


def test_velocity_is_in_the_receivers_frame():
    arena = divided()
    arena.put("medium", 10, 50, NORTH)
    arena.order("heavy", throttle=1)  # westward
    arena.run()
    assert row(arena, "medium")[Intel.VELOCITY_FORWARD] == pytest.approx(0, abs=1e-6)
    assert row(arena, "medium")[Intel.VELOCITY_LEFT] == pytest.approx(HEAVY.top_speed / SCOUT.top_speed, abs=1e-6)


def test_visible_enemies_are_not_listed_as_intel():
    arena = divided()
    arena.run()
    assert arena.intel("scout") == []
    assert not arena.observed("scout", "intel").any()


def test_an_enemy_out_of_sight_is_remembered_by_the_mech_that_saw_it_too():
    arena = divided()
    arena.order("heavy", throttle=1)
    arena.run()
    hide(arena, "heavy")
    arena["heavy"].armour = 20.0
    arena.run(3)
    for name in ("scout", "medium"):
        assert arena.contacts(name) == []
        assert arena.intel(name) == ["heavy"]
        assert row(arena, name)[Intel.ARMOUR] == 1.0
        assert row(arena, name)[Intel.AGE] == pytest.approx(3 / MEMORY)
    at = np.array([40 - HEAVY.top_speed * 0.05 - 10, 0, HEAVY.height / 2 - SCOUT.height / 2])
    assert row(arena, "scout")[Intel.DISTANCE] == pytest.approx(np.linalg.norm(at) / DIAGONAL)
    assert row(arena, "scout")[Intel.VELOCITY_FORWARD] == pytest.approx(-HEAVY.top_speed / SCOUT.top_speed)


def test_a_new_sighting_replaces_the_old_one():
    arena = divided()
    arena.run()
    hide(arena, "heavy")
    arena.run(5)
    arena.put("heavy", 30, 10)
    arena.run()
    assert row(arena, "medium")[Intel.AGE] == 0
    assert row(arena, "medium")[Intel.DISTANCE] == pytest.approx(math.hypot(20, 40, 0.5) / DIAGONAL)


def test_a_sighting_is_forgotten_after_ten_seconds():
    arena = divided()
    arena.run()
    hide(arena, "heavy")
    arena.run(MEMORY)
    assert arena.intel("medium") == ["heavy"]
    assert row(arena, "medium")[Intel.AGE] == 1.0
    arena.run()
    assert arena.intel("medium") == []


def test_the_memory_time_is_in_seconds_not_in_decisions():
    arena = divided(decision_repeat=4, sensors={"intel_memory": 0.4})
    arena.run()
    hide(arena, "heavy")
    arena.run()
    assert row(arena, "medium")[Intel.AGE] == 0.5
    arena.run()
    assert arena.intel("medium") == ["heavy"]
    arena.run()
    assert arena.intel("medium") == []


def test_other_packs_receive_nothing():
    places = {f"{i} {name}": (10 + 4 * i, 50) for i, name in enumerate(PACK)}
    arena = Arena({**places, "scout": (10, 10, EAST)}, {"heavy": (40, 10, WEST)})
    arena.fill("concrete", y=(30, 31))
    arena.run()
    assert arena.sees("scout", "heavy")
    assert all(arena.intel(name) == [] for name in places)


def test_paint_gives_a_pack_the_place_of_its_target_even_if_no_mech_sees_it():
    """The only mech of the pack is shut down. It learns when it restarts where its paint on a walking enemy ended."""
    arena = Arena({"medium": (10, 50, EAST)}, {"heavy": (40, 10, WEST)})
    arena.fill("concrete", y=(30, 31))
    arena["medium"].shutdown, arena["medium"].heat = 1, 99.0
    arena.paint("heavy", by="medium", seconds=0.15)
    arena.order("heavy", throttle=1)
    arena.run(2)
    assert arena.contacts("medium") == arena.intel("medium") == []
    arena["medium"].heat = 0.0
    arena.run()
    assert arena.intel("medium") == ["heavy"]
    seen = row(arena, "medium")
    assert (seen[Intel.PAINTED], seen[Intel.AGE]) == (0, pytest.approx(1 / MEMORY))
    x = 40 - 2 * HEAVY.top_speed * 0.05
    assert seen[Intel.DISTANCE] == pytest.approx(math.hypot(x - 10, 40, 0.5) / DIAGONAL)


def test_without_sight_or_paint_there_is_no_intel():
    arena = Arena({"medium": (10, 50, EAST)}, {"heavy": (40, 10, WEST)})
    arena["medium"].shutdown, arena["medium"].heat = 1, 99.0
    arena.run()
    assert arena.intel("medium") == []


def test_dead_enemies_are_removed_at_once():
    arena = divided()
    arena.run()
    hide(arena, "heavy")
    arena.run()
    assert arena.intel("medium") == ["heavy"]
    arena["heavy"].alive = 0
    arena.run()
    assert arena.intel("medium") == []


def test_painted_dead_enemies_are_removed_too():
    arena = divided()
    arena.paint("heavy", by="scout")
    arena.run()
    arena["heavy"].alive = 0
    arena.run()
    assert arena.is_painted("heavy", pack_of="scout")
    assert arena.intel("medium") == []
    assert not arena.state.sightings["known"][0, arena["scout"].pack, arena.names.index("heavy")]


def test_dead_mechs_report_nothing():
    arena = divided()
    arena["scout"].alive = 0
    arena.run()
    assert arena.intel("medium") == []


def test_a_shut_down_mech_has_no_intel():
    arena = divided()
    arena.run()
    assert arena.intel("medium") == ["heavy"]
    arena["medium"].shutdown, arena["medium"].heat = 1, 99.0
    arena.run()
    assert arena.intel("medium") == []


def test_jamming_cuts_the_link_to_the_pack_and_eccm_restores_it():
    arena = Arena({"scout": (10, 10), "medium": (10, 50)}, {"heavy": (40, 10, WEST), "red scout": (38, 50)})
    arena.fill("concrete", y=(30, 31))
    for entries, linked in (({}, True), ({"ecm": 1}, False), ({"ecm": 1, "eccm": 1}, True)):
        arena.order("red scout", ecm=entries.get("ecm", 0))
        arena.order("scout", eccm=entries.get("eccm", 0))
        arena.run()
        assert (arena["medium"].quality >= arena.config.sensors.link_quality) == linked
        assert arena.intel("medium") == ["heavy"] * linked
        assert arena.observed("medium", "intel_mask").any() == linked


def test_the_nearest_last_known_places_come_first_and_eight_are_listed():
    places = {f"{i} scout": (12 + 4 * i, 12, WEST) for i in range(10)}
    arena = Arena({"scout": (8, 8, EAST), "medium": (50, 50, EAST)}, places, zone={"max_radius": 5.0})
    arena.fill("concrete", y=(30, 31))
    arena.run()
    nearest = sorted(places, key=lambda name: math.dist((arena[name].x, arena[name].y), (50, 50)))
    assert arena.intel("medium") == nearest[:INTEL_ROWS]
    for name in places:
        arena.put(name, 2, 60)  # where they are now is another matter
    arena.fill("concrete", x=(5, 6))
    arena.run()
    assert arena.intel("medium") == nearest[:INTEL_ROWS]
    assert arena.observed("medium", "intel_mask").all()


def test_ties_in_distance_are_sorted_by_spawn_place():
    arena = Arena({"scout": (32, 10, NORTH), "medium": (32, 50)}, {"light": (22, 12), "second light": (42, 12)})
    arena.fill("concrete", y=(30, 31))
    arena.run()
    assert arena.intel("medium") == sorted(("light", "second light"), key=lambda name: arena[name].place)


def test_a_reset_clears_the_packs_memory():
    arena = divided()
    arena.run()
    arena.engine.reset([1])
    known, seen = arena.state.sightings["known"][0], arena.state.visible[0]
    packs = arena.state.mechs["pack"][0]
    expected = np.array([(seen[packs == pack] > 0).any(axis=0) for pack in range(len(known))])
    np.testing.assert_array_equal(known > 0, expected)
    assert not arena.state.sightings["age"].any()


def test_enemies_seen_beyond_the_slots_are_listed_as_intel():
    enemies = {f"{number} medium": (30, 8 + 4 * number, WEST) for number in range(7)}
    arena = Arena({"heavy": (10, 8, EAST)}, enemies)
    arena.run()
    assert arena.contacts("heavy") == [f"{number} medium" for number in range(5)]  # as many as its suite has slots
    assert arena.intel("heavy") == ["5 medium", "6 medium"]
    assert [float(row(arena, "heavy", number)[Intel.AGE]) for number in (0, 1)] == [0.0, 0.0]
