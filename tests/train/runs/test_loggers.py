import json
import sys
import time
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from echelon_env.networks.checkpoint import JSON_FILE, WEIGHTS_FILE
from echelon_train.config.files import load_run_config
from echelon_train.errors import TrainError
from echelon_train.runs.folder import read_metrics
from echelon_train.runs.loggers import NOT_WANDB, SavedPolicy, check_wandb, open_logger
from echelon_train.runs.plots import save_run_curves

CONFIG = load_run_config("quickstart")


class FakeRun(SimpleNamespace):
    """The used part of what `wandb.init` returns."""

    step = 0

    def log(self, values, step):
        self.rows.append((step, values))
        self.step = step

    def log_artifact(self, artifact, aliases):
        self.artifacts.append((artifact, aliases))

    def finish(self):
        self.finished = True


class FakeArtifact(SimpleNamespace):
    """The used part of `wandb.Artifact`."""

    def __init__(self, name, type, metadata):
        super().__init__(name=name, type=type, metadata=metadata, files={})

    def add_file(self, path, name):
        self.files[name] = path


@pytest.fixture
def wandb(monkeypatch):
    """A fake package of Weights & Biases that records its calls in `runs`."""
    fake = ModuleType("wandb")
    fake.runs, fake.Error, fake.Settings = [], type("Error", (Exception,), {}), SimpleNamespace

    def init(**arguments):
        run = FakeRun(id=arguments["id"] or "abc", arguments=arguments, rows=[], artifacts=[], finished=False)
        fake.runs.append(run)
        return run

    fake.init = init
    monkeypatch.setitem(sys.modules, "wandb", fake)
    return fake


def log(logger, *steps, value=0.5):
    for step in steps:
        logger.record("time/total_timesteps", step, exclude="tensorboard")
        logger.record("battle/win_rate", value)
        logger.record("curriculum/scenario", "duel", exclude="tensorboard")
        logger.dump(step)
    logger.close()


def scalars(run):
    events = EventAccumulator(str(run / "tensorboard"))
    events.Reload()
    return events.Tags()["scalars"], [(each.step, each.value) for each in events.Scalars("battle/win_rate")]


def test_metrics_are_lines_and_events(tmp_path):
    log(open_logger(tmp_path, CONFIG), 100, 200)
    expected = {"time/total_timesteps": 100, "battle/win_rate": 0.5, "curriculum/scenario": "duel"}
    assert read_metrics(tmp_path)[0] == expected
    assert scalars(tmp_path) == (["battle/win_rate"], [(100, 0.5), (200, 0.5)])
    assert not (tmp_path / "wandb.id").exists()


def test_numbers_that_are_not_finite_are_null(tmp_path):
    log(open_logger(tmp_path, CONFIG), 100, value=np.float32("inf"))

    def refuse(name):
        raise ValueError(f"{name} is no JSON")

    line = json.loads((tmp_path / "metrics.jsonl").read_text(), parse_constant=refuse)
    assert line == {"time/total_timesteps": 100, "battle/win_rate": None, "curriculum/scenario": "duel"}
    save_run_curves(tmp_path)


def test_a_resumed_run_has_no_value_twice(tmp_path):
    log(open_logger(tmp_path, CONFIG), 100, 200, 300)
    time.sleep(1.1)  # TensorBoard takes files in the order of their names, which begin with the second
    log(open_logger(tmp_path, CONFIG, resumed_at=200), 300, 400, value=0.75)
    values = [(line["time/total_timesteps"], line["battle/win_rate"]) for line in read_metrics(tmp_path)]
    assert values == [(100, 0.5), (200, 0.5), (300, 0.75), (400, 0.75)]
    assert scalars(tmp_path)[1] == values


def test_a_resumed_run_continues_there_under_its_id(tmp_path, wandb):
    log(open_logger(tmp_path, CONFIG, wandb="mechs"), 100, 200, 300)
    FakeRun.step, before = 301, FakeRun.step  # as the service says of a run that it knows
    try:
        log(open_logger(tmp_path, CONFIG, resumed_at=200, wandb="mechs"), 300, 400)
    finally:
        FakeRun.step = before
    first, second = wandb.runs
    assert (first.arguments["id"], first.arguments["resume"]) == (None, None)
    assert (second.arguments["id"], second.arguments["resume"]) == ("abc", "allow")
    assert [step for step, _ in second.rows] == [400]


def test_a_missing_package_is_an_error_that_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(TrainError, match=r'pip install "echelon-env\[wandb\]"'):
        check_wandb()
    with pytest.raises(TrainError, match="pip install"):
        open_logger(tmp_path, CONFIG, wandb="mechs")
    assert list(tmp_path.iterdir()) == []


def log_more(logger, folder):
    """A histogram, and a checkpoint that is the last and the best one."""
    for name in (WEIGHTS_FILE, JSON_FILE):
        (folder / name).write_text("{}")
    logger.record("battle/histogram/return", torch.tensor([1.0, 2.0, 2.5]), exclude=("stdout", "log", "json", "csv"))
    for alias in ("last", "best"):
        logger.record(f"checkpoint/{alias}", SavedPolicy(folder), exclude=NOT_WANDB)
    log(logger, 100)


def test_weights_and_biases_gets_the_configuration_numbers_histograms_and_policies(tmp_path, wandb):
    folder = tmp_path / "0000000064"
    folder.mkdir()
    wandb.Histogram, wandb.Artifact = lambda values: ("histogram", values), FakeArtifact
    logger = open_logger(tmp_path, CONFIG, wandb="mechs")
    logger.record("secret", 1.0, exclude="wandb")
    log_more(logger, folder)
    (run,) = wandb.runs
    assert (run.arguments["project"], run.arguments["name"]) == ("mechs", tmp_path.name) and run.finished
    assert run.arguments["config"] == json.loads(json.dumps(CONFIG.to_dict()))
    numbers = {"time/total_timesteps": 100, "battle/win_rate": 0.5, "curriculum/scenario": "duel"}
    assert run.rows == [(100, {**numbers, "battle/histogram/return": ("histogram", [1.0, 2.0, 2.5])})]
    ((artifact, aliases),) = run.artifacts
    assert aliases == ["last", "best"]
    assert (artifact.name, artifact.type, artifact.metadata) == ("policy-abc", "model", {"steps": 64})
    assert artifact.files == {name: str(folder / name) for name in (WEIGHTS_FILE, JSON_FILE)}


@pytest.mark.long
def test_the_real_package_works_offline(tmp_path, monkeypatch):
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    folder = tmp_path / "0000000064"
    folder.mkdir()
    log_more(open_logger(tmp_path, CONFIG, wandb="mechs"), folder)
    assert len(list((tmp_path / "wandb").glob("offline-run-*"))) == 1
    assert (tmp_path / "wandb.id").read_text()
