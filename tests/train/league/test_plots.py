import xml.etree.ElementTree as ElementTree

import matplotlib
import pytest

from echelon_train.league import plots
from echelon_train.league.ratings.bradley_terry import bradley_terry
from echelon_train.league.ratings.glicko2 import Rating
from echelon_train.league.ratings.nash_averaging import nash_average
from echelon_train.league.ratings.payoffs import payoffs
from train.league.drawn import names

LONG = "a-member-with-a-name-that-is-too-long"
SCORES = {("a", "b"): [0.75] * 40, (LONG, "b"): [1.0, 0.75] * 20, ("a", LONG): [1.0, 0.75] * 20}
TABLE = payoffs(["a", "b", LONG, "idle"], SCORES)
RATINGS = {"a": Rating(1500.0, 100.0), "b": Rating(1300.0, 50.0), LONG: Rating(1700.0, 60.0), "idle": Rating(1400.0)}


def texts(path, figure):
    """The texts of a picture in their order."""
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        plots.save(path, figure)
    return ["".join(text.itertext()) for text in ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}text")]


def test_the_matrix_has_every_score_and_stands_beside_the_ratings(tmp_path):
    words = texts(tmp_path / "m.svg", plots.payoff_matrix(TABLE, RATINGS, title="a title"))
    short = "a-member-wit…is-too-long"
    assert words.count(short) == 2 and LONG not in words
    assert words.index(short) < words.index("a") < words.index("b") < words.index("a title")
    assert {"75", "25", "88", "12", "1500 [1304, 1696]"} <= {*words}
    assert sum("–" in word for word in words) == 6
    assert not any("framed" in word for word in words)


def test_an_unknown_format_leaves_nothing_behind(tmp_path):
    plots.save(tmp_path / "m.png", plots.payoff_matrix(payoffs(["a"], {}), RATINGS))
    with pytest.raises(ValueError, match="nonsense"):
        plots.save(tmp_path / "n.nonsense", plots.nash_mixture(nash_average(TABLE, RATINGS)))
    assert [path.name for path in tmp_path.iterdir()] == ["m.png"]


def test_a_picture_of_many_members_shows_the_best(monkeypatch):
    """At 0.3 inches each, the matrix of a thousand would have two thousand million pixels."""
    monkeypatch.setattr(plots, "MOST_DRAWN", 40)
    table = payoffs(names(60), {("member-0", "member-4"): [1.0, 0.5], ("member-1", "member-3"): [0.5]})
    ratings = {name: Rating(1500.0 + 10 * number) for number, name in enumerate(names(60))}
    matrix = plots.payoff_matrix(table, ratings, title="t")
    strengths, nash = bradley_terry(table), nash_average(table, ratings)
    for figure in (matrix, plots.strength_intervals(strengths, title="t"), plots.nash_mixture(nash, title="t")):
        assert figure.get_suptitle() == "t (the best 40 of 60 members)"
    assert max(matrix.get_size_inches()) < 20 and not matrix.axes[1].texts, "colours without numbers"
    lines = plots.rating_history({1: ratings}).axes[0].get_lines()
    assert [line.get_label().split()[0] for line in lines[:2]] == ["member-59", "member-58"] and len(lines) == 40
