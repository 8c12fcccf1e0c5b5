"""Battle statistics of a run: its metrics and its file."""

import json
from collections import Counter

import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from echelon_env import BattleEngine
from echelon_env.engine.state import STATISTIC_NAMES
from echelon_env.evaluate.battle_observer import BattleObserver
from echelon_env.evaluate.battle_totals import OTHERS, measures, sum_of
from echelon_env.evaluate.statistics_file import MAX_EVALUATIONS, MAX_PERIODS, read_statistics
from echelon_train.runs.callbacks import BattleTotalsCallback
from echelon_train.runs.callbacks.battle_totals import MAX_NAMES
from echelon_train.runs.folder import read_metrics
from echelon_train.runs.training import train
from echelon_train.vec_env import BattleVecEnv
from train.resuming import QUIET, resumable_run
from train.small import small_battle


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """(folder, what the engine says of every training battle when it ends) of a run against several opponents."""
    out, battles = tmp_path_factory.mktemp("runs") / "run", []
    stock = BattleVecEnv._report_episodes

    def report(self, over, truncated, infos):
        stock(self, over, truncated, infos)
        for b in np.flatnonzero(over).tolist():
            rows = slice(b * self.team_size, (b + 1) * self.team_size)
            side = int(self.battles.side[b])
            reward = sum(info["episode"]["r"] for info in infos[rows])
            counts = self.engine.team_statistics[b, [side, 1 - side]]
            battles.append((infos[rows][0]["opponent"], infos[rows][0]["outcome"], reward, counts))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BattleVecEnv, "_report_episodes", report)
        battle = small_battle("skirmish", max_steps=14, terrain={"size": 52})
        opponents = {"novice": 1.0, "trivial": 1.0, "self": 2.0}
        config = resumable_run(battle=battle, opponent=opponents, battles=4, steps=800, eval_every=400)
        train(config, out, console=QUIET)
    return out, battles


def test_the_file_has_all_training_battles(trained):
    out, battles = trained
    file = read_statistics(out / "statistics.json")
    assert (file.player, file.steps) == ("run", read_metrics(out)[-1]["time/total_timesteps"])
    totals = file.total()
    expected = Counter(opponent for opponent, *_ in battles)
    assert {name: totals.results(name)["battles"] for name in totals.opponents} == expected
    assert expected.keys() == {"novice", "trivial", "self"}
    for name in expected:
        played = [each for each in battles if each[0] == name]
        for outcome, result in ((1, "wins"), (0, "draws"), (-1, "losses")):
            assert totals.results(name)[result] == sum(each[1] == outcome for each in played)
        for place, side in enumerate(("own", "enemy")):
            sums = totals.sums(side, name)
            assert sums["mechs"] == 5 * len(played)
            for key in STATISTIC_NAMES:
                assert sums.get(key, 0.0) == pytest.approx(sum(float(each[3][key][place]) for each in played))
        assert totals.sums("own", name)["reward"] == pytest.approx(sum(each[2] for each in played), rel=1e-4, abs=1e-3)


def test_periods_follow_each_other_and_evaluations_are_kept(trained):
    file = read_statistics(trained[0] / "statistics.json")
    assert 1 < len(file.training) <= MAX_PERIODS
    assert file.training[0].first == 0 and file.training[-1].last == file.steps
    assert all(one.last == two.first for one, two in zip(file.training, file.training[1:], strict=False))
    assert len(file.evaluations) == sum("eval/win_rate" in line for line in read_metrics(trained[0])) >= 3
    assert [bool(each.totals.heatmaps) for each in file.evaluations] == [False] * (len(file.evaluations) - 1) + [True]
    last = [line for line in read_metrics(trained[0]) if "eval/win_rate" in line][-1]
    found = measures(file.evaluations[-1].totals.sums("own"))
    for name in ("damage_dealt", "deaths", "zone_share"):
        assert last[f"eval/{name}"] == pytest.approx(found[name], rel=1e-6)


def test_metrics_say_why_battles_are_won(trained):
    lines = read_metrics(trained[0])
    last = [line for line in lines if "battle/count" in line][-1]
    names = {"battle/damage_dealt", "battle/deaths", "battle/zone_share", "battle/distance", "battle/message_entropy"}
    names |= {"battle/reward/approach", "battle/class/heavy/damage_dealt", "opponent/novice/damage_taken"}
    names |= {"battle/class/scout/return", "battle/death/while_shut_down"} & last.keys()
    assert names <= last.keys()
    assert all(isinstance(last[name], float) for name in names)
    assert max(len(json.dumps(line)) for line in lines) < 12_000
    events = EventAccumulator(str(trained[0] / "tensorboard"), {"histograms": 0, "scalars": 0})
    events.Reload()
    assert {"battle/damage_dealt", "battle/class/heavy/kills", "opponent/novice/kills"} <= {*events.Tags()["scalars"]}
    histograms = [events.Histograms(f"battle/histogram/{name}") for name in ("return", "damage_dealt")]
    assert [sum(each.histogram_value.num for each in one) for one in histograms] == [5 * len(trained[1])] * 2
    rewards = sum(each.histogram_value.sum for each in histograms[0])
    assert rewards == pytest.approx(sum(reward for _, _, reward, _ in trained[1]), rel=1e-4, abs=1e-2)


@pytest.fixture(scope="module")
def record():
    """The record of a battle."""
    engine = BattleEngine(small_battle("skirmish", max_steps=3, terrain={"size": 52}))
    observer = BattleObserver(engine)
    engine.reset([3])
    for _ in range(3):
        engine.step(np.ones((1, engine.num_mechs, engine.action_dim)))
    return observer.finished[0]


def test_memory_and_file_are_bounded(record, tmp_path):
    callback = BattleTotalsCallback(tmp_path)
    rollouts = 200
    for rollout in range(rollouts):
        callback._add(record, f"opponent {rollout}", 0)
        callback._add_rollout(10 * (rollout + 1))
        callback.add_evaluation(10 * rollout, "evaluation", record.totals("novice", 1))
    callback.write(10 * rollouts)
    file = read_statistics(tmp_path / "statistics.json")
    assert MAX_PERIODS / 2 < len(file.training) <= MAX_PERIODS
    assert (file.training[0].first, file.training[-1].last) == (0, 10 * rollouts)
    assert file.total().battles == rollouts
    names = {name for period in file.training for name in period.totals.opponents}
    assert names == {OTHERS, *(f"opponent {number}" for number in range(rollouts - MAX_NAMES, rollouts))}
    assert file.total().results(OTHERS)["battles"] == rollouts - MAX_NAMES
    whole = sum_of([record.totals("x", 0).sums("own")] * rollouts)
    assert file.total().sums("own") == pytest.approx(whole)
    assert MAX_EVALUATIONS / 2 <= len(file.evaluations) <= MAX_EVALUATIONS
    steps = [each.steps for each in file.evaluations]
    assert steps == sorted(steps) and steps[-1] == 10 * (rollouts - 1)
    assert len(callback.state_tensors()["totals.document"]) < 4_000_000
