import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.spaces import Box, Dict, Discrete

from echelon_env import opponents
from echelon_env.wrappers import TeamVersusPolicy
from wrappers import battles
from wrappers.scripted_env import ScriptedEnv


def scripted(**kwargs):
    noise = np.random.default_rng(0)
    return ScriptedEnv(1 + noise.random((5, 4, 2)), 1 + noise.random((4, 4)), **kwargs)


class Recorder:
    """Plays 2 and 3, and keeps its observations."""

    def __init__(self):
        self.calls = []

    def reset(self, mask):
        self.calls.append(mask)

    def act(self, observations):
        self.calls.append(observations)
        return np.array([2, 3])


def step(env):
    return env.step(dict.fromkeys(env.agents, 1))


def test_the_policy_plays_the_others():
    inner, policy = scripted(), Recorder()
    env = TeamVersusPolicy(inner, policy)
    assert env.possible_agents == ["blue_0", "blue_1"] and env.agents == []
    for _ in range(2):
        policy.calls.clear()
        observations, infos = env.reset(seed=3)
        assert env.agents == list(observations) == list(infos) == ["blue_0", "blue_1"]
        assert env.num_agents == env.max_num_agents == 2
        time = 0
        while env.agents:
            results = step(env)
            time += 1
            assert all(list(result) == ["blue_0", "blue_1"] for result in results)
            np.testing.assert_array_equal(results[0]["blue_1"], inner.script[time, 2])
            assert results[1] == {"blue_0": inner.rewards[time - 1, 0], "blue_1": inner.rewards[time - 1, 2]}
            assert inner.actions[-1] == {"blue_0": 1, "blue_1": 1, "red_0": 2, "red_1": 3}
        assert results[3] == {"blue_0": True, "blue_1": True}
        reset, *seen = policy.calls
        assert reset.dtype == np.bool_ and reset.tolist() == [True, True]
        np.testing.assert_array_equal(seen, inner.script[:4, [1, 3]])


def test_rows_of_dead_agents_are_zeros_and_they_do_not_act():
    inner, policy = scripted(deaths=[None, 2, None, None]), Recorder()
    env = TeamVersusPolicy(inner, policy)
    env.reset()
    for time in range(1, 5):
        step(env)
        assert ("red_0" in inner.actions[-1]) == (time <= 2) and inner.actions[-1]["red_1"] == 3
        np.testing.assert_array_equal(policy.calls[-1][0], inner.script[time - 1, 1] if time <= 2 else [0, 0])
        np.testing.assert_array_equal(policy.calls[-1][1], inner.script[time - 1, 3])


def test_the_episode_ends_with_the_team():
    inner = scripted(deaths=[1, None, 2, None])
    env = TeamVersusPolicy(inner, Recorder())
    env.reset()
    assert step(env)[2] == {"blue_0": True, "blue_1": False}
    assert env.agents == ["blue_1"]
    assert step(env)[2] == {"blue_1": True}
    assert env.agents == [] and inner.agents == ["red_0", "red_1"]
    with pytest.raises(ResetNeeded, match="call reset"):
        env.step({})
    env.reset()
    assert env.agents == ["blue_0", "blue_1"]


@pytest.mark.parametrize(
    ("names", "team", "own"),
    [
        (None, "red", ["red_0", "red_1"]),
        (None, ["red_1", "blue_0"], ["blue_0", "red_1"]),
        (["sky_net_0", "sky_net_1", "sky_0", "eve"], "sky_net", ["sky_net_0", "sky_net_1"]),
        (["sky_net_0", "sky_net_1", "sky_0", "eve"], "eve", ["eve"]),
        ([7, 8, 9, 10], {8, 9}, [8, 9]),
    ],
)
def test_teams_by_name_and_by_agents(names, team, own):
    inner = scripted(names=names)
    env = TeamVersusPolicy(inner, lambda observations: np.arange(len(observations)), team)
    assert env.possible_agents == own and list(env.observation_spaces) == own
    env.reset()
    step(env)
    others = [agent for agent in inner.possible_agents if agent not in own]
    assert inner.actions[-1] == dict.fromkeys(own, 1) | {agent: row for row, agent in enumerate(others)}


