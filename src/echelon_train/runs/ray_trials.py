"""Trials of a sweep on a cluster by Ray, https://ray.io, of the extra ``[ray]``.

The study stays with this process, which is the only one that opens the sweep's folder. A worker gets a configuration,
reports its evaluations to an actor, which this process asks for them, waits for the answer, and returns the files of
its run. A worker or node that dies loses its trial, which is run again.
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from rich.console import Console

from echelon_env import __version__
from echelon_env.config.schema import ConfigError, check_integer
from echelon_env.storage.atomic import new_folder
from echelon_train.config.train import TrainConfig
from echelon_train.console import PrintableConsole
from echelon_train.errors import NonFiniteError, TrainError
from echelon_train.ray_cluster import connect
from echelon_train.runs.evaluation import Evaluation
from echelon_train.runs.study import Claim, Study, is_failure
from echelon_train.runs.training import train
from echelon_train.signals import stop_signals

ATTEMPTS = 3
"""How often the settings of a trial are tried while its workers die."""

SILENCE = 20.0
"""s without an answer of the cluster's head after which it counts as lost; Ray ends the process after a minute."""

_TICK = 1.0  # s between two looks at the signals and at the cluster
_REASON = 200  # characters of Ray's reason for a lost worker
_CONTINUE = "; the sweep's folder is intact, and the same command continues"


class RayTrials:
    """Trains the trials of a sweep on the workers of a Ray cluster; a context manager that connects to it (`connect`).

    The workers need the same version of this package, but not the sweep's folder. Paths in the run config, as of `init`
    and of opponents, are those of the workers. A trial takes a CPU for each thread of its processes, and a GPU for each
    process if its `device` is CUDA. There are `at_once` trials at a time, by default as many as the cluster has CPUs
    for.

    Raises ConfigError for an invalid number, and TrainError on entering if Ray is not installed, or the cluster cannot
    be reached.
    """

    def __init__(self, address: str | None = None, *, at_once: int | None = None) -> None:
        self._address = address
        self._at_once = None if at_once is None else check_integer("at_once", at_once)
        self._ray: Any = None
        self._connected = False

    def __enter__(self) -> RayTrials:
        """Connect."""
        self._ray, self._connected = connect(self._address)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Disconnect; an existing connection to a cluster stays open."""
        if self._connected:
            self._ray.shutdown()

    def run(
        self, study: Study, wanted: int, make_config: Callable[[Claim], TrainConfig], console: Console | None
    ) -> bool:
        """Run trials until a study has so many. Returns whether a signal ended it before.

        Raises TrainError if the cluster is lost, and what training raises for reasons other than the settings. All
        trials that are not finished are queued to run again.
        """
        console, stopped = console or PrintableConsole(), threading.Event()
        driver = _Driver(self._ray, study, make_config, console)
        with driver.watching(), stop_signals(stopped.set, console):
            try:
                while not stopped.is_set():
                    driver.start(wanted, self._at_once)
                    if not driver.running:
                        break
                    driver.step()
                return stopped.is_set()
            finally:
                driver.abandon()


@dataclass(frozen=True)
class _Outcome:
    """How a trial ended on a worker, with the files of its run by name."""

    done: bool
    interrupted: bool
    failure: str | None
    files: Mapping[str, bytes]


class _Driver:
    """The trials in progress, in the process that holds the study."""

    def __init__(self, ray: Any, study: Study, make_config: Callable[[Claim], TrainConfig], console: Console) -> None:
        self._ray, self._study, self._make_config, self._console = ray, study, make_config, console
        here = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
            ray.get_runtime_context().get_node_id(), soft=True
        )
        self._desk = ray.remote(_Desk).options(num_cpus=0, scheduling_strategy=here).remote()
        self._question = self._desk.question.remote()
        self._losses: Counter[str] = Counter()  # by settings
        self._cpus, self._most = 0.0, 0.0  # of the cluster, of its largest node
        self._heard = time.monotonic()  # when its head answered last
        self.running: dict[Any, tuple[Claim, int]] = {}
        """By task: the trial, and its CPUs."""

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Ask the cluster's head for its nodes all the time, in a thread: without a head the call does not return."""
        ended = threading.Event()

        def watch() -> None:
            with contextlib.suppress(Exception):  # then the head is not heard any more
                while not ended.wait(_TICK):
                    self._count_cpus()

        self._count_cpus()
        threading.Thread(target=watch, daemon=True).start()
        try:
            yield
        finally:
            ended.set()

    def start(self, wanted: int, at_once: int | None) -> None:
        """Start trials while there is room for them."""
        while self._has_room(at_once):
            claim = self._study.claim(wanted)
            if claim is None:
                return
            try:
                config = self._make_config(claim)
            except ConfigError as error:
                self._fail(claim, str(error))
                continue
            except BaseException:
                claim.requeue()
                raise
            cpus = config.processes * max(config.threads, config.torch_threads)
            gpus = config.processes * config.device.startswith("cuda")
            task = self._ray.remote(num_cpus=cpus, num_gpus=gpus, max_retries=0, max_calls=1)(_train)
            reference = task.remote(__version__, claim.number, config.to_dict(), self._desk)
            self.running[reference] = claim, cpus
            self._say(claim, claim.settings)
            if cpus > self._most:
                self._say(claim, f"waits: no node has as many CPUs as it takes, {cpus}")

    def step(self) -> None:
        """Wait for a question or the end of a trial, for a moment. Raises TrainError if the cluster is lost."""
        ready, _ = self._ray.wait([self._question, *self.running], timeout=_TICK)
        for reference in ready:
            if reference == self._question:
                try:
                    self._answer(*self._result(reference))
                except self._ray.exceptions.RayError as error:
                    reason = str(error).strip().splitlines()[-1]  # of an actor's traceback
                    raise TrainError(f"Ray: the sweep's actor has ended: {reason}{_CONTINUE}") from error
                self._question = self._desk.question.remote()
            else:
                self._finish(reference)
        if time.monotonic() - self._heard > SILENCE:
            raise TrainError(f"Ray: the head of the cluster has not answered for {SILENCE:.0f} s{_CONTINUE}")

    def abandon(self) -> None:
        """End all trials in progress, which are run again."""
        for reference, (claim, _) in self.running.items():
            self._ray.cancel(reference, force=True)
            claim.requeue()
        self.running = {}
        if time.monotonic() - self._heard < SILENCE:  # else this would wait for the head
            self._ray.kill(self._desk)

    def _count_cpus(self) -> None:
        cpus = [node["Resources"].get("CPU", 0.0) for node in self._ray.nodes() if node["Alive"]]
        self._cpus, self._most, self._heard = sum(cpus), max(cpus, default=0.0), time.monotonic()

    def _has_room(self, at_once: int | None) -> bool:
        if at_once is not None:
            return len(self.running) < at_once
        return not self.running or sum(cpus for _, cpus in self.running.values()) + 1 <= self._cpus

    def _answer(self, number: int, win_rate: float) -> None:
        """Record an evaluation, and tell its worker whether to go on."""
        for claim, _ in self.running.values():
            if claim.number == number:
                goes_on = claim.report(win_rate)
                self._say(claim, f"{100 * win_rate:.1f} % won in evaluation {claim.evaluations}")
                self._desk.answer.remote(number, goes_on)

    def _finish(self, reference: Any) -> None:
        """Record the end of a trial, and write the files of its run."""
        claim, _ = self.running[reference]
        try:
            outcome: _Outcome = self._result(reference)
        except self._ray.exceptions.RayError as error:
            del self.running[reference]
            self._lose(claim, " ".join(str(error).split()))
            return
        if outcome.files and not outcome.interrupted:
            _write(claim.run, outcome.files)
        del self.running[reference]
        if outcome.interrupted:
            self._lose(claim, "it was stopped")
        elif outcome.failure is not None:
            self._fail(claim, outcome.failure)
        else:
            claim.finish(outcome.done)
            self._say(claim, "complete" if outcome.done else "pruned")

    def _lose(self, claim: Claim, reason: str) -> None:
        """Run a trial again whose worker is gone, unless that has happened too often."""
        self._losses[claim.settings] += 1
        if self._losses[claim.settings] >= ATTEMPTS:
            self._fail(claim, f"its worker died {ATTEMPTS} times: {reason[:_REASON]}")
        else:
            claim.requeue()
            self._say(claim, f"its worker died, so it runs again: {reason[:_REASON]}")

    def _fail(self, claim: Claim, reason: str) -> None:
        claim.fail(reason)
        self._say(claim, f"failed: {reason}")

    def _result(self, reference: Any) -> Any:
        """The result of a task. Raises the task's own error, TrainError if the cluster is lost, else a `RayError`."""
        errors = self._ray.exceptions
        try:
            return self._ray.get(reference)
        except errors.LocalRayletDiedError as error:
            raise TrainError(f"Ray: the node of this process has died{_CONTINUE}") from error
        except errors.RayTaskError as error:
            if isinstance(error.cause, ImportError):
                raise TrainError(f"Ray: a worker has another version of Echelon or none: {error.cause}") from error
            raise error.cause from error

    def _say(self, claim: Claim, text: str) -> None:
        self._console.print(f"trial {claim.number}: {text}", markup=False, highlight=False, soft_wrap=True)


