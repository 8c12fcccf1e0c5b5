"""The runs of a method, which are a line of a table: scores with intervals, and what the training took."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.baselines.plan import ABLATIONS, SUITE, TRAINED, champion_cost
from echelon_env.config.opponent import CHAMPION
from echelon_env.evaluate.estimates import Interval, interquartile_mean, score_interval, stratified_bootstrap
from echelon_env.evaluate.players import BASELINES

_SCORES = {"W": 1.0, "D": 0.5, "L": 0.0}


@dataclass(frozen=True)
class Entry:
    """The runs of one method in one scenario."""

    scenario: str
    method: str
    rows: tuple[Mapping[str, Any], ...]  # by seed

    @property
    def title(self) -> str:
        """What the table calls the method."""
        if self.method in TRAINED:
            return TRAINED[self.method].title
        return f"`{self.method}`" if self.method in BASELINES else str(self.method)

    @property
    def trained(self) -> bool:
        """Whether the table trains it; else it is a reference."""
        return self.method in TRAINED

    @property
    def opponents(self) -> list[str]:
        """The opponents that it has played, in the suite's order."""
        return [*self.rows[0]["outcomes"][self.scenario]]

    def score(self, opponent: str) -> Interval:
        """The mean score against an opponent, the mean of the runs, with an interval over the maps."""
        return score_interval({self.scenario: self._by_map(opponent).mean(axis=0)})

    @cached_property
    def scores(self) -> NDArray[np.float64]:
        """(runs, maps): the score of every map, the mean over the opponents."""
        means: NDArray[np.float64] = np.mean([self._by_map(opponent) for opponent in self.opponents], axis=0)
        return means

    @property
    def mean(self) -> Interval:
        """The mean score with an interval over the maps."""
        return score_interval({self.scenario: self.scores.mean(axis=0)})

    @property
    def iqm(self) -> Interval:
        """The interquartile mean of the scores of all runs and maps, with an interval over the maps."""
        strata = {str(number): scores for number, scores in enumerate(self.scores)}
        maps = dict.fromkeys(strata, range(self.scores.shape[1]))
        return stratified_bootstrap(strata, interquartile_mean, maps=maps)

    @property
    def iqm_of_runs(self) -> list[float]:
        """The interquartile mean of each run."""
        return [float(interquartile_mean(scores)) for scores in self.scores]

    @property
    def cost(self) -> tuple[float, float] | None:
        """Decisions and minutes of training, the mean of the runs; None for players that are not trained."""
        if self.method == CHAMPION:
            return champion_cost(self.scenario)
        if "decisions" not in self.rows[0]:
            return None
        decisions, minutes = np.mean([(row["decisions"], row["cpu_minutes"]) for row in self.rows], axis=0)
        return float(decisions), float(minutes)

    def _by_map(self, opponent: str) -> NDArray[np.float64]:
        """(runs, maps): the mean score of a map's two battles."""
        played = [[_SCORES[each] for each in row["outcomes"][self.scenario][opponent]] for row in self.rows]
        means: NDArray[np.float64] = np.array(played).reshape(len(self.rows), -1, 2).mean(axis=2)
        return means


def entries(
    rows: Iterable[Mapping[str, Any]], scenario: str, suite: str | None = SUITE, ablations: bool = False
) -> list[Entry]:
    """The methods of a scenario, or the ablations in it, the best first."""
    runs: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        if (row["scenario"], row["suite"], row["method"] in ABLATIONS) == (scenario, suite, ablations):
            runs.setdefault(row["method"], []).append(row)
    found = [
        Entry(scenario, method, tuple(sorted(each, key=lambda row: row["seed"] or 0))) for method, each in runs.items()
    ]
    return sorted(found, key=lambda entry: -entry.mean.estimate)


def in_percent(interval: Interval) -> str:
    """An estimate with its interval, where it has one."""
    low, high = round(100 * interval.low), round(100 * interval.high)
    return f"{100 * interval.estimate:.1f} [{low}, {high}]" if low < high else f"{100 * interval.estimate:.1f}"
