"""No mech shoots first: the effects of a tick are applied together at its end."""

import pytest

from echelon_env.config.catalog import FLAMER, GAUSS, LASER, MEDIUM
from rules.arena import Arena, changed, of_kind

DT = 0.05
EAST, NORTH, WEST = 0, 90, 180


def face_to_face(**overrides):
    return Arena({"blue medium": (20, 30, EAST)}, {"red medium": (26, 30, WEST)}, **overrides)


def test_two_mechs_that_shoot_each_other_in_a_tick_both_die_and_neither_team_wins():
    arena = face_to_face()
    for name in arena.names:
        arena[name].armour = 1.0
        arena.order(name, primary=1)
    log = arena.run()
    assert {e.actor for e in of_kind(log, "death")} == set(arena.names)
    assert {e.actor: e.amount for e in of_kind(log, "hit")} == {"blue medium": 1.0, "red medium": 1.0}
    assert arena.engine.battle_over[0]
    assert arena.engine.winner[0] == -1
    assert all(arena.statistics(name)["kills"] == 1.0 for name in arena.names)


def test_a_kill_is_shared_in_proportion_to_the_hit_points_that_arrived():
    """Two lasers and a flamer at a scout that has 10 hit points left."""
    arena = Arena(
        {"medium": (20, 30, EAST), "second medium": (26, 24, NORTH), "light": (26, 33.5, -90)},
        {"scout": (26, 30, WEST), "heavy": (60, 60)},
    )
    arena["scout"].armour = 10.0
    arena.order("medium", primary=1)
    arena.order("second medium", primary=1)
    arena.order("light", primary=1)
    log = arena.run()
    arrived = {"medium": LASER.damage, "second medium": LASER.damage, "light": FLAMER.damage}
    for name, hit_points in arrived.items():
        assert arena.statistics(name)["kills"] == pytest.approx(hit_points / sum(arrived.values()))
        assert arena.statistics(name)["damage_dealt"] == pytest.approx(10.0 * hit_points / sum(arrived.values()))
        assert of_kind(log, "hit", actor=name)[0].amount == pytest.approx(10.0 * hit_points / sum(arrived.values()))
    assert len(of_kind(log, "death")) == 1
    assert arena.statistics("scout")["damage_taken"] == pytest.approx(10.0)


def test_every_share_of_a_kill_is_an_assist_of_the_mech_that_painted_the_target():
    arena = Arena(
        {"medium": (20, 30, EAST), "light": (23, 32, -45)},
        {"scout": (26, 30, WEST), "heavy": (60, 60)},
    )
    arena["scout"].armour = 1.0
    arena.paint("scout", by="light")
    arena.order("medium", primary=1)
    arena.order("light", secondary=1)
    arena.run()
    assert arena.statistics("medium")["kills"] == pytest.approx(0.5)
    assert arena.statistics("light")["kills"] == pytest.approx(0.5)
    assert arena.statistics("light")["assists"] == pytest.approx(0.5)  # the medium's part, not its own


def test_team_mates_have_no_share_in_a_kill():
    """The splash of a gauss shell kills the scout beside its target; the scout is on the shooter's team."""
    arena = Arena({"heavy": (20, 30, EAST), "scout": (30, 32.0)}, {"medium": (32, 30, WEST)})
    arena["scout"].armour = 1.0
    arena.order("heavy", tertiary=1)
    arena.run(10)
    assert of_kind(arena.log, "death", actor="scout")
    assert arena.statistics("heavy")["kills"] == 0.0
    assert arena.statistics("heavy")["friendly_damage"] == pytest.approx(1.0)
    assert arena.statistics("heavy")["damage_dealt"] == GAUSS.damage


def test_heat_of_a_tick_arrives_once_and_is_cut_once():
    """Two flamers at a medium near the most heat that it can hold."""
    arena = Arena({"light": (20, 30, EAST), "second light": (23, 26, NORTH)}, {"medium": (23, 30, WEST)})
    arena["medium"].heat = 140.0
    for name in ("light", "second light"):
        arena.order(name, primary=1)
    arena.run()
    assert 140.0 + 2 * FLAMER.target_heat > arena["medium"].heat == 1.5 * MEDIUM.heat_capacity


def test_a_mech_that_dies_in_a_tick_has_fired_in_it():
    arena = face_to_face()
    arena["blue medium"].armour = 1.0
    arena.order("blue medium", tertiary=1)
    arena.order("red medium", primary=1)
    arena.run()
    assert not arena["blue medium"].alive
    assert {e.actor for e in of_kind(arena.log, "shot")} == set(arena.names)


def test_a_mech_that_falls_in_a_tick_has_fired_in_it_and_not_in_the_next():
    arena = face_to_face(catalog=changed(laser={"stability": 200.0, "cooldown": DT, "heat": 0.0}))
    for name in arena.names:
        arena.order(name, primary=1)
    arena.run(3)
    assert len(of_kind(arena.log, "fall")) == 2
    assert {e.tick for e in of_kind(arena.log, "shot")} == {0}


def test_shots_are_resolved_against_the_state_after_movement():
    """A medium that walks out of range in this tick is not hit."""
    arena = face_to_face()
    arena.put("red medium", 20 + LASER.range - 0.1, 30, EAST)
    arena.order("blue medium", primary=1)
    arena.order("red medium", throttle=1)
    assert MEDIUM.top_speed * DT > 0.1
    assert arena.run() == []


def test_a_mech_that_walks_into_range_is_hit_in_that_tick():
    arena = face_to_face()
    arena.put("red medium", 20 + LASER.range + 0.1, 30, WEST)
    arena.order("blue medium", primary=1)
    arena.order("red medium", throttle=1)
    assert of_kind(arena.run(), "hit")


def test_both_walk_into_each_other_and_neither_overlaps():
    arena = face_to_face()
    for name in arena.names:
        arena.order(name, throttle=1)
    arena.run(40)
    blue, red = (arena[name].x for name in arena.names)
    assert red - blue == pytest.approx(MEDIUM.length, abs=1e-6)


def test_voxels_take_all_of_a_ticks_wear_before_any_breaks():
    """Two shells of 15 hit points strike the same voxel of concrete, which has 20, in a tick: it breaks once."""
    catalog = changed(gauss={"damage": 15.0, "splash_radius": 0.0})
    arena = Arena({"heavy": (20.5, 30.5, EAST)}, {"other heavy": (32.5, 30.5, WEST)}, catalog=catalog)
    arena.fill("concrete", x=(26, 27), y=(25, 36), z=(0, 6))
    for name in arena.names:
        arena.order(name, tertiary=1)
    arena.run(6)
    impacts = of_kind(arena.log, "impact")
    assert len({e.tick for e in impacts}) == 1
    assert len(impacts) == 2
    assert sum(e.amount for e in impacts) == 1
    assert arena.material(26, 30, 1) != "concrete"
