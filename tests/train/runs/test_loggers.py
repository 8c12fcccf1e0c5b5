import json
import time

import numpy as np
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from echelon_train.runs.curves import save_run_curves
from echelon_train.runs.folder import read_metrics
from echelon_train.runs.loggers import open_logger


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
    log(open_logger(tmp_path), 100, 200)
    expected = {"time/total_timesteps": 100, "battle/win_rate": 0.5, "curriculum/scenario": "duel"}
    assert read_metrics(tmp_path)[0] == expected
    assert scalars(tmp_path) == (["battle/win_rate"], [(100, 0.5), (200, 0.5)])


def test_numbers_that_are_not_finite_are_null(tmp_path):
    log(open_logger(tmp_path), 100, value=np.float32("inf"))

    def refuse(name):
        raise ValueError(f"{name} is no JSON")

    line = json.loads((tmp_path / "metrics.jsonl").read_text(), parse_constant=refuse)
    assert line == {"time/total_timesteps": 100, "battle/win_rate": None, "curriculum/scenario": "duel"}
    save_run_curves(tmp_path)


def test_a_resumed_run_has_no_value_twice(tmp_path):
    log(open_logger(tmp_path), 100, 200, 300)
    time.sleep(1.1)  # TensorBoard takes files in the order of their names, which begin with the second
    log(open_logger(tmp_path, resumed_at=200), 300, 400, value=0.75)
    values = [(line["time/total_timesteps"], line["battle/win_rate"]) for line in read_metrics(tmp_path)]
    assert values == [(100, 0.5), (200, 0.5), (300, 0.75), (400, 0.75)]
    assert scalars(tmp_path)[1] == values
