"""Callbacks are restored from their states."""

import dataclasses
import io
import json
from types import SimpleNamespace

import pytest
from rich.console import Console

from echelon_env import ConfigError
from echelon_env.config.curriculum import Move, ProgressState
from echelon_env.config.schema import build, to_plain
from echelon_env.evaluate.battle_totals import BattleTotals
from echelon_train.config.train import TrainConfig, training_curriculum
from echelon_train.ppo.teacher import BY_TEACHER
from echelon_train.runs.callbacks import BattleResults, CurriculumCallback, EvaluationCallback, EveryCallback
from echelon_train.runs.callbacks.evaluation import BestEvaluation
from echelon_train.runs.callbacks.every import Every

CURRICULUM = training_curriculum(["duel-open", "duel-cover", "duel"], window=3, promote=0.6, demote=0.2)
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
    return build(type(state), json.loads(json.dumps(to_plain(state), sort_keys=True)), "")


def test_another_environment_begins_other_results():
    """But not another count, nor results that were restored before the first rollout."""
    results = BattleResults()
    Model(results).play([1, -1, 0] * 40)
    again = BattleResults()
    again.state = through_json(results.state)
    model = Model(again)
    model.play([1, 1])
    assert again.state.num_battles == 122 and 0.3 < again.win_rate < 0.4
    model.env = Env()
    model.play([1])
    assert again.state.num_battles == 123 and again.win_rate == 1.0


def test_the_teachers_battles_are_not_the_learners():
    """Neither in its own win rate nor for the stages of a curriculum."""
    results, curriculum = BattleResults(), CurriculumCallback(STAGED, Console(file=io.StringIO()))
    model = Model(results, curriculum)
    assert "battle/learner_win_rate" not in model.play([1])
    assert results.state.own_sums == {}
    model.teacher = object()
    records = model.play([1, 1, 1, -1], by_teacher=(1, 2, 3))
    assert records["battle/win_rate"] == pytest.approx(0.8, abs=0.01) and records["battle/learner_win_rate"] == 0.0
    assert records["curriculum/battles"] == 2 and results.state.num_battles == 5
    assert through_json(results.state) == results.state


def followed(config=STAGED):
    """A callback that has moved on once, and what it has written."""
    output = io.StringIO()
    callback = CurriculumCallback(config, Console(file=output, width=200))
    model = Model(callback)
    model.play([1, 1, 1])
    callback.advance()
    return callback, model, output


@pytest.mark.parametrize(
    ("config", "change"),
    [
        (PLAIN, {"stage": 1}),
        (PLAIN, {"move": Move(1, 1.0, 3)}),
        (STAGED, {"stage": 3}),
        (STAGED, {"stage": 2}),
        (STAGED, {"move": Move(2, 1.0, 3)}),
        (STAGED, {"progress": ProgressState(2)}),
        (STAGED, {"progress": ProgressState(9)}),
        (STAGED, {"progress": None}),
    ],
)
def test_a_state_of_another_curriculum_changes_nothing(config, change):
    callback = followed()[0] if config is STAGED else CurriculumCallback(PLAIN, Console(quiet=True))
    before = callback.state
    callback.restore(through_json(before))
    with pytest.raises(ConfigError, match=r"^(curriculum|progress): .*expected .*, got"):
        callback.restore(dataclasses.replace(before, **change))
    assert callback.state == before


def test_the_best_policy_is_the_best_of_its_stage():
    """A policy that won duels is not the best one of a later stage with larger battles."""
    kept, moves, rates = [], [0], iter([0.5, 0.9, 0.2, 0.1, 0.2])
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
    assert (callback.every.next, callback.best) == (5, BestEvaluation(0.2, moves=1, steps=4)), (
        "of equal ones the newest"
    )


def test_checkpoints_are_counted_in_the_samples_of_all_processes():
    """The model learns of the other ones' at a rollout's end, after a callback's last step."""
    saved = []
    callback = EveryCallback(20, lambda: saved.append(model.num_timesteps), lambda: False, saves=True)
    model = Model(callback)
    for steps in (10, 20, 70, 75, 89):
        model.play([1])
        model.num_timesteps = steps
    model.play([])
    callback.on_training_end()
    assert saved == [0, 20, 70], "counted from the last time"
    assert callback.every == Every(20, next=90)


@pytest.mark.parametrize("saves", [False, True])
def test_before_a_stop_only_checkpoints_are_made(saves):
    done, stopping = [], [False]
    callback = EveryCallback(20, lambda: done.append(model.num_timesteps), lambda: stopping[0], saves=saves)
    model = Model(callback)
    model.play([1])
    stopping[0] = model.stopping = True
    model.num_timesteps = 5
    model.play([])
    callback.on_training_end()
    assert done == ([0, 5] if saves else [0])
    stopping[0] = False
    callback.on_training_end()
    assert done == [0, 5]
