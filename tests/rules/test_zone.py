"""The zone's score. `engine/test_outcome_oracle.py` tests the ends of battles."""

import math

import numpy as np
import pytest

from echelon_env import BattleEngine, make_config, opponents
from echelon_env.engine.state import BLUE
from echelon_env.layout.observations import STREAMS, Objective
from rules.arena import Arena

DT = 0.05


def contest(blue=(30, 30), red=(60, 60), **overrides):
    """A medium, and two scouts of the enemy, about a zone of 5 m around (30, 30)."""
    arena = Arena({"medium": blue}, {"scout": red, "second scout": (60, 50)}, **overrides)
    battle = arena.state.battles[0]
    battle["zone_x"], battle["zone_y"], battle["zone_radius"] = 30.0, 30.0, 5.0
    return arena


def scores(arena):
    return arena.state.teams["score"][0].tolist()


@pytest.mark.parametrize(("x", "inside"), [(35.0, True), (35.01, False)])
def test_only_mechs_with_their_centre_in_the_circle_score(x, inside):
    arena = contest((x, 30))
    arena.run(10)
    assert scores(arena) == pytest.approx([10 * DT if inside else 0.0, 0.0])


@pytest.mark.parametrize(("z", "inside"), [(1.9, True), (2.0, False)])
def test_a_mech_high_above_the_ground_is_not_inside(z, inside):
    arena = contest(physics={"gravity": 0.0})
    arena.put("medium", 30, 30, z=z)
    arena.run()
    assert bool(scores(arena)[BLUE]) == inside


def test_in_a_contested_zone_the_larger_number_of_mechs_has_its_lead_and_equal_numbers_have_nothing():
    arena = contest(red=(33, 30))
    arena.run()
    assert scores(arena) == [0.0, 0.0]
    arena.put("second scout", 30, 33)
    arena.run()
    assert scores(arena) == pytest.approx([0.0, DT * (2 - 1) / (2 + 1)])


@pytest.mark.parametrize("condition", [{"alive": 0}, {"fallen": 60}])
def test_dead_and_fallen_mechs_hold_no_zone(condition):
    arena = contest(red=(33, 30))
    for name, value in condition.items():
        setattr(arena["scout"], name, value)
    arena.run()
    assert scores(arena) == pytest.approx([DT, 0.0])


BLIND_LIGHTS = {"mech_classes": {"light": {"observes_zone": False}}}


def observed(observations, feature):
    return observations[0, :, STREAMS["objective"].start + feature]


def test_mechs_that_do_not_observe_the_zone_have_the_clock_only():
    config = make_config("pair-city", catalog=BLIND_LIGHTS)
    engine = BattleEngine(config)
    observations = engine.reset([3])
    medium, light = (np.array([name == kind for name in config.blue + config.red]) for kind in ("medium", "light"))
    assert (observed(observations, Objective.RADIUS)[medium] > 0).all()
    assert (observations[0, light, STREAMS["objective"].part] == np.eye(1, 11, int(Objective.TIME_LEFT))).all()


@pytest.mark.parametrize(
    ("seconds", "decisions", "times"),
    [(0.25, 1, {}), (0.26, 2, {}), (1.0, 4, {}), (0.07, 7, {"dt": 0.01, "decision_repeat": 1})],
)
def test_a_zone_may_be_shown_at_the_start_only(seconds, decisions, times):
    engine = BattleEngine(make_config("duel-open", zone={"shown_seconds": seconds}, **times))
    shown = [engine.reset([3]).copy()]
    shown += [engine.step(np.zeros((1, 2, engine.action_dim), np.float32))[0].copy() for _ in range(9)]
    assert [bool(observed(each, Objective.RADIUS).all()) for each in shown] == [
        number < decisions for number in range(10)
    ]


@pytest.mark.parametrize(
    ("hidden", "overrides"),
    [
        (False, {}),
        (False, {"catalog": BLIND_LIGHTS, "blue": ["medium"], "red": ["heavy"]}),
        (True, {"catalog": BLIND_LIGHTS}),
        (True, {"zone": {"shown_seconds": 2.0}}),
    ],
)
def test_mechs_face_the_zone_or_if_it_is_hidden_from_any_the_centre_of_the_map(hidden, overrides):
    """So that the facing of others tells nothing."""
    config = make_config("pair-city", **overrides)
    engine = BattleEngine(config)
    engine.reset([3])
    battle, centre = engine.state.battles[0], config.terrain.size / 2
    for mech in engine.state.mechs[0]:
        x, y = (centre, centre) if hidden else (battle["zone_x"], battle["zone_y"])
        assert mech["yaw"] == pytest.approx(math.atan2(y - mech["y"], x - mech["x"]), abs=1e-9)


def test_levels_that_do_not_observe_the_zone_still_fight():
    """They do not guard a zone that they do not know."""
    config = make_config("duel-open", zone={"shown_seconds": 0.25, "score_to_win": 6.5})
    engine = BattleEngine(config)
    engine.reset([3])
    mechs = engine.state.mechs[0]
    mechs["x"], mechs["y"] = (20.0, 28.0), 24.0
    observations = engine.step(np.zeros((1, 2, engine.action_dim), np.float32))[0]
    expert = opponents.make("expert", 0, config)
    expert.reset(np.ones(2, np.bool_))
    for _ in range(20):
        observations = engine.step(expert.act(observations[0])[np.newaxis])[0]
    assert np.hypot(*np.diff([mechs["x"], mechs["y"]])) > 12.0  # they back away to the range of their weapons
