"""Every battle has its own opponent from its beginning to its end."""

import copy
from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from echelon_env import opponents
from echelon_env.config.schema import ConfigError
from echelon_env.layout.observations import OBSERVATION_DIM, Self
from echelon_env.layout.parts import NUM_PARTS
from echelon_env.networks.config import NetworkConfig
from echelon_train.config.train import battle_config
from echelon_train.opponents.actor import uniform
from echelon_train.opponents.handicaps import BATTLES, AutoHandicap
from echelon_train.opponents.policy_batch import SLOT_COST, slot_length
from echelon_train.opponents.pool import NAME_BYTES, OpponentPool, PoolState
from echelon_train.opponents.results import WINDOW, Results
from echelon_train.policy import build_policy
from echelon_train.policy.choices import environment_actions
from echelon_train.vec_env import BattleVecEnv

SMALL = {"width": 12, "head": 8, "set_width": 4, "map_channels": 2}
NETWORKS = {"ann": NetworkConfig(**SMALL), "bob": NetworkConfig(**SMALL), "cid": NetworkConfig(encoder="flat", **SMALL)}
CONFIG = battle_config("skirmish-open")


def load(name):
    name = "bob" if name == "self" else name
    policy = build_policy(NETWORKS[name], list(NETWORKS).index(name))
    policy.set_training_mode(False)
    with torch.no_grad():
        policy.action_net.weight.mul_(100.0)  # so that what it remembers changes its choices
    return policy


def among(*names):
    """The rule that draws all names alike."""
    return lambda: dict.fromkeys(names, 1.0)


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
    rule = among("ann", "novice", "bob", "cid", "expert")
    on, recorded = ("cpu", True) if device == "recorded" else (device, None)
    pool = Watched(CONFIG, rule, load, seed=4, device=on, recorded=recorded)
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
        noise = {network: torch.randn(rows + 1, NUM_PARTS) for network in in_play}
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
                    expected = environment_actions(distribution.sample(uniform(noise[NETWORKS[name]][own]))).numpy()
                state[name][:, own] = torch.cat(after)
            close = 1e-3 if device == "cuda" else 1e-4
            np.testing.assert_allclose(actions[mine], expected, rtol=close, atol=close)
            acted[name] += 1
    assert set(acted) == {*NETWORKS, *scripted}
    assert sum(event == "reset" for event, *_ in pool.log) > 3
    env.close()


def act_once(pool, rows=40):
    """The actions for the same observations, with the same noise."""
    torch.manual_seed(0)
    seen = np.random.default_rng(0).random((rows, OBSERVATION_DIM)).astype(np.float32)
    seen[:, [Self.ALIVE, Self.LEGS]], seen[:, [Self.FALLEN, Self.SHUTDOWN]] = 1.0, 0.0
    return pool.act(seen)


@pytest.mark.parametrize("recorded", [False, True])
def test_a_network_that_plays_no_battle_for_a_while_has_no_memory_of_earlier_battles(recorded):
    rule = {}
    pool = OpponentPool(CONFIG, lambda: rule, load, recorded=recorded)
    played = []
    for name in ("ann", "cid", "ann", "ann"):
        rule.clear()
        rule[name] = 1.0
        pool.reset(np.ones(40, np.bool_))
        assert pool.names == (name,) * 8
        played.append([act_once(pool), act_once(pool)])
    first, _, again, last = played
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(first, last)
    assert not np.array_equal(*first), "it remembers its own battle"


def test_a_refresh_reaches_battles_in_progress_and_leaves_their_memory():
    """The learner copies its weights into one policy, its opponent `SELF`."""
    policy, twin = load("ann"), load("ann")
    pools = [OpponentPool(CONFIG, among("self"), lambda name, own=own: own) for own in (policy, twin)]
    for pool in pools:
        pool.reset(np.ones(40, np.bool_))
        act_once(pool)
    with torch.no_grad():
        policy.action_net.bias.add_(1.0)
    pools[0].refresh("stranger")
    np.testing.assert_array_equal(*[act_once(pool) for pool in pools])
    pools[0].refresh("self")
    np.testing.assert_array_equal(*[pool.state_arrays()["state0"] for pool in pools])
    assert not np.array_equal(*[act_once(pool) for pool in pools])


class Counting:
    """A policy without a network: its first action counts the decisions since its battle began."""

    def __init__(self):
        self.count = np.zeros(0, np.int64)

    def reset(self, mask):
        self.count = np.zeros(len(mask), np.int64) if len(mask) != len(self.count) else np.where(mask, 0, self.count)

    def act(self, observations):
        self.count += 1
        return np.repeat(self.count[:, None] / 100, 27, 1).astype(np.float32)

    def state_arrays(self):
        return {"count": self.count.copy()}

    def restore_arrays(self, arrays, rows):
        self.count = arrays["count"].copy()


def test_a_policy_without_a_network_plays_its_battles_from_their_beginnings():
    rule = {"novice": 1.0, "third:x": 1.0}
    pool = OpponentPool(CONFIG, lambda: rule, lambda name: Counting(), seed=1)
    pool.reset(np.ones(40, np.bool_))
    assert {*pool.names} == {*rule}
    begun, rng = np.zeros(8, np.int64), np.random.default_rng(0)
    for _ in range(20):
        begun += 1
        first = act_once(pool)[::5, 0]
        for battle, name in enumerate(pool.names):
            assert name == "novice" or first[battle] == pytest.approx(begun[battle] / 100)
        ended = rng.random(8) < 0.3
        pool.reset(np.repeat(ended, 5))
        begun[ended] = 0


