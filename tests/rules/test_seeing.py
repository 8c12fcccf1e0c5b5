"""Visibility: sight, radar, heat, emissions, and the tables of contacts and team-mates."""

import math

import pytest

from echelon_env.config.battle import PACK
from echelon_env.config.catalog import MEDIUM, SCOUT
from echelon_env.engine.state import BLUE, RED
from echelon_env.layout.observations import STREAMS, Contact, Squad
from rules.arena import Arena

EAST, WEST = 0, 180


def watch(distance, wall=True, watcher="medium", watched="other medium", **overrides):
    """A mech and an enemy of the same height, with or without a wall between them."""
    arena = Arena({watcher: (5, 30, EAST)}, {watched: (5 + distance, 30, WEST)}, **overrides)
    if wall:
        arena.fill("reinforced", x=(7, 8), y=(20, 40), z=(0, 10))
    return arena


def test_a_mech_in_line_of_sight_is_seen_at_any_distance():
    arena = watch(56, wall=False)
    arena.run()
    assert arena.sees("medium", "other medium")
    assert arena.sees("other medium", "medium")


@pytest.mark.parametrize("material", ["concrete", "reinforced", "foliage", "wreck"])
def test_behind_a_wall_out_of_radar_range_no_mech_is_seen(material):
    arena = watch(30, wall=False)
    arena.fill(material, x=(20, 21), y=(20, 40), z=(0, 10))
    arena.run()
    assert not arena.sees("medium", "other medium")


def test_glass_hides_no_mech():
    arena = watch(30, wall=False)
    arena.fill("glass", x=(20, 21), y=(20, 40), z=(0, 10))
    arena.run()
    assert arena.sees("medium", "other medium")


@pytest.mark.parametrize(("distance", "seen"), [(14.0, True), (14.01, False)])
def test_radar_shows_near_mechs_through_terrain(distance, seen):
    arena = watch(distance)
    arena.run()
    assert arena.sees("medium", "other medium") == seen


@pytest.mark.parametrize(("name", "factor"), [("scout", 1.5), ("light", 1.2), ("medium", 1.0), ("heavy", 0.8)])
def test_radar_is_longer_for_the_lighter_classes(name, factor):
    for distance, seen in ((14 * factor - 0.01, True), (14 * factor + 0.01, False)):
        arena = watch(distance, watcher=name, watched=f"other {name}")
        arena.run()
        assert arena.sees(name, f"other {name}") == seen


def test_radar_range_scales_with_sensor_quality():
    """A scout 20 m away, with its centre 0.6 m lower, gives its ECCM; radar reaches 14 m x quality."""
    quality = 1 + 0.65 * (1 - math.hypot(20, MEDIUM.height / 2 - SCOUT.height / 2) / 50)
    for distance, seen in ((14 * quality - 0.01, True), (14 * quality + 0.01, False)):
        arena = Arena({"medium": (5, 30), "blue scout": (5, 50)}, {"other medium": (5 + distance, 30)})
        arena.fill("reinforced", x=(7, 8), y=(20, 40), z=(0, 10))
        arena.order("blue scout", eccm=1)
        arena.run()
        assert arena.sees("medium", "other medium") == seen


@pytest.mark.parametrize(("heat", "seen"), [(81.0, True), (80.0, False)])
def test_a_mech_hotter_than_80_percent_is_seen_through_terrain(heat, seen):
    arena = watch(50)
    arena["other medium"].heat = heat + MEDIUM.heat_dissipation * 0.05
    arena.run()
    assert arena.sees("medium", "other medium") == seen


@pytest.mark.parametrize("entry", ["ecm", "eccm"])
def test_a_radiating_mech_is_seen_through_terrain(entry):
    arena = watch(50, watched="scout")
    arena.run()
    assert not arena.sees("medium", "scout")
    arena.order("scout", **{entry: 1})
    arena.run()
    assert arena.sees("medium", "scout")


