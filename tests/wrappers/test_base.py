"""Properties of every wrapper, and of nested wrappers."""

import numpy as np
import pytest
from pettingzoo.test import parallel_api_test

import echelon_env
from echelon_env import opponents
from echelon_env.wrappers import (
    BlackDeath,
    NormalizeObservations,
    NormalizeRewards,
    StackObservations,
    TeamVersusPolicy,
)
from support.contract import check_parallel
from wrappers.scripted_env import ScriptedEnv, play


def standing_still(observations):
    return np.zeros((len(observations), *ACTION_SHAPE), np.float32)


ACTION_SHAPE = echelon_env.parallel_env("duel").action_space("blue_0").shape


def composed(env):
    env = TeamVersusPolicy(env, opponents.make("novice", 0, env.config))
    return NormalizeRewards(StackObservations(BlackDeath(env), 2))


WRAPPERS = {
    "NormalizeObservations": NormalizeObservations,
    "NormalizeRewards": NormalizeRewards,
    "StackObservations": lambda env: StackObservations(env, 3),
    "TeamVersusPolicy": lambda env: TeamVersusPolicy(env, standing_still),
    "BlackDeath": BlackDeath,
    "composed": composed,
}
every_wrapper = pytest.mark.parametrize("wrap", WRAPPERS.values(), ids=WRAPPERS)


def frozen(env):
    """With statistics that a new environment has too."""
    if isinstance(env, NormalizeObservations | NormalizeRewards):
        env.freeze()
    return env


@every_wrapper
def test_the_rules_of_the_api_are_kept(wrap):
    """Spaces, keys, flags, memory of its own, seeds, and copies during an episode."""

    def make():
        return frozen(wrap(echelon_env.parallel_env("duel-open", max_steps=6, maps=2)))

    check_parallel(make)
    parallel_api_test(make(), num_cycles=20)


class Guarded(ScriptedEnv):
    """Has a read-only script, so that writing to returned arrays raises."""

    def __init__(self, **kwargs):
        super().__init__(np.random.default_rng(0).normal(size=(7, 4, 3)), np.ones((6, 4)), [2, 3, None, None], **kwargs)
        self.script.flags.writeable = False
        self.config = echelon_env.load_scenario("duel").config


SCRIPTED_WRAPPERS = WRAPPERS | {
    "TeamVersusPolicy": lambda env: TeamVersusPolicy(env, lambda rows: np.zeros(len(rows), np.int64)),
    "composed": lambda env: NormalizeRewards(StackObservations(BlackDeath(env), 2)),
}


@pytest.mark.parametrize("wrap", SCRIPTED_WRAPPERS.values(), ids=SCRIPTED_WRAPPERS)
class TestWrappedEnvironments:
    def test_seed_and_options_arrive(self, wrap):
        inner = Guarded(persist=True)
        wrap(inner).reset(seed=11, options={"map": 3})
        assert inner.seeds == [(11, {"map": 3})]

    def test_the_rest_is_forwarded(self, wrap):
        inner = Guarded(persist=True)
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


def test_statistics_are_frozen_and_saved_through_wrappers_around_them(tmp_path):
    env = StackObservations(NormalizeObservations(Guarded()), 2)
    list(play(env))
    env.freeze()
    assert env.env.frozen
    env.save(tmp_path / "statistics.json")
    twin = StackObservations(NormalizeObservations(Guarded()), 2)
    twin.load(tmp_path / "statistics.json")
    assert twin.moments["red_0"].count == env.moments["red_0"].count > 0
