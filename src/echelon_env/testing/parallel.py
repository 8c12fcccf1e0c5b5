"""Checks of PettingZoo's parallel environments."""

from __future__ import annotations

import contextlib
import copy
import pickle
import warnings
from collections.abc import Callable, Collection
from typing import Any

from echelon_env.testing.comparison import find_difference
from echelon_env.testing.conformance import ConformanceError, ConformanceWarning, demand_none, raising
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
        run.check_close(make_env())
    finally:
        run.abandon()


class _ParallelCheck:
    """An environment under test, whose episodes are recorded, and a second one (twin)."""

    def __init__(
        self,
        make_env: Callable[[], Any],
        seed: int,
        max_steps: int,
        actions: ActionSampler,
        ignored: tuple[str, ...],
    ) -> None:
        self._seed, self._max_steps = seed, max_steps
        self._choose, self._ignored = actions, ignored
        self._env, self._twin = make_two("make_env", make_env)
        self._rules = ParallelRules(self._env, ignored)
        self._samplers: dict[Agent, Any] = {}
        self._recorded: list[list[Reply]] = []

    def record(self, episodes: int) -> list[Episode]:
        """Play episodes and check every call. Keeps copies of the results, and returns the actions."""
        plan, ended = list[Episode](), False
        for k in range(episodes):
            where = f"episode {k}"
            arguments: dict[str, Any] = {"seed": self._seed, "options": {}} if k == 0 else {}
            actions, replies = self._explore(where, reset(self._env, f"{where}, reset", **arguments))
            plan.append(actions)
            self._recorded.append(replies)
            if not replies[-1]["agents"]:
                self._rules.check_end(f"{where}, step {len(actions) - 1}")
                ended = True
        if not ended:
            text = f"no episode ended within {self._max_steps} steps: the end was not checked"
            warnings.warn(text, ConformanceWarning, stacklevel=3)
        return plan

    def check_used(self, plan: list[Episode]) -> None:
        """Check that a new environment, and the used one seeded again, repeat the episodes."""
        self._replay("seed", "new environment", plan, self._twin)
        self._replay("seed", "used environment", plan)

    def check_unfinished(self, plan: list[Episode]) -> None:
        """Check that a reset during an episode, with and without a seed, starts a new episode."""
        episode, check = plan[0], "unfinished"
        middle, late = len(episode) // 2, len(episode) - 1
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
        actions, replies = self._explore(where, reply)
        for t, got in enumerate(replies):
            if t:
                expected = step(self._twin, where, copy.deepcopy(actions[t - 1]), check)
            compare(check, f"{where}, " + (f"step {t - 1}" if t else "reset"), expected, got, self._ignored)

    def check_isolation(self, plan: list[Episode]) -> None:
        """Check that overwriting actions and results, and rendering, do not affect the environment."""
        first = plan[:1]
        self._replay("actions_kept", "actions overwritten", first, disturb=lambda actions, _: overwrite(actions))
        self._replay("results_kept", "results overwritten", first, disturb=lambda _, reply: overwrite(reply))
        if getattr(self._env, "render_mode", None) not in (None, "human"):
            self._replay("render", "rendered", first, disturb=lambda *_: self._env.render())

    def check_copy(self, name: str, episode: Episode) -> None:
        """Copy the environment during an episode, then step the copy and the original to the end."""
        middle, env = len(episode) // 2, self._env
        self._play(env, episode[:middle])
        with raising(name, f"episode 0, after step {middle - 1}", "the environment to be copied"):
            twin_copy = COPIERS[name](env)
        for t in range(middle, len(episode)):
            for each, who in ((twin_copy, "the copy"), (env, "the original")):
                where = f"{name} made before step {middle}, step {t}, {who}"
                reply = step(each, where, copy.deepcopy(episode[t]), name)
                compare(name, where, self._recorded[0][t + 1], reply, self._ignored)
        with raising(name, f"{name} closed", "no exception"):
            twin_copy.close()
        where = f"{name} closed, next reset of the original"
        compare(name, where, self._recorded[1][0], reset(env, where, name), self._ignored)

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

    def check_close(self, fresh: Any) -> None:
        """Check that `close` may be called before the first reset (of the environment `fresh`), and twice."""
        for env, where in ((fresh, "before a reset"), (self._env, "first call"), (self._env, "second call")):
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

    def _explore(self, where: str, reply: Reply) -> tuple[Episode, list[Reply]]:
        """Play an episode after a reset and check every call. Returns the actions, and copies of all results."""
        actions, replies = Episode(), [self._rules.check_reset(f"{where}, reset", reply)]
        while reply["agents"] and len(actions) < self._max_steps:
            at = f"{where}, step {len(actions)}"
            actions.append(self._sample(at, reply))
            given = copy.deepcopy(actions[-1])
            reply = step(self._env, at, given)
            demand_none("actions_written", at, find_difference(actions[-1], given, path="actions"), "to stay ")
            replies.append(self._rules.check_step(at, reply))
        return actions, replies

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

    def _replay(
        self,
        check: str,
        how: str,
        plan: list[Episode],
        env: Any = None,
        disturb: Callable[[dict[Agent, Any], Reply], object] = lambda *_: None,
    ) -> None:
        """Step an environment through recorded episodes and compare the results. `disturb` is called after each."""
        env = self._env if env is None else env
        for k, episode in enumerate(plan):
            for t, actions in enumerate([{}, *episode]):
                where = f"{how}, episode {k}, " + (f"step {t - 1}" if t else "reset")
                given = copy.deepcopy(actions)
                reply = step(env, where, given, check) if t else self._reset(env, k, check)
                compare(check, where, self._recorded[k][t], reply, self._ignored)
                with raising(check, where, "no exception"):
                    disturb(given, reply)

    def _differ(self, reply: Reply, episode: Episode) -> bool:
        """Whether the environment, after a reset, differs from the first recorded episode."""
        for t, expected in enumerate(self._recorded[0]):
            # infos are ignored because they may contain the seed
            if any(find_difference(expected[name], reply[name]) for name in expected if name != "infos"):
                return True
            try:
                if t < len(episode):
                    reply = step(self._env, f"step {t}", copy.deepcopy(episode[t]))
            except ConformanceError:  # the action is possible in the recorded episode only
                return True
        return False
