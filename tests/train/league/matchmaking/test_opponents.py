"""Opponents of a main agent."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echelon_env.config.schema import ConfigError
from echelon_train.league.matchmaking.opponents import main_agents_opponents, pfsp_weights
from echelon_train.opponents.results import Results

SHARES = st.floats(0.0, 1.0)
WON, LOST, NEW = Results(98, (1,) * 98), Results(98, (-1,) * 98), Results()


@given(st.lists(SHARES, min_size=1, max_size=20))
def test_weights_follow_the_formula(chances):
    found, expected = pfsp_weights(chances), (1 - np.array(chances)) ** 2
    if expected.sum() == 0:
        expected = np.ones(len(chances))
    np.testing.assert_allclose(found, expected / expected.sum())


def test_what_a_learner_loses_to_is_met_most_often_and_a_newcomer_at_once():
    found = main_agents_opponents(["beaten", "exploits", "new"], [], 0.2, {"beaten": WON, "exploits": LOST, "new": NEW})
    expected = {"beaten": 0.01**2, "exploits": 0.99**2, "new": 0.5**2}
    assert found == pytest.approx({name: each / sum(expected.values()) for name, each in expected.items()})


@pytest.mark.parametrize(
    ("policies", "levels", "shares"),
    [
        (["a", "b"], ["novice", "expert"], {"a": 0.4, "b": 0.4, "novice": 0.1, "expert": 0.1}),
        ([], ["novice", "expert"], {"novice": 0.5, "expert": 0.5}),
        (["a"], [], {"a": 1.0}),
    ],
)
def test_levels_have_their_share_unless_there_is_nothing_else(policies, levels, shares):
    assert main_agents_opponents(policies, levels, 0.2, {}) == pytest.approx(shares)


def test_the_ends_of_the_share_of_levels():
    assert main_agents_opponents(["a"], ["novice"], 0.0, {}) == {"a": 1.0}
    assert main_agents_opponents(["a"], ["novice"], 1.0, {}) == {"novice": 1.0}
    with pytest.raises(ConfigError, match="no other policy and no scripted level"):
        main_agents_opponents([], [], 0.2, {})
