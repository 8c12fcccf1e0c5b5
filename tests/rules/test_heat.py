"""Heat: its sources, its dissipation, and the effects of too much of it."""

import pytest

from echelon_env.config.catalog import HEAVY, LASER, LIGHT, MEDIUM, SCOUT
from rules.arena import Arena, of_kind

DT = 0.05
EAST, WEST = 0, 180


def pair(**overrides):
    return Arena({"medium": (20, 30, EAST)}, {"heavy": (27, 30, WEST), "scout": (50, 50)}, **overrides)


def test_dissipation_takes_heat_down_to_0():
    arena = pair()
    arena["medium"].heat = 1.0
    arena.run()
    assert arena["medium"].heat == pytest.approx(1.0 - MEDIUM.heat_dissipation * DT)
    arena.run(2)
    assert arena["medium"].heat == 0.0


def test_venting_doubles_dissipation():
    arena = pair()
    arena["medium"].heat = 50.0
    arena.order("medium", vent=1)
    arena.run(10)
    assert arena["medium"].heat == pytest.approx(50.0 - 2 * MEDIUM.heat_dissipation * DT * 10)


@pytest.mark.parametrize("field", ["fallen", "shutdown"])
def test_a_vent_works_while_shut_down_or_fallen(field):
    arena = pair()
    arena["medium"].heat = 99.0
    setattr(arena["medium"], field, 50)
    arena.order("medium", vent=1)
    arena.run()
    assert arena["medium"].heat == pytest.approx(99.0 - 2 * MEDIUM.heat_dissipation * DT)


def test_a_mech_hotter_than_its_capacity_shuts_down_in_the_next_body_phase():
    arena = pair()
    arena["medium"].heat = 90.0
    arena.order("medium", primary=1)
    arena.run()
    cooled = 90.0 - MEDIUM.heat_dissipation * DT
    assert arena["medium"].heat == pytest.approx(cooled + LASER.heat)
    assert not arena["medium"].shutdown
    (shutdown,) = of_kind(arena.run(), "shutdown")
    assert shutdown.actor == "medium"
    assert arena["medium"].shutdown
    assert arena.statistics("medium")["shutdowns"] == 1


def test_heat_at_capacity_is_not_above_it():
    arena = pair()
    arena["medium"].heat = MEDIUM.heat_capacity + MEDIUM.heat_dissipation * DT
    assert arena.run() == []


def test_it_restarts_when_it_has_cooled_to_80_percent():
    arena = pair()
    arena["medium"].heat, arena["medium"].shutdown = 85.0, 1
    # 5 heat points at 0.55 a tick: ten ticks.
    assert arena.run(9) == []
    (restart,) = of_kind(arena.run(), "restart")
    assert restart.actor == "medium"
    assert arena["medium"].heat <= 80.0
    assert not arena["medium"].shutdown


def test_a_shut_down_mech_does_nothing():
    arena = Arena({"light": (30, 30, EAST)}, {"heavy": (33, 30, WEST)})
    arena["light"].heat, arena["light"].shutdown = 120.0, 1
    arena.order("light", throttle=1, turn=1, jet=1, primary=1, secondary=1, tertiary=1, special=1)
    arena.run(10)
    light = arena["light"]
    assert (light.x, light.y, light.z, light.yaw) == (30, 30, 0, 0)
    assert of_kind(arena.log, "shot") == []


def test_a_shut_down_mech_radiates_nothing():
    arena = pair()
    arena["scout"].heat, arena["scout"].shutdown = 74.0, 1
    arena.order("scout", ecm=1)
    arena.run()
    assert arena["scout"].heat == pytest.approx(74.0 - SCOUT.heat_dissipation * DT)
    assert arena["medium"].jam == 0.0


def test_a_shut_down_mech_sees_nothing():
    arena = pair(observability="full")
    arena.run()
    assert arena.sees("medium", "heavy")
    arena["medium"].heat, arena["medium"].shutdown = 99.0, 1
    arena.run()
    assert arena.contacts("medium") == []
    assert arena["medium"].quality == 0.25


def test_heat_never_exceeds_one_and_a_half_capacities():
    arena = Arena({"medium": (20, 30, EAST)}, {"heavy": (27, 30, WEST)})
    arena["medium"].heat = 150.0
    arena["medium"].z = 0.0
    arena.fill("lava", x=(18, 22), y=(28, 32), z=(0, 1))
    arena.run()
    assert arena["medium"].heat <= 150.0
    arena["heavy"].heat = 125.0
    arena.order("heavy", primary=1, secondary=1, tertiary=1, special=1)
    arena.run()
    assert arena["heavy"].heat == 1.5 * HEAVY.heat_capacity


def test_jets_cost_20_a_second():
    arena = Arena({"light": (30, 30)}, {"heavy": (5, 5)})
    arena["light"].heat = 50.0
    arena.order("light", jet=0.5)
    arena.run()
    assert arena["light"].heat == pytest.approx(50.0 - LIGHT.heat_dissipation * DT + 0.5 * 20.0 * DT)


def test_the_jet_entry_costs_classes_without_jets_nothing():
    arena = pair()
    arena["medium"].heat = 50.0
    arena.order("medium", jet=1)
    arena.run()
    assert arena["medium"].heat == pytest.approx(50.0 - MEDIUM.heat_dissipation * DT)
    assert arena["medium"].z == 0.0


@pytest.mark.parametrize(("entries", "heat"), [({"ecm": 1}, 3.0), ({"eccm": 1}, 2.0), ({"ecm": 1, "eccm": 1}, 2.0)])
def test_electronics_cost_heat(entries, heat):
    arena = pair()
    arena["scout"].heat = 50.0
    arena.order("scout", **entries)
    arena.run(10)
    assert arena["scout"].heat == pytest.approx(50.0 + 10 * DT * (heat - SCOUT.heat_dissipation))


def test_cooling_comes_before_heating():
    """The dissipation of a cold scout has no effect: the ECM's heat stays."""
    arena = pair()
    arena.order("scout", ecm=1)
    arena.run()
    assert arena["scout"].heat == pytest.approx(3.0 * DT)


def test_lava_heats_a_mech_until_it_shuts_down_and_no_longer():
    """40 - 11 heat points a second lead from 99 above 100 in 0.69 s x 0.05; shut down, the medium only cools."""
    arena = pair()
    arena.fill("lava", x=(18, 22), y=(28, 32), z=(0, 1))
    arena["medium"].heat = 99.0
    arena.run()
    assert of_kind(arena.log, "shutdown")
    heat = arena["medium"].heat
    assert heat == pytest.approx(99.0 + (40 - MEDIUM.heat_dissipation) * DT)
    arena.run()
    assert arena["medium"].heat == pytest.approx(heat - MEDIUM.heat_dissipation * DT)
