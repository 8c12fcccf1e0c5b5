"""Callbacks are restored from their states, and refuse invalid ones."""

import io
import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from echelon_env import ConfigError
from echelon_env.config.curriculum import make_curriculum
from echelon_env.evaluate.battle_totals import BattleTotals
from echelon_train.config.train import TrainConfig, training_curriculum
from echelon_train.ppo.teacher import BY_TEACHER
from echelon_train.runs.callbacks import BattleStatistics, CheckpointCallback, CurriculumCallback, EvaluationCallback

CURRICULUM = training_curriculum(
    make_curriculum(["duel-open", "duel-cover", "duel"]), window=3, promote=0.6, demote=0.2
)
STAGED = TrainConfig(battle=CURRICULUM.scenarios[0].config, curriculum=CURRICULUM)
PLAIN = TrainConfig(battle=CURRICULUM.scenarios[0].config)


class Env:
    """The part of a `BattleVecEnv` of duels that callbacks use."""

    def get_attr(self, name, indices=None):
        assert name in ("team_size", "num_battles")
        return [1]


class Model:
    """The part of an algorithm that callbacks use, with one battle that ends in every step."""

    def __init__(self, *callbacks):
        self.env, self.num_timesteps, self.records, self.stopping = Env(), 0, {}, False
        self.teacher = None
        self.logger = SimpleNamespace(record=lambda key, value, **_: self.records.update({key: value}))
        self.callbacks = callbacks
        for callback in callbacks:
            callback.init_callback(self)

    def get_env(self):
        return self.env

    def play(self, outcomes, by_teacher=()):
        """Battles with these outcomes, some of which are the teacher's, by number."""
        for callback in self.callbacks:
            callback.on_rollout_start()
        for step, outcome in enumerate(outcomes, start=1):
            infos = [{"outcome": outcome, "episode": {"r": 0.1 * step * outcome, "l": step}}]
            infos[0][BY_TEACHER] = step in by_teacher
            for callback in self.callbacks:
                callback.update_locals({"infos": infos})
                callback.on_step()
        for callback in self.callbacks:
            callback.on_rollout_end()
        return dict(self.records)


def through_json(state):
    return json.loads(json.dumps(state, sort_keys=True))


def test_statistics_are_restored():
    """Also by the start of a rollout, which clears the statistics of another environment."""
    first, again = BattleStatistics(), BattleStatistics()
    Model(first).play([1, -1, 0] * 40)
    again.load_state_dict(through_json(first.state_dict()))
    assert again.state_dict() == first.state_dict()
    model, other = Model(first), Model(again)
    other.env = model.env
    first._env = model.env
    assert other.play([1, 1]) == model.play([1, 1])
    assert again.num_battles == 122
    assert 0.0 < again.win_rate < 1.0
    other.env = Env()
    other.play([1])
    assert again.win_rate == 1.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"extra": 1}, "expected a mapping with the keys"),
        ({"num_battles": -1}, "num_battles: expected an integer of at least 0, got -1"),
        ({"num_battles": True}, "num_battles: expected an integer"),
        ({"num_battles": 2}, "outcomes: expected up to 2"),
        ({"outcomes": [1, 2, 0]}, "outcomes: expected up to 3 outcomes of -1, 0 or 1, got"),
        ({"returns": [0.1, float("nan"), 0.0]}, "returns: expected up to 3 finite numbers"),
        ({"lengths": [1, 0, 1]}, "lengths: expected up to 3 integers of at least 1"),
        ({"lengths": "abc"}, "lengths: expected up to 3 integers"),
        ({"own_outcomes": [1, 2]}, "own_outcomes: expected up to 3 outcomes of -1, 0 or 1, got"),
        ({"outcomes": [1]}, "as many outcomes as returns and lengths"),
    ],
)
def test_invalid_statistics_change_nothing(change, message):
    statistics = BattleStatistics()
    Model(statistics).play([1, -1, 0])
    before = statistics.state_dict()
    with pytest.raises(ConfigError, match=message):
        statistics.load_state_dict({**before, **change})
    assert statistics.state_dict() == before


def test_the_teachers_battles_are_not_the_learners():
    """Neither in its own win rate nor for the stages of a curriculum."""
    statistics, curriculum = BattleStatistics(), CurriculumCallback(STAGED, Console(file=io.StringIO()))
    model = Model(statistics, curriculum)
    assert "battle/learner_win_rate" not in model.play([1])
    assert statistics.state_dict()["own_outcomes"] == []
    model.teacher = object()
    records = model.play([1, 1, 1, -1], by_teacher=(1, 2, 3))
    assert records["battle/win_rate"] == 0.8 and records["battle/learner_win_rate"] == 0.0
    assert records["curriculum/battles"] == 2 and statistics.num_battles == 5
    again = BattleStatistics()
    again.load_state_dict(through_json(statistics.state_dict()))
    assert again.state_dict() == statistics.state_dict()


