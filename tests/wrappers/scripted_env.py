"""A parallel environment with predefined observations, rewards and deaths."""

import numpy as np
import pettingzoo
from gymnasium.spaces import Box, Dict, Discrete


class ScriptedEnv(pettingzoo.ParallelEnv):
    """Agents whose observations, rewards and deaths are given.

    Parameters
    ----------
    observations, rewards
        (T + 1, N, D) float32 from the reset on, (T, N).
    deaths
        For each agent the step (from 1) in which it dies, or None. After T steps the others are truncated.
    persist
        The dead stay with info["alive"] = False; else they are terminated and no info has the key.
    space
        "box", or "dict" for {"vision": (D,), "near": {"self": (D,), "self_mask": (2,), "level": (1,) int8}}.
    """

    metadata = {"name": "scripted_v0", "render_modes": []}  # noqa: RUF012
    render_mode = None

    def __init__(self, observations, rewards=None, deaths=None, *, persist=False, space="box", names=None):
        self.script = np.asarray(observations, np.float32)
        steps, agents, size = self.script.shape
        self.rewards = np.zeros((steps - 1, agents)) if rewards is None else np.asarray(rewards)
        self.deaths = deaths or [None] * agents
        self.persist = persist
        self.possible_agents = names or [f"{'blue' if i % 2 == 0 else 'red'}_{i // 2}" for i in range(agents)]
        self.agents = []
        box = Box(-np.inf, np.inf, (size,), np.float32)
        near = Dict({"self": box, "self_mask": Box(0, 1, (2,)), "level": Box(0, 9, (1,), np.int8)})
        self.space = box if space == "box" else Dict({"vision": box, "near": near})
        self.discrete = Discrete(4)
        self.seeds, self.actions = [], []

    def observation_space(self, agent):
        return self.space

    def action_space(self, agent):
        return self.discrete

    def state(self, team=0):
        return np.full(3, team)

    def reset(self, seed=None, options=None):
        self.seeds.append((seed, options))
        self.time = 0
        self.agents = self.possible_agents[:]
        return self.observe(self.agents), self.infos(self.agents)

    def step(self, actions):
        assert set(actions) == set(self.agents), f"actions of {set(actions)}, agents are {set(self.agents)}"
        self.actions.append(actions)
        self.time += 1
        present = self.agents
        terminations = {agent: self.is_dead(agent) and not self.persist for agent in present}
        over = self.time == len(self.rewards)
        truncations = {agent: over and not terminations[agent] for agent in present}
        self.agents = [agent for agent in present if not (terminations[agent] or truncations[agent])]
        rewards = {agent: self.rewards[self.time - 1, self.possible_agents.index(agent)].item() for agent in present}
        return self.observe(present), rewards, terminations, truncations, self.infos(present)

    def is_dead(self, agent):
        death = self.deaths[self.possible_agents.index(agent)]
        return death is not None and self.time >= death

    def observe(self, agents):
        """Views of the script, so that writing into an observation changes the script."""
        rows = {agent: self.script[self.time, self.possible_agents.index(agent)] for agent in agents}
        if isinstance(self.space, Box):
            return rows
        mask, level = np.ones(2, np.float32), np.array([7], np.int8)
        return {a: {"vision": row, "near": {"self": row, "self_mask": mask, "level": level}} for a, row in rows.items()}

    def infos(self, agents):
        return {agent: {"alive": not self.is_dead(agent)} if self.persist else {} for agent in agents}


def play(env, steps=None, seed=None):
    """Results of a reset and of all steps (or the first so many), with the action 0 for all agents."""
    yield env.reset(seed=seed)
    while env.agents and steps != 0:
        yield env.step({agent: np.int64(0) for agent in env.agents})
        steps = None if steps is None else steps - 1
