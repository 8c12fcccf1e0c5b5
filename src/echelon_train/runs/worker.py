"""``python -m echelon_train.runs.worker``: a process of a run that the first process has started.

Its job is a line of JSON on standard input: ``rank``, ``size`` and ``store`` for
`echelon_train.ppo.distributed.local_group`, and the ``function`` (``train`` or ``resume``) to call with a ``folder``
and a ``config`` or ``changes``. It ends when standard input does, because then the first process has ended.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import traceback
from pathlib import Path
from typing import Any, TextIO

from rich.console import Console

from echelon_env.config.schema import ConfigError
from echelon_train.config.train import TrainConfig
from echelon_train.errors import TrainError
from echelon_train.ppo import distributed
from echelon_train.runs.processes import READY
from echelon_train.runs.training import resume, train


def main() -> int:
    """Do the job; returns the exit code."""
    job = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_the_first, daemon=True).start()
    with contextlib.redirect_stdout(sys.stderr):  # standard output is for the first process
        return _do(job, sys.__stdout__ or sys.stderr)


def _do(job: dict[str, Any], replies: TextIO) -> int:
    _say(READY, replies)
    try:
        with distributed.local_group(job["rank"], job["size"], Path(job["store"])):
            _run(job)
    except BaseException as error:
        lost = isinstance(error, RuntimeError)
        if not lost and not isinstance(error, (TrainError, ConfigError, OSError, MemoryError)):
            traceback.print_exc()
        _say(json.dumps({"lost": lost, "message": f"{type(error).__name__}: {error}"}), replies)
        return 1
    return 0


def _run(job: dict[str, Any]) -> None:
    """Train silently: the first process prints for all."""
    folder, console = Path(job["folder"]), Console(quiet=True)
    if job["function"] == "train":
        train(TrainConfig.from_dict(job["config"]), folder, console=console)
    else:
        resume(folder, console=console, **job["changes"])


def _say(line: str, replies: TextIO) -> None:
    replies.write(f"{line}\n")
    replies.flush()


def _end_with_the_first() -> None:
    sys.stdin.read()
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
