"""Experiments of several seeds."""

import json

import numpy as np
import pytest
from PIL import Image

from echelon_env import ConfigError
from echelon_env.cli import main
from echelon_train.checkpoints.checkpoint import load_checkpoint
from echelon_train.cli.train import _report_seeds
from echelon_train.errors import NonFiniteError, RunFolderError
from echelon_train.runs import experiment as module
from echelon_train.runs.experiment import resume_seeds, train_seeds
from echelon_train.runs.folder import read_metrics, read_run_config
from echelon_train.runs.training import train
from echelon_train.tensor_files import weights_of
from train.resuming import QUIET
from train.small import small_run

CONFIG = small_run(eval_every=32, seed=5)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("seeds") / "experiment"


@pytest.fixture(scope="module")
def experiment(folder):
    return train_seeds(CONFIG, folder, 2, console=QUIET)


def test_each_seed_is_a_run_of_its_own(experiment, folder, tmp_path, quiet):
    assert [*experiment.win_rates] == ["5", "6"] and experiment.missing == []
    out = folder
    assert [read_run_config(out / f"seed-{seed}").seed for seed in (5, 6)] == [5, 6]
    alone = train(small_run(eval_every=32, seed=6), tmp_path / "alone", console=quiet)
    checkpoints = alone.checkpoint, out / "seed-6" / "checkpoints" / alone.checkpoint.name
    ours, theirs = (weights_of(load_checkpoint(each).policy) for each in checkpoints)
    assert all(np.array_equal(ours[name].numpy(), theirs[name].numpy()) for name in ours)
    for seed, win_rate in experiment.win_rates.items():
        assert read_metrics(out / f"seed-{seed}")[-1]["eval/win_rate"] == win_rate
    with Image.open(out / "curves.png") as picture:
        assert picture.format == "PNG"


def test_an_interrupted_experiment_continues(tmp_path, quiet, monkeypatch, experiment):
    done = []

    def interrupted(config, folder, **options):
        done.append(config.seed)
        if config.seed == 6:  # stops after its first evaluation, as Ctrl-C does
            return train(config, folder, should_continue=lambda steps, found: False, **options)
        return train(config, folder, **options)

    monkeypatch.setattr(module, "train", interrupted)
    first = train_seeds(CONFIG, tmp_path / "run", 2, console=quiet)
    assert (done, [*first.win_rates], first.missing) == ([5, 6], ["5"], [6])
    monkeypatch.undo()
    second = resume_seeds(tmp_path / "run", console=quiet)
    assert second.win_rates == experiment.win_rates and second.missing == []
    assert resume_seeds(tmp_path / "run", console=quiet).win_rates == experiment.win_rates  # nothing is left to do


def test_a_seed_that_diverges_is_reported_and_the_others_go_on(tmp_path, quiet, monkeypatch, experiment):
    def diverge(config, folder, **options):
        if config.seed == 5:
            raise NonFiniteError("the gradients were not finite")
        return train(config, folder, **options)

    monkeypatch.setattr(module, "train", diverge)
    result = train_seeds(CONFIG, tmp_path / "run", 2, console=quiet)
    assert (result.win_rates, result.missing) == ({"6": experiment.win_rates["6"]}, [])
    assert result.failures == {"5": "the gradients were not finite"} and result.summary["runs"] == 1
    assert resume_seeds(tmp_path / "run", console=quiet) == result, "it would diverge again"
    assert _report_seeds(result, tmp_path / "run") == 1


def test_bad_requests(tmp_path, quiet):
    for config, count, message in (
        (CONFIG, 0, "seeds: expected an integer of at least 1"),
        (CONFIG, 1_001, "seeds: expected at most 1,000, got 1,001"),
        (small_run(), 2, "expected eval_every above 0"),
        (small_run(eval_every=32, seed=2**32 - 1), 2, "seed"),
    ):
        with pytest.raises(ConfigError, match=message):
            train_seeds(config, tmp_path / "run", count, console=quiet)
    assert not (tmp_path / "run").exists()
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "file").write_text("")
    with pytest.raises(RunFolderError, match="never overwritten"):
        train_seeds(CONFIG, tmp_path / "used", 2, console=quiet)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (None, "seeds.json: expected JSON"),
        ({"format": "x"}, "expected an experiment of several seeds"),
        ({"more": 1}, "unknown config key 'more'"),
        ({"seeds": []}, "seeds: expected 1 to 1,000 integers"),
        ({"seeds": [1.5]}, "seeds.*: expected"),
        ({"win_rates": {"9": 0.5}}, "win_rates, failures: expected those of its seeds"),
        ({"win_rates": {"5": 1.5}}, "win_rates.5': expected a number from 0.0 to 1.0"),
        ({"failures": {"5": "x"}}, "expected reasons of seeds without a win rate"),
        ({"config": {"steps": -1}}, "config: "),
    ],
)
def test_damaged_experiments_are_refused(tmp_path, experiment, folder, changes, message):
    document = json.loads((folder / "seeds.json").read_text())
    text = "{" if changes is None else json.dumps(document | changes)
    (tmp_path / "seeds.json").write_text(text)
    with pytest.raises(RunFolderError, match=message):
        resume_seeds(tmp_path)
    with pytest.raises(RunFolderError, match=r"it has no seeds.json"):
        resume_seeds(tmp_path / "nowhere")


@pytest.mark.parametrize("summary", [{}, None, {"runs": 99}])
def test_the_summary_of_a_damaged_experiment_is_that_of_its_win_rates(tmp_path, experiment, folder, summary):
    document = json.loads((folder / "seeds.json").read_text())
    (tmp_path / "seeds.json").write_text(json.dumps(document | {"summary": summary}))
    assert resume_seeds(tmp_path).summary == experiment.summary == document["summary"]
    assert main(["train", "--resume", str(tmp_path)]) == 0


def test_the_command(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    small = ["--steps", "64", "--battles", "2", "--eval-every", "64", "--eval-battles", "2", "--ppo.n-steps", "16"]
    small += ["--ppo.batch-size", "16", "--network.width", "8", "--network.head", "8", "--maps", "4"]
    small += ["--set", "battle.max_steps=8"]
    assert main(["train", "duel", "--seeds", "2", "--seed", "3", "--out", "both", *small]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith("seed ")] == [
        f"seed {seed}: won 0.0% of the last evaluation" for seed in (3, 4)
    ]
    assert "2 seeds: median 0.0%, IQM 0.0% [0.0%, 0.0%] (95 %, rough)" in lines
    assert main(["train", "--resume", "both"]) == 0
    capsys.readouterr()
    assert main(["train", "--resume", "both", "--steps", "99"]) == 2
    assert "as it is, without steps" in capsys.readouterr().err
    assert main(["train", "duel", "--seeds", "2", "--eval-every", "0"]) == 2
    assert "expected eval_every above 0" in capsys.readouterr().err
