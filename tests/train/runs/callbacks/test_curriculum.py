import copy
import dataclasses
import io
import json
import signal
from pathlib import Path

import pytest
import torch
from rich.console import Console

from echelon_env import ConfigError
from echelon_env.config import Opponents
from echelon_env.config.curriculum import Curriculum, Move, Progress, make_curriculum
from echelon_train.checkpoints.checkpoint import load_checkpoint, weights_of
from echelon_train.config.train import TrainConfig, battle_config, training_curriculum
from echelon_train.ppo import EchelonRecurrentPPO
from echelon_train.runs import run as run_module
from echelon_train.runs.building import build_model, make_env
from echelon_train.runs.folder import read_metrics
from echelon_train.runs.training import train
from train.resuming import at_step
from train.small import small_battle, small_evaluation, small_run

SCENARIOS = ("duel", "skirmish", "duel-open")
LENGTHS = (12, 7, 5)
UNEVEN = small_battle(red=("light", "scout"))


def small_curriculum(*scenarios: str, **rule: object) -> Curriculum:
    """Battles of different lengths; moves on after every one unless the rule says otherwise."""
    curriculum = make_curriculum(scenarios or SCENARIOS, **({"window": 1, "promote": 0.0, "demote": -1.0} | rule))
    stages = [
        dataclasses.replace(scenario, config=small_battle(scenario.name, max_steps=steps))
        for scenario, steps in zip(curriculum.scenarios, LENGTHS, strict=False)
    ]
    return dataclasses.replace(curriculum, scenarios=tuple(stages))


def staged_run(curriculum: Curriculum | None = None, **overrides: object) -> TrainConfig:
    curriculum = curriculum or small_curriculum()
    return small_run(curriculum=curriculum, battle=curriculum.scenarios[0].config, **({"steps": 200} | overrides))


def copied_state(model: EchelonRecurrentPPO) -> tuple[dict, dict, int]:
    weights = {name: tensor.clone() for name, tensor in weights_of(model.policy).items()}
    return weights, copy.deepcopy(model.policy.optimizer.state_dict()), model.num_timesteps


def assert_same_state(first: tuple[dict, dict, int], second: tuple[dict, dict, int]) -> None:
    assert first[0].keys() == second[0].keys()
    assert all(torch.equal(first[0][name], second[0][name]) for name in first[0])
    assert first[1]["param_groups"] == second[1]["param_groups"]
    assert first[1]["state"].keys() == second[1]["state"].keys()
    for key, moments in first[1]["state"].items():
        assert all(torch.equal(moments[name], second[1]["state"][key][name]) for name in moments)
    assert first[2] == second[2]


@pytest.fixture(scope="module")
def staged(tmp_path_factory) -> Path:
    """The folder of a run through all stages; only read it."""
    out = tmp_path_factory.mktemp("runs") / "staged"
    train(staged_run(eval_every=32), out, console=Console(quiet=True))
    return out


def test_a_run_goes_through_teams_of_all_sizes(staged):
    """One stage a rollout, although several battles end in each: battles that end after the decision do not count."""
    lines = [line for line in read_metrics(staged) if "curriculum/stage" in line]
    assert [line["curriculum/stage"] for line in lines[:4]] == [0, 1, 2, 2]
    assert [line["curriculum/scenario"] for line in lines[:4]] == ["duel", "skirmish", "duel-open", "duel-open"]
    assert [line["curriculum/battles"] for line in lines[:2]] == [1, 1]
    assert all(line["curriculum/win_rate"] in (0.0, 1.0) for line in lines)
    assert [line["time/total_timesteps"] for line in lines[:4]] == [32, 32 + 80, 32 + 80 + 32, 32 + 80 + 64]
    assert [line["battle/length"] for line in lines[:4]] == [12, 7, 5, 5]
    assert [line["battle/count"] for line in lines[:4]] == [2, 2 + 2, 4 + 2 * 3, 10 + 2 * 3]


def test_checkpoints_hold_the_battle_of_their_stage(staged):
    folders = sorted((staged / "checkpoints").iterdir())
    checkpoints = [load_checkpoint(folder) for folder in folders]
    stages = [scenario.config for scenario in small_curriculum().scenarios]
    assert [checkpoint.steps for checkpoint in checkpoints] == [0, 32, 112, 144, 176, 208]
    expected = [stages[0], stages[1], *[stages[2]] * 4]
    assert [checkpoint.battle for checkpoint in checkpoints] == expected


def test_the_runs_file_holds_the_curriculum(staged):
    document = json.loads((staged / "run.json").read_text())
    assert TrainConfig.from_dict(document["config"]) == staged_run(eval_every=32)


