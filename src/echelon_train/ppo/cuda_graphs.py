"""CUDA graphs: a function's kernels are recorded once and replayed, because launching them one by one takes longer."""

from __future__ import annotations

import gc
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

WARM_UP = 3
"""Calls before the recording, in which torch chooses kernels and makes tables."""


KEPT = 2
"""Recordings of a function that are kept: of minibatches, those of the usual size and of the last, smaller one."""


class Recording(NamedTuple):
    """A recorded call. Its tensors keep their memory."""

    arguments: tuple[Any, ...]
    results: Any
    gradients: list[Tensor | None]
    replay: Callable[[], object]


class Recordable(Protocol):
    """What a recorded function uses: a dense policy, or several."""

    @property
    def device(self) -> torch.device:
        """The device of all tensors."""

    def parameters(self) -> Iterable[Tensor]:
        """Tensors that may have gradients."""

    def buffers(self) -> Iterable[Tensor]:
        """Other tensors."""

    def recorded_settings(self) -> Hashable:
        """What may change and is no tensor, and the kernels depend on."""


class Graphed:
    """A function of tensors and of constants, recorded once for each shape of the tensors and value of the constants.

    It must not wait for the GPU, draw random numbers or change anything but gradients. The last `KEPT` recordings keep
    their memory. Copies and pickles have none. On the CPU nothing is recorded: the function is called again.

    Parameters
    ----------
    function
        The function. Its arguments and results are tensors, tuples and dicts of them, and hashable constants.
    policy
        What it uses, one policy or several. Where its tensors or `recorded_settings` have changed, it is recorded
        again.
    gradients
        Whether it computes gradients of the policy's parameters. Otherwise it is recorded, and replayed, where
        gradients are disabled, and is called where they are not.
    """

    def __init__(self, function: Callable[..., Any], policy: Recordable, gradients: bool = False) -> None:
        self._function, self._policy, self._gradients = function, policy, gradients
        self._parameters: list[Tensor] = []
        self._weights: list[Tensor] = []
        self._used: Hashable = None
        self._recordings: OrderedDict[Hashable, Recording] = OrderedDict()  # in the order in which they were last used

    def __reduce__(self) -> tuple[type[Graphed], tuple[Any, ...]]:
        return Graphed, (self._function, self._policy, self._gradients)

    def __call__(self, *arguments: Any) -> Any:
        """The function's results, in new tensors. Gradients replace those of the policy's parameters.

        The next call writes over the gradients.
        """
        if torch.is_grad_enabled() and not self._gradients:
            return self._function(*arguments)
        if not self._parameters:
            self._parameters = list(self._policy.parameters())
            self._weights = [*self._parameters, *self._policy.buffers()]
        used = self._policy.recorded_settings(), tuple(each.data_ptr() for each in self._weights)
        if used != self._used:
            self.clear()
            self._used = used
        key = _signature(arguments)
        if key in self._recordings:
            self._recordings.move_to_end(key)
        else:
            while len(self._recordings) >= KEPT:
                self._recordings.popitem(last=False)
            with torch.inference_mode(False), torch.set_grad_enabled(self._gradients):
                self._recordings[key] = self._record(_mapped(torch.clone, arguments))
        recording = self._recordings[key]
        _copy(arguments, recording.arguments)
        recording.replay()
        for parameter, gradient in zip(self._parameters, recording.gradients, strict=self._gradients):
            if gradient is not None:
                parameter.grad = gradient
        return _mapped(torch.clone, recording.results)

    def clear(self) -> None:
        """Free the memory of all recordings."""
        self._recordings.clear()

    def _record(self, arguments: tuple[Any, ...]) -> Recording:
        device = self._policy.device
        parameters = self._parameters if self._gradients else []

        def run() -> tuple[Any, list[Tensor | None]]:
            for parameter in parameters:
                parameter.grad = None
            results = self._function(*arguments)
            return results, [parameter.grad for parameter in parameters]

        with _uncollected():
            (results, found), replay = (_graph if device.type == "cuda" else _again)(run, device)
        return Recording(arguments, results, found, replay)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Collect garbage now, and none meanwhile: freeing another recording's graph would break the one in progress."""
    enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


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
