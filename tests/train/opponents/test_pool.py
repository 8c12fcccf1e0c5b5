"""Every battle has its own opponent from its beginning to its end."""

import copy
from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from echelon_env import opponents
from echelon_env.layout.observations import OBSERVATION_DIM
from echelon_env.networks.config import NetworkConfig
from echelon_train.config.train import battle_config
from echelon_train.opponents.policy_batch import SLOT_COST, slot_length
from echelon_train.opponents.pool import NAME_BYTES, OpponentPool
from echelon_train.policy import build_policy
from echelon_train.policy.raw_actions import RAW_DIM, environment_actions
from echelon_train.vec_env import BattleVecEnv

SMALL = {"width": 12, "head": 8, "set_width": 4, "map_channels": 2}
NETWORKS = {"ann": NetworkConfig(**SMALL), "bob": NetworkConfig(**SMALL), "cid": NetworkConfig(encoder="flat", **SMALL)}
CONFIG = battle_config("skirmish-open")


def load(name):
    policy = build_policy(NETWORKS[name], list(NETWORKS).index(name))
    policy.set_training_mode(False)
    return policy


class Turns:
    """Names opponents in turn."""

    def __init__(self, *names):
        self.names, self.drawn = names, []

    def __call__(self, count):
        new = [self.names[(len(self.drawn) + i) % len(self.names)] for i in range(count)]
        self.drawn += new
        return new


def env_with(pool, battles, max_steps=12):
    config = battle_config("skirmish-open")
    config = type(config).from_dict({**config.to_dict(), "max_steps": max_steps})
    return BattleVecEnv(config, battles, opponent=pool, seed=3, maps=2)


