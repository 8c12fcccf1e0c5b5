"""Pictures of metrics."""

import json
import math

import numpy as np
import pytest
from PIL import Image

from echelon_train.errors import RunFolderError
from echelon_train.runs import curves
from echelon_train.runs.curves import save_comparison, save_run_curves


def lines_of(count=60, **changes):
    """A run's metrics: lines in steps of 1,000 samples."""
    lines = []
    for number in range(count):
        share = number / count
        line = {
            "time/total_timesteps": 1000 * (number + 1), "time/fps": 5000, "battle/win_rate": share,
            "battle/return": 10 * share, "train/entropy_loss": share - 9, "train/approx_kl": 0.01,
            "train/explained_variance": None if number < 3 else share, "train/value_loss": math.exp(-share),
            "train/learning_rate": 1e-3 * (1 - share), "curriculum/scenario": "duel-open" if number < 30 else "duel",
        }  # fmt: skip
        if number % 20 == 0:
            line |= {"eval/win_rate": share, "eval/win_rate_low": share / 2, "eval/win_rate_high": (1 + share) / 2}
            line["eval/timesteps"] = number * 1000
        lines.append({name: value for name, value in (line | changes).items() if value is not None})
    return lines


def write_run(path, lines):
    path.mkdir()
    (path / "metrics.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


@pytest.fixture
def drawn(monkeypatch):
    """The charts of the pictures that are written, by title."""
    found, stock = {}, curves.save_picture

    def save_picture(path, title, charts, label):
        found.update({chart.title: chart for chart in charts if chart})
        stock(path, title, charts, label)

    monkeypatch.setattr(curves, "save_picture", save_picture)
    return found


def test_a_runs_curves_are_one_picture(tmp_path, drawn):
    opponents = {"opponent/$\\frac$/win_rate": 0.25, "opponent/novice/win_rate": 0.75}
    run = write_run(tmp_path / "run", lines_of(**opponents, **{"train/approx_kl": None}))
    save_run_curves(run)
    with Image.open(run / "curves.png") as picture:
        assert picture.width > picture.height > 500
    assert {*drawn} == {
        "win rate", "return", "win rate in training, by opponent", "entropy", "explained variance", "value loss",
        "learning rate", "samples per second",
    }  # fmt: skip
    training, evaluation = drawn["win rate"].lines
    assert evaluation.x.tolist() == [0, 20_000, 40_000], "not those of the lines"
    np.testing.assert_allclose(evaluation.interval, [[0, 1 / 6, 1 / 3], [1 / 2, 2 / 3, 5 / 6]])
    assert len(training.x) == 60 and drawn["win rate"].marks == [(31_000.0, "duel")]
    assert drawn["entropy"].lines[0].y[0] == 9.0 and drawn["explained variance"].lines[0].x[0] == 4000
    assert {line.label: line.y[0] for line in drawn["win rate in training, by opponent"].lines} == {
        "$\\frac$": 0.25, "novice": 0.75,
    }  # fmt: skip


def test_pictures_of_nothing_and_of_many_points(tmp_path, drawn):
    save_run_curves(write_run(tmp_path / "empty", []))
    assert drawn == {} and (tmp_path / "empty" / "curves.png").exists()
    save_run_curves(write_run(tmp_path / "long", lines_of(500)))
    (tmp_path / "long" / "metrics.jsonl").write_text("no\n")
    with pytest.raises(RunFolderError):
        save_run_curves(tmp_path / "long")


def test_seeds_are_compared_by_their_interquartile_mean(tmp_path, drawn):
    save_comparison(tmp_path / "c.png", "ours", {"ours": [lines_of(40 + 20 * seed) for seed in range(3)]})
    *pale, mean = drawn["win rate of evaluations"].lines
    assert [line.pale for line in pale] == [True] * 3 and mean.label == "ours, IQM of 3"
    assert (tmp_path / "c.png").stat().st_size > 0
