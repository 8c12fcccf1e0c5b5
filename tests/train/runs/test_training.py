import gc
import io
import json
import math
import signal

import numpy as np
import psutil
import pytest
import torch
from PIL import Image
from rich.console import Console
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from echelon_env.cli import main
from echelon_env.evaluate import validation_seed
from echelon_env.layout.observations import OBSERVATION_DIM
from echelon_env.networks.possible import action_limits
from echelon_train.checkpoints.checkpoint import load_checkpoint, weights_of
from echelon_train.config.files import load_run_config
from echelon_train.config.ppo import PPOConfig
from echelon_train.config.schedules import RewardSchedules, Schedule
from echelon_train.config.train import TrainConfig, training_curriculum
from echelon_train.errors import DeviceError
from echelon_train.policy import build_policy
from echelon_train.ppo import EchelonRecurrentPPO
from echelon_train.ppo.update import Update
from echelon_train.runs.building import build_model, make_teacher
from echelon_train.runs.callbacks import StopCallback
from echelon_train.runs.evaluation import evaluate
from echelon_train.runs.folder import read_metrics
from echelon_train.runs.training import resume, train
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


def test_the_policy_starts_at_the_seeds_weights_and_moves(finished_run):
    start = weights_of(build_policy(small_run().network, 0))
    first = weights_of(load_checkpoint(finished_run / "checkpoints" / "0000000000").policy)
    last = weights_of(load_checkpoint(finished_run).policy)
    assert all(torch.equal(start[name], first[name]) for name in start)
    assert not torch.equal(first["action_net.weight"], last["action_net.weight"])


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


def test_a_run_is_not_watched_on_the_maps_of_the_evaluation_with_its_seed(tmp_path, quiet, monkeypatch):
    seen = []

    def watch(*args, seed, **kwargs):
        seen.append(seed)
        return evaluate(*args, seed=seed, **kwargs)

    monkeypatch.setattr("echelon_train.runs.run.evaluate", watch)
    train(small_run(eval_every=32, seed=5), tmp_path / "run", console=quiet)
    assert set(seen) == {validation_seed(5)}


def test_metrics_are_written_as_lines_and_for_tensorboard(finished_run):
    lines = read_metrics(finished_run)
    assert [line["time/total_timesteps"] for line in lines] == [32, 64, 64]
    assert lines[1]["battle/count"] == 4
    assert lines[1]["battle/win_rate"] + lines[1]["battle/draw_rate"] + lines[1]["battle/loss_rate"] == 1.0
    assert {"rollout/ep_rew_mean", "rollout/success_rate", "train/approx_kl", "battle/return"} <= lines[1].keys()
    assert all("eval/win_rate" in line for line in lines)
    assert [line["eval/timesteps"] for line in lines] == [0, 32, 64]
    recorded = json.loads((finished_run / "statistics.json").read_text())["evaluations"]
    assert [each["steps"] for each in recorded] == [0, 32, 64]
    events = EventAccumulator(str(finished_run / "tensorboard"))
    events.Reload()
    assert {"battle/win_rate", "eval/win_rate", "train/value_loss", "time/fps"} <= set(events.Tags()["scalars"])


def test_the_same_seed_trains_the_same_policy(tmp_path, quiet, finished_run):
    again = train(small_run(), tmp_path / "again", console=quiet)
    other = train(small_run(seed=1), tmp_path / "other", console=quiet)
    ours, theirs = (
        weights_of(load_checkpoint(finished_run).policy),
        weights_of(load_checkpoint(again.checkpoint).policy),
    )
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    name = "action_net.weight"
    assert not torch.equal(ours[name], weights_of(load_checkpoint(other.checkpoint).policy)[name])


def test_of_equal_evaluations_the_newest_is_the_best(tmp_path, quiet):
    """None of these policies wins a battle."""
    config = small_run(eval_every=32, eval_opponent="expert", battle=small_battle(max_steps=2))
    result = train(config, str(tmp_path / "run"), console=quiet)
    assert {line["eval/win_rate"] for line in read_metrics(tmp_path / "run")} == {0.0}
    assert json.loads((tmp_path / "run" / "best.json").read_text())["steps"] == result.steps > 0


def test_a_run_says_how_long_only_the_critic_learns(tmp_path):
    console = Console(file=io.StringIO(), width=200)
    config = small_run(steps=16, ppo=PPOConfig(n_steps=16, batch_size=16, critic_warmup=2))
    train(config, tmp_path / "run", console=console)
    said = "Only the critic learns in the first rollouts (ppo.critic_warmup): {}, up to {} decisions"
    assert said.format(2, 2 * 16 * config.rows) in console.file.getvalue()
    console.file.truncate(0)
    resume(str(tmp_path / "run"), steps=64, console=console)
    assert said.format(1, 16 * config.rows) in console.file.getvalue()


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path, quiet):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        train(small_run(), tmp_path / "file" / "run", console=quiet)


def test_an_absent_device_leaves_no_folder(tmp_path, quiet):
    with pytest.raises(DeviceError):
        train(small_run(device="cuda:99"), tmp_path / "run", console=quiet)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("failure", [KeyboardInterrupt, MemoryError, lambda: OSError(28, "No space left on device")])
@pytest.mark.parametrize("existing", [False, True])
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
    train(small_run(), tmp_path / "run", console=quiet)


