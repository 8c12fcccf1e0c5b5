import pickle

import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode

from echelon_env import BattleBatchEnv, ConfigError
from echelon_env.envs.infos import EPISODE_STATISTICS
from echelon_env.layout.actions import ACTION_DIM

L = EPISODE_STATISTICS.index("l")

SHORT = {"scenario": "duel", "max_steps": 4}


def zeros(envs):
    return np.zeros((envs.num_envs, envs.num_mechs, ACTION_DIM), np.float32)


def test_autoreset_equals_manual_resets():
    """Final observations, rewards and infos equal those of an environment that is reset manually."""
    envs = BattleBatchEnv(num_envs=2, autoreset_mode="SAME_STEP", **SHORT)
    twin = BattleBatchEnv(num_envs=2, autoreset_mode="DISABLED", **SHORT)
    np.testing.assert_array_equal(envs.reset(seed=3)[0], twin.reset(seed=3)[0])
    noise = np.random.default_rng(0)
    kept = []
    for _ in range(14):
        actions = noise.uniform(-1, 1, (2, 2, ACTION_DIM)).astype(np.float32)
        observations, *results, infos = envs.step(actions)
        expected, *others, other_infos = twin.step(actions)
        np.testing.assert_equal(results, others)
        if results[2].any():
            final = infos["final_info"]
            np.testing.assert_array_equal(np.stack(list(infos["final_obs"])), expected)
            for name in ("alive", "outcome", "reason", "present", "reward_components", "episode_statistics"):
                np.testing.assert_array_equal(final[name], other_infos[name])
            assert final["episode_statistics"][..., L].tolist() == [[4, 4], [4, 4]]
            assert infos["_final_obs"].all() and not (final["_present"] & final["present"]).any()
            kept.append((infos["final_obs"][0], expected[0]))
            expected = twin.reset()[0]
            assert infos["present"].all()
        np.testing.assert_array_equal(observations, expected)
    assert len(kept) == 3
    for final, seen in kept:
        np.testing.assert_array_equal(final, seen)  # later steps do not change it


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


@pytest.mark.parametrize("num_envs", [1, 10])
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


def test_masks_in_observations():
    envs = BattleBatchEnv("trio", 2, action="multi_discrete", mask_in_observation=True)
    assert envs.observation_space.contains(envs.reset(seed=0)[0])


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
    for seed in (-1, "abc", [1, -5, 2]):
        with pytest.raises(ValueError, match="seed: expected an integer in"):
            envs.reset(seed=seed)
    fresh = {BattleBatchEnv(**SHORT).reset()[0].tobytes() for _ in range(3)}
    assert len(fresh) == 3


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
        ({"mask_in_observation": True}, "mask_in_observation needs action 'multi_discrete' or 'discrete'"),
        ({"opponent": "novice"}, "unexpected keyword argument 'opponent'"),
    ):
        with pytest.raises(ConfigError, match=message):
            BattleBatchEnv("duel", **arguments)
