"""Names of the checks, and their errors and warnings."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

Difference = tuple[str, str, str]
"""Path of an entry in a value, expected entry, actual entry."""

CHECKS: dict[str, str] = {
    # both kinds of environments
    "reset": "`reset(seed=..., options=...)` is accepted and returns observations and infos",
    "step": "`step(actions)` returns observations, rewards, terminations, truncations and infos",
    "spaces": "a space is the same object on every call and does not change; batched spaces match the single ones",
    "observations": "every observation has the type, shape and dtype of its space, is finite and within the bounds",
    "rewards": "every reward is a finite real number",
    "flags": "terminations and truncations are booleans",
    "infos": "infos are dictionaries; in a vector environment every value has a mask `_key`",
    "action_mask": "a mask in the info or the observation is valid for `space.sample(mask)`",
    "actions_written": "the caller's actions are not modified",
    "aliasing": "returned values do not change later and share no memory with values returned later",
    "seed": "the same seed and actions give the same results, in a used environment and in a new one",
    "other_seed": "another seed gives different results",
    "next_episode": "a reset without a seed starts a different episode",
    "close": "`close()` may be called twice, and before a reset",
    # parallel environments
    "agents": "`agents` lists possible agents without duplicates; no agent leaves without a flag or returns",
    "keys": "every dictionary has exactly the agents that were present before the step",
    "termination": "a terminated agent leaves",
    "truncation": "a truncated agent leaves",
    "unfinished": "a reset during an episode has the same effect as after an episode",
    "end": "`agents` is empty after the end, and a further step raises or returns nothing",
    "state": "`state()` is in `state_space`, if there is one",
    "actions_kept": "overwriting actions after the step has no effect on the environment",
    "results_kept": "overwriting returned values has no effect on the environment",
    "deepcopy": "a deep copy made during an episode behaves like the original and is independent of it",
    "pickle": "a pickled copy made during an episode behaves like the original and is independent of it",
    "render": "rendering has no effect on the environment",
    # vector environments
    "metadata": '`metadata["autoreset_mode"]` and `num_envs` have the requested values',
    "next_step": "NEXT_STEP: the step after the end of an episode has reward 0 and no flags",
    "same_step": "SAME_STEP: `final_obs` and `final_info` are masked to exactly the episodes that ended",
    "reset_mask": "DISABLED: `reset_mask` resets the marked sub-environments only",
    "modes": "all autoreset modes give the same episodes: final observations, first observations, infos",
    "singles": "the batch gives the same episodes as single environments",
    "seed_per_env": "seed s gives sub-environment i the seed s + i; a list has one seed for each",
    "position": "results do not depend on the index of a sub-environment in the batch",
    "independence": "the seed and the actions of a sub-environment do not affect the others",
}
"""The name of every check -> the property that it tests."""


class ConformanceError(AssertionError):
    """An environment violates the contract of its API.

    Parameters
    ----------
    check
        Name of the check, one of `CHECKS`.
    where
        The environment, episode, step and agent, as far as they apply.
    expected, got
        The expected and the actual value.

    Attributes
    ----------
    check, where, expected, got : str
        The parameters.
    """

    def __init__(self, check: str, where: str, expected: str, got: str) -> None:
        super().__init__(f"{check}: {where}: expected {expected}, got {got} ({CHECKS[check]})")
        self.check, self.where, self.expected, self.got = check, where, expected, got

    def within(self, where: str) -> ConformanceError:
        """The same error with a prefix of its `where`."""
        return ConformanceError(self.check, f"{where}, {self.where}", self.expected, self.got)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.check, self.where, self.expected, self.got)


class ConformanceWarning(UserWarning):
    """An environment deviates from an optional convention."""


@contextlib.contextmanager
def raising(check: str, where: str, expected: str) -> Iterator[None]:
    """Turn an exception of the environment into a failure of the check."""
    try:
        yield
    except ConformanceError:
        raise
    except Exception as error:
        raise ConformanceError(check, where, expected, f"{type(error).__name__}: {error}") from error


def brief(value: object) -> str:
    """`repr` of a value on one line of at most 160 characters."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 160 else text[:157] + "..."


def with_type(value: object) -> str:
    """The name of a value's type and the value, see `brief`."""
    return f"{type(value).__name__} {brief(value)}"


def demand_none(check: str, where: str, difference: Difference | None, before: str = "") -> None:
    """Raise ConformanceError for a difference, if there is one. `before` is written before the expected entry."""
    if difference:
        path, expected, got = difference
        raise ConformanceError(check, f"{where}, {path}", before + expected, got)
