"""The time that a run has taken, and the share of it that is left."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any

import torch
from stable_baselines3.common.callbacks import BaseCallback

from echelon_env.config.schema import ConfigError
from echelon_train.ppo import distributed


class ClockCallback(BaseCallback):  # type: ignore[misc]
    """Counts the wall-clock and the processor time of a run, over all its parts, and logs the processor time.

    A part counts from the construction of this object. What a killed run did after its last checkpoint does not count.

    Parameters
    ----------
    steps
        Samples of the whole run.
    max_minutes
        Minutes of wall-clock time after which the run ends; 0: no limit.
    """

    def __init__(self, steps: int, max_minutes: float) -> None:
        super().__init__()
        self._steps, self._limit = steps, 60.0 * max_minutes or math.inf
        self._start, self._cpu_start = time.monotonic(), time.process_time()
        self.cpu_minutes = 0.0
        """Processor minutes of all processes of the run so far, as last logged."""

    @property
    def seconds(self) -> float:
        """Wall-clock seconds of the run so far."""
        return time.monotonic() - self._start

    def is_up(self) -> bool:
        """Whether the run's time is up in any of its processes; all call it at the same time."""
        return self._limit < math.inf and distributed.any_true(self.seconds >= self._limit)

    def remaining(self) -> float:
        """The share of the time that is left, from 1 to 0; all processes call it at the same time."""
        if self._limit == math.inf:
            return 1.0
        return max(distributed.broadcast_object(lambda: 1.0 - self.seconds / self._limit), 0.0)

    def done(self, steps: int) -> float:
        """The share of the run that is done after `steps` samples now, from 0 to 1."""
        return min(max(steps / self._steps, self.seconds / self._limit), 1.0)

    def seconds_left(self, seconds_of_steps: float) -> float:
        """Seconds until the run ends, if its steps take `seconds_of_steps` more."""
        return max(min(seconds_of_steps, self._limit - self.seconds), 0.0)

    def state_dict(self) -> dict[str, Any]:
        """The times of this process in seconds, for JSON."""
        return {"seconds": self.seconds, "cpu_seconds": self._cpu_seconds}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Add the times of earlier parts of the run, a `state_dict`.

        Raises `ConfigError`, with nothing changed, for an invalid one.
        """
        valid = isinstance(state, Mapping) and state.keys() == self.state_dict().keys()
        if not valid or any(type(each) is not float or not 0.0 <= each < math.inf for each in state.values()):
            raise ConfigError(f"clock: expected 'seconds' and 'cpu_seconds' of at least 0, got {state!r}")
        self._start -= state["seconds"]
        self._cpu_start -= state["cpu_seconds"]

    def record(self) -> None:
        """Log the processor time; all processes call it at the same time."""
        seconds = distributed.all_reduce_sum(torch.tensor(self._cpu_seconds, dtype=torch.float64))
        self.cpu_minutes = float(seconds) / 60.0
        self.logger.record("time/cpu_minutes", self.cpu_minutes)

    @property
    def _cpu_seconds(self) -> float:
        return time.process_time() - self._cpu_start

    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        self.record()
