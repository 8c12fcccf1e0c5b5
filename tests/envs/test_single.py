import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded

import echelon_env
from echelon_env import ConfigError, opponents
from echelon_env.layout.actions import ACTION_DIM
from echelon_env.spaces.describe import describe_action, describe_observation
from echelon_env.spaces.explain import explain_action
from support.checkers import check_gymnasium
from support.environments import FORMATS


@pytest.mark.parametrize("name", ["Skirmish", "Company"])
@pytest.mark.parametrize("control", ["pilot", "team"])
def test_official_checkers(name, control):
    check_gymnasium(gymnasium.make(f"echelon/{name}-v1", control=control, max_steps=30).unwrapped)


@pytest.mark.parametrize("control", ["pilot", "team"])
@pytest.mark.parametrize("formats", FORMATS, ids=str)
def test_official_checkers_in_every_format(formats, control):
    env = gymnasium.make("echelon/PairCity-v1", control=control, max_steps=12, **formats).unwrapped
    check_gymnasium(env, **formats)


SHARED = opponents.make("novice", 0, "battle")


def test_an_opponent_can_be_a_plain_function_and_each_may_be_shared():
    rows = []

    def stand_still(observations):
        rows.append(len(observations))
        return np.zeros((len(observations), ACTION_DIM))

    env = echelon_env.BattleEnv("skirmish", opponent=stand_still, teammate=stand_still)
    env.reset(seed=0)
    env.step(np.zeros(ACTION_DIM, np.float32))
    assert sorted(rows) == [4, 5]
    wrong = echelon_env.BattleEnv("duel", opponent=lambda observations: [0.0])
    wrong.reset(seed=0)
    with pytest.raises(ValueError, match=r"actions of the opponent .*lambda.*: expected shape .*, got \(1,\)"):
        wrong.step(np.zeros(ACTION_DIM, np.float32))


def test_the_action_of_one_mech_of_a_team_is_explained():
    env = echelon_env.BattleEnv("skirmish", control="team", side=1)
    assert env.mechs == tuple(f"red_{i}" for i in range(5))
    action = env.action_space.sample()
    with pytest.raises(ResetNeeded):
        env.explain_action(action)
    env.reset(seed=0)
    names = echelon_env.parallel_env("skirmish").possible_agents
    for mech, part in enumerate(action.reshape(5, -1)):
        assert env.explain_action(action, mech) == explain_action(env.engine, 0, 5 + mech, part, names)
    classes = {mech_class.name: mech_class for mech_class in env.config.mech_classes}
    assert env.describe_observation(4) == describe_observation(classes["scout"])
    assert env.describe_action() == describe_action(classes["heavy"])
    for mech in (-1, 5, "red_0", True):
        with pytest.raises(ValueError, match=rf"mech: expected 0 to 4, an index of \('red_0', .*\), got {mech!r}$"):
            env.describe_action(mech)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"opponent": "novise"}, "unknown opponent 'novise'; did you mean 'novice'"),
        ({"opponent": 3}, "expected an opponent's name, weights of several, an object .*, got 3"),
        ({"teammate": opponents.Scripted}, "teammate: expected an opponent's name, weights"),
        ({"teammate": "ace"}, "teammate: unknown opponent 'ace'"),
        ({"opponent": SHARED, "teammate": SHARED}, "opponent and teammate are one object"),
        ({"control": "team", "dead_agents": "terminate"}, "control 'team' needs dead_agents 'persist'"),
        ({"pilot": 0.0}, "pilot: expected an integer of at least 0"),
        ({"control": "squad"}, "unknown control 'squad'"),
        ({"max_cycles": 0}, "max_cycles: expected an integer of at least 1"),
        ({"pilot": 7}, "pilot: expected a place in a roster of 1, got 7"),
        ({"side": 2}, "side: expected 0 or 1"),
        ({"seed": 3}, "unexpected keyword argument 'seed'"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ConfigError, match=message):
        gymnasium.make("echelon/Duel-v1", **arguments)
