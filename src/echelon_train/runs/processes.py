"""The further processes of a run on one machine: the process that calls `train` or `resume` is the first."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from echelon_train.errors import ProcessError
from echelon_train.ppo import distributed

WORKER = "echelon_train.runs.worker"
READY = "ready"
"""First line of a worker's standard output, once it can join. Another line is the message of its failure, as JSON."""

_PATIENCE = 10.0  # s for workers to end after the first process has lost one
_LAST_PATIENCE = 60.0  # s for them to end after the run


@contextlib.contextmanager
def processes(count: int, function: str, folder: str, **arguments: Any) -> Iterator[None]:
    """Start the other processes of a run, and let all of them train together in the block.

    It does nothing for one process, or in one that trains with others already. The workers are in a session of their
    own, so Ctrl-C reaches this process only, which tells them after the iteration. They end when this process ends for
    any reason. What they do is said in `echelon_train.runs.worker`. Raises ProcessError if one fails, with its message.
    """
    if count == 1 or distributed.world_size() > 1:
        yield
        return
    with contextlib.ExitStack() as stack:
        store = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="echelon-"))) / "store"
        workers = []
        for rank in range(1, count):
            job = {"rank": rank, "size": count, "store": str(store), "function": function, "folder": folder}
            workers.append(stack.enter_context(_worker({**job, **arguments})))
        for worker in workers:
            if _line(worker) != READY:
                raise _failure(workers, 0.0) or ProcessError("a process of the run does not start")
        try:
            stack.enter_context(distributed.local_group(0, count, store))
            yield
        except RuntimeError as error:  # such as a lost connection
            failure = _failure(workers, _PATIENCE)
            if failure is None:
                raise
            raise failure from error
        for worker in workers:
            with contextlib.suppress(subprocess.TimeoutExpired):
                worker.wait(_LAST_PATIENCE)


@contextlib.contextmanager
def _worker(job: dict[str, Any]) -> Iterator[subprocess.Popen[str]]:
    """A worker that has its job; it is killed at the end of the block, if it has not ended."""
    pipe = subprocess.PIPE
    command = [sys.executable, "-m", WORKER]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, start_new_session=True) as worker:
        try:
            assert worker.stdin is not None
            with contextlib.suppress(BrokenPipeError):
                worker.stdin.write(f"{json.dumps(job)}\n")
                worker.stdin.flush()  # and stays open for as long as this process lives
            yield worker
        finally:
            worker.kill()


def _line(worker: subprocess.Popen[str]) -> str:
    """The next line of a worker's output; empty if it has ended."""
    assert worker.stdout is not None
    return worker.stdout.readline().strip()


def _failure(workers: Sequence[subprocess.Popen[str]], patience: float) -> ProcessError | None:
    """Why workers have failed, of those that fail within `patience` seconds; None if there are none.

    A worker that failed because it lost another is named only if there is no other reason.
    """
    deadline = time.monotonic() + patience
    while patience and any(worker.poll() is None for worker in workers) and time.monotonic() < deadline:
        time.sleep(0.05)
    reasons: list[tuple[bool, str]] = []
    for rank, worker in enumerate(workers, 1):
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = worker.wait(1.0)
            found = json.loads(_line(worker) or "{}")
            message = found.get("message", f"it ended with exit code {code}")
            reasons.append((found.get("lost", False), f"process {rank} of {len(workers) + 1} failed: {message}"))
    return ProcessError(min(reasons)[1]) if reasons else None
