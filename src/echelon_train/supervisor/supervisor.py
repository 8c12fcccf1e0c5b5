"""The supervisor of a league: it starts, watches and ends everything that a league run does."""

from __future__ import annotations

import contextlib
import datetime
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from echelon_env.storage.reading import without_waiting
from echelon_train.errors import RunFolderError
from echelon_train.league.errors import LeagueError
from echelon_train.league.playing.executors import Executor
from echelon_train.league.store.registry import League, Standing
from echelon_train.runs.folder import locked
from echelon_train.supervisor.metrics import Progress, read_progress
from echelon_train.supervisor.plan import LeaguePlan, runs_folder, write_plan
from echelon_train.supervisor.ratings import Ratings, newest_snapshots
from echelon_train.supervisor.tasks import LearnerTask

LOG_FILE = "run.log"
POLL_SECONDS = 1.0
READ_SECONDS = 5.0
"""Time between two reads of the league for the display."""

EVENTS = 200
"""Lines of the log that a status has."""

STOP_SECONDS = 180.0
"""Time for all tasks to save and end before they are killed."""


@dataclass(frozen=True)
class TaskStatus:
    """A learner at a moment."""

    name: str
    state: str  # see `tasks.LearnerTask`
    note: str
    progress: Progress


@dataclass(frozen=True)
class Status:
    """What a league run does at a moment, for display."""

    league: Path
    until_rd: float  # points, see `LeaguePlan`
    stage: int  # decisions
    seconds: float  # since the start
    seconds_left: float | None  # None: no limit
    learners: Sequence[TaskStatus]
    ratings: str  # what the rating thread does
    matches: int  # recorded by this run
    standings: Sequence[Standing]
    champion: str | None
    events: Sequence[tuple[int, str]]  # the last lines of the log, with their numbers


