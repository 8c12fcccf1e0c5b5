import json
from dataclasses import replace

import pytest
from benchmarks import learning

from echelon_train.run_config import load_run_config


@pytest.mark.parametrize("name", learning.EXPERIMENTS)
def test_every_experiment_is_a_run(name):
    experiment = learning.EXPERIMENTS[name]
    config = load_run_config(experiment.config, experiment.changes)
    assert config.opponent == "novice"
    assert len(set(experiment.seeds)) == len(experiment.seeds) >= 1


TINY = {"steps": "200", "battles": "2", "ppo.minibatch": "64", "eval_every": "0", "maps": "2", "network.width": "8"}


@pytest.mark.parametrize("changes", [{}, {"stock": True}, {"fixed_map": True}, {"stock_entropy": True}])
def test_a_run_is_judged_and_written_down(changes, tmp_path, monkeypatch):
    monkeypatch.setattr(learning, "BATTLES", 40)
    monkeypatch.setattr(learning.BattlePolicy, "evaluate", learning.BattlePolicy.evaluate)  # is put back afterwards
    settings = {**TINY, "scenario": "duel-open", "battle.max_steps": "8", "opponent": "trivial"}
    tiny = replace(learning.Experiment("quickstart", 1, (1,), settings), **changes)
    monkeypatch.setitem(learning.EXPERIMENTS, "tiny", tiny)
    result = learning.run("tiny", 1, learning.folder(tmp_path, "tiny", 1))
    assert result["battles"] == 40
    assert 0.0 <= result["low"] <= result["wins"] <= result["high"] <= 1.0
    assert result["steps"] >= 128
    assert json.loads((tmp_path / "tiny-1" / learning.RESULT_FILE).read_text())["wins"] == result["wins"]
    assert learning.results(tmp_path, ["tiny"])[-1].startswith("| tiny | 1 |")


def test_an_unknown_experiment_is_refused(capsys):
    with pytest.raises(SystemExit):
        learning.main(["fixed-mop"])
    assert "did you mean 'fixed-map'" in capsys.readouterr().err
