import json

import pytest
from PIL import Image, ImageSequence

from echelon_env.cli import main
from echelon_train.cli.demo import format_demo
from echelon_train.demo import EVALUATION_SEED, run_demo
from echelon_train.errors import RunFolderError
from echelon_train.evaluation import Evaluation, play
from echelon_train.film import END_FRAMES, FPS, film_battle
from echelon_train.players import BLOCK, baseline_contender
from echelon_train.plots import save_learning_curve

from .small import small_battle, small_run


def test_the_demo_end_to_end(tmp_path, quiet):
    out = tmp_path / "demo"
    result = run_demo(small_run(), out, quiet, max_seconds=60.0, num_battles=2)
    document = json.loads((out / "demo.json").read_text())
    for name in ("untrained", "trained"):
        assert document[name]["battles"] == 2
        assert document[name]["seed"] == EVALUATION_SEED
        assert document[name]["opponent"] == "trivial"
        assert document[name]["action_mode"] == "sampled"
    with Image.open(result.curve) as picture:
        assert picture.format == "PNG"
    with Image.open(result.film) as film:
        assert film.format == "GIF"
        assert film.n_frames > 1
    text = format_demo(result, out)
    assert "untrained" in text
    assert str(result.film) in text
    assert "trained on 64 decisions" in text


def test_a_folder_in_use_is_refused_before_anything(tmp_path, quiet):
    (tmp_path / "x").write_text("")
    with pytest.raises(RunFolderError):
        run_demo(small_run(), tmp_path, quiet, max_seconds=1.0, num_battles=2)


def test_the_demos_lines_fit_80_columns(tmp_path, quiet):
    result = run_demo(small_run(), tmp_path / "demo", quiet, max_seconds=60.0, num_battles=2)
    for line in format_demo(result, "runs/demo").splitlines():
        assert len(line.replace(str(tmp_path), "runs")) <= 80


def test_a_film_shows_the_battle_that_was_evaluated(tmp_path):
    config = small_battle(max_steps=40, zone={"score_to_win": 2.0}, terrain={"size": 32})
    contender = baseline_contender("novice", config)
    number = BLOCK + 1
    decisions = None
    for step, battles in enumerate(play(contender, "trivial", config, 3, 0, number + 1)):
        if decisions is None and battles.battle_over[number]:
            decisions = step
    film_battle(tmp_path / "a.gif", contender, "trivial", config, seed=3, number=number, pixels=300)
    with Image.open(tmp_path / "a.gif") as film:
        assert film.width == 300
        milliseconds = sum(frame.info["duration"] for frame in ImageSequence.Iterator(film))
    assert milliseconds == pytest.approx(1000 * (1 + decisions + END_FRAMES) / FPS, abs=20)


def test_a_learning_curve_needs_no_battles(tmp_path):
    evaluation = Evaluation("untrained", "sampled", "novice", 0, (-1, -1), 1, None, None)
    save_learning_curve(tmp_path / "curve.png", [{"time/total_timesteps": 10}], [(0, evaluation)], "short")
    assert (tmp_path / "curve.png").stat().st_size > 0


def test_the_command_reports_a_folder_in_use(tmp_path, capsys):
    (tmp_path / "x").write_text("")
    assert main(["demo", "--out", str(tmp_path)]) == 2
    assert "never overwritten" in capsys.readouterr().err
