"""Checks of PettingZoo's parallel environments."""

from __future__ import annotations

import contextlib
import copy
import pickle
import warnings
from collections.abc import Callable, Collection
from typing import Any

from echelon_env.testing.comparison import find_difference
from echelon_env.testing.conformance import ConformanceError, ConformanceWarning, raising
from echelon_env.testing.parallel_rules import Agent, ParallelRules, Reply, compare, reset, step
from echelon_env.testing.sampling import ActionSampler, make_two, overwrite, sample_action

Episode = list[dict[Agent, Any]]
"""The actions of an episode, step by step."""

COPIERS: dict[str, Callable[[Any], Any]] = {
    "deepcopy": copy.deepcopy,
    "pickle": lambda env: pickle.loads(pickle.dumps(env)),
}


def check_parallel_env(
    make_env: Callable[[], Any],
    *,
    seed: int = 0,
    episodes: int = 2,
    max_steps: int = 1000,
    actions: ActionSampler = sample_action,
    ignored_infos: Collection[str] = (),
    copies: Collection[str] = ("deepcopy", "pickle"),
    seed_matters: bool = True,
) -> None:
    """Check a PettingZoo parallel environment over complete episodes.

    `CHECKS` lists the checks. Behaviour that PettingZoo leaves undefined gives a ConformanceWarning: an agent with both
    flags, an agent that is truncated while others continue, observations that share memory, no `possible_agents`, an
    episode that does not end.

    Parameters
    ----------
    make_env
        A function that makes a new environment. It is called several times; all environments are closed.
    seed
        Seed of the first episode and of the actions.
    episodes
        Number of consecutive episodes, at least 2. Those after the first start without a seed.
    max_steps
        Number of steps after which an episode is interrupted.
    actions
        A function ``actions(agent, space, observation, info)`` that chooses an action. By default uniformly random,
        within the action mask if there is one.
    ignored_infos
        Keys of infos, at any depth, that are not checked, for values that differ between runs, such as timings, or that
        cannot be copied or compared.
    copies
        Ways of copying that the environment supports: ``"deepcopy"``, ``"pickle"``.
    seed_matters
        Whether another seed, and the next episode, must give different results. False for deterministic games.

    Raises
    ------
    ConformanceError
        For the first violated rule.
    ValueError
        For fewer than two episodes, no step, an unknown way of copying, or a `make_env` that returns the same object
        twice.
    TypeError
        For a `make_env` that is not callable.
    """
    unknown = [name for name in copies if name not in COPIERS]
    if unknown:
        raise ValueError(f"copies: expected names among {list(COPIERS)}, got {unknown}")
    if episodes < 2 or max_steps < 1:
        raise ValueError(f"expected at least 2 episodes and 1 step, got {episodes} and {max_steps}")
    run = _ParallelCheck(make_env, seed, max_steps, actions, tuple(ignored_infos))
    try:
        plan = run.record(episodes)
        run.check_used(plan)
        run.check_unfinished(plan)
        run.check_isolation(plan)
        for name in copies:
            run.check_copy(name, plan[0])
        if seed_matters:
            run.check_chance(plan[0])
        run.check_close()
    finally:
        run.abandon()


