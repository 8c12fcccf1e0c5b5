"""Sampling of actions, and other helpers of the checks."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeAlias

import numpy as np
from gymnasium import Space

from echelon_env.testing.conformance import ConformanceError, brief

ActionSampler: TypeAlias = Callable[[Hashable, Space[Any], Any, dict[str, Any]], Any]
"""``actions(agent, space, observation, info)`` returns an action. In a vector environment `agent` is the index of the
sub-environment. `space` is a seeded copy of the action space."""


def sample_action(agent: Hashable, space: Space[Any], observation: Any, info: dict[str, Any]) -> Any:
    """Sample uniformly, within the mask ``"action_mask"`` of the info or the observation, if there is one."""
    mask = info.get("action_mask")
    if mask is None and isinstance(observation, dict):
        mask = observation.get("action_mask")
    if mask is None:
        return space.sample()
    try:
        return space.sample(mask)
    except (AssertionError, TypeError, ValueError, IndexError, KeyError, AttributeError) as error:
        raise ConformanceError(
            "action_mask", "action_mask", f"a mask to sample {brief(space)} with", f"{brief(mask)}: {error}"
        ) from error


def make_two(name: str, make: Callable[..., Any], *arguments: Any) -> tuple[Any, Any]:
    """Make two environments. Raises TypeError if `make` is not callable, ValueError if it returns one object twice."""
    if not callable(make):
        raise TypeError(f"{name}: expected a function that makes environments, got {brief(make)}")
    first, second = make(*arguments), make(*arguments)
    if first is second:
        raise ValueError(f"{name}: expected a new environment on every call, got {brief(first)} twice")
    return first, second


def overwrite(value: Any) -> None:
    """Overwrite the values of all writeable arrays and clear all dicts, at any depth."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufc":
        if value.flags.writeable:
            value[...] = ~value if value.dtype.kind == "b" else 1 - value
    elif isinstance(value, (dict, list, tuple)):
        for part in value.values() if isinstance(value, dict) else value:
            overwrite(part)
        if isinstance(value, dict):
            value.clear()