def followed(config=STAGED):
    """A callback that has moved on once, and what it has written."""
    output = io.StringIO()
    callback = CurriculumCallback(config, Console(file=output, width=200))
    model = Model(callback)
    model.play([1, 1, 1])
    callback.advance()
    return callback, model, output


@pytest.mark.parametrize("outcomes", [[1, -1], [1, 1, 1], [-1, -1, -1], []])
def test_a_curriculum_is_restored(outcomes):
    """A decision that is not yet carried out, forward or back, is not forgotten."""
    first, model, _ = followed()
    model.play(outcomes)
    state = through_json(first.state_dict())
    again = CurriculumCallback(STAGED, Console(file=io.StringIO()))
    again.load_state_dict(state)
    assert again.config == first.config == STAGED.stage(1)
    assert again.state_dict() == first.state_dict()
    other = Model(again)
    for _ in range(3):
        assert again.advance() == first.advance()
        assert (again.config, again.moves) == (first.config, first.moves)
        assert other.play([1, -1, 1, 1]) == model.play([1, -1, 1, 1])
    assert again.state_dict() == first.state_dict()


def test_a_run_without_a_curriculum_has_a_state_too():
    callback = CurriculumCallback(PLAIN, Console(quiet=True))
    state = through_json(callback.state_dict())
    callback.load_state_dict(state)
    assert callback.state_dict() == state
    with pytest.raises(ConfigError, match="progress: expected None in a run without one"):
        callback.load_state_dict({**state, "progress": {}})
    with pytest.raises(ConfigError, match="stage: expected an integer from 0 to 0, got 1"):
        callback.load_state_dict({**state, "stage": 1})


MOVE = {"stage": 2, "win_rate": 1.0, "battles": 3}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"extra": 1}, "expected a mapping with the keys"),
        ({"stage": 3}, "stage: expected an integer from 0 to 2, got 3"),
        ({"stage": 2}, "moves: expected a number that leads to stage 2, got 1"),
        ({"stage": 0, "moves": 2}, "progress: expected stage 0, got 1 without a move"),
        ({"moves": 1.0}, "moves: expected a number"),
        ({"progress": None}, "progress: expected a mapping"),
        ({"progress": {"stage": 9, "battles": 0, "won": []}}, "progress: stage: expected an integer from 0 to 2"),
        ({"progress": {"stage": 2, "battles": 0, "won": []}}, "progress: expected stage 1, got 2 without a move"),
        ({"move": MOVE}, "move: expected None or a move from stage 1 to 1"),
        ({"move": MOVE | {"more": 1}}, "move: expected None or a move"),
        ({"move": 2}, "move: expected None or a move"),
    ],
)
def test_an_invalid_curriculum_changes_nothing(change, message):
    callback, _, _ = followed()
    before = callback.state_dict()
    with pytest.raises(ConfigError, match=message):
        callback.load_state_dict({**before, **change})
    assert callback.state_dict() == before


@pytest.mark.parametrize("change", [{"win_rate": 1.5}, {"win_rate": 1}, {"battles": 0}])
def test_an_invalid_pending_move_is_refused(change):
    callback, _, _ = followed()
    state = callback.state_dict() | {"progress": {"stage": 2, "battles": 0, "won": []}, "move": MOVE}
    callback.load_state_dict(state)
    with pytest.raises(ConfigError, match="move: expected a win rate from 0 to 1 and battles from 1"):
        callback.load_state_dict(state | {"move": MOVE | change})


def test_the_best_policy_is_the_best_of_its_stage():
    """A policy that won duels is not the best one of a later stage with larger battles."""
    kept, moves, rates = [], [0], iter([0.5, 0.9, 0.2, 0.1, 0.3])
    shares = SimpleNamespace(estimate=0.0, low=0.0, high=1.0)

    def judge():
        wins = SimpleNamespace(estimate=next(rates), low=0.0, high=1.0)
        rest = {"win_rates": {"novice": wins}, "totals": BattleTotals(), "maps_trained_on": 0}
        return SimpleNamespace(wins=wins, draws=shares, losses=shares, **rest)

    callback = EvaluationCallback(1, judge, lambda: kept.append(model.num_timesteps), lambda: moves[0], lambda: False)
    model = Model(callback)
    for steps in range(5):
        model.num_timesteps = steps
        moves[0] = int(steps >= 2)
        callback.on_rollout_start()
    assert kept == [0, 1, 2, 4]
    assert callback.state_dict() == {"due": 5, "best": 0.3, "moves": 1}


def test_checkpoints_are_counted_in_the_samples_of_all_processes():
    """The model learns of the other ones' at a rollout's end, after a callback's last step."""
    saved = []
    callback = CheckpointCallback(20, lambda steps: saved.append(steps) or Path(str(steps)), lambda: False)
    model = Model(callback)
    for steps in (10, 20, 30):
        model.play([1])
        model.num_timesteps = steps
    model.play([])
    assert saved == [0, 20]
    assert callback.saved == Path("20")
    assert callback.state_dict() == {"due": 40}
