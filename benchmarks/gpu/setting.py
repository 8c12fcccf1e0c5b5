"""What a part of the benchmark runs on, and how large it is."""

from __future__ import annotations

import itertools
import math
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch

from benchmarks import machine
from benchmarks.gpu.results import Entry

TOOK = "took, s"
"""The name of a case's duration among its numbers."""
GRACE = 20.0
"""Seconds before the end of a part's time in which no case begins."""


@dataclass(frozen=True)
class Setting:
    """A device, the time that a part may take, and a function that keeps its results as they come."""

    device: torch.device
    keep: Callable[[Entry], None]
    seconds: float
    started: float = field(default_factory=time.perf_counter)

    @property
    def small(self) -> bool:
        """Whether it only runs the logic: without a GPU nothing is measured."""
        return self.device.type != "cuda"

    def cases(self, cases: Mapping[str, Callable[[], Mapping[str, Any]]]) -> None:
        """Run the cases in turn, the most important first, and keep their numbers.

        None begins in the last `GRACE` seconds, and one that runs at the end of the time is stopped. A case that fails
        for lack of memory, or has numbers that are not finite, is kept with its error.
        """
        for name, case in cases.items():
            if self.elapsed >= self.seconds - GRACE:
                self.keep(Entry(name, {}, "not begun: the time was up"))
                continue
            began = time.perf_counter()
            try:
                with _alarm(self.seconds - self.elapsed):
                    numbers, error = dict(case()), ""
            except RuntimeError as caught:  # torch's errors of memory and of CUDA
                lines = str(caught).strip().splitlines() or ["no message"]
                numbers, error = {}, f"{type(caught).__name__}: {lines[0][:200]}"
            wrong = [each for each, number in numbers.items() if not math.isfinite(number)]
            if wrong:
                numbers, error = {}, f"not finite: {', '.join(wrong)}"
            if self.device.type == "cuda":
                torch.cuda.empty_cache()
            self.keep(Entry(name, {**numbers, TOOK: time.perf_counter() - began}, error))

    @property
    def elapsed(self) -> float:
        """Seconds since the part began."""
        return time.perf_counter() - self.started

    def clock(self) -> float:
        """Wall-clock seconds, once the device has done all that was asked of it."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        return time.perf_counter()


@contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    """Raise RuntimeError in the block after so many seconds."""

    def ring(*_: Any) -> None:
        raise RuntimeError("stopped: it took too long")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def describe(device: torch.device) -> dict[str, Any]:
    """The machine with its device, torch and CUDA."""
    gpu: dict[str, Any] = {"gpu": None, "gpu_memory": None}
    if device.type == "cuda":
        found = torch.cuda.get_device_properties(device)
        gpu = {"gpu": found.name, "gpu_memory": round(found.total_memory / 2**30, 1)}
    return machine.describe() | gpu | {"torch": torch.__version__, "cuda": torch.version.cuda}


def alternatives(setting: Setting, small: Any, full: Any) -> Any:
    """The sizes of a part: small ones where there is no GPU."""
    return small if setting.small else full


def products(*axes: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """All combinations, those of first entries first: where time runs out, the large ones are missing."""
    places = sorted(itertools.product(*(range(len(axis)) for axis in axes)), key=sum)
    return [tuple(axis[number] for axis, number in zip(axes, place, strict=True)) for place in places]
