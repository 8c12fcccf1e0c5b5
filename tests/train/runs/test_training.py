import gc
import json
import math
import signal

import numpy as np
import psutil
import pytest
import torch
from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from echelon_env.cli import main
from echelon_env.networks.possible import action_limits
from echelon_train.checkpoints.checkpoint import load_checkpoint, weights_of
from echelon_train.config.ppo import PPOConfig
from echelon_train.config.schedules import RewardSchedules, Schedule
from echelon_train.config.train import TrainConfig, training_curriculum
from echelon_train.ppo import EchelonRecurrentPPO
from echelon_train.ppo.update import Update
from echelon_train.runs.building import make_teacher
from echelon_train.runs.folder import read_metrics
from echelon_train.runs.training import train
from echelon_train.vec_env import BattleVecEnv
from train.resuming import OPTIONS, at_step
from train.small import small_battle, small_run


def test_a_run_leaves_all_its_files(finished_run):
    document = json.loads((finished_run / "run.json").read_text())
    assert TrainConfig.from_dict(document["config"]) == small_run(eval_every=32)
    assert sorted(p.name for p in (finished_run / "checkpoints").iterdir()) == [
        "0000000000",
        "0000000032",
        "0000000064",
    ]
    assert load_checkpoint(finished_run).steps == 64
    with Image.open(finished_run / "curves.png") as picture:
        assert len(picture.convert("RGB").getcolors(1 << 24)) > 50


def test_a_change_of_stage_reaches_the_teacher_and_the_masks(tmp_path, quiet, monkeypatch):
    first = small_battle()
    second = small_battle("skirmish", decision_repeat=2 * first.decision_repeat)
    curriculum = training_curriculum([first, second], window=1, promote=0.0, demote=-1.0)
    ppo = PPOConfig(n_steps=16, batch_size=16, n_epochs=1, kickstart_coef=Schedule.constant(1.0))
    config = small_run(battle=first, curriculum=curriculum, teacher="novice", ppo=ppo, steps=200)
    made = []
    monkeypatch.setattr(
        "echelon_train.runs.run.make_teacher", lambda *args: made.append(make_teacher(*args)) or made[-1]
    )
    policy = load_checkpoint(train(config, tmp_path / "run", console=quiet).checkpoint).policy
    assert [len(teacher.plays) for teacher in made] == [config.stage(1).battles * len(second.blue)]
    assert np.array_equal(policy.action_limits, action_limits(second))
    assert not np.array_equal(policy.action_limits, action_limits(first))


def test_metrics_are_written_as_lines_and_for_tensorboard(finished_run):
    lines = read_metrics(finished_run)
    assert [line["time/total_timesteps"] for line in lines] == [32, 64, 64]
    assert lines[1]["battle/count"] == 4
    assert sum(lines[1][f"battle/{name}_rate"] for name in ("win", "draw", "loss")) == pytest.approx(1.0)
    assert {"rollout/ep_rew_mean", "rollout/success_rate", "train/approx_kl", "battle/return"} <= lines[1].keys()
    assert all("eval/win_rate" in line for line in lines)
    assert [line["eval/timesteps"] for line in lines] == [0, 32, 64]
    recorded = json.loads((finished_run / "statistics.json").read_text())["evaluations"]
    assert [each["steps"] for each in recorded] == [0, 32, 64]
    events = EventAccumulator(str(finished_run / "tensorboard"))
    events.Reload()
    assert {"battle/win_rate", "eval/win_rate", "train/value_loss", "time/fps"} <= set(events.Tags()["scalars"])


def test_evaluations_and_films_leave_the_training_as_it_is(tmp_path, quiet):
    """The same seed trains the same policy, another one another."""
    trained = []
    for number, changes in enumerate(({"eval_every": 32, "film_every": 64}, {}, {"seed": 1})):
        run = train(small_run(**changes), tmp_path / f"{number}", console=quiet)
        trained.append(weights_of(load_checkpoint(run.checkpoint).policy))
    watched, plain, other = trained
    assert all(torch.equal(watched[name], plain[name]) for name in plain)
    assert not torch.equal(watched["action_net.weight"], other["action_net.weight"])


