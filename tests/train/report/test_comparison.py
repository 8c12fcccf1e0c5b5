"""The report of several runs."""

import json
import shutil

import numpy as np
import pytest

from echelon_env.evaluate.estimates import interquartile_mean, probability_of_improvement, stratified_bootstrap
from echelon_train.errors import RunFolderError
from echelon_train.report import write_comparison
from echelon_train.report.sources import read_groups
from train.report.parsed import Parsed

RATES = {"fast": [0.2, 0.5, 0.35], "slow": [0.0, 0.1]}


def make_run(source, folder, rate, **config):
    """A copy of a run's files with another configuration and another win rate in the last evaluation."""
    folder.mkdir(parents=True)
    document = json.loads((source / "run.json").read_text())
    document["config"] |= config
    (folder / "run.json").write_text(json.dumps(document))
    lines = [json.loads(line) for line in (source / "metrics.jsonl").read_text().splitlines()]
    lines[-1] |= {"eval/win_rate": rate, "eval/win_rate_low": rate / 2, "eval/win_rate_high": (1 + rate) / 2}
    (folder / "metrics.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return folder


def write_seeds(experiment, win_rates, failures):
    document = {"config": {}, "seeds": [0, 1, 2, 3], "win_rates": win_rates, "failures": failures}
    (experiment / "seeds.json").write_text(json.dumps(document))


@pytest.fixture
def folders(finished_run, tmp_path):
    """Three seeds of an experiment, and two runs with another learning rate and other threads."""
    experiment = tmp_path / "fast"
    for seed, rate in enumerate(RATES["fast"]):
        make_run(finished_run, experiment / f"seed-{seed}", rate, seed=seed)
    write_seeds(experiment, {0: 0.2, 1: 0.5, 2: 0.35}, {})
    slow = [
        make_run(finished_run, tmp_path / f"slow-{seed}", rate, seed=seed, threads=1 + seed, opponent_win_rate=0.25)
        for seed, rate in enumerate(RATES["slow"])
    ]
    return [experiment, *slow]


def report(folders, tmp_path, **options):
    out = tmp_path / "report.html"
    write_comparison(folders, out, **{"replays": 0, **options})
    return Parsed(out)


def text(found):
    return f"{100 * found.estimate:.1f} [{100 * found.low:.1f}, {100 * found.high:.1f}]"


@pytest.mark.long
def test_groups_have_intervals_over_their_seeds(folders, tmp_path):
    page = report(folders, tmp_path)
    labels = {"fast": "fast", "slow": "slow-0 and 1 more"}
    for name, label in labels.items():
        values = {"": np.array(RATES[name])}
        assert page.column("final", "runs")[label] == str(len(RATES[name]))
        assert page.column("final", "median")[label] == text(stratified_bootstrap(values, np.median))
        assert page.column("final", "interquartile mean")[label] == text(
            stratified_bootstrap(values, interquartile_mean)
        )
    found = probability_of_improvement(*({"": np.array(RATES[name])} for name in labels))
    assert page.tables["improvement"][1] == [labels["fast"], labels["slow"], text(found)]
    assert page.tables["differences"] == [["setting", *labels.values()], ["opponent_win_rate", "0.5", "0.25"]]
    rates = page.column("runs", "win rate, %")
    assert rates["fast/seed-1"] == "50.0 [25.0, 75.0]" and rates["slow-0"] == "0.0 [0.0, 50.0]"
    lines = page.lines("win rate of evaluations")
    x, y = lines["fast, IQM of 3"]
    assert y[-1] == pytest.approx(interquartile_mean(RATES["fast"])) and x == sorted(x)
    assert "median of 2" in " ".join(page.lines("return"))


def test_runs_that_differ_in_the_seed_are_grouped_wherever_they_are(folders):
    groups = read_groups([folders[1], *folders[0].glob("seed-*"), folders[2]])
    assert [len(group.runs) for group in groups] == [2, 3]


def test_failed_seeds_are_no_part_of_the_statistics(folders, tmp_path):
    write_seeds(folders[0], {0: 0.2}, {1: "<b>not finite"})
    page = report(folders, tmp_path)
    values = {"": np.array([0.2, 0.35])}
    assert page.column("final", "median")["fast"] == text(stratified_bootstrap(values, np.median))
    assert page.column("final", "runs")["fast"] == "2, 1 so far"
    found = probability_of_improvement(values, {"": np.array(RATES["slow"])})
    assert page.tables["improvement"][1][2] == text(found)
    assert page.column("failed", "why") == {"fast/seed-1": "<b>not finite"}
    decisions = page.column("runs", "decisions")
    assert "fast/seed-1" not in decisions and "so far" not in decisions["fast/seed-0"]
    assert decisions["fast/seed-2"].endswith(" so far")
    assert "fast (seeds 0, 2; failed: 1)" in page.text
    assert "fast, IQM of 2" in page.lines("win rate of evaluations")


def test_an_experiment_of_failures_is_reported(folders, tmp_path):
    write_seeds(folders[0], {}, {0: "a", 1: "b", 2: "c"})
    page = report(folders[:1], tmp_path)
    assert [*page.column("failed", "why").values()] == ["a", "b", "c"] and "final" not in page.tables


def test_a_seed_that_has_not_begun_is_left_out(folders):
    (folders[0] / "seed-3").mkdir()
    (folders[0] / "seed-3" / "run.json").mkdir()
    (group,) = read_groups(folders[:1])
    assert [run.path.name for run in group.runs] == ["seed-0", "seed-1", "seed-2"]


def unbegun(folders):
    folders[0].mkdir()
    write_seeds(folders[0], {}, {})
    return folders


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda folders: folders + folders[:1], "is named twice"),
        (lambda folders: [folders[0], folders[0] / "seed-1"], "is named twice"),
        (lambda folders: [*folders, folders[0].parent], "is no training run: it has no run.json"),
        (lambda folders: write_seeds(folders[0], {9: 0.5}, {}) or folders, "expected those of its seeds"),
        (lambda folders: shutil.rmtree(folders[0]) or unbegun(folders), "none of its runs has begun"),
        (lambda folders: (folders[0] / "seed-1" / "run.json").write_text("{") and folders, "expected JSON"),
    ],
)
def test_damage_is_a_sentence_and_nothing_is_written(folders, tmp_path, change, expected):
    with pytest.raises(RunFolderError, match=expected):
        report(change(folders), tmp_path)
    assert not (tmp_path / "report.html").exists()
