"""Every component of the reward, with its numbers."""

import math

import numpy as np
import pytest

from echelon_env.config.battle import REWARD_COMPONENTS
from echelon_env.config.catalog import LASER, MEDIUM
from rules.arena import Arena, changed, of_kind

DT = 0.05
EAST, WEST = 0, 180
GAMMA = 0.995
FAR = (60, 5)


def duel(zone=(5, 60), **overrides):
    """Two mediums face to face within laser range, each with a distant scout; the zone is elsewhere."""
    arena = Arena(
        {"medium": (20, 30, EAST), "scout": FAR}, {"red medium": (26, 30, WEST), "red scout": (60, 60)}, **overrides
    )
    arena.zone(*zone)
    arena.run()  # the potential is now that of these places
    return arena


def kill_red(arena):
    """Let blue's medium kill red's in this decision."""
    arena["red medium"].armour = 1.0
    arena.order("medium", primary=1, target="red medium")
    assert of_kind(arena.run(), "death", actor="red medium")


def test_approach_is_the_discounted_gain_of_potential():
    arena = duel(zone=(60, 30))
    arena.order("medium", throttle=1)
    arena.run()
    before, after = (1 - (60 - x - 5) / 64 for x in (20, 20 + MEDIUM.top_speed * DT))
    assert arena.earned("medium")["approach"] == pytest.approx(1.5 * (GAMMA * after - before), abs=1e-6)
    arena.order("medium")
    arena.run()
    assert arena.earned("medium")["approach"] == pytest.approx(1.5 * (GAMMA - 1) * after, abs=1e-6)


def test_inside_the_zone_the_potential_is_1():
    arena = duel(zone=(20, 30))
    arena.order("medium", strafe=1)
    arena.run()
    assert arena.earned("medium")["approach"] == pytest.approx(1.5 * (GAMMA - 1), abs=1e-6)


@pytest.mark.parametrize("kept", [0.0, 0.75])
def test_a_dying_mech_loses_its_potential_except_for_the_configured_share(kept):
    arena = duel(rewards={"approach_kept": kept})
    before = 1 - (math.hypot(26 - 5, 30 - 60) - 5) / 64
    kill_red(arena)
    assert arena.earned("red medium")["approach"] == pytest.approx(-1.5 * (1 - kept) * before, abs=1e-6)


def test_with_a_kept_share_of_1_nothing_is_lost_at_the_end():
    arena = duel(max_steps=3, time_limit="terminate", rewards={"approach_kept": 1.0, "gamma": 1.0})
    arena["red medium"].armour = 50.0
    arena.run(2)
    assert arena.engine.out.terminated.all()
    assert [arena.earned(name)["approach"] for name in arena.names] == [0, 0, 0, 0]


def test_zone_pays_every_mech_a_quarter_a_second_times_its_teams_lead_in_shares():
    arena = duel(zone=(20, 30))
    arena.run()
    for name, sign in (("medium", 1), ("scout", 1), ("red medium", -1), ("red scout", -1)):  # inside or not
        assert arena.earned(name)["zone"] == pytest.approx(sign * 0.25 * DT)
    arena.put("scout", 18, 34)
    arena.put("red scout", 22, 34)  # two mechs against one
    arena.run()
    for name, sign in (("medium", 1), ("scout", 1), ("red medium", -1), ("red scout", -1)):
        assert arena.earned(name)["zone"] == pytest.approx(sign * 0.25 * DT / 3)


def test_damage_pays_by_the_hit_point_that_a_body_lost():
    arena = duel()
    arena["red medium"].armour = 10.0
    arena.order("medium", primary=1)
    arena.run()
    assert arena.earned("medium")["damage"] == pytest.approx(0.05 * 10)
    assert LASER.damage > 10


def test_damage_to_team_mates_and_to_itself_costs_the_same():
    """A gauss shell bursts at a wall before its shooter: 25 hit points for the shooter and for the scout beside it."""
    arena = Arena({"heavy": (20, 30, EAST), "scout": (22, 33)}, {"medium": (60, 60)},
                  decision_repeat=5, catalog=changed(gauss={"splash_radius": 3.0}))  # fmt: skip
    arena.fill("reinforced", x=(23, 24), y=(20, 40), z=(0, 10))
    arena.order("heavy", tertiary=1)
    splashes = of_kind(arena.run(), "splash")
    assert {e.target: e.amount for e in splashes} == {"heavy": 25.0, "scout": 25.0}
    assert arena.earned("heavy")["damage"] == pytest.approx(-0.05 * 50)


