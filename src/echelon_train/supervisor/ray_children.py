"""Learners and probes on the nodes of a Ray cluster: each is a process beside an actor, and its files come back.

A node needs the package, not the league's folder. The actor gets the files of the run, starts the same command as on
one machine, and hands back what has changed since it was last asked. If its node dies, the learner continues elsewhere
from the last checkpoint that has come back.
"""

from __future__ import annotations

import math
import os
import shutil
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from echelon_env.config.toml_file import MAX_BYTES
from echelon_env.networks.checkpoint import BEST_FILE, LAST_FILE, named_checkpoint
from echelon_env.storage.atomic import write_bytes
from echelon_env.storage.reading import read_regular_file
from echelon_train.checkpoints.checkpoint import checkpoint_name, checkpoints_to_resume
from echelon_train.runs.folder import LOCK_FILE
from echelon_train.supervisor.children import LocalChild, last_line
from echelon_train.supervisor.tasks import Task

LOST = 1
"""Exit code of a task whose node or process is lost."""

CHECKPOINTS_FOLDER = "checkpoints"
RUN, CONFIG = "RUN", "CONFIG"
"""What stands in a command for the folder of the run and for the file of the run config on the node."""

SEND_SECONDS = 30.0
"""Time between two transfers of metrics; a new checkpoint comes back at once."""

CLEAN_SECONDS = 10.0
"""Time for an actor to remove its files."""

NOT_SENT = ("tensorboard", "wandb", LOCK_FILE)
"""Entries of a run's folder that stay on the node."""

Files = dict[str, bytes]
"""Contents of files by their path in the run's folder."""


@dataclass(frozen=True)
class Report:
    """What an actor tells of its task."""

    code: int | None  # exit code; None while it runs
    reason: str  # the last line that it has printed
    changed: Files  # since the last report
    names: frozenset[str]  # of all files


