"""Checks of Gymnasium's vector environments."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from echelon_env.testing.comparison import AliasGuard, find_difference
from echelon_env.testing.conformance import ConformanceError, ConformanceWarning, brief, demand_none, raising
from echelon_env.testing.membership import find_mismatch
from echelon_env.testing.sampling import ActionSampler, make_two, sample_action
from echelon_env.testing.vector_rollout import Plan, Results, Seed, Trajectory, VectorRollout, rollout_single

PARTS = ("reward", "terminated", "truncated", "observation", "info")


def check_vector_env(
    make_vec: Callable[[int, AutoresetMode], Any],
    make_single: Callable[[], Any] | None = None,
    *,
    num_envs: int = 3,
    autoreset_modes: Sequence[AutoresetMode] = tuple(AutoresetMode),
    seed: int = 0,
    episodes: int = 2,
    max_steps: int = 1000,
    actions: ActionSampler = sample_action,
    ignored_infos: Collection[str] = (),
    tolerance: float = 0.0,
    own_generators: bool = True,
    seed_matters: bool = True,
) -> None:
    """Check a Gymnasium vector environment in each of its autoreset modes, over complete episodes.

    The trajectory of every sub-environment is extracted from the batch (final observations, first observations of new
    episodes, rewards, flags, infos). It must be the same in all modes, in another batch, and in a single environment.
    `CHECKS` lists the checks.

    Parameters
    ----------
    make_vec
        A function ``make_vec(num_envs, autoreset_mode)`` that makes a new vector environment. It is called several
        times; all environments are closed.
    make_single
        A function that makes a single environment like those of the batch, for comparison with the batch. None: no
        comparison.
    num_envs
        Number of sub-environments, at least 2.
    autoreset_modes
        The modes that the environment supports.
    seed
        Seed of the first episode of sub-environment 0 and of the actions.
    episodes
        Number of episodes that every sub-environment plays to the end.
    max_steps
        Number of steps after which a rollout is interrupted.
    actions
        A function ``actions(index, space, observation, info)`` that chooses an action of sub-environment `index`. By
        default uniformly random, within the action mask if there is one.
    ignored_infos
        Keys of infos, at any depth, that are not checked, for values that differ between runs, such as timings, or that
        cannot be copied or compared.
    tolerance
        Tolerance, relative or absolute, for differences between numbers of the batch and of single environments.
    own_generators
        Whether each sub-environment has its own random generator. False for environments with one generator for the
        batch: then seeds per environment, independence, modes and single environments are not compared.
    seed_matters
        Whether another seed, and the next episode, must give different results. False for deterministic games.

    Raises
    ------
    ConformanceError
        For the first violated rule.
    ValueError
        For fewer than two sub-environments, no episode, step or mode, or a `make_vec` that returns the same object
        twice.
    TypeError
        For a `make_vec` that is not callable.
    """
    if num_envs < 2 or episodes < 1 or max_steps < 1 or not autoreset_modes:
        raise ValueError(
            "expected at least 2 sub-environments, 1 episode, 1 step and 1 autoreset mode, got "
            f"{num_envs}, {episodes}, {max_steps} and {autoreset_modes}"
        )
    first: tuple[AutoresetMode, list[Trajectory]] | None = None
    plan: Plan | None = None
    ignored = tuple(ignored_infos)
    for mode in autoreset_modes:
        env, twin = make_two("make_vec", make_vec, num_envs, mode)
        with _closing(env), _closing(twin):
            _check_description(env, num_envs, mode)
            plan = plan or Plan(env.single_action_space, num_envs, seed, actions)
            run = _VectorCheck(env, twin, mode, plan, seed, ignored)
            trajectories = run.record(episodes, max_steps)
            run.check_seeds(trajectories, own_generators)
            if own_generators:
                run.check_independence(trajectories)
                if mode == AutoresetMode.DISABLED:
                    run.check_reset_mask(trajectories)
            run.check_next_episode(trajectories, seed_matters)
            run.check_close(make_vec(num_envs, mode))
        if first is None:
            first = mode, trajectories
        elif own_generators:
            _compare("modes", f"{mode.name} against {first[0].name}", first[1], trajectories, ignored)
    if make_single is not None and own_generators and first is not None and plan is not None:
        with _closing(make_single()) as env:
            singles = [
                rollout_single(env, seed + i, plan, i, len(trajectory), ignored)
                for i, trajectory in enumerate(first[1])
            ]
        _compare("singles", f"batch in {first[0].name} against single", singles, first[1], ignored, tolerance)


def _check_description(env: Any, num_envs: int, mode: AutoresetMode) -> None:
    named = env.metadata.get("autoreset_mode")
    if named not in (mode, mode.value):
        raise ConformanceError("metadata", "metadata['autoreset_mode']", f"{mode}", brief(named))
    if env.num_envs != num_envs:
        raise ConformanceError("metadata", "num_envs", f"{num_envs}", brief(env.num_envs))
    for kind in ("observation_space", "action_space"):
        expected = batch_space(getattr(env, f"single_{kind}"), num_envs)
        if getattr(env, kind) != expected:
            raise ConformanceError("spaces", kind, f"single_{kind} batched, {expected}", brief(getattr(env, kind)))


@contextlib.contextmanager
def _closing(env: Any) -> Iterator[Any]:
    try:
        yield env
    finally:
        with contextlib.suppress(Exception):  # a separate check tests `close`
            env.close()


class _VectorCheck:
    """A vector environment under test and a second one with the same mode."""

    def __init__(
        self, env: Any, twin: Any, mode: AutoresetMode, plan: Plan, seed: int, ignored: tuple[str, ...]
    ) -> None:
        self._env, self._twin, self._mode, self._plan = env, twin, mode, plan
        self._seed, self._ignored = seed, ignored
        self._guard = AliasGuard(ignored)

    def record(self, episodes: int, max_steps: int) -> list[Trajectory]:
        """Step all sub-environments to the ends of their episodes and check every call. Returns the trajectories."""
        rollout = VectorRollout(self._env, self._mode, self._plan, self._ignored)
        where = f"{self._mode.name}, reset"
        self._admit(where, rollout.reset(where, self._seed))
        for t in range(max_steps):
            where = f"{self._mode.name}, step {t}"
            self._admit(where, rollout.step(where))
            if min(rollout.ended) >= episodes:
                break
            if self._mode == AutoresetMode.DISABLED and rollout.done.any():
                where += ", reset by mask"
                self._admit(where, rollout.reset_some(where, rollout.done, None))
        if not any(rollout.ended):
            text = f"{self._mode.name}: no episode ended within {max_steps} steps: the end was not checked"
            warnings.warn(text, ConformanceWarning, stacklevel=3)
        for i, trajectory in enumerate(rollout.trajectories):
            for k, entry in enumerate(trajectory):
                found = find_mismatch(self._env.single_observation_space, entry["observation"], "observation")
                demand_none("observations", f"{self._mode.name}, sub-environment {i}, {_place(trajectory, k)}", found)
        return rollout.trajectories

    def check_seeds(self, trajectories: list[Trajectory], own_generators: bool) -> None:
        """Check that used and new environments repeat the episodes of a seed and of lists of seeds in any order."""
        lengths = [len(trajectory) for trajectory in trajectories]
        # a pending autoreset of the last rollout must be cancelled by the reset
        again = self._rollout(self._env, self._seed, self._plan, lengths)
        self._compare("seed", "used environment", trajectories, again)
        second = self._rollout(self._twin, self._seed, self._plan, lengths)
        self._compare("seed", "second environment", trajectories, second)
        if own_generators:
            seeds = self._seeds()
            listed = self._rollout(self._twin, seeds, self._plan, lengths)
            self._compare("seed_per_env", f"seed={seeds}", trajectories, listed)
            turned = self._rollout(self._twin, seeds[::-1], self._plan.reversed(), lengths[::-1])
            self._compare("position", "in reversed order", trajectories, turned[::-1])

    def check_independence(self, trajectories: list[Trajectory]) -> None:
        """Check that the seed and the actions of a sub-environment do not affect the others."""
        lengths, seeds = [len(trajectory) for trajectory in trajectories], self._seeds()
        seeds[0] = self._seed + len(seeds)
        other_seed = self._rollout(self._twin, seeds, self._plan, lengths)
        other_actions = self._rollout(self._twin, self._seed, self._plan.with_other_actions(0), lengths)
        for played, what in ((other_seed, "seed"), (other_actions, "actions")):
            self._compare(
                "independence", f"other {what} of sub-environment 0", trajectories, [trajectories[0], *played[1:]]
            )

    def check_reset_mask(self, trajectories: list[Trajectory]) -> None:
        """Check that a mask resets one sub-environment during an episode, with its seed, while the others continue."""
        rollout = VectorRollout(self._env, self._mode, self._plan, self._ignored)
        rollout.reset("reset", self._seed)
        shortest = min(next((k for k, entry in enumerate(c) if _is_end(entry)), len(c) - 1) for c in trajectories)
        rollout.advance([1 + shortest // 2] * len(trajectories))
        rollout.trajectories[0], rollout.taken[0] = [], 0
        mask = np.arange(len(trajectories)) == 0
        where = f"{self._mode.name}, reset_mask {mask.tolist()} after {shortest // 2} steps"
        rollout.reset_some(where, mask, [self._seed, *[None] * (len(trajectories) - 1)])
        rollout.advance([len(trajectory) for trajectory in trajectories])
        self._compare("reset_mask", where, trajectories, rollout.trajectories)

    def check_next_episode(self, trajectories: list[Trajectory], seed_matters: bool) -> None:
        """Check a reset without a seed: the same in two environments, different from the first episodes.

        Also check that another seed gives different episodes.
        """
        lengths = [len(trajectory) for trajectory in trajectories]
        for env in (self._env, self._twin):  # a game may draw nothing before its first step
            self._rollout(env, self._seed, self._plan, lengths)
        following = self._rollout(self._env, None, self._plan, lengths)
        twin = self._rollout(self._twin, None, self._plan, lengths)
        self._compare("seed", "reset(seed), steps, reset()", following, twin)
        if not seed_matters:
            return
        other = self._rollout(self._env, self._seed + len(trajectories), self._plan, lengths)
        for check, played, where in (
            ("other_seed", other, f"seeds {self._seed} and {self._seed + len(trajectories)}"),
            ("next_episode", following, f"reset(seed={self._seed}), steps, reset()"),
        ):
            for i, (trajectory, found) in enumerate(zip(trajectories, played, strict=True)):
                # infos are ignored because they may contain the seed
                bare = [[{**entry, "info": {}} for entry in each] for each in (trajectory, found)]
                if not find_difference(*(each[: len(trajectory)] for each in bare), tolerance=0.0):
                    place = f"{self._mode.name}, {where}, sub-environment {i}"
                    raise ConformanceError(check, place, "a difference somewhere", "none")

    def check_close(self, fresh: Any) -> None:
        """Check that `close` may be called before the first reset (of the environment `fresh`), and twice."""
        for env, where in ((fresh, "before a reset"), (self._env, "first call"), (self._env, "second call")):
            with raising("close", f"{self._mode.name}, {where}", "no exception"):
                env.close()

    def _rollout(self, env: Any, seed: Seed, plan: Plan, lengths: list[int]) -> list[Trajectory]:
        rollout = VectorRollout(env, self._mode, plan, self._ignored)
        rollout.reset(f"{self._mode.name}, reset", seed)
        rollout.advance(lengths)
        return rollout.trajectories

    def _compare(self, check: str, where: str, expected: list[Trajectory], got: list[Trajectory]) -> None:
        _compare(check, f"{self._mode.name}, {where}", expected, got, self._ignored)

    def _admit(self, where: str, results: Results) -> None:
        self._guard.add(where, {name: part for name, part in results._asdict().items() if part is not None})

    def _seeds(self) -> list[int | None]:
        return [self._seed + i for i in range(self._env.num_envs)]


def _compare(
    check: str,
    where: str,
    expected: list[Trajectory],
    got: list[Trajectory],
    ignored: tuple[str, ...],
    tolerance: float = 0.0,
) -> None:
    """Compare trajectories up to the shorter length."""
    for i, (first, second) in enumerate(zip(expected, got, strict=True)):
        for k, (entry, other) in enumerate(zip(first, second, strict=False)):
            for name in PARTS:
                found = find_difference(
                    entry.get(name, "none here"),
                    other.get(name, "none here"),
                    tolerance=tolerance,
                    ignored=ignored if name == "info" else (),
                    path=name,
                )
                demand_none(check, f"{where}, sub-environment {i}, {_place(first, k)}", found)


def _is_end(entry: dict[str, Any]) -> bool:
    return bool(entry.get("terminated") or entry.get("truncated"))


def _place(trajectory: Trajectory, index: int) -> str:
    """Episode and step of an entry of a trajectory."""
    starts = [k for k, entry in enumerate(trajectory[: index + 1]) if "reward" not in entry]
    step = index - starts[-1]
    return f"episode {len(starts) - 1}, " + (f"step {step - 1}" if step else "first observation")
