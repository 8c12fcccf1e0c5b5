"""The checks' names, errors and warnings."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

CHECKS: dict[str, str] = {
    # of both
    "reset": "`reset(seed=..., options=...)` is accepted and returns observations and infos",
    "step": "`step(actions)` returns observations, rewards, terminations, truncations and infos",
    "spaces": "a space is the same object on every call and does not change; batched spaces match the single ones",
    "observations": "every observation has its space's type, shape and dtype, is finite and within the bounds",
    "rewards": "every reward is a finite real number",
    "flags": "terminations and truncations are booleans",
    "infos": "infos are dictionaries; in a vector environment every value comes with its mask `_key`",
    "action_mask": "a mask in `info` or observation fits `space.sample(mask)`",
    "actions_written": "the caller's actions are not written to",
    "aliasing": "returned values do not change later or share memory with values returned later",
    "seed": "the same seed and actions give the same results, in a used environment as in a new one",
    "other_seed": "another seed changes something",
    "next_episode": "a reset without a seed starts another episode",
    "close": "`close()` may be called twice, and before a reset",
    # of parallel environments
    "agents": "`agents` lists possible agents without repetition; none leaves without a flag or comes back",
    "keys": "every dictionary has exactly the agents that were present before the step",
    "termination": "a terminated agent leaves",
    "truncation": "a truncated agent leaves",
    "unfinished": "a reset during an episode starts an episode like any other reset",
    "end": "no agent is left after the last one has ended, and a further step raises or returns nothing",
    "state": "`state()` is in `state_space`, if there is one",
    "actions_kept": "overwriting actions after the step changes nothing",
    "results_kept": "overwriting returned values changes nothing",
    "deepcopy": "a deep copy made during an episode continues equally and independently",
    "pickle": "a pickled copy made during an episode continues equally and independently",
    "render": "rendering changes nothing",
    # of vector environments
    "metadata": '`metadata["autoreset_mode"]` and `num_envs` are the requested ones',
    "next_step": "NEXT_STEP: the step after an end has reward 0 and no flags",
    "same_step": "SAME_STEP: `final_obs` and `final_info` exist, masked, exactly where an episode ended",
    "reset_mask": "DISABLED: `reset_mask` resets the marked sub-environments only",
    "modes": "all autoreset modes have the same episodes: final observations, first observations, infos",
    "singles": "the batch has the same episodes as single environments",
    "seed_per_env": "seed s gives sub-environment i the seed s + i; a list has one seed for each",
    "position": "a sub-environment's index in the batch does not matter",
    "independence": "another seed or other actions of one sub-environment do not change the others",
}
"""Every check by name, with the property that it tests."""


class ConformanceError(AssertionError):
    """An environment violates its API's contract.

    Parameters
    ----------
    check
        Name of the check, one of `CHECKS`.
    where
        The environment, episode, step and agent, if applicable.
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
        """The same error with a longer path to its place."""
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