class Runner:
    """Runs one task on a node. It is an actor."""

    def __init__(
        self, address: str, files: Mapping[str, bytes], config: bytes | None, command: list[str], nice: int
    ) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="echelon-run-"))
        self._run = self._folder / "run"
        self._log = self._run.with_suffix(".log")
        if files:
            write_files(self._run, files)
        replaced = {RUN: str(self._run)}
        if config is not None:
            replaced[CONFIG] = str(self._folder / "config.toml")
            Path(replaced[CONFIG]).write_bytes(config)
        self._sent_at = -math.inf
        self._sent: dict[str, tuple[int, int]] = stamps(self._run)
        self._last: bytes | None = None
        for name in [name for name in os.environ if name.startswith("RAY_")]:
            del os.environ[name]  # those of this worker: the child is a driver of its own
        os.environ["RAY_ADDRESS"] = address
        self._child = LocalChild([replaced.get(each, each) for each in command], self._log, nice)

    def report(self) -> Report:
        """The state of the task, with the files that have changed since the last call."""
        code = self._child.poll()  # before the files are read, so that the last report has all
        try:
            last = (self._run / LAST_FILE).read_bytes()
        except OSError:
            last = None
        now = stamps(self._run)
        changed: Files = {}
        if code is None and last == self._last and time.monotonic() - self._sent_at < SEND_SECONDS:
            return Report(code, last_line(self._log), changed, frozenset(now))
        self._last, self._sent_at = last, time.monotonic()
        for name, stamp in now.items():
            if self._sent.get(name) != stamp and name != LAST_FILE:
                try:
                    changed[name] = (self._run / name).read_bytes()
                except FileNotFoundError:  # replaced meanwhile: in the next report
                    continue
                self._sent[name] = stamp
        if last is not None:
            changed[LAST_FILE] = last
        return Report(code, last_line(self._log), changed, frozenset(now))

    def clean(self) -> None:
        """Remove the files of a task that has ended."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def stop(self) -> None:
        """Ask the task to save and end."""
        self._child.stop()


class RayChild:
    """See `echelon_train.supervisor.tasks.Child`: a task on some node."""

    def __init__(self, ray: Any, actor: Any, folder: Path) -> None:
        self._ray, self._actor, self._folder = ray, actor, folder
        self._reason = ""
        self._report: Report | None = None  # whose files are not written yet
        self._pending = actor.report.remote()
        self.placed = False
        """Whether it has begun: it waits for free cores of the cluster before."""

    def poll(self) -> int | None:
        """See `Child.poll`. Files that have come back are written. Raises OSError if they cannot be; it tries again."""
        if self._report is None:
            ready, _ = self._ray.wait([self._pending], timeout=0.0)
            if not ready:
                return None
            try:
                self._report = self._ray.get(self._pending)
            except self._ray.exceptions.RayTaskError as error:
                self._reason = str(error.cause)
                self.kill()
                return LOST
            except self._ray.exceptions.RayError as error:
                self._reason = f"its node or its worker is lost ({last_text(error)})"
                self.kill()
                return LOST
        self.placed = True
        report: Report = self._report
        receive(self._folder, report)
        self._reason, self._report = report.reason, None
        if report.code is None:
            self._pending = self._actor.report.remote()
            return None
        self._ray.wait([self._actor.clean.remote()], timeout=CLEAN_SECONDS)
        self.kill()
        return report.code

    def reason(self) -> str:
        """See `Child.reason`."""
        return self._reason

    def note(self) -> str:
        """See `Child.note`."""
        return "" if self.placed else "waits for a free core of the cluster"

    def stop(self) -> None:
        """See `Child.stop`."""
        if self.placed:
            self._actor.stop.remote()
        else:
            self.kill()

    def kill(self) -> None:
        """See `Child.kill`."""
        self._ray.kill(self._actor)


class RayLauncher:
    """Runs the tasks of a league on a cluster, each with so many `cores`; `league` is the address of its actor."""

    def __init__(self, ray: Any, league: str, cores: float) -> None:
        self._ray, self._league = ray, league
        self._address = ray.get_runtime_context().gcs_address
        self._runner = ray.remote(num_cpus=cores, max_restarts=0, scheduling_strategy="SPREAD")(Runner)

    def launch(self, task: Task) -> RayChild:
        """See `Launcher.launch`."""
        path = Path(task.plan.config)
        config = read_regular_file(path, MAX_BYTES) if path.suffix == ".toml" else None
        command = task.command(self._league, Path(RUN))
        if config is not None:
            command = [CONFIG if each == task.plan.config else each for each in command]
        actor = self._runner.remote(self._address, read_files(task.folder), config, command, task.nice)
        return RayChild(self._ray, actor, task.folder)


def stamps(folder: Path) -> dict[str, tuple[int, int]]:
    """Path in the folder -> time of change and size, of every file that is sent."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if name.parts[0] in NOT_SENT or any(part.startswith(".") for part in name.parts):
            continue
        try:
            if path.is_file():
                found[str(name)] = (path.stat().st_mtime_ns, path.stat().st_size)
        except FileNotFoundError:
            continue
    return found


def read_files(folder: Path) -> Files:
    """The files of a run's folder that it needs to go on, with its first, best and last checkpoint; may be empty."""
    kept = {checkpoint_name(0), *(checkpoint.name for checkpoint in checkpoints_to_resume(folder))}
    if (folder / BEST_FILE).exists():
        kept.add(named_checkpoint(folder / BEST_FILE).name)
    return {
        name: (folder / name).read_bytes()
        for name in stamps(folder)
        if Path(name).parts[0] != CHECKPOINTS_FOLDER or Path(name).parts[1] in kept
    }


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files into a folder, each whole or not at all, and the name of the last checkpoint after all others."""
    for name in sorted(files, key=lambda name: name == LAST_FILE):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, files[name])


def receive(folder: Path, report: Report) -> None:
    """Bring the copy of a run's folder up to date: checkpoints lose the files that the run has removed from them."""
    if not report.changed:
        return
    write_files(folder, report.changed)
    for checkpoint in {Path(name).parent for name in report.names if name.startswith(f"{CHECKPOINTS_FOLDER}/")}:
        for file in (folder / checkpoint).glob("*"):
            if str(checkpoint / file.name) not in report.names:
                file.unlink(missing_ok=True)


def last_text(error: BaseException) -> str:
    """The last line of an error's message, in which Ray has the cause."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
