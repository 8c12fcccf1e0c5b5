"""The draws of the battles of submissions that are replayed."""

from collections import Counter
from dataclasses import replace

import pytest

from echelon_env.config.schema import ConfigError
from echelon_env.evaluate import freeze_suite
from echelon_env.evaluate.submission import Draw, Method, drawn_battles
from evaluate.submissions import made_submission

SCENARIO, OPPONENTS, MAPS = "duel-open", ("trivial", "novice", "competent"), 3


@pytest.fixture(scope="module")
def suite():
    return freeze_suite("small", [SCENARIO], OPPONENTS, MAPS)


@pytest.fixture(scope="module")
def large():
    """A submission with 48 battles, all won."""
    suite = freeze_suite("large", [SCENARIO], OPPONENTS, 8)
    return made_submission(suite, {SCENARIO: [[(1, 1)] * 8] * 3})


def test_the_draw_follows_from_nonce_and_results(large):
    drawn = drawn_battles(large, Draw(32, "x"))
    assert len(set(drawn)) == 32
    assert drawn_battles(replace(large, method=Method("Other")), Draw(32, "x")) == drawn
    assert set(drawn_battles(large, Draw(32, "y"))) != set(drawn)
    assert set(drawn_battles(replace(large, identity={"steps": 1}), Draw(32, "x"))) != set(drawn)
    assert drawn_battles(large, Draw(8, "x")) == drawn[:8]
    assert set(drawn_battles(large, Draw(99, "x"))) == set(drawn_battles(large))
    assert len(drawn_battles(large)) == 48
    suite = freeze_suite("two", [SCENARIO, "duel"], ["novice"], 4)
    each = drawn_battles(made_submission(suite, {name: [[(1, 1)] * 4] for name in (SCENARIO, "duel")}), Draw(3, "x"))
    assert Counter(key.scenario for key in each) == {SCENARIO: 3, "duel": 3}, "each scenario has its draw"


@pytest.mark.parametrize(("battles", "nonce"), [(0, "x"), (2.5, "x"), (1, ""), (1, "a b"), (1, "\n"), (1, "x" * 65)])
def test_bad_draws_are_refused(battles, nonce):
    with pytest.raises(ConfigError, match=r"^(battles|nonce): expected"):
        Draw(battles, nonce)


def test_lost_battles_are_not_drawn(suite):
    lost = made_submission(suite, {SCENARIO: [[(1, -1), (0, -1), (-1, -1)], *[[(-1, -1)] * MAPS] * 2]})
    for draw in (None, Draw(9, "x")):
        assert {(key.opponent, key.number) for key in drawn_battles(lost, draw)} == {("trivial", 0), ("trivial", 2)}
