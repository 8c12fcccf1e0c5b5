"""A run that was stopped and resumed equals one that never stopped, to the last bit."""

import dataclasses
import json
import shutil
import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest

from echelon_env.cli import main
from echelon_env.config.curriculum import make_curriculum
from echelon_train.checkpoints.checkpoint import load_checkpoint
from echelon_train.config.files import load_run_config
from echelon_train.config.schedules import RewardSchedules, Schedule
from echelon_train.runs.callbacks import clock
from echelon_train.runs.folder import read_metrics, read_run_config
from echelon_train.runs.training import resume, train
from echelon_train.vec_env import BattleVecEnv
from train.resuming import OPTIONS, QUIET, at_step, differences, resumable_run
from train.small import small_battle


class PowerFailureError(Exception):
    """Ends a process in the middle of anything."""


def power_failure():
    raise PowerFailureError


def interrupt():
    signal.raise_signal(signal.SIGINT)


def staged(**overrides):
    """Through battles of different sizes: one stage after the other as soon as a battle is over."""
    curriculum = make_curriculum(("duel", "skirmish", "duel-open"), window=1, promote=0.0, demote=-1.0)
    stages = tuple(
        dataclasses.replace(each, config=small_battle(each.name, max_steps=steps))
        for each, steps in zip(curriculum.scenarios, (12, 7, 5), strict=True)
    )
    curriculum = dataclasses.replace(curriculum, scenarios=stages)
    return resumable_run(curriculum=curriculum, battle=stages[0].config, steps=300, **overrides)


def course(text):
    return Schedule.parse(text, "course")


