import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode

import echelon_env
from echelon_env import BattleVectorEnv, ConfigError
from echelon_env.layout.actions import ACTION_DIM
from echelon_env.layout.observations import OBSERVATION_DIM

STEPS = 12


def make(mode, num_envs=3, **overrides):
    return BattleVectorEnv("duel", num_envs, autoreset_mode=mode, **({"max_steps": 5} | overrides))


def test_make_vec_builds_one_engine():
    envs = gymnasium.make_vec(
        "echelon/Skirmish-v0", num_envs=4, vectorization_mode="vector_entry_point", control="team"
    )
    observations, infos = envs.reset(seed=1)
    assert envs.observation_space.contains(observations)
    assert envs.num_envs == 4
    assert envs.metadata["autoreset_mode"] == AutoresetMode.NEXT_STEP
    observations, rewards, terminated, truncated, infos = envs.step(envs.action_space.sample())
    assert observations.shape == (4, 5 * OBSERVATION_DIM)
    assert rewards.shape == terminated.shape == truncated.shape == (4,)
    assert infos["alive"].tolist() == [5] * 4


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_the_batch_equals_single_environments(mode):
    envs = make(mode, num_threads=2)
    singles = [echelon_env.BattleEnv("duel", max_steps=5) for _ in range(3)]
    observations, _ = envs.reset(seed=7)
    for i, single in enumerate(singles):
        np.testing.assert_array_equal(observations[i], single.reset(seed=7 + i)[0])
    done = np.zeros(3, bool)
    noise = np.random.default_rng(0)
    for _ in range(STEPS):
        if mode == AutoresetMode.DISABLED and done.any():
            observations, _ = envs.reset(options={"reset_mask": done})
            for i in np.flatnonzero(done):
                np.testing.assert_array_equal(observations[i], singles[i].reset()[0])
        actions = noise.uniform(-1, 1, (3, ACTION_DIM)).astype(np.float32)
        restarting = done if mode == AutoresetMode.NEXT_STEP else np.zeros(3, bool)
        observations, rewards, terminated, truncated, infos = envs.step(actions)
        done = terminated | truncated
        for i, single in enumerate(singles):
            if restarting[i]:
                np.testing.assert_array_equal(observations[i], single.reset()[0])
                assert (rewards[i], terminated[i], truncated[i]) == (0, False, False)
                assert infos["_alive"][i]
                assert infos["alive"][i] == 1
                continue
            observation, reward, *flags, info = single.step(actions[i])
            assert [terminated[i], truncated[i]] == flags
            assert rewards[i] == reward
            if mode != AutoresetMode.SAME_STEP:
                for name, part in info["reward_components"].items():
                    assert infos["reward_components"][name][i] == part
            if mode == AutoresetMode.SAME_STEP and done[i]:
                assert infos["_final_obs"][i]
                np.testing.assert_array_equal(infos["final_obs"][i], observation)
                assert infos["final_info"]["outcome"][i] == info["outcome"]
                np.testing.assert_array_equal(observations[i], single.reset()[0])
            else:
                np.testing.assert_array_equal(observations[i], observation)
                assert ("outcome" in infos and infos["_outcome"][i]) == ("outcome" in info)


def test_final_observations_are_kept_apart_from_later_ones():
    envs = make("SAME_STEP", num_envs=1)
    envs.reset(seed=0)
    for _ in range(5):
        _, _, _, truncated, infos = envs.step(np.zeros((1, ACTION_DIM), np.float32))
    assert truncated[0]
    kept = infos["final_obs"][0].copy()
    for _ in range(3):
        envs.step(np.ones((1, ACTION_DIM), np.float32))
    np.testing.assert_array_equal(infos["final_obs"][0], kept)
    assert kept[[25 + 10]] == 0  # no time left


def test_seeds():
    envs = make("NEXT_STEP")
    a, _ = envs.reset(seed=5)
    b, _ = envs.reset(seed=[5, 6, 7])
    np.testing.assert_array_equal(a, b)
    c, _ = envs.reset(seed=[None, 6, None])
    np.testing.assert_array_equal(c[1], a[1])
    assert not np.array_equal(c[0], a[0])
    with pytest.raises(ValueError, match="seed: expected 3 seeds, got 2"):
        envs.reset(seed=[1, 2])
    for seed in (-1, 1.5, "abc", [1, -5, 2], [1.5, 2, 3], 2**64 - 1):
        with pytest.raises(ValueError, match="seed: expected an integer in"):
            envs.reset(seed=seed)
    envs.reset(seed=2**63 - 1)  # the seeds of the second and third battle lie beyond 2**63
    assert envs.np_random_seed == 2**63 - 1


def test_a_failed_first_reset_is_no_reset():
    envs = make("NEXT_STEP")
    with pytest.raises(ValueError, match="seed"):
        envs.reset(seed=[1, -5, 2])
    with pytest.raises(ResetNeeded, match="the first reset must start every battle"):
        envs.reset(options={"reset_mask": np.array([True, False, False])})
    with pytest.raises(ResetNeeded):
        envs.step(np.zeros((3, ACTION_DIM), np.float32))
    with pytest.raises(ConfigError, match="num_envs: expected an integer of at least 1, got 0"):
        make("NEXT_STEP", num_envs=0)


def test_disabled_autoreset_resets_only_where_asked():
    envs = make("DISABLED")
    envs.reset(seed=0)
    actions = np.zeros((3, ACTION_DIM), np.float32)
    for _ in range(5):
        observations, *_ = envs.step(actions)
    with pytest.raises(ResetNeeded, match=r"no battle in progress in sub-environments \[0, 1, 2\]"):
        envs.step(actions)
    after, _ = envs.reset(options={"reset_mask": np.array([True, False, True])})
    np.testing.assert_array_equal(after[1], observations[1])
    assert not np.array_equal(after[0], observations[0])
    with pytest.raises(ValueError, match=r"reset_mask: expected \(3,\) booleans"):
        envs.reset(options={"reset_mask": np.array([1, 0, 1])})


def test_bad_input():
    with pytest.raises(ConfigError, match="unknown autoreset_mode 'LATER'"):
        make("LATER")
    envs = make("NEXT_STEP")
    with pytest.raises(ResetNeeded):
        envs.step(np.zeros((3, ACTION_DIM), np.float32))
    envs.reset(seed=0)
    with pytest.raises(ValueError, match=rf"actions: expected shape \(3, {ACTION_DIM}\), got \(2, {ACTION_DIM}\)"):
        envs.step(np.zeros((2, ACTION_DIM), np.float32))


def test_gymnasium_wrappers_work_on_it():
    envs = gymnasium.wrappers.vector.RecordEpisodeStatistics(make("NEXT_STEP"))
    envs = gymnasium.wrappers.vector.NormalizeObservation(envs)
    envs.reset(seed=0)
    ended = 0
    for _ in range(STEPS):
        *_, infos = envs.step(envs.action_space.sample())
        ended += int(np.sum(infos.get("_episode", 0)))
    assert ended == 6
    envs.close()


def test_rendering_shows_every_battle():
    envs = make("NEXT_STEP", render_mode="rgb_array")
    envs.reset(seed=0)
    frames = envs.render()
    assert len(frames) == 3
    assert not np.array_equal(frames[0], frames[1])
