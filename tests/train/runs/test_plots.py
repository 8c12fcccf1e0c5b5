import json
import math

import numpy as np
import pytest
from PIL import Image

from echelon_train.errors import RunFolderError
from echelon_train.runs import metrics, plots
from echelon_train.runs.folder import read_metrics
from echelon_train.runs.plots import save_comparison, save_learning_curve, save_run_curves
from train.small import small_evaluation


def write_run(path, count=60, **changes):
    """A run's metrics: every line has `count` of them, in steps of 1,000 samples."""
    path.mkdir()
    lines = []
    for number in range(count):
        share = number / count
        line = {
            "time/total_timesteps": 1000 * (number + 1),
            "time/fps": 5000,
            "battle/win_rate": share,
            "battle/return": 10 * share,
            "train/entropy_loss": share - 9,
            "train/approx_kl": 0.01,
            "train/explained_variance": math.nan if number < 3 else share,
            "train/value_loss": math.exp(-share),
            "train/learning_rate": 1e-3 * (1 - share),
            "curriculum/scenario": "duel-open" if number < 30 else "duel",
        }
        if number % 20 == 0:
            line |= {"eval/win_rate": share, "eval/win_rate_low": share / 2, "eval/win_rate_high": (1 + share) / 2}
            line["eval/timesteps"] = number * 1000
        line |= changes
        lines.append({name: value for name, value in line.items() if value is not None})
    (path / "metrics.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines).replace("NaN", "null"))
    return path


@pytest.fixture
def figures(monkeypatch):
    """The figures that are made."""
    made = []
    make = plots._figure

    def keep(size):
        made.append(make(size))
        return made[-1]

    monkeypatch.setattr(plots, "_figure", keep)
    return made


def titles(figure):
    return [axes.get_title(loc="left") for axes in figure.axes if axes.get_visible()]


def test_a_runs_curves_are_one_picture(tmp_path, figures):
    path = save_run_curves(write_run(tmp_path / "run"))
    assert path == tmp_path / "run" / "curves.png"
    with Image.open(path) as picture:
        assert picture.width > picture.height > 500
    (figure,) = figures
    assert titles(figure) == ["win rate", *(curve.title for curve in plots._CURVES)]
    rates, _, entropy, *_ = figure.axes
    (errors,) = rates.containers
    np.testing.assert_allclose(errors.lines[0].get_ydata(), [0, 1 / 3, 2 / 3])
    np.testing.assert_allclose(errors.lines[0].get_xdata(), [0, 20_000, 40_000])  # not those of the lines
    assert entropy.lines[0].get_ydata()[0] == 9.0
    assert [text.get_text().strip() for text in rates.texts] == ["duel"]
    variance = figure.axes[4].lines[0]
    assert variance.get_xdata()[0] == 4000
    assert np.isfinite(variance.get_ydata()).all()


def test_metrics_that_are_absent_are_left_out(tmp_path, figures):
    run = write_run(tmp_path / "run", **{"train/approx_kl": None, "battle/win_rate": None, "eval/win_rate": None})
    save_run_curves(run)
    assert len(titles(figures[0])) == len(plots._CURVES)
    assert not any("KL" in title for title in titles(figures[0]))


def test_opponents_and_blocks_of_labels_are_drawn_together_if_there_are_several(tmp_path, figures):
    opponents = {"opponent/expert/win_rate": 0.25, "opponent/novice/win_rate": 0.75, "opponent/novice/battles": 9}
    save_run_curves(write_run(tmp_path / "run", **opponents, **{"train/kickstart_loss_motion": 1.5}))
    (figure,) = figures
    assert titles(figure)[-1] == "win rate by opponent"
    assert len(titles(figure)) == 2 + len(plots._CURVES)
    found = {line.get_label(): line.get_ydata()[0] for line in figure.axes[len(titles(figure)) - 1].lines[:2]}
    assert found == {"expert": 0.25, "novice": 0.75}


def test_a_run_that_has_logged_nothing_has_a_picture_of_that(tmp_path, figures):
    save_run_curves(write_run(tmp_path / "run", count=0))
    assert titles(figures[0]) == ["win rate"]


def test_a_long_run_is_smoothed_without_a_shift(tmp_path, figures):
    save_run_curves(write_run(tmp_path / "run", count=500))
    pale, bold = figures[0].axes[1].lines[:2]
    inner = slice(20, -20)
    np.testing.assert_allclose(bold.get_ydata()[inner], pale.get_ydata()[inner], atol=0.02)


def test_groups_are_compared_by_the_median_of_their_seeds(tmp_path, figures):
    runs = [read_metrics(write_run(tmp_path / str(seed), 40 + 10 * seed, **{"train/x": seed})) for seed in range(4)]
    save_comparison(tmp_path / "c.png", {"ours": runs[:3], "stock": runs[3:]}, "train/x")
    assert (tmp_path / "c.png").stat().st_size > 0
    (axes,) = figures[0].axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["ours, median of 3 seeds", "stock"]
    median = axes.lines[3]
    assert set(median.get_ydata()) == {1.0}
    assert (min(median.get_xdata()), max(median.get_xdata())) == (1000, 40_000)
    assert len(axes.lines) == 3 + 1 + 1 + 1


def test_a_comparison_of_what_was_not_logged_is_refused(tmp_path):
    run = read_metrics(write_run(tmp_path / "run"))
    with pytest.raises(ValueError, match="a run of 'ours' has logged no 'train/kl'"):
        save_comparison(tmp_path / "c.png", {"ours": [run]}, "train/kl")
    assert not (tmp_path / "c.png").exists()


def test_metrics_that_cannot_be_read_are_refused(tmp_path):
    (tmp_path / "metrics.jsonl").write_text("no\n")
    with pytest.raises(RunFolderError):
        save_run_curves(tmp_path)


def test_a_learning_curve_has_the_evaluations_with_their_intervals(tmp_path, figures):
    evaluation = small_evaluation("trained", (1, 1, -1, -1))
    metrics = [{"time/total_timesteps": 10 * k, "battle/win_rate": k / 10} for k in range(5)]
    save_learning_curve(tmp_path / "curve.png", metrics, [(0, evaluation), (40, evaluation)], "short")
    (errors,) = figures[0].axes[0].containers
    np.testing.assert_allclose(errors.lines[0].get_ydata(), [0.5, 0.5])
    (bars,) = errors.lines[2]
    np.testing.assert_allclose(bars.get_segments()[1][:, 1], [evaluation.wins.low, evaluation.wins.high])


def test_a_learning_curve_needs_no_battles(tmp_path):
    save_learning_curve(tmp_path / "curve.png", [{"time/total_timesteps": 10}], [], "short")
    assert (tmp_path / "curve.png").stat().st_size > 0


def test_evaluations_lie_where_they_were_made_and_those_of_old_runs_at_their_lines():
    lines = [{"time/total_timesteps": 20, "eval/win_rate": 0.25, "eval/timesteps": 10, "battle/win_rate": 0.5}]
    assert [each.tolist() for each in metrics.points(lines, "eval/win_rate")] == [[10.0], [0.25]]
    assert [each.tolist() for each in metrics.points(lines, "battle/win_rate")] == [[20.0], [0.5]]
    del lines[0]["eval/timesteps"]
    assert [each.tolist() for each in metrics.points(lines, "eval/win_rate")] == [[20.0], [0.25]]
