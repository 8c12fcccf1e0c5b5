"""A wrapper for code that needs the same agents in every step, although agents die."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from gymnasium.error import ResetNeeded
from gymnasium.wrappers.utils import create_zero_array

from echelon_env.spaces.agent import check_agents
from echelon_env.wrappers.base import ParallelWrapper, ResetResult, StepResult


class BlackDeath(ParallelWrapper):
    """Keeps all `possible_agents` until the episode ends. Agents that have left observe zeros and get reward 0.

    From the step in which it leaves, an agent observes zeros and is neither terminated nor truncated. The reward and
    info of that step are those of the environment. Later rewards are 0, later infos are empty, and its actions are
    ignored. When the last agent leaves, the episode ends for all agents, each with the flag with which it left. Agents
    that leave in this last step keep their real observations. An agent that is absent at the start of an episode counts
    as terminated. Every info has the key ``alive``. It is False if the agent observes zeros. Otherwise it is the
    environment's value or, without one, True unless the agent was terminated.

    Zeros are the values in the space that are closest to 0. An action mask of zeros allows no choice.

    Parameters
    ----------
    env
        A PettingZoo parallel environment. For Echelon's environments use ``dead_agents="persist"`` instead, which also
        keeps the later rewards of dead mechs.

    Raises
    ------
    TypeError
        If `env` is not a `pettingzoo.ParallelEnv`.
    """

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self.agents: list[Any] = []
        self._ends: dict[Any, tuple[bool, bool]] = {}

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> ResetResult:
        """Start an episode; the arguments are passed to the environment."""
        observations, infos = self.env.reset(seed=seed, options=options)
        self.agents = self.env.possible_agents[:]
        self._ends = dict.fromkeys(self.agents, (True, False))
        return self._observations(observations, self.env.agents), self._infos(infos, self.env.agents, {})

    def step(self, actions: Mapping[Any, Any]) -> StepResult:
        """Take a step with actions for the agents that have not left. Actions of other agents are ignored.

        Raises ResetNeeded before `reset` and after the end of the episode. Raises ValueError for an action of an
        unknown agent.
        """
        if not self.agents:
            raise ResetNeeded("step() needs an episode in progress: call reset() first")
        check_agents(actions, self.agents)
        present = self.env.agents[:]
        observations, rewards, terminations, truncations, infos = self.env.step(
            {agent: action for agent, action in actions.items() if agent in present}
        )
        agents, over = self.agents, not self.env.agents
        self._ends |= {agent: (bool(terminations[agent]), bool(truncations[agent])) for agent in present}
        ends = self._ends if over else dict.fromkeys(agents, (False, False))
        shown = present if over else self.env.agents
        results = (
            self._observations(observations, shown),
            {agent: rewards[agent] if agent in present else 0.0 for agent in agents},
            {agent: ends[agent][0] for agent in agents},
            {agent: ends[agent][1] for agent in agents},
            self._infos({agent: infos.get(agent, {}) for agent in present}, shown, terminations),
        )
        if over:
            self.agents = []
        return results

    def _observations(self, observations: Mapping[Any, Any], shown: Collection[Any]) -> dict[Any, Any]:
        return {
            agent: observations[agent] if agent in shown else create_zero_array(self.env.observation_space(agent))
            for agent in self.agents
        }

    def _infos(
        self, infos: Mapping[Any, Any], shown: Collection[Any], terminations: Mapping[Any, bool]
    ) -> dict[Any, dict[str, Any]]:
        return {
            agent: {"alive": not terminations.get(agent, False)} | infos.get(agent, {})
            if agent in shown
            else infos.get(agent, {}) | {"alive": False}
            for agent in self.agents
        }
