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


def break_down(env, *_):
    raise KeyError("walker")


def vanish(env, *_):
    env.agents = env.agents[1:]


def take_in_a_stranger(env, *parts):
    env.agents.append("stranger")
    for part in parts:
        part["stranger"] = next(iter(part.values()))


def double(env, *_):
    env.agents = [*env.agents, *env.agents[:1]]


def keep_the_dead(env, observations, rewards, terminations, truncations, infos):
    env.agents = [agent for agent in terminations if not truncations[agent]]


def keep_the_truncated(env, observations, rewards, terminations, truncations, infos):
    env.agents = [agent for agent in terminations if not terminations[agent]]


def leave_flags_open(env, observations, rewards, terminations, truncations, infos):
    truncations.update({agent: flag or None for agent, flag in truncations.items()})


def first_reward(value):
    return lambda env, observations, rewards, *_: rewards.update({next(iter(rewards)): value})


def first_place(value):
    return lambda env, observations, *_: next(iter(observations.values()))["place"].__setitem__(1, value)


CORRUPTIONS = (
    ("step", "breaks down", break_down),
    ("step", "one flag", lambda env, observations, rewards, flags, _, infos: (observations, rewards, flags, infos)),
    ("agents", "vanishes", vanish),
    ("agents", "a stranger", take_in_a_stranger),
    ("agents", "an agent twice", double),
    (
        "keys",
        "the dead earn",
        lambda env, o, rewards, *rest: (o, dict.fromkeys(env.possible_agents, 0.0) | rewards, *rest),
    ),
    ("keys", "no final observations", lambda env, o, *rest: ({agent: o[agent] for agent in env.agents}, *rest)),
    ("flags", "flags are None", leave_flags_open),
    ("termination", "the dead stay", keep_the_dead),
    ("truncation", "the truncated stay", keep_the_truncated),
    ("rewards", "not a number", first_reward(np.nan)),
    ("rewards", "a boolean", first_reward(True)),
    ("rewards", "a text", first_reward("1.0")),
    ("observations", "too high", first_place(10.001)),
    ("infos", "none", lambda env, o, r, te, tr, infos: infos.update(dict.fromkeys(infos))),
)


def corrupted(name, change):
    return type(name, (Corrupted,), {"corrupt": change})


for check, name, change in CORRUPTIONS:
    fault(check)(corrupted(name, change))


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
class TheDeadObserve(Arena):
    def step(self, actions):
        return {agent: self.observe(agent) for agent in self.possible_agents}, *super().step(actions)[1:]


@fault("end")
class ContinuesAfterTheEnd(Arena):
    def step(self, actions):
        if self.agents:
            return super().step(actions)
        return ({"walker_0": self.observe("walker_0")}, {"walker_0": 0.0}, {}, {}, {})


@fault("state")
class StateOutOfBounds(Arena):
    def state(self):
        return super().state() + 10 * (self.time > 3)


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
