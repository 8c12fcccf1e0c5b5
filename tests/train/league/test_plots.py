import numpy as np

from echelon_train.league import plots
from echelon_train.league.ratings.glicko2 import Rating
from echelon_train.league.store.members import Member
from train.league.drawn import names


def test_the_history_has_a_line_and_a_band_for_each_member():
    history = {
        3: {"a": Rating(1600.0, 80.0), "b": Rating(1500.0, 90.0)},
        1: {"a": Rating(1500.0, 300.0)},
        2: {"a": Rating(1550.0, 100.0), "b": Rating(1450.0, 200.0)},
    }
    figure = plots.rating_history(history)
    (axes,) = figure.axes
    first, second = axes.lines
    assert first.get_xydata().tolist() == [[1, 1500], [2, 1550], [3, 1600]]
    assert second.get_xydata().tolist() == [[2, 1450], [3, 1500]]
    band = axes.collections[0].get_paths()[0].vertices
    assert (band[:, 1].min(), band[:, 1].max()) == (1200, 1800)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a  1600 ± 80", "b  1500 ± 90"]
    many = plots.rating_history({1: {name: Rating(1000.0 + 10 * n) for n, name in enumerate(names(40))}})
    assert len({(line.get_color(), line.get_linestyle()) for line in many.axes[0].lines}) == 40


def member(name, kind="main", parent=None, age=0):
    return Member(0, name, kind, "active", parent, age, None, None, "", {})


def test_the_curve_joins_members_to_their_parents():
    members = [
        member("novice", "scripted"), member("e-1", "exploiter", age=150), member("m-1", age=100),
        member("m-2", parent="m-1", age=200), member("m-3", parent="m-2", age=300), member("old", "past", "gone", 50),
    ]  # fmt: skip
    ratings = {each.name: Rating(1500.0 + each.age, 50.0) for each in members}
    (axes,) = plots.rating_curve(members, ratings).axes
    joined = [line.get_xydata().tolist() for line in axes.lines if line.get_linestyle() == "-"]
    assert joined == [[[100, 1600], [200, 1700]], [[200, 1700], [300, 1800]]]
    levels = [[*line.get_ydata()] for line in axes.lines if line.get_linestyle() == "--"]
    assert levels == [[1500, 1500]]
    assert {text.get_text() for text in axes.texts} == {"novice", "e-1", "m-3", "old"}
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["main", "exploiter", "past"]
    whiskers = axes.containers[0].lines[2][0].get_segments()
    np.testing.assert_allclose(whiskers[0], [[100, 1600 - 98], [100, 1600 + 98]], atol=0.01)
