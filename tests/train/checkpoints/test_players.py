import dataclasses
import hashlib
import itertools
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from echelon_env import BattleEngine, BattleEnv, make_config, opponents
from echelon_env.config.schema import ConfigError
from echelon_env.evaluate import BattleNoise, Player, baseline, evaluation_seed, named_player, play_match
from echelon_env.evaluate.networks import checkpoint_player
from echelon_env.evaluate.players import ACTION_MODES, ActionMode
from echelon_env.layout.actions import ACTION_DIM
from echelon_env.layout.observations import OBSERVATION_DIM, STREAMS, Self
from echelon_env.networks.checkpoint import WEIGHTS_FILE
from echelon_env.networks.weights import CheckpointError
from echelon_env.storage.atomic import write_json
from echelon_train.checkpoints.checkpoint import load_checkpoint
from echelon_train.checkpoints.players import network_player, untrained_player
from train.small import sensitive_policy, small_battle

DUEL = small_battle(max_steps=8)
TEAMS = small_battle("skirmish", max_steps=4)
UNEVEN = make_config(DUEL, blue=("medium", "scout", "medium"), red=("light",))
SEEDS = [evaluation_seed(5, index) for index in range(35)]


def example_player(action_mode: ActionMode = "sampled") -> Player:
    return network_player("example_player", sensitive_policy(), action_mode=action_mode)


def awake(rows: int, seed: int = 0) -> np.ndarray:
    """Random observations (rows, D) float32 of mechs that can act."""
    observations = np.random.default_rng(seed).random((rows, OBSERVATION_DIM), np.float32)
    own = observations[:, STREAMS["self"].part]
    own[:, Self.ALIVE], own[:, [Self.SHUTDOWN, Self.FALLEN]] = 1.0, 0.0
    return observations


def recording_player(player: Player, seen: dict[tuple[int, int], list[np.ndarray]]) -> Player:
    """Wrap a player to record its actions in `seen`, by (seed of the battle, size of its team)."""

    def make(config, noise):
        policy = player.make(config, noise)
        stock = policy.act

        def act(observations):
            actions = stock(observations)
            for seed, rows in zip(noise.seeds, np.split(actions, len(noise.seeds)), strict=True):
                seen.setdefault((seed, noise.team_size), []).append(rows.tobytes())
            return actions

        policy.act = act
        return policy

    return dataclasses.replace(player, make=make)


@pytest.mark.parametrize("action_mode", ACTION_MODES)
@pytest.mark.parametrize("config", [DUEL, TEAMS, UNEVEN], ids=["duel", "teams", "uneven"])
def test_a_result_does_not_depend_on_other_battles(action_mode, config):
    """Actions are bitwise equal for other batches, orders of battles and numbers of threads."""
    match_of, actions_of = [], []
    for seeds, batch_size, num_threads in (
        (SEEDS, 64, 1), (SEEDS[::-1], 7, 2), (SEEDS[3:5], 64, 1), (SEEDS[-1:], 1, 1), (SEEDS[1:20], 19, 1),
    ):  # fmt: skip
        seen = {}
        player = recording_player(example_player(action_mode), seen)
        match_of.append(
            play_match(player, baseline("novice"), config, seeds, scenario="x", batch_size=batch_size,
                       num_threads=num_threads)
        )  # fmt: skip
        actions_of.append(seen)
    for seen in actions_of[1:]:
        assert all(actions_of[0][key] == actions for key, actions in seen.items())
    whole = {(battle.seed, battle.side): battle for battle in match_of[0].battles}
    for battle in itertools.chain(*(match.battles for match in match_of[1:])):
        assert battle == dataclasses.replace(whole[battle.seed, battle.side], number=battle.number)
    assert len({tuple(actions) for actions in actions_of[0].values()}) > 0.9 * len(actions_of[0]), "battles differ"


def two_battle_player(action_mode: ActionMode = "deterministic") -> opponents.Policy:
    return example_player(action_mode).make(DUEL, BattleNoise([4, 5], (0,), 1))


def test_reset_clears_the_recurrent_states_of_its_rows():
    observations, subject = awake(2), two_battle_player()
    subject.reset(np.ones(2, np.bool_))
    first, second = subject.act(observations), subject.act(observations)
    assert not np.array_equal(first, second)
    subject.reset(np.array([True, False]))
    third = subject.act(observations)
    np.testing.assert_array_equal(third[0], first[0])
    assert not np.array_equal(third[1], first[1])
    assert np.abs(third).max() <= 1.0
    assert isinstance(subject, opponents.Policy)
    with pytest.raises(ValueError, match=r"mask: expected shape \(2,\), got \(3,\)"):
        subject.reset(np.ones(3, np.bool_))


def test_a_player_is_a_copy_of_the_policy():
    policy = sensitive_policy()
    policy.set_training_mode(True)
    player = network_player("x", policy, action_mode="deterministic")
    observation = np.zeros((1, OBSERVATION_DIM), np.float32)

    def first_action():
        made = player.make(DUEL, BattleNoise([4], (0,), 1))
        made.reset(np.ones(1, np.bool_))
        return made.act(observation)

    before = first_action()
    assert policy.training
    with torch.no_grad():
        policy.action_net.bias.add_(0.5)
    np.testing.assert_array_equal(first_action(), before)