class _Desk:
    """An actor through which workers ask the process that holds the study whether their trials go on."""

    def __init__(self) -> None:
        self._questions: asyncio.Queue[tuple[int, float]] = asyncio.Queue()
        self._answers: dict[int, asyncio.Future[bool]] = {}

    async def report(self, number: int, win_rate: float) -> bool:
        """Report an evaluation of a trial; returns the answer: whether the trial goes on."""
        self._answers[number] = asyncio.get_running_loop().create_future()
        await self._questions.put((number, win_rate))
        return await self._answers[number]

    async def question(self) -> tuple[int, float]:
        """The next report: the number of the trial, and its win rate."""
        return await self._questions.get()

    async def answer(self, number: int, goes_on: bool) -> None:
        """Answer the report of a trial."""
        self._answers.pop(number).set_result(goes_on)


def _train(version: str, number: int, plain: Mapping[str, Any], desk: Any) -> _Outcome:
    """Train a trial on a worker of the cluster."""
    import ray

    if version != __version__:
        raise TrainError(f"Ray: a worker has Echelon {__version__}, this process {version}")

    def should_continue(_: int, evaluation: Evaluation) -> bool:
        return bool(ray.get(desk.report.remote(number, evaluation.wins.estimate)))

    with tempfile.TemporaryDirectory(prefix="echelon-") as temporary:
        folder, done, interrupted, failure = Path(temporary) / f"trial-{number:04d}", False, False, None
        try:
            config = TrainConfig.from_dict(plain)
            result = train(config, folder, console=Console(quiet=True), should_continue=should_continue)
            done, interrupted = result.done, result.interrupted
        except (ConfigError, NonFiniteError) as error:
            if not is_failure(error):
                raise
            failure = str(error)
        paths = [path for path in folder.rglob("*") if path.is_file()]
        files = {f"{path.relative_to(folder)}": path.read_bytes() for path in paths}
        return _Outcome(done, interrupted, failure, files)


def _write(run: Path, files: Mapping[str, bytes]) -> None:
    """Write the files of a run into its folder: all or none. Raises OSError."""
    with new_folder(run) as folder:
        for name, content in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
