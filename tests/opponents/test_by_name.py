"""Opponents by name in the environments."""

import gymnasium
import numpy as np
import pytest

import echelon_env  # noqa: F401  (registers the environments)
from echelon_env import ConfigError, ControlledBattles, make_config, opponents, parallel_env
from echelon_env.config import plugins
from echelon_env.layout.actions import ACTION_DIM
from echelon_env.opponents import FunctionPolicy, Handicap, Mixture
from echelon_env.wrappers import TeamVersusPolicy
from opponents.contests import recorded, think

CONFIG = make_config("skirmish")


def handicapped(name, seed, **numbers):
    return Handicap(opponents.make(name, seed, CONFIG), CONFIG, seed, **numbers)


def test_a_name_with_a_handicap_is_the_level_with_that_handicap():
    named, made = opponents.make("expert@fire_rate=0.5", 3, CONFIG), handicapped("expert", 3, fire_rate=0.5)
    assert isinstance(named, Handicap) and repr(named) == repr(made)
    np.testing.assert_array_equal(think(named, recorded()), think(made, recorded()))


def test_a_mixture_draws_handicapped_opponents_too():
    weights = {"novice": 1, "expert@fire_rate=0.3,reaction_delay=0.5": 1}
    mixture, seen = opponents.make(weights, 3, CONFIG), recorded()
    assert isinstance(mixture, Mixture)
    actions = think(mixture, seen)
    for name in weights:
        rows = mixture.levels == name
        assert rows.any()
        alone = think(opponents.make(name, 3, CONFIG), seen)
        np.testing.assert_array_equal(actions[:, rows], alone[:, rows])
    twin = opponents.make(weights, 3, CONFIG)
    twin.restore_arrays(mixture.state_arrays(), seen.shape[1])
    np.testing.assert_array_equal(twin.act(seen[-1]), mixture.act(seen[-1]))


@pytest.mark.parametrize("name", ["self", "expert@auto"])
def test_environments_refuse_what_is_for_training(name):
    for opponent in (name, {name: 1, "novice": 1}):
        with pytest.raises(ConfigError, match=r"opponent: .*for training only"):
            gymnasium.make("echelon/Duel-v0", opponent=opponent)


def test_a_wrapper_takes_names_around_an_environment_of_this_package():
    env = TeamVersusPolicy(parallel_env("duel"), {"novice": 1, "expert@fire_rate=0.5": 1})
    observations, _ = env.reset(seed=1)
    env.step({agent: np.zeros(ACTION_DIM, np.float32) for agent in observations})


class Counting:
    """A player of a checkpoint, as an installed package makes it."""

    def __init__(self, path):
        self.path = path

    def policy(self, config, seed, num_threads):
        return FunctionPolicy(lambda rows: np.full((len(rows), ACTION_DIM), len(self.path) / 10, np.float32))


def test_policies_come_from_the_installed_packages(monkeypatch):
    monkeypatch.setattr(plugins, "load", lambda point: lambda path, seed, action_mode: Counting(path))
    battles = ControlledBattles("duel", 2, opponent="policy:abc")
    battles.reset([1, 2])
    battles.step(np.zeros((2, 1, ACTION_DIM), np.float32))
    assert battles.engine.actions[:, 1] == pytest.approx(0.3)
