"""The time and the battles that a run has taken, and the shares of its budgets that are left."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import torch
from stable_baselines3.common.callbacks import BaseCallback

from echelon_train.config.train import TrainConfig
from echelon_train.ppo import distributed
from echelon_train.runs.callbacks.results import BattleResults


@dataclass(frozen=True)
class ClockState:
    """The wall-clock time and the processor time of a run, in seconds."""

    seconds: float
    cpu_seconds: float


class ClockCallback(BaseCallback):  # type: ignore[misc]
    """Counts the time and the battles of a run, over all its parts and processes, and logs the processor time.

    A part counts from the construction of this object. What a killed run did after its last checkpoint does not count.
    `results` counts the battles of this process.
    """

    def __init__(self, config: TrainConfig, results: BattleResults) -> None:
        super().__init__()
        self._results = results
        self._limits = {
            "decisions": config.steps,
            "minutes": config.max_minutes or math.inf,
            "CPU minutes": config.max_cpu_minutes or math.inf,
            "games": config.max_battles or math.inf,
        }
        self._start, self._cpu_start = time.monotonic(), time.process_time()
        self.battles = 0
        """Finished battles of all processes at the end of the last rollout."""
        self.cpu_minutes = 0.0
        """Processor minutes of all processes of the run so far, as last logged."""
        self._part = (self._start, self._used(0))  # seconds, and what was used, when training started

    @property
    def max_battles(self) -> float:
        """Finished battles after which the run ends, or infinity."""
        return self._limits["games"]

    @property
    def seconds(self) -> float:
        """Wall-clock seconds of the run so far."""
        return time.monotonic() - self._start

    def is_up(self) -> bool:
        """Whether the battles or a time are used up, the time in any process; all call it at the same moment."""
        limit = self._limits["minutes"]
        time_is_up = limit < math.inf and distributed.any_true(self.seconds / 60.0 >= limit)
        return time_is_up or self._counted() >= 1.0

    def remaining(self) -> float:
        """The share of the time, the processor time or the battles that is left, whichever is smallest, from 1 to 0.

        All processes call it at the same time.
        """
        left, limit = 1.0 - self._counted(), self._limits["minutes"]
        if limit < math.inf:
            left = distributed.broadcast_object(lambda: min(1.0 - self.seconds / (60.0 * limit), left))
        return max(left, 0.0)

    def done(self, steps: int) -> float:
        """The share of the run that is done after `steps` samples now, from 0 to 1."""
        return min(max(used / self._limits[unit] for unit, used in self._used(steps).items()), 1.0)

    def used_up(self, steps: int) -> str:
        """The budget that is used up after `steps` samples now; empty if there is none."""
        for unit, used in self._used(steps).items():
            if used >= self._limits[unit]:
                numbers = (f"{round(each, 1):,}".removesuffix(".0") for each in (used, self._limits[unit]))
                return f"{' of '.join(numbers)} {unit} are used"
        return ""

    def seconds_left(self, steps: int) -> float:
        """Seconds until the run ends, after `steps` samples now, from the mean rates since training started.

        Infinity before the first sample of a run without a limit of time.
        """
        started, before = self._part
        seconds, left = time.monotonic() - started, [60.0 * self._limits["minutes"] - self.seconds]
        for unit, used in self._used(steps).items():
            if unit != "minutes" and used > before[unit]:
                left.append((self._limits[unit] - used) * seconds / (used - before[unit]))
        return max(min(left), 0.0)

    def _used(self, steps: int) -> dict[str, float]:
        """What is used of each budget after `steps` samples now."""
        minutes = self.seconds / 60.0
        return {"decisions": steps, "minutes": minutes, "CPU minutes": self.cpu_minutes, "games": self.battles}

    def _counted(self) -> float:
        """The share of the battles or of the processor time that is done, which all processes know."""
        return max(self.battles / self._limits["games"], self.cpu_minutes / self._limits["CPU minutes"])

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
        own = torch.tensor([self._cpu_seconds, self._results.state.num_battles], dtype=torch.float64)
        seconds, battles = distributed.all_reduce_sum(own).tolist()
        self.cpu_minutes, self.battles = seconds / 60.0, round(battles)

    @property
    def _cpu_seconds(self) -> float:
        return time.process_time() - self._cpu_start

    def _on_training_start(self) -> None:
        self._gather()
        self._part = (time.monotonic(), self._used(self.model.num_timesteps))

    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        self.record()
