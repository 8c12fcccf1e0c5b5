"""Matches played in processes.

An executor plays every match at least once and records nothing. The caller records the matches, and the league counts a
duplicate once.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import pickle
import signal
import traceback
from collections import Counter, deque
from collections.abc import Generator, Sequence
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Final

import torch

from echelon_env.config.schema import check_integer
from echelon_train.league.errors import LeagueError
from echelon_train.league.playing.jobs import Job, run_job, worker_name
from echelon_train.league.store.records import PlayedMatch
from echelon_train.signals import TERMINAL_SIGNALS, terminal_signals_held

ATTEMPTS: Final = 3
"""Largest number of attempts at a match whose processes are killed."""

EXIT_SECONDS: Final = 5.0
"""Time for a worker to exit by itself, so that its own exit code can be reported."""


class Executor:
    """Plays matches in processes of this machine, one thread each, or in the current process.

    Close it after use, for example by `contextlib.closing`: the workers run until then, or until this process ends. A
    script with several workers needs the usual ``if __name__ == "__main__":``.

    Parameters
    ----------
    processes
        Number of matches in progress at a time; 1 plays them in the current process.

    Raises
    ------
    ConfigError
        For an invalid number.
    """

    def __init__(self, processes: int = 1) -> None:
        self._processes = check_integer("processes", processes)
        self._idle: list[_Worker] = []

    def run(self, path: Path, jobs: Sequence[Job]) -> Generator[PlayedMatch, None, None]:
        """Play matches of the league in a folder. Yields each when it is over, in any order.

        A match whose worker is killed is played again. Closing the generator aborts the matches in progress.

        Raises what `playing.jobs.run_job` raises, and LeagueError for a match whose workers were killed `ATTEMPTS`
        times.
        """
        if self._processes == 1:
            for job in jobs:
                yield run_job(path, job)
            return
        waiting, killed = deque(jobs), Counter[str]()
        busy: dict[object, tuple[_Worker, Job]] = {}  # by the worker's connection
        try:
            while waiting or busy:
                while waiting and len(busy) < self._processes:
                    worker, job = self._idle.pop() if self._idle else _Worker(), waiting.popleft()
                    worker.send(path, job)
                    busy[worker.connection] = worker, job
                for connection in wait([worker.connection for worker, _ in busy.values()]):
                    worker, job = busy.pop(connection)
                    answer = worker.receive()
                    if answer is None:
                        exit_code = worker.end(patience=EXIT_SECONDS)
                        killed[job.uuid] += 1
                        if killed[job.uuid] == ATTEMPTS:
                            raise LeagueError(
                                f"{job}: given up: {ATTEMPTS} processes ended while they played it (last exit code "
                                f"{exit_code}; -9 can mean too little memory)"
                            )
                        waiting.appendleft(job)
                        continue
                    self._idle.append(worker)
                    if isinstance(answer, Exception):
                        raise answer
                    yield answer
        finally:
            for worker, _ in busy.values():
                worker.end()

    def close(self) -> None:
        """End the workers."""
        while self._idle:
            self._idle.pop().end()


class _Worker:
    """A process that plays one match at a time."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")  # a fork of a process with threads, as torch's, may hang
        self.connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs,), daemon=True)
        with terminal_signals_held():
            self._process.start()
        theirs.close()  # otherwise `recv` would not notice that the worker has ended

    def send(self, path: Path, job: Job) -> None:
        """Send the worker a match to play."""
        with contextlib.suppress(OSError):  # the worker was killed: `receive` returns None
            self.connection.send((path, job))

    def receive(self) -> PlayedMatch | Exception | None:
        """The played match, or the error; None if the worker was killed."""
        try:
            answer: PlayedMatch | Exception = self.connection.recv()
        except (EOFError, OSError):
            return None
        return answer

    def end(self, patience: float = 0.0) -> int | None:
        """Kill the worker unless it exits within `patience` seconds; returns its exit code."""
        self._process.join(patience)
        self._process.kill()
        self._process.join()
        self.connection.close()
        return self._process.exitcode


def _serve(connection: Connection) -> None:
    """The loop of a worker, which ends when the connection closes."""
    for number in TERMINAL_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    torch.set_num_threads(1)
    with contextlib.suppress(EOFError, OSError):
        while True:
            path, job = connection.recv()
            connection.send(_answer(path, job))


def _answer(path: Path, job: Job) -> PlayedMatch | Exception:
    try:
        return run_job(path, job)
    except Exception as error:
        try:
            error.add_note(f"{job}, in the worker {worker_name()}:\n{traceback.format_exc()}")
            pickle.loads(pickle.dumps(error))
        except Exception:
            return RuntimeError(f"{job}: {traceback.format_exc()}")
        return error
