import itertools
import pickle

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode

from echelon_env import BattleBatchEnv, ConfigError
from echelon_env.envs.infos import EPISODE_STATISTICS
from echelon_env.layout.actions import ACTION_DIM
from echelon_env.layout.observations import OBSERVATION_DIM
from support.environments import FIGHT, SEED, record

L = EPISODE_STATISTICS.index("l")

SHORT = {"scenario": "duel", "max_steps": 4}


def zeros(envs):
    return np.zeros((envs.num_envs, envs.num_mechs, ACTION_DIM), np.float32)


@pytest.mark.parametrize("observation_format", ["flat", "dict"])
@pytest.mark.parametrize("action_format", ["continuous", "dict", "multi_discrete"])
def test_arrays_have_a_row_for_every_mech(action_format, observation_format):
    envs = BattleBatchEnv("skirmish", 3, observation=observation_format, action=action_format, num_threads=2)
    observations, infos = envs.reset(seed=0)
    assert envs.observation_space.contains(observations)
    assert envs.agents == tuple(f"{team}_{i}" for team in ("blue", "red") for i in range(5))
    assert infos["present"].shape == infos["alive"].shape == (3, 10)
    assert infos["present"].all()
    observations, rewards, terminated, truncated, infos = envs.step(envs.action_space.sample())
    assert envs.observation_space.contains(observations)
    assert rewards.dtype == np.float32
    assert terminated.dtype == truncated.dtype == np.bool_
    assert rewards.shape == terminated.shape == truncated.shape == (3, 10)
    assert infos["reward_components"].shape == (3, 10, len(envs.metadata["reward_components"]))
    np.testing.assert_array_equal(infos["reward_components"].cumsum(axis=-1)[..., -1], rewards)
    if observation_format == "flat":
        assert observations.shape == (3, 10, OBSERVATION_DIM)
    envs.close()


def test_dead_agents_are_terminated_once_and_then_absent():
    """In a battle with deaths, up to the start of the next one."""
    recording = record("continuous")
    envs = BattleBatchEnv(**FIGHT, num_envs=1)
    present = envs.reset(seed=SEED)[1]["present"][0]
    for decision in recording.decisions:
        _, rewards, terminated, truncated, infos = envs.step(decision.vectors[None])
        ended = terminated[0] | truncated[0]
        assert not (terminated & truncated).any()
        assert not (ended & ~present).any()
        assert (rewards[0, ~present] == 0).all()
        np.testing.assert_array_equal(infos["present"][0], present & ~ended)
        dead = ~infos["alive"][0]
        assert not (infos["present"][0] & dead).any()
        present = infos["present"][0]
    assert dead.any()
    assert not present.any()
    assert sorted(set(infos["outcome"][0].tolist())) == [-1, 1]
    _, rewards, terminated, truncated, infos = envs.step(decision.vectors[None])
    assert infos["present"].all()
    assert not (rewards.any() or terminated.any() or truncated.any())
    assert infos["_map_seed"].all()


@pytest.mark.parametrize("mode", ["NEXT_STEP", "SAME_STEP"])
def test_autoreset_equals_manual_resets(mode):
    """Final observations, rewards and infos equal those of an environment that is reset manually."""
    envs = BattleBatchEnv(num_envs=2, autoreset_mode=mode, **SHORT)
    twin = BattleBatchEnv(num_envs=2, autoreset_mode="DISABLED", **SHORT)
    np.testing.assert_array_equal(envs.reset(seed=3)[0], twin.reset(seed=3)[0])
    noise = np.random.default_rng(0)
    battles, kept = 0, []
    for _ in range(14):
        actions = noise.uniform(-1, 1, (2, 2, ACTION_DIM)).astype(np.float32)
        observations, rewards, terminated, truncated, infos = envs.step(actions)
        if mode == "NEXT_STEP" and battles and battles % 5 == 0:
            battles = 0
        battles += 1
        if mode == "NEXT_STEP" and battles == 5:
            np.testing.assert_array_equal(observations, twin.reset()[0])
            assert not (rewards.any() or terminated.any() or truncated.any())
            continue
        expected, *others, other_infos = twin.step(actions)
        for array, other in zip((rewards, terminated, truncated), others, strict=True):
            np.testing.assert_array_equal(array, other)
        if mode == "SAME_STEP" and truncated.any():
            assert infos["_final_obs"].all()
            np.testing.assert_array_equal(np.stack(list(infos["final_obs"])), expected)
            for name in ("alive", "outcome", "reason", "present"):
                np.testing.assert_array_equal(infos["final_info"][name], other_infos[name])
            for name in ("reward_components", "episode_statistics"):
                np.testing.assert_array_equal(infos["final_info"][name], other_infos[name])
            assert infos["final_info"]["episode_statistics"][..., L].tolist() == [[4, 4], [4, 4]]
            assert not (infos["final_info"]["_present"] & infos["final_info"]["present"]).any()
            kept.append((infos["final_obs"][0], expected[0]))
            expected = twin.reset()[0]
            assert infos["present"].all()
        np.testing.assert_array_equal(observations, expected)
    for final, seen in kept:
        np.testing.assert_array_equal(final, seen)  # later steps do not change it
    assert bool(kept) == (mode == "SAME_STEP")