@pytest.mark.parametrize(("failure", "existing"), [
    (KeyboardInterrupt, True), (MemoryError, False), (lambda: OSError(28, "No space left on device"), True),
])  # fmt: skip
def test_a_run_that_fails_before_its_first_checkpoint_can_be_tried_again(
    tmp_path, quiet, monkeypatch, failure, existing
):
    """In a new folder, and in an empty one that is there already, as a link to it is."""
    if existing:
        (tmp_path / "target").mkdir()
        (tmp_path / "run").symlink_to(tmp_path / "target")

    def fail(*args):
        raise failure()

    with monkeypatch.context() as patch:
        patch.setattr("echelon_train.runs.run.build_model", fail)
        with pytest.raises((KeyboardInterrupt, MemoryError, OSError)) as caught:
            train(small_run(), tmp_path / "run", console=quiet)
    if isinstance(caught.value, OSError):
        assert caught.value.filename == str(tmp_path / "run")
    assert (tmp_path / "run").exists() == existing
    assert [*(tmp_path / "run").glob("*")] == []


def no_memory_on_the_gpu(*_):
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 9.00 GiB.\nMore lines")


@pytest.mark.parametrize(
    ("fail", "said"),
    [
        (lambda *_: torch.empty(1 << 50), "can't allocate memory: you tried to allocate 4503599627370496 bytes"),
        (no_memory_on_the_gpu, "CUDA out of memory. Tried to allocate 9.00 GiB.\n"),
    ],
)
def test_memory_that_ends_in_an_update_is_said_in_a_line(tmp_path, monkeypatch, capsys, fail, said):
    out = tmp_path / "run"
    options = [f"--set={name}={value}" for name, value in OPTIONS.items()]
    monkeypatch.setattr(Update, "gradient", fail)
    assert main(["train", *options, "--out", str(out)]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"echelon: not enough memory: {said}") and error.count("\n") == 1
    assert load_checkpoint(out).steps == 0


def test_a_rollout_that_was_cut_short_does_not_count(tmp_path, quiet, monkeypatch):
    """Stopped before the second rollout, 32 samples have been trained on, and the checkpoint says so."""
    at_step(monkeypatch, 8, lambda: signal.raise_signal(signal.SIGTERM))
    result = train(small_run(checkpoint_every=0), tmp_path / "run", console=quiet)
    assert (result.steps, result.interrupted) == (32, True)
    assert load_checkpoint(tmp_path / "run").steps == 32
    assert [line["time/total_timesteps"] for line in read_metrics(tmp_path / "run")] == [32]


def test_the_reward_of_every_decision_is_weighted_by_its_schedule(tmp_path, quiet, monkeypatch):
    """From the run's beginning to its end; each rollout has the weights of its first decision."""
    stock, spent, weights = BattleVecEnv.step_wait, [], []

    def step_wait(self):
        spent.append(len(spent) * self.num_envs)
        rewards = self.battles.engine.config.rewards
        weights.append((rewards.death, rewards.team_spirit, rewards.kill))
        return stock(self)

    monkeypatch.setattr(BattleVecEnv, "step_wait", step_wait)
    courses = {"death": "linear:-1:-9", "team_spirit": "cosine:0:1"}
    schedules = RewardSchedules(**{name: Schedule.parse(text, name) for name, text in courses.items()})
    config = small_run(steps=96, reward_schedules=schedules, battle=small_battle(max_steps=200))
    assert train(config, tmp_path / "run", console=quiet).steps == 96, "no mech dies, so that all decisions count"
    assert len(weights) == 48
    for samples, (death, team_spirit, kill) in zip(spent, weights, strict=True):
        gone = samples // 32 * 32 / 96
        assert death == pytest.approx(-1 - 8 * gone)
        assert team_spirit == pytest.approx((1 - math.cos(math.pi * gone)) / 2)
        assert kill == config.battle.rewards.kill


@pytest.mark.slow
def test_memory_stays_flat_over_200_updates_of_a_run(tmp_path, quiet, monkeypatch):
    """With everything that a run has: battles, their statistics, loggers, checkpoints."""
    updates, seen, stock = 0, [], EchelonRecurrentPPO.train

    def train_and_measure(self):
        nonlocal updates
        stock(self)
        updates += 1
        if updates in (60, 260):
            gc.collect()
            tensors = sum(issubclass(type(each), torch.Tensor) for each in gc.get_objects())
            seen.append((tensors, psutil.Process().memory_info().rss))

    monkeypatch.setattr(EchelonRecurrentPPO, "train", train_and_measure)
    train(small_run(steps=32 * 270, maps=3, checkpoint_every=32 * 20), tmp_path / "run", console=quiet)
    (tensors, resident), (tensors_after, resident_after) = seen
    assert tensors_after <= tensors
    # a rollout's observations are 130 kB: kept, those of 200 would be 26 MB
    assert resident_after - resident < 8 * 2**20
