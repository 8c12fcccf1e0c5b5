"""The draws of the battles of submissions that are replayed."""

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from echelon_env.config.schema import ConfigError
from echelon_env.evaluate import evaluation_seed, freeze_suite
from echelon_env.evaluate.submission import Draw, Method, drawn_battles
from evaluate.submissions import made_submission
from project.test_docs import GENERATE

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


def test_draws_catch_as_much_as_the_page_states(suite):
    number, draws = GENERATE.NOT_LOST // (2 * len(OPPONENTS)) + 1, 150
    seeds = tuple(evaluation_seed(0, index) for index in range(number))
    frozen = replace(suite.scenarios[0], seeds=seeds, map_hashes=("0" * 64,) * number)
    outcomes = np.ones((len(OPPONENTS), number, 2), int)
    outcomes.ravel()[GENERATE.NOT_LOST :] = -1
    made = made_submission(replace(suite, scenarios=(frozen,)), {SCENARIO: outcomes.tolist()})
    proved = drawn_battles(made)
    assert len(proved) == GENERATE.NOT_LOST
    orders = [drawn_battles(made, Draw(max(GENERATE.DRAWN), str(nonce))) for nonce in range(draws)]
    rows = [line.strip("| ").split(" | ") for line in GENERATE.TABLES["draws"].splitlines()[2:]]
    assert [int(row[0]) for row in rows] == [*GENERATE.FALSE]
    for false, *cells in rows:
        lies = set(proved[-int(false) :])
        assert cells.pop() == "0"  # of all battles
        for drawn, cell in zip(GENERATE.DRAWN, cells, strict=True):
            chance = float(cell.removeprefix("< ").removesuffix(" %")) / 100
            passed = sum(lies.isdisjoint(order[:drawn]) for order in orders) / draws
            assert abs(passed - chance) < 4 * math.sqrt(max(chance * (1 - chance), 0.001) / draws)


@pytest.mark.parametrize(("battles", "nonce"), [(0, "x"), (2.5, "x"), (1, ""), (1, "a b"), (1, "\n"), (1, "x" * 65)])
def test_bad_draws_are_refused(battles, nonce):
    with pytest.raises(ConfigError, match=r"^(battles|nonce): expected"):
        Draw(battles, nonce)


def test_lost_battles_are_not_drawn(suite):
    lost = made_submission(suite, {SCENARIO: [[(1, -1), (0, -1), (-1, -1)], *[[(-1, -1)] * MAPS] * 2]})
    for draw in (None, Draw(9, "x")):
        assert {(key.opponent, key.number) for key in drawn_battles(lost, draw)} == {("trivial", 0), ("trivial", 2)}
