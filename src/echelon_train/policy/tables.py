"""Tables of constants on a device, which are made once."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import torch

Function = TypeVar("Function", bound=Callable[..., Any])


def device_table(function: Function) -> Function:
    """A function of a device, and perhaps of other hashable arguments, that keeps its results, tensors."""

    @functools.cache
    @functools.wraps(function)
    def table(*arguments: Any) -> Any:
        with torch.inference_mode(False):  # tables made in inference mode could not be used in training
            return function(*arguments)

    return cast("Function", table)