def test_a_checkpoint_player_is_named_after_its_folder(finished_run, tmp_path):
    player = checkpoint_player(str(finished_run), action_mode="deterministic")
    checkpoint = load_checkpoint(finished_run)
    assert (player.name, player.action_mode) == (str(finished_run), "deterministic")
    assert (player.battle, player.trained_maps) == (checkpoint.battle, checkpoint.trained_maps)
    same = network_player(player.name, checkpoint.policy, action_mode="deterministic")
    results = [play_match(each, baseline("trivial"), DUEL, SEEDS[:2], scenario="x") for each in (player, same)]
    assert dataclasses.replace(results[0], identities=results[1].identities) == results[1]
    with pytest.raises(CheckpointError, match="neither a checkpoint"):
        checkpoint_player(tmp_path)


def test_a_checkpoint_player_has_an_identity(finished_run):
    player = checkpoint_player(finished_run)
    folder = finished_run / "checkpoints" / "0000000064"
    weights = hashlib.sha256((folder / WEIGHTS_FILE).read_bytes()).hexdigest()
    assert player.identity == {"checkpoint": "0000000064", "steps": 64, "weights_sha256": weights}
    assert checkpoint_player(folder).identity == player.identity
    first = checkpoint_player(finished_run / "checkpoints" / "0000000000")
    assert first.identity["weights_sha256"] != weights
    assert play_match(player, first, DUEL, SEEDS[:1], scenario="x").identities == (player.identity, first.identity)


def test_a_runs_best_and_last_checkpoint_have_names(finished_run, tmp_path):
    run = shutil.copytree(finished_run, tmp_path / "run")
    write_json(run / "best.json", {"checkpoint": "0000000032", "steps": 32})
    steps = {"best": 32, "best.json": 32, "last": 64, "last.json": 64, ".": 64, "checkpoints/0000000000": 0}
    assert {name: checkpoint_player(run / name).identity["steps"] for name in steps} == steps
    (run / "best.json").unlink()
    with pytest.raises(CheckpointError, match="best: no such file or folder"):
        checkpoint_player(run / "best")
    with pytest.raises(ConfigError, match="File name too long"):
        BattleEnv("duel", opponent=f"policy:{'a' * 300}").reset()


def test_players_of_equal_weights_are_equal(finished_run):
    player = checkpoint_player(finished_run)
    assert checkpoint_player(finished_run) == player
    assert play_match(player, checkpoint_player(finished_run), DUEL, SEEDS[:1], scenario="x").first == player.name
    assert checkpoint_player(finished_run, action_mode="deterministic") != player
    assert untrained_player(3) == untrained_player(3) != untrained_player(4)
    with pytest.raises(ValueError, match="two different players are called 'untrained'"):
        play_match(untrained_player(3), untrained_player(4), DUEL, SEEDS[:1], scenario="x")


@pytest.mark.parametrize("name", ["novice", "untrained"])
def test_a_folder_with_another_players_name_needs_a_path(finished_run, tmp_path, monkeypatch, name):
    shutil.copytree(finished_run, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    assert checkpoint_player(f"./{name}").name == f"./{name}"
    for path in (name, Path(name)):
        with pytest.raises(CheckpointError, match=f"name of another player; for the folder write './{name}'"):
            checkpoint_player(path)


def test_a_checkpoint_is_an_opponent_in_environments_and_evaluations(finished_run):
    """By its name; the same seed gives the same battle."""
    name = f"policy:{finished_run}@fire_rate=0.5"
    env, seen = BattleEnv("duel", opponent={name: 1, f"policy:{finished_run}": 1}), []
    for _ in range(2):
        env.reset(seed=3)
        seen.append([env.step(np.zeros(ACTION_DIM, np.float32))[0] for _ in range(30)])
    np.testing.assert_array_equal(*seen)
    assert (named_player(name).name, named_player(name).action_mode) == (name, "sampled")
    match = play_match(named_player(name), baseline("idle"), make_config("duel", max_steps=8), SEEDS[:1], scenario="x")
    assert len(match.battles) == 2


@pytest.mark.parametrize(
    "load",
    [
        lambda run: load_checkpoint(run).policy.set_battle(DUEL),
        lambda run: checkpoint_player(run).policy(DUEL),
        lambda run: opponents.make(f"policy:{run}", 0, DUEL),
        lambda run: opponents.make("champion", 0, DUEL),
    ],
    ids=["load_checkpoint", "checkpoint_player", "policy:PATH", "champion"],
)
def test_loading_a_policy_builds_no_engine(finished_run, monkeypatch, load):
    """A league loads policies all the time, and an engine has the memory of its battles."""

    def refuse(*arguments, **options):
        raise AssertionError("an engine is built")

    monkeypatch.setattr(BattleEngine, "__init__", refuse)
    policy = load(finished_run)
    if policy is not None:  # these load at their first decision
        policy.reset(np.ones(2, np.bool_))
        policy.act(awake(2))
