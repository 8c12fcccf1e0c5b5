"""Self-play of stable-baselines3's models against their past policies."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
import safetensors.torch
import torch
from sb3_contrib import RecurrentPPO
from stable_baselines3 import PPO, SAC
from stable_baselines3.common.logger import KVWriter, Logger
from stable_baselines3.common.vec_env import VecCheckNan, VecFrameStack, VecNormalize

from echelon_env import ConfigError
from echelon_env.layout.observations import OBSERVATION_DIM
from echelon_env.networks.weights import CheckpointError
from echelon_train import BattleVecEnv, PastPolicies, SelfPlayCallback
from echelon_train.config.train import TrainConfig
from echelon_train.runs.building import build_model, make_env
from echelon_train.self_play.past_policies import PastPolicy
from echelon_train.tensor_files import weights_of
from train.small import small_battle, small_run

BATTLE = small_battle("skirmish-open", max_steps=8, blue=["light", "scout"], red=["light", "scout"])
SMALL = {"n_steps": 16, "batch_size": 32, "n_epochs": 1, "device": "cpu", "seed": 0}
ROWS = 4
OLD, NEW = "0000000001", "0000000002"


def make_model(algorithm, opponents, wrap=lambda env: env):
    env = wrap(BattleVecEnv(BATTLE, 2, opponent=opponents))
    policy = "MlpPolicy" if algorithm is PPO else "MlpLstmPolicy"
    width = {} if algorithm is PPO else {"lstm_hidden_size": 8}
    return algorithm(policy, env, policy_kwargs={"net_arch": [8], **width}, **SMALL)


def make_ours(opponents):
    config = small_run(battle=BATTLE)
    assert isinstance(config, TrainConfig)
    env = make_env(config, opponent=opponents)
    return build_model(config, env, torch.device("cpu"), None)


def trained(algorithm=PPO, steps=256, opponents=None, **options):
    opponents = PastPolicies(BATTLE) if opponents is None else opponents
    model = make_model(algorithm, opponents)
    model.learn(steps, callback=SelfPlayCallback(opponents, every=128, **options))
    return model, opponents


def copies(model):
    return {name: tensor.clone() for name, tensor in weights_of(model.policy).items()}


def assert_same(policy, weights, same=True):
    equal = all(torch.equal(tensor, weights[name]) for name, tensor in weights_of(policy).items())
    assert equal == same


@pytest.mark.parametrize("algorithm", [PPO, RecurrentPPO, "ours"])
def test_past_policies_join(algorithm):
    opponents = PastPolicies(BATTLE)
    model = make_ours(opponents) if algorithm == "ours" else make_model(algorithm, opponents)
    first = copies(model)
    model.learn(256, callback=SelfPlayCallback(opponents, every=128))
    steps = [int(name) for name in opponents.members]
    assert steps[0] == 0 and steps[-1] == 256 and sorted(steps) == steps and len(steps) >= 3
    policies = [member.policy for member in opponents.members.values()]
    assert_same(policies[0], first)
    assert_same(policies[-1], weights_of(model.policy))
    assert_same(policies[0], weights_of(policies[-1]), same=False)
    assert sum(len(member.results) for member in opponents.members.values()) > 10


class Lines(KVWriter):
    """Keeps what is logged."""

    def __init__(self):
        self.lines = []

    def write(self, key_values, key_excluded, step=0):
        self.lines.append({key: value for key, value in key_values.items() if key.startswith("self_play/")})


def test_metrics():
    opponents, lines = PastPolicies(BATTLE), Lines()
    model = make_model(PPO, opponents)
    model.set_logger(Logger(None, [lines]))
    model.learn(256, callback=SelfPlayCallback(opponents, every=128))
    assert [line["self_play/members"] for line in lines.lines] == [1, 1, 2, 2]
    assert (
        lines.lines[-1]["self_play/lowest_win_rate"] == min(opponents.win_probabilities.values())
        or len(opponents.members) > 2
    )  # another one has joined since
    assert all("self_play/win_rate" in line for line in lines.lines)


class Constant:
    """A policy whose actions and states tell what it was given."""

    def __init__(self, value, recurrent=False):
        self.value, self.recurrent, self.calls = value, recurrent, []

    def predict(self, observations, state, episode_start, deterministic):
        self.calls.append((observations.copy(), state, episode_start.copy()))
        assert deterministic is False
        rows = len(observations)
        before = np.zeros((1, rows, 3), np.float32) if state is None else state[0] * ~episode_start[None, :, None]
        return np.full((rows, 27), self.value, np.float32), (before + 1,) if self.recurrent else None


def member(policy, mean=0.0, scale=1.0, clip=np.inf, results=()):
    full = (np.full(OBSERVATION_DIM, each, np.float32) for each in (mean, scale))
    return PastPolicy(policy, *full, clip, list(results))


def observations(rows=ROWS):
    return np.random.default_rng(0).uniform(-1, 1, (rows, OBSERVATION_DIM)).astype(np.float32)


def test_each_battle_has_its_opponent_and_each_row_its_state():
    pool = PastPolicies(BATTLE, draw="latest")
    old, new = Constant(0.25, recurrent=True), Constant(0.5, recurrent=True)
    pool.reset(np.ones(ROWS, np.bool_))
    assert not pool.act(observations()).any()  # nobody has joined yet
    pool.add({"0000000001": member(old)})
    assert pool.names == (OLD, OLD)
    pool.act(observations())
    pool.act(observations())
    pool.add({"0000000002": member(new)})
    mask = np.array([False, False, True, True])
    pool.reset(mask)
    assert pool.names == (OLD, NEW)
    assert pool.act(observations())[:, 0].tolist() == [0.25, 0.25, 0.5, 0.5]
    assert [call[2].tolist() for call in old.calls] == [[True] * 4, [False] * 4, [False] * 2]
    assert old.calls[2][1][0][0, :, 0].tolist() == [2.0, 2.0]
    assert new.calls[0][2].tolist() == [True, True]
    pool.act(observations())
    assert new.calls[1][1][0][0, :, 0].tolist() == [1.0, 1.0]
    assert np.array_equal(new.calls[1][0], observations()[2:])


def test_a_member_that_leaves_plays_its_battles_to_the_end():
    pool = PastPolicies(BATTLE, draw="latest", size=1)
    pool.reset(np.ones(ROWS, np.bool_))
    pool.add({"0000000001": member(Constant(0.25))})
    pool.add({"0000000002": member(Constant(0.5))})
    assert (list(pool.members), pool.names) == ([NEW], (OLD, OLD))
    assert pool.act(observations())[:, 0].tolist() == [0.25] * 4
    pool.reset(np.array([True, True, False, False]))
    assert pool.act(observations())[:, 0].tolist() == [0.5, 0.5, 0.25, 0.25]
    pool.note(OLD, 1)  # it has left
    pool.note(NEW, -1)
    assert pool.win_probabilities == {NEW: 1 / 3}
    for name in (NEW, OLD, "best", "3", "../0000000003"):
        with pytest.raises(ConfigError, match="expected names of 10 to 16 digits that increase"):
            pool.add({name: member(Constant(0))})


@pytest.mark.parametrize(
    ("draw", "expected"),
    [("latest", [0, 0, 1]), ("uniform", [1 / 3] * 3), ("pfsp", [0.25 / 0.8525, 0.6 / 0.8525, 0.0025 / 0.8525])],
)
def test_how_opponents_are_drawn(draw, expected):
    pool = PastPolicies(BATTLE, draw=draw, seed=4)
    wins = {
        "0000000001": (49, 98),
        "0000000002": (22, 98),
        "0000000003": (94, 98),
    }  # with the rule of succession 0.5, 0.23 and 0.95
    for name, (won, played) in wins.items():
        pool.add({name: member(Constant(0), results=[1] * won + [-1] * (played - won))})
    if draw == "pfsp":
        weights = np.array([(1 - chance) ** 2 for chance in pool.win_probabilities.values()])
        expected = weights / weights.sum()
    names = []
    for _ in range(2_000):
        pool.reset(np.ones(ROWS, np.bool_))
        names += pool.names
    shares = [names.count(name) / len(names) for name in wins]
    assert shares == pytest.approx(expected, abs=0.03)


def test_the_window_of_results():
    pool = PastPolicies(BATTLE, window=3)
    pool.add({"0000000001": member(Constant(0), results=[-1] * 5)})
    for _ in range(3):
        pool.note(OLD, 1)
    assert pool.win_probabilities == {OLD: 4 / 5}
    pool.note(OLD, 0)
    assert pool.win_probabilities == {OLD: 3.5 / 5}


def test_a_gate():
    opponents = PastPolicies(BATTLE, window=4)
    callback = SelfPlayCallback(opponents, every=10, gate=0.6)
    model = make_model(PPO, opponents)
    model.learn(64, callback=callback)
    callback._joined, before = 0, len(opponents.members)
    for outcomes, joins in (([1, 1, 1], 0), ([1, 0, 0, -1], 0), ([1, 1, 1, -1], 1), ([], 0)):
        callback._recent.clear()
        callback._recent.extend(outcomes)
        callback.num_timesteps += 100
        callback._on_rollout_start()
        assert len(opponents.members) == before + joins
        before = len(opponents.members)


def test_past_policies_see_what_the_learner_saw():
    opponents = PastPolicies(BATTLE)
    model = make_model(PPO, opponents, lambda env: VecCheckNan(VecNormalize(env, clip_obs=2.0)))
    model.learn(64, callback=SelfPlayCallback(opponents, every=64))
    normalizer, latest = model.get_vec_normalize_env(), [*opponents.members.values()][-1]
    rows = 3 * observations()
    seen = np.clip((rows - latest.mean) * latest.scale, -latest.clip, latest.clip)
    np.testing.assert_allclose(seen, normalizer.normalize_obs(rows), atol=1e-5)
    assert np.abs(seen).max() == 2.0


def test_a_folder_keeps_the_opponents(tmp_path):
    model, first = trained(RecurrentPPO, folder=tmp_path / "pool")
    model.save(tmp_path / "model")
    assert {path.stem for path in (tmp_path / "pool").glob("*.safetensors")} == {*first.members}
    opponents = PastPolicies(BATTLE, size=3)
    env = BattleVecEnv(BATTLE, 2, opponent=opponents)
    resumed = RecurrentPPO.load(tmp_path / "model", env=env)
    callback = SelfPlayCallback(opponents, every=128, folder=tmp_path / "pool")
    env.reset()
    callback.init_callback(resumed)
    callback.num_timesteps = resumed.num_timesteps
    callback.on_training_start({}, {})
    assert [*opponents.members] == [*first.members][-3:]
    for name, kept in opponents.members.items():
        assert_same(kept.policy, weights_of(first.members[name].policy))
        assert list(kept.results) == list(first.members[name].results)
    resumed.learn(128, callback=callback, reset_num_timesteps=False)
    assert int([*opponents.members][-1]) == resumed.num_timesteps == 384
    assert {path.stem for path in (tmp_path / "pool").glob("*.safetensors")} == {*opponents.members}


def test_a_model_that_counts_from_zero_again():
    model, opponents = trained(steps=128)
    model.learn(128, callback=SelfPlayCallback(opponents, every=64))
    assert [int(name) for name in opponents.members] == [0, 128, 129, 130]


def test_battles_after_a_load_have_opponents_as_drawn(tmp_path):
    trained(folder=tmp_path / "pool")
    opponents = PastPolicies(BATTLE, draw="latest", size=2)
    start(
        BattleVecEnv(BATTLE, 2, opponent=opponents),
        opponents,
        folder=tmp_path / "pool",
        model=make_model(PPO, opponents),
    )
    assert set(opponents.names) == {[*opponents.members][-1]} and len(opponents.members) == 2


def test_a_second_training_adds_nothing_twice():
    model, opponents = trained(steps=128)
    for _ in range(2):
        model.learn(64, callback=SelfPlayCallback(opponents, every=128), reset_num_timesteps=False)
    assert [int(name) for name in opponents.members] == [0, 128, 256]


def test_files_of_another_training_are_not_taken(tmp_path):
    trained(folder=tmp_path / "pool", steps=64)
    (tmp_path / "pool" / "pool.json").unlink()
    opponents = PastPolicies(BATTLE)
    model = make_model(PPO, opponents)
    with torch.no_grad():
        model.policy.log_std.fill_(-3.0)
    model.learn(64, callback=SelfPlayCallback(opponents, every=128, folder=tmp_path / "pool"))
    stored = safetensors.torch.load_file(tmp_path / "pool" / "0000000000.safetensors")
    assert torch.equal(stored["policy.log_std"], torch.full((27,), -3.0))


def test_a_folder_keeps_the_statistics_of_the_observations(tmp_path):
    first = PastPolicies(BATTLE)
    make_model(PPO, first, lambda env: VecNormalize(env, clip_obs=2.0)).learn(
        256, callback=SelfPlayCallback(first, every=128, folder=tmp_path)
    )
    second = PastPolicies(BATTLE)
    model = make_model(PPO, second, lambda env: VecNormalize(env, clip_obs=3.0))
    model.learn(64, callback=SelfPlayCallback(second, every=10_000, folder=tmp_path))
    means = [kept.mean for kept in first.members.values()]
    assert not np.array_equal(means[0], means[1])
    for name, kept in first.members.items():
        again = second.members[name]
        assert np.array_equal(again.mean, kept.mean) and np.array_equal(again.scale, kept.scale) and again.clip == 2.0


def damage_json(**changes):
    def apply(folder):
        path = folder / "pool.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))

    return apply


def truncate(folder):
    path = next(folder.glob("*.safetensors"))
    path.write_bytes(path.read_bytes()[:-9])


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / "pool.json").write_text("{"), "not valid JSON"),
        (lambda folder: (folder / "pool.json").write_text("[" * 100_000), "not valid JSON"),
        (damage_json(format="x"), "expected the members of a self-play"),
        (damage_json(version=2), "expected the members of a self-play, version 1"),
        (damage_json(members={}), "members: expected 1 to 10,000"),
        (damage_json(members={"../../x": []}), "expected numbers of steps"),
        (damage_json(members={"0000000000": [2]}), "results of -1, 0 and 1"),
        (damage_json(members={"0000000128": [], "0000000000": []}), "expected the oldest first"),
        (damage_json(recent=[True]), "recent: expected results"),
        (truncate, "not a valid safetensors file"),
    ],
)
def test_damaged_folders_are_refused(tmp_path, damage, message):
    trained(folder=tmp_path / "pool", steps=64)
    damage(tmp_path / "pool")
    with pytest.raises(CheckpointError, match=message):
        trained(folder=tmp_path / "pool", steps=64)


def test_a_folder_of_another_model_is_refused(tmp_path):
    trained(PPO, folder=tmp_path / "pool", steps=64)
    with pytest.raises(CheckpointError, match="missing or unknown tensors"):
        trained(RecurrentPPO, folder=tmp_path / "pool", steps=64)
    (tmp_path / "pool" / "0000000000.safetensors").unlink()
    with pytest.raises(FileNotFoundError):
        trained(PPO, folder=tmp_path / "pool", steps=64)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"draw": "pfps"}, "draw: unknown 'pfps'; did you mean 'pfsp'"),
        ({"size": 0}, "size: expected an integer of at least 1, got 0"),
        ({"window": 1.5}, "window"),
    ],
)
def test_bad_numbers_of_opponents(options, message):
    with pytest.raises((ConfigError, TypeError), match=message):
        PastPolicies(BATTLE, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"every": 0}, "every: expected"), ({"gate": 2}, "gate: expected a share"), ({"gate": True}, "gate: expected")],
)
def test_bad_numbers_of_the_callback(options, message):
    with pytest.raises(ConfigError, match=message):
        SelfPlayCallback(PastPolicies(BATTLE), **options)


def start(env, opponents, folder=None, model=None):
    callback = SelfPlayCallback(opponents, folder=folder)
    env.reset()
    callback.init_callback(model or SimpleNamespace(get_env=lambda: env, logger=None, num_timesteps=0, use_sde=False))
    callback.on_training_start({}, {})


def test_models_that_do_not_fit():
    opponents = PastPolicies(BATTLE)
    env = BattleVecEnv(BATTLE, 2, opponent=opponents)
    with pytest.raises(ConfigError, match=r"cannot sample with use_sde = True \(gSDE\)"):
        PPO("MlpPolicy", env, use_sde=True, **SMALL).learn(64, callback=SelfPlayCallback(opponents))
    with pytest.raises(ConfigError, match=r"expected an on-policy model, such as PPO, got .*SAC"):
        SAC("MlpPolicy", env, buffer_size=100, device="cpu").learn(64, callback=SelfPlayCallback(opponents))
    assert not opponents.members


def test_environments_that_do_not_fit():
    opponents = PastPolicies(BATTLE)
    with pytest.raises(ConfigError, match="expected the opponent of the environment"):
        start(BattleVecEnv(BATTLE, 2, opponent=PastPolicies(BATTLE)), opponents)
    with pytest.raises(ConfigError, match=r"in VecNormalize at most, got .*VecFrameStack"):
        start(VecFrameStack(BattleVecEnv(BATTLE, 2, opponent=opponents), 2), opponents)
    with pytest.raises(ConfigError, match="central critic"):
        start(BattleVecEnv(BATTLE, 2, opponent=opponents, central=True), opponents)
    with pytest.raises(ConfigError, match="self_play = 0"):
        start(BattleVecEnv(BATTLE, 2, opponent=opponents, self_play=1), opponents)
    duel = PastPolicies(small_battle())
    with pytest.raises(ConfigError, match="expected 2 teams, got 4: it is of another configuration"):
        start(BattleVecEnv(BATTLE, 2, opponent=duel), duel)
    with pytest.raises(ConfigError, match="expected rows of teams of 2 mechs, got 1 rows"):
        start(BattleVecEnv(small_battle(), 1, opponent=opponents), opponents)