CASES = {
    "all maps new, rewards that change": lambda: resumable_run(
        {"critic": "ippo"},
        {},
        maps=0,
        regenerate=2,
        reward_schedules=RewardSchedules(death=course("linear:-1:-9"), team_spirit=course("linear:0:1")),
    ),
    "a curriculum, and a critic that sees all": lambda: staged(network={"critic": "central"}, eval_every=100),
    "a teacher that plays less and less, through a curriculum": lambda: staged(
        teacher="novice",
        ppo={"policy_coef": 0.0, "kickstart_coef": course("linear:1:0.5"), "learner_share": course("linear:0:1")},
    ),
    "updates that stop early, evaluations": lambda: resumable_run(
        {"encoder": "flat"}, {"target_kl": 1e-4, "n_epochs": 4, "normalize_returns": False}, eval_every=40
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("case", CASES)
def test_a_continued_run_equals_one_that_never_stopped(case, tmp_path, monkeypatch):
    """Stopped by a signal, then resumed and broken off by an exception between two checkpoints."""
    config = CASES[case]()
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    steps = train(config, whole, console=QUIET).steps
    with monkeypatch.context() as patch:
        at_step(patch, 40, interrupt)
        result = train(config, stopped, console=QUIET)
    assert result.interrupted
    assert 0 < result.steps < steps
    with monkeypatch.context() as patch:
        at_step(patch, 24, power_failure)
        with pytest.raises(PowerFailureError):
            resume(stopped, console=QUIET)
    assert result.steps < load_checkpoint(stopped).steps < steps
    assert resume(stopped, console=QUIET).steps == steps
    assert differences(whole, stopped) == []
    names = [sorted(each.name for each in (run / "checkpoints").iterdir()) for run in (whole, stopped)]
    assert names[0] == names[1]
    best = [(run / "best.json") for run in (whole, stopped)]
    assert [each.exists() for each in best] == [config.eval_every > 0] * 2
    if config.eval_every:
        assert best[0].read_bytes() == best[1].read_bytes()


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run that was not stopped; only read it."""
    out = tmp_path_factory.mktemp("runs") / "finished"
    train(resumable_run(), out, console=QUIET)
    return out


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    """The same run, stopped after two iterations; only copy it."""
    out = tmp_path_factory.mktemp("runs") / "stopped"
    with pytest.MonkeyPatch.context() as patch:
        at_step(patch, 20, interrupt)
        assert train(resumable_run(), out, console=QUIET).steps == 64
    return out


@pytest.fixture
def copied(stopped, tmp_path):
    return shutil.copytree(stopped, tmp_path / "copied")


@pytest.mark.long
@pytest.mark.parametrize(("limit", "minutes"), [("max_minutes", 1.0), ("max_cpu_minutes", 60.0)])
def test_the_time_limit_covers_all_parts_of_a_run_and_its_schedules_end_with_it(limit, minutes, tmp_path, monkeypatch):
    """Also with a signal in the middle; every step of the environment takes a second here."""
    now, stock = [0.0], BattleVecEnv.step_wait
    monkeypatch.setattr(clock, "time", SimpleNamespace(monotonic=lambda: now[0], process_time=lambda: 60.0 * now[0]))

    def step_wait(self):
        now[0] += 1.0
        return stock(self)

    monkeypatch.setattr(BattleVecEnv, "step_wait", step_wait)
    rewards = RewardSchedules(death=Schedule(-1.0, -9.0, "linear"))
    rate = {"learning_rate": Schedule(1e-3, 0.0, "linear")}
    config = resumable_run(ppo=rate, reward_schedules=rewards, steps=100_000, **{limit: minutes})
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    result = train(config, whole, console=QUIET)
    assert (result.steps, result.interrupted, result.done) == (128, False, True), "four rollouts of 16 steps"
    now[0] = 1000.0
    with monkeypatch.context() as patch:
        at_step(patch, 20, interrupt)
        assert not train(config, parts, console=QUIET).done
    now[0] = 5000.0
    result = resume(parts, console=QUIET)
    assert (result.steps, result.interrupted, result.done) == (128, False, True)
    assert differences(whole, parts) == []
    lines = read_metrics(parts)
    rates = [line["train/learning_rate"] for line in lines if "train/learning_rate" in line]
    assert rates == pytest.approx([1e-3 * (1 - seconds / 60) for seconds in (16, 32, 48, 60)])
    assert [line["time/cpu_minutes"] for line in lines] == [16, 32, 48, 64, 64]
    used = 1.1 if limit == "max_minutes" else 64
    unit = "minutes" if limit == "max_minutes" else "CPU minutes"
    assert resume(parts, console=QUIET).nothing == f"{used} of {minutes:g} {unit} are used"
    result = resume(parts, console=QUIET, **{limit: 1.5 * minutes})
    assert (result.steps, result.done, result.nothing) == (192, True, "")
    result = resume(parts, console=QUIET, **{limit: 0.0}, steps=200)
    assert (result.steps, result.done) == (224, True)
    assert [each["steps"] for each in json.loads((parts / "run.json").read_text())["resumed"]] == [64, 128, 128, 192]


def test_a_run_that_has_ended_has_nothing_left_to_do_and_says_so(finished, tmp_path, capsys):
    again = shutil.copytree(finished, tmp_path / "again")
    assert main(["train", "--resume", str(again)]) == 0
    printed = capsys.readouterr().out
    assert "Nothing trained: 160 of 160 decisions are used.\n" in printed and "Trained on" not in printed
    assert f"Continue:   echelon train --resume {again}, with more --steps" in printed
    assert differences(finished, again) == []


@pytest.mark.long
def test_a_run_can_be_extended(finished, tmp_path):
    """With schedules that do not change it then equals a run that was as long from the start."""
    constant = {"learning_rate": Schedule.parse(1e-3, "x"), "ent_coef": Schedule.parse(0.01, "x")}
    config = resumable_run(ppo=constant)
    train(config, tmp_path / "short", console=QUIET)
    assert resume(tmp_path / "short", steps=256, console=QUIET).steps == 256
    assert read_run_config(tmp_path / "short").steps == 256
    train(dataclasses.replace(config, steps=256), tmp_path / "long", console=QUIET)
    assert differences(tmp_path / "long", tmp_path / "short") == []

    extended = shutil.copytree(finished, tmp_path / "extended")
    resume(extended, steps=320, console=QUIET)
    rates = {line["time/total_timesteps"]: line.get("train/learning_rate") for line in read_metrics(extended)}
    assert rates[160] == pytest.approx(7e-4 * (1 - 0.9 * 128 / 160))
    assert rates[224] == pytest.approx(7e-4 * (1 - 0.9 * 192 / 320))


SCRIPT = """
import os, signal, sys
from echelon_env.cli import main
from echelon_train.vec_env import BattleVecEnv
stock, left = BattleVecEnv.step_wait, [int(sys.argv[1])]
def step_wait(self):
    left[0] -= 1
    if left[0] == 0:
        os.kill(os.getpid(), int(sys.argv[2]))
    return stock(self)
BattleVecEnv.step_wait = step_wait
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # which nohup would have ignored
sys.exit(main(sys.argv[3:]))
"""


@pytest.fixture(scope="module")
def by_command(tmp_path_factory):
    """The result of the commands below without a stop."""
    out = tmp_path_factory.mktemp("runs") / "by_command"
    train(load_run_config("quickstart", OPTIONS), out, console=QUIET)
    return out


@pytest.mark.long
@pytest.mark.parametrize(
    ("number", "code", "steps"),
    [
        pytest.param(signal.SIGINT, 130, 96, id="SIGINT", marks=pytest.mark.slow),
        pytest.param(signal.SIGTERM, 130, 96, id="SIGTERM", marks=pytest.mark.slow),
        pytest.param(signal.SIGHUP, 130, 96, id="SIGHUP"),  # of a terminal that is closed
        pytest.param(signal.SIGKILL, -signal.SIGKILL, 64, id="SIGKILL", marks=pytest.mark.slow),
    ],
)
def test_a_process_is_stopped_and_another_resumes(tmp_path, by_command, number, code, steps, capsys):
    """In the third rollout; checkpoints are made every other one."""
    out = tmp_path / "run"
    options = [f"--set={name}={value}" for name, value in OPTIONS.items()]
    command = [sys.executable, "-c", SCRIPT, "40", str(int(number)), "train", *options, "--out", str(out)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (code, "")
    if number != signal.SIGKILL:
        assert ("Stopping and saving after this iteration" in ended.stdout) == (number != signal.SIGHUP)
        assert f"echelon train --resume {out}" in ended.stdout.replace("\n", " ")
    assert load_checkpoint(out).steps == steps
    assert main(["train", "--resume", str(out)]) == 0
    assert "Trained on 160 decisions" in capsys.readouterr().out
    assert differences(by_command, out) == []


@pytest.mark.long
def test_a_budget_of_games_covers_all_parts_of_a_run_which_resumes_exactly(tmp_path):
    rate = {"learning_rate": Schedule(1e-3, 0.0, "linear")}
    config = resumable_run(ppo=rate, steps=100_000, max_battles=9)
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    result = train(config, whole, console=QUIET)
    lines = read_metrics(whole)
    counts = [line["battle/count"] for line in lines if "battle/count" in line]
    assert (result.interrupted, result.done) == (False, True)
    assert counts[-1] >= 9 > counts[-2] > 0, "it ends with the rollout in which its games are done"
    rates = [line["train/learning_rate"] for line in lines if "train/learning_rate" in line]
    assert rates == pytest.approx([1e-3 * max(0.0, 1 - count / 9) for count in counts])
    with pytest.MonkeyPatch.context() as patch:
        at_step(patch, 40, interrupt)
        assert not train(config, parts, console=QUIET).done
    assert resume(parts, console=QUIET).steps == result.steps
    assert differences(whole, parts) == []
    assert resume(parts, console=QUIET).nothing == f"{counts[-1]:g} of 9 games are used"
    longer = resume(parts, console=QUIET, max_battles=20)
    assert longer.done and longer.steps > result.steps
    document = json.loads((parts / "run.json").read_text())
    assert document["config"]["max_battles"] == 20
    assert resume(parts, console=QUIET, max_battles=0, steps=longer.steps + 32).steps == longer.steps + 32


@pytest.mark.slow
def test_a_second_signal_stops_at_once(tmp_path):
    """Without saving, and with nothing half-written."""
    out = tmp_path / "run"
    options = [f"--set={name}={value}" for name, value in OPTIONS.items()]
    twice = SCRIPT.replace("== 0", "in (0, -1)")
    command = [sys.executable, "-c", twice, "40", str(int(signal.SIGINT)), "train", *options, "--out", str(out)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (130, "echelon: interrupted\n")
    assert load_checkpoint(out).steps == 64
    assert [each.name for each in out.rglob(".*")] == []
