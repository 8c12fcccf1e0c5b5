"""Samples per second of the training loop, where its time goes, and the share of it in which the GPU is idle."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any
from unittest import mock

import torch

from benchmarks.gpu.setting import Setting, alternatives, products
from benchmarks.gpu.training import Trainer, config_of

ITERATIONS = 5
"""That are timed, after one that warms up: medians of them count."""
PARTS = (
    "copying observations", "policy", "opponents", "engine", "rest of collecting", "gradients", "optimizer",
    "rest of the update",
)  # fmt: skip
"""In the order of an iteration. Gradients are with the samples of their minibatches."""
IDLE = "GPU idle, %"
WAYS: dict[str, dict[str, Any]] = {
    "sparse": {"dense": False},
    "dense": {"dense": True, "compile_mode": "off"},
    "CUDA graphs": {"dense": True, "compile_mode": "graphs"},
}
"""Ways of computing the same."""


def speed(setting: Setting) -> None:
    """Measure the shipped way at all sizes, and the other ways at one of them."""
    battles = alternatives(setting, (2, 4), (64, 512, 2048))
    widths = alternatives(setting, (8,), (128, 512))
    sizes = products(("skirmish", "battle"), widths, battles)
    cases: dict[str, Callable[[], dict[str, Any]]] = {
        f"{scenario}, {count} battles, width {width}": partial(measure, setting, scenario, count, width)
        for scenario, width, count in sizes
    }
    at = alternatives(setting, 2, 512)
    ways = alternatives(setting, ("dense",), ("sparse", "dense"))  # CUDA graphs are the shipped way on a GPU
    others: dict[str, Callable[[], dict[str, Any]]] = {
        f"{way}, skirmish, {at} battles, width {widths[0]}": partial(
            measure, setting, "skirmish", at, widths[0], **WAYS[way]
        )
        for way in ways
    }
    first = {name: cases[name] for name in list(cases)[:3]}
    setting.cases(first | others | cases)


def measure(setting: Setting, scenario: str, battles: int, width: int, **arguments: Any) -> dict[str, Any]:
    """Samples per second of an iteration and its halves, shares of the time, idleness and memory of the GPU."""
    if not setting.small:
        torch.cuda.reset_peak_memory_stats(setting.device)
    trainer = Trainer(setting, config_of(setting, scenario, battles, width), **arguments)
    try:
        trainer.collect()
        trainer.train()
        count = alternatives(setting, 1, ITERATIONS)
        seconds: dict[str, list[float]] = {"collecting, s": [], "update, s": []}
        for _ in range(count):
            for name, half in zip(seconds, (trainer.collect, trainer.train), strict=True):
                started = setting.clock()
                half()
                seconds[name].append(setting.clock() - started)
        medians = {name: statistics.median(taken) for name, taken in seconds.items()}
        whole = sum(medians.values())
        numbers = {
            "samples/s": trainer.samples / whole,
            **medians,
            **shares(setting, trainer),
        }
        if not setting.small:
            numbers[IDLE] = 100 * (1 - busy(trainer) / whole)
            reserved = torch.cuda.max_memory_reserved(setting.device)  # also what CUDA graphs keep
            numbers["GPU memory at the peak, GB"] = reserved / 1e9
        return numbers
    finally:
        trainer.close()


def shares(setting: Setting, trainer: Trainer) -> dict[str, float]:
    """Percent of an iteration by part. The GPU is waited for after every part, so parts do not overlap."""
    with timed(trainer.model, setting.clock) as watch:
        trainer.collect()
        watch.lap("rest of collecting")
        trainer.train()
        watch.lap("rest of the update")
    whole = sum(watch.seconds.values())
    return {f"{name}, %": 100 * watch.seconds[name] / whole for name in PARTS}


class Stopwatch:
    """Time by what it was spent on: each lap is what has passed since the last one, on the clock that is given."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self._clock = clock
        self._last = clock()

    def lap(self, name: str) -> None:
        """Count the time since the last lap under a name."""
        now = self._clock()
        self.seconds[name] += now - self._last
        self._last = now

    def around(self, function: Callable[..., Any], before: str, within: str) -> Callable[..., Any]:
        """The function, with laps when it begins and when it ends."""

        def timed(*args: Any, **kwargs: Any) -> Any:
            self.lap(before)
            result = function(*args, **kwargs)
            self.lap(within)
            return result

        return timed


@contextmanager
def timed(model: Any, clock: Callable[[], float]) -> Iterator[Stopwatch]:
    """A stopwatch for the `PARTS` of what a model does meanwhile."""
    watch = Stopwatch(clock)
    collecting, update = "rest of collecting", "rest of the update"
    battles = model.env.battles
    patches = [
        (model.collector.staging, "to_device", collecting, "copying observations"),
        (model.collector, "_decide", collecting, "policy"),
        (battles, "_act", collecting, "opponents"),
        (battles.engine, "advance", collecting, "engine"),
        (model.update, "_backward", update, "gradients"),
        (model.update, "_apply", update, "optimizer"),
    ]
    with ExitStack() as stack:
        for owner, name, before, within in patches:
            stack.enter_context(mock.patch.object(owner, name, watch.around(getattr(owner, name), before, within)))
        yield watch


def busy(trainer: Trainer) -> float:
    """Seconds in which the GPU computes or copies during an iteration, by CUDA's own records."""
    activities = [torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profile:
        trainer.collect()
        trainer.train()
        torch.cuda.synchronize()
    return union([
        (event.time_range.start, event.time_range.end)
        for event in profile.events() or ()
        if event.device_type.name == "CUDA"
    ]) / 1e6  # fmt: skip


def union(spans: list[tuple[float, float]]) -> float:
    """The length of the union of spans of time: streams may overlap."""
    total, until = 0.0, float("-inf")
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, until))
        until = max(until, end)
    return total