def test_the_learning_rate_falls_as_in_a_plain_run(staged):
    lines = [line for line in read_metrics(staged) if "train/learning_rate" in line]
    trained = [32, 112, 144, 176, 208]
    expected = [7e-4 * (0.1 + 0.9 * max(1 - steps / 200, 0.0)) for steps in trained]
    assert [line["train/learning_rate"] for line in lines] == pytest.approx(expected)


def test_the_policy_its_optimizer_and_the_counters_are_kept(tmp_path, quiet, monkeypatch):
    changes = []
    stock = EchelonRecurrentPPO.replace_env

    def watch(self, env):
        before, policy, updates = copied_state(self), self.policy, self._n_updates
        stock(self, env)
        assert_same_state(before, copied_state(self))
        assert self.policy is policy
        assert self._n_updates == updates
        changes.append((env.num_envs, self.rollout_buffer.num_rows, self.collector.states.pi[0].shape[1]))

    monkeypatch.setattr(EchelonRecurrentPPO, "replace_env", watch)
    train(staged_run(), tmp_path / "run", console=quiet)
    assert changes == [(5, 5, 5), (2, 2, 2)]


def test_a_new_environment_starts_with_new_battles():
    """After a change the model collects what a model with the same weights collects from the start."""
    config = staged_run().stage(1)
    model = build_model(staged_run(), make_env(staged_run()), "cpu")
    model.learn(32)
    model.replace_env(make_env(config))
    fresh = build_model(config, make_env(config), "cpu")
    fresh.policy.load_state_dict(model.policy.state_dict())
    buffers = []
    for each in (model, fresh):
        torch.manual_seed(0)
        each.learn(80, reset_num_timesteps=each is fresh)
        buffers.append(each.rollout_buffer)
    for name in ("observations", "actions", "rewards", "episode_starts", "returns"):
        assert torch.equal(getattr(buffers[0], name), getattr(buffers[1], name))
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(buffers[0].states, buffers[1].states, strict=True))
    assert model.num_timesteps == 112


def test_a_curriculum_of_one_stage_is_a_plain_run(tmp_path, quiet):
    train(small_run(), tmp_path / "plain", console=quiet)
    train(staged_run(small_curriculum("duel"), steps=64), tmp_path / "one-stage", console=quiet)
    plain, staged = (weights_of(load_checkpoint(tmp_path / name).policy) for name in ("plain", "one-stage"))
    assert all(torch.equal(plain[name], staged[name]) for name in plain)


def test_the_same_seed_takes_the_same_course(tmp_path, quiet, staged):
    train(staged_run(), tmp_path / "again", console=quiet)
    ours, theirs = (weights_of(load_checkpoint(run).policy) for run in (staged, tmp_path / "again"))
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_evaluations_play_the_current_stage(tmp_path, quiet, monkeypatch):
    played = []

    def evaluate(player, opponent, config, **kwargs):
        played.append(len(config.blue))
        return small_evaluation()

    monkeypatch.setattr(run_module, "evaluate", evaluate)
    train(staged_run(eval_every=1, steps=112), tmp_path / "run", console=quiet)
    assert played == [1, 5, 5]  # the last one at the end: the move after it is not made


def test_a_change_is_printed_with_its_reason(tmp_path):
    console = Console(file=io.StringIO(), width=200)
    train(staged_run(small_curriculum(window=2)), tmp_path / "run", console=console)
    text = console.file.getvalue()
    assert "Curriculum: duel -> skirmish at 32 decisions, after 2 battles, " in text
    assert "% of the last 2 won" in text
    assert "Curriculum: skirmish -> duel-open at 112 decisions, after 2 battles, " in text


def test_a_stage_that_is_entered_again_has_new_battles(tmp_path, quiet, monkeypatch):
    def to_and_fro(self, won):
        self._stage = 1 - self._stage
        return Move(self._stage, 0.5, 1)

    seeds = []

    def watch(config, *arguments, **keywords):
        env = make_env(config, *arguments, **keywords)
        env.reset()
        seeds.append((len(config.battle.blue), frozenset(env.battles.engine.state.battles["seed"].tolist())))
        return make_env(config, *arguments, **keywords)

    monkeypatch.setattr(Progress, "record", to_and_fro)
    monkeypatch.setattr(run_module, "make_env", watch)
    train(staged_run(), tmp_path / "run", console=quiet)
    assert [size for size, _ in seeds] == [1, 5, 1, 5]
    drawn = [seed for _, each in seeds for seed in each]
    assert len(drawn) == len(set(drawn))


