"""Every battle has an opponent of its own, from its beginning to its end."""

import copy
from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from echelon_env import opponents
from echelon_env.layout.observations import OBSERVATION_DIM
from echelon_train.config.train import NetworkConfig, battle_config
from echelon_train.league.self_play.opponent_pool import LANE_COST, Lineup, lane_length
from echelon_train.policy import build_policy
from echelon_train.policy.distributions import RAW_DIM, environment_actions
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


def env_with(lineup, battles, max_steps=12):
    config = battle_config("skirmish-open")
    config = type(config).from_dict({**config.to_dict(), "max_steps": max_steps})
    return BattleVecEnv(config, battles, opponent=lineup, seed=3, maps=2)


class Watched(Lineup):
    """Notes what it is asked and answers."""

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


def test_each_battle_is_played_by_its_opponent_alone():
    lineup = Watched(CONFIG, Turns("ann", "novice", "bob", "ann", "cid", "expert", "bob"), load, seed=4)
    env = env_with(lineup, 6)
    env.reset()
    play(env, 40)
    team, rows = 5, 30
    scripted = {level: opponents.make(level, 4, CONFIG) for level in ("novice", "expert")}
    policies = {name: load(name) for name in NETWORKS}
    state = {name: torch.zeros(2, rows, SMALL["width"]) for name in NETWORKS}
    names, acted = (), Counter()
    for event, *what in lineup.log:
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
        noise = {network: torch.randn(rows + 1, RAW_DIM) for network in lineup._squads if network in in_play}
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
            np.testing.assert_allclose(actions[mine], expected, rtol=1e-4, atol=1e-4)
            acted[name] += 1
    assert set(acted) == {*NETWORKS, *scripted}
    assert sum(event == "reset" for event, *_ in lineup.log) > 3
    env.close()


def test_an_opponent_stays_until_its_battle_ends():
    turns = Turns("ann", "bob", "novice")
    lineup = Lineup(CONFIG, turns, load)
    env = env_with(lineup, 3)
    env.reset()
    assert lineup.names == ("ann", "bob", "novice")
    rng = np.random.default_rng(0)
    for _ in range(30):
        before = lineup.names
        _, _, dones, _ = env.step(rng.uniform(-1, 1, (env.num_envs, 27)).astype(np.float32))
        for battle, over in enumerate(dones[::5]):
            assert over or lineup.names[battle] == before[battle]
    assert len(turns.drawn) > 6
    env.close()


def test_who_does_not_play_is_forgotten_at_last():
    loaded = Counter()

    def counted(name):
        loaded[name] += 1
        return load("ann")

    lineup = Lineup(CONFIG, Turns(*"abcdefgh"), counted, cache=2)
    everybody = np.ones(10, np.bool_)
    for _ in range(4):  # a b, c d, e f, g h: two play, two are kept
        lineup.reset(everybody)
    assert loaded == Counter("abcdefgh")
    lineup._draw = Turns("e", "f")
    lineup.reset(everybody)
    assert loaded == Counter("abcdefgh")  # e and f were kept
    lineup._draw = Turns("a", "e")
    lineup.reset(everybody)
    assert loaded["a"] == 2


def test_a_refresh_reaches_battles_in_progress():
    versions = iter([load("ann"), load("bob")])
    lineup = Lineup(CONFIG, Turns("self"), lambda name: next(versions))
    observations = np.random.default_rng(0).random((10, OBSERVATION_DIM)).astype(np.float32)
    lineup.reset(np.ones(10, np.bool_))

    def act():
        torch.manual_seed(0)
        state = lineup._squads[NETWORKS["ann"]].state.clone()
        actions = lineup.act(observations)
        lineup._squads[NETWORKS["ann"]].state.copy_(state)
        return actions

    before = act()
    np.testing.assert_array_equal(act(), before)
    lineup.refresh("stranger")
    np.testing.assert_array_equal(act(), before)
    lineup.refresh("self")
    assert not np.array_equal(act(), before)


def test_a_refresh_takes_the_new_weights_of_the_same_policy_and_leaves_the_memory_of_battles_in_progress():
    """As the learner's present self does, whose weights are copied into one policy."""
    policy = load("ann")
    lineup = Lineup(CONFIG, Turns("self"), lambda name: policy)
    observations = np.random.default_rng(0).random((10, OBSERVATION_DIM)).astype(np.float32)
    lineup.reset(np.ones(10, np.bool_))
    lineup.act(observations)
    squad = lineup._squads[NETWORKS["ann"]]
    memory = squad.state.clone()
    with torch.no_grad():
        policy.action_net.bias.add_(1.0)
    lineup.refresh("self")
    assert squad is lineup._squads[NETWORKS["ann"]] and squad.state.equal(memory) and memory.any()
    (bias,) = (each for name, each in squad._stacked._weights.items() if name.endswith("action_net.bias"))
    assert bias[0].equal(policy.action_net.bias)


def test_policies_act_on_the_device_that_they_were_given():
    lineup = Lineup(CONFIG, Turns("ann"), load, device="meta")
    for each in (lineup, copy.deepcopy(lineup)):
        each.reset(np.ones(10, np.bool_))
        squad = each._squads[NETWORKS["ann"]]
        assert {tensor.device.type for tensor in (squad.state, *squad._stacked._weights.values())} == {"meta"}


def test_it_goes_on_as_it_would_have():
    def run(env, lineup, steps):
        play(env, steps, seed=steps)
        return [each.tobytes() for each in (*lineup.state_arrays().values(),)], lineup.names

    made = []
    for _ in range(2):
        lineup = Lineup(CONFIG, Turns("ann", "novice", "cid"), load, seed=1)
        env = env_with(lineup, 4, max_steps=60)
        made.append((env, lineup))
    (env, lineup), (other, again) = made
    env.reset()
    play(env, 7)
    other.restore_arrays(env.state_arrays())
    assert again.names == lineup.names
    torch.manual_seed(5)
    expected = run(env, lineup, 9)
    torch.manual_seed(5)
    assert run(other, again, 9) == expected
    env.close()
    other.close()


def test_what_does_not_fit_is_refused():
    lineup = Lineup(CONFIG, Turns("ann"), load)
    mask = np.ones(10, np.bool_)
    lineup.reset(mask)
    half = mask.copy()
    half[:3] = False
    with pytest.raises(ValueError, match="all 5 rows of a battle or none"):
        lineup.reset(half)
    arrays = lineup.state_arrays()
    with pytest.raises(ValueError, match="state0"):
        lineup.restore_arrays({name: array for name, array in arrays.items() if name != "state0"}, 10)
    for bad in ("", "x" * 129, "a\0b", 3):
        lineup._draw = Turns(bad)
        with pytest.raises(ValueError, match="name of 1 to 128 bytes"):
            lineup.reset(mask)
    assert lineup.names == ("ann", "ann")
    lineup._draw = Turns("nobody")
    with pytest.raises(KeyError):
        lineup.reset(mask)
    assert lineup.names == ("ann", "ann")


@given(st.lists(st.integers(1, 20), min_size=1, max_size=6))
def test_lanes_take_the_least_time(battles):
    def cost(length):
        return sum(-(-count // length) for count in battles) * (length + LANE_COST)

    assert cost(lane_length(battles)) == min(map(cost, range(1, 30)))
