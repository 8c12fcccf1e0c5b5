"""CUDA graphs: a function's kernels are recorded once and replayed, because launching them one by one takes longer."""

from __future__ import annotations

import gc
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from echelon_train.config.ppo import COMPILE_MODES, CompileMode
from echelon_train.policy.sequences import SequencePolicy

WARM_UP = 3
"""Calls before the recording, in which torch chooses kernels and makes tables."""


KEPT = 2
"""Recordings of a function that are kept: minibatches have at most two sizes."""


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

    It must not wait for the GPU or draw random numbers, and calling it several times must change what one call changes:
    it is called `WARM_UP` times before the recording. The last `KEPT` recordings keep their memory. On the CPU
    nothing is recorded: the function is called again.

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
    harmless
        Given the arguments of a call, those with which the function changes nothing, for the calls before a recording.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        policy: Recordable,
        gradients: bool = False,
        harmless: Callable[[tuple[Any, ...]], tuple[Any, ...]] | None = None,
    ) -> None:
        self._function, self._policy, self._gradients, self._harmless = function, policy, gradients, harmless
        self._parameters: list[Tensor] = []
        self._weights: list[Tensor] = []
        self._used: Hashable = None
        self._recordings: OrderedDict[Hashable, Recording] = OrderedDict()  # in the order in which they were last used

    def __call__(self, *arguments: Any) -> Any:
        """The function's results. Gradients replace those of the policy's parameters.

        The next call writes over both.
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
                given = arguments if self._harmless is None else self._harmless(arguments)
                self._recordings[key] = self._record(_mapped(torch.clone, given))
        recording = self._recordings[key]
        _copy(arguments, recording.arguments)
        recording.replay()
        for parameter, gradient in zip(self._parameters, recording.gradients, strict=self._gradients):
            if gradient is not None:
                parameter.grad = gradient
        return recording.results

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


def is_recorded(policy: SequencePolicy, mode: CompileMode) -> bool:
    """Whether the decisions and updates of a policy are recorded in CUDA graphs.

    ``auto`` is ``graphs`` for a dense policy on CUDA that can be recorded, else ``off``. Raises ValueError for a policy
    that is not dense or cannot be recorded, if that is needed, and for another mode.
    """
    if mode not in COMPILE_MODES:
        raise ValueError(f"compile_mode: expected one of {', '.join(COMPILE_MODES)}, got {mode!r}")
    if mode == "auto":
        return policy.dense and policy.can_be_recorded and policy.device.type == "cuda"
    if mode == "graphs" and not policy.dense:
        raise ValueError(f"compile_mode: {mode!r} needs a dense policy, got {type(policy).__name__}")
    if mode == "graphs" and not policy.can_be_recorded:
        raise ValueError(f"compile_mode: the kernels of {type(policy).__name__} cannot be recorded")
    return mode == "graphs"


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
    """Copy the tensors of a value into those of another, all tensors of a dtype with one kernel."""
    groups: dict[torch.dtype, tuple[list[Tensor], list[Tensor]]] = {}
    for one, other in zip(_tensors(target), _tensors(source), strict=True):
        for group, each in zip(groups.setdefault(one.dtype, ([], [])), (one, other), strict=True):
            group.append(each)
    for targets, sources in groups.values():
        torch._foreach_copy_(targets, sources)


def _tensors(value: Any) -> Iterator[Tensor]:
    """The tensors of a value, in order."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _tensors(each)
    elif isinstance(value, (tuple, list)):
        for each in value:
            yield from _tensors(each)