@pytest.mark.parametrize(
    ("zone", "factor"),
    [
        ((5, 60), 1),  # elsewhere
        ((23, 30), 2),  # both within
        ((17, 30), 1),  # the killer alone: no enemy contests it
        ((29, 30), 1),  # its victim alone
    ],
)
def test_a_kill_pays_10_and_twice_that_inside_a_contested_zone(zone, factor):
    arena = duel(zone=zone)
    kill_red(arena)
    assert arena.earned("medium")["kill"] == pytest.approx(10 * factor)
    assert arena.earned("red medium")["death"] == pytest.approx(-1 if factor == 1 else -0.5)
    assert arena.statistics("medium")["kills"] == 1.0


def test_a_kill_from_outside_a_contested_zone_pays_10_and_the_death_inside_costs_half():
    arena = duel(zone=(29, 30))
    arena.put("scout", 29, 33)
    kill_red(arena)
    assert arena.earned("medium")["kill"] == pytest.approx(10)
    assert arena.earned("red medium")["death"] == pytest.approx(-0.5)


def test_a_kill_from_inside_a_contested_zone_pays_double_and_the_death_outside_costs_all():
    arena = duel(zone=(17, 30))
    arena.put("red scout", 17, 33)
    kill_red(arena)
    assert arena.earned("medium")["kill"] == pytest.approx(20)
    assert arena.earned("red medium")["death"] == pytest.approx(-1)


def test_a_mech_above_the_zone_does_not_contest_it():
    arena = duel(zone=(17, 30), physics={"gravity": 0.0})
    arena.put("red scout", 17, 33, z=2.0)
    kill_red(arena)
    assert arena.earned("medium")["kill"] == pytest.approx(10)


def test_two_mechs_that_kill_each_other_inside_both_contest_the_zone():
    arena = duel(zone=(23, 30))
    arena["medium"].armour = 1.0
    arena.order("red medium", primary=1)
    kill_red(arena)
    for name in ("medium", "red medium"):
        assert arena.earned(name)["kill"] == pytest.approx(20)
        assert arena.earned(name)["death"] == pytest.approx(-0.5)


def test_the_shell_of_a_dead_mech_earns_no_zone_bonus():
    """Its shooter died inside the zone before the shell arrives; the zone is contested by others."""
    arena = duel(zone=(23, 30), dead_agents="persist")
    arena.put("scout", 23, 34)
    arena["red medium"].armour = 1.0
    arena.order("medium", tertiary=1)
    arena.run()
    assert len(arena.projectiles) == 1
    arena["medium"].alive = 0
    arena.state.teams["mechs_alive"][0, 0] -= 1
    for _ in range(10):
        if of_kind(arena.run(), "death", actor="red medium"):
            break
    assert arena.earned("medium")["kill"] == pytest.approx(10)
    assert arena.earned("red medium")["death"] == pytest.approx(-0.5)


@pytest.mark.parametrize(("zone", "factor"), [((5, 60), 1), ((60, 5), 2), ((23, 30), 1)])
def test_an_assist_pays_5_and_twice_that_while_the_painter_is_in_a_contested_zone(zone, factor):
    arena = duel(zone=zone)
    if factor == 2:
        arena.put("red scout", 58, 5)
    arena.paint("red medium", by="scout")
    kill_red(arena)
    assert arena.earned("scout")["assist"] == pytest.approx(5 * factor)
    assert arena.earned("medium")["kill"] == pytest.approx(20 if zone == (23, 30) else 10)
    assert arena.statistics("scout")["assists"] == 1.0


def test_the_contested_factors_are_settings():
    arena = duel(zone=(23, 30), rewards={"contested_kill": 3.0, "contested_death": 0.0})
    kill_red(arena)
    assert arena.earned("medium")["kill"] == pytest.approx(30)
    assert arena.earned("red medium")["death"] == 0


def test_overheat_pays_by_the_second_shut_down():
    arena = duel(rewards={"overheat": -2.0}, decision_repeat=5)
    arena["medium"].heat = 149.0  # of 100: it does not cool down in a decision
    arena.run()
    assert arena.earned("medium")["overheat"] == pytest.approx(-2 * 5 * DT)
    assert arena.earned("red medium")["overheat"] == 0


