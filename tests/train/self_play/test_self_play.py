"""Self-play of stable-baselines3's models against their past policies."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
import safetensors.torch
import torch
from gymnasium.spaces import MultiDiscrete
from sb3_contrib import MaskablePPO, RecurrentPPO
from stable_baselines3 import PPO, SAC
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.torch_layers import FlattenExtractor
from stable_baselines3.common.vec_env import VecCheckNan, VecFrameStack, VecNormalize

from echelon_env import ConfigError
from echelon_env.layout.actions import ACTION_DIM
from echelon_env.layout.observations import OBSERVATION_DIM, STREAMS
from echelon_env.networks.config import NetworkConfig
from echelon_env.networks.weights import CheckpointError
from echelon_env.spaces import read_action
from echelon_train import BattleVecEnv, DiscreteActions, EchelonRecurrentPPO, PastPolicies, SelfPlayCallback
from echelon_train.config.train import TrainConfig
from echelon_train.opponents.actor import Actor, Step
from echelon_train.opponents.policy_batch import PolicyBatch
from echelon_train.opponents.results import Results
from echelon_train.policy import BattlePolicy, action_space, observation_space
from echelon_train.runs.building import build_model, make_env
from echelon_train.tensor_files import weights_of
from train.small import small_battle, small_run

BATTLE = small_battle("skirmish-open", max_steps=8, blue=["light", "scout"], red=["light", "scout"])
SMALL = {"n_steps": 16, "batch_size": 32, "n_epochs": 1, "device": "cpu", "seed": 0}
ROWS = 4
OLD, NEW = "0000000001", "0000000002"


def make_model(algorithm, opponents, wrap=lambda env: env, action_format=None, device="cpu"):
    if algorithm == "ours":
        return make_ours(opponents, device)
    env = BattleVecEnv(BATTLE, 2, opponent=opponents)
    env = wrap(env if action_format is None else DiscreteActions(env, action_format))
    options = {"net_arch": [8]}
    if algorithm in (RecurrentPPO, "two layers"):
        options |= {"lstm_hidden_size": 8, "n_lstm_layers": 2 if algorithm == "two layers" else 1}
    recurrent = len(options) > 1
    made = RecurrentPPO if recurrent else algorithm
    return made("MlpLstmPolicy" if recurrent else "MlpPolicy", env, policy_kwargs=options, **SMALL | {"device": device})


def make_ours(opponents, device="cpu"):
    config = small_run(battle=BATTLE, network=NetworkConfig(width=8, head=8, critic="central"))
    assert isinstance(config, TrainConfig)
    env = make_env(config, opponent=opponents)
    return build_model(config, env, torch.device(device), None)


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


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
@pytest.mark.parametrize("algorithm", [PPO, RecurrentPPO, "ours"])
def test_past_policies_join(algorithm, device):
    opponents = PastPolicies(BATTLE)
    model = make_model(algorithm, opponents, device=device)
    first = copies(model)
    model.learn(256, callback=SelfPlayCallback(opponents, every=128))
    steps = [int(name) for name in opponents.members]
    assert steps[0] == 0 and steps[-1] == 256 and sorted(steps) == steps and len(steps) >= 3
    policies = [member.policy for member in opponents.members.values()]
    assert_same(policies[0], first)
    assert_same(policies[-1], weights_of(model.policy))
    assert_same(policies[0], weights_of(policies[-1]), same=False)
    assert sum(each.battles for each in opponents.results.values()) > 10
    assert {batch.state.device.type for batch in opponents._batches.values()} == {device}


def member(value):
    """A policy that always answers with about the same action."""
    policy = ActorCriticPolicy(observation_space(), action_space(), lambda _: 0.0, net_arch=[])
    with torch.no_grad():
        policy.action_net.weight.zero_()
        policy.action_net.bias.fill_(value)
        policy.log_std.fill_(-20.0)
    return Actor(policy)


def observations(rows=ROWS):
    return np.random.default_rng(0).uniform(-1, 1, (rows, OBSERVATION_DIM)).astype(np.float32)


def played(pool):
    return pool.act(observations())[:, 0].round(3).tolist()


def test_each_battle_has_its_opponent_also_when_that_leaves():
    pool = PastPolicies(BATTLE, draw="latest", size=1)
    pool.reset(np.ones(ROWS, np.bool_))
    assert played(pool) == [0.0] * 4, "nobody has joined yet"
    pool.add({OLD: member(0.25)})
    assert pool.names == (OLD, OLD) and played(pool) == [0.25] * 4
    pool.add({NEW: member(0.5)})
    assert (list(pool.members), pool.names) == ([NEW], (OLD, OLD)) and played(pool) == [0.25] * 4
    pool.reset(np.array([True, True, False, False]))
    assert pool.names == (NEW, OLD) and played(pool) == [0.5, 0.5, 0.25, 0.25]
    pool.record(OLD, 1)  # it has left
    pool.record(NEW, -1)
    assert pool.win_probabilities == {NEW: 1 / 3}
    for name in (NEW, OLD, "best", "3", "../0000000003"):
        with pytest.raises(ConfigError, match="expected names of 10 to 16 digits that increase"):
            pool.add({name: member(0)})


@pytest.mark.parametrize(
    ("algorithm", "action_format", "device"),
    [
        (PPO, None, "cpu"),
        (RecurrentPPO, None, "cpu"),
        ("two layers", None, "cpu"),
        ("ours", None, "cpu"),
        (PPO, "discrete", "cpu"),
        (MaskablePPO, "multi_discrete", "cpu"),
        (MaskablePPO, "discrete", "cpu"),
        *(
            pytest.param(algorithm, action_format, "cuda", marks=pytest.mark.cuda)
            for algorithm, action_format in ((PPO, None), (RecurrentPPO, None), (MaskablePPO, "multi_discrete"))
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:.*primarily intended to run on the CPU:UserWarning")
def test_a_past_policy_acts_as_its_model(algorithm, action_format, device):
    """Its most probable actions, with noise of zero: in each slot of the batch, and after a battle has begun again."""
    opponents = PastPolicies(BATTLE, draw="uniform", seed=2)
    model = make_model(algorithm, opponents, action_format=action_format, device=device)
    model.learn(1, callback=SelfPlayCallback(opponents, every=32))
    actors, rows = [*opponents.members.values()][:2], 8
    for actor in actors:
        actor.normalization.mean += 0.3
        if isinstance(actor.policy, BattlePolicy):
            with torch.no_grad():  # of an uncertain choice zero noise is the median, not the most probable
                actor.policy.action_net.weight.mul_(1e5)
                actor.policy.target_query.weight.mul_(1e5)
    batch = PolicyBatch(actors[0], 4, 2, torch.device(device))
    batch.arrange([actors[0], actors[1], actors[0], actors[1]])
    seen = np.random.default_rng(1).random((rows, OBSERVATION_DIM)).astype(np.float32)
    seen[:, STREAMS["contacts_mask"].part] = 0.0  # of several targets zero noise is the median, not the most probable
    states, starts = [None, None], np.ones(rows, np.bool_)
    for step in range(3):
        acted = np.zeros((rows, ACTION_DIM), np.float32)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(torch, "randn", torch.zeros)
            batch.act(seen, acted)
        for number, actor in enumerate(actors):
            normal = (seen - actor.normalization.mean) * actor.normalization.scale
            masks = {} if algorithm is not MaskablePPO else {"action_masks": actor.choices.masks(seen)}
            expected, states[number] = actor.policy.predict(
                normal.astype(np.float32), states[number], starts, deterministic=True, **masks
            )
            if action_format is not None:
                expected = read_action(action_format, expected, batch=rows)
            own = np.repeat([number == 0, number == 1] * 2, 2)
            np.testing.assert_allclose(acted[own], expected[own], rtol=1e-4, atol=1e-4 if device == "cpu" else 1e-3)
        starts = np.repeat([step == 1, False, False, False], 2)
        batch.forget(starts)
    assert model.num_timesteps > 0


@pytest.mark.parametrize("categorical", [False, True])
def test_past_policies_sample_their_distributions(categorical):
    space = MultiDiscrete([3, 2]) if categorical else action_space()
    policy = ActorCriticPolicy(observation_space(), space, lambda _: 0.0, net_arch=[])
    bias = torch.tensor([0.0, 2.0, -1.0, 0.5, 0.0]) if categorical else torch.zeros(27)
    with torch.no_grad():
        policy.action_net.weight.zero_()
        policy.action_net.bias.copy_(bias)
        if not categorical:
            policy.log_std.fill_(-1.0)
    actor = Actor(policy)
    torch.manual_seed(0)
    state = torch.zeros(4000, 0)
    with torch.no_grad():
        drawn = Step(actor)(torch.zeros(4000, OBSERVATION_DIM), state, state, torch.randn(4000, actor.noise))[0]
    if categorical:
        for part, logits in enumerate(bias.split([3, 2])):
            shares = torch.bincount(drawn[:, part], minlength=len(logits)) / len(drawn)
            torch.testing.assert_close(shares, logits.softmax(0), atol=0.03, rtol=0)
    else:
        assert drawn.mean().abs() < 0.01 and drawn.std() == pytest.approx(np.exp(-1.0), rel=0.05)


@pytest.mark.parametrize(
    ("draw", "expected"),
    [("latest", [0, 0, 1]), ("uniform", [1 / 3] * 3), ("pfsp", [0.25 / 0.8525, 0.6 / 0.8525, 0.0025 / 0.8525])],
)
def test_how_opponents_are_drawn(draw, expected):
    pool = PastPolicies(BATTLE, draw=draw, seed=4)
    names = ("0000000001", "0000000002", "0000000003")
    for name, won in zip(names, (49, 22, 94), strict=True):  # with the rule of succession 0.5, 0.23 and 0.95
        pool.add({name: member(0)}, {name: Results(98, (1,) * won + (-1,) * (98 - won))})
    if draw == "pfsp":
        weights = np.array([(1 - chance) ** 2 for chance in pool.win_probabilities.values()])
        expected = weights / weights.sum()
    pool.reset(np.ones(2 * 4_000, np.bool_))
    assert [pool.names.count(name) / 4_000 for name in names] == pytest.approx(expected, abs=0.03)


def test_a_gate():
    opponents = PastPolicies(BATTLE)
    callback = SelfPlayCallback(opponents, every=10, gate=0.6)
    make_model(PPO, opponents).learn(64, callback=callback)
    before = len(opponents.members)
    for outcomes, joins in (([1] * 99, 0), ([1, 0, 0, -1] * 25, 0), ([1, 1, 1, -1] * 25, 1), ([], 0)):
        callback._recent = Results(len(outcomes), tuple(outcomes))
        callback.num_timesteps += 100
        callback._on_rollout_start()
        assert len(opponents.members) == before + joins
        before = len(opponents.members)


def test_past_policies_see_what_the_learner_saw():
    opponents = PastPolicies(BATTLE)
    model = make_model(PPO, opponents, lambda env: VecCheckNan(VecNormalize(env, clip_obs=2.0)))
    model.learn(64, callback=SelfPlayCallback(opponents, every=64))
    normalizer, latest = model.get_vec_normalize_env(), [*opponents.members.values()][-1].normalization
    rows = 3 * observations()
    seen = np.clip((rows - latest.mean) * latest.scale, -latest.clip, latest.clip)
    np.testing.assert_allclose(seen, normalizer.normalize_obs(rows), atol=1e-5)
    assert np.abs(seen).max() == 2.0


@pytest.mark.parametrize("wrap", [None, 2.0])
def test_a_folder_keeps_the_opponents(tmp_path, wrap):
    """Also each one's normalisation, whatever that of the resumed model is."""
    folder, first = tmp_path / "pool", PastPolicies(BATTLE)
    model = make_model(
        PPO if wrap else RecurrentPPO, first, lambda env: VecNormalize(env, clip_obs=2.0) if wrap else env
    )
    model.learn(256, callback=SelfPlayCallback(first, every=128, folder=folder))
    model.save(tmp_path / "model")
    assert {path.stem for path in folder.glob("*.safetensors")} == {*first.members}
    opponents = PastPolicies(BATTLE, size=3, draw="latest")
    env = BattleVecEnv(BATTLE, 2, opponent=opponents)
    resumed = type(model).load(tmp_path / "model", env=VecNormalize(env, clip_obs=3.0) if wrap else env)
    resumed.learn(0, callback=SelfPlayCallback(opponents, every=128, folder=folder), reset_num_timesteps=False)
    assert [*opponents.members] == [*first.members][-3:] and set(opponents.names) == {[*opponents.members][-1]}
    for name, kept in opponents.members.items():
        assert_same(kept.policy, weights_of(first.members[name].policy))
        assert opponents.results[name].last == first.results[name].last
        for one, other in zip(
            *(vars(each.normalization).values() for each in (kept, first.members[name])), strict=True
        ):
            assert np.array_equal(one, other)
    resumed.learn(128, callback=SelfPlayCallback(opponents, every=128, folder=folder), reset_num_timesteps=False)
    assert int([*opponents.members][-1]) == resumed.num_timesteps == 384
    assert {path.stem for path in folder.glob("*.safetensors")} == {*opponents.members}


