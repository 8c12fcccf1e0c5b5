import itertools

import numpy as np
import pytest

from echelon_train.league.analysis import Analysis, warnings
from echelon_train.league.ratings.bradley_terry import bradley_terry
from echelon_train.league.ratings.cycles import CycleScore, cycle_score
from echelon_train.league.ratings.payoffs import payoffs
from train.league.drawn import ahead, circle, draw_league

WON, LOST = [1.0, 1.0, 0.75, 1.0] * 5, [0.0, 0.0, 0.25, 0.0] * 5


def scored(table):
    return cycle_score(table, bradley_terry(table))


def test_a_league_without_cycles_has_none():
    found = scored(draw_league(np.random.default_rng(0), ahead(150.0 * np.arange(7)), 60))
    assert found.score < 0.02
    assert not found.significant
    assert found.loops == 15
    assert found.triangle is None


def mixture(rng, share):
    """Logits of nine members, of whose squared length a share is cyclic: the steps of a circle have no gradient."""
    rise, round_about = ahead(rng.normal(size=9)), circle(9, 1.0)
    np.testing.assert_allclose(round_about.sum(axis=1), 0)
    length = 40.0
    return sum(
        part * np.sqrt(of_it * length / np.square(part).sum())
        for part, of_it in ((rise, 1 - share), (round_about, share))
    )


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 0.75, 1.0])
def test_the_score_is_the_cyclic_share(share):
    rng = np.random.default_rng(2)
    found = [scored(draw_league(rng, mixture(rng, share), 80)).score for _ in range(6)]
    assert np.mean(found) == pytest.approx(share, abs=0.06)


def test_without_a_closed_loop_there_is_no_score():
    found = scored(payoffs(["a", "b", "c", "d"], {("a", "b"): WON, ("b", "c"): LOST, ("c", "d"): WON}))
    assert (found.score, found.p_value, found.loops, found.triangle) == (0.0, 1.0, 0, None)
    empty = scored(payoffs(["a", "b"], {}))
    assert (empty.score, empty.loops) == (0.0, 0)
    with pytest.raises(ValueError, match="strengths: expected those of"):
        cycle_score(payoffs(["a", "b"], {}), bradley_terry(payoffs(["a", "c"], {})))


def test_a_loop_of_four_is_found_though_no_three_have_all_played():
    scores = {("a", "b"): WON, ("b", "c"): WON, ("c", "d"): WON, ("d", "a"): WON}
    found = scored(payoffs(["a", "b", "c", "d"], scores))
    assert found.loops == 1 and found.significant
    assert found.score == pytest.approx(1, abs=1e-3)
    assert found.triangle is None


@pytest.mark.parametrize("seed", range(6))
def test_the_triangle_is_the_first_of_the_clearest(seed):
    """Against a search through all triples."""
    rng = np.random.default_rng(seed)
    table = draw_league(rng, rng.choice([-1.5, 1.5], (7, 7)), 4, neighbours=5)
    low = np.where(table.played, table.low, 0.0)
    triples = {triple: min(low[triple[i], triple[(i + 1) % 3]] for i in range(3)) for triple in
               itertools.permutations(range(7), 3)}  # fmt: skip
    clearest = max(triples.values())
    expected = next(triple for triple, value in triples.items() if value == clearest)
    assert scored(table).triangle == (None if clearest <= 0.5 else tuple(table.members[place] for place in expected))


def test_a_significant_cycle_is_said_with_its_members():
    members = {"mispredictions": [], "unexplained": [], "ratings": {}, "payoffs": None, "strengths": None}
    for triangle, sentence in (
        (("rock", "scissors", "paper"), "rock beats scissors, scissors beats paper, and paper beats rock."),
        (None, "No cycle of three members is certain by itself."),
    ):
        said = warnings(Analysis(**members, cycle=CycleScore(0.25, 0.004, 1, triangle)), "")
        assert said == [f"No ratings explain 25.0 % of the results (p = 0.004). {sentence}"]
    assert warnings(Analysis(**members, cycle=CycleScore(0.25, 0.2, 1, None)), "") == []