def no_memory_on_the_gpu(*_):
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 9.00 GiB.\nMore lines")


@pytest.mark.parametrize(
    ("fail", "said"),
    [
        (lambda *_: torch.empty(1 << 50), "can't allocate memory: you tried to allocate 4503599627370496 bytes"),
        (no_memory_on_the_gpu, "CUDA out of memory. Tried to allocate 9.00 GiB.\n"),
        (lambda *_: np.empty(1 << 50), "Unable to allocate 8.00 PiB"),
    ],
)
def test_memory_that_ends_in_an_update_is_said_in_a_line(tmp_path, monkeypatch, capsys, fail, said):
    out = tmp_path / "run"
    options = [f"--set={name}={value}" for name, value in OPTIONS.items()]
    monkeypatch.setattr(Update, "gradient", fail)
    assert main(["train", *options, "--out", str(out)]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"echelon: not enough memory: {said}") and error.count("\n") == 1
    monkeypatch.undo()
    assert resume(out, console=Console(quiet=True)).done


def test_a_run_that_fails_later_keeps_its_checkpoints(tmp_path, quiet, monkeypatch):
    def fail(self):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(StopCallback, "_on_step", fail)
    with pytest.raises(OSError, match="No space"):
        train(small_run(), tmp_path / "run", console=quiet)
    assert load_checkpoint(tmp_path / "run").steps == 0


def test_the_learning_rate_stays_positive_when_the_last_rollout_overshoots(tmp_path, quiet):
    config = small_run(steps=1)
    train(config, tmp_path / "run", console=quiet)
    rates = [line["train/learning_rate"] for line in read_metrics(tmp_path / "run") if "train/learning_rate" in line]
    assert rates == [pytest.approx(config.ppo.learning_rate.end)]


def test_a_rollout_that_was_cut_short_does_not_count(tmp_path, quiet, monkeypatch):
    """Stopped before the second rollout, 32 samples have been trained on, and the checkpoint says so."""
    at_step(monkeypatch, 8, lambda: signal.raise_signal(signal.SIGTERM))
    result = train(small_run(checkpoint_every=0), tmp_path / "run", console=quiet)
    assert (result.steps, result.interrupted) == (32, True)
    assert load_checkpoint(tmp_path / "run").steps == 32
    assert [line["time/total_timesteps"] for line in read_metrics(tmp_path / "run")] == [32]


@pytest.mark.parametrize("scenario", ["duel", "skirmish"])
def test_teams_train_as_rows(scenario):
    config = small_run(battle=small_battle(scenario, max_steps=5))
    env = BattleVecEnv(config.battle, config.battles, opponent=config.opponent)
    model = build_model(config, env, "cpu")
    rows = config.battles * len(config.battle.blue)
    model.learn(rows * 16)
    buffer = model.rollout_buffer
    assert buffer.observations.shape == (16, rows, OBSERVATION_DIM)
    assert buffer.rewards.abs().sum() > 0
    assert model._n_updates == 1
    assert torch.isfinite(buffer.advantages).all()
    assert model.num_timesteps == int(buffer.actor_mask.sum())


def test_truncated_battles_are_bootstrapped():
    """The value of the real final observation, where the clock truncates; none where it terminates."""
    values = {}
    for time_limit in ("truncate", "terminate"):
        config = small_run(battle=small_battle(max_steps=5, time_limit=time_limit))
        model = build_model(config, BattleVecEnv(config.battle, 2, opponent="trivial"), "cpu")
        with torch.no_grad():
            model.policy.value_net.bias.fill_(1.0)
        std = float(model.policy.return_normalizer.std)
        model.learn(32)
        values[time_limit] = model.rollout_buffer.bootstraps / std
    expected = torch.zeros(16, 2)
    expected[4::5] = 1.0
    torch.testing.assert_close(values["truncate"], expected)
    assert not values["terminate"].any()


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


def test_a_curriculum_trains_to_its_last_stage(tmp_path, quiet):
    """With a few battles of a few decisions of a small network, and a rule that always leads on."""
    small = {
        "steps": "500",
        "battles": "4",
        "threads": "1",
        "maps": "0",
        "device": "cpu",
        "eval_every": "0",
        "battle.max_steps": "4",
        "curriculum": '["duel", "skirmish", "battle"]',
        "curriculum.window": "1",
        "curriculum.promote": "0",
        "curriculum.demote": "-1",
        "network.width": "8",
        "network.head": "8",
        "ppo.n_steps": "16",
        "ppo.batch_size": "64",
    }
    result = train(load_run_config("quickstart", small), tmp_path / "run", console=quiet)
    lines = read_metrics(tmp_path / "run")
    names = [line["curriculum/scenario"] for line in lines if "curriculum/scenario" in line]
    assert list(dict.fromkeys(names)) == ["duel", "skirmish", "battle"]
    assert len(names) > 3
    assert len(load_checkpoint(result.checkpoint).battle.blue) == 10


def test_the_setting_deterministic_reaches_the_algorithm():
    """It only matters on CUDA, see the tests there."""
    for wanted in (False, True):
        config = load_run_config("quickstart", {"deterministic": str(wanted).lower(), "battles": "1"})
        model = build_model(config, BattleVecEnv(config.battle, 32, opponent="trivial"), "cpu")
        assert model.deterministic == wanted


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
