"""Tasks of a league run: its learners, and when one that has died starts again."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from echelon_env.networks.checkpoint import LAST_FILE, MAX_NAME_BYTES
from echelon_env.storage.reading import read_regular_file
from echelon_train.runs.folder import RUN_FILE, is_locked
from echelon_train.supervisor.children import Child
from echelon_train.supervisor.plan import Agent, LeaguePlan, runs_folder

ATTEMPTS: Final = 5
"""Deaths without a new checkpoint in between after which a task counts as failed."""

FIRST_PAUSE, LAST_PAUSE = 5.0, 300.0
"""Seconds before the first restart, doubled at every further one; and the pause of a task that has failed."""

ENDLESS = 10**15
"""Decisions of exploiters beside main agents, with which they end."""

INTERRUPTED = 130  # exit code of a training that a signal has ended


class LearnerTask:
    """A learner of the league: a command that trains in a run folder, and continues there when it is started again.

    Its `state` is ``waiting``, ``running``, ``restarting``, ``stopping``, ``done`` or ``failed``, with the reason in
    `note`. A learner that has failed is tried again from time to time, for the reason may pass, such as a full disk.
    `has_main` returns whether the league has an active main agent.
    """

    def __init__(self, league: Path, plan: LeaguePlan, agent: Agent, has_main: Callable[[], bool]) -> None:
        self.league, self.plan, self.agent, self.name = league, plan, agent, agent.name
        self.folder = runs_folder(league) / agent.name
        self.log = self.folder.with_suffix(".log")
        self.state, self.note = "waiting", ""
        self._has_main = has_main
        self._child: Child | None = None
        self._attempts = _Attempts()

    def command(self) -> list[str]:
        """The arguments of `echelon` that start or continue it."""
        league, run = str(self.league), str(self.folder)
        decisions = ENDLESS if self.agent.role == "exploiter" and self.plan.main else self.plan.steps
        steps = ["--steps", str(decisions)] if decisions else []
        if (self.folder / RUN_FILE).exists():
            return ["train", "--resume", run, "--league", league, *steps]
        settings = [each for text in self.plan.settings for each in ("--set", text)]
        fresh = self.agent.role == "main" and self.plan.start  # an exploiter starts from its victim
        start = ["--init", f"{league}/{self.plan.start}"] if fresh else []
        role = ["--league", league, "--role", self.agent.role, "--agent", self.agent.name]
        seed = ["--seed", str(self.plan.seed + self.agent.number)]
        return ["train", self.plan.config, *role, *start, *seed, *settings, *steps, "--out", run]

    def missing(self) -> str:
        """What the league lacks that it needs; empty if nothing: an exploiter needs a main agent."""
        if self.agent.role == "exploiter" and not self._has_main():
            return "no snapshot of a main agent yet"
        return ""

    @property
    def alive(self) -> bool:
        """Whether its process runs."""
        return self._child is not None

    @property
    def over(self) -> bool:
        """Whether it will not start again."""
        return self.state == "done"

    @property
    def worked(self) -> bool:
        """Whether it has ever saved a checkpoint."""
        return bool(self._progress())

    def update(self, report: Callable[[str], None]) -> None:
        """Start it if it is due, and find out what has become of it. Errors of files are noted."""
        try:
            self._update(report)
        except OSError as error:  # such as a full disk, or one that fails
            self.note = str(error)

    def _update(self, report: Callable[[str], None]) -> None:
        if self._child is not None:
            code = self._child.poll()
            if code is not None:
                reason, self._child = self._child.reason(), None
                self._ended(code, reason, report)
        elif not self.over and self.state != "stopping" and self._attempts.due:
            self._start(report)

    def stop(self) -> None:
        """Ask it to save and end. It does not start again."""
        if not self.over:
            self.state = "stopping"
        if self._child is not None:
            self._child.stop()

    def kill(self) -> None:
        """End it at once."""
        if self._child is not None:
            self._child.kill()
            self._child = None

    def _start(self, report: Callable[[str], None]) -> None:
        self.note = self.missing()
        if not self.note and is_locked(self.folder):
            self.note = "another process still trains in its folder"
        if self.note:
            self.state = "waiting"
            return
        try:
            self._attempts.begin(self._progress())
            self._child = Child(self.command(), self.log)
        except OSError as error:
            self._failed(f"cannot start: {error.strerror or error}", report)
        else:
            self.state = "running"

    def _ended(self, code: int, reason: str, report: Callable[[str], None]) -> None:
        if self.state == "stopping":
            return
        if code == 0:
            self.state = "done"
            report(f"{self.name} is done")
        elif code < 0:
            self._failed(f"killed by signal {-code}", report)
        elif code == INTERRUPTED:
            self._failed("stopped by a signal", report)
        else:
            self._failed(reason or f"exit code {code}", report)

    def _failed(self, reason: str, report: Callable[[str], None]) -> None:
        pause = self._attempts.end(self._progress())
        self.note = reason
        if self._attempts.failures < ATTEMPTS:
            self.state = "restarting"
            report(f"{self.name}: {reason}; it starts again in {pause:g} s")
            return
        if self.state != "failed" and self._attempts.failures == ATTEMPTS:
            again = f"from now on it starts again every {pause:g} s"
            report(f"{self.name}: failed {ATTEMPTS} times without a checkpoint: {reason}; {again}")
        self.state = "failed"

    def _progress(self) -> str:
        """What changes with every checkpoint."""
        try:
            return read_regular_file(self.folder / LAST_FILE, MAX_NAME_BYTES).decode(errors="replace")
        except (OSError, ValueError):
            return ""


@dataclass
class _Attempts:
    """The restarts of a task since its last checkpoint."""

    failures: int = 0
    next: float = -math.inf  # when it may start
    progress: str = ""

    @property
    def due(self) -> bool:
        return time.monotonic() >= self.next

    def begin(self, progress: str) -> None:
        self.progress = progress

    def end(self, progress: str) -> float:
        """Seconds until the next attempt."""
        self.failures = 1 if progress != self.progress else self.failures + 1
        pause = FIRST_PAUSE * 2.0 ** (self.failures - 1) if self.failures < ATTEMPTS else LAST_PAUSE
        self.next = time.monotonic() + pause
        return pause
