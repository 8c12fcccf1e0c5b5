import dataclasses

from PIL import Image

from echelon_env.replays import read_replay
from echelon_train.cli.demo import format_demo
from echelon_train.runs.curves import save_run_curves
from echelon_train.runs.demo import run_demo
from train.small import small_run


def test_the_demo_end_to_end(tmp_path, quiet, monkeypatch):
    monkeypatch.setattr("echelon_train.runs.run.save_run_curves", save_run_curves)  # other tests draw none
    out = tmp_path / "demo"
    result = run_demo(small_run(), out, quiet, num_battles=2)
    for evaluation in (result.before, result.after):
        (match,) = evaluation.matches
        assert (len(match.battles), match.second, match.action_modes[0]) == (2, "trivial", "sampled")
    with Image.open(result.film) as film:
        assert film.format == "GIF"
        assert film.n_frames > 1
    assert read_replay(result.page).first_difference() is None
    assert result.curve.is_file()
    assert "Learning curve" not in format_demo(dataclasses.replace(result, curve=None), out), "it cannot be drawn"
    text = format_demo(result, out)
    assert f"Learning curve   {result.curve}" in text
    assert "untrained" in text
    assert str(result.film) in text
    assert "trained on 64 decisions" in text
    assert all(len(line.replace(str(tmp_path), "runs")) <= 80 for line in text.splitlines())
    assert result.filmed in result.after.battles
    assert result.filmed.outcome == max(battle.outcome for battle in result.after.battles)
    assert [battle.seed for battle in result.before.battles] == [battle.seed for battle in result.after.battles]
