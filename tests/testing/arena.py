"""A small parallel environment that keeps every rule: agents move on a plane and die at random; a time limit."""

from collections import OrderedDict

import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple
from gymnasium.utils import seeding
from pettingzoo import ParallelEnv

LIMIT = 12


class Arena(ParallelEnv):
    metadata = {"name": "arena_v0", "render_modes": ["ansi"]}  # noqa: RUF012

    def __init__(self, render_mode=None):
        self.render_mode = render_mode
        self.possible_agents = [f"walker_{i}" for i in range(3)] + [f"jumper_{i}" for i in range(2)]
        self.agents = []
        view = OrderedDict(
            place=Box(-10, 10, (2,), np.float32),
            alive=MultiBinary(5),
            clock=Tuple((Discrete(LIMIT + 1), MultiDiscrete([5, 5]))),
        )
        self._observation_spaces = {agent: Dict(view) for agent in self.possible_agents}
        self._action_spaces = {
            agent: Box(-1, 1, (2,), np.float32) if agent.startswith("walker") else MultiDiscrete([3, 2])
            for agent in self.possible_agents
        }
        self.state_space = Box(-10, 10, (10,), np.float64)
        self.rng = None
        self.time = 0
        self.place = {}

    def observation_space(self, agent):
        return self._observation_spaces[agent]

    def action_space(self, agent):
        return self._action_spaces[agent]

    def state(self):
        return np.concatenate([self.place[agent] for agent in self.possible_agents])

    def reset(self, seed=None, options=None):
        if seed is not None or self.rng is None:
            self.rng, _ = seeding.np_random(seed)
        self.time = 0
        self.agents = self.possible_agents[:]
        self.place = {agent: self.rng.uniform(-1, 1, 2) for agent in self.agents}
        return {agent: self.observe(agent) for agent in self.agents}, self.infos()

    def step(self, actions):
        if not self.agents:
            return {}, {}, {}, {}, {}
        assert list(actions) == self.agents
        self.time += 1
        for agent, action in actions.items():
            assert agent.startswith("walker") or action[0] != self.time % 3, "masked action"
            self.place[agent] = np.clip(self.place[agent] + action / 2, -10, 10)
        present, dying = self.agents, self.rng.random(5) < 0.08
        terminations = {agent: bool(dying[self.possible_agents.index(agent)]) for agent in present}
        truncations = {agent: self.time == LIMIT and not terminations[agent] for agent in present}
        rewards = {agent: float(np.abs(self.place[agent]).sum()) for agent in present}
        self.agents = [agent for agent in present if not (terminations[agent] or truncations[agent])]
        observations, infos = {agent: self.observe(agent) for agent in present}, self.infos(present)
        return observations, rewards, terminations, truncations, infos

    def observe(self, agent):
        living = [float(other in self.agents) for other in self.possible_agents]
        return {
            "place": self.place[agent].astype(np.float32),
            "alive": np.array(living, np.int8),
            "clock": (self.time, np.array([len(self.agents) % 5, self.time % 5])),
        }

    def infos(self, present=None):
        infos = {agent: {"time": self.time, "history": [self.time]} for agent in present or self.agents}
        for agent, info in infos.items():
            if agent.startswith("jumper"):
                info["action_mask"] = (np.ones(3, np.int8), np.ones(2, np.int8))
                info["action_mask"][0][(self.time + 1) % 3] = 0
        return infos

    def render(self):
        return f"{self.time}: {len(self.agents)} left"

    def close(self):
        pass
