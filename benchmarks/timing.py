"""Taking turns: what is compared is measured in the same minutes, round after round, and medians are kept."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)
Result = TypeVar("Result")


@dataclass(frozen=True)
class Effort:
    """How much time a benchmark may take."""

    quick: bool
    """Fewer sizes, nothing that compiles for half a minute."""
    rounds: int
    decisions: int
    """Of a recording: 480 are a battle's time limit."""


def interleaved(plays: Mapping[Key, Callable[[], Result]], rounds: int) -> dict[Key, list[Result]]:
    """What every function returned in each round; a first call of each, which may compile, is left out."""
    results: dict[Key, list[Result]] = {key: [] for key in plays}
    for number in range(rounds + 1):
        for key, play in plays.items():
            result = play()
            if number:
                results[key].append(result)
    return results


def spread(samples: Iterable[float]) -> float:
    """Half the distance between the quartiles over the median; 0 for a single sample."""
    values = sorted(samples)
    if len(values) < 2:
        return 0.0
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return (high - low) / 2 / statistics.median(values)


def spread_note(samples: Iterable[Iterable[float]]) -> str:
    """How far rounds lie apart, in words."""
    return f"Half of all rounds lie within {100 * max(map(spread, samples)):.0f} % of their row's median."


def tell(text: str) -> None:
    """Say on standard error what goes on."""
    print(text, file=sys.stderr, flush=True)