def test_a_restored_pool_continues_the_same():
    def run(env, pool, steps):
        play(env, steps, seed=steps)
        return [each.tobytes() for each in (*pool.state_arrays().values(),)], pool.names

    made = []
    for _ in range(2):
        names = ("ann", "novice", "cid", "expert@auto", "self@aim_error=0.2", "third:x")
        pool = OpponentPool(
            CONFIG, among(*names), lambda name: Counting() if ":" in name else load(name), known=names, seed=3
        )
        made.append((env_with(pool, 6, max_steps=30), pool))
    (env, pool), (other, again) = made
    env.reset()
    play(env, 7)
    for outcome in [1] * BATTLES:
        pool.record("expert@auto", outcome)
    other.restore_arrays(env.state_arrays())
    again.restore(copy.deepcopy(pool.state))
    assert again.names == pool.names and len(set(pool.names)) > 3
    torch.manual_seed(5)
    expected = run(env, pool, 40)
    torch.manual_seed(5)
    assert run(other, again, 40) == expected
    assert again.state == pool.state and pool.state.draws > 6
    env.close()
    other.close()


def test_opponents_are_drawn_by_their_weights_and_the_seed():
    weights = {"expert@auto": 3, "novice@fire_rate=0.5": 1, "self": 4}
    pools = [OpponentPool(CONFIG, lambda: weights, lambda name: load("ann"), known=[*weights], seed=1) for _ in "ab"]
    for pool in pools:
        pool.reset(np.ones(5 * 400, np.bool_))
    assert pools[0].names == pools[1].names
    for name, count in Counter(pools[0].names).items():
        assert count / 400 == pytest.approx(weights[name] / 8, abs=0.07)
    first = pools[0].names
    pools[0].reset(np.ones(5 * 400, np.bool_))
    assert pools[0].names != first


def test_results_are_counted_by_opponent_and_handicaps_follow_them():
    known = ("expert@auto", "novice@fire_rate=linear:0.2:1", "expert")
    pool = OpponentPool(CONFIG, among("expert@auto"), load, known=known)
    pool.reset(np.ones(5, np.bool_))
    for outcome in [1, -1] * WINDOW + [1, 0] * (WINDOW // 2):
        pool.record("expert", outcome)
    results = pool.state.results["expert"]
    assert (results.win_rate, results.score, results.battles) == (0.5, 0.75, 3 * WINDOW)
    assert results.win_probability == pytest.approx((75 + 1) / 102)
    pool.set_remaining(0.5)
    start = {"fire_rate": 0.25, "reaction_delay": 0.0}
    assert pool.handicaps() == {known[0]: start, known[1]: {"fire_rate": pytest.approx(0.6)}}
    for _ in range(BATTLES):
        pool.record("expert@auto", 1)
    assert pool.handicaps()["expert@auto"]["fire_rate"] > 0.25
    assert pool.state_arrays()["handicap0.handicaps"][2] == pool.handicaps()["expert@auto"]["fire_rate"], "in play"
    pool.forget()
    assert pool.state.handicaps["expert@auto"].since == 0
    assert not any(each.battles for each in pool.state.results.values()) and pool.state.results.keys() == {*known}


def test_what_does_not_fit_is_refused_and_changes_nothing():
    rule, mask = {"ann": 1.0}, np.ones(10, np.bool_)
    pool = OpponentPool(CONFIG, lambda: rule, load, known=["ann"])
    pool.reset(mask)
    with pytest.raises(ValueError, match="all 5 rows of a battle or none"):
        pool.reset(np.arange(10) > 2)
    with pytest.raises(ConfigError, match="rows of teams of 5 mechs, got 11"):
        pool.reset(np.ones(11, np.bool_))
    arrays = pool.state_arrays()
    with pytest.raises(ValueError, match="state0"):
        pool.restore_arrays({name: array for name, array in arrays.items() if name != "state0"}, 10)
    for bad, error in (("x" * (NAME_BYTES + 1), "name of at most"), ("a\0b", "name of at most"), (3, "name of at")):
        rule.clear()
        rule[bad] = 1.0
        with pytest.raises(ValueError, match=error):
            pool.reset(mask)
    rule.clear()
    rule["absent"] = 1.0
    with pytest.raises(KeyError):
        pool.reset(mask)
    for state in (PoolState(), PoolState(results={"ann": Results()}, handicaps={"x": AutoHandicap(0.5)})):
        with pytest.raises(ConfigError, match=r"opponents: expected results against \['ann'\]"):
            pool.restore(state)
    assert pool.names == ("ann", "ann") and pool.state == PoolState(2, {"ann": Results()})


@given(st.lists(st.integers(1, 20), min_size=1, max_size=6))
def test_slots_take_the_least_time(battles):
    def cost(length):
        return sum(-(-count // length) for count in battles) * (length + SLOT_COST)

    assert cost(slot_length(battles)) == min(map(cost, range(1, 30)))
