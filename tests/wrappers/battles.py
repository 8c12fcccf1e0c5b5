"""A battle with deaths, recorded once and replayed through wrappers."""

import functools

import numpy as np

import echelon_env
from echelon_env import opponents

SEED = 2


def make(dead_agents, **kwargs):
    return echelon_env.parallel_env("skirmish", dead_agents=dead_agents, **kwargs)


@functools.cache
def record(dead_agents):
    """Actions of scripted teams and results of the environment: a reset, then (actions, step) to the end."""
    env = make(dead_agents)
    policy = opponents.make("novice", 0, env.config)
    results, decisions = [env.reset(seed=SEED)], []
    while env.agents:
        rows = np.zeros((len(env.possible_agents), *env.observation_space("blue_0").shape), np.float32)
        for agent in env.agents:
            rows[env.possible_agents.index(agent)] = results[-1][0][agent]
        acted = policy.act(rows)
        decisions.append({agent: acted[env.possible_agents.index(agent)] for agent in env.agents})
        results.append(env.step(decisions[-1]))
    assert any(not info["alive"] for info in results[len(results) // 2][-1].values()) or dead_agents == "terminate"
    return decisions, results


def replay(env, dead_agents):
    """Results of the recorded battle through a wrapper: a reset and all steps."""
    yield env.reset(seed=SEED)
    for actions in record(dead_agents)[0]:
        yield env.step(actions)
