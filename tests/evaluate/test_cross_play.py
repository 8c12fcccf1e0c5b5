from __future__ import annotations

import pytest

from echelon_env.evaluate.cross_play import cross_play
from echelon_env.evaluate.estimates import map_scores, score_interval
from evaluate.made import made_match

WIN, DRAW, LOSS = 1, 0, -1


def test_cross_play_has_every_cell_and_its_mirror_image() -> None:
    duel = made_match("a", "b", [(WIN, WIN), (WIN, LOSS), (DRAW, WIN)])
    other = made_match("c", "a", [(LOSS, DRAW), (LOSS, LOSS)])
    play = cross_play([duel, other])
    assert play["players"] == ["a", "b", "c"]
    panel = play["scenarios"]["duel"]
    assert panel["wins"] == [[None, 4, 3], [1, None, None], [0, None, None]]
    assert panel["draws"] == [[None, 1, 1], [1, None, None], [1, None, None]]
    assert panel["losses"] == [[None, 1, 0], [4, None, None], [3, None, None]]
    assert panel["score"] == [[None, 0.75, 0.875], [0.25, None, None], [0.125, None, None]]
    assert panel["low"][0][1:] == pytest.approx([1 - panel["high"][1][0], 1 - panel["high"][2][0]])
    interval = score_interval({"duel": map_scores(duel)})
    assert [panel[key][0][1] for key in ("score", "low", "high")] == pytest.approx(
        [interval.estimate, interval.low, interval.high]
    )


def test_cross_play_pools_scenarios_with_equal_weight() -> None:
    duel = made_match("a", "b", [(WIN, WIN)] * 3 + [(WIN, LOSS)])
    skirmish = made_match("b", "a", [(WIN, WIN), (WIN, LOSS)], scenario="skirmish", maps=4)
    play = cross_play([duel, skirmish, made_match("a", "c", [(WIN, WIN)])])
    assert list(play["scenarios"]) == ["duel", "skirmish"]
    pooled = score_interval({"duel": map_scores(duel), "skirmish": 1 - map_scores(skirmish)})
    assert pooled.estimate == (0.875 + 0.25) / 2
    expected = {"wins": 7 + 1, "score": pooled.estimate, "low": pooled.low, "high": pooled.high}
    assert {key: play["pooled"][key][0][1] for key in expected} == pytest.approx(expected)
    assert play["pooled"]["score"][0][2] is play["pooled"]["wins"][0][2] is None
    assert play["scenarios"]["duel"]["score"][0][2] == 1


def test_scenarios_that_share_seeds_are_one_sample_in_the_pooled_matrix() -> None:
    outcomes = [(WIN, WIN), (WIN, LOSS), (LOSS, LOSS), (WIN, DRAW), (WIN, WIN), (LOSS, WIN)]
    alike = cross_play([made_match("a", "b", outcomes, scenario=name) for name in ("duel", "skirmish")])
    for key in ("score", "low", "high"):  # a copy adds no information
        assert alike["pooled"][key][0][1] == pytest.approx(alike["scenarios"]["duel"][key][0][1])


def test_cross_play_pools_the_matches_of_a_pair() -> None:
    parts = [made_match("a", "b", [(WIN, WIN), (LOSS, LOSS)]), made_match("b", "a", [(WIN, LOSS)], maps=2)]
    whole = made_match("a", "b", [(WIN, WIN), (LOSS, LOSS), (LOSS, WIN)])
    assert cross_play(parts) == cross_play([whole])
    for again in (parts[0], made_match("b", "a", [(DRAW, DRAW)], maps=1)):
        with pytest.raises(ValueError, match="played more than once on a map of 'duel'"):
            cross_play([*parts, again])
    with pytest.raises(ValueError, match="at least one match"):
        cross_play([])
    itself = cross_play([made_match("a", "a", [(WIN, WIN), (WIN, LOSS)])])["pooled"]
    assert [itself[key] for key in ("wins", "losses", "score")] == [[[3]], [[1]], [[0.75]]]