class Supervisor:
    """Keeps a league going for `max_minutes` of wall-clock time, until its learners are done, or until `stop`.

    The plan is written into the league. The executor plays the matches; the supervisor closes it. Raises ConfigError
    and OSError for a run config that cannot be used.
    """

    def __init__(self, league: League, plan: LeaguePlan, executor: Executor, max_minutes: float | None = None) -> None:
        self._league, self._plan, self._executor = league, plan, executor
        self._limit = None if max_minutes is None else 60.0 * max_minutes
        self._folder = runs_folder(league.path)
        self._log: TextIO | None = None
        self._events: deque[tuple[int, str]] = deque(maxlen=EVENTS)
        self._reported = 0
        self._lock = threading.Lock()
        self._stops = 0
        self._display_failed = False
        self._members: dict[str, str] = {}  # kinds of the active members, by name
        self._standings: Sequence[Standing] = ()
        self._champion: str | None = None
        self._read_at = 0.0
        self._learners = [LearnerTask(league.path, plan, agent, self._has_main) for agent in plan.agents]
        config = plan.run_config()
        self._stage, self._steps = config.league.stage, config.steps
        self._ratings = Ratings(league, plan, config, executor, self.report)
        self._start = time.monotonic()

    def run(self, show: Callable[[Status], None]) -> bool:
        """Keep the league going; `show` gets the status every second. Returns whether `stop` has ended it.

        Raises
        ------
        LeagueError
            If another process runs this league, and if all learners have failed.
        OSError
            If the league's folder cannot be written.
        """
        self._folder.mkdir(exist_ok=True)
        log = self._folder / LOG_FILE
        with _only_supervisor(self._folder), open(log, "a", encoding="utf-8", opener=without_waiting) as self._log:
            write_plan(self._league.path, self._plan)
            try:
                self.report("the league run begins")
                self._report_first_snapshot()
                self._ratings.start()
                while not self._is_over():
                    self._update()
                    self._display(show)
                    time.sleep(POLL_SECONDS)
                hopeless = self._is_hopeless()
                failed = [f"{task.name}: {task.note}" for task in self._learners if task.state == "failed"]
                reason = f"all learners that could start have failed; {' '.join(failed[-1:])}"
            finally:
                self._end(show)
            if hopeless:
                raise LeagueError(reason)
        return self._stops > 0

    def stop(self) -> None:
        """Save and end everything; a second call kills what has not ended. Any thread may call it."""
        self._stops += 1

    def report(self, line: str) -> None:
        """Add a line to the log. Any thread may call it."""
        stamped = f"{datetime.datetime.now():%m-%d %H:%M:%S} {line}"
        with self._lock:
            self._events.append((self._reported, stamped))
            self._reported += 1
            if self._log is not None:
                with contextlib.suppress(OSError, ValueError):  # a full disk must not end the run; a closed file
                    print(stamped, file=self._log, flush=True)

    def status(self) -> Status:
        """The present status."""
        seconds = time.monotonic() - self._start
        return Status(
            league=self._league.path,
            until_rd=self._plan.until_rd,
            stage=self._stage,
            seconds=seconds,
            seconds_left=None if self._limit is None else max(0.0, self._limit - seconds),
            learners=[_status(task) for task in self._learners],
            ratings=self._ratings.status,
            matches=self._ratings.matches,
            standings=self._standings,
            champion=self._champion,
            events=[*self._events],
        )

    def _report_first_snapshot(self) -> None:
        """Say when the first snapshot of a learner comes, unless the league has one."""
        learners = {task.name for task in self._learners}
        if any(each.name.rpartition("-")[0] in learners for each in self._league.members()):
            return
        self.report(
            f"learners add their first snapshots after {min(self._stage, self._steps):,} decisions; for another number "
            "start a new league with --set league.stage=N"
        )

    def _has_main(self) -> bool:
        return "main" in self._members.values()

    def _is_over(self) -> bool:
        """Whether the run ends: `stop`, its time, no learner that the others are there for, or no new champion."""
        if self._is_hopeless():
            return True
        if self._plan.patience and self._ratings.waited >= self._plan.patience:
            self.report(f"no new champion among {self._ratings.waited} snapshots (--patience): the run ends")
            return True
        if self._stops or (self._limit is not None and time.monotonic() - self._start >= self._limit):
            return True
        leading = [task for task in self._learners if task.agent.role == "main"] or self._learners
        return all(task.state == "done" for task in leading) and self._are_eligible()

    def _are_eligible(self) -> bool:
        """Whether the last snapshots of the main agents are eligible for the title, or will never be."""
        exploiters = [task for task in self._learners if task.agent.role == "exploiter"]
        if exploiters and all(task.state in ("done", "failed") for task in exploiters):
            return True
        last = {each.name for each in newest_snapshots(self._league.members()) if each.kind == "main"}
        return last <= self._ratings.eligible

    def _is_hopeless(self) -> bool:
        """Whether all learners have failed before their first checkpoint: a fault of the plan, not of the machine.

        Those that wait for a snapshot of another one cannot help.
        """
        states = {task.state for task in self._learners}
        return (
            "failed" in states and states <= {"failed", "waiting"} and not any(each.worked for each in self._learners)
        )

    def _display(self, show: Callable[[Status], None]) -> None:
        """Show the status. A display that fails, such as a closed pipe or a full disk, does not end the run."""
        try:
            show(self.status())
        except Exception as error:
            if not self._display_failed:
                self._display_failed = True
                self.report(f"the display fails: {error!r}")

    def _update(self) -> None:
        if time.monotonic() - self._read_at >= READ_SECONDS:
            self._read_league()
        for task in self._learners:
            task.update(self.report)

    def _read_league(self) -> None:
        """Read the league; a failure is shown, and the last state stays."""
        self._read_at = time.monotonic()
        try:
            standings, champion = self._league.standings(), self._league.champion()
        except (LeagueError, OSError) as error:
            self.report(f"the league cannot be read: {error}")
            return
        members = [each.member for each in standings]
        active: dict[str, str] = {each.name: each.kind for each in members if each.state == "active"}
        if self._members:
            for member in sorted(members, key=lambda each: each.id):
                if member.name not in self._members and member.name in active:
                    self.report(f"{member.name} joins, after {member.age:,} decisions")
        self._members, self._standings = active, standings
        self._champion = champion.name if champion else None

    def _end(self, show: Callable[[Status], None]) -> None:
        """Stop all tasks and the matches. A second `stop`, or a long wait, kills what is left."""
        self.report("stopping: all learners save")
        self._ratings.stop()
        for task in self._learners:
            task.stop()
        before, deadline = max(1, self._stops), time.monotonic() + STOP_SECONDS
        try:
            while any(task.alive for task in self._learners) or not self._ratings.join(0.0):
                if self._stops > before or time.monotonic() >= deadline:
                    break
                for task in self._learners:
                    task.update(self.report)
                self._display(show)
                time.sleep(POLL_SECONDS / 2)
        finally:
            for task in self._learners:
                task.kill()
            self._executor.close()
        with contextlib.suppress(LeagueError, OSError):
            self._league.rate_matches()
            self._read_league()
        self.report("the league run ends")
        self._display(show)


def _status(task: LearnerTask) -> TaskStatus:
    return TaskStatus(task.name, task.state, task.note, read_progress(task.folder))


@contextlib.contextmanager
def _only_supervisor(folder: Path) -> Iterator[None]:
    """Hold the lock of a league's runs during the block. Raises LeagueError if another process holds it, OSError."""
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(locked(folder))
        except RunFolderError:
            raise LeagueError(f"{folder.parent}: another process runs this league") from None
        yield
