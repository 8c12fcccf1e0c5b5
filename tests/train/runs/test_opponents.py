"""Runs against several opponents, with handicaps, from one side, and in stages."""

import math
import signal

import pytest

from echelon_env import ConfigError
from echelon_env.evaluate import evaluation_seed
from echelon_env.networks.config import NetworkConfig
from echelon_env.opponents.handicap import HandicapEffects
from echelon_train.checkpoints.checkpoint import load_checkpoint
from echelon_train.config.train import TrainConfig
from echelon_train.runs.callbacks import OpponentsCallback
from echelon_train.runs.folder import read_metrics
from echelon_train.runs.training import resume, train
from train.resuming import QUIET, at_step, differences, resumable_run
from train.small import small_battle, small_run


def assert_resumes(config, step, tmp_path, monkeypatch):
    """A run that is stopped in a step and resumed equals a whole one, which is left in the folder `whole`."""
    train(config, tmp_path / "whole", console=QUIET)
    with monkeypatch.context() as patch:
        at_step(patch, step, lambda: signal.raise_signal(signal.SIGTERM))
        train(config, tmp_path / "parts", console=QUIET)
    resume(tmp_path / "parts", console=QUIET)
    assert differences(tmp_path / "whole", tmp_path / "parts") == []


@pytest.mark.long
def test_a_run_against_a_mixture_resumes_to_the_same_bits(tmp_path, finished_run, monkeypatch):
    mixture = {"trivial@auto": 2, "novice@reaction_delay=0.5,aim_error=0.3": 1, "self": 2, "expert": 1}
    mixture[f"policy:{finished_run}@fire_rate=0.5"] = 1
    config = resumable_run(opponent=mixture, battles=4, steps=640)
    assert_resumes(config, 70, tmp_path, monkeypatch)
    last = [line for line in read_metrics(tmp_path / "whole") if "battle/count" in line][-1]
    assert load_checkpoint(tmp_path / "whole").opponent == str(config.opponent)
    counts = [last[f"opponent/{name}/battles"] for name in config.opponent.names if name != "self"]
    assert 0 < sum(counts) < last["battle/count"] and all(counts)
    assert 0.0 <= last["opponent/trivial@auto/win_rate"] <= 1.0
    assert last["opponent/trivial@auto/handicap/fire_rate"] == 0.25


def test_unequal_rosters_train_with_the_learner_on_one_side(tmp_path):
    battle = small_battle("skirmish-open", blue=["light", "scout"], red=["heavy", "medium", "light"])
    with pytest.raises(ConfigError, match="side: teams of 2 and 3 mechs need a learner with one side"):
        small_run(battle=battle)
    network = NetworkConfig(width=8, head=8, critic="central")
    config = small_run(battle=battle, side="red", opponent={"novice": 1, "self": 1}, network=network)
    assert config.team_size == 3
    assert train(config, tmp_path / "run", console=QUIET).done


@pytest.mark.parametrize(
    ("opponent", "battles", "self_play", "drawn"),
    [
        ("self", 5, 5, "self"),
        ("novice", 5, 0, "novice"),
        ({"self": 1, "novice": 3}, 8, 2, "novice"),
        ({"self": 9, "novice": 1}, 4, 3, "novice"),
        ({"self": 1, "novice": 9}, 4, 0, "{novice = 9, self = 1}"),
        ({"self@fire_rate=0.5": 1, "self": 1}, 4, 2, "self@fire_rate=0.5"),
    ],
)
def test_the_share_of_self_are_battles_in_which_the_learner_plays_both_teams(opponent, battles, self_play, drawn):
    config = small_run(opponent=opponent, battles=battles)
    assert (config.self_play_battles, str(config.drawn_opponents)) == (self_play, drawn)
    assert config.rows == battles + self_play
    one_side = small_run(opponent=opponent, battles=battles, side="red")
    assert (one_side.self_play_battles, one_side.drawn_opponents) == (0, config.opponent)


