"""The rules of PettingZoo's parallel API, checked call by call."""

from __future__ import annotations

import copy
import numbers
import warnings
from collections.abc import Collection, Hashable
from typing import Any

import numpy as np

from echelon_env.testing.comparison import AliasGuard, find_difference
from echelon_env.testing.conformance import (
    ConformanceError,
    ConformanceWarning,
    brief,
    demand_none,
    raising,
    with_type,
)
from echelon_env.testing.membership import find_mismatch

Agent = Hashable
Reply = dict[str, Any]
"""The result of a call by name: ``observations``, ``infos``, after a step also ``rewards``, ``terminations`` and
``truncations``; in addition ``agents`` and, if there is a state space, ``state``."""

STEP_PARTS = ("observations", "rewards", "terminations", "truncations", "infos")


def reset(env: Any, where: str, check: str | None = None, **arguments: Any) -> Reply:
    """Call ``env.reset``. Raises ConformanceError for an exception (of the given check) or anything but two dicts."""
    given = ", ".join(f"{name}={value}" for name, value in arguments.items())
    with raising(check or "reset", where, f"reset({given}) to be accepted"):
        returned = env.reset(**arguments)
    return _reply(env, "reset", where, ("observations", "infos"), returned, check)


def step(env: Any, where: str, actions: dict[Agent, Any], check: str | None = None) -> Reply:
    """Call ``env.step``. Raises ConformanceError for an exception (of the given check) or anything but five dicts."""
    with raising(check or "step", where, "the step to be taken"):
        returned = env.step(actions)
    return _reply(env, "step", where, STEP_PARTS, returned, check)


def _reply(env: Any, method: str, where: str, names: tuple[str, ...], returned: Any, check: str | None) -> Reply:
    if not isinstance(returned, tuple) or len(returned) != len(names):
        raise ConformanceError(method, where, f"a tuple of {len(names)}: {', '.join(names)}", with_type(returned))
    for name, part in zip(names, returned, strict=True):
        if not isinstance(part, dict):
            raise ConformanceError(method, f"{where}, {name}", "a dict by agent", with_type(part))
    with raising(check or "agents", where, "a list of agents"):
        reply = dict(zip(names, returned, strict=True)) | {"agents": copy.copy(env.agents)}
    with raising(check or "state", where, "a state, as there is a state_space"):
        if getattr(env, "state_space", None) is not None:
            reply["state"] = env.state()
    return reply