def test_battles_restart_one_by_one():
    """Each sub-environment restarts when it is done, independent of the others."""
    envs = BattleBatchEnv("duel", 2)
    envs.reset(seed=0)
    envs._battles.engine.state.teams["score"][1, 0] = envs.config.zone.score_to_win
    _, _, terminated, _, infos = envs.step(zeros(envs))
    assert terminated.tolist() == [[False] * 2, [True] * 2]
    assert infos["outcome"].tolist() == [[0, 0], [1, -1]]
    assert infos["reason"].tolist() == ["", "zone_control"]
    assert infos["present"].tolist() == [[True] * 2, [False] * 2]
    before = infos["map_seed"]
    *_, infos = envs.step(zeros(envs))
    assert (infos["map_seed"] == before).tolist() == [True, False]
    assert envs._battles.engine.state.battles["step_count"].tolist() == [2, 0]
    assert infos["reason"].tolist() == ["", ""]


def test_without_autoreset_a_mask_selects_the_battles_to_reset():
    envs = BattleBatchEnv(num_envs=3, autoreset_mode=AutoresetMode.DISABLED, **SHORT)
    envs.reset(seed=0)
    for _ in range(4):
        observations, *_ = envs.step(zeros(envs))
    with pytest.raises(ResetNeeded, match=r"no battle in progress in sub-environments \[0, 1, 2\]"):
        envs.step(zeros(envs))
    mask = np.array([True, False, True])
    after, infos = envs.reset(options={"reset_mask": mask})
    np.testing.assert_array_equal(after[1], observations[1])
    assert not np.array_equal(after[0], observations[0])
    assert infos["_alive"][:, 0].tolist() == mask.tolist()
    assert infos["present"].tolist() == [[True] * 2, [False] * 2, [True] * 2]
    with pytest.raises(ResetNeeded, match=r"sub-environments \[1\]"):
        envs.step(zeros(envs))
    for wrong in (np.array([1, 0, 1]), np.array([True]), np.zeros(3, np.bool_)):
        with pytest.raises(ValueError, match=r"reset_mask: expected \(3,\) booleans"):
            envs.reset(options={"reset_mask": wrong})


@pytest.mark.parametrize("observation_format", ["flat", "dict"])
def test_observations_are_in_new_arrays(observation_format):
    def arrays(observations):
        return list(observations.values()) if isinstance(observations, dict) else [observations]

    envs = BattleBatchEnv(num_envs=2, observation=observation_format, **SHORT)
    returned = [envs.reset(seed=0)[0]]
    returned += [envs.step(zeros(envs))[0] for _ in range(6)]
    for one, other in itertools.combinations(returned, 2):
        assert not any(np.shares_memory(a, b) for a, b in zip(arrays(one), arrays(other), strict=True))


@pytest.mark.parametrize("num_envs", [1, 40])
@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_no_other_returned_value_changes_later(mode, num_envs):
    envs = BattleBatchEnv(num_envs=num_envs, autoreset_mode=mode, events=True, action="multi_discrete", **SHORT)
    noise = np.random.default_rng(0)
    kept = []
    envs.reset(seed=0)
    for _ in range(12):
        if mode == AutoresetMode.DISABLED and kept and not kept[-1][0][4]["present"].any():
            envs.reset()
        out = envs.step(noise.integers(0, 2, (num_envs, 2, envs.single_action_space.shape[0])))
        kept.append((out, pickle.dumps(out)))
    assert all(pickle.dumps(out) == before for out, before in kept)