class Odd(ScriptedEnv):
    """The last agent has a different action space."""

    def action_space(self, agent):
        return Discrete(7) if agent == self.possible_agents[-1] else self.discrete


class Structured(ScriptedEnv):
    def action_space(self, agent):
        return Dict(move=Box(-1, 1, (2,)))


@pytest.mark.parametrize(
    ("env", "policy", "team", "message"),
    [
        (lambda: battles.make("persist", action="discrete"), "novice", "blue", "needs an environment with action="),
        (scripted, "novice", "blue", "got 'novice'; names are opponents in Echelon's environments only"),
        (scripted, 3, "blue", r"expected reset\(mask\) and act\(observations\), or a function, got 3$"),
        (scripted, Recorder(), "bleu", r"unknown team 'bleu'; did you mean 'blue'\? \(valid: blue, red\)"),
        (scripted, Recorder(), ["blue_0", "blue_7"], r"team: expected agents among .*, got \['blue_7'\]"),
        (scripted, Recorder(), ["blue_0", "red_0", "blue_1", "red_1"], "team: expected a part of the agents"),
        (lambda: scripted(space="dict"), Recorder(), "blue", r"'red_0': expected a Box, got Dict of .*'flat'\)$"),
        (lambda: Odd(np.zeros((2, 4, 2))), Recorder(), "blue", "expected equal spaces .*, those of 'red_1' differ"),
        (
            lambda: Structured(np.zeros((2, 4, 2))),
            Recorder(),
            "blue",
            "expected arrays or numbers as actions, got Dict",
        ),
    ],
)
def test_bad_arguments(env, policy, team, message):
    with pytest.raises((TypeError, ValueError), match=message):
        TeamVersusPolicy(env(), policy, team)


@pytest.mark.parametrize("said", [np.zeros(3, np.int64), np.zeros(2)])
def test_bad_actions_of_the_policy(said):
    env = TeamVersusPolicy(scripted(), lambda observations: said)
    env.reset()
    with pytest.raises(ValueError, match=r"actions of the policy: expected shape \(2,\) of int64, got "):
        step(env)


def test_a_seed_repeats_the_players_that_are_drawn():
    env = TeamVersusPolicy(battles.make("terminate"), {"trivial": 1, "expert": 1})
    idle = {agent: np.zeros(env.action_space(agent).shape, np.float32) for agent in env.possible_agents}
    played = []
    for _ in range(6):
        env.reset(seed=battles.SEED)
        for _ in range(40):
            observations = env.step({agent: idle[agent] for agent in env.agents})[0]
        played.append(b"".join(observations[agent].tobytes() for agent in env.agents))
    assert len(set(played)) == 1


@pytest.mark.parametrize("dead_agents", ["terminate", "persist"])
def test_a_battle_is_the_same_with_the_opponent_inside_or_outside(dead_agents):
    raw = battles.make(dead_agents)
    env = TeamVersusPolicy(battles.make(dead_agents), opponents.make("novice", 1, raw.config))
    red = opponents.make("novice", 1, raw.config)
    decisions = battles.record(dead_agents)[0]
    env.reset(seed=battles.SEED)
    observations, _ = raw.reset(seed=battles.SEED)
    red.reset(np.ones(5, np.bool_))
    for actions in decisions[:100]:
        rows = np.zeros((5, *raw.observation_space("red_0").shape), np.float32)
        for agent in raw.agents:
            if agent.startswith("red"):
                rows[int(agent[-1])] = observations[agent]
        acted = red.act(rows)
        blues = {agent: actions.get(agent, np.zeros_like(acted[0])) for agent in env.agents}
        reds = {agent: acted[int(agent[-1])] for agent in raw.agents if agent.startswith("red")}
        expected = raw.step(blues | reds)
        results = env.step(blues)
        observations = expected[0]
        for result, full in zip(results, expected, strict=True):
            np.testing.assert_equal(result, {agent: value for agent, value in full.items() if agent.startswith("blue")})
