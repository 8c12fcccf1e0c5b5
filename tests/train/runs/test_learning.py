"""The trainer learns."""

import pytest

from echelon_env.networks.config import NetworkConfig
from echelon_train.checkpoints.checkpoint import load_checkpoint
from echelon_train.checkpoints.players import network_player
from echelon_train.config.ppo import PPOConfig
from echelon_train.config.schedules import Schedule
from echelon_train.config.train import TrainConfig, battle_config
from echelon_train.policy import build_policy
from echelon_train.runs.evaluation import evaluate
from echelon_train.runs.folder import read_metrics
from echelon_train.runs.training import train


@pytest.mark.long
def test_imitation_lowers_the_loss_of_the_teachers_labels(tmp_path, quiet):
    ppo = PPOConfig(
        n_steps=64,
        batch_size=128,
        n_epochs=4,
        learning_rate=Schedule.constant(3e-3),
        policy_coef=0.0,
        kickstart_coef=Schedule.constant(1.0),
        learner_share=Schedule.parse("linear:0:1", "learner_share"),
    )
    config = TrainConfig(
        battle=battle_config("duel-open"),
        teacher="expert",
        steps=6144,
        battles=8,
        device="cpu",
        eval_every=0,
        network=NetworkConfig(width=32, head=32, set_width=8),
        ppo=ppo,
    )
    train(config, tmp_path / "run", console=quiet)
    found = [line["train/kickstart_loss"] for line in read_metrics(tmp_path / "run") if "train/kickstart_loss" in line]
    assert len(found) == 12
    last = next(line for line in reversed(read_metrics(tmp_path / "run")) if "train/kickstart_loss" in line)
    by_block = {name: loss for name, loss in last.items() if name.startswith("train/kickstart_loss_")}
    labelled = ("motion", "triggers", "target")
    assert {f"train/kickstart_loss_{block}" for block in labelled} <= by_block.keys()
    assert sum(by_block.values()) == pytest.approx(last["train/kickstart_loss"], rel=1e-4)
    assert sum(found[-3:]) / 3 < found[0] - 1.0


@pytest.mark.long
@pytest.mark.parametrize(
    ("scenario", "steps"), [("duel-open", 120_000), pytest.param("duel", 225_000, marks=pytest.mark.slow)]
)
def test_a_duellist_beats_its_untrained_self_on_maps_that_it_never_saw(tmp_path, quiet, scenario, steps):
    config = TrainConfig(battle=battle_config(scenario), opponent="trivial", steps=steps, device="cpu", eval_every=0)
    train(config, tmp_path / "run", console=quiet)
    trained = load_checkpoint(tmp_path / "run").policy
    before, after = (
        evaluate(
            network_player(name, policy),
            "trivial", config.battle, num_battles=100, seed=3,
        )
        for name, policy in (("untrained", build_policy(config.network, config.seed)), ("trained", trained))
    )  # fmt: skip
    assert before.wins.high < 0.2
    assert after.wins.low > 0.6
