"""PettingZoo's AEC API: the mechs of the parallel environment, one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Unpack

import numpy as np
import pettingzoo
from gymnasium.spaces import Space
from numpy.typing import NDArray
from pettingzoo.utils.env_logger import EnvLogger

from echelon_env.config.scenario import ScenarioLike
from echelon_env.envs.parallel import Arguments, BattleParallelEnv
from echelon_env.layout.actions import ACTION_DIM
from echelon_env.spaces.agent import of_agent

_SINCE_RESET = frozenset(("agents", "agent_selection", "rewards", "terminations", "truncations", "infos", "num_agents"))


class BattleAECEnv(pettingzoo.AECEnv[str, Any, Any]):  # type: ignore[misc]  # PettingZoo is untyped
    """A parallel environment whose agents act one after the other; the battle moves on when the last one has acted.

    It behaves as `pettingzoo.utils.parallel_to_aec` does with an `OrderEnforcingWrapper`, and costs a third of that. An
    agent whose episode has ended comes once more, before all others, for the action None.

    ``unwrapped`` is the parallel environment, whose `explain_action`, `describe_observation`, `describe_action` and
    `action_masks` refer to the state after the last decision of all agents.

    Raises
    ------
    AttributeError
        If an attribute that `reset` sets, such as `agents`, is read before.
    AssertionError
        For a method that is called before `reset`, an action other than None of an agent whose episode has ended, and a
        loop over `agent_iter` that does not step.
    """

    def __init__(self, env: BattleParallelEnv) -> None:
        self.env = env
        self.metadata = dict(env.metadata)
        self.render_mode = env.render_mode
        self.possible_agents = env.possible_agents
        self.observation_spaces, self.action_spaces = env.observation_spaces, env.action_spaces
        self.state_space = env.state_space
        self._vector = (ACTION_DIM,) if env._spaces.action == "continuous" else None  # the shape of a usual action
        self._actions = np.zeros((len(env.possible_agents), ACTION_DIM), np.float32)  # of the decision, as vectors
        self._has_reset = self._has_stepped = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.env!r})"

    @property
    def unwrapped(self) -> BattleParallelEnv:
        """The parallel environment."""
        return self.env

    def observation_space(self, agent: str) -> Space[Any]:
        """The space of an agent's observations."""
        return self.env.observation_space(agent)

    def action_space(self, agent: str) -> Space[Any]:
        """The space of an agent's actions."""
        return self.env.action_space(agent)

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Start a battle, see `BattleParallelEnv.reset`."""
        self._observations, self.infos = self.env.reset(seed=seed, options=options)
        self.agents = self.env.agents[:]
        self.terminations, self.truncations = dict.fromkeys(self.agents, False), dict.fromkeys(self.agents, False)
        self.rewards: dict[str, float] = dict.fromkeys(self.agents, 0)
        self._cumulative_rewards: dict[str, float] = dict.fromkeys(self.agents, 0)
        self._skip_agent_selection = None
        self._has_reset = self._has_stepped = True
        self._begin_decision()

    def _begin_decision(self) -> None:
        """Let the agents that remain act in their order."""
        self._actions[:] = 0.0
        self._order, self._turn = self.env.agents, 0
        if self._order:
            self.agent_selection = self._order[0]

    def step(self, action: Any) -> None:
        """Take the action of the agent that is selected, and select the next one.

        Raises ValueError for an action that is not in the agent's space; it is then still that agent's turn.
        """
        if not self._has_reset:
            EnvLogger.error_step_before_reset()
        self._has_stepped = True
        if not self.agents:
            EnvLogger.warn_step_after_terminated_truncated()
            return
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            assert action is None, f"the episode of {agent!r} has ended: expected the action None, got {action!r}"
            self._was_dead_step(action)
            return
        if not (isinstance(action, np.ndarray) and action.dtype == np.float32 and action.shape == self._vector):
            action = self.env._spaces.read(action, what=f"action of {agent!r}")  # checked; this takes longer
        self._actions[self.env._row[agent]] = action
        if self._turn + 1 == len(self._order):
            self._decide()
            return
        if self._turn == 0:
            self._clear_rewards()
        self._turn += 1
        self.agent_selection = self._order[self._turn]

    def _decide(self) -> None:
        """Play the actions of all agents. Those whose episodes end come first in the next round."""
        self._observations, self.rewards, self.terminations, self.truncations, self.infos = self.env._take(
            self._actions[None]
        )
        self._cumulative_rewards = self.rewards.copy()
        ended = self.rewards.keys() - self.env.agents if len(self.env.agents) < len(self.rewards) else ()
        self.agents = self.env.agents + sorted(ended)
        self._begin_decision()
        if ended:
            self._deads_step_first()

    def observe(self, agent: str) -> Any:
        """What an agent has seen since the last decision. Raises ValueError for one that has left, or is unknown."""
        if not self._has_reset:
            EnvLogger.error_observe_before_reset()
        return of_agent(self._observations, agent)

    def last(self, observe: bool = True) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Observation, reward of the last decision, terminated, truncated and info of the agent that is selected."""
        agent = self.agent_selection
        observation = self._observations[agent] if observe else None
        reward = self._cumulative_rewards[agent]
        return observation, reward, self.terminations[agent], self.truncations[agent], self.infos[agent]

    def agent_iter(self, max_iter: int = 2**63) -> Iterator[str]:
        """The agents in the order in which they act, at most `max_iter`; the loop must step after each."""
        if not self._has_reset:
            EnvLogger.error_agent_iter_before_reset()
        return self._selections(max_iter)

    def _selections(self, left: int) -> Iterator[str]:
        while self.agents and left > 0:
            assert self._has_stepped, "need to call step() or reset() in a loop over `agent_iter`"
            self._has_stepped = False
            left -= 1
            yield self.agent_selection

    def state(self) -> NDArray[Any]:
        """The global state, see `BattleParallelEnv.state`."""
        if not self._has_reset:
            EnvLogger.error_state_before_reset()
        return self.env.state()

    def render(self) -> Any:
        """Render the battle, see `BattleParallelEnv.render`."""
        if not self._has_reset:
            EnvLogger.error_render_before_reset()
        return self.env.render()

    def close(self) -> None:
        """Close the window, if there is one."""
        self.env.close()

    def __getattr__(self, name: str) -> Any:
        if name in _SINCE_RESET:
            raise AttributeError(f"{name} cannot be accessed before reset")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def env(scenario: ScenarioLike = "battle", **kwargs: Unpack[Arguments]) -> BattleAECEnv:
    """Make PettingZoo's AEC environment of a battle. The parameters are those of `BattleParallelEnv`."""
    return BattleAECEnv(BattleParallelEnv(scenario, **kwargs))
