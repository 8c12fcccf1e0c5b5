from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from echelon_env.evaluate.cross_play import cross_play
from echelon_env.evaluate.pictures import save_intervals, save_matrix
from echelon_env.evaluate.tables import shorten
from evaluate.made import made_match

matplotlib = pytest.importorskip("matplotlib")


def share(estimate: float, low: float, high: float) -> dict[str, float]:
    return {"estimate": estimate, "low": low, "high": high}


LONG = "runs/skirmish/checkpoints/0003000000"


@pytest.fixture(scope="module")
def played() -> dict:
    return cross_play(
        [
            made_match("weak", LONG, [(-1, -1)] * 50),
            made_match("weak", "even", [(1, -1)] * 20 + [(1, 1), (-1, -1), (-1, -1)]),
            made_match("weak", LONG, [(-1, -1), (-1, 0)] * 20, scenario="skirmish"),
            made_match("weak", "even", [(1, -1), (1, 1), (-1, 0)] * 10, scenario="skirmish"),
        ]
    )


def texts(path: Path) -> list[str]:
    """The texts of an SVG."""
    return ["".join(text.itertext()) for text in ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}text")]


@pytest.fixture
def svg(tmp_path: Path):
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        yield tmp_path / "picture.svg"


def test_matrix_has_every_number(played: dict, svg: Path) -> None:
    save_matrix(svg, played)
    words = texts(svg)
    assert {"duel", "skirmish", "mean of all scenarios", "weak", "even"} <= set(words)
    assert shorten(LONG, 24) in words and LONG not in words
    scores = [word for word in words if word.isdigit()]
    for share in ("0", "48", "12", "58", "6", "53"):  # of weak in each panel
        assert share in scores and str(100 - int(share)) in scores
    intervals = [word for word in words if "–" in word]
    assert len(intervals) == 3 * 4
    assert "0–7" in intervals and "93–100" in intervals
    low, high = (100 * played["pooled"][key][0][2] for key in ("low", "high"))
    assert f"{low:.0f}–{high:.0f}" in intervals
    save_matrix(svg, played, rows=["even", LONG])
    assert {word for word in texts(svg) if word in played["players"]} == {"even", "weak"}, (
        "with columns of their opponents"
    )


def test_intervals_have_a_row_each_and_a_column_for_every_metric(svg: Path) -> None:
    save_intervals(
        svg,
        {
            "win rate": {"a": share(0.5, 0.4, 0.6), LONG: share(0.996, 0.97, 1)},
            "interquartile mean": {"b": share(1, 1, 1), "a": share(0.004, 0, 0.05)},
        },
    )
    words = texts(svg)
    assert {"win rate", "interquartile mean"} <= set(words)
    assert [word for word in words if word in ("a", LONG, "b")] == ["a", LONG, "b"]
    numbers = [word for word in words if "[" in word]
    assert numbers == ["50 [40, 60]", "99.6 [97, 100]", "0.4 [0, 5]", "100 [100, 100]"]


def test_invalid_input_is_refused_and_nothing_is_written(played: dict, tmp_path: Path) -> None:
    for rows, got in ((["weak", "strong"], "strong"), ([], "none")):
        with pytest.raises(ValueError, match=f"rows: expected some of .*{got}"):
            save_matrix(tmp_path / "matrix.png", played, rows=rows)
    for intervals in ({}, {"win rate": {}}):
        with pytest.raises(ValueError, match="at least one interval"):
            save_intervals(tmp_path / "intervals.png", intervals)
    with pytest.raises(ValueError, match="Format 'gift' is not supported"):
        save_matrix(tmp_path / "matrix.gift", played)
    assert not list(tmp_path.iterdir())
