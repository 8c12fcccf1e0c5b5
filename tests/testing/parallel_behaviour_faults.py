"""Parallel environments whose single calls are correct, but whose behaviour over several calls breaks one rule."""

import copy
import pickle

import numpy as np
from gymnasium.spaces import Box
from gymnasium.utils import seeding

from testing.arena import Arena
from testing.parallel_interface_faults import fault


@fault("actions_written")
class WritesToActions(Arena):
    def step(self, actions):
        for action in actions.values():
            action[1] = 0
        return super().step(actions)


@fault("aliasing")
class OneBuffer(Arena):
    buffers = 1

    def __init__(self):
        super().__init__()
        self.kept = np.zeros((self.buffers, 5, 2), np.float32)

    def observe(self, agent):
        observation = super().observe(agent)
        row = self.kept[self.time % self.buffers, self.possible_agents.index(agent)]
        row[:] = observation["place"]
        return observation | {"place": row}


@fault("aliasing")
class TwoBuffers(OneBuffer):
    buffers = 2


@fault("aliasing")
class OneArrayThatStays(Arena):
    def infos(self, present=None):
        kept = self.__dict__.setdefault("kept", np.zeros(1))
        return {agent: info | {"kept": kept} for agent, info in super().infos(present).items()}


@fault("aliasing")
class OneDictOfInfos(Arena):
    def infos(self, present=None):
        self.kept = getattr(self, "kept", {})
        self.kept.clear()
        self.kept.update(super().infos(present))
        return self.kept


@fault("seed")
class GlobalRandomNumbers(Arena):
    def observe(self, agent):
        return super().observe(agent) | {"place": np.float32(np.random.default_rng().uniform(-1, 1, 2))}


@fault("other_seed")
class IgnoresTheSeed(Arena):
    def reset(self, seed=None, options=None):
        return super().reset(seed if seed is None else 7)


@fault("next_episode")
class SeedsAgain(Arena):
    def reset(self, seed=None, options=None):
        self.seed = self.seed if seed is None else seed
        return super().reset(self.seed)


@fault("unfinished")
class UnseededAfterAnUnfinishedEpisode(Arena):
    def reset(self, seed=None, options=None):
        if seed is None and self.agents:
            self.rng, _ = seeding.np_random()
        return super().reset(seed)


@fault("unfinished")
class SurvivorsOnly(Arena):
    """Restores dead agents only after the end of an episode or with a seed."""

    def reset(self, seed=None, options=None):
        survivors = self.agents if seed is None and self.agents else self.possible_agents
        super().reset(seed)
        self.agents = survivors[:]
        return {agent: self.observe(agent) for agent in survivors}, self.infos()


@fault("actions_kept")
class KeepsTheActionDict(Arena):
    last = ()

    def reset(self, seed=None, options=None):
        self.last = ()
        return super().reset(seed)

    def step(self, actions):
        observations, rewards, *rest = super().step(actions)
        rewards = {agent: reward + len(self.last) for agent, reward in rewards.items()}
        self.last = actions
        return observations, rewards, *rest


@fault("results_kept")
class ReturnsItsOwnPlaces(Arena):
    def __init__(self):
        super().__init__()
        self.state_space = Box(-10, 10, (2,), np.float64)

    def step(self, actions):
        self.place = {agent: place.copy() for agent, place in self.place.items()}
        return super().step(actions)

    def state(self):
        return self.place["walker_0"]


@fault("deepcopy")
class CopySharesRandomNumbers(Arena):
    def __deepcopy__(self, memo):
        twin = pickle.loads(pickle.dumps(self))
        twin.rng = self.rng
        return twin


@fault("pickle")
class PickledFromItsArguments(Arena):
    def __deepcopy__(self, memo):
        twin = type(self)()
        twin.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return twin

    def __reduce__(self):
        return type(self), ()


@fault("render")
class RenderingDraws(Arena):
    def __init__(self):
        super().__init__(render_mode="ansi")

    def render(self):
        return str(self.rng.random())


@fault("close")
class ClosesOnce(Arena):
    def __init__(self):
        super().__init__()
        self.file = "open"

    def close(self):
        del self.file
