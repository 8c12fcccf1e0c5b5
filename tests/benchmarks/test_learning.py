import json
import signal
from dataclasses import replace
from types import SimpleNamespace

import pytest
from benchmarks.stock_training import SETTINGS

from benchmarks import learning, learning_page
from echelon_train.config.files import load_run_config


@pytest.mark.parametrize("name", learning.EXPERIMENTS)
def test_every_experiment_is_a_run(name):
    experiment = learning.EXPERIMENTS[name]
    config = load_run_config(experiment.config, experiment.changes)
    assert str(config.opponent) == "novice" or experiment.after or config.init or name == "imitation"
    assert not experiment.after or {*experiment.seeds} <= {*learning.EXPERIMENTS[experiment.after].seeds}
    assert experiment.stock is None or not experiment.stock.keys() - SETTINGS.keys()
    assert len(set(experiment.seeds)) == len(experiment.seeds) >= 1


TINY = {"steps": "200", "battles": "2", "ppo.batch_size": "64", "eval_every": "0", "maps": "2", "network.width": "8"}


@pytest.mark.parametrize(
    "changes", [{}, {"stock": {}}, {"stock": {}, "slim": True}, {"fixed_map": True}, {"stock_entropy": True}]
)
def test_a_run_is_judged_and_written_down(changes, tmp_path, monkeypatch):
    monkeypatch.setattr(learning, "BATTLES", 40)
    monkeypatch.setattr(learning.BattlePolicy, "evaluate", learning.BattlePolicy.evaluate)  # is put back afterwards
    settings = {**TINY, "scenario": "duel-open", "battle.max_steps": "8", "opponent": "trivial"}
    tiny = replace(learning.Experiment("quickstart", 10, (1,), settings), **changes)
    monkeypatch.setitem(learning.EXPERIMENTS, "tiny", tiny)
    result = learning.run("tiny", 1, learning.folder(tmp_path, "tiny", 1))
    assert result["battles"] == 40
    assert 0.0 <= result["low"] <= result["wins"] <= result["high"] <= 1.0
    assert result["steps"] >= 128
    assert json.loads((tmp_path / "tiny-1" / learning.RESULT_FILE).read_text())["wins"] == result["wins"]
    found = learning.results(tmp_path)
    assert found["tiny"][0]["wins"] == result["wins"]
    assert learning.table(found, ["tiny"]).splitlines()[-1].startswith("| tiny | 1 | 0.00M | 0 | 0 | - | ")
    points = learning_page.curve(tmp_path / "tiny-1", result)
    assert points[-1][0] == pytest.approx(result["seconds"] / 60, rel=0.3, abs=0.01)
    assert all(0.0 <= share <= 1.0 for _, share in points)


def test_a_run_of_the_command_line_is_judged(tmp_path, monkeypatch):
    monkeypatch.setattr(learning, "BATTLES", 4)
    settings = {**TINY, "scenario": "duel-open", "battle.max_steps": "8", "opponent": "trivial", "seed": "1"}
    monkeypatch.setitem(learning.EXPERIMENTS, "tiny", learning.Experiment("quickstart", 1, (1,), settings))
    out = learning.folder(tmp_path, "tiny", 1)
    learning.train(load_run_config("quickstart", settings), out, console=learning.Console(quiet=True))
    with pytest.raises(SystemExit, match="expected a run with seed 2, got 1"):
        learning.judge("tiny", 2, out)
    assert learning.main(["tiny", "--judge", "1", "--out", str(tmp_path)]) == 0
    (result,) = learning.results(tmp_path)["tiny"]
    assert result["steps"] >= 128
    assert result["seconds"] > 0
    monkeypatch.setattr(learning_page, "RUNS", tmp_path / "runs.json")
    for name in ("second", "first"):
        learning_page.keep({name: out})
    kept = json.loads(learning_page.RUNS.read_text())
    assert [*kept] == ["first", "second"]
    assert kept["first"]["config"]["battle.max_steps"] == 8
    assert kept["first"]["decisions_and_win_rate"][-1][0] == result["steps"]


