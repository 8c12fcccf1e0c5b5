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
from echelon_env.testing.conformance import ConformanceError, ConformanceWarning, brief, raising
from echelon_env.testing.membership import find_mismatch
from echelon_env.testing.sampling import ActionSampler, make_two, sample_action
from echelon_env.testing.vector_walk import Course, Plan, Results, Seed, VectorWalk, walk_single

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
    """Check a Gymnasium vector environment in each of its autoreset modes, over whole episodes.

    Every sub-environment's course is read out of what the batch returns (final observations, first observations of
    new episodes, rewards, flags, infos) and must be the same in all modes, in another batch, and in a single
    environment. `CHECKS` lists what is checked.

    Parameters
    ----------
    make_vec
        ``make_vec(num_envs, autoreset_mode)`` makes a new vector environment. Called several times; all are closed.
    make_single
        Makes one of the environments that the batch is made of, if the batch is to be compared with it.
    num_envs
        Sub-environments, at least 2.
    autoreset_modes
        The modes that the environment supports.
    seed
        Seed of the first sub-environment's first episode and of the actions.
    episodes
        Every sub-environment is walked to the end of that many episodes.
    max_steps
        Steps after which a walk is interrupted.
    actions
        Chooses the actions: ``actions(index, space, observation, info)`` with the sub-environment's number; by
        default uniformly, within the action mask if there is one.
    ignored_infos
        Keys of infos, at any depth, that are left alone: they may differ between equal runs, as timings do, and hold
        what cannot be copied or compared.
    tolerance
        By how much, relative or absolute, numbers of the batch may differ from those of single environments.
    own_generators
        Whether each sub-environment has its own random generator. False for environments that draw for the whole
        batch: then neither per-environment seeds nor independence nor modes nor single environments are compared.
    seed_matters
        Whether another seed, and the next episode, must differ. False for games without chance.

    Raises
    ------
    ConformanceError
        For the first rule that is broken.
    ValueError
        For fewer than two sub-environments, no episode, step or mode, or a `make_vec` that makes nothing new.
    TypeError
        For a `make_vec` that cannot be called.
    """
    if num_envs < 2 or episodes < 1 or max_steps < 1 or not autoreset_modes:
        raise ValueError(
            "expected at least 2 sub-environments, 1 episode, 1 step and 1 autoreset mode, got "
            f"{num_envs}, {episodes}, {max_steps} and {autoreset_modes}"
        )
    first: tuple[AutoresetMode, list[Course]] | None = None
    plan: Plan | None = None
    ignored = tuple(ignored_infos)
    for mode in autoreset_modes:
        env, twin = make_two("make_vec", make_vec, num_envs, mode)
        with _closing(env), _closing(twin):
            _check_description(env, num_envs, mode)
            plan = plan or Plan(env.single_action_space, num_envs, seed, actions)
            run = _VectorCheck(env, twin, mode, plan, seed, ignored)
            courses = run.record(episodes, max_steps)
            run.check_seeds(courses, own_generators)
            if own_generators:
                run.check_independence(courses)
                if mode == AutoresetMode.DISABLED:
                    run.check_reset_mask(courses)
            run.check_next_episode(courses, seed_matters)
            run.check_close(make_vec(num_envs, mode))
        if first is None:
            first = mode, courses
        elif own_generators:
            _compare("modes", f"{mode.name} against {first[0].name}", first[1], courses, ignored)
    if make_single is not None and own_generators and first is not None and plan is not None:
        with _closing(make_single()) as env:
            singles = [walk_single(env, seed + i, plan, i, len(course), ignored) for i, course in enumerate(first[1])]
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
        with contextlib.suppress(Exception):  # whether closing twice is harmless is a separate check
            env.close()