def test_members_join_once_also_if_a_model_counts_from_zero_again():
    model, opponents = trained(steps=128)
    for _ in range(2):
        model.learn(64, callback=SelfPlayCallback(opponents, every=128), reset_num_timesteps=False)
    assert [int(name) for name in opponents.members] == [0, 128, 256]
    model.learn(128, callback=SelfPlayCallback(opponents, every=64))
    assert [int(name) for name in opponents.members] == [0, 128, 256, 257, 258]


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


class Branching(FlattenExtractor):
    """Features by a branch that depends on the numbers."""

    def forward(self, observations):
        return super().forward(observations) if observations.sum() > 0 else super().forward(-observations)


class Still(ActorCriticPolicy):
    """Chooses its actions by itself."""

    def _predict(self, observation, deterministic=False):
        return torch.zeros_like(super()._predict(observation, deterministic))


@pytest.mark.parametrize(
    ("policy", "options", "message"),
    [
        ("MlpPolicy", {"features_extractor_class": Branching}, r"a policy that torch\.func\.vmap can map"),
        (Still, {}, "got Still, which has a _predict of its own"),
    ],
)
def test_a_policy_that_cannot_play_as_a_past_one_is_refused(policy, options, message):
    opponents = PastPolicies(BATTLE)
    env = BattleVecEnv(BATTLE, 2, opponent=opponents)
    with pytest.raises(ConfigError, match=message):
        PPO(policy, env, policy_kwargs=options, **SMALL).learn(64, callback=SelfPlayCallback(opponents))