@pytest.mark.parametrize("reason", ["sight", "radar", "bloom", "emission"])
def test_smoke_between_hides_from_sight_radar_heat_and_emission(reason):
    arena = watch(10 if reason in ("sight", "radar") else 40, wall=reason != "sight", watched="scout")
    arena["scout"].heat = 74.0 if reason == "bloom" else 0.0
    arena.order("scout", ecm=float(reason == "emission"))
    arena.run()
    assert arena.sees("medium", "scout")
    arena.smoke(10, 30, 1.5, radius=2.0)
    arena.run()
    assert not arena.sees("medium", "scout")


def test_smoke_does_not_hide_painted_mechs():
    arena = watch(30, wall=False)
    for team in (BLUE, RED):
        arena.smoke(20, 30, 1.5, team=team)
    arena.paint("other medium", by="medium")
    arena.run()
    assert arena.sees("medium", "other medium")
    assert not arena.sees("other medium", "medium")


def test_full_observability_shows_all_living_mechs():
    arena = watch(50, observability="full")
    arena.smoke(20, 30, 1.5)
    arena.run()
    assert arena.sees("medium", "other medium")
    arena["other medium"].alive = 0
    arena.run()
    assert not arena.sees("medium", "other medium")


def test_full_observability_shows_nothing_to_a_shut_down_mech():
    arena = watch(10, wall=False, observability="full")
    arena["medium"].heat, arena["medium"].shutdown = 99.0, 1
    arena.run()
    assert not arena.sees("medium", "other medium")
    assert arena.sees("other medium", "medium")


def test_a_suite_holds_as_many_contacts_as_it_has_slots():
    enemies = {f"{i} scout": (20 + 2 * i, 40) for i in range(14)}
    watchers = {"heavy": (15, 30), "medium": (15, 25), "light": (15, 20), "scout": (15, 15)}
    arena = Arena(watchers, enemies, zone={"max_radius": 5.0})
    arena.run()
    assert [len(arena.contacts(name)) for name in ("heavy", "medium", "light", "scout")] == [5, 6, 8, 12]
    assert arena.contacts("heavy") == [f"{i} scout" for i in range(5)]


def test_a_contacts_row_says_what_can_be_seen_of_it():
    arena = Arena({"medium": (30, 30, EAST)}, {"scout": (38, 36, WEST)}, observability="full")
    arena["scout"].armour = 0.5 * SCOUT.armour
    arena.order("scout", ecm=1)
    arena.paint("scout", by="medium")
    arena.run()
    part = STREAMS["contacts"]
    row = arena.engine.observations[0, 0, part.start : part.start + part.row_width]
    assert row[Contact.DIRECTION_FORWARD] == pytest.approx(0.8)
    assert row[Contact.DIRECTION_LEFT] == pytest.approx(0.6)
    assert row[Contact.ARMOUR] == 0.5
    assert row[Contact.LINE_OF_SIGHT] == row[Contact.PAINTED] == row[Contact.RADIATING] == row[Contact.IS_SCOUT] == 1.0
    assert row[Contact.FALLEN] == row[Contact.LEGGED] == row[Contact.SHUTDOWN] == 0.0


def test_the_squad_table_holds_the_own_pack_first_each_pack_in_the_order_of_the_roster():
    """The seventh mech's pack is the sixth to the ninth mech; the team's first mechs follow."""
    blue = {f"{i} {name}": (5 + 5 * i, 10) for i, name in enumerate(PACK * 2)}
    del blue["9 scout"]
    arena = Arena(blue, {"light": (60, 60)})
    arena["2 medium"].alive = 0
    arena.run()
    part, mask = STREAMS["squad"], STREAMS["squad_mask"]
    observed = arena.engine.observations[0, 6]
    rows = observed[part.part].reshape(part.rows, part.row_width)
    assert observed[mask.part].sum() == 7
    assert rows[:3, Squad.SAME_PACK].tolist() == [1, 1, 1]
    assert rows[3:, Squad.SAME_PACK].tolist() == [0] * 6
    kinds = [
        Squad.IS_HEAVY,
        Squad.IS_MEDIUM,
        Squad.IS_LIGHT,
        Squad.IS_HEAVY,
        Squad.IS_MEDIUM,
        Squad.IS_LIGHT,
        Squad.IS_SCOUT,
    ]
    assert [rows[i, kind] for i, kind in enumerate(kinds)] == [1.0] * 7
