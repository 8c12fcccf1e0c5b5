"""A wrapper in which a policy controls the agents of the other teams."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.spaces import Box
from numpy.typing import NDArray

from echelon_env import opponents
from echelon_env.config.battle import BattleConfig
from echelon_env.config.opponent import Opponents
from echelon_env.config.schema import nearest_name
from echelon_env.opponents.policy import FunctionPolicy, Policy, PolicyLike
from echelon_env.spaces.agent import check_agents
from echelon_env.wrappers.base import ParallelWrapper, ResetResult, StepResult, kind_of


class TeamVersusPolicy(ParallelWrapper):
    """Exposes the agents of one team. A policy controls the R other agents.

    Row r of the policy's observations and actions is the r-th other agent in the order of `possible_agents`. The rows
    of agents that have left are zeros, and their actions are ignored.

    The episode ends when no agent of the team is left. This may be before the end of the environment's episode, and
    later rewards of the team are lost then. Echelon's ``dead_agents="persist"`` keeps them.

    Parameters
    ----------
    env
        A PettingZoo parallel environment in which all agents of the other teams have the same observation space, a Box,
        and the same action space.
    policy
        A `Policy`, or a function from observations (R, ...) to actions (R, ...). It is reset for all rows at the start
        of every episode. For Echelon's environments also an opponent's name or weights of several, with seed 0, see
        `echelon_env.opponents.make`; they need the flat observations and the continuous actions.
    team
        The name of the team (the part of its agents' names before the last underscore, ``"blue"`` for ``blue_0``), or
        a collection of its agents.

    Raises
    ------
    TypeError
        If `env` is not a `pettingzoo.ParallelEnv`, or if the policy is neither a `Policy` nor a function.
    ValueError
        For an unknown team or one of all agents, for an unknown opponent or one whose actions the environment does not
        take, and for unsupported spaces of the others.
        In `step` for actions of the policy with a wrong shape or type.
    """

    def __init__(self, env: Any, policy: PolicyLike, team: str | Collection[Any] = "blue") -> None:
        super().__init__(env)
        config, named = getattr(env.unwrapped, "config", None), None
        if isinstance(policy, (str, Mapping, Opponents)) and isinstance(config, BattleConfig):
            named, policy = policy, opponents.make(policy, 0, config)
        if not isinstance(policy, Policy) and not callable(policy):
            hint = ""
            if isinstance(policy, (str, Mapping, Opponents)):
                hint = "; names are opponents in Echelon's environments only"
            raise TypeError(f"policy: expected reset(mask) and act(observations), or a function, got {policy!r}{hint}")
        self._policy = policy if isinstance(policy, Policy) else FunctionPolicy(policy)
        self._mixture = policy if named is not None and isinstance(policy, opponents.Mixture) else None
        own = _agents_of(team, env.possible_agents)
        self.possible_agents = [agent for agent in env.possible_agents if agent in own]
        self._others = [agent for agent in env.possible_agents if agent not in own]
        if not self._others:
            raise ValueError(f"team: expected a part of the agents, {team!r} includes all of them")
        self.observation_spaces = {agent: env.observation_space(agent) for agent in self.possible_agents}
        self.action_spaces = {agent: env.action_space(agent) for agent in self.possible_agents}
        first = self._others[0]
        if named is not None and not isinstance(env.action_space(first), Box):
            raise ValueError(f"policy: the opponent {named!r} needs an environment with action='continuous'")
        observation_space, action_space = env.observation_space(first), env.action_space(first)
        if not isinstance(observation_space, Box):
            raise ValueError(f"observation space of {first!r}: expected a Box, got {kind_of(observation_space)}")
        self._policy_observation_space, self._policy_action_space = observation_space, action_space
        if action_space.shape is None or action_space.dtype is None:
            raise ValueError(f"action space of {first!r}: expected arrays or numbers as actions, got {action_space}")
        for agent in self._others:
            if env.observation_space(agent) != observation_space or env.action_space(agent) != action_space:
                raise ValueError(f"expected equal spaces for all agents of the policy, those of {agent!r} differ")
        self._observations = self._rows({})

    @property
    def agents(self) -> list[Any]:
        """The agents of the team that have not left."""
        return [agent for agent in getattr(self.env, "agents", []) if agent in self.possible_agents]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> ResetResult:
        """Start an episode; the arguments are passed to the environment.

        With a seed, opponents that were given by weights draw the same players again.
        """
        observations, infos = self.env.reset(seed=seed, options=options)
        everyone = np.ones(len(self._others), np.bool_)
        self._policy.reset(everyone)
        if seed is not None and self._mixture is not None:
            self._mixture.restart(everyone)
        self._observations = self._rows(observations)
        return self._own(observations), self._own(infos)

    def step(self, actions: Mapping[Any, Any]) -> StepResult:
        """Take a step with one action for every agent in `agents`.

        Raises ResetNeeded before `reset` and after the end of the episode. Raises ValueError for an action of an agent
        that is not present.
        """
        own = self.agents
        if not own:
            raise ResetNeeded("step() needs an episode in progress: call reset() first")
        check_agents(actions, own)
        observations, *results = self.env.step({**actions, **self._policy_actions()})
        self._observations = self._rows(observations)
        rewards, terminations, truncations, infos = map(self._own, results)
        return self._own(observations), rewards, terminations, truncations, infos

    def _own(self, values: Mapping[Any, Any]) -> dict[Any, Any]:
        return {agent: value for agent, value in values.items() if agent not in self._others}

    def _rows(self, observations: Mapping[Any, Any]) -> NDArray[Any]:
        space = self._policy_observation_space
        rows = np.zeros((len(self._others), *space.shape), space.dtype)
        for row, agent in enumerate(self._others):
            if agent in observations and agent in self.env.agents:
                rows[row] = observations[agent]
        return rows

    def _policy_actions(self) -> dict[Any, Any]:
        present = [row for row, agent in enumerate(self._others) if agent in self.env.agents]
        if not present:
            return {}
        actions = np.asarray(self._policy.act(self._observations))
        space = self._policy_action_space
        expected = (len(self._others), *space.shape)
        if actions.shape != expected or not np.can_cast(actions.dtype, space.dtype, "same_kind"):
            raise ValueError(
                f"actions of the policy: expected shape {expected} of {space.dtype}, got {actions.shape} of "
                f"{actions.dtype}"
            )
        actions = actions.astype(space.dtype)
        return {self._others[row]: actions[row] for row in present}


def _agents_of(team: str | Collection[Any], agents: Collection[Any]) -> set[Any]:
    """The agents of a team, given by its name or as a collection."""
    if isinstance(team, str):
        teams: dict[str, set[Any]] = {}
        for agent in agents:
            teams.setdefault(str(agent).rpartition("_")[0] or str(agent), set()).add(agent)
        if team not in teams:
            raise ValueError(f"unknown team {team!r}{nearest_name(team, teams)}")
        return teams[team]
    unknown = [agent for agent in team if agent not in agents]
    if unknown or not team:
        raise ValueError(f"team: expected agents among {list(agents)}, got {unknown or 'none'}")
    return set(team)
