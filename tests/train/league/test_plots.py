import xml.etree.ElementTree as ElementTree

import matplotlib
import numpy as np
import pytest
from PIL import Image

from echelon_train.league import plots
from echelon_train.league.plots import (
    save_nash_average,
    save_payoff_matrix,
    save_rating_curve,
    save_rating_history,
    save_strengths,
)
from echelon_train.league.ratings.bradley_terry import bradley_terry
from echelon_train.league.ratings.glicko2 import Rating
from echelon_train.league.ratings.nash_averaging import nash_average
from echelon_train.league.ratings.payoffs import mispredictions, payoffs
from echelon_train.league.store.members import Member
from train.league.drawn import names

LONG = "a-member-with-a-name-that-is-too-long"
SCORES = {("a", "b"): [0.75] * 40, (LONG, "b"): [1.0, 0.75] * 20, ("a", LONG): [1.0, 0.75] * 20}
TABLE = payoffs(["a", "b", LONG, "idle"], SCORES)
RATINGS = {"a": Rating(1500.0, 100.0), "b": Rating(1300.0, 50.0), LONG: Rating(1700.0, 60.0), "idle": Rating(1400.0)}


@pytest.fixture
def svg(tmp_path):
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        yield tmp_path / "picture.svg"


@pytest.fixture
def figures(monkeypatch):
    """The figures that are made."""
    made = []

    class Figure(matplotlib.figure.Figure):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            made.append(self)

    monkeypatch.setattr(plots, "Figure", Figure)
    return made


def texts(path):
    """The texts of an SVG."""
    return ["".join(text.itertext()) for text in ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}text")]


def row_names(axes):
    return [label.get_text() for label in axes.get_yticklabels()]


def test_the_matrix_has_every_score_and_stands_beside_the_ratings(svg):
    save_payoff_matrix(svg, TABLE, RATINGS, title="a title")
    words = texts(svg)
    short = "a-member-wit…is-too-long"
    assert words.count(short) == 2 and LONG not in words
    assert words.index(short) < words.index("a") < words.index("b") < words.index("a title")
    for number in ("75", "25", "88", "12"):
        assert number in words
    assert sum("–" in word for word in words) == 6
    assert "1500 [1304, 1696]" in words
    assert not any("framed" in word for word in words)


def test_the_highest_rating_is_first_and_pairs_that_contradict_the_ratings_are_framed(tmp_path, figures):
    found = mispredictions(TABLE, RATINGS)
    assert [(pair.first, pair.second) for pair in found] == [("a", LONG)]
    save_payoff_matrix(tmp_path / "m.png", TABLE, RATINGS, mispredicted=found)
    scale, matrix, *_ = figures[0].axes
    assert row_names(scale)[1:] == ["a", "idle", "b"] and scale.get_ylim() == (3.5, -0.5)
    frames = [each for each in matrix.patches if not each.get_fill()]
    assert sorted((round(each.get_x()), round(each.get_y())) for each in frames) == [(0, 1), (1, 0)]
    (image,) = matrix.get_images()
    assert image.get_array()[0, 1] == pytest.approx(0.125)


def test_a_large_league_has_colours_without_numbers(tmp_path, figures):
    members = names(34)
    table = payoffs(members, {(a, b): [0.5, 1.0] for a in members[:12] for b in members[12:]})
    save_payoff_matrix(tmp_path / "m.png", table, {name: Rating() for name in members})
    assert not figures[0].axes[1].texts
    with Image.open(tmp_path / "m.png") as picture:
        assert max(picture.size) < 3000


def test_the_history_has_a_line_and_a_band_for_each_member(tmp_path, figures):
    history = {
        3: {"a": Rating(1600.0, 80.0), "b": Rating(1500.0, 90.0)},
        1: {"a": Rating(1500.0, 300.0)},
        2: {"a": Rating(1550.0, 100.0), "b": Rating(1450.0, 200.0)},
    }
    save_rating_history(tmp_path / "h.png", history, title="a title")
    (axes,) = figures[0].axes
    first, second = axes.lines
    assert first.get_xydata().tolist() == [[1, 1500], [2, 1550], [3, 1600]]
    assert second.get_xydata().tolist() == [[2, 1450], [3, 1500]]
    band = axes.collections[0].get_paths()[0].vertices
    assert (band[:, 1].min(), band[:, 1].max()) == (1200, 1800)
    assert [text.get_text() for text in figures[0].legends[0].get_texts()] == ["a  1600 ± 80", "b  1500 ± 90"]


def test_lines_of_many_members_differ(tmp_path, figures):
    history = {period: {name: Rating(1000.0 + 10 * place) for place, name in enumerate(names(40))} for period in (0, 1)}
    save_rating_history(tmp_path / "h.png", history)
    lines = figures[0].axes[0].lines
    assert len({(line.get_color(), line.get_linestyle()) for line in lines}) == 40


@pytest.mark.parametrize("history", [{}, {1: {}}])
def test_an_empty_history_is_refused(tmp_path, history):
    with pytest.raises(ValueError, match="at least one rating"):
        save_rating_history(tmp_path / "h.png", history)


