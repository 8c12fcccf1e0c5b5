"""Tables of constants on a device, which are made once."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import torch

Function = TypeVar("Function", bound=Callable[..., Any])

TABLES: list[Callable[..., Any]] = []
"""All functions that `device_table` has made."""


def device_table(function: Function) -> Function:
    """A function of a device, and perhaps of other hashable arguments, that keeps its results, tensors."""

    @functools.cache
    def made(*arguments: Any) -> Any:
        with torch.inference_mode(False):  # tables made in inference mode could not be used in training
            return function(*arguments)

    def table(*arguments: Any) -> Any:
        return made(*arguments)  # a function of its own: torch.compile ignores that of functools

    table.__doc__, table.__name__ = function.__doc__, function.__name__
    table.cache_clear = made.cache_clear  # type: ignore[attr-defined]
    TABLES.append(table)
    return table  # type: ignore[return-value]
