"""The interface of SMAC, as the runners of PyMARL and EPyMARL use it."""

import numpy as np
import pytest
from gymnasium.error import ResetNeeded

from echelon_env import BattleEnv, ConfigError
from echelon_env.interop import EPyMARLEnv, SMACEnv

SHORT = {"terrain": {"size": 50}, "max_steps": 40}


def available(env, rng):
    """A random available action for each mech."""
    return [int(rng.choice(np.flatnonzero(mask))) for mask in env.get_avail_actions()]


@pytest.mark.parametrize("side", [0, 1])
def test_an_episode_has_the_observations_states_and_rewards_of_the_team_environment(side):
    env = SMACEnv("skirmish", opponent="expert", seed=4, side=side, **SHORT)
    team = BattleEnv("skirmish", control="team", opponent="expert", action="discrete", side=side, **SHORT)
    sizes = env.get_env_info()
    assert sizes == {
        "state_shape": team.state_space.shape[0], "obs_shape": team.observation_space.shape[0] // 5,
        "n_actions": 67, "n_agents": 5, "episode_limit": 40,
    }  # fmt: skip
    rng, terminated, steps = np.random.default_rng(0), False, 0
    (observations, state), (expected, _) = env.reset(), team.reset(seed=4)
    while not terminated:
        assert np.shape(observations) == (5, sizes["obs_shape"])
        np.testing.assert_array_equal(np.concatenate(observations), expected)
        np.testing.assert_array_equal(env.get_obs_agent(3), observations[3])
        np.testing.assert_array_equal(state, team.state())
        assert team.state_space.contains(state)
        assert np.shape(env.get_avail_actions()) == (5, sizes["n_actions"])
        assert env.get_avail_agent_actions(2) == env.get_avail_actions()[2]
        actions = available(env, rng)
        reward, terminated, info = env.step(actions)
        expected, expected_reward, *flags, expected_info = team.step(np.array(actions))
        assert (reward, terminated) == (expected_reward, any(flags))
        assert info["dead_allies"] == 5 - expected_info["alive"]
        observations, state, steps = env.get_obs(), env.get_state(), steps + 1
    assert info["episode_limit"] == flags[1]
    assert info["battle_won"] == (expected_info["outcome"] > 0)
    stats = env.get_stats()
    assert (stats["battles_game"], stats["battles_won"], stats["timeouts"]) == (1, info["battle_won"], flags[1])
    with pytest.raises(ResetNeeded):
        env.step(actions)
    env.close()


def test_the_dead_have_no_choice_and_are_counted():
    env = SMACEnv("skirmish", opponent="expert", seed=1, terrain={"size": 50})
    env.reset()
    terminated, dead = False, set()
    while not terminated:
        _, terminated, info = env.step(np.zeros(5, int))
        choices = np.sum(env.get_avail_actions(), axis=1)
        assert (choices == 1).sum() >= info["dead_allies"]
        dead.add(info["dead_allies"])
    assert len(dead) > 1 and not info["battle_won"] and info["dead_enemies"] == 0


def test_later_battles_follow_from_the_seed():
    states = []
    for _ in range(2):
        env = SMACEnv("duel", seed=3, **SHORT)
        states.append([env.reset()[1] for _ in range(2)])
        env.seed(3)
        states[-1].append(env.reset()[1])
    np.testing.assert_array_equal(*states)
    assert (states[0][0] != states[0][1]).any()
    np.testing.assert_array_equal(states[0][0], states[0][2])


def test_epymarls_runner():
    """The loop of its `EpisodeRunner`."""
    env = EPyMARLEnv(
        scenario="duel", opponent="trivial", seed=5, common_reward=True, reward_scalarisation="sum", **SHORT
    )
    rng = np.random.default_rng(1)
    for _ in range(2):
        observations, info = env.reset()
        assert info == {}
        done, steps = False, 0
        while not done:
            np.testing.assert_array_equal(observations, env.get_obs())
            observations, reward, terminated, truncated, info = env.step(available(env, rng))
            assert isinstance(reward, float)
            done, steps = terminated or truncated, steps + 1
        assert steps <= env.episode_limit
        assert info["episode_limit"] == truncated
    first, _ = env.reset(seed=5)
    again, _ = env.reset(seed=5)
    np.testing.assert_array_equal(first, again)


def test_bad_input():
    with pytest.raises(ConfigError, match="common_reward: expected True"):
        EPyMARLEnv(common_reward=False)
    with pytest.raises(ConfigError, match="unknown opponent 'novize'"):
        SMACEnv(opponent="novize")
    with pytest.raises(ConfigError, match="control, observation: the interface of SMAC chooses these"):
        SMACEnv("duel", observation="dict", control="pilot")
    with pytest.raises(ValueError, match="seed: expected an integer"):
        SMACEnv("duel", seed=-1)
    env = SMACEnv("duel", seed=3)
    assert env.seed() == 3
    env.seed(4)
    assert env.seed() == 4
    env.reset()
    assert env.seed() is None
    with pytest.raises(ValueError, match=r"action: expected 0 to 66 at \[0\], got 67"):
        env.step([67])
    with pytest.raises(ValueError, match=r"action: expected shape \(1,\), got \(2,\)"):
        env.step([0, 0])


@pytest.mark.parametrize(("changes", "limit"), [({"time_limit": "terminate"}, 3), ({"max_cycles": 2}, 2)])
def test_time_limits_are_counted(changes, limit):
    env = SMACEnv("duel-open", seed=0, max_steps=3, **changes)
    env.reset()
    steps, over = 0, False
    while not over:
        _, over, _ = env.step([0])
        steps += 1
    assert (steps, env.episode_limit, env.get_env_info()["episode_limit"]) == (limit, limit, limit)
    assert env.get_stats()["timeouts"] == 1
    env.close()