def member(name, kind="main", parent=None, age=0):
    return Member(0, name, kind, "active", parent, age, None, None, "", {})


def test_the_curve_joins_members_to_their_parents(tmp_path, figures):
    members = [
        member("novice", "scripted"), member("e-1", "main_exploiter", age=150), member("m-1", age=100),
        member("m-2", parent="m-1", age=200), member("m-3", parent="m-2", age=300), member("old", "past", "gone", 50),
    ]  # fmt: skip
    ratings = {each.name: Rating(1500.0 + each.age, 50.0) for each in members}
    save_rating_curve(tmp_path / "c.png", members, ratings, title="a title")
    (axes,) = figures[0].axes
    joined = [line.get_xydata().tolist() for line in axes.lines if line.get_linestyle() == "-"]
    assert joined == [[[100, 1600], [200, 1700]], [[200, 1700], [300, 1800]]]
    levels = [[*line.get_ydata()] for line in axes.lines if line.get_linestyle() == "--"]
    assert levels == [[1500, 1500]]
    assert {text.get_text() for text in axes.texts} == {"novice", "e-1", "m-3", "old"}
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["main", "main exploiter", "past"]
    whiskers = axes.containers[0].lines[2][0].get_segments()
    np.testing.assert_allclose(whiskers[0], [[100, 1600 - 98], [100, 1600 + 98]], atol=0.01)


def test_a_curve_without_policies_is_refused(tmp_path):
    with pytest.raises(ValueError, match="scripted players only"):
        save_rating_curve(tmp_path / "c.png", [member("novice", "scripted")], {"novice": Rating()})
    assert not list(tmp_path.iterdir())


def test_strengths_are_in_order_with_their_numbers(tmp_path, figures):
    strengths = bradley_terry(TABLE, anchor="b", anchor_strength=1000.0)
    save_strengths(tmp_path / "s.png", strengths)
    (axes,) = figures[0].axes
    order = np.argsort(-strengths.strength)
    assert [name[:4] for name in row_names(axes)] == [strengths.members[place][:4] for place in order]
    assert [text.get_text() for text in axes.texts] == [
        f"{strengths.strength[place]:.0f} [{strengths.low[place]:.0f}, {strengths.high[place]:.0f}]" for place in order
    ]
    assert "1000 [1000, 1000]" in [text.get_text() for text in axes.texts]


def test_the_nash_average_says_how_many_pairs_are_filled(svg, figures):
    average = nash_average(TABLE, RATINGS)
    save_nash_average(svg, average)
    weights, advantages = figures[0].axes
    assert row_names(weights)[0] == "a"
    assert weights.patches[0].get_width() == pytest.approx(1)
    assert [bar.get_width() for bar in advantages.patches] == sorted(np.round(average.advantage), reverse=True)
    words = texts(svg)
    assert {"100.0%", "0.0%", "0"} <= set(words) and "-0" not in words
    assert "3 of 6 pairs have not played: predicted by the ratings" in words
    played = payoffs(["a", "b"], {("a", "b"): [1.0, 1.0]})
    save_nash_average(svg, nash_average(played, RATINGS))
    assert not any("not played" in word for word in texts(svg))


def test_one_member_can_be_drawn(tmp_path):
    table = payoffs(["a"], {})
    save_payoff_matrix(tmp_path / "m.png", table, RATINGS)
    save_strengths(tmp_path / "s.png", bradley_terry(table))
    save_nash_average(tmp_path / "n.png", nash_average(table, RATINGS))
    save_rating_history(tmp_path / "h.png", {1: {"a": Rating()}})
    assert len(list(tmp_path.iterdir())) == 4


def test_an_unknown_format_leaves_nothing_behind(tmp_path):
    with pytest.raises(ValueError, match="nonsense"):
        save_strengths(tmp_path / "s.nonsense", bradley_terry(TABLE))
    assert not list(tmp_path.iterdir())


def test_a_picture_of_many_members_shows_the_best(tmp_path, monkeypatch):
    """At 0.3 inches each, the matrix of a thousand would have two thousand million pixels."""
    monkeypatch.setattr(plots, "MOST_DRAWN", 3)
    titles = []
    monkeypatch.setattr(plots, "_save", lambda path, figure: titles.append(figure.get_suptitle()))
    table = payoffs(names(5), {("member-0", "member-4"): [1.0, 0.5], ("member-1", "member-3"): [0.5]})
    ratings = {name: Rating(1500.0 + 10 * number) for number, name in enumerate(names(5))}
    plots.save_payoff_matrix(tmp_path / "a.png", table, ratings, title="t")
    plots.save_strengths(tmp_path / "b.png", bradley_terry(table), title="t")
    plots.save_nash_average(tmp_path / "c.png", nash_average(table, ratings), title="t")
    assert titles == ["t (the best 3 of 5 members)"] * 3
    history = plots.rating_history({1: ratings})
    assert [line.get_label().split()[0] for line in history.axes[0].get_lines()] == ["member-4", "member-3", "member-2"]
