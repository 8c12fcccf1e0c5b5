"""Parallel environments that each break one rule about the result of a call."""

import copy

import numpy as np

from testing.arena import Arena

FAULTS = []


def fault(check):
    def register(environment):
        FAULTS.append((check, environment))
        return environment

    return register


class Corrupted(Arena):
    """Applies `corrupt` to the result of `step`, from the fourth step on."""

    def step(self, actions):
        returned = super().step(actions)
        return self.corrupt(*returned) or returned if self.time > 3 and returned[0] else returned


@fault("reset")
class ResetWithoutOptions(Arena):
    def reset(self, seed=None):
        return super().reset(seed)


@fault("reset")
class ResetWithoutInfos(Arena):
    def reset(self, seed=None, options=None):
        return super().reset(seed)[0]


@fault("step")
class StepRaises(Corrupted):
    def corrupt(self, *_):
        raise KeyError("walker")


@fault("step")
class OneFlagOnly(Corrupted):
    def corrupt(self, observations, rewards, terminations, truncations, infos):
        return observations, rewards, terminations, infos


@fault("step")
class RewardsInAList(Corrupted):
    def corrupt(self, observations, rewards, terminations, truncations, infos):
        return observations, [*rewards.values()], terminations, truncations, infos


@fault("agents")
class NoAgents(Arena):
    def reset(self, seed=None, options=None):
        returned = super().reset(seed)
        del self.agents
        return returned


@fault("agents")
class NoAgentsAfterReset(Arena):
    def reset(self, seed=None, options=None):
        super().reset(seed)
        self.agents = []
        return {}, {}


@fault("agents")
class AgentTwice(Corrupted):
    def corrupt(self, *_):
        self.agents = [*self.agents, *self.agents[:1]]


@fault("agents")
class StrangerAmongAgents(Corrupted):
    def corrupt(self, observations, *others):
        self.agents.append("stranger")
        for part in (observations, *others):
            part["stranger"] = next(iter(part.values()))


@fault("agents")
class PossibleAgentsShrink(Arena):
    def step(self, actions):
        returned = super().step(actions)
        self.possible_agents = self.possible_agents[:]
        self.possible_agents.remove("jumper_1")
        return returned


@fault("agents")
class Vanishes(Corrupted):
    def corrupt(self, *_):
        self.agents = self.agents[1:]


@fault("agents")
class ComesBack(Arena):
    def step(self, actions):
        returned = super().step(actions)
        gone = [agent for agent in self.possible_agents if agent not in returned[0]]
        if self.agents and gone:
            self.agents.append(gone[0])
            returned[0][gone[0]], returned[4][gone[0]] = self.observe(gone[0]), {}
        return returned


@fault("keys")
class FinalObservationMissing(Arena):
    def step(self, actions):
        observations, *rest = super().step(actions)
        return {agent: observations[agent] for agent in self.agents}, *rest


@fault("keys")
class InfoMissing(Arena):
    def reset(self, seed=None, options=None):
        return super().reset(seed)[0], {}


@fault("keys")
class TheDeadObserve(Arena):
    def step(self, actions):
        return {agent: self.observe(agent) for agent in self.possible_agents}, *super().step(actions)[1:]


@fault("keys")
class TheDeadEarn(Arena):
    def step(self, actions):
        observations, rewards, *rest = super().step(actions)
        return observations, dict.fromkeys(self.possible_agents, 0.0) | rewards, *rest


@fault("flags")
class FlagsAreNone(Corrupted):
    def corrupt(self, observations, rewards, terminations, truncations, infos):
        truncations.update({agent: flag or None for agent, flag in truncations.items()})


@fault("termination")
class TheDeadStay(Corrupted):
    def corrupt(self, observations, rewards, terminations, truncations, infos):
        self.agents = [agent for agent in terminations if not truncations[agent]]


@fault("truncation")
class TheTruncatedStay(Corrupted):
    def corrupt(self, observations, rewards, terminations, truncations, infos):
        self.agents = [agent for agent in terminations if not terminations[agent]]


@fault("end")
class ContinuesAfterTheEnd(Arena):
    def step(self, actions):
        if self.agents:
            return super().step(actions)
        return ({"walker_0": self.observe("walker_0")}, {"walker_0": 0.0}, {}, {}, {})


@fault("end")
class RevivesAfterTheEnd(Arena):
    def step(self, actions):
        if not self.agents:
            self.agents = self.possible_agents[:]
            raise RuntimeError
        return super().step(actions)


def bad_reward(name, value):
    def corrupt(self, observations, rewards, *_):
        rewards[next(iter(rewards))] = value

    return type(name, (Corrupted,), {"corrupt": corrupt})


for name, value in {"Nan": np.nan, "Bool": True, "Text": "1.0"}.items():
    fault("rewards")(bad_reward(f"Reward{name}", value))


def bad_observation(name, change):
    def corrupt(self, observations, *_):
        change(observations[next(iter(observations))])

    return type(name, (Corrupted,), {"corrupt": corrupt})


fault("observations")(bad_observation("ObservationTooHigh", lambda o: o["place"].__setitem__(1, 10.001)))


@fault("infos")
class InfosAreNone(Corrupted):
    def corrupt(self, observations, rewards, terminations, truncations, infos):
        infos.update(dict.fromkeys(infos))


@fault("state")
class StateOutOfBounds(Arena):
    def state(self):
        return super().state() + 10 * (self.time > 3)


@fault("state")
class StateIsMissing(Arena):
    def state(self):
        raise NotImplementedError


@fault("spaces")
class SpaceIsMissing(Arena):
    def action_space(self, agent):
        return {}[agent]


@fault("spaces")
class NewSpaceEveryTime(Arena):
    def action_space(self, agent):
        return copy.deepcopy(self._action_spaces[agent])


@fault("spaces")
class BoundsMove(Arena):
    def step(self, actions):
        self._observation_spaces["walker_0"]["place"].high[:] += 1
        return super().step(actions)


@fault("action_mask")
class MaskOfAnotherShape(Arena):
    def infos(self, present=None):
        infos = super().infos(present)
        for info in infos.values():
            if "action_mask" in info:
                info["action_mask"] = info["action_mask"][0]
        return infos