def test_ctrl_c_after_a_change_saves_the_stage_it_is_in(tmp_path, quiet, monkeypatch):
    at_step(monkeypatch, 8, lambda: signal.raise_signal(signal.SIGINT))
    result = train(staged_run(checkpoint_every=0), tmp_path / "run", console=quiet)
    assert (result.steps, result.interrupted) == (32, True)
    assert len(load_checkpoint(tmp_path / "run").battle.blue) == 5


def test_environments_are_closed(tmp_path, quiet, monkeypatch):
    made, closed = [], set()

    def watch(config, *arguments, **keywords):
        env = make_env(config, *arguments, **keywords)
        made.append(env)
        stock = env.close
        env.close = lambda: (closed.add(env), stock())
        return env

    monkeypatch.setattr(run_module, "make_env", watch)
    train(staged_run(threads=2), tmp_path / "run", console=quiet)
    assert len(made) == 3
    assert closed == set(made)


def test_a_run_with_a_curriculum_survives_json():
    config = staged_run()
    assert TrainConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config
    plain = small_run().to_dict()
    assert plain["curriculum"] is None
    assert TrainConfig.from_dict({key: value for key, value in plain.items() if key != "curriculum"}) == small_run()


def test_training_curricula_keep_the_dead_and_the_clock():
    curriculum = training_curriculum(["duel", "skirmish"], window=7)
    assert [scenario.config for scenario in curriculum.scenarios] == [battle_config("duel"), battle_config("skirmish")]
    assert (curriculum.window, [s.name for s in curriculum.scenarios]) == (7, ["duel", "skirmish"])


@pytest.mark.parametrize(("battles", "expected"), [(64, [64, 13, 64]), (1, [1, 1, 1]), (10, [10, 2, 10])])
def test_rows_stay_about_the_same(battles, expected):
    config = staged_run(battles=battles)
    stages = [config.stage(index) for index in range(3)]
    assert [stage.battles for stage in stages] == expected
    assert [stage.curriculum for stage in stages] == [None] * 3
    assert stages[0] == dataclasses.replace(config, curriculum=None)
    assert small_run().stage(0) == small_run()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: small_run(curriculum=small_curriculum("duel-open", "duel")),
            "expected the battle of the curriculum's first stage",
        ),
        (lambda: staged_run(make_curriculum(["duel"])), "persist"),
        (
            lambda: staged_run(training_curriculum(["duel", UNEVEN])),
            r"stage 1 \(stage 1\): .*teams of 1 and 2 mechs need a learner",
        ),
        (lambda: small_run(battle=UNEVEN), "teams of 1 and 2 mechs need a learner"),
        (lambda: small_run(curriculum=["duel"]), "curriculum"),
        (lambda: TrainConfig.from_dict(small_run().to_dict() | {"curriculum": {"promot": 1}}), "curriculum.promot"),
        (lambda: TrainConfig.from_dict(small_run().to_dict() | {"curriculum": 3}), "curriculum"),
    ],
)
def test_impossible_curricula_are_refused(make, message):
    with pytest.raises(ConfigError, match=message):
        make()


def test_minibatches_fit_the_stage_that_has_the_fewest_mechs():
    curriculum = small_curriculum("duel", "skirmish")
    config = dataclasses.replace(staged_run(curriculum), battles=6)
    config = dataclasses.replace(config, ppo=dataclasses.replace(config.ppo, batch_size=96))  # all of the first stage's
    second = config.stage(1)
    assert second.battles * len(second.battle.blue) < config.battles
    model = build_model(config, make_env(config.stage(0)), "cpu")
    model.get_env().close()
    model.replace_env(make_env(second))
    model.learn(1)
    model.get_env().close()


@pytest.mark.parametrize(("side", "opponent", "counts"), [
    ("both", "self", True), ("blue", "self", True), ("both", {"self": 1, "trivial": 1}, False),
])  # fmt: skip
def test_battles_against_itself_count_where_there_are_no_others(tmp_path, quiet, side, opponent, counts):
    curriculum = small_curriculum("duel", "duel-open", window=100)
    train(
        staged_run(curriculum, side=side, opponent=Opponents.parse(opponent), steps=64), tmp_path / "run", console=quiet
    )
    lines = [line for line in read_metrics(tmp_path / "run") if "curriculum/battles" in line and "battle/count" in line]
    played, counted = lines[-1]["battle/count"], lines[-1]["curriculum/battles"]
    assert 0 < counted <= played
    assert (counted == played) == counts
