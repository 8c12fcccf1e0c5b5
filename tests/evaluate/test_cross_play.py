from __future__ import annotations

import numpy as np
import pytest

from echelon_env.evaluate.cross_play import cross_play
from echelon_env.evaluate.statistics import map_scores, score_interval
from evaluate.made import made_match

WIN, DRAW, LOSS = 1, 0, -1


def test_cross_play_has_every_cell_and_its_mirror_image() -> None:
    duel = made_match("a", "b", [(WIN, WIN), (WIN, LOSS), (DRAW, WIN)])
    other = made_match("c", "a", [(LOSS, DRAW), (LOSS, LOSS)])
    play = cross_play([duel, other])
    assert play.players == ("a", "b", "c")
    matrix = play.scenarios["duel"]
    assert matrix.wins.tolist() == [[0, 4, 3], [1, 0, 0], [0, 0, 0]]
    assert matrix.draws.tolist() == [[0, 1, 1], [1, 0, 0], [1, 0, 0]]
    assert (matrix.losses == matrix.wins.T).all()
    nan = np.nan
    np.testing.assert_allclose(matrix.score, [[nan, 0.75, 0.875], [0.25, nan, nan], [0.125, nan, nan]])
    np.testing.assert_allclose(matrix.low, 1 - matrix.high.T)
    interval = score_interval({"duel": map_scores(duel)})
    assert interval.estimate == matrix.score[0, 1] == 0.75
    assert [interval.low, interval.high] == pytest.approx([matrix.low[0, 1], matrix.high[0, 1]])


def test_cross_play_pools_scenarios_with_equal_weight() -> None:
    duel = made_match("a", "b", [(WIN, WIN)] * 3 + [(WIN, LOSS)])
    skirmish = made_match("b", "a", [(WIN, WIN), (WIN, LOSS)], scenario="skirmish", maps=4)
    apart = made_match("a", "c", [(WIN, WIN)])
    play = cross_play([duel, skirmish, apart])
    assert list(play.scenarios) == ["duel", "skirmish"]
    assert play.pooled.wins[0, 1] == 7 + 1
    pooled = score_interval({"duel": map_scores(duel), "skirmish": 1 - map_scores(skirmish)})
    assert [pooled.low, pooled.high] == pytest.approx([play.pooled.low[0, 1], play.pooled.high[0, 1]])
    assert play.pooled.score[0, 1] == pooled.estimate == (0.875 + 0.25) / 2
    assert np.isnan(play.pooled.score[0, 2]) and play.pooled.wins[0, 2] == 0
    assert play.scenarios["duel"].score[0, 2] == 1


def test_scenarios_that_share_seeds_are_one_sample_in_the_pooled_matrix() -> None:
    outcomes = [(WIN, WIN), (WIN, LOSS), (LOSS, LOSS), (WIN, DRAW), (WIN, WIN), (LOSS, WIN)]
    alike = cross_play([made_match("a", "b", outcomes, scenario=name) for name in ("duel", "skirmish")])
    for field in ("score", "low", "high"):  # a copy adds no information
        np.testing.assert_allclose(getattr(alike.pooled, field), getattr(alike.scenarios["duel"], field))


def test_cross_play_pools_the_matches_of_a_pair() -> None:
    parts = [made_match("a", "b", [(WIN, WIN), (LOSS, LOSS)]), made_match("b", "a", [(WIN, LOSS)], maps=2)]
    whole = made_match("a", "b", [(WIN, WIN), (LOSS, LOSS), (LOSS, WIN)])
    for field in ("wins", "losses", "score", "low", "high"):
        ours, theirs = (getattr(cross_play(matches).pooled, field) for matches in (parts, [whole]))
        np.testing.assert_array_equal(ours, theirs)
    for again in (parts[0], made_match("b", "a", [(DRAW, DRAW)], maps=1)):
        with pytest.raises(ValueError, match="played more than once on a map of 'duel'"):
            cross_play([*parts, again])
    with pytest.raises(ValueError, match="at least one match"):
        cross_play([])
    itself = cross_play([made_match("a", "a", [(WIN, WIN), (WIN, LOSS)])]).pooled
    assert (itself.wins.item(), itself.losses.item(), itself.score.item()) == (3, 1, 0.75)
