import json

import pytest
from PIL import Image, ImageSequence

from echelon_env import ConfigError
from echelon_env.cli import main
from echelon_env.evaluate import baseline, evaluation_seed, play_match
from echelon_env.replays import read_replay
from echelon_env.replays.films import END_SECONDS, SPEED, film_battle
from echelon_train.cli.demo import format_demo
from echelon_train.runs.demo import EVALUATION_SEED, run_demo
from train.small import small_battle, small_run


def test_the_demo_end_to_end(tmp_path, quiet):
    out = tmp_path / "demo"
    result = run_demo(small_run(), out, quiet, num_battles=2)
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
    assert read_replay(result.page).first_difference() is None
    text = format_demo(result, out)
    assert "untrained" in text
    assert str(result.film) in text
    assert "trained on 64 decisions" in text
    assert all(len(line.replace(str(tmp_path), "runs")) <= 80 for line in text.splitlines())
    assert result.filmed in result.after.battles
    assert result.filmed.outcome == max(battle.outcome for battle in result.after.battles)
    assert [battle.seed for battle in result.before.battles] == [battle.seed for battle in result.after.battles]


def test_an_odd_number_of_battles_is_refused_before_anything(tmp_path, quiet):
    with pytest.raises(ConfigError, match="battles: expected an even number"):
        run_demo(small_run(), tmp_path / "demo", quiet, num_battles=3)
    assert not (tmp_path / "demo").exists()


def test_a_film_shows_the_battle_that_was_evaluated(tmp_path):
    config = small_battle(max_steps=40, zone={"score_to_win": 2.0}, terrain={"size": 32})
    players = baseline("random"), baseline("novice")
    battle = play_match(*players, config, [evaluation_seed(3, k) for k in range(4)], scenario="duel").battles[5]
    decisions = battle.seconds / config.decision_seconds
    film_battle(tmp_path / "a.gif", *players, config, seed=battle.seed, side=battle.side, pixels=300)
    with Image.open(tmp_path / "a.gif") as film:
        assert film.width == 300
        milliseconds = sum(frame.info["duration"] for frame in ImageSequence.Iterator(film))
    seconds = (1 + decisions) * config.decision_seconds / SPEED + END_SECONDS
    assert milliseconds == pytest.approx(1000 * seconds, abs=20)


def test_the_command_reports_a_folder_in_use(tmp_path, capsys):
    (tmp_path / "x").write_text("")
    assert main(["demo", "--out", str(tmp_path)]) == 2
    assert "never overwritten" in capsys.readouterr().err