class Watched(OpponentPool):
    """Records its calls and answers."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.log = []

    def reset(self, mask):
        super().reset(mask)
        self.log.append(("reset", mask.copy(), self.names))

    def act(self, observations):
        seed = len(self.log)
        torch.manual_seed(seed)
        actions = super().act(observations)
        self.log.append(("act", observations.copy(), actions.copy(), seed))
        return actions


def play(env, steps, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(steps):
        env.step(rng.uniform(-1, 1, (env.num_envs, 27)).astype(np.float32))


@pytest.mark.parametrize("device", ["cpu", "recorded", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_each_battle_is_played_by_its_opponent_alone(device, monkeypatch):
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    turns = Turns("ann", "novice", "bob", "ann", "cid", "expert", "bob")
    on, recorded = ("cpu", True) if device == "recorded" else (device, None)
    pool = Watched(CONFIG, turns, load, seed=4, device=on, recorded=recorded)
    env = env_with(pool, 6)
    env.reset()
    play(env, 40)
    team, rows = 5, 30
    scripted = {level: opponents.make(level, 4, CONFIG) for level in ("novice", "expert")}
    policies = {name: load(name) for name in NETWORKS}
    state = {name: torch.zeros(2, rows, SMALL["width"]) for name in NETWORKS}
    names, acted = (), Counter()
    for event, *what in pool.log:
        if event == "reset":
            mask, names = what
            for player in scripted.values():
                player.reset(mask)
            for each in state.values():
                each[:, torch.from_numpy(mask)] = 0.0
            continue
        observations, actions, seed = what
        torch.manual_seed(seed)
        in_play = list(dict.fromkeys(NETWORKS[name] for name in names if name in NETWORKS))
        noise = {network: torch.randn(rows + 1, RAW_DIM) for network in in_play}
        for name in set(names):
            mine = np.repeat([each == name for each in names], team)
            if name in scripted:
                seen = np.where(mine[:, None], observations, 0.0).astype(np.float32)
                expected = scripted[name].act(seen)[mine]
            else:
                own = torch.from_numpy(np.flatnonzero(mine))
                with torch.no_grad():
                    distribution, after = policies[name].get_distribution(
                        torch.from_numpy(observations)[own], tuple(state[name][:, None, own]), torch.zeros(len(own))
                    )
                    expected = environment_actions(distribution.sample(noise[NETWORKS[name]][own])).numpy()
                state[name][:, own] = torch.cat(after)
            close = 1e-3 if device == "cuda" else 1e-4
            np.testing.assert_allclose(actions[mine], expected, rtol=close, atol=close)
            acted[name] += 1
    assert set(acted) == {*NETWORKS, *scripted}
    assert sum(event == "reset" for event, *_ in pool.log) > 3
    env.close()


def test_an_opponent_stays_until_its_battle_ends():
    turns = Turns("ann", "bob", "novice")
    pool = OpponentPool(CONFIG, turns, load)
    env = env_with(pool, 3)
    env.reset()
    assert pool.names == ("ann", "bob", "novice")
    rng = np.random.default_rng(0)
    for _ in range(30):
        before = pool.names
        _, _, dones, _ = env.step(rng.uniform(-1, 1, (env.num_envs, 27)).astype(np.float32))
        for battle, over in enumerate(dones[::5]):
            assert over or pool.names[battle] == before[battle]
    assert len(turns.drawn) > 6
    env.close()


@pytest.mark.parametrize("recorded", [False, True])
def test_a_network_that_plays_no_battle_for_a_while_keeps_its_recording_and_no_memory(recorded):
    pool = OpponentPool(CONFIG, Turns("ann", "cid", "bob"), load, recorded=recorded)
    observations = np.random.default_rng(0).random((5, OBSERVATION_DIM)).astype(np.float32)
    made = []
    for name in ("ann", "cid", "bob"):
        pool.reset(np.ones(5, np.bool_))
        assert pool.names == (name,)
        made.append(pool._batches[NETWORKS[name]])
        assert list(pool._batches.values()) == made[-1:] and not made[-1].state.any()
        pool.act(observations)
        assert made[-1].state.any()
    assert made[0] is made[2] and not made[1].state.any() and set(made[1]._slots) <= {None}
    if recorded:
        assert len(made[0]._compute._recordings) == 1


def test_policies_that_do_not_play_leave_the_cache():
    loaded = Counter()

    def counted(name):
        loaded[name] += 1
        return load("ann")

    pool = OpponentPool(CONFIG, Turns(*"abcdefgh"), counted, cache=2)
    all_rows = np.ones(10, np.bool_)
    for _ in range(4):  # a b, c d, e f, g h: two play, two are kept
        pool.reset(all_rows)
    assert loaded == Counter("abcdefgh")
    pool._draw = Turns("e", "f")
    pool.reset(all_rows)
    assert loaded == Counter("abcdefgh")  # e and f were kept
    pool._draw = Turns("a", "e")
    pool.reset(all_rows)
    assert loaded["a"] == 2


def test_a_refresh_reaches_battles_in_progress():
    versions = iter([load("ann"), load("bob")])
    pool = OpponentPool(CONFIG, Turns("self"), lambda name: next(versions))
    observations = np.random.default_rng(0).random((10, OBSERVATION_DIM)).astype(np.float32)
    pool.reset(np.ones(10, np.bool_))

    def act():
        torch.manual_seed(0)
        state = pool._batches[NETWORKS["ann"]].state.clone()
        actions = pool.act(observations)
        pool._batches[NETWORKS["ann"]].state.copy_(state)
        return actions

    before = act()
    np.testing.assert_array_equal(act(), before)
    pool.refresh("stranger")
    np.testing.assert_array_equal(act(), before)
    pool.refresh("self")
    assert not np.array_equal(act(), before)


def test_a_refresh_takes_the_new_weights_of_the_same_policy_and_leaves_the_memory_of_battles_in_progress():
    """The learner copies its weights into one policy, its opponent `SELF`."""
    policy = load("ann")
    pool = OpponentPool(CONFIG, Turns("self"), lambda name: policy)
    observations = np.random.default_rng(0).random((10, OBSERVATION_DIM)).astype(np.float32)
    pool.reset(np.ones(10, np.bool_))
    pool.act(observations)
    batch = pool._batches[NETWORKS["ann"]]
    memory = batch.state.clone()
    with torch.no_grad():
        policy.action_net.bias.add_(1.0)
    pool.refresh("self")
    assert batch is pool._batches[NETWORKS["ann"]] and batch.state.equal(memory) and memory.any()
    (bias,) = (each for name, each in batch._stacked._weights.items() if name.endswith("action_net.bias"))
    assert bias[0].equal(policy.action_net.bias)


def test_policies_act_on_the_device_that_they_were_given():
    pool = OpponentPool(CONFIG, Turns("ann"), load, device="meta")
    for each in (pool, copy.deepcopy(pool)):
        each.reset(np.ones(10, np.bool_))
        batch = each._batches[NETWORKS["ann"]]
        assert {tensor.device.type for tensor in (batch.state, *batch._stacked._weights.values())} == {"meta"}


@pytest.mark.cuda
def test_policies_act_on_a_gpu_as_on_the_processor(monkeypatch):
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    observations = np.random.default_rng(0).random((10, OBSERVATION_DIM)).astype(np.float32)
    actions = []
    for device in ("cpu", "cuda"):
        torch.manual_seed(0)
        pool = OpponentPool(CONFIG, Turns("ann"), load, device=device)
        pool.reset(np.ones(10, np.bool_))
        actions.append([pool.act(observations) for _ in range(3)])
    np.testing.assert_allclose(*actions, atol=1e-3)


def test_a_restored_pool_continues_the_same():
    def run(env, pool, steps):
        play(env, steps, seed=steps)
        return [each.tobytes() for each in (*pool.state_arrays().values(),)], pool.names

    made = []
    for _ in range(2):
        pool = OpponentPool(CONFIG, Turns("ann", "novice", "cid"), load, seed=1)
        env = env_with(pool, 4, max_steps=60)
        made.append((env, pool))
    (env, pool), (other, again) = made
    env.reset()
    play(env, 7)
    other.restore_arrays(env.state_arrays())
    assert again.names == pool.names
    torch.manual_seed(5)
    expected = run(env, pool, 9)
    torch.manual_seed(5)
    assert run(other, again, 9) == expected
    env.close()
    other.close()


def test_what_does_not_fit_is_refused():
    pool = OpponentPool(CONFIG, Turns("ann"), load)
    mask = np.ones(10, np.bool_)
    pool.reset(mask)
    half = mask.copy()
    half[:3] = False
    with pytest.raises(ValueError, match="all 5 rows of a battle or none"):
        pool.reset(half)
    arrays = pool.state_arrays()
    with pytest.raises(ValueError, match="state0"):
        pool.restore_arrays({name: array for name, array in arrays.items() if name != "state0"}, 10)
    for bad in ("", "x" * (NAME_BYTES + 1), "a\0b", 3):
        pool._draw = Turns(bad)
        with pytest.raises(ValueError, match=f"name of 1 to {NAME_BYTES} bytes"):
            pool.reset(mask)
    assert pool.names == ("ann", "ann")
    pool._draw = Turns("absent")
    with pytest.raises(KeyError):
        pool.reset(mask)
    assert pool.names == ("ann", "ann")


@given(st.lists(st.integers(1, 20), min_size=1, max_size=6))
def test_slots_take_the_least_time(battles):
    def cost(length):
        return sum(-(-count // length) for count in battles) * (length + SLOT_COST)

    assert cost(slot_length(battles)) == min(map(cost, range(1, 30)))
