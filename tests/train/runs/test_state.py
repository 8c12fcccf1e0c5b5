"""The record of a run's state: what is written is read again, and anything else is refused with its key."""

import copy
import dataclasses
import functools
import json

import pytest
from stable_baselines3.common.logger import Logger

from echelon_env.config.curriculum import Move, ProgressState
from echelon_env.networks.weights import CheckpointError
from echelon_train.league.learner import LearnerState
from echelon_train.opponents.handicaps import AutoHandicap
from echelon_train.opponents.pool import PoolState
from echelon_train.opponents.results import Results
from echelon_train.ppo.training_state import ModelState
from echelon_train.runs.battle_metrics import RecentBattles
from echelon_train.runs.callbacks.battle_totals import TotalsState
from echelon_train.runs.callbacks.clock import ClockState
from echelon_train.runs.callbacks.curriculum import CurriculumState
from echelon_train.runs.callbacks.evaluation import BestEvaluation
from echelon_train.runs.callbacks.every import Every
from echelon_train.runs.callbacks.results import ResultsState
from echelon_train.runs.state import RunState, pending_metrics

LOGGER = Logger(None, [])
LOGGER.record("train/loss", -0.1)
LOGGER.record("time/steps", 3, exclude="tensorboard")
LOGGER.record("train/variance", float("nan"))
AUTO = AutoHandicap(0.5, 3, 2)
STATE = RunState(
    config={"seed": 1, "battle": {"max_steps": 12}},
    model=ModelState(96, 4, 2, 0, 0, ({"r": -1.5, "l": 3, "t": 0.1},), (True, 0.5), 624, 1, -0.3, None),
    clock=ClockState(1.5, 2.5),
    curriculum=CurriculumState(1, 1, Move(2, 0.75, 4), ProgressState(2)),
    results=ResultsState(3, {"battles": 3.0, "return": -0.5}, {"battles": 1.0}),
    totals=TotalsState(("novice",), RecentBattles({"heavy": {"reward": -1.0}}, {"novice": {"mechs": 2.0}}), 1, 2),
    checkpoints=Every(32, 128),
    evaluations=Every(0),
    films=Every(0),
    best=BestEvaluation(0.5, 1, 64),
    earlier_maps=("ab",),
    league=LearnerState(5, "main-1"),
    opponents=PoolState(7, {"novice@auto": Results(4, (1, -1))}, {"novice@auto": AUTO}),
    pending=pending_metrics(LOGGER),
)
VALUES = STATE.to_dict()


def places(values, *path):
    """The paths of all values, without what is checked elsewhere."""
    if path:
        yield path
    for name, value in values.items() if isinstance(values, dict) and path[-1:] != ("config",) else ():
        yield from places(value, *path, name)


PLACES = list(places(VALUES))


def changed(path, value):
    """The values with another one at a path; without it for an ellipsis."""
    values = copy.deepcopy(VALUES)
    part = values
    for name in path[:-1]:
        part = part[name]
    if value is ...:
        del part[path[-1]]
    else:
        part[path[-1]] = value
    return values


def test_the_state_is_read_as_it_was_written():
    again = RunState.from_dict(json.loads(json.dumps(VALUES, allow_nan=False)))
    assert again == STATE and again.to_dict() == VALUES
    logger = Logger(None, [])
    for name, pending in again.pending.items():
        pending.record(logger, name)
    assert repr(logger.name_to_value) == repr(LOGGER.name_to_value)
    assert logger.name_to_excluded == LOGGER.name_to_excluded
    alone = dataclasses.replace(STATE, totals=None, league=None)
    assert RunState.from_dict(json.loads(json.dumps(alone.to_dict()))) == alone


@pytest.mark.parametrize("path", PLACES, ids=".".join)
def test_a_value_of_another_type_is_refused_with_its_key(path):
    wrong = 3 if isinstance(functools.reduce(dict.__getitem__, path, VALUES), dict) else {"x": [{}]}
    with pytest.raises(
        CheckpointError, match=r"^training state \(damaged, or of another release\): .*expected"
    ) as error:
        RunState.from_dict(changed(path, wrong))
    assert ".".join(path) in str(error.value) and "\n" not in str(error.value)


def test_a_missing_key_is_refused_although_it_has_a_default():
    with pytest.raises(CheckpointError, match=r"missing: .*best\.moves"):
        RunState.from_dict(changed(("best", "moves"), ...))


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("results.more", 1, "unknown key 'results.more'"),
        ("model.num_timesteps", -1, "from 0.0 to inf"),
        ("model.num_timesteps", True, "expected int"),
        ("model.numpy_position", 625, "from 0 to 624"),
        ("curriculum.move", {"stage": 1}, "keys are missing: win_rate, battles"),
        ("curriculum.progress", {"stage": 0, "battles": 1, "won": [1]}, "expected bool"),
        ("totals.recent.classes", {"heavy": {"mechs": "x"}}, "expected float"),
        ("opponents.handicaps", {"novice@auto": {"target": 0.5, "rung": 99, "since": 0}}, "from 0 to 26"),
        ("opponents.results", {"novice@auto": {"battles": 1, "last": [7]}}, "from -1 to 1"),
        ("pending", {"x": {"number": "y", "exclude": []}}, "expected a number, got 'y'"),
    ],
)
def test_a_value_out_of_range_is_refused(path, value, expected):
    with pytest.raises(CheckpointError, match=expected.replace("|", r"\|")):
        RunState.from_dict(changed(path.split("."), value))
