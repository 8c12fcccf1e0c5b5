"""Opponents by name in the environments."""

import gymnasium
import numpy as np
import pytest

import echelon_env  # noqa: F401  (registers the environments)
from echelon_env import ConfigError, make_config, opponents
from echelon_env.opponents import Handicap
from opponents.contests import recorded, think

CONFIG = make_config("skirmish")


def handicapped(name, seed, **numbers):
    return Handicap(opponents.make(name, seed, CONFIG), CONFIG, seed, **numbers)


def test_a_name_with_a_handicap_is_the_level_with_that_handicap():
    named, made = opponents.make("expert@fire_rate=0.5", 3, CONFIG), handicapped("expert", 3, fire_rate=0.5)
    assert isinstance(named, Handicap) and repr(named) == repr(made)
    np.testing.assert_array_equal(think(named, recorded()), think(made, recorded()))


@pytest.mark.parametrize("name", ["self", "expert@auto"])
def test_environments_refuse_what_is_for_training(name):
    for opponent in (name, {name: 1, "novice": 1}):
        with pytest.raises(ConfigError, match=r"opponent: .*for training only"):
            gymnasium.make("echelon/Duel-v1", opponent=opponent)
