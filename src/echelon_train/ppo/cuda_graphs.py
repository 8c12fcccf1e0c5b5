"""CUDA graphs: a function's kernels are recorded once and replayed, because launching them one by one takes longer."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from echelon_train.policy.sequences import SequencePolicy

WARM_UP = 3
"""Calls before the recording, in which torch chooses kernels and makes tables."""


class Recording(NamedTuple):
    """A recorded call. Its tensors keep their memory."""

    arguments: tuple[Any, ...]
    results: Any
    gradients: list[Tensor | None]
    replay: Callable[[], object]


class Graphed:
    """A function of tensors and of constants, recorded once for each shape of the tensors and value of the constants.

    It must not wait for the GPU, draw random numbers or change anything but gradients. On the CPU nothing is recorded,
    and it is called again.

    Parameters
    ----------
    function
        The function. Its arguments and results are tensors, tuples and dicts of them, and hashable constants.
    policy
        The dense policy that it uses. Where its tensors or `recorded_settings` have changed, it is recorded again.
    """

    def __init__(self, function: Callable[..., Any], policy: SequencePolicy) -> None:
        self._function, self._policy = function, policy
        self._parameters = list(policy.parameters())
        self._weights = [*self._parameters, *policy.buffers()]
        self._recordings: dict[Hashable, Recording] = {}
        self._used: Hashable = None

    def __call__(self, *arguments: Any) -> Any:
        """The function's results, in new tensors. Gradients replace those of the policy's parameters.

        The next call writes over the gradients.
        """
        used = self._policy.recorded_settings(), tuple(each.data_ptr() for each in self._weights)
        if used != self._used:
            self._recordings, self._used = {}, used
        key = torch.is_grad_enabled(), _signature(arguments)
        recording = self._recordings.get(key)
        if recording is None:
            recording = self._recordings[key] = self._record(_mapped(torch.clone, arguments))
        _copy(arguments, recording.arguments)
        recording.replay()
        for parameter, gradient in zip(self._parameters, recording.gradients, strict=True):
            if gradient is not None:
                parameter.grad = gradient
        return _mapped(torch.clone, recording.results)

    def clear(self) -> None:
        """Free the memory of all recordings."""
        self._recordings = {}

    def _record(self, arguments: tuple[Any, ...]) -> Recording:
        device, gradients = self._policy.device, torch.is_grad_enabled()

        def run() -> tuple[Any, list[Tensor | None]]:
            for parameter in self._parameters if gradients else ():
                parameter.grad = None
            results = self._function(*arguments)
            return results, [parameter.grad if gradients else None for parameter in self._parameters]

        (results, found), replay = (_graph if device.type == "cuda" else _again)(run, device)
        return Recording(arguments, results, found, replay)


def _graph(run: Callable[[], Any], device: torch.device) -> tuple[Any, Callable[[], object]]:
    """The results of a function whose kernels are recorded, and a function that computes them."""
    stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    stream.wait_stream(torch.cuda.current_stream(device))
    with torch.cuda.stream(stream):
        for _ in range(WARM_UP):
            run()
    torch.cuda.current_stream(device).wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        results = run()
    return results, graph.replay


def _again(run: Callable[[], Any], _: torch.device) -> tuple[Any, Callable[[], object]]:
    """What `_graph` returns, without a graph."""
    results = _mapped(torch.clone, run())
    return results, lambda: _copy(run(), results)


def _signature(value: Any) -> Hashable:
    """Equal for values that can be computed in the same tensors."""
    if isinstance(value, Tensor):
        return value.shape, value.dtype
    if isinstance(value, tuple):
        return tuple(map(_signature, value))
    if isinstance(value, dict):
        return tuple((name, _signature(each)) for name, each in value.items())
    return value  # type: ignore[no-any-return]


def _mapped(function: Callable[[Tensor], Tensor], value: Any) -> Any:
    """The value with the function's results in place of its tensors."""
    if isinstance(value, Tensor):
        return function(value)
    if isinstance(value, dict):
        return {name: _mapped(function, each) for name, each in value.items()}
    if isinstance(value, (tuple, list)):
        parts = [_mapped(function, each) for each in value]
        return type(value)._make(parts) if hasattr(value, "_make") else type(value)(parts)
    return value


def _copy(source: Any, target: Any) -> None:
    """Copy the tensors of a value into those of another."""
    if isinstance(source, Tensor):
        target.copy_(source)
    elif isinstance(source, dict):
        for name, each in source.items():
            _copy(each, target[name])
    elif isinstance(source, (tuple, list)):
        for one, other in zip(source, target, strict=True):
            _copy(one, other)