@pytest.mark.parametrize(
    "changes",
    [{"opponent": "self@fire_rate=0.5"}, {"opponent": "self", "side": "red"}],
    ids=["handicapped", "one side"],
)
def test_the_learner_as_its_own_opponent_is_copied_again_before_every_rollout(tmp_path, monkeypatch, changes):
    """The weights that play are those of the learner at the start of the rollout, and change with it."""
    playing, stock = [], OpponentsCallback._on_rollout_start

    def on_rollout_start(callback):
        stock(callback)
        (batch,) = callback.pool._batches.values()
        (bias,) = (each for name, each in batch._stacked._weights.items() if name.endswith("action_net.bias"))
        own = callback.model.policy.action_net.bias.detach()
        assert all(each.equal(own) for each in bias)
        playing.append(own.clone())

    monkeypatch.setattr(OpponentsCallback, "_on_rollout_start", on_rollout_start)
    train(small_run(**changes), tmp_path / "run", console=QUIET)
    first, second = playing
    assert not first.equal(second)


@pytest.mark.parametrize(
    ("opponent", "evaluated"),
    [
        ("novice", "novice"),
        ("novice@fire_rate=0.5", "novice@fire_rate=0.5"),
        ("novice@auto", "novice"),
        ("novice@fire_rate=linear:0:1", "novice"),
        ("self", "expert"),
        ({"self": 1, "policy:x": 1}, "expert"),
        ({"veteran@auto": 1, "novice": 5, "self": 1}, "veteran"),
        ({"champion@auto": 1, "expert": 5, "self": 1}, "champion"),
    ],
)
def test_the_opponent_of_evaluations_follows_from_the_opponents(opponent, evaluated):
    assert str(small_run(opponent=opponent).evaluation_opponents) == evaluated
    assert str(small_run(opponent=opponent, eval_opponent="trivial").evaluation_opponents) == "trivial"


@pytest.mark.slow
def test_a_handicap_rises_over_the_run_which_resumes_to_the_same_bits(tmp_path, monkeypatch):
    """Also in battles in progress: those here last longer than a rollout."""
    ramp = "expert@fire_rate=linear:0.2:1,reaction_delay=cosine:2:0"
    played = []
    stock = HandicapEffects.execute

    def execute(self, observations, actions):
        played.append((self.fire_rate, self.reaction_delay))
        return stock(self, observations, actions)

    monkeypatch.setattr(HandicapEffects, "execute", execute)
    battle = small_battle(max_steps=40)
    config = resumable_run(battle=battle, opponent={ramp: 2, "novice": 1}, battles=4, steps=640)
    assert_resumes(config, 70, tmp_path, monkeypatch)
    lines = [line for line in read_metrics(tmp_path / "whole") if "battle/count" in line]
    name = f"opponent/{ramp}/handicap"
    rates, delays = ([line[f"{name}/{number}"] for line in lines] for number in ("fire_rate", "reaction_delay"))
    assert len(rates) == 10
    assert rates == pytest.approx([0.2 + 0.8 * done / 10 for done in range(10)])
    assert delays == pytest.approx([1.0 + math.cos(math.pi * done / 10) for done in range(10)])
    assert f"{name}/aim_error" not in lines[0], "only what changes or is set"
    assert {*played} == {*zip(rates, delays, strict=True)}, "every rollout plays with the numbers that it logs"


def test_evaluations_play_a_mixture_and_the_best_is_by_its_weighted_mean(tmp_path):
    mixture = {"trivial": 3, "expert": 1}
    with pytest.raises(ConfigError, match="eval_battles: expected two battles for each of 2 opponents, got 2"):
        small_run(eval_opponent=mixture)
    with pytest.raises(ConfigError, match="eval_seeds: expected two battles for each of 2 opponents, got 2"):
        small_run(eval_opponent=mixture, eval_seeds=[evaluation_seed(0, 0)])
    config = small_run(eval_opponent=mixture, eval_battles=8, eval_every=32)
    assert TrainConfig.from_dict(config.to_dict()) == config
    train(config, tmp_path / "run", console=QUIET)
    lines = read_metrics(tmp_path / "run")
    for line in lines:
        expected = 0.75 * line["eval/win_rate/trivial"] + 0.25 * line["eval/win_rate/expert"]
        assert line["eval/win_rate"] == pytest.approx(expected)
        assert line["eval/win_rate_low"] <= expected <= line["eval/win_rate_high"]
