import itertools

import numpy as np
import pytest

from echelon_train.league.analysis import Analysis, warnings
from echelon_train.league.ratings import cycles
from echelon_train.league.ratings.bradley_terry import bradley_terry
from echelon_train.league.ratings.cycles import CycleScore, cycle_score
from echelon_train.league.ratings.payoffs import payoffs
from train.league.drawn import ahead, circle, draw_league

WON, LOST = [1.0, 1.0, 0.75, 1.0] * 5, [0.0, 0.0, 0.25, 0.0] * 5


def scored(table):
    return cycle_score(table, bradley_terry(table))


def test_rock_paper_scissors_is_entirely_cyclic():
    found = scored(payoffs(["a", "b", "c"], {("a", "b"): WON, ("b", "c"): WON, ("a", "c"): LOST}))
    assert found.score == pytest.approx(1, abs=1e-3)
    assert found.significant and found.p_value == 0.001
    assert found.loops == 1
    assert found.triangle == ("a", "b", "c")


def test_a_league_without_cycles_has_none():
    found = scored(draw_league(np.random.default_rng(0), ahead(150.0 * np.arange(7)), 60))
    assert found.score < 0.02
    assert not found.significant
    assert found.loops == 15
    assert found.triangle is None


def test_equals_have_no_cycles_that_are_more_than_noise():
    rng = np.random.default_rng(1)
    found = [scored(draw_league(rng, np.zeros((6, 6)), 20)) for _ in range(20)]
    assert sum(each.significant for each in found) <= 3


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


def test_noise_adds_nothing_to_the_score_of_a_mixture():
    rng = np.random.default_rng(3)
    found = [scored(draw_league(rng, mixture(rng, 0.5), 6)).score for _ in range(20)]
    assert np.mean(found) == pytest.approx(0.5, abs=0.12)


def test_without_a_closed_loop_there_is_no_score():
    found = scored(payoffs(["a", "b", "c", "d"], {("a", "b"): WON, ("b", "c"): LOST, ("c", "d"): WON}))
    assert (found.score, found.p_value, found.loops, found.triangle) == (0.0, 1.0, 0, None)
    empty = scored(payoffs(["a", "b"], {}))
    assert (empty.score, empty.loops) == (0.0, 0)


def test_a_loop_of_four_is_found_though_no_three_have_all_played():
    scores = {("a", "b"): WON, ("b", "c"): WON, ("c", "d"): WON, ("d", "a"): WON}
    found = scored(payoffs(["a", "b", "c", "d"], scores))
    assert found.loops == 1 and found.significant
    assert found.score == pytest.approx(1, abs=1e-3)
    assert found.triangle is None


def test_games_that_vary_less_say_more():
    steady, lively = [0.75] * 4, [1.0, 1.0, 1.0, 0.0]
    found = [
        scored(payoffs(["a", "b", "c"], {("a", "b"): each, ("b", "c"): each, ("c", "a"): each})).p_value
        for each in (steady, lively)
    ]
    assert found[0] < 0.01 < 0.05 < found[1]


def test_two_groups_without_games_between_them_both_count():
    scores = {("a", "b"): WON, ("b", "c"): WON, ("a", "c"): LOST, ("d", "e"): WON, ("e", "f"): WON, ("d", "f"): WON}
    found = scored(payoffs(list("abcdef"), scores))
    assert found.loops == 2 and found.significant
    assert 0 < found.score < 1


def test_the_clearest_triangle_is_named_from_the_first_in_order():
    clear, close = [1.0] * 20, [1.0] * 15 + [0.0] * 5
    scores = {("b", "c"): clear, ("c", "d"): clear, ("b", "d"): [0.0] * 20}
    scores |= {("a", "b"): close, ("c", "a"): close, ("a", "d"): [0.5] * 20}
    assert scored(payoffs(list("abcd"), scores)).triangle == ("b", "c", "d")
    few = {pair: each[:1] for pair, each in scores.items()}
    assert scored(payoffs(list("abcd"), few)).triangle is None


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
    found = cycles._triangle(table)
    assert found == (None if clearest <= 0.5 else tuple(table.members[place] for place in expected))


def test_a_large_league_is_simulated_in_blocks_and_less_often(monkeypatch):
    table = draw_league(np.random.default_rng(4), mixture(np.random.default_rng(2), 0.5), 20)
    whole = scored(table)
    sizes = []
    simulate = cycles._simulate
    monkeypatch.setattr(cycles, "_simulate", lambda *arguments: sizes.append(arguments[-1]) or simulate(*arguments))
    monkeypatch.setattr(cycles, "_MOST_NUMBERS", 36 * 40)  # of the scores of the 36 pairs
    found = scored(table)
    assert sizes == [40, 40, 19] and sum(sizes) == cycles._LEAST_SAMPLES
    assert found.score == pytest.approx(whole.score, abs=0.02) and found.p_value == 1 / 100
    assert (found.loops, found.triangle) == (whole.loops, whole.triangle)


def test_strengths_of_others_are_refused():
    strengths = bradley_terry(payoffs(["a", "c"], {}))
    with pytest.raises(ValueError, match="strengths: expected those of"):
        cycle_score(payoffs(["a", "b"], {}), strengths)


@pytest.mark.slow
@pytest.mark.parametrize("alike", [0.0, 1.0])
@pytest.mark.parametrize("games", [3, 20])
@pytest.mark.parametrize("neighbours", [2, 99])
def test_the_rate_of_false_alarms(alike, games, neighbours):
    rng = np.random.default_rng(5)
    found = []
    for _ in range(100):
        logits = ahead(rng.normal(0, 300, size=7))
        found.append(scored(draw_league(rng, logits, games, alike=alike, neighbours=neighbours)).significant)
    print(f"alike {alike}, {games} games, {neighbours} neighbours: {np.mean(found):.3f}")
    assert np.mean(found) <= 0.1


@pytest.mark.parametrize(
    ("triangle", "sentence"),
    [
        (("rock", "scissors", "paper"), "rock beats scissors, scissors beats paper, and paper beats rock."),
        (None, "No cycle of three members is certain by itself."),
    ],
)
def test_a_significant_cycle_is_said_with_its_members(triangle, sentence):
    members = {"mispredictions": [], "unexplained": [], "ratings": {}, "payoffs": None, "strengths": None}
    said = warnings(Analysis(**members, cycle=CycleScore(0.25, 0.004, 1, triangle)), "")
    assert said == [f"No ratings explain 25.0 % of the results (p = 0.004). {sentence}"]
    assert warnings(Analysis(**members, cycle=CycleScore(0.25, 0.2, 1, None)), "") == []
