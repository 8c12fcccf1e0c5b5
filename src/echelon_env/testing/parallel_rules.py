"""The rules of PettingZoo's parallel interface, checked call by call."""

from __future__ import annotations

import copy
import numbers
import warnings
from collections.abc import Collection, Hashable
from typing import Any

import numpy as np

from echelon_env.testing.comparison import AliasGuard, find_difference
from echelon_env.testing.conformance import ConformanceError, ConformanceWarning, brief, raising
from echelon_env.testing.membership import find_mismatch

Agent = Hashable
Reply = dict[str, Any]
"""What a call returned: ``observations``, ``infos``, after a step ``rewards``, ``terminations`` and ``truncations``;
with ``agents`` and, where there is a state space, ``state``."""

STEP_PARTS = ("observations", "rewards", "terminations", "truncations", "infos")


def reset(env: Any, where: str, check: str | None = None, **arguments: Any) -> Reply:
    """Call ``env.reset``; raises ConformanceError for anything but two dicts; an exception is blamed on `check`."""
    given = ", ".join(f"{name}={value}" for name, value in arguments.items())
    with raising(check or "reset", where, f"reset({given}) to be accepted"):
        returned = env.reset(**arguments)
    return _reply(env, "reset", where, ("observations", "infos"), returned, check)


def step(env: Any, where: str, actions: dict[Agent, Any], check: str | None = None) -> Reply:
    """Call ``env.step``; raises ConformanceError for anything but five dicts; an exception is blamed on `check`."""
    with raising(check or "step", where, "the step to be taken"):
        returned = env.step(actions)
    return _reply(env, "step", where, STEP_PARTS, returned, check)


def _reply(env: Any, method: str, where: str, names: tuple[str, ...], returned: Any, check: str | None) -> Reply:
    if not isinstance(returned, tuple) or len(returned) != len(names):
        kind = f"{type(returned).__name__} {brief(returned)}"
        raise ConformanceError(method, where, f"a tuple of {len(names)}: {', '.join(names)}", kind)
    for name, part in zip(names, returned, strict=True):
        if not isinstance(part, dict):
            came = f"{type(part).__name__} {brief(part)}"
            raise ConformanceError(method, f"{where}, {name}", "a dict by agent", came)
    with raising(check or "agents", where, "a list of agents"):
        reply = dict(zip(names, returned, strict=True)) | {"agents": copy.copy(env.agents)}
    with raising(check or "state", where, "a state, as there is a state_space"):
        if getattr(env, "state_space", None) is not None:
            reply["state"] = env.state()
    return reply