def test_max_cycles_truncate_persistent_agents_too():
    for life in ("terminate", "persist"):
        envs = BattleBatchEnv("duel", 2, max_cycles=3, dead_agents=life)
        envs.reset(seed=0)
        envs._battles.engine.state.mechs["alive"][0, 1] = 0
        for _ in range(2):
            _, _, terminated, truncated, infos = envs.step(zeros(envs))
            assert not (terminated.any() or truncated.any())
        envs._battles.engine.state.teams["mechs_alive"][0, 1] = 1
        _, _, terminated, truncated, infos = envs.step(zeros(envs))
        assert truncated.all()
        assert not terminated.any()
        assert infos["reason"].tolist() == ["", ""]
        assert infos["episode_statistics"][..., L].tolist() == [[3, 3], [3, 3]]
        _, rewards, *_ = envs.step(zeros(envs))  # rewards of new battles, not of truncated ones
        assert not rewards.any()


def test_seeds_follow_gymnasiums_convention():
    envs = BattleBatchEnv(num_envs=3, **SHORT)
    first, _ = envs.reset(seed=5)
    second, _ = envs.reset(seed=[5, 6, 7])
    np.testing.assert_array_equal(first, second)
    third, _ = envs.reset(seed=[None, 6, None])
    np.testing.assert_array_equal(third[1], first[1])
    assert not np.array_equal(third[0], first[0])
    follow = envs.reset()[0]
    envs.reset(seed=5)
    np.testing.assert_array_equal(envs.reset()[0][[0, 2]], third[[0, 2]])
    assert not np.array_equal(follow, third)
    with pytest.raises(ValueError, match="seed: expected 3 seeds, got 2"):
        envs.reset(seed=[1, 2])
    for seed in (-1, 1.5, "abc", [1, -5, 2]):
        with pytest.raises(ValueError, match="seed: expected an integer in"):
            envs.reset(seed=seed)
    fresh = {BattleBatchEnv(**SHORT).reset()[0].tobytes() for _ in range(3)}
    assert len(fresh) == 3


def test_maps_of_a_pool_and_battles_on_the_same_one():
    envs = BattleBatchEnv(num_envs=2, maps=3, regenerate=2, **SHORT)
    seeds = []
    for episode in range(4):
        _, infos = envs.reset(seed=1 if episode == 0 else None)
        seeds.append(infos["map_seed"].tolist())
    assert seeds[0] == seeds[1]
    assert seeds[2] == seeds[3]


def test_states_are_those_of_the_engine():
    envs = BattleBatchEnv("duel", 2)
    with pytest.raises(ResetNeeded):
        envs.state()
    envs.reset(seed=0)
    for team in (0, 1):
        np.testing.assert_array_equal(envs.state(team), envs._battles.engine.global_state(team))
    assert not np.array_equal(envs.state(0), envs.state(1))
    with pytest.raises(ValueError, match="team: expected 0"):
        envs.state(2)


def test_bad_input():
    envs = BattleBatchEnv("duel", 2)
    with pytest.raises(ResetNeeded):
        envs.step(zeros(envs))
    envs.reset(seed=0)
    with pytest.raises(ValueError, match=rf"actions: expected shape \(2, 2, {ACTION_DIM}\), got \(2, {ACTION_DIM}\)"):
        envs.step(zeros(envs)[:, 0])
    for arguments, message in (
        ({"num_envs": 0}, "num_envs: expected an integer of at least 1"),
        ({"autoreset_mode": "LATER"}, "unknown autoreset_mode 'LATER'"),
        ({"max_cycles": 0}, "max_cycles: expected an integer of at least 1"),
        ({"regenerate": 0}, "regenerate: expected an integer of at least 1"),
        ({"action": "choices"}, "unknown action 'choices'"),
        ({"mask_in_observation": True}, "mask_in_observation needs action 'multi_discrete' or 'discrete'"),
        ({"opponent": "novice"}, "unexpected keyword argument 'opponent'"),
    ):
        with pytest.raises(ConfigError, match=message):
            BattleBatchEnv("duel", **arguments)


def test_dict_actions_are_checked_by_block():
    envs = BattleBatchEnv("duel", 2, action="dict")
    envs.reset(seed=0)
    actions = envs.action_space.sample()
    assert isinstance(envs.single_action_space, gymnasium.spaces.Dict)
    envs.step(actions)
    with pytest.raises(ValueError, match=r"actions\['target'\]: expected shape \(2, 2\), got \(2,\)"):
        envs.step(dict(actions) | {"target": actions["target"][0]})