def test_a_run_that_was_stopped_from_outside_has_no_result(tmp_path, monkeypatch):
    monkeypatch.setitem(learning.EXPERIMENTS, "tiny", learning.Experiment("quickstart", 5, (1,)))
    monkeypatch.setattr(learning, "train", lambda *_, **__: SimpleNamespace(steps=64))
    try:
        with pytest.raises(SystemExit, match="stopped from outside after 64 decisions"):
            learning.run("tiny", 1, tmp_path)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    assert not list(tmp_path.iterdir())


def test_results_are_added_to_those_kept(tmp_path):
    kept = {"duel": [{"seed": 1, "wins": 0.5, "curve": [[0, 0.2]]}, {"seed": 2, "wins": 0.6, "curve": []}]}
    for name, wins in (("duel", 0.7), ("duel-flat", 0.8)):
        run = learning.folder(tmp_path, name, 1)
        run.mkdir()
        config = {"seed": 1, "ppo": {"gamma": {"start": 0.5, "end": 0.5}}}
        (run / learning.RESULT_FILE).write_text(json.dumps({"seed": 1, "wins": wins, "config": config}))
    changed = {"config": {"seed": 1, "ppo.gamma.start": 0.5, "ppo.gamma.end": 0.5}}
    assert learning_page.merged(kept, tmp_path) == {
        "duel": [{"seed": 1, "wins": 0.7, "curve": [[0, 0.2]], **changed}, {"seed": 2, "wins": 0.6, "curve": []}],
        "duel-flat": [{"seed": 1, "wins": 0.8, "curve": [], **changed}],
    }


def test_a_run_to_keep_needs_a_name(capsys):
    with pytest.raises(SystemExit):
        learning_page.main(["--keep", "runs/duel"])
    assert "--keep: expected NAME=RUN, got runs/duel" in capsys.readouterr().err


def test_different_processors_are_told():
    def result(seed, processor):
        numbers = {"seed": seed, "steps": 1, "seconds": 60, "wins": 0.5, "low": 0.4, "high": 0.6}
        return numbers | {"machine": {"processor": processor}}

    more = {"elapsed": 150, "curve": [[0, 0.2], [1, 0.9]]}
    table = learning.table({"duel": [result(1, "A"), result(2, "A") | more]}, ["duel"])
    assert "processors" not in table
    assert "| duel | 1 | 0.00M | 1 | - | - | 50.0% [40%, 60%] |" in table
    assert "| duel | 2 | 0.00M | 1 | 2 | 55.0% | 50.0% [40%, 60%] |" in table
    table = learning.table({"duel": [result(1, "A"), result(2, "B")]}, ["duel"])
    assert table.endswith("Minutes are of different processors: duel 1 on A; duel 2 on B.")


def test_an_unknown_experiment_is_refused(capsys):
    with pytest.raises(SystemExit):
        learning.main(["fixed-mop"])
    assert "did you mean 'fixed-map'" in capsys.readouterr().err


def test_curves_that_there_are_are_drawn(tmp_path, monkeypatch):
    (tmp_path / "docs" / "pictures").mkdir(parents=True)
    monkeypatch.setattr(learning_page, "ROOT", tmp_path)
    found = {"duel": [{"curve": [[0.0, 0.1], [5.0, 0.9]]}, {"curve": []}], "unseen-maps": [{"curve": []}]}
    learning_page.draw(found)
    drawn = {picture.name for picture in (tmp_path / "docs" / "pictures").iterdir()}
    assert drawn == {"learning_duel.png", "learning_duel_entropy.png", "learning_duel_rewards.png"}


def test_the_page_is_that_of_the_results_kept():
    text = learning_page.PAGE.read_text()
    found = json.loads(learning_page.KEPT.read_text())
    assert learning_page.filled(text, found) == text, "run 'python -m benchmarks.learning_page'"
    assert sum(len(runs) for runs in found.values()) == text.count("%, ")  # every run is on the page
    with pytest.raises(ValueError, match="fixed-mop"):
        learning_page.filled("<!-- learning: fixed-map fixed-mop -->\n<!-- end -->", found)
