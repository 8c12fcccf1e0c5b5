"""Actions and agents that are none: every class refuses them with an error of this package."""

import numpy as np
import pytest

from echelon_env import (
    BattleBatchEnv,
    BattleEngine,
    BattleEnv,
    BattleVectorEnv,
    ControlledBattles,
    env,
    parallel_env,
    wrappers,
)
from echelon_env.interop import SMACEnv
from echelon_env.layout.actions import ACTION_DIM

FORMATS = ("continuous", "dict", "multi_discrete", "discrete")
BAD = {
    "None": None,
    "text": "x",
    "empty dict": {},
    "ragged lists": [[0.0] * ACTION_DIM, [0.0] * 3],
    "an object": object(),
    "complex numbers": [1j] * ACTION_DIM,
    "huge numbers": [10**400] * ACTION_DIM,
}


def one_agent(make, action_format):
    environment = make("duel-open", action=action_format)
    environment.reset(seed=1)
    return lambda bad: environment.step(
        {**{a: environment.action_space(a).sample() for a in ("red_0",)}, "blue_0": bad}
    )


def directly(make, action_format, **kwargs):
    environment = make("skirmish-open", action=action_format, **kwargs)
    environment.reset(seed=1)
    return environment.step


def in_lists(make, action_format):
    environment = make("duel-open", 2, action=action_format)
    environment.reset(seed=1)
    return lambda bad: environment.step([[bad, bad]] * 2 if make is BattleBatchEnv else [bad, bad])


STEPS = {
    "parallel": lambda action: one_agent(parallel_env, action),
    "in turns": lambda action: directly(env, action),
    "team": lambda action: directly(BattleEnv, action, control="team"),
    "vector, lists": lambda action: in_lists(BattleVectorEnv, action),
    "batch, lists": lambda action: in_lists(BattleBatchEnv, action),
}


def refuse_all(step):
    for name, bad in BAD.items():
        with pytest.raises(ValueError, match=r"^actions?[ :\[(]") as caught:
            step(bad)
        assert ", got " in str(caught.value), name


@pytest.mark.parametrize("action_format", FORMATS)
@pytest.mark.parametrize("name", STEPS)
def test_bad_actions(name, action_format):
    refuse_all(STEPS[name](action_format))


def persistent():
    return parallel_env("duel-open", dead_agents="persist")


WRAPPED = {
    "parallel": persistent,
    "team": lambda: wrappers.TeamVersusPolicy(persistent(), "novice"),
}


@pytest.mark.parametrize("name", WRAPPED)
def test_what_is_no_dict_of_agents(name):
    environment = WRAPPED[name]()
    environment.reset(seed=1)
    idle = np.zeros(ACTION_DIM, np.float32)
    good = dict.fromkeys(environment.agents, idle)
    for bad in (None, idle, [idle, idle], "x"):
        with pytest.raises(ValueError, match="actions: expected a dict of agents' actions, got "):
            environment.step(bad)
    with pytest.raises(ValueError, match=r"actions: expected agents among \['blue_0'.*got \['green_0'\]"):
        environment.step(good | {"green_0": idle})
    environment.step(good)


@pytest.mark.parametrize("agent", ["green_0", ["blue_0"]])
@pytest.mark.parametrize("name", [*WRAPPED, "in turns"])
def test_an_unknown_agent(name, agent):
    environment = env("duel-open") if name == "in turns" else WRAPPED[name]()
    environment.reset(seed=1)
    asked = [environment.observation_space, environment.action_space]
    if name == "in turns":
        asked.append(environment.observe)
    if name == "parallel":
        asked += [environment.describe_observation, environment.describe_action]
        asked.append(lambda agent: environment.explain_action(agent, np.zeros(ACTION_DIM, np.float32)))
    for ask in asked:
        with pytest.raises(ValueError, match=r"unknown agent .*\(valid: blue_0"):
            ask(agent)


def test_bad_actions_of_the_classes_with_one_format():
    smac, battles, engine = SMACEnv("duel-open"), ControlledBattles("duel-open", 2), BattleEngine("duel-open", 2)
    smac.reset()
    for several in (battles, engine):
        several.reset([1, 2])
    for step in (smac.step, battles.step, engine.step):
        refuse_all(step)
