"""Environments that `check_parallel_env` does not cover can be pickled and deep-copied during a battle."""

import copy
import pickle

import gymnasium
import numpy as np
import pytest

import echelon_env

CUT, END = 25, 60
SCENARIO = {"scenario": "skirmish", "terrain": {"size": 60}, "max_steps": 40}


def draw(space, noise):
    """A random action from a generator that is copied with the test, unlike the generator of the space."""
    space.seed(int(noise.integers(2**31)))
    return space.sample()


def as_bytes(observation):
    return [part.tobytes() for part in observation.values()] if isinstance(observation, dict) else observation.tobytes()


def walk(env, noise, steps):
    walked = []
    for _ in range(steps):
        observation, reward, terminated, truncated, _ = env.step(draw(env.action_space, noise))
        walked.append((as_bytes(observation), np.array(reward).tobytes(), np.any(terminated), np.any(truncated)))
        if isinstance(env, gymnasium.Env) and (terminated or truncated):
            walked.append(as_bytes(env.reset()[0]))
    return walked


ENVS = {
    "team, choices": lambda: echelon_env.BattleEnv(**SCENARIO, control="team", action="multi_discrete"),
    "batch": lambda: echelon_env.BattleBatchEnv(**SCENARIO, num_envs=3, num_threads=2),
    "vector": lambda: echelon_env.BattleVectorEnv(**SCENARIO, num_envs=3, num_threads=2),
}


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
@pytest.mark.parametrize("name", ENVS)
def test_a_copy_continues_like_the_original(name, duplicate):
    env = ENVS[name]()
    env.reset(seed=5)
    noise = np.random.default_rng(0)
    walk(env, noise, CUT)
    twin, twin_noise = duplicate(env), copy.deepcopy(noise)
    ahead = walk(env, noise, END - CUT)
    assert walk(twin, twin_noise, END - CUT) == ahead
    env.close()
    twin.close()