class _ParallelCheck:
    """An environment under test and a reference environment (twin) that is used normally."""

    def __init__(
        self,
        make_env: Callable[[], Any],
        seed: int,
        max_steps: int,
        actions: ActionSampler,
        ignored: tuple[str, ...],
    ) -> None:
        self._make_env, self._seed, self._max_steps = make_env, seed, max_steps
        self._choose, self._ignored = actions, ignored
        self._env, self._twin = make_two("make_env", make_env)
        self._rules = ParallelRules(self._env, ignored)
        self._samplers: dict[Agent, Any] = {}

    def record(self, episodes: int) -> list[Episode]:
        """Play episodes, check every call and compare it with the twin's. Returns the actions."""
        plan, ended = list[Episode](), False
        for k in range(episodes):
            where = f"episode {k}"
            arguments: dict[str, Any] = {"seed": self._seed, "options": {}} if k == 0 else {}
            reply = reset(self._env, f"{where}, reset", **arguments)
            plan.append([])
            if self._explore("seed", where, reply, self._reset(self._twin, k), plan[-1]):
                self._rules.check_end(f"{where}, step {len(plan[-1]) - 1}")
                ended = True
        if not ended:
            text = f"no episode ended within {self._max_steps} steps: the end was not checked"
            warnings.warn(text, ConformanceWarning, stacklevel=3)
        return plan

    def check_used(self, plan: list[Episode]) -> None:
        """Check that a used environment, seeded again, behaves like a new one."""
        self._renew_twin()
        self._replay("seed", "used environment", plan)

    def check_unfinished(self, plan: list[Episode]) -> None:
        """Check that a reset during an episode, with and without a seed, starts a new episode."""
        episode, check = plan[0], "unfinished"
        middle, late = len(episode) // 2, len(episode) - 1
        self._renew_twin()
        self._play(self._env, episode[:middle])
        self._replay(check, f"episode broken off after {middle} steps, reset(seed={self._seed})", plan[:1])
        where = f"episode broken off after {late} steps, reset()"
        for env in (self._env, self._twin):
            self._play(env, episode[:late])
        reply, expected = (reset(env, where, check) for env in (self._env, self._twin))
        left = [agent for agent in episode[0] if agent not in episode[late]]
        # not checked for games whose agents differ between episodes
        same_agents = all(other[0].keys() == episode[0].keys() for other in plan)
        if same_agents and left and not any(agent in reply["agents"] for agent in left):
            raise ConformanceError(check, where, f"{left} to be present again", f"agents {reply['agents']}")
        self._explore(check, where, reply, expected, [])

    def check_isolation(self, plan: list[Episode]) -> None:
        """Check that overwriting actions and results, and rendering, do not affect the environment."""
        first = plan[:1]
        self._replay("actions_kept", "actions overwritten", first, lambda actions, _: overwrite(actions))
        self._replay("results_kept", "results overwritten", first, lambda _, reply: overwrite(reply))
        if getattr(self._env, "render_mode", None) not in (None, "human"):
            self._replay("render", "rendered", first, lambda *_: self._env.render())

    def check_copy(self, name: str, episode: Episode) -> None:
        """Copy the environment during an episode, then step copy, original and twin to the end."""
        middle, env = len(episode) // 2, self._env
        for each in (env, self._twin):
            self._play(each, episode[:middle])
        with raising(name, f"episode 0, after step {middle - 1}", "the environment to be copied"):
            twin_copy = COPIERS[name](env)
        for t in range(middle, len(episode)):
            where = f"{name} made before step {middle}, step {t}"
            expected = step(self._twin, where, copy.deepcopy(episode[t]))
            for each, who in ((twin_copy, "the copy"), (env, "the original")):
                reply = step(each, f"{where}, {who}", copy.deepcopy(episode[t]), name)
                compare(name, f"{where}, {who}", expected, reply, self._ignored)
        where = f"{name} closed, next reset of the original"
        with raising(name, f"{name} closed", "no exception"):
            twin_copy.close()
        compare(name, where, self._reset(self._twin, 1), reset(env, where, name), self._ignored)

    def check_chance(self, episode: Episode) -> None:
        """Check that another seed, and the next episode, differ from the first episode."""
        reply = reset(self._env, "reset with another seed", seed=self._seed + 1)
        if not self._differ(reply, episode):
            where = f"seeds {self._seed} and {self._seed + 1}"
            raise ConformanceError("other_seed", where, "a difference somewhere in an episode", "none")
        self._play(self._env, episode)  # a game may draw nothing before its first step
        if not self._differ(self._reset(self._env, 1), episode):
            where = f"reset(seed={self._seed}), an episode, reset()"
            raise ConformanceError("next_episode", where, "another episode", "the same one again")

    def check_close(self) -> None:
        """Check that `close` may be called before the first reset, and twice."""
        for env, where in ((self._make_env(), "before a reset"), (self._env, "first call"), (self._env, "second call")):
            with raising("close", where, "no exception"):
                env.close()

    def abandon(self) -> None:
        """Close both environments in any state."""
        for env in (self._env, self._twin):
            with contextlib.suppress(Exception):
                env.close()

    def _reset(self, env: Any, episode: int, check: str | None = None) -> Reply:
        return reset(env, f"episode {episode}, reset", check, **({"seed": self._seed} if episode == 0 else {}))

    def _play(self, env: Any, actions: Episode) -> None:
        """Reset with the seed and take the steps."""
        self._reset(env, 0)
        for t, given in enumerate(actions):
            step(env, f"episode 0, step {t}", copy.deepcopy(given))

    def _renew_twin(self) -> None:
        with raising("close", "used environment", "no exception"):
            self._twin.close()
        self._twin = self._make_env()

    def _explore(self, check: str, where: str, reply: Reply, expected: Reply, actions: Episode) -> bool:
        """Play an episode after a reset, check every call and compare it with the twin's. Appends to `actions`.

        Returns whether the episode ended.
        """
        self._rules.check_reset(f"{where}, reset", reply)
        compare(check, f"{where}, reset", expected, reply, self._ignored)
        while reply["agents"] and len(actions) < self._max_steps:
            at = f"{where}, step {len(actions)}"
            actions.append(self._sample(at, reply))
            reply = self._step_checked(at, actions[-1])
            compare(check, at, step(self._twin, at, copy.deepcopy(actions[-1]), check), reply, self._ignored)
        return not reply["agents"]

    def _sample(self, where: str, reply: Reply) -> dict[Agent, Any]:
        chosen = {}
        for agent in reply["agents"]:
            if agent not in self._samplers:
                self._samplers[agent] = copy.deepcopy(self._env.action_space(agent))
                self._samplers[agent].seed(self._seed + len(self._samplers))
            observation, info = reply["observations"][agent], reply["infos"][agent]
            try:
                chosen[agent] = self._choose(agent, self._samplers[agent], observation, info)
            except ConformanceError as error:
                raise error.within(f"{where}, agent {agent!r}") from error
        return chosen

    def _step_checked(self, where: str, actions: dict[Agent, Any]) -> Reply:
        given = copy.deepcopy(actions)
        reply = step(self._env, where, given)
        changed = find_difference(actions, given, path="actions")
        if changed:
            path, before, after = changed
            raise ConformanceError("actions_written", f"{where}, {path}", f"to stay {before}", after)
        self._rules.check_step(where, reply)
        return reply

    def _replay(
        self,
        check: str,
        how: str,
        plan: list[Episode],
        disturb: Callable[[dict[Agent, Any], Reply], object] | None = None,
    ) -> None:
        """Step the environment and its twin through a plan. Call `disturb` after every call of the environment."""
        for k, episode in enumerate(plan):
            for t, actions in enumerate([{}, *episode]):
                where = f"{how}, episode {k}, " + (f"step {t - 1}" if t else "reset")
                given = copy.deepcopy(actions)
                reply = step(self._env, where, given, check) if t else self._reset(self._env, k, check)
                twin = self._twin
                expected = step(twin, where, copy.deepcopy(actions)) if t else self._reset(twin, k)
                compare(check, where, expected, reply, self._ignored)
                if disturb:
                    with raising(check, where, "no exception"):
                        disturb(given, reply)

    def _differ(self, reply: Reply, episode: Episode) -> bool:
        """Whether the environment, after a reset, differs from the twin in the first episode."""
        expected = self._reset(self._twin, 0)
        for t, actions in enumerate(episode):
            if _is_different(expected, reply):
                return True
            expected = step(self._twin, f"step {t}", copy.deepcopy(actions))
            try:
                reply = step(self._env, f"step {t}", copy.deepcopy(actions))
            except ConformanceError:  # the action is possible in the twin's episode only
                return True
        return _is_different(expected, reply)


def _is_different(expected: Reply, got: Reply) -> bool:
    # infos are ignored because they may contain the seed
    return any(find_difference(expected[name], got[name]) for name in expected if name != "infos")
