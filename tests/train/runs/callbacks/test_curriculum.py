import dataclasses
from pathlib import Path

import pytest
import torch
from rich.console import Console

from echelon_env import ConfigError
from echelon_env.config import Opponents
from echelon_env.config.curriculum import Curriculum, Move, Progress, make_curriculum
from echelon_train.config.train import TrainConfig, training_curriculum
from echelon_train.runs import run as run_module
from echelon_train.runs.building import build_model, make_env
from echelon_train.runs.folder import read_metrics
from echelon_train.runs.training import train
from train.small import small_battle, small_run

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
    assert [line["battle/length"] for line in lines[:4]] == pytest.approx([12, 7, 5, 5])
    assert [line["battle/count"] for line in lines[:4]] == [2, 2 + 2, 4 + 2 * 3, 10 + 2 * 3]


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
        (lambda: TrainConfig.from_dict(small_run().to_dict() | {"curriculum": {"promot": 1}}), "curriculum.promot"),
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