def test_the_states_of_a_central_critic_may_be_normalised_and_its_observations_not():
    opponents = PastPolicies(BATTLE)
    options = {"network": NetworkConfig(width=8, head=8, critic="central")}

    def model(*keys):
        env = VecNormalize(BattleVecEnv(BATTLE, 2, opponent=opponents, central=True), norm_obs_keys=[*keys])
        return EchelonRecurrentPPO("BattlePolicy", env, chunk=16, policy_kwargs=options, **SMALL)

    model("state").learn(64, callback=SelfPlayCallback(opponents, every=32))
    assert all((member.normalization.scale == 1.0).all() for member in opponents.members.values())
    with pytest.raises(ConfigError, match="expected battles against none"):
        PastPolicies(BATTLE).restore_arrays(opponents.state_arrays(), ROWS)
    with pytest.raises(ConfigError, match="got those of VecNormalize: pass norm_obs=False"):
        model("state", "observation")


def test_environments_that_do_not_fit():
    opponents = PastPolicies(BATTLE)
    with pytest.raises(ConfigError, match="expected the opponent of the environment"):
        start(BattleVecEnv(BATTLE, 2, opponent=PastPolicies(BATTLE)), opponents)
    with pytest.raises(ConfigError, match=r"VecNormalize at most, got .*VecFrameStack"):
        start(VecFrameStack(BattleVecEnv(BATTLE, 2, opponent=opponents), 2), opponents)
    central = PPO("MultiInputPolicy", BattleVecEnv(BATTLE, 2, opponent=opponents, central=True), **SMALL)
    with pytest.raises(ConfigError, match="expected a policy that acts without the states of a central critic"):
        central.learn(64, callback=SelfPlayCallback(opponents))
    with pytest.raises(ConfigError, match="self_play = 0"):
        start(BattleVecEnv(BATTLE, 2, opponent=opponents, self_play=1), opponents)
    duel = PastPolicies(small_battle())
    with pytest.raises(ConfigError, match="expected 2 teams, got 4: it is of another configuration"):
        start(BattleVecEnv(BATTLE, 2, opponent=duel), duel)
    with pytest.raises(ConfigError, match="expected rows of teams of 2 mechs, got 1 rows"):
        start(BattleVecEnv(small_battle(), 1, opponent=opponents), opponents)
