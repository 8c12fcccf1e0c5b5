"""The time and the battles that a run has taken, and the shares of its budgets that are left."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import torch
from stable_baselines3.common.callbacks import BaseCallback

from echelon_train.ppo import distributed
from echelon_train.runs.callbacks.statistics import BattleStatistics


@dataclass(frozen=True)
class ClockState:
    """The wall-clock time and the processor time of a run, in seconds."""

    seconds: float
    cpu_seconds: float


class ClockCallback(BaseCallback):  # type: ignore[misc]
    """Counts the time and the battles of a run, over all its parts and processes, and logs the processor time.

    A part counts from the construction of this object. What a killed run did after its last checkpoint does not count.

    Parameters
    ----------
    steps
        Samples of the whole run.
    max_minutes
        Minutes of wall-clock time after which the run ends; 0: no limit.
    max_cpu_minutes
        Minutes of processor time of all processes after which the run ends; 0: no limit.
    max_battles
        Finished battles after which the run ends; 0: no limit.
    statistics
        Counts the battles of this process.
    """

    def __init__(
        self, steps: int, max_minutes: float, max_cpu_minutes: float, max_battles: int, statistics: BattleStatistics
    ) -> None:
        super().__init__()
        self._steps, self._limit = steps, 60.0 * max_minutes or math.inf
        self._statistics = statistics
        self._start, self._cpu_start = time.monotonic(), time.process_time()
        self._part = (self._start, 0, 0, 0.0)  # seconds, samples, battles and processor minutes when training started
        self._max_cpu_minutes = max_cpu_minutes or math.inf
        self.max_battles = max_battles or math.inf
        """Finished battles after which the run ends, or infinity."""
        self.battles = 0
        """Finished battles of all processes at the end of the last rollout."""
        self.cpu_minutes = 0.0
        """Processor minutes of all processes of the run so far, as last logged."""

    @property
    def seconds(self) -> float:
        """Wall-clock seconds of the run so far."""
        return time.monotonic() - self._start

    def is_up(self) -> bool:
        """Whether the battles or a time are used up, the time in any process; all call it at the same moment."""
        time_is_up = self._limit < math.inf and distributed.any_true(self.seconds >= self._limit)
        return time_is_up or self.battles >= self.max_battles or self.cpu_minutes >= self._max_cpu_minutes

    def remaining(self) -> float:
        """The share of the time, the processor time or the battles that is left, whichever is smallest, from 1 to 0.

        All processes call it at the same time.
        """
        left = 1.0 - self._counted()
        if self._limit < math.inf:
            left = distributed.broadcast_object(lambda: min(1.0 - self.seconds / self._limit, left))
        return max(left, 0.0)

    def done(self, steps: int) -> float:
        """The share of the run that is done after `steps` samples now, from 0 to 1."""
        return min(max(steps / self._steps, self.seconds / self._limit, self._counted()), 1.0)

    def used_up(self, steps: int) -> str:
        """The budget that is used up after `steps` samples now; empty if there is none."""
        for used, budget, unit in (
            (steps, self._steps, "decisions"),
            (self.seconds / 60.0, self._limit / 60.0, "minutes"),
            (self.cpu_minutes, self._max_cpu_minutes, "CPU minutes"),
            (self.battles, self.max_battles, "games"),
        ):
            if used >= budget:
                numbers = (f"{round(each, 1):,}".removesuffix(".0") for each in (used, budget))
                return f"{' of '.join(numbers)} {unit} are used"
        return ""

    def _counted(self) -> float:
        """The share of the battles or of the processor time that is done, which all processes know."""
        return max(self.battles / self.max_battles, self.cpu_minutes / self._max_cpu_minutes)

    def seconds_left(self, steps: int) -> float:
        """Seconds until the run ends, after `steps` samples now, from the mean rates since training started.

        Infinity before the first sample of a run without a limit of time.
        """
        started, first, battles, minutes = self._part
        seconds, left = time.monotonic() - started, [self._limit - self.seconds]
        for count, before, total in (
            (steps, first, self._steps),
            (self.battles, battles, self.max_battles),
            (self.cpu_minutes, minutes, self._max_cpu_minutes),
        ):
            if count > before:
                left.append((total - count) * seconds / (count - before))
        return max(min(left), 0.0)

    @property
    def state(self) -> ClockState:
        """The times of the run so far, in this process."""
        return ClockState(self.seconds, self._cpu_seconds)

    def restore(self, state: ClockState) -> None:
        """Add the times of earlier parts of the run."""
        self._start -= state.seconds
        self._cpu_start -= state.cpu_seconds

    def record(self) -> None:
        """Log the processor time; all processes call it at the same time."""
        self._gather()
        self.logger.record("time/cpu_minutes", self.cpu_minutes)

    def _gather(self) -> None:
        """Add up the processor times and the battles of all processes."""
        own = torch.tensor([self._cpu_seconds, self._statistics.state.num_battles], dtype=torch.float64)
        seconds, battles = distributed.all_reduce_sum(own).tolist()
        self.cpu_minutes, self.battles = seconds / 60.0, round(battles)

    @property
    def _cpu_seconds(self) -> float:
        return time.process_time() - self._cpu_start

    def _on_training_start(self) -> None:
        self._gather()
        self._part = (time.monotonic(), self.model.num_timesteps, self.battles, self.cpu_minutes)

    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        self.record()
