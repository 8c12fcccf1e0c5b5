"""Properties of every wrapper, and of nested wrappers."""

import copy
import pickle

import numpy as np
import pytest
from pettingzoo.test import parallel_api_test, parallel_seed_test

import echelon_env
from echelon_env import opponents
from echelon_env.wrappers import (
    AgentOneHot,
    BlackDeath,
    NormalizeObservations,
    NormalizeRewards,
    StackObservations,
    TeamVersusPolicy,
    TimeAwareObservation,
)
from wrappers import battles
from wrappers.scripted_env import ScriptedEnv, play


def standing_still(observations):
    return np.zeros((len(observations), *ACTION_SHAPE), np.float32)


ACTION_SHAPE = echelon_env.parallel_env("duel").action_space("blue_0").shape


def composed(env):
    env = AgentOneHot(NormalizeObservations(TeamVersusPolicy(env, opponents.make("novice", 0, env.config))))
    return NormalizeRewards(StackObservations(TimeAwareObservation(BlackDeath(env), 90), 2))


WRAPPERS = {
    "NormalizeObservations": NormalizeObservations,
    "NormalizeRewards": NormalizeRewards,
    "StackObservations": lambda env: StackObservations(env, 3),
    "AgentOneHot": AgentOneHot,
    "TimeAwareObservation": lambda env: TimeAwareObservation(env, 40),
    "TeamVersusPolicy": lambda env: TeamVersusPolicy(env, standing_still),
    "BlackDeath": BlackDeath,
    "composed": composed,
}
every_wrapper = pytest.mark.parametrize("wrap", WRAPPERS.values(), ids=WRAPPERS)
every_mode = pytest.mark.parametrize("dead_agents", ["terminate", "persist"])


def play_part(env, steps, seed=None):
    """Results of a part of the recorded battle: a reset, if a seed is given, and steps of the present agents."""
    results = [] if seed is None else [env.reset(seed=seed)]
    decisions = battles.record("persist")[0]
    while env.agents and len(results) < steps:
        results.append(env.step({agent: decisions[len(results)][agent] for agent in env.agents}))
    return results


@every_wrapper
@every_mode
def test_official_checkers(wrap, dead_agents):
    def make():
        return wrap(battles.make(dead_agents, max_steps=40))

    parallel_api_test(make(), num_cycles=100)
    parallel_seed_test(make, num_cycles=20)


@every_wrapper
@every_mode
def test_a_battle_with_deaths_is_finite_and_within_the_spaces(wrap, dead_agents):
    env = wrap(battles.make(dead_agents))
    observations, _ = env.reset(seed=battles.SEED)
    for actions in battles.record("persist")[0][:120]:
        present = env.agents
        assert list(observations) == present
        for agent, observation in observations.items():
            assert env.observation_space(agent).contains(observation)
            assert env.observation_spaces[agent] is env.observation_space(agent)
        observations, rewards, terminations, truncations, _ = env.step({agent: actions[agent] for agent in present})
        assert np.isfinite(list(rewards.values())).all()
        assert env.agents == [agent for agent in present if not (terminations[agent] or truncations[agent])]
        observations = {agent: observations[agent] for agent in env.agents}
        if not env.agents:
            break


@every_wrapper
@pytest.mark.parametrize("copier", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))], ids=["copy", "pickle"])
def test_copies_in_the_middle_of_a_battle_continue_equally(wrap, copier):
    env = wrap(battles.make("terminate"))
    play_part(env, 65, battles.SEED)
    twin = copier(env)
    assert twin.agents == env.agents
    np.testing.assert_equal(play_part(twin, 20), play_part(env, 20))


class Guarded(ScriptedEnv):
    """Has a read-only script, so that writing to returned arrays raises."""

    def __init__(self, **kwargs):
        super().__init__(np.random.default_rng(0).normal(size=(7, 4, 3)), np.ones((6, 4)), [2, 3, None, None], **kwargs)
        self.script.flags.writeable = False
        self.config = echelon_env.load_scenario("duel").config


SCRIPTED_WRAPPERS = WRAPPERS | {
    "TeamVersusPolicy": lambda env: TeamVersusPolicy(env, lambda rows: np.zeros(len(rows), np.int64)),
    "composed": lambda env: NormalizeRewards(StackObservations(BlackDeath(NormalizeObservations(AgentOneHot(env))), 2)),
}


@pytest.mark.parametrize("wrap", SCRIPTED_WRAPPERS.values(), ids=SCRIPTED_WRAPPERS)
@pytest.mark.parametrize("persist", [False, True])
class TestWrappedEnvironments:
    def test_arrays_are_not_written_to(self, wrap, persist):
        env = wrap(Guarded(persist=persist))
        list(play(env)), list(play(env))

    def test_seed_and_options_arrive(self, wrap, persist):
        inner = Guarded(persist=persist)
        wrap(inner).reset(seed=11, options={"map": 3})
        assert inner.seeds == [(11, {"map": 3})]

    def test_the_rest_is_forwarded(self, wrap, persist):
        inner = Guarded(persist=persist)
        env = wrap(inner)
        assert env.unwrapped is inner and env.metadata is inner.metadata and env.script is inner.script
        assert env.state().tolist() == [0, 0, 0] and env.state(team=1).tolist() == env.state(1).tolist() == [1, 1, 1]
        assert env.action_space("blue_0") is inner.discrete


@every_wrapper
def test_other_environments_are_refused(wrap):
    class Box:
        config = echelon_env.load_scenario("duel").config

    with pytest.raises(TypeError, match=r"env: expected a pettingzoo\.ParallelEnv, got Box"):
        wrap(Box())


@every_wrapper
def test_possible_agents_are_required(wrap):
    inner = Guarded()
    inner.possible_agents = []
    with pytest.raises(ValueError, match="expected at least one agent in possible_agents, scripted_v0 has none"):
        wrap(inner)


def test_normalising_dead_rows_behind_black_death():
    """Outer wrappers use the infos of `BlackDeath` about dead agents."""
    inner = ScriptedEnv(5 + np.random.default_rng(0).random((7, 3, 2)), np.ones((6, 3)), [3, None, None])
    env = NormalizeRewards(NormalizeObservations(BlackDeath(inner)))
    *_, last = play(env)
    assert not last[0]["blue_0"].any()
    assert env.env.moments["blue_0"].count == 3 + 2 * 6 and env.moments.count == 3 + 2 * 6


def test_statistics_are_frozen_and_saved_through_wrappers_around_them(tmp_path):
    env = StackObservations(NormalizeObservations(Guarded()), 2)
    list(play(env))
    env.freeze()
    assert env.env.frozen
    env.save(tmp_path / "statistics.json")
    twin = StackObservations(NormalizeObservations(Guarded()), 2)
    twin.load(tmp_path / "statistics.json")
    assert twin.moments["red_0"].count == env.moments["red_0"].count > 0