@pytest.mark.parametrize(("dead_agents", "share"), [("persist", 1.0), ("terminate", 0.0)])
def test_dead_mechs_get_the_outcome_if_they_persist(dead_agents, share):
    arena = duel(dead_agents=dead_agents)
    kill_red(arena)
    arena["scout"].alive = 0
    arena["scout"].armour = 0.0
    arena.state.teams["mechs_alive"][0, 0] -= 1
    arena["red scout"].armour = 1.0
    arena.put("red scout", 26, 30)
    arena["medium"].cooldown = 0
    while not arena.engine.battle_over[0]:
        arena.run()
    assert arena.earned("medium")["outcome"] == 10
    assert arena.earned("scout")["outcome"] == 10 * share  # died before
    assert arena.earned("red scout")["outcome"] == -10  # died in this decision
    assert arena.earned("red medium")["outcome"] == -10 * share


def test_a_truncated_end_pays_no_outcome_and_keeps_the_potential():
    arena = duel(max_steps=3)
    arena["red medium"].armour = 50.0
    arena.run(2)
    assert arena.engine.out.truncated.all()
    assert (arena.engine.battle_over[0], arena.engine.winner[0]) == (True, 0)
    after = 1 - (math.hypot(20 - 5, 30 - 60) - 5) / 64
    assert arena.earned("medium")["approach"] == pytest.approx(1.5 * (GAMMA - 1) * after, abs=1e-6)
    assert arena.earned("medium")["outcome"] == 0


def test_a_time_limit_that_terminates_pays_and_takes_the_potential():
    arena = duel(max_steps=3, time_limit="terminate")
    arena["red medium"].armour = 50.0
    arena.run(2)
    assert arena.engine.out.terminated.all()
    before = 1 - (math.hypot(20 - 5, 30 - 60) - 5) / 64
    assert arena.earned("medium")["approach"] == pytest.approx(-1.5 * before, abs=1e-6)
    assert [arena.earned(name)["outcome"] for name in arena.names] == [10, 10, -10, -10]


def test_team_spirit_shares_every_component():
    """A quarter of the reward is the team's mean: the scout gets an eighth of what the medium earns alone."""
    alone, together = duel(zone=(20, 30)), duel(zone=(20, 30), rewards={"team_spirit": 0.25})
    for arena in (alone, together):
        kill_red(arena)
    for name, mate in (("medium", "scout"), ("scout", "medium"), ("red medium", "red scout")):
        own, other = alone.earned(name), alone.earned(mate)
        for component in REWARD_COMPONENTS:
            mean = (own[component] + other[component]) / 2
            expected = pytest.approx(0.75 * own[component] + 0.25 * mean, abs=1e-6)
            assert together.earned(name)[component] == expected, (name, component)
    assert together.earned("scout")["kill"] == pytest.approx(10 / 8)
    assert together.earned("red scout")["death"] == pytest.approx(-1 / 8)


@pytest.mark.parametrize("dead_agents", ["persist", "terminate"])
def test_dead_mechs_count_in_the_teams_mean_and_receive_it_if_they_persist(dead_agents):
    arena = duel(dead_agents=dead_agents, rewards={"team_spirit": 1.0})
    arena["scout"].alive = 0
    arena.state.teams["mechs_alive"][0, 0] -= 1
    kill_red(arena)
    assert arena.earned("medium")["kill"] == pytest.approx(5)
    assert arena.earned("scout")["kill"] == (5 if dead_agents == "persist" else 0)


def test_rewards_of_persisting_dead_mechs_count_for_the_team():
    arena = duel(dead_agents="persist", rewards={"team_spirit": 0.5})
    arena["red medium"].armour = 1.0
    arena.order("medium", tertiary=1)
    arena.run()
    arena["medium"].alive = 0
    arena.state.teams["mechs_alive"][0, 0] -= 1
    for _ in range(10):
        if of_kind(arena.run(), "death", actor="red medium"):
            break
    assert arena.earned("medium")["kill"] == pytest.approx(7.5)
    assert arena.earned("scout")["kill"] == pytest.approx(2.5)


@pytest.mark.parametrize("spirit", [0.0, 0.3])
def test_a_reward_is_the_sum_of_its_components_in_their_order_to_the_last_bit(spirit):
    arena = duel(zone=(23, 30), rewards={"team_spirit": spirit, "overheat": -0.1})
    kill_red(arena)
    components, rewards = arena.engine.reward_components[0], arena.engine.out.rewards[0]
    total = np.zeros(len(rewards), np.float32)
    for column in components.T:
        total = total + column
    assert total.dtype == components.dtype == np.float32
    np.testing.assert_array_equal(total, rewards)
    assert np.count_nonzero(components[0]) >= 4