class ParallelRules:
    """Checks the calls of one environment. Raises ConformanceError for a violated rule."""

    def __init__(self, env: Any, ignored: Collection[str]) -> None:
        self._env = env
        self._guard = AliasGuard(ignored)
        self._present: list[Agent] = []
        self._gone: set[Agent] = set()
        self._spaces: dict[tuple[str, Agent], tuple[Any, Any]] = {}
        self._possible = copy.copy(getattr(env, "possible_agents", None))
        self._warned: set[str] = set()
        if self._possible is None:
            self._warn("agents", "the environment has no possible_agents")

    def check_reset(self, where: str, reply: Reply) -> Reply:
        """Check the result of `reset`, and return a copy of it."""
        self._gone = set()
        self._check_agents(where, reply["agents"])
        for (kind, agent), (space, copied) in self._spaces.items():
            if space != copied:
                expected = f"to stay {brief(copied)}"
                raise ConformanceError("spaces", f"{where}, {kind}({agent!r})", expected, brief(space))
        if not reply["agents"]:
            raise ConformanceError("agents", where, "agents after a reset", "none")
        for name in ("observations", "infos"):
            self._check_keys(where, name, reply[name], reply["agents"], reply["agents"])
        return self._check_values(where, reply)

    def check_step(self, where: str, reply: Reply) -> Reply:
        """Check the result of `step`, and the remaining agents. Returns a copy of it."""
        self._check_agents(where, reply["agents"])
        joined = [agent for agent in reply["agents"] if agent not in self._present]
        for name in STEP_PARTS:
            needed = [*self._present, *joined] if name in ("observations", "infos") else self._present
            self._check_keys(where, name, reply[name], needed, [*self._present, *joined])
        self._check_flags(where, reply)
        self._check_departures(where, reply)
        self._check_rewards(where, reply)
        return self._check_values(where, reply)

    def check_end(self, where: str) -> None:
        """Check that no agent appears after the end, and that a further step raises or returns nothing."""
        try:
            returned = self._env.step({})
        except Exception:  # any exception is accepted
            returned = None
        if any(returned or ()) or self._env.agents:
            got = f"{brief(returned)}, agents {brief(self._env.agents)}"
            raise ConformanceError("end", f"{where}, a step after the end", "an exception or empty dicts", got)

    def _check_agents(self, where: str, agents: Any) -> None:
        if not isinstance(agents, list) or len(set(agents)) != len(agents):
            raise ConformanceError("agents", where, "agents to be a list without duplicates", brief(agents))
        possible = getattr(self._env, "possible_agents", None)
        if possible != self._possible:
            raise ConformanceError("agents", where, f"possible_agents to stay {self._possible}", f"{possible}")
        unknown = [agent for agent in agents if self._possible is not None and agent not in self._possible]
        if unknown:
            raise ConformanceError("agents", where, f"agents among possible_agents {self._possible}", f"{unknown}")
        returned = [agent for agent in agents if agent in self._gone]
        if returned:
            raise ConformanceError("agents", where, "agents that have left not to return", f"{returned} in agents")

    def _check_keys(
        self, where: str, name: str, part: dict[Agent, Any], needed: list[Agent], allowed: list[Agent]
    ) -> None:
        missing = [agent for agent in needed if agent not in part]
        if missing:
            raise ConformanceError("keys", f"{where}, {name}", f"a key for each of {needed}", f"none for {missing}")
        # PettingZoo allows further keys in observations and infos, such as "common"
        open_ended = name in ("observations", "infos")
        known = self._gone if self._possible is None else self._possible
        extra = [key for key in part if key not in allowed and (not open_ended or key in known)]
        if extra:
            raise ConformanceError("keys", f"{where}, {name}", f"keys among {allowed}", f"also {extra}")

    def _check_flags(self, where: str, reply: Reply) -> None:
        for name in ("terminations", "truncations"):
            for agent, flag in reply[name].items():
                if not isinstance(flag, (bool, np.bool_)):
                    raise ConformanceError("flags", f"{where}, {name}, agent {agent!r}", "a bool", with_type(flag))

    def _check_departures(self, where: str, reply: Reply) -> None:
        terminated = [agent for agent in self._present if reply["terminations"][agent]]
        truncated = [agent for agent in self._present if reply["truncations"][agent]]
        for check, ended in (("termination", terminated), ("truncation", truncated)):
            for agent in ended:
                if agent in reply["agents"]:
                    got = f"agents {reply['agents']}"
                    raise ConformanceError(check, f"{where}, agent {agent!r}", "it to leave with its flag", got)
        self._gone.update(terminated, truncated)
        vanished = [agent for agent in self._present if agent not in self._gone and agent not in reply["agents"]]
        if vanished:
            raise ConformanceError("agents", where, f"{vanished} to stay without a flag", f"agents {reply['agents']}")
        both = [agent for agent in terminated if agent in truncated]
        if both:
            self._warn("both flags", f"{where}: {both} terminated and truncated at once")
        if truncated and reply["agents"]:
            self._warn("some truncated", f"{where}: {truncated} truncated while {reply['agents']} continue")

    def _check_rewards(self, where: str, reply: Reply) -> None:
        for agent, reward in reply["rewards"].items():
            real = isinstance(reward, numbers.Real) and not isinstance(reward, bool)
            if not real or not np.isfinite(float(reward)):
                place = f"{where}, agent {agent!r}"
                raise ConformanceError("rewards", place, "a finite real number", with_type(reward))

    def _check_values(self, where: str, reply: Reply) -> Reply:
        """Check observations, infos and state, and that all returned values use new memory."""
        agents = self._env.possible_agents if self._possible is not None else [*self._present, *reply["agents"]]
        for agent in agents:
            for kind in ("observation_space", "action_space"):
                self._check_space(where, kind, agent)
        for agent in [key for key in reply["observations"] if ("observation_space", key) in self._spaces]:
            space, observation = self._spaces["observation_space", agent][0], reply["observations"][agent]
            mismatch = find_mismatch(space, observation, "observation")
            demand_none("observations", f"{where}, agent {agent!r}", mismatch)
        for agent, info in reply["infos"].items():
            if not isinstance(info, dict):
                raise ConformanceError("infos", f"{where}, agent {agent!r}", "a dict", with_type(info))
        if "state" in reply:
            demand_none("state", where, find_mismatch(self._env.state_space, reply["state"], "state"))
        self._present = list(reply["agents"])
        copies = self._guard.add(where, {name: part for name, part in reply.items() if name != "agents"})
        return copies | {"agents": self._present}

    def _check_space(self, where: str, kind: str, agent: Agent) -> None:
        with raising("spaces", f"{where}, {kind}({agent!r})", "a space"):
            space = getattr(self._env, kind)(agent)
        if (kind, agent) not in self._spaces:
            self._spaces[kind, agent] = space, copy.deepcopy(space)
        if space is not self._spaces[kind, agent][0]:
            got = f"another one, {brief(space)}"
            raise ConformanceError("spaces", f"{where}, {kind}({agent!r})", "the same object on every call", got)

    def _warn(self, kind: str, text: str) -> None:
        if kind not in self._warned:
            self._warned.add(kind)
            warnings.warn(text, ConformanceWarning, stacklevel=2)


def compare(check: str, where: str, expected: Reply, got: Reply, ignored: Collection[str]) -> None:
    """Compare two replies including types. Raises ConformanceError with the first difference."""
    for name in expected:
        found = find_difference(expected[name], got.get(name), ignored=ignored if name == "infos" else (), path=name)
        demand_none(check, where, found)