class ParallelRules:
    """Watches one environment, call by call, and raises ConformanceError where a rule is broken."""

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

    def check_reset(self, where: str, reply: Reply) -> None:
        """Check what `reset` returned."""
        self._gone = set()
        self._check_agents(where, reply["agents"])
        for (kind, agent), (space, then) in self._spaces.items():
            if space != then:
                raise ConformanceError("spaces", f"{where}, {kind}({agent!r})", f"to stay {brief(then)}", brief(space))
        if not reply["agents"]:
            raise ConformanceError("agents", where, "agents after a reset", "none")
        for name in ("observations", "infos"):
            self._check_keys(where, name, reply[name], reply["agents"], reply["agents"])
        self._check_values(where, reply)
        self._present = list(reply["agents"])

    def check_step(self, where: str, reply: Reply) -> None:
        """Check what `step` returned, and who is left."""
        self._check_agents(where, reply["agents"])
        born = [agent for agent in reply["agents"] if agent not in self._present]
        for name in STEP_PARTS:
            needed = [*self._present, *born] if name in ("observations", "infos") else self._present
            self._check_keys(where, name, reply[name], needed, [*self._present, *born])
        self._check_flags(where, reply)
        self._check_departures(where, reply)
        self._check_rewards(where, reply)
        self._check_values(where, reply)
        self._present = list(reply["agents"])

    def check_end(self, where: str) -> None:
        """Check that the empty environment stays empty, and that a further step raises or returns nothing."""
        try:
            returned = self._env.step({})
        except Exception:  # any exception is accepted
            returned = None
        if any(returned or ()) or self._env.agents:
            came = f"{brief(returned)}, agents {brief(self._env.agents)}"
            raise ConformanceError("end", f"{where}, a step after the end", "an exception or empty dicts", came)

    def _check_agents(self, where: str, agents: Any) -> None:
        if not isinstance(agents, list) or len(set(agents)) != len(agents):
            raise ConformanceError("agents", where, "agents to be a list naming each once", brief(agents))
        possible = getattr(self._env, "possible_agents", None)
        if possible != self._possible:
            raise ConformanceError("agents", where, f"possible_agents to stay {self._possible}", f"{possible}")
        unknown = [agent for agent in agents if self._possible is not None and agent not in self._possible]
        if unknown:
            raise ConformanceError("agents", where, f"agents among possible_agents {self._possible}", f"{unknown}")
        revived = [agent for agent in agents if agent in self._gone]
        if revived:
            raise ConformanceError("agents", where, "agents that have left not to come back", f"{revived} in agents")

    def _check_keys(
        self, where: str, name: str, part: dict[Agent, Any], needed: list[Agent], allowed: list[Agent]
    ) -> None:
        missing = [agent for agent in needed if agent not in part]
        if missing:
            raise ConformanceError("keys", f"{where}, {name}", f"a key for each of {needed}", f"none for {missing}")
        # PettingZoo lets observations and infos hold more than agents, such as "common"
        more = name in ("observations", "infos")
        known = self._gone if self._possible is None else self._possible
        extra = [key for key in part if key not in allowed and (not more or key in known)]
        if extra:
            raise ConformanceError("keys", f"{where}, {name}", f"keys among {allowed}", f"{extra} too")

    def _check_flags(self, where: str, reply: Reply) -> None:
        for name in ("terminations", "truncations"):
            for agent, flag in reply[name].items():
                if not isinstance(flag, (bool, np.bool_)):
                    came = f"{type(flag).__name__} {brief(flag)}"
                    raise ConformanceError("flags", f"{where}, {name}, agent {agent!r}", "a bool", came)

    def _check_departures(self, where: str, reply: Reply) -> None:
        terminated = [agent for agent in self._present if reply["terminations"][agent]]
        truncated = [agent for agent in self._present if reply["truncations"][agent]]
        for check, ended in (("termination", terminated), ("truncation", truncated)):
            for agent in ended:
                if agent in reply["agents"]:
                    came = f"agents {reply['agents']}"
                    raise ConformanceError(check, f"{where}, agent {agent!r}", "it to leave with its end", came)
        self._gone.update(terminated, truncated)
        vanished = [agent for agent in self._present if agent not in self._gone and agent not in reply["agents"]]
        if vanished:
            raise ConformanceError("agents", where, f"{vanished} to stay, having no flag", f"agents {reply['agents']}")
        both = [agent for agent in terminated if agent in truncated]
        if both:
            self._warn("both flags", f"{where}: {both} terminated and truncated at once")
        if truncated and reply["agents"]:
            self._warn("some truncated", f"{where}: {truncated} truncated while {reply['agents']} continue")

    def _check_rewards(self, where: str, reply: Reply) -> None:
        for agent, reward in reply["rewards"].items():
            real = isinstance(reward, numbers.Real) and not isinstance(reward, bool)
            if not real or not np.isfinite(float(reward)):
                came = f"{type(reward).__name__} {brief(reward)}"
                raise ConformanceError("rewards", f"{where}, agent {agent!r}", "a finite real number", came)

    def _check_values(self, where: str, reply: Reply) -> None:
        """Check observations, infos and state, and that they and all else that was returned is fresh."""
        agents = self._env.possible_agents if self._possible is not None else [*self._present, *reply["agents"]]
        for agent in agents:
            for kind in ("observation_space", "action_space"):
                self._check_space(where, kind, agent)
        for agent in [key for key in reply["observations"] if ("observation_space", key) in self._spaces]:
            mismatch = find_mismatch(self._spaces["observation_space", agent][0], reply["observations"][agent])
            if mismatch:
                path, expected, came = mismatch
                raise ConformanceError("observations", f"{where}, agent {agent!r}, observation{path}", expected, came)
        for agent, info in reply["infos"].items():
            if not isinstance(info, dict):
                came = f"{type(info).__name__} {brief(info)}"
                raise ConformanceError("infos", f"{where}, agent {agent!r}", "a dict", came)
        if "state" in reply:
            mismatch = find_mismatch(self._env.state_space, reply["state"])
            if mismatch:
                path, expected, came = mismatch
                raise ConformanceError("state", f"{where}, state{path}", expected, came)
        self._guard.admit(where, {name: part for name, part in reply.items() if name != "agents"})

    def _check_space(self, where: str, kind: str, agent: Agent) -> None:
        with raising("spaces", f"{where}, {kind}({agent!r})", "a space"):
            space = getattr(self._env, kind)(agent)
        if (kind, agent) not in self._spaces:
            self._spaces[kind, agent] = space, copy.deepcopy(space)
        if space is not self._spaces[kind, agent][0]:
            came = f"another one, {brief(space)}"
            raise ConformanceError("spaces", f"{where}, {kind}({agent!r})", "the same object on every call", came)

    def _warn(self, kind: str, text: str) -> None:
        if kind not in self._warned:
            self._warned.add(kind)
            warnings.warn(text, ConformanceWarning, stacklevel=2)


def compare(check: str, where: str, expected: Reply, got: Reply, ignored: Collection[str]) -> None:
    """Compare two replies, types and all; raises ConformanceError naming the first difference."""
    for name in expected:
        found = find_difference(expected[name], got.get(name), ignored=ignored if name == "infos" else (), path=name)
        if found:
            path, first, second = found
            raise ConformanceError(check, f"{where}, {path}", first, second)