class _VectorCheck:
    """One vector environment under test and a second one of the same mode."""

    def __init__(
        self, env: Any, twin: Any, mode: AutoresetMode, plan: Plan, seed: int, ignored: tuple[str, ...]
    ) -> None:
        self._env, self._twin, self._mode, self._plan = env, twin, mode, plan
        self._seed, self._ignored = seed, ignored
        self._guard = AliasGuard(ignored)

    def record(self, episodes: int, max_steps: int) -> list[Course]:
        """Step all sub-environments to the ends of their episodes with every call checked; returns the courses."""
        walk = VectorWalk(self._env, self._mode, self._plan, self._ignored)
        where = f"{self._mode.name}, reset"
        self._admit(where, walk.reset(where, self._seed))
        for t in range(max_steps):
            where = f"{self._mode.name}, step {t}"
            self._admit(where, walk.step(where))
            if min(walk.ended) >= episodes:
                break
            if self._mode == AutoresetMode.DISABLED and walk.done.any():
                where += ", reset by mask"
                self._admit(where, walk.reset_some(where, walk.done, None))
        if not any(walk.ended):
            text = f"{self._mode.name}: no episode ended within {max_steps} steps: the end was not checked"
            warnings.warn(text, ConformanceWarning, stacklevel=3)
        for i, course in enumerate(walk.courses):
            for k, entry in enumerate(course):
                found = find_mismatch(self._env.single_observation_space, entry["observation"], "observation")
                if found:
                    where = f"{self._mode.name}, sub-environment {i}, {_place(course, k)}, {found[0]}"
                    raise ConformanceError("observations", where, *found[1:])
        return walk.courses

    def check_seeds(self, courses: list[Course], own_generators: bool) -> None:
        """With the same seed, used and new environments repeat the episodes; so do lists of seeds in any order."""
        lengths = [len(course) for course in courses]
        # the walk that is over may have left a reset pending, which a reset must cancel
        again = self._walk(self._env, self._seed, self._plan, lengths)
        self._compare("seed", "used environment", courses, again)
        second = self._walk(self._twin, self._seed, self._plan, lengths)
        self._compare("seed", "second environment", courses, second)
        if own_generators:
            seeds = self._seeds()
            listed = self._walk(self._twin, seeds, self._plan, lengths)
            self._compare("seed_per_env", f"seed={seeds}", courses, listed)
            turned = self._walk(self._twin, seeds[::-1], self._plan.reversed(), lengths[::-1])
            self._compare("position", "in reversed order", courses, turned[::-1])

    def check_independence(self, courses: list[Course]) -> None:
        """Changing one sub-environment's seed or actions leaves the others alone."""
        lengths, seeds = [len(course) for course in courses], self._seeds()
        seeds[0] = self._seed + len(seeds)
        other_seed = self._walk(self._twin, seeds, self._plan, lengths)
        other_actions = self._walk(self._twin, self._seed, self._plan.with_other_actions(0), lengths)
        for walked, what in ((other_seed, "seed"), (other_actions, "actions")):
            self._compare("independence", f"other {what} of sub-environment 0", courses, [courses[0], *walked[1:]])

    def check_reset_mask(self, courses: list[Course]) -> None:
        """A mask resets one sub-environment during an episode, with its seed; it restarts and the others continue."""
        walk = VectorWalk(self._env, self._mode, self._plan, self._ignored)
        walk.reset("reset", self._seed)
        shortest = min(next((k for k, entry in enumerate(c) if _is_end(entry)), len(c) - 1) for c in courses)
        walk.advance([1 + shortest // 2] * len(courses))
        walk.courses[0], walk.taken[0] = [], 0
        mask = np.arange(len(courses)) == 0
        where = f"{self._mode.name}, reset_mask {mask.tolist()} after {shortest // 2} steps"
        walk.reset_some(where, mask, [self._seed, *[None] * (len(courses) - 1)])
        walk.advance([len(course) for course in courses])
        self._compare("reset_mask", where, courses, walk.courses)

    def check_next_episode(self, courses: list[Course], seed_matters: bool) -> None:
        """A reset without a seed continues equally in two environments; it and another seed give other episodes."""
        lengths = [len(course) for course in courses]
        for env in (self._env, self._twin):  # a game may draw nothing before its first step
            self._walk(env, self._seed, self._plan, lengths)
        following = self._walk(self._env, None, self._plan, lengths)
        twin = self._walk(self._twin, None, self._plan, lengths)
        self._compare("seed", "reset(seed), steps, reset()", following, twin)
        if not seed_matters:
            return
        other = self._walk(self._env, self._seed + len(courses), self._plan, lengths)
        for check, walked, where in (
            ("other_seed", other, f"seeds {self._seed} and {self._seed + len(courses)}"),
            ("next_episode", following, f"reset(seed={self._seed}), steps, reset()"),
        ):
            for i, (course, found) in enumerate(zip(courses, walked, strict=True)):
                # infos do not count: one may hold the seed itself
                bare = [[{**entry, "info": {}} for entry in each] for each in (course, found)]
                if not find_difference(*(each[: len(course)] for each in bare), tolerance=0.0):
                    place = f"{self._mode.name}, {where}, sub-environment {i}"
                    raise ConformanceError(check, place, "a difference somewhere", "none")

    def check_close(self, fresh: Any) -> None:
        """Closing is harmless before the first reset, of an environment that is `fresh`, and twice."""
        for env, where in ((fresh, "before a reset"), (self._env, "first call"), (self._env, "second call")):
            with raising("close", f"{self._mode.name}, {where}", "no exception"):
                env.close()

    def _walk(self, env: Any, seed: Seed, plan: Plan, lengths: list[int]) -> list[Course]:
        walk = VectorWalk(env, self._mode, plan, self._ignored)
        walk.reset(f"{self._mode.name}, reset", seed)
        walk.advance(lengths)
        return walk.courses

    def _compare(self, check: str, where: str, expected: list[Course], got: list[Course]) -> None:
        _compare(check, f"{self._mode.name}, {where}", expected, got, self._ignored)

    def _admit(self, where: str, results: Results) -> None:
        self._guard.admit(where, {name: part for name, part in results._asdict().items() if part is not None})

    def _seeds(self) -> list[int | None]:
        return [self._seed + i for i in range(self._env.num_envs)]


def _compare(
    check: str,
    where: str,
    expected: list[Course],
    got: list[Course],
    ignored: tuple[str, ...],
    tolerance: float = 0.0,
) -> None:
    """Compare courses as far as both go."""
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
                if found:
                    place = f"{where}, sub-environment {i}, {_place(first, k)}, {found[0]}"
                    raise ConformanceError(check, place, *found[1:])


def _is_end(entry: dict[str, Any]) -> bool:
    return bool(entry.get("terminated") or entry.get("truncated"))


def _place(course: Course, index: int) -> str:
    """Episode and step of an entry of a course."""
    begins = [k for k, entry in enumerate(course[: index + 1]) if "reward" not in entry]
    step = index - begins[-1]
    return f"episode {len(begins) - 1}, " + (f"step {step - 1}" if step else "first observation")
