"""Runs with an ability or the memory switched off: they train, record it, and their policies play so."""

import json
from dataclasses import fields, replace

import numpy as np

from echelon_env import BattleEngine
from echelon_env.config.battle import AbilityConfig
from echelon_env.evaluate import BattleNoise, checkpoint_player
from echelon_env.evaluate.submission.document import check_player
from echelon_env.layout.actions import BLOCKS
from echelon_env.networks.checkpoint import read_checkpoint
from echelon_train.config.ppo import PPOConfig
from echelon_train.config.schedules import Schedule
from echelon_train.runs.folder import read_metrics
from echelon_train.runs.training import train
from train.small import NETWORK, small_battle, small_run

ABILITIES = [field.name for field in fields(AbilityConfig)]


def test_runs_without_any_ability(tmp_path, quiet):
    battle = small_battle("skirmish", abilities=dict.fromkeys(ABILITIES, False))
    run = small_run(battle=battle, opponent="expert", network=replace(NETWORK, communicate=True), steps=32)
    assert train(run, tmp_path / "run", console=quiet).done
    assert read_checkpoint(tmp_path / "run").battle == battle
    off = battle.abilities.blocks_off
    without = actions_of(tmp_path / "run", battle)
    used = actions_of(tmp_path / "run", replace(battle, abilities=AbilityConfig()))
    for block in BLOCKS:
        if block.name in off:
            first = 1 if block.name == "display" else 0  # the first display is the default, not an ability
            assert not without[..., block.part][..., first:].any()
            assert used[..., block.part][..., first:].any() or block.name == "target"  # few mechs see an enemy yet


def actions_of(run, battle):
    """Actions (decisions, mechs, A) of a run's policy in a battle."""
    engine = BattleEngine(battle)
    observations = engine.reset([3])
    player = checkpoint_player(run).make(battle, BattleNoise([3], [0], engine.num_mechs))
    actions = []
    for _ in range(10):
        actions.append(player.act(observations[0].copy()))
        observations, *_ = engine.step(actions[-1][None])
    return np.stack(actions)


def test_runs_without_memory(tmp_path, quiet):
    run = small_run(network=replace(NETWORK, memory=False))
    assert train(run, tmp_path / "run", console=quiet).done
    assert json.loads((tmp_path / "run" / "run.json").read_text())["config"]["network"]["memory"] is False
    assert not read_checkpoint(tmp_path / "run").network.memory
    identity = checkpoint_player(tmp_path / "run").identity
    assert identity["memory"] == "false"
    assert check_player("sampled", identity) == ("sampled", identity), "it can be submitted"
    again = small_run(init=str(tmp_path / "run"))
    assert train(again, tmp_path / "again", console=quiet).done, "the weights have the same shapes"


def test_a_teacher_that_uses_what_is_off_is_imitated_in_the_rest(tmp_path, quiet):
    ppo = PPOConfig(n_steps=16, batch_size=16, n_epochs=1, kickstart_coef=Schedule.constant(1.0))
    run = small_run(battle=small_battle("skirmish", abilities={"electronics": False}), teacher="expert", ppo=ppo)
    assert train(run, tmp_path / "run", console=quiet).done
    rows = [row for row in read_metrics(tmp_path / "run") if "train/kickstart_loss" in row]
    (block,) = run.battle.abilities.blocks_off
    assert rows
    assert all(row["train/kickstart_loss"] > 0.0 for row in rows)
    assert not any(f"train/kickstart_loss_{block}" in row for row in rows), "a loss of 0 is left out"
